package sender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/profile"
)

// The codes of a [ControlError].
const (
	CodeInvalidParams = -32602
	CodeCannot        = -32000 // the sender cannot do this: there is no such endpoint, the URL is refused
)

// ControlError is an error with a code of JSON-RPC.
type ControlError struct {
	Code    int
	Message string
}

// Error is the message.
func (e *ControlError) Error() string { return e.Message }

// ControlMethod is one method of the adapter protocol: parameters and result are
// JSON. An error that wraps a *[ControlError] has a code of its own; any other is
// an internal one.
type ControlMethod = func(ctx context.Context, params json.RawMessage) (any, error)

// ControlOptions is what a [Control] is made from.
type ControlOptions struct {
	Name, Version string // of the sender, as it introduces itself; "": "whconform reference sender"

	// Profile takes the place of the one that initialize names.
	Profile *profile.Profile

	// StateDir is where the outbox stands if initialize names no folder. Empty: a
	// temporary one, which is removed in the end.
	StateDir string

	Random io.Reader    // nil: crypto/rand
	Logger *slog.Logger // nil discards

	// Change, where it is not nil, changes the options last before the sender is
	// opened. The self-test makes a wrong sender by it.
	Change func(*Options)

	// Wrap, where it is not nil, puts another method into the place of one of the
	// protocol: what the sender says of itself may be wrong, too.
	Wrap func(method string, right ControlMethod) ControlMethod
}

// Control is a sender behind the methods of the adapter protocol, by which a
// conformance run drives it: it creates endpoints, publishes, looks at what
// became of it, and moves the sender's clock. For tests only.
//
// The sender is opened by initialize, which says what contract it is to keep to
// and whether its clock is virtual. On the real clock it keeps to a schedule of
// seconds, which it declares, so that a run ends within a minute.
type Control struct {
	options ControlOptions

	mu      sync.Mutex // held while the sender is opened or closed
	sender  *Sender
	mock    *clock.Mock // nil on the real clock
	advance sync.Mutex  // one at a time moves the clock
	finish  func() error
}

// NewControl makes a control that waits for initialize.
func NewControl(o ControlOptions) *Control {
	o.Name = firstOf(o.Name, "whconform reference sender")
	return &Control{options: o}
}

// Methods are the methods by name, those that initialize then declares among
// them.
func (c *Control) Methods() map[string]ControlMethod {
	methods := map[string]ControlMethod{
		"initialize": controlMethod(c.initialize),
		"shutdown":   controlMethod(func(context.Context, struct{}) (any, error) { return nil, c.Close() }),
	}
	for name, method := range c.methods() {
		methods[name] = func(ctx context.Context, params json.RawMessage) (any, error) {
			result, err := method(ctx, params)
			return result, coded(err)
		}
	}
	if c.options.Wrap != nil {
		for name, method := range methods {
			methods[name] = c.options.Wrap(name, method)
		}
	}
	return methods
}

func (c *Control) methods() map[string]ControlMethod {
	return map[string]ControlMethod{
		"clock.advance":         controlMethod(c.clockAdvance),
		"endpoint.create":       controlMethod(c.endpointCreate),
		"endpoint.get":          controlMethod(c.endpointGet),
		"endpoint.enable":       controlMethod(c.endpointChange((*Sender).EnableEndpoint)),
		"endpoint.disable":      controlMethod(c.endpointChange((*Sender).DisableEndpoint)),
		"endpoint.delete":       controlMethod(c.endpointChange((*Sender).DeleteEndpoint)),
		"endpoint.rotateSecret": controlMethod(c.endpointRotate),
		"event.publish":         controlMethod(c.eventPublish),
		"event.mutate":          controlMethod(c.eventMutate),
		"message.resend":        controlMethod(c.messageResend),
		"message.attempts":      controlMethod(c.messageAttempts),
		"messages.list":         controlMethod(c.messagesList),
		"notifications.list":    controlMethod(c.notificationsList),
	}
}

