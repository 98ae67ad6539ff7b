package drive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// triggerTimeout is how long a command may take to hand an event over: a
	// console of a framework starts slowly.
	triggerTimeout = 30 * time.Second
	// triggersAtOnce is how many commands run at a time. Each may be an
	// interpreter with a framework.
	triggersAtOnce = 4
	// triggerPrints bounds what is kept of a command's output, in bytes.
	triggerPrints = 16 << 10
	// messageIDMost is the longest text that is taken for a message's id.
	messageIDMost = 256
)

// TriggerConfig describes a sender that a command makes send an event.
type TriggerConfig struct {
	Command []string // program and arguments, no shell
	Dir     string   // working directory; "" for this one
	Env     []string // beside this process's own environment
	// Secret gives the secret of the n-th endpoint, from 1: one for all of them,
	// or one each, as the sender is configured. Required.
	Secret func(n int) (string, error)
	About  About         // what is known of the sender; the name is "trigger" if empty
	Log    io.Writer     // gets the command's stderr, secrets removed; may be nil
	Time   time.Duration // for each run; 0: half a minute
	Redact func(string) string
}

// SenderTrigger runs a command for each event and endpoint. It is told the
// endpoint's URL in WHCONFORM_URL, its secret in WHCONFORM_SECRET, the event's
// type and time (RFC 3339) in WHCONFORM_EVENT_TYPE and WHCONFORM_EVENT_TIME, and
// has the payload's bytes on stdin and in the file WHCONFORM_MESSAGE. It ends with
// 0 once the sender has the event; anything else is an error of publishing. One
// word on stdout is the message's id; without one the id is not known.
//
// It has no clock and no capability: what a plain request shows is judged.
func SenderTrigger(c TriggerConfig) (Sender, error) {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return nil, errors.New("--trigger: no command")
	}
	if c.Secret == nil {
		return nil, errors.New("--trigger: a secret is required, the one that the sender signs with")
	}
	if c.About.Name == "" {
		c.About.Name = "trigger"
	}
	c.About.GivenSecrets = true
	if c.Time <= 0 {
		c.Time = triggerTimeout
	}
	return &triggered{bareSender: bareSender{about: c.About, secret: c.Secret}, config: c, slots: make(chan struct{}, triggersAtOnce)}, nil
}

type triggered struct {
	bareSender
	config TriggerConfig
	slots  chan struct{}
}

// CreateEndpoint implements [Sender]: the command learns of it with the event.
func (t *triggered) CreateEndpoint(_ context.Context, spec EndpointSpec) (Endpoint, error) {
	secret, err := t.secret(t.next())
	if err != nil {
		return Endpoint{}, fmt.Errorf("choosing the secret of %s: %w", spec.URL, err)
	}
	return t.add(spec, secret), nil
}

// Publish implements [Sender].
func (t *triggered) Publish(ctx context.Context, e Event) ([]string, error) {
	if e.Transaction != "" {
		return nil, ErrNotOffered
	}
	payload := e.Raw
	if payload == nil {
		payload = e.Payload
	}
	var ids []string
	for _, to := range t.targets(e) {
		id, err := t.run(ctx, e, to, payload)
		if err != nil {
			return ids, fmt.Errorf("publishing %s by --trigger %s: %w", e.Type, t.config.Command[0], err)
		}
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// run runs the command once and returns the message's id, if it told it.
func (t *triggered) run(ctx context.Context, e Event, to bareEndpoint, payload []byte) (string, error) {
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	folder, err := os.MkdirTemp("", "whconform-event-")
	if err != nil {
		return "", fmt.Errorf("making a file of the payload: %w", err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "payload")
	if err := os.WriteFile(file, payload, 0o600); err != nil {
		return "", fmt.Errorf("making a file of the payload: %w", err)
	}
	running, cancel := context.WithTimeout(ctx, t.config.Time)
	defer cancel()
	printed := &bounded{max: triggerPrints}
	said := &tail{log: t.config.Log, secrets: []string{to.Secret}}
	cmd := exec.CommandContext(running, t.config.Command[0], t.config.Command[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = t.config.Dir, bytes.NewReader(payload), printed, said
	cmd.Env = append(slices.Concat(withoutSecrets(os.Environ()), t.config.Env),
		"WHCONFORM_URL="+to.spec.URL, "WHCONFORM_SECRET="+to.Secret, "WHCONFORM_EVENT_TYPE="+e.Type,
		"WHCONFORM_EVENT_TIME="+instant(e.At), "WHCONFORM_MESSAGE="+file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = execGrace
	err = cmd.Run()
	said.end()
	// What it left behind may be the sender itself, on its way: it is left alone.
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil // a child holds its output, and it ended with 0
	case err != nil && ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil && running.Err() != nil:
		return "", fmt.Errorf("it did not end within %v; its last words on stderr:\n%s", t.config.Time, t.clean(said))
	case errors.As(err, &exit):
		return "", fmt.Errorf("it ended with %s; its last words on stderr:\n%s", exit, t.clean(said))
	case err != nil:
		return "", err
	}
	words := strings.Fields(string(printed.bytes()))
	if len(words) == 1 && !printed.full() && len(words[0]) <= messageIDMost {
		return words[0], nil
	}
	return "", nil
}

func (t *triggered) clean(said *tail) string {
	text := said.String()
	if t.config.Redact != nil {
		text = t.config.Redact(text)
	}
	return text
}
