package drive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/whconform/whconform/fakeprovider"
)

// Bounds of a managed process.
const (
	// StartTimeout is how long a command may take until its port answers: a
	// JVM with a framework needs ten seconds on a busy machine.
	StartTimeout = 60 * time.Second
	// stopGrace is how long a process may take to end after SIGTERM before it
	// is killed. Long enough to answer what is in flight.
	stopGrace = 3 * time.Second
	// probeEvery is how often the port is tried while the command starts.
	// A listening port sends no event, so it has to be asked.
	probeEvery = 10 * time.Millisecond
	// outputKept is how much of the command's output is kept for errors.
	outputKept = 16 << 10
)

// ExecConfig describes a receiver that the suite starts.
type ExecConfig struct {
	Command []string            // program and arguments, no shell
	Dir     string              // working directory, "" for this one
	Env     []string            // beside this process's own environment
	Target  fakeprovider.Target // "{port}" in its URL is the port chosen; "" means http://127.0.0.1:{port}/
	Secrets Secrets
	State   string    // WHCONFORM_STATE_DIR
	Log     io.Writer // gets the command's output, secrets removed; may be nil
}

// Exec starts a command as a receiver and waits until its port answers. The
// command is told PORT, WEBHOOK_SECRET, WEBHOOK_SECRET_PREVIOUS,
// WEBHOOK_PUBLIC_KEY and WHCONFORM_STATE_DIR, and listens on 127.0.0.1:$PORT.
// It runs in a process group of its own, which Close ends as a whole.
func Exec(ctx context.Context, c ExecConfig) (Receiver, error) {
	if len(c.Command) == 0 {
		return nil, errors.New("starting a receiver: no command")
	}
	if c.Target.URL == "" {
		c.Target.URL = "http://127.0.0.1:{port}/"
	}
	p := &process{config: c}
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

type process struct {
	config ExecConfig
	port   int
	cmd    *exec.Cmd
	output *tail
	exited chan struct{} // closed when cmd.Wait has returned
}

func (p *process) Has(capability string) bool {
	return capability == Managed || capability == SecondConfiguration
}

func (p *process) Target(int) fakeprovider.Target {
	to := p.config.Target
	to.URL = strings.ReplaceAll(to.URL, "{port}", strconv.Itoa(p.port))
	return to
}

func (*process) Processed(context.Context, string) (int, error) { return 0, ErrNotOffered }

func (p *process) Variant(ctx context.Context, s Secrets) (Receiver, error) {
	c := p.config
	c.Secrets = s
	state, err := os.MkdirTemp(c.State, "variant-")
	if err != nil {
		return nil, fmt.Errorf("making a state folder for a second receiver: %w", err)
	}
	c.State = state
	return Exec(ctx, c)
}

func (p *process) Restart(ctx context.Context, kill bool) error {
	if kill {
		p.signal(syscall.SIGKILL)
		<-p.exited
	} else if err := p.Close(ctx); err != nil {
		return err
	}
	return p.start(ctx)
}

func (p *process) Close(ctx context.Context) error {
	p.signal(syscall.SIGTERM)
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-p.exited:
	case <-grace.C:
	case <-ctx.Done():
	}
	// The group, also when its leader has ended: it may have left children.
	p.signal(syscall.SIGKILL)
	<-p.exited
	return nil
}

// signal reaches the whole process group. A group that is gone is no error.
func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

func (p *process) start(ctx context.Context) error {
	if p.port == 0 {
		port, err := freePort()
		if err != nil {
			return fmt.Errorf("choosing a port for the receiver: %w", err)
		}
		p.port = port
	}
	c := p.config
	p.output = &tail{log: c.Log, secrets: c.Secrets.texts()}
	p.cmd = exec.Command(c.Command[0], c.Command[1:]...)
	p.cmd.Dir = c.Dir
	p.cmd.Env = append(withoutSecrets(os.Environ()), c.Env...)
	p.cmd.Env = append(p.cmd.Env, "PORT="+strconv.Itoa(p.port), "WHCONFORM_STATE_DIR="+c.State)
	p.cmd.Env = append(p.cmd.Env, c.Secrets.environment()...)
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A child that outlives its parent holds the output pipes; Wait gives up on
	// them after this.
	p.cmd.WaitDelay = stopGrace
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("starting the receiver %q: %w", c.Command[0], err)
	}
	p.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait() // the state is read from cmd.ProcessState
		close(exited)
	}(p.cmd, p.exited)
	return p.awaitPort(ctx)
}

// awaitPort returns when the port takes connections.
func (p *process) awaitPort(ctx context.Context) error {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port))
	dialer := net.Dialer{Timeout: time.Second}
	bound := time.NewTimer(StartTimeout)
	defer bound.Stop()
	again := time.NewTicker(probeEvery)
	defer again.Stop()
	for {
		if conn, err := dialer.DialContext(ctx, "tcp", address); err == nil {
			_ = conn.Close()
			select {
			case <-p.exited: // somebody else listens there
			default:
				return nil
			}
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%w: %q ended (%s) before anything listened on %s; its last output:\n%s", ErrRefusedToStart, p.config.Command[0], p.cmd.ProcessState, address, p.output)
		case <-bound.C:
			_ = p.Close(ctx)
			return fmt.Errorf("starting the receiver: nothing listened on %s within %v (is PORT honoured?); its last output:\n%s", address, StartTimeout, p.output)
		case <-ctx.Done():
			_ = p.Close(context.WithoutCancel(ctx))
			return fmt.Errorf("starting the receiver: %w", context.Cause(ctx))
		case <-again.C:
		}
	}
}

// freePort asks the system for a port that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// withoutSecrets drops what the contract sets, so that a variable of the
// caller's own environment cannot stand in for one that is left out.
func withoutSecrets(env []string) []string {
	var out []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS", "WEBHOOK_PUBLIC_KEY", "PORT", "WHCONFORM_STATE_DIR":
		default:
			out = append(out, e)
		}
	}
	return out
}

// tail keeps the end of a command's output and passes it on, without secrets.
type tail struct {
	log     io.Writer
	secrets []string
	mu      sync.Mutex
	kept    []byte
	line    []byte // the line being written; a secret may come in two pieces
}

// lineKept bounds a line that never ends.
const lineKept = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line = append(t.line, b...)
	for {
		end := strings.IndexByte(string(t.line), '\n')
		if end < 0 && len(t.line) < lineKept {
			return len(b), nil
		}
		if end < 0 {
			end = len(t.line) - 1
		}
		t.flush(t.line[:end+1])
		t.line = append([]byte(nil), t.line[end+1:]...)
	}
}

func (t *tail) flush(line []byte) {
	clean := []byte(Redact(string(line), t.secrets))
	t.kept = append(t.kept, clean...)
	if over := len(t.kept) - outputKept; over > 0 {
		t.kept = append([]byte(nil), t.kept[over:]...)
	}
	if t.log != nil {
		_, _ = t.log.Write(clean)
	}
}

// String is the end of the output, indented.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.kept) + Redact(string(t.line), t.secrets))
	if text == "" {
		return "    (it printed nothing)"
	}
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}

// Redact replaces every secret in text, whole or without its prefix
// ("whsec_"), by a mark.
func Redact(text string, secrets []string) string {
	for _, s := range secrets {
		_, bare, prefixed := strings.Cut(s, "_")
		for _, form := range []string{s, bare} {
			if len(form) >= 6 && (form == s || prefixed) {
				text = strings.ReplaceAll(text, form, "[secret]")
			}
		}
	}
	return text
}
