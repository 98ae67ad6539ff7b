package sender

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/profile"
)

// childVariable makes this test binary play a sender in a process of its own.
const childVariable = "WHCONFORM_SENDER_CHILD"

// child is what such a process is to do: send from the outbox, and publish an
// event of the type on each line of its standard input, printing the ids.
type child struct {
	Path    string
	Migrate bool // only bring the schema to a version that kills the process half way
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		if err := playChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// crashPolicy has a schedule that a test can wait for.
func crashPolicy() Policy {
	return Policy{Schedule: []time.Duration{0, 200 * time.Millisecond, 400 * time.Millisecond, time.Second, time.Second, time.Second}, Timeout: 5 * time.Second, Lease: time.Minute}
}

func playChild(text string) error {
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if c.Migrate {
		return migrateAndDie(ctx, c.Path)
	}
	p, err := profile.Load("standard-webhooks")
	if err != nil {
		return err
	}
	guard, err := NewGuard("127.0.0.1")
	if err != nil {
		return err
	}
	s, err := Open(ctx, c.Path, Options{Profile: p, Clock: clock.New(), Guard: guard, Policy: crashPolicy(), Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() { sent <- s.Run(ctx) }()
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		ids, err := s.Publish(ctx, Event{Type: lines.Text(), Data: []byte(`{"from":"a child"}`)})
		if err != nil {
			fmt.Println("error:", err)
			continue
		}
		fmt.Println(strings.Join(ids, " "))
	}
	stop()
	return errors.Join(<-sent, s.Close())
}

// migrateAndDie brings the schema to a version whose migration kills the process
// half way.
func migrateAndDie(ctx context.Context, path string) error {
	first, err := fs.ReadFile(migrationFiles, "migrations/0001_outbox.sql")
	if err != nil {
		return err
	}
	st := &store{path: path, sync: "FULL", clock: clock.New(), turn: make(chan struct{}, 1)}
	if st.writing, err = st.connect(1); err != nil {
		return err
	}
	conn, err := st.writing.Conn(ctx)
	if err != nil {
		return err
	}
	st.session = &session{conn: conn}
	files := fstest.MapFS{"migrations/0001_outbox.sql": &fstest.MapFile{Data: first}}
	return migrate(ctx, files, time.Now(), func(ctx context.Context, do func(context.Context, Tx) error) error {
		return st.transaction(ctx, func(ctx context.Context, tx Tx) error {
			if err := do(ctx, tx); err != nil {
				return err
			}
			return syscall.Kill(os.Getpid(), syscall.SIGKILL) // before the commit
		})
	})
}

// process is a child that runs.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  interface{ Write([]byte) (int, error) }
	close  func() error
	stdout *bufio.Reader
	dead   bool
}

func startChild(t testing.TB, c child) *process {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, stdin: stdin, close: stdin.Close, stdout: bufio.NewReader(stdout)}
	t.Cleanup(p.kill)
	return p
}

// startSender starts a child that sends, and waits until it does.
func startSender(t testing.TB, path string) *process {
	t.Helper()
	p := startChild(t, child{Path: path})
	if line, err := p.line(); line != "ready" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	return p
}

// line is the next line that the process prints.
func (p *process) line() (string, error) {
	line, err := p.stdout.ReadString('\n')
	return strings.TrimSpace(line), err
}

// publish lets the process publish an event that one endpoint gets; "" if it did
// not confirm it.
func (p *process) publish(eventType string) (id string) {
	if _, err := fmt.Fprintln(p.stdin, eventType); err != nil {
		return ""
	}
	line, err := p.line()
	if err != nil || strings.HasPrefix(line, "error:") {
		return ""
	}
	return line
}

// kill ends the process as a crash would.
func (p *process) kill() {
	if p.dead {
		return
	}
	p.dead = true
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.cmd.Wait()
}
