package drive

import (
	"context"
	"fmt"
	"time"
)

// awaitEvery is how often a real timeline asks whether something has happened.
// Far below the seconds of the shortest schedules.
const awaitEvery = 5 * time.Millisecond

// NewRealTimeline is a timeline on the real clock, for a sender whose clock
// cannot be moved but which has a schedule short enough to wait for. Nobody
// needs to own it: Run only waits.
func NewRealTimeline() Timeline { return real{} }

type real struct{}

func (real) Now() time.Time                                  { return time.Now() }
func (real) Join()                                           {}
func (real) Leave()                                          {}
func (real) Stuck(int)                                       {}
func (real) Window(time.Time) time.Duration                  { return 0 }
func (real) Run(ctx context.Context) error                   { <-ctx.Done(); return nil }
func (r real) Until(ctx context.Context, at time.Time) error { return r.Await(ctx, at, nil) }

func (real) Await(ctx context.Context, until time.Time, happened func() bool) error {
	bound := time.NewTimer(time.Until(until))
	defer bound.Stop()
	var again <-chan time.Time
	if happened != nil {
		ticker := time.NewTicker(awaitEvery)
		defer ticker.Stop()
		again = ticker.C
	}
	for {
		if happened != nil && happened() {
			return nil
		}
		select {
		case <-again:
		case <-bound.C:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", instant(until), context.Cause(ctx))
		}
	}
}
