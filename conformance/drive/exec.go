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
	"syscall"
	"time"

	"github.com/whconform/whconform/fakeprovider"
)

// Bounds of a managed process.
const (
	// StartTimeout is how long a command may take until its port answers: a
	// JVM with a framework needs ten seconds on a busy machine.
	StartTimeout = 60 * time.Second
	// variantStart is how long a second receiver may take at least.
	variantStart = 10 * time.Second
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
	// StartTimeout bounds each start, until the port answers; 0: [StartTimeout].
	StartTimeout time.Duration
	// Stdio says that the command speaks the adapter protocol on its standard
	// input and output, and logs to stderr alone; see [HooksOnStdio].
	Stdio bool
	// Instances says that the command may be started a second time on the same
	// state.
	Instances bool
	// Provider is the provider's own API, which the command is told of in
	// WHCONFORM_PROVIDER_URL; nil where it asks none.
	Provider *fakeprovider.APIServer
}

// Exec starts a command as a receiver and waits until its port answers. The
// command is told PORT, WEBHOOK_SECRET, WEBHOOK_SECRET_PREVIOUS,
// WEBHOOK_PUBLIC_KEY, WHCONFORM_STATE_DIR and, with a Provider,
// WHCONFORM_PROVIDER_URL, and listens on 127.0.0.1:$PORT. It runs in a process
// group of its own, which Close ends as a whole.
func Exec(ctx context.Context, c ExecConfig) (Receiver, error) {
	if len(c.Command) == 0 {
		return nil, errors.New("starting a receiver: no command")
	}
	if c.Target.URL == "" {
		c.Target.URL = "http://127.0.0.1:{port}/"
	}
	if c.StartTimeout <= 0 {
		c.StartTimeout = StartTimeout
	}
	m := &managed{config: c, first: &process{config: c}}
	if err := m.first.start(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// process is one process of the command, which may be started again.
type process struct {
	config ExecConfig
	port   int
	took   time.Duration // the last start
	cmd    *exec.Cmd
	output *tail
	stdio  *stdio        // nil unless config.Stdio
	exited chan struct{} // closed when it has ended, and all it printed is read
}

func (p *process) target() fakeprovider.Target {
	to := p.config.Target
	to.URL = strings.ReplaceAll(to.URL, "{port}", strconv.Itoa(p.port))
	return to
}

// kill ends the process as a crash would, and waits for it.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// stop ends the process gently, and for certain.
func (p *process) stop(ctx context.Context) {
	p.signal(syscall.SIGTERM)
	p.stdio.endInput() // the protocol's own word for it
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-p.exited:
	case <-grace.C:
	case <-ctx.Done():
	}
	// The group, also when its leader has ended: it may have left children.
	p.kill()
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
	} else if err := awaitFree(ctx, p.port); err != nil {
		// Whoever took it since the last start would be judged in the
		// command's place.
		return fmt.Errorf("starting the receiver %q again on port %d: %w", p.config.Command[0], p.port, err)
	}
	began := time.Now()
	defer func() { p.took = time.Since(began) }()
	if err := p.run(); err != nil {
		return fmt.Errorf("starting the receiver %q: %w", p.config.Command[0], err)
	}
	return p.awaitPort(ctx)
}

// run starts the command; what it prints and how it ends is seen to from here on.
func (p *process) run() error {
	output := &tail{log: p.config.Log, secrets: p.config.Secrets.texts()}
	cmd := p.command(output)
	ended, exited := make(chan struct{}), make(chan struct{})
	var wires *stdio
	var err error
	if p.config.Stdio {
		wires, err = startOnStdio(cmd, output, ended)
	} else {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	p.cmd, p.output, p.stdio, p.exited = cmd, output, wires, exited
	go func() {
		_ = cmd.Wait() // the state is read from cmd.ProcessState
		close(ended)
		wires.end()
		output.end()
		close(exited)
	}()
	return nil
}

// command is the command, ready to start.
func (p *process) command(output io.Writer) *exec.Cmd {
	c := p.config
	cmd := exec.Command(c.Command[0], c.Command[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append(withoutSecrets(os.Environ()), c.Env...)
	cmd.Env = append(cmd.Env, "PORT="+strconv.Itoa(p.port), "WHCONFORM_STATE_DIR="+c.State)
	cmd.Env = append(cmd.Env, c.Secrets.environment()...)
	if c.Provider != nil {
		cmd.Env = append(cmd.Env, "WHCONFORM_PROVIDER_URL="+c.Provider.URL())
	}
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A child that outlives its parent holds the output pipes; Wait gives up on
	// them after this.
	cmd.WaitDelay = stopGrace
	return cmd
}

// awaitPort returns when the port takes connections.
func (p *process) awaitPort(ctx context.Context) error {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port))
	dialer := net.Dialer{Timeout: time.Second}
	bound := time.NewTimer(p.config.StartTimeout)
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
			p.stop(ctx)
			return fmt.Errorf("starting the receiver: %w, %s, within %v (is PORT honoured?); its last output:\n%s", ErrNeverListened, address, p.config.StartTimeout, p.output)
		case <-ctx.Done():
			p.stop(context.WithoutCancel(ctx))
			return fmt.Errorf("starting the receiver: %w", context.Cause(ctx))
		case <-again.C:
		}
	}
}

// awaitFree returns when nobody listens on the port. A killed command's
// children take a moment to let go of it; who holds it for longer is another.
func awaitFree(ctx context.Context, port int) error {
	bound := time.NewTimer(stopGrace)
	defer bound.Stop()
	again := time.NewTicker(probeEvery)
	defer again.Stop()
	for {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return l.Close()
		}
		select {
		case <-bound.C:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
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
		case "WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS", "WEBHOOK_PUBLIC_KEY", "PORT", "WHCONFORM_STATE_DIR", "WHCONFORM_PROVIDER_URL":
		default:
			out = append(out, e)
		}
	}
	return out
}