// controlMethod makes a method of a function with typed parameters. Members that
// P does not have are passed over, as the protocol demands.
func controlMethod[P, R any](f func(context.Context, P) (R, error)) ControlMethod {
	return func(ctx context.Context, params json.RawMessage) (any, error) {
		var p P
		if len(params) > 0 {
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, &ControlError{CodeInvalidParams, "reading the params: " + err.Error()}
			}
		}
		return f(ctx, p)
	}
}

// coded gives an error that the caller can do something about its code.
func coded(err error) error {
	if err == nil {
		return nil
	}
	_, refused := errors.AsType[*RefusedError](err)
	if refused || errors.Is(err, ErrNotFound) || errors.Is(err, ErrConflict) || errors.Is(err, ErrInvalid) {
		return &ControlError{CodeCannot, err.Error()}
	}
	return err
}

// Sender is the sender that initialize opened; nil before, and after Close.
func (c *Control) Sender() *Sender {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sender
}

// need is Sender, or an error.
func (c *Control) need() (*Sender, error) {
	s := c.Sender()
	if s == nil {
		return nil, &ControlError{CodeCannot, "the sender is not open: initialize comes first"}
	}
	return s, nil
}

// Close ends the sender, as a shutdown would. To close again changes nothing.
func (c *Control) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.close()
}

func (c *Control) close() error {
	if c.sender == nil {
		return nil
	}
	finish := c.finish
	c.sender, c.mock, c.finish = nil, nil, nil
	return finish()
}

// open opens a sender in dir and lets it run.
func (c *Control) open(ctx context.Context, dir string, o Options, mock *clock.Mock) error {
	temporary := ""
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "whconform-sender-"); err != nil {
			return fmt.Errorf("making a folder for the outbox: %w", err)
		}
		temporary = dir
	}
	s, err := Open(ctx, filepath.Join(dir, "sender.db"), o)
	if err == nil {
		err = s.start()
	}
	if err != nil {
		if temporary != "" {
			_ = os.RemoveAll(temporary)
		}
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- s.loop(running) }()
	c.sender, c.mock = s, mock
	c.finish = func() error {
		stop()
		errs := []error{<-ended, s.Close()}
		if closer, ok := o.Transport.(io.Closer); ok {
			errs = append(errs, closer.Close())
		}
		if temporary != "" {
			errs = append(errs, os.RemoveAll(temporary))
		}
		return errors.Join(errs...)
	}
	return nil
}

type advanceParams struct {
	To time.Time `json:"to"`
}

type advanceResult struct {
	Now      time.Time  `json:"now"`
	Next     *time.Time `json:"next,omitempty"`
	InFlight int        `json:"inFlight"`
}

// clockAdvance moves the clock and returns when all that is due by then has
// begun. Advancing to the present time only tells how the sender stands.
func (c *Control) clockAdvance(ctx context.Context, p advanceParams) (*advanceResult, error) {
	s, err := c.need()
	if err != nil {
		return nil, err
	}
	c.advance.Lock()
	defer c.advance.Unlock()
	c.mu.Lock()
	mock := c.mock
	c.mu.Unlock()
	if mock == nil {
		return nil, &ControlError{CodeCannot, "the clock is the real one"}
	}
	switch now := mock.Now(); {
	case p.To.Before(now):
		return nil, &ControlError{CodeCannot, fmt.Sprintf("the clock stands at %s and does not go back to %s", now.Format(time.RFC3339Nano), p.To.Format(time.RFC3339Nano))}
	case p.To.After(now):
		mock.Set(p.To)
	}
	state, err := s.State(ctx)
	if err != nil {
		return nil, err
	}
	result := &advanceResult{Now: state.Now.UTC(), InFlight: state.InFlight}
	if !state.Next.IsZero() {
		next := state.Next.UTC()
		result.Next = &next
	}
	return result, nil
}
