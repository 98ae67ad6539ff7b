package adapter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The adapters in these tests are this test binary, started again with a role.
const roleVariable = "WHCONFORM_ADAPTER_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// play is one adapter, good or hostile. It returns the exit code.
func play(role string) int {
	in := bufio.NewReader(os.Stdin)
	next := func() string { line, _ := in.ReadString('\n'); return line }
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	good := func() int {
		if err := Serve(context.Background(), in, os.Stdout, goodMethods()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	switch role {
	case "good":
		return good()
	case "silent":
		_, _ = io.Copy(io.Discard, in)
	case "never reads":
		return untilKilled()
	case "prints a banner":
		say("Shop adapter 1.2 listening, key %s", secret)
		return good()
	case "language server":
		say("Content-Length: 38\r\n\r")
		return untilKilled()
	case "byte order mark":
		next()
		say("\ufeff" + `{"jsonrpc":"2.0","id":1,"result":null}`)
	case "UTF-16":
		say("\xff\xfe{\x00")
	case "garbage after a good answer":
		next()
		say(`{"jsonrpc":"2.0","id":1,"result":{"processed":1}}`)
		say("DEBUG asked for the event, secret %s", secret)
		return untilKilled()
	case "pretty prints":
		next()
		say("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1\n}")
	case "answers in a batch":
		next()
		say(`[{"jsonrpc":"2.0","id":1,"result":{"processed":1}}]`)
	case "another protocol":
		next()
		say(`{"id":1,"result":{"processed":1},"error":null}`)
	case "an error beside the result":
		next()
		say(`{"jsonrpc":"2.0","id":1,"result":{"processed":1},"error":null}`)
	case "neither result nor error":
		next()
		say(`{"jsonrpc":"2.0","id":1}`)
	case "capital letters":
		next()
		say(`{"JSONRPC":"2.0","ID":1,"Result":{"processed":1}}`)
	case "one member twice":
		next()
		say(`{"jsonrpc":"2.0","id":2,"id":1,"result":{"processed":1}}`)
	case "an error without a code":
		next()
		say(`{"jsonrpc":"2.0","id":1,"error":"it broke"}`)
	case "asks":
		say(`{"jsonrpc":"2.0","method":"log","params":{"text":"hello"}}`)
	case "not UTF-8":
		next()
		say("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"processed\":1,\"name\":\"M\xfcller\"}}")
	case "nests too deep":
		next()
		say(`{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`)
	case "wrong id":
		next()
		say(`{"jsonrpc":"2.0","id":1001,"result":{"processed":1}}`)
	case "id as text":
		next()
		say(`{"jsonrpc":"2.0","id":"1","result":{"processed":1}}`)
	case "id as a fraction":
		next()
		say(`{"jsonrpc":"2.0","id":1.0,"result":{"processed":1}}`)
	case "huge id":
		next()
		say(`{"jsonrpc":"2.0","id":%s,"result":{"processed":1}}`, strings.Repeat("9", 1000))
	case "no id":
		next()
		say(`{"jsonrpc":"2.0","result":{"processed":1}}`)
	case "could not read the request":
		next()
		say(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"unexpected token"}}`)
	case "doubled id":
		next()
		say(`{"jsonrpc":"2.0","id":1,"result":{"processed":1}}`)
		say(`{"jsonrpc":"2.0","id":1,"result":{"processed":1}}`)
		return untilKilled()
	case "endless line":
		next()
		piece := bytes.Repeat([]byte("x"), 1<<20)
		for range 512 {
			if _, err := os.Stdout.Write(piece); err != nil {
				return 1
			}
		}
	case "endless empty lines":
		for {
			if _, err := os.Stdout.WriteString("\n\n\n\n"); err != nil {
				return 1
			}
		}
	case "dies":
		next()
		fmt.Fprintln(os.Stderr, "panic: no database, secret", secret)
		return 7
	case "dies mid-line":
		next()
		fmt.Printf(`{"jsonrpc":"2.0","id":1,"result":{"secret":"whsec_MDEy`)
		fmt.Fprintln(os.Stderr, "out of memory")
		return 3
	case "answers and dies":
		next()
		say(`{"jsonrpc":"2.0","id":1,"result":{"processed":1}}`)
		return 9
	case "closes its input":
		_ = os.Stdin.Close()
		return untilKilled()
	case "floods stderr":
		line := []byte(strings.Repeat("log ", 20) + "\n")
		flood := bytes.Repeat(line, 1000)
		for range 200 { // 16 MiB
			_, _ = os.Stderr.Write(flood)
		}
		fmt.Fprintln(os.Stderr, "the last word")
		return good()
	case "floods stderr without a line":
		flood := bytes.Repeat([]byte("x"), 1<<20)
		for range 16 {
			_, _ = os.Stderr.Write(flood)
		}
		next()
		return 5
	case "out of order":
		var ids []int64
		for range 3 {
			var r struct {
				ID     int64
				Params ProcessedParams
			}
			if json.Unmarshal([]byte(next()), &r) != nil {
				return 1
			}
			ids = append(ids, r.ID)
		}
		for _, id := range []int{2, 0, 1} {
			say(`{"jsonrpc":"2.0","id":%d,"result":{"processed":%d}}`, ids[id], ids[id])
		}
		return good()
	case "late":
		first := next()
		next() // the cancellation of the first request
		second := next()
		for _, line := range []string{first, second} {
			var r struct{ ID int64 }
			if json.Unmarshal([]byte(line), &r) != nil {
				return 1
			}
			say(`{"jsonrpc":"2.0","id":%d,"result":{"processed":%d}}`, r.ID, r.ID)
		}
		return good()
	case "never ends":
		signal.Ignore(syscall.SIGTERM)
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), roleVariable+"=never reads")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if child.Start() != nil {
			return 1
		}
		next()
		say(`{"jsonrpc":"2.0","id":1,"result":{"processed":%d}}`, child.Process.Pid)
		return untilKilled()
	default:
		// An answer to the first request, as it stands.
		next()
		say("%s", role)
		_, _ = io.Copy(io.Discard, in)
	}
	return 0
}

func untilKilled() int {
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR2)
	<-never
	return 0
}

