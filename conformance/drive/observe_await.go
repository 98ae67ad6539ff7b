package drive

import (
	"context"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"
)

// Bounds of waiting for an effect. The suite cannot be told when a receiver has
// processed an event, so it asks.
const (
	// AwaitBound is how long an acknowledged event may take to be processed
	// before it counts as lost. Workers that poll do so every second or every
	// ten; a slower one is late for whoever waits for a payment, too.
	AwaitBound = 15 * time.Second
	// SettleTime is how long a count has to stay after it was reached. A second
	// effect of a copy comes right behind the first, or with the next round of a
	// worker that polls every second.
	SettleTime = 1200 * time.Millisecond
	// askFirst and askLast are the gaps between two questions: the first ones
	// small, so that a quick receiver costs no time, the last ones large, so
	// that a slow one is not kept busy with answering.
	askFirst = 10 * time.Millisecond
	askLast  = 500 * time.Millisecond
)

// AwaitProcessed asks until the event was processed want times or more, or the
// bound is over, and returns the last count: one that is too low is evidence,
// not an error. The error is the observer's or the context's; an observer that
// cannot be reached, or hangs, is asked again within the bound, since the
// receiver it belongs to may be starting. Clk is the clock that the receiver
// lives by: the real one for a process.
func AwaitProcessed(ctx context.Context, clk clock.Clock, o Observer, id string, want int, bound time.Duration) (Count, error) {
	return AwaitCount(ctx, clk, o, id, bound, func(c Count) bool { return c.N >= want })
}

// AwaitCount is AwaitProcessed for another condition, e.g. processed or failed.
func AwaitCount(ctx context.Context, clk clock.Clock, o Observer, id string, bound time.Duration, enough func(Count) bool) (Count, error) {
	w := watch{clock: clk, observer: o, id: id}
	return w.until(ctx, clk.Now().Add(bound), true, enough)
}

// Settled asks for as long as hold and returns the last count. It returns at
// once when the event was processed more than want times: that will not change
// for the better. An error as of AwaitProcessed.
func Settled(ctx context.Context, clk clock.Clock, o Observer, id string, want int, hold time.Duration) (Count, error) {
	w := watch{clock: clk, observer: o, id: id}
	return w.until(ctx, clk.Now().Add(hold), false, func(c Count) bool { return c.N > want })
}

// CheckObserver asks for an event that was never sent. An observer that tells of
// it all the same does not look at the id, and would make every count worthless.
func CheckObserver(ctx context.Context, o Observer, unsent string) error {
	c, err := o.Processed(ctx, unsent)
	if err != nil {
		return err
	}
	if c.N > 0 || c.Failed {
		return &ObserverError{Fault: ObserverLies, Observer: nameOf(o), ID: unsent, Got: fmt.Sprintf("it tells %s of an event that was never sent", c), Expected: "0; does it look at the id?"}
	}
	return nil
}

// watch asks an observer about one event, again and again.
type watch struct {
	clock    clock.Clock
	observer Observer
	id       string
	last     Count
}

// until asks until end or until is true. The last question is asked at the end,
// so that what happened just before is seen.
func (w *watch) until(ctx context.Context, end time.Time, patient bool, is func(Count) bool) (Count, error) {
	for gap := askFirst; ; gap = min(2*gap, askLast) {
		count, err := w.observer.Processed(ctx, w.id)
		over := !w.clock.Now().Before(end)
		switch {
		case err != nil && (over || !passing(err) || ctx.Err() != nil):
			return w.last, err
		case err != nil && !patient:
			return w.last, err
		case err != nil: // asked again
		case count.N < w.last.N:
			return w.last, &ObserverError{Fault: ObserverLies, Observer: nameOf(w.observer), ID: w.id, Got: fmt.Sprintf("it told %s after %s", count, w.last), Expected: "a count that does not go down while the receiver runs"}
		default:
			w.last = count
			if is(count) || over {
				return count, nil
			}
		}
		if err := w.pause(ctx, min(gap, end.Sub(w.clock.Now()))); err != nil {
			return w.last, err
		}
	}
}

// pause waits on the injected clock.
func (w *watch) pause(ctx context.Context, d time.Duration) error {
	timer := w.clock.Timer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the event %s to be processed: %w", w.id, context.Cause(ctx))
	}
}

// String is the count in words.
func (c Count) String() string {
	text := fmt.Sprintf("processed %d times", c.N)
	if c.N == 1 {
		text = "processed once"
	}
	if c.Failed {
		text += " and failed"
	}
	return text
}

// nameOf is how errors call an observer.
func nameOf(o Observer) string {
	switch o := o.(type) {
	case *observed:
		return nameOf(o.observer)
	case *urlObserver:
		return o.name
	case *execObserver:
		return o.name
	case *LogTap:
		return o.name
	case interface{ Unwrap() Receiver }:
		return nameOf(o.Unwrap())
	case *hooked:
		if o.declared(Observe) {
			return "of the adapter"
		}
		return nameOf(o.Receiver)
	case controlObserver:
		return "of the adapter"
	}
	return "of the receiver" // its user put something of his own around it
}
