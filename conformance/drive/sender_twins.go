package drive

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Twins is two processes of one sender, on one state, as one sender: events go
// to both in turn, and both clocks are moved together. What else is asked goes
// to the first. Closing it closes both.
func Twins(first, second Sender) Sender { return &twins{Sender: first, second: second} }

type twins struct {
	Sender
	second Sender
	turn   atomic.Int64
}

func (t *twins) Publish(ctx context.Context, e Event) ([]string, error) {
	if t.turn.Add(1)%2 == 0 {
		return t.second.Publish(ctx, e)
	}
	return t.Sender.Publish(ctx, e)
}

// Advance moves both at a time, or the first would always have all that is due.
func (t *twins) Advance(ctx context.Context, to time.Time) (ClockState, error) {
	var states [2]ClockState
	var errs [2]error
	var both sync.WaitGroup
	for i, s := range []Sender{t.Sender, t.second} {
		both.Go(func() { states[i], errs[i] = s.Advance(ctx, to) })
	}
	both.Wait()
	a, b := states[0], states[1]
	if err := errors.Join(errs[:]...); err != nil {
		return a, err
	}
	a.InFlight += b.InFlight
	a.Told = a.Told && b.Told
	if a.Next.IsZero() || !b.Next.IsZero() && b.Next.Before(a.Next) {
		a.Next = b.Next
	}
	if b.Now.Before(a.Now) {
		a.Now = b.Now
	}
	return a, nil
}

// Restart restarts both.
func (t *twins) Restart(ctx context.Context, kill bool) error {
	return errors.Join(t.Sender.Restart(ctx, kill), t.second.Restart(ctx, kill))
}

func (t *twins) Close(ctx context.Context) error {
	return errors.Join(t.second.Close(ctx), t.Sender.Close(ctx))
}