// goodMethods are those of a receiver that has processed every event twice.
func goodMethods() Methods {
	m := Methods{
		MethodProcessed: Func(func(_ context.Context, p ProcessedParams) (Processed, error) {
			if p.ID == "" {
				return Processed{}, &Error{Code: InvalidParams, Message: "no id"}
			}
			return Processed{Processed: 2, Failed: p.ID == "evt_failed"}, nil
		}),
		MethodState: Func(func(_ context.Context, p StateParams) (State, error) {
			return State{State: "state of " + p.Reference}, nil
		}),
		MethodFailOnce: Func(func(_ context.Context, p FailOnceParams) (any, error) {
			return nil, errors.New("there is no event " + p.ID)
		}),
		MethodAdvance: Func(func(_ context.Context, p AdvanceParams) (Advanced, error) { return Advanced{Now: p.To}, nil }),
		"test.wait": func(ctx context.Context, _ json.RawMessage) (any, error) {
			<-ctx.Done()
			fmt.Fprintln(os.Stderr, "taken back")
			return nil, ctx.Err()
		},
		"test.panic": func(context.Context, json.RawMessage) (any, error) { panic("a bug") },
		"test.big":   func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("x", MaxAnswer), nil },
		"test.size":  Func(func(_ context.Context, p struct{ Text string }) (int, error) { return len(p.Text), nil }),
	}
	m[MethodInitialize] = Initialize(Initialized{Name: "shop", Version: "1.2", Capabilities: []string{"managed"}}, m, nil)
	return m
}

// started starts an adapter in a role and closes it with the test.
func started(t *testing.T, role string, o Options, log io.Writer) *Process {
	t.Helper()
	p, err := Start(Command{
		Args: []string{os.Args[0], "-test.run=^$"},
		// A binary built with the race detector waits for a second at its end
		// unless it is told not to.
		Env: append(os.Environ(), roleVariable+"="+role, "GORACE=atexit_sleep_ms=0"),
		Log: log,
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// noLeaks fails the test if it leaves goroutines behind.
func noLeaks(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		// What a goroutine does last is not over when it is heard of.
		bound := time.After(10 * time.Second)
		again := time.NewTicker(5 * time.Millisecond)
		defer again.Stop()
		for runtime.NumGoroutine() > before {
			select {
			case <-bound:
				stacks := make([]byte, 1<<16)
				t.Fatalf("%d goroutines more than before\n%s", runtime.NumGoroutine()-before, stacks[:runtime.Stack(stacks, true)])
			case <-again.C:
			}
		}
	})
}

// gone tells whether a process has ended. Of one that nobody has waited for yet
// only the entry is left: that counts as ended.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return runtime.GOOS == "linux"
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X")
}
