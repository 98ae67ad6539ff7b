package drive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/fakeendpoint"
)

// Timeline is the one clock of a run against a sender. Scenarios run side by
// side on it, so none of them moves it: they say until when they wait. Make one
// with [NewTimeline], where the sender's clock can be moved, or
// [NewRealTimeline]. It is safe for concurrent use.
type Timeline interface {
	// Now is the present time.
	Now() time.Time
	// Join begins a scenario: from here on time stands still except while every
	// scenario waits. Each Join is followed by a Leave. Whoever starts several
	// scenarios joins before the first and leaves behind the last, or time would
	// pass for the early ones.
	Join()
	// Leave ends a scenario.
	Leave()
	// Until waits until an instant, and until all that is due by then has come
	// to rest. For one that has passed it waits for rest alone. The caller has
	// joined.
	Until(context.Context, time.Time) error
	// Await waits until something has happened or an instant has come, whichever
	// is first. On a virtual clock happened is asked at rest only, so that a run
	// repeats; it is asked often and must not wait.
	Await(ctx context.Context, until time.Time, happened func() bool) error
	// Stuck says that n attempts more may hang where the fake endpoint cannot see
	// them, in connecting; n below zero takes that back. Without it the timeline
	// waits for them to arrive.
	Stuck(n int)
	// Window is how far the clock was moved at once to reach an instant at which
	// something was seen: it was due no earlier than so long before. Zero where
	// the sender tells when it is due.
	Window(time.Time) time.Duration
	// Run owns the clock until ctx is done, which is no error, or until the
	// sender fails. All who wait then get the error.
	Run(context.Context) error
}

// ErrStalled means that a sender did not come to rest: attempts neither arrived
// nor ended, or never ceased.
var ErrStalled = errors.New("the sender did not come to rest")

// errOver is what waits get when nobody owns the timeline any more.
var errOver = errors.New("the timeline has ended")

// Bounds of the barrier, all in real time.
const (
	// stallTime is how long nothing may change before the sender counts as
	// stalled. One that reads a gigabyte shows nothing for some seconds, and
	// several of them on a busy machine for most of this.
	stallTime = time.Minute
	// restTime bounds the whole wait for rest, with changes: a sender that
	// hammers on without an end never rests.
	restTime = 3 * time.Minute
)

// TimelineConfig is what a virtual timeline is made from.
type TimelineConfig struct {
	Sender Sender               // required; Has(Clock)
	Server *fakeendpoint.Server // required: where the sender's endpoints are
	// Clock is the server's and the scenarios' clock, and stands where the
	// sender's does. Required. Only the timeline moves it.
	Clock *clock.Mock
	// Stall and Rest bound the wait for the sender to come to rest: without any
	// change, and in all. Real time; 0: one minute and three.
	Stall, Rest time.Duration
}

// NewTimeline is a timeline on a virtual clock. Run owns it.
//
// It moves the clock when every scenario waits and the sender is at rest: when
// no attempt is under way but those that the fake endpoint holds on purpose. It
// then goes to the earliest instant that anybody waits for: a scenario, the
// sender, the fake endpoint's scripts. So days pass in a second and everything
// is seen at its exact time, however slow the machine.
//
// Whoever restarts the sender is a scenario that does not wait, so the timeline
// leaves the sender alone meanwhile; it goes on with the one that was restarted.
func NewTimeline(c TimelineConfig) (Timeline, error) {
	if c.Sender == nil || c.Server == nil || c.Clock == nil {
		return nil, errors.New("making a timeline: a sender, a server and a clock are required")
	}
	if !c.Sender.Has(Clock) {
		return nil, fmt.Errorf("making a timeline for a sender whose clock cannot be moved: %w", ErrNotOffered)
	}
	if c.Stall <= 0 {
		c.Stall = stallTime
	}
	if c.Rest <= 0 {
		c.Rest = restTime
	}
	t := &virtual{config: c, waits: map[*wait]struct{}{}, over: make(chan struct{}), moved: make(chan struct{})}
	close(t.moved)
	t.still = sync.NewCond(&t.mu)
	return t, nil
}

// virtual is a timeline on a virtual clock.
type virtual struct {
	config TimelineConfig
	over   chan struct{} // closed when the owner is gone
	hasty  bool          // for tests: the clock moves without waiting for rest
	moved  chan struct{} // the owner's: closed when the clock's last move is over

	mu      sync.Mutex // guards what follows
	still   *sync.Cond // moving has become false
	live    int        // scenarios
	waits   map[*wait]struct{}
	count   int           // of waits so far, for their order
	stuck   int           // attempts that may hang in connecting
	moving  bool          // the clock is being moved
	changed chan struct{} // nil until the owner waits for a change
	err     error         // why the owner is gone
	jumps   jumps
}

// wait is a scenario that waits.
type wait struct {
	order    int
	at       time.Time
	happened func() bool   // nil: nothing but the time counts
	ready    chan struct{} // closed when it is over
}

func (t *virtual) Now() time.Time { return t.config.Clock.Now() }

func (t *virtual) Join() {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Who joins while the clock moves would see two times.
	for t.moving {
		t.still.Wait()
	}
	t.live++
	t.tell()
}

func (t *virtual) Leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live--
	t.tell()
}

func (t *virtual) Stuck(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stuck += n
	t.tell()
}

func (t *virtual) Until(ctx context.Context, at time.Time) error {
	return t.wait(ctx, &wait{at: at})
}

func (t *virtual) Await(ctx context.Context, until time.Time, happened func() bool) error {
	return t.wait(ctx, &wait{at: until, happened: happened})
}

func (t *virtual) wait(ctx context.Context, w *wait) error {
	w.ready = make(chan struct{})
	t.mu.Lock()
	t.count++
	w.order = t.count
	t.waits[w] = struct{}{}
	t.tell()
	t.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	case <-t.over:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.moving {
		t.still.Wait()
	}
	delete(t.waits, w)
	t.tell()
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for %s on the sender's clock: %w", instant(w.at), context.Cause(ctx))
	}
	return fmt.Errorf("waiting for %s on the sender's clock: %w", instant(w.at), t.err)
}

func (t *virtual) Window(at time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.jumps.window(at)
}

// tell wakes the owner. t.mu is held.
func (t *virtual) tell() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// change is closed at the next change of who lives and who waits. t.mu is held.
func (t *virtual) change() <-chan struct{} {
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.changed
}

// end lets everybody go.
func (t *virtual) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return
	}
	if t.err = err; err == nil {
		t.err = errOver
	}
	close(t.over)
}

// instant shows a time as reports do.
func instant(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
