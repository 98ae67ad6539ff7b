package drive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// execAnswerMax bounds what an observing command prints, in bytes: a number
	// and whatever a shell adds.
	execAnswerMax = 64 << 10
	// execGrace is how long the pipes of a command that was killed are waited
	// for: a child of its own may hold them.
	execGrace = time.Second
)

// ObserveExecConfig describes an observer that is a command.
type ObserveExecConfig struct {
	ObserveOptions
	// Command is program and arguments, no shell. {id} in an argument is the
	// event's id; without any, the id becomes the last argument.
	Command []string
	Dir     string   // working directory; "" for this one
	Env     []string // its environment; nil for this process's own
}

// ObserveExec runs a command that prints the count: a number, {"processed": n,
// "failed": bool}, or "failed". An exit code other than 0 means that it cannot
// tell. It runs in a process group of its own, which is killed when its time is
// over.
func ObserveExec(c ObserveExecConfig) (Observer, error) {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return nil, errors.New("--observe-exec: no command")
	}
	c.Command = slices.Clone(c.Command)
	if !slices.ContainsFunc(c.Command[1:], func(arg string) bool { return strings.Contains(arg, idSlot) }) {
		c.Command = append(c.Command, idSlot)
	}
	return &execObserver{c, "--observe-exec " + c.clean(strings.Join(c.Command, " "))}, nil
}

type execObserver struct {
	config ObserveExecConfig
	name   string
}

func (o *execObserver) Processed(ctx context.Context, id string) (Count, error) {
	asking, cancel := context.WithTimeout(ctx, o.config.timeout())
	defer cancel()
	printed, said := &bounded{max: execAnswerMax, over: cancel}, &bounded{max: execAnswerMax}
	err := o.run(asking, id, printed, said)
	var exit *exec.ExitError
	switch {
	case printed.full():
		return Count{}, o.fault(ObserverNonsense, id, fmt.Sprintf("it printed more than %d bytes", execAnswerMax), said, nil)
	case err != nil && ctx.Err() != nil:
		return Count{}, fmt.Errorf("asking the observer %s: %w", o.name, context.Cause(ctx))
	case err != nil && asking.Err() != nil:
		return Count{}, o.fault(ObserverHangs, id, fmt.Sprintf("it did not end within %v", o.config.timeout()), said, err)
	case errors.Is(err, exec.ErrWaitDelay):
		return Count{}, o.fault(ObserverUnfit, id, "it left a process behind that holds its output", said, err)
	case errors.As(err, &exit):
		return Count{}, o.fault(ObserverRefuses, id, "it ended with "+exit.String(), said, err)
	case err != nil:
		return Count{}, o.fault(ObserverUnfit, id, o.config.clean(err.Error()), said, err)
	}
	count, err := parseCount(printed.bytes())
	if err != nil {
		return Count{}, o.fault(ObserverNonsense, id, fmt.Sprintf("it printed %s: %v", o.config.quote(printed.bytes()), err), said, err)
	}
	return count, nil
}

// run runs the command once. What it leaves behind is killed.
func (o *execObserver) run(ctx context.Context, id string, printed, said *bounded) error {
	args := make([]string, 0, len(o.config.Command))
	for _, arg := range o.config.Command[1:] {
		args = append(args, strings.ReplaceAll(arg, idSlot, id))
	}
	cmd := exec.CommandContext(ctx, o.config.Command[0], args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = o.config.Dir, o.config.Env, printed, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = kill, execGrace
	if err := cmd.Start(); err != nil {
		return err
	}
	err := cmd.Wait()
	_ = kill() // a group that is gone is no error
	return err
}

func (o *execObserver) fault(f ObserverFault, id, got string, said *bounded, err error) error {
	if words := bytes.TrimSpace(said.bytes()); len(words) > 0 {
		got += "; on stderr it said " + o.config.quote(words)
	}
	return &ObserverError{Fault: f, Observer: o.name, ID: id, Got: got, Expected: "exit code 0 and " + expectedCount, Err: err}
}

// bounded keeps the beginning of what is written to it. Only the goroutine that
// copies a command's output writes, and Run waits for it.
type bounded struct {
	max  int
	over func() // called when there is more; may be nil
	kept bytes.Buffer
	more bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.max - b.kept.Len()
	if len(p) > room {
		b.more = true
		if b.over != nil {
			b.over()
		}
	}
	b.kept.Write(p[:min(len(p), room)])
	return len(p), nil
}

func (b *bounded) full() bool    { return b.more }
func (b *bounded) bytes() []byte { return b.kept.Bytes() }
