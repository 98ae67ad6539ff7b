package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/whconform/whconform/fakeprovider"
)

// The commands under test are this test binary, started again with a role.
const roleVariable = "WHCONFORM_DRIVE_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// roles are what a started command does.
const (
	roleServe      = "serve"       // listens on PORT and answers with its environment
	roleRefuse     = "refuse"      // prints its secrets and ends
	roleSilent     = "silent"      // ends without a word
	roleDeaf       = "deaf"        // never listens
	roleStubborn   = "stubborn"    // serves, ignores SIGTERM, and so does its child
	roleGrandchild = "grandchild"  // ignores SIGTERM
	roleOrphaning  = "orphaning"   // serves; ends on SIGTERM and leaves its child behind
	roleOnce       = "once"        // serves until it is asked to end; started again on the same state it refuses
	rolePieces     = "pieces"      // serves after it printed a secret in pieces
	roleOtherPort  = "other-port"  // listens, but not on PORT
	roleServeState = "serve-state" // serve, and counts its starts in the state folder
	roleAdapter    = "adapter"     // serves, and speaks the adapter protocol on its standard streams
	roleBanner     = "banner"      // serves, and logs to stdout what should be the protocol
	roleBreaks     = "breaks"      // adapter, until it is asked to fail an event: from then on it prints nonsense
	roleDeafInput  = "deaf-input"  // serves, and reads nothing
	roleSender     = "sender"      // the adapter of a sender
)

// play returns the exit code.
func play(role string) int {
	switch role {
	case roleRefuse:
		fmt.Println("cannot start with", os.Getenv("WEBHOOK_SECRET"), "and", os.Getenv("WEBHOOK_SECRET_PREVIOUS"))
		fmt.Fprintln(os.Stderr, "giving up")
		return 7
	case roleSilent:
		return 0
	case roleDeaf:
		return waitForSIGTERM("not listening")
	case roleOtherPort:
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 1
		}
		defer l.Close()
		return waitForSIGTERM("listening elsewhere")
	case roleGrandchild:
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("grandchild", os.Getpid())
		select {}
	case roleStubborn:
		signal.Ignore(syscall.SIGTERM)
		if startGrandchild() != nil {
			return 1
		}
		serve()
		select {}
	case roleOrphaning:
		if startGrandchild() != nil {
			return 1
		}
	case roleOnce:
		mark := os.Getenv("WHCONFORM_STATE_DIR") + "/started"
		if _, err := os.Stat(mark); err == nil {
			fmt.Println("once is enough")
			return 1
		}
		if os.WriteFile(mark, nil, 0o600) != nil {
			return 1
		}
	case roleSender:
		return playSender()
	case roleAdapter, roleBreaks, roleBanner, roleDeafInput:
		serve()
		return speak(role)
	case roleServeState:
		f, err := os.OpenFile(os.Getenv("WHCONFORM_STATE_DIR")+"/starts", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return 1
		}
		_, _ = f.WriteString("x")
		_ = f.Close()
	case rolePieces:
		printInPieces(os.Getenv("WEBHOOK_SECRET"))
	}
	serve()
	return waitForSIGTERM("serving")
}

func waitForSIGTERM(ready string) int {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	fmt.Println(ready)
	<-term
	fmt.Println("ending on SIGTERM")
	return 0
}

func startGrandchild() error {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), roleVariable+"="+roleGrandchild)
	child.Stdout = os.Stdout
	return child.Start()
}

// printInPieces writes byte by byte, each in a write of its own.
func printInPieces(secret string) {
	for _, b := range []byte("the secret is " + secret + "\nand once more " + secret) {
		_, _ = os.Stdout.Write([]byte{b})
	}
	_, _ = os.Stdout.WriteString("\n")
}

// told is what a serving command answers.
type told struct {
	PID  int
	Env  map[string]string
	Args []string
	Dir  string
}

func serve() {
	dir, _ := os.Getwd()
	about := told{PID: os.Getpid(), Env: map[string]string{}, Args: os.Args[1:], Dir: dir}
	for _, e := range os.Environ() {
		name, value, _ := strings.Cut(e, "=")
		about.Env[name] = value
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(about)
		}))
	}()
}

// as describes this binary in a role. A binary built with the race detector
// waits for a second at its end unless it is told not to.
func as(role string) ExecConfig {
	return ExecConfig{Command: []string{os.Args[0], "-test.run=^$"}, Env: []string{roleVariable + "=" + role, "GORACE=atexit_sleep_ms=0"}}
}

// started starts a command and ends it with the test.
func started(t *testing.T, c ExecConfig) Receiver {
	t.Helper()
	if c.State == "" {
		c.State = t.TempDir()
	}
	r, err := Exec(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

// ask asks a serving command about itself.
func ask(t *testing.T, r Receiver) told {
	t.Helper()
	return askAt(t, r.Target(0))
}

func askAt(t *testing.T, to fakeprovider.Target) told {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(to.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var about told
	if err := json.NewDecoder(answer.Body).Decode(&about); err != nil {
		t.Fatal(err)
	}
	return about
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

// awaitGone waits until a process has ended: the kernel tells nobody but its
// parent, so it has to be asked.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	bound := time.After(10 * time.Second)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !gone(pid) {
		select {
		case <-bound:
			t.Fatalf("process %d is still there", pid)
		case <-again.C:
		}
	}
}

// lineLog is a writer whose lines can be waited for.
type lineLog struct{ lines chan string }

func newLog() *lineLog { return &lineLog{make(chan string, 1000)} }

func (l *lineLog) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		select {
		case l.lines <- line:
		default:
			return 0, errors.New("more lines than the test has room for")
		}
	}
	return len(b), nil
}

// await returns the first line that begins so.
func (l *lineLog) await(t *testing.T, begin string) string {
	t.Helper()
	bound := time.After(20 * time.Second)
	for {
		select {
		case line := <-l.lines:
			if strings.HasPrefix(line, begin) {
				return strings.TrimSpace(line)
			}
		case <-bound:
			t.Fatalf("no line begins with %q", begin)
		}
	}
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
