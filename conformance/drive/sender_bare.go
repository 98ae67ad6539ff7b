package drive

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// bareSender is the part that the senders without an adapter share: they can be
// given an address and asked to send, and nothing else.
type bareSender struct {
	about  About
	secret func(endpoint int) (string, error)

	mu        sync.Mutex
	endpoints []bareEndpoint
}

type bareEndpoint struct {
	Endpoint
	spec EndpointSpec
}

// Has implements [Subject]: none of it.
func (*bareSender) Has(string) bool { return false }

// Restart implements [Subject].
func (*bareSender) Restart(context.Context, bool) error { return ErrNotOffered }

// Close implements [Subject]: nothing was started.
func (*bareSender) Close(context.Context) error { return nil }

// About implements [Sender].
func (b *bareSender) About() About { return b.about }

// add notes an endpoint, with an id of its own making.
func (b *bareSender) add(spec EndpointSpec, secret string) Endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := Endpoint{ID: fmt.Sprintf("endpoint-%d", len(b.endpoints)+1), Secret: secret}
	b.endpoints = append(b.endpoints, bareEndpoint{e, spec})
	return e
}

// next is the number of the next endpoint, from 1.
func (b *bareSender) next() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.endpoints) + 1
}

// targets are the endpoints that an event is for: those it names, or else those
// that get its type.
func (b *bareSender) targets(e Event) []bareEndpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []bareEndpoint
	for _, of := range b.endpoints {
		typed := len(of.spec.EventTypes) == 0 || slices.Contains(of.spec.EventTypes, e.Type)
		if named := slices.Contains(e.EndpointIDs, of.ID); named || len(e.EndpointIDs) == 0 && typed {
			out = append(out, of)
		}
	}
	return out
}

func (*bareSender) EndpointStatus(context.Context, string) (EndpointStatus, error) {
	return EndpointStatus{}, ErrNotOffered
}
func (*bareSender) EnableEndpoint(context.Context, string) error  { return ErrNotOffered }
func (*bareSender) DisableEndpoint(context.Context, string) error { return ErrNotOffered }
func (*bareSender) DeleteEndpoint(context.Context, string) error  { return ErrNotOffered }
func (*bareSender) RotateSecret(context.Context, string) (string, error) {
	return "", ErrNotOffered
}
func (*bareSender) Mutate(context.Context, string) error                  { return ErrNotOffered }
func (*bareSender) Resend(context.Context, string) error                  { return ErrNotOffered }
func (*bareSender) ResendFailed(context.Context, string, time.Time) error { return ErrNotOffered }
func (*bareSender) Attempts(context.Context, string) ([]LoggedAttempt, error) {
	return nil, ErrNotOffered
}
func (*bareSender) Messages(context.Context, MessageFilter) ([]Message, error) {
	return nil, ErrNotOffered
}
func (*bareSender) Notifications(context.Context, string) ([]Notification, error) {
	return nil, ErrNotOffered
}
func (*bareSender) Advance(context.Context, time.Time) (ClockState, error) {
	return ClockState{}, ErrNotOffered
}
func (*bareSender) Another(context.Context, time.Time, bool) (Sender, error) {
	return nil, ErrNotOffered
}
