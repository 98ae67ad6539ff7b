package receiver

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// maxAhead is how far a clock can be moved ahead of the one below it, ten years:
// the longest that ids are remembered by any provider is some weeks, and times
// far beyond do not fit where they are stored.
const maxAhead = 10 * 365 * 24 * time.Hour

// MovableClock is a clock that a test can move ahead: tolerance, retries and the
// retention of ids follow. It runs on from where it was moved to, at the pace of
// the clock below it.
//
// Timers run for as long as they were set for, however the clock is moved
// meanwhile. Who moves it sees to what has become due: see [Methods].
type MovableClock struct {
	clock.Clock // timers, and the pace

	mu    sync.Mutex
	ahead time.Duration
}

// NewMovableClock is a clock that shows the time of c until it is moved.
func NewMovableClock(c clock.Clock) *MovableClock { return &MovableClock{Clock: c} }

// Now is the time.
func (c *MovableClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Clock.Now().Add(c.ahead)
}

// Since is the time passed since t.
func (c *MovableClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Until is the time left until t.
func (c *MovableClock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// Advance moves the clock to a time and returns what it shows then. To go back
// is an error: ids would be remembered for longer than they were, and whatever
// was measured would be wrong.
func (c *MovableClock) Advance(to time.Time) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	below := c.Clock.Now()
	now := below.Add(c.ahead)
	switch ahead := to.Sub(below); {
	case to.IsZero():
		return now, errors.New("moving the clock: no time to move it to")
	case to.Before(now):
		return now, fmt.Errorf("moving the clock: it shows %s, and does not go back to %s", now.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	case ahead > maxAhead:
		return now, fmt.Errorf("moving the clock: %s is further ahead than %d years", to.UTC().Format(time.RFC3339), maxAhead/(365*24*time.Hour))
	default:
		c.ahead = ahead
	}
	return to, nil
}
