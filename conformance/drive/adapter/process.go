package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	// exitGrace is how long an adapter may take to end by itself once its stdin
	// has ended. Long enough to close a database.
	exitGrace = 2 * time.Second
	// obituaryWait is how long its exit code is waited for once its output has
	// ended. Both come at once unless a child has kept running.
	obituaryWait = time.Second
)

// Command describes an adapter that is started as a process.
type Command struct {
	Args []string  // program and arguments, no shell
	Dir  string    // working directory; "" for this one
	Env  []string  // its environment; nil for this process's own
	Log  io.Writer // gets its stderr, without secrets, as it comes; may be nil
}

// Process is an adapter that runs as a process, in a process group of its own.
type Process struct {
	*Client
	cmd    *exec.Cmd
	stderr *output
	input  io.Closer
	exited chan struct{} // closed when Wait has returned
	ending sync.Once
	killed bool // by Close, as it did not end by itself; set before ending is done
}

// Start starts an adapter and connects to its standard streams. It does not wait
// for a word of it: [Open] does. The caller closes it.
func Start(c Command, o Options) (*Process, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("starting an adapter: no command")
	}
	p := &Process{exited: make(chan struct{})}
	p.stderr = &output{to: c.Log, redact: newRedactor(o.Redact)}
	p.cmd = exec.Command(c.Args[0], c.Args[1:]...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = c.Dir, c.Env, p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A child that outlives its parent holds stderr; Wait gives up on it then.
	p.cmd.WaitDelay = exitGrace
	conn, err := p.start()
	if err != nil {
		return nil, fmt.Errorf("starting the adapter %q: %w", c.Args[0], err)
	}
	p.input = conn.WriteCloser
	go func() {
		_ = p.cmd.Wait() // the state is read from cmd.ProcessState
		p.stderr.end()
		close(p.exited)
	}()
	o.Obituary = p.obituary
	p.Client = NewClient(conn, o)
	return p, nil
}

// start makes the pipes and starts the command with the adapter's ends of them.
// exec's own pipes would be closed by Wait, with the last answers unread.
func (p *Process) start() (streams, error) {
	stdin, toStdin, err := os.Pipe()
	if err != nil {
		return streams{}, err
	}
	fromStdout, stdout, err := os.Pipe()
	if err != nil {
		return streams{}, errors.Join(err, stdin.Close(), toStdin.Close())
	}
	p.cmd.Stdin, p.cmd.Stdout = stdin, stdout
	err = p.cmd.Start()
	_, _ = stdin.Close(), stdout.Close() // the adapter has its own
	if err != nil {
		return streams{}, errors.Join(err, toStdin.Close(), fromStdout.Close())
	}
	return streams{fromStdout, toStdin}, nil
}

// streams is a connection of two pipes.
type streams struct {
	io.ReadCloser
	io.WriteCloser
}

// Streams joins the output and the input of a peer into a connection for
// [NewClient]. Its Close closes both.
func Streams(output io.ReadCloser, input io.WriteCloser) io.ReadWriteCloser {
	return streams{output, input}
}

// Close closes both ends; one that is closed already is no error.
func (s streams) Close() error {
	err := s.WriteCloser.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return errors.Join(err, s.ReadCloser.Close())
}

// obituary says how the process ended, with its last words.
func (p *Process) obituary() string {
	bound := time.NewTimer(obituaryWait)
	defer bound.Stop()
	select {
	case <-p.exited:
		return fmt.Sprintf("  it ended with %s; its last words on stderr:\n%s", p.cmd.ProcessState, p.stderr)
	case <-bound.C:
		return fmt.Sprintf("  it still runs; its last words on stderr:\n%s", p.stderr)
	}
}

// Kill ends the process and its whole group with SIGKILL, as a crash would, and
// waits for it. Close is still to be called.
func (p *Process) Kill() {
	// A group that is gone is no error.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.exited
}

// Close ends the adapter: its stdin ends, after two seconds it is killed with
// all that it started. One that broke the protocol is killed at once.
func (p *Process) Close(ctx context.Context) error {
	p.ending.Do(func() { p.end(ctx) })
	return p.Client.Close(ctx)
}

// Killed tells, after Close, whether the adapter had to be killed because it did
// not end with its stdin.
func (p *Process) Killed() bool { return p.killed }

// Clean tells, after Close, whether the adapter ended with exit code 0.
func (p *Process) Clean() bool { return p.cmd.ProcessState.Success() }

// State tells, after Close, how the adapter ended, in words.
func (p *Process) State() string { return p.cmd.ProcessState.String() }

func (p *Process) end(ctx context.Context) {
	_ = p.input.Close()
	if p.Fault() == nil {
		grace := time.NewTimer(exitGrace)
		defer grace.Stop()
		select {
		case <-p.exited:
		case <-grace.C:
			p.killed = true
		case <-ctx.Done():
		}
	}
	p.Kill() // also what a process that has ended left behind
}
