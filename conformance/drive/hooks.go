package drive

import (
	"context"
	"time"

	"github.com/whconform/whconform/fakeprovider"
)

// Hooks is what only the receiver itself can do for a test.
type Hooks interface {
	// FailOnce makes the first processing of an event that has not been sent yet
	// fail. ErrNotOffered unless Has(Fail).
	FailOnce(ctx context.Context, id string) error
	// State is the present state of the record that an event speaks of, in the
	// receiver's own word; "" for a record that it does not know. Reference is
	// the record's name in the payload, "" where the suite does not know it.
	// ErrNotOffered unless Has(ObserveState).
	State(ctx context.Context, id, reference string) (string, error)
	// AdvanceClock moves the receiver's clock forward; from there it runs on.
	// ErrNotOffered unless Has(Clock).
	AdvanceClock(ctx context.Context, to time.Time) error
}

// Bare offers none of what a receiver may offer beside its target. Embed it in
// a [Receiver] that is to offer some of it.
type Bare struct{}

// Restart implements [Subject].
func (Bare) Restart(context.Context, bool) error { return ErrNotOffered }

// Processed implements [Observer].
func (Bare) Processed(context.Context, string) (Count, error) { return Count{}, ErrNotOffered }

// FailOnce implements [Hooks].
func (Bare) FailOnce(context.Context, string) error { return ErrNotOffered }

// State implements [Hooks].
func (Bare) State(context.Context, string, string) (string, error) { return "", ErrNotOffered }

// AdvanceClock implements [Hooks].
func (Bare) AdvanceClock(context.Context, time.Time) error { return ErrNotOffered }

// Second implements [Receiver].
func (Bare) Second(context.Context) (fakeprovider.Target, error) {
	return fakeprovider.Target{}, ErrNotOffered
}

// Provider implements [Receiver].
func (Bare) Provider() *fakeprovider.API { return nil }

// Variant implements [Receiver].
func (Bare) Variant(context.Context, Secrets) (Receiver, error) { return nil, ErrNotOffered }
