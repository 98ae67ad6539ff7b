package drive

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"
)

// How the owner of a timeline looks at a sender that is not at rest yet. All in
// real time.
const (
	// lookOn is how long looks follow each other without a pause: an attempt on
	// loopback takes some 200 µs, and the shortest pause of a timer is 1 ms. That
	// a sender has settled an attempt only the sender knows, so it is asked.
	lookOn = 400 * time.Microsecond
	// firstPause is the pause between two looks after that, doubled up to
	// lastPause. What the fake endpoint notices ends it.
	firstPause = 500 * time.Microsecond
	lastPause  = 5 * time.Millisecond
	// leastSure is how long a state has to last in which some attempts are held.
	// One that its sender has just given up still counts as held until its
	// connection ends, in the place of one that is on its way; a sender may say
	// that it is over a moment before it closes the connection.
	leastSure = 200 * time.Microsecond
	// stuckSure is the same where an attempt may hang in connecting: nobody can
	// tell it from one that is about to arrive.
	stuckSure = 25 * time.Millisecond
	// untoldSure is the same where the sender does not tell what is under way.
	untoldSure = 10 * time.Millisecond
)

func (t *virtual) Run(ctx context.Context) error {
	err := t.own(ctx)
	<-t.moved
	if ctx.Err() != nil {
		err = nil
	}
	t.end(err)
	return err
}

func (t *virtual) own(ctx context.Context) error {
	for {
		if err := t.awaitWaits(ctx); err != nil {
			return err
		}
		at, busy, err := t.rest(ctx)
		switch {
		case err != nil:
			return err
		case busy || t.wake():
			continue
		}
		if err := t.move(ctx, at); err != nil {
			return err
		}
	}
}

// awaitWaits returns when there is a scenario and all of them wait.
func (t *virtual) awaitWaits(ctx context.Context) error {
	for {
		t.mu.Lock()
		if t.allWait() {
			t.mu.Unlock()
			return nil
		}
		changed := t.change()
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (t *virtual) allWait() bool { return t.live > 0 && len(t.waits) >= t.live }

// view is what can be seen of a sender at an instant. Two that are equal mean
// that nothing has changed.
type view struct {
	told     bool
	inFlight int
	next     time.Time // of the sender
	held     int       // by the fake endpoint
	due      time.Time // of the fake endpoint
	arrived  int       // requests at all paths
	open     int       // of them, not concluded yet
	unread   int       // of those held, whose peer has just done something
}

// look takes one. It asks the sender between two looks at the fake endpoint;
// steady tells that these were alike.
func (t *virtual) look(ctx context.Context, now time.Time) (v view, steady bool, err error) {
	changed := t.config.Server.HeldChanged()
	v.held, v.due = t.config.Server.Held()
	if !v.due.IsZero() && !v.due.After(now) {
		// What became due at once, with no wait, is begun by a move to where the
		// clock stands.
		select {
		case <-t.moved:
			t.set(now)
		default: // it may be the last move's
		}
	}
	s, err := t.config.Sender.Advance(ctx, now)
	if err != nil {
		return v, false, fmt.Errorf("asking the sender how it stands at %s: %w", instant(now), err)
	}
	v.told, v.inFlight = s.Told, s.InFlight
	if s.Told {
		v.next = s.Next
	}
	for _, p := range t.config.Server.Paths() {
		arrived, concluded := p.Count()
		v.arrived += arrived
		v.open += arrived - concluded
	}
	if v.held > 0 {
		v.unread = t.config.Server.Unread()
	}
	select {
	case <-changed:
		return v, false, nil
	default:
		return v, true, nil
	}
}

// sure is how long a view has to last before the clock may move; negative if it
// shows that something is about to happen. Took is how long the look took: on a
// machine that is slow now, everything is.
func (t *virtual) sure(v view, now time.Time, stuck int, took time.Duration) time.Duration {
	soon := func(at time.Time) bool { return !at.IsZero() && !at.After(now) }
	out := v.inFlight - v.held // under way, and nowhere to be seen
	switch {
	case v.open != v.held || v.unread > 0 || soon(v.due) || soon(v.next):
		return -1
	case !v.told:
		return max(untoldSure, 4*took)
	case out < 0 || out > stuck:
		return -1
	case out > 0:
		return max(stuckSure, 20*took)
	case v.held > 0:
		return max(leastSure, 2*took)
	}
	return 0
}

// rest waits until the sender is at rest, or somebody joins, and tells how it
// then stands.
func (t *virtual) rest(ctx context.Context) (at view, busy bool, err error) {
	began, pause := time.Now(), firstPause
	now, since := t.Now(), began
	var last view
	for looks := 0; ; looks++ {
		looked := time.Now()
		v, steady, err := t.look(ctx, now)
		if err != nil || t.hasty {
			return v, false, err
		}
		took := time.Since(looked)
		if looks == 0 || !steady || v != last {
			since, pause = looked, firstPause
		}
		last = v
		t.mu.Lock()
		busy, stuck, changed := !t.allWait(), t.stuck, t.change()
		t.mu.Unlock()
		lasted, needed := looked.Sub(since), t.sure(v, now, stuck, took)
		switch {
		case busy:
			return v, true, nil
		case steady && needed >= 0 && lasted >= needed:
			return v, false, nil
		case lasted > t.config.Stall:
			return v, false, fmt.Errorf("%w: at %s nothing changed for %v of real time: %s", ErrStalled, instant(now), t.config.Stall, v.stalled(now))
		case looked.Sub(began) > t.config.Rest:
			return v, false, fmt.Errorf("%w: at %s it was still busy after %v of real time: %s", ErrStalled, instant(now), t.config.Rest, v.stalled(now))
		}
		if lasted < lookOn {
			runtime.Gosched()
			continue
		}
		if err := t.pause(ctx, pause, changed); err != nil {
			return v, false, err
		}
		pause = min(2*pause, lastPause)
	}
}

// pause waits between two looks, no longer than until something changes.
func (t *virtual) pause(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.config.Server.HeldChanged():
	case <-changed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// stalled says what a sender that does not rest is doing.
func (v view) stalled(now time.Time) string {
	text := fmt.Sprintf("%d attempts are under way by its own count, the fake endpoint holds %d on purpose and works on %d", v.inFlight, v.held, v.open-v.held)
	switch {
	case v.told && !v.next.IsZero() && !v.next.After(now):
		text += fmt.Sprintf("; it says that something is due at %s, and does not do it: clock.advance is to begin what is due, also where the time stays as it is", instant(v.next))
	case v.told && v.inFlight > v.held:
		text += "; the others neither arrive nor end: do they hang in connecting, or is inFlight counted wrongly?"
	case v.told && v.inFlight < v.held:
		text += "; it keeps connections of attempts that it no longer counts"
	}
	return text
}

// wake lets those go whose time has come, or what they wait for, and tells
// whether there were any.
func (t *virtual) wake() bool {
	now := t.Now()
	t.mu.Lock()
	waits := slices.SortedFunc(maps.Keys(t.waits), func(a, b *wait) int { return a.order - b.order })
	t.mu.Unlock()
	var ready []*wait
	for _, w := range waits {
		if !w.at.After(now) || w.happened != nil && w.happened() {
			ready = append(ready, w)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	woke := false
	for _, w := range ready {
		if _, still := t.waits[w]; still { // and has not given up
			delete(t.waits, w)
			close(w.ready)
			woke = true
		}
	}
	return woke
}

// move takes the clock to the next instant that anybody waits for.
func (t *virtual) move(ctx context.Context, v view) error {
	now := t.Now()
	t.mu.Lock()
	if !t.allWait() {
		t.mu.Unlock()
		return nil // somebody has joined, or given up
	}
	to := t.nextWait()
	for _, at := range []time.Time{v.next, v.due} {
		if at.After(now) && at.Before(to) {
			to = at
		}
	}
	if !v.told {
		to = t.jumps.limit(now, to, v.arrived)
	}
	if !to.After(now) { // somebody has joined, and waits already
		t.mu.Unlock()
		return nil
	}
	t.moving = true
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.moving = false
		t.still.Broadcast()
	}()
	return t.moveBoth(ctx, to, v)
}

// moveBoth moves the two clocks. What somebody begins at that instant must find
// the other's clock there already: the fake endpoint says when a request
// arrived, and the sender when an answer did.
func (t *virtual) moveBoth(ctx context.Context, to time.Time, v view) error {
	advance := func(to time.Time) error {
		if _, err := t.config.Sender.Advance(ctx, to); err != nil {
			return fmt.Errorf("moving the sender's clock to %s: %w", instant(to), err)
		}
		return nil
	}
	if v.told && to.Equal(v.due) {
		// The fake endpoint answers then. If the sender does something, too, it
		// goes a nanosecond less far at first: nothing is due by there.
		if !to.Equal(v.next) {
			if err := advance(to); err != nil {
				return err
			}
			t.set(to)
			return nil
		}
		if err := advance(to.Add(-1)); err != nil {
			return err
		}
	}
	t.set(to)
	return advance(to)
}

// set moves the fake endpoint's clock. The mock sleeps for a millisecond after
// each timer and once more at its end, so that goroutines may run; nobody needs
// to wait for that but who moves it next: it stands already.
func (t *virtual) set(to time.Time) {
	<-t.moved
	done := make(chan struct{})
	t.moved = done
	go func() {
		defer close(done)
		t.config.Clock.Set(to)
	}()
	for t.config.Clock.Now().Before(to) { // a few microseconds
		runtime.Gosched()
	}
}

// nextWait is the earliest instant that a scenario waits for. t.mu is held.
func (t *virtual) nextWait() time.Time {
	var first time.Time
	for w := range t.waits {
		if first.IsZero() || w.at.Before(first) {
			first = w.at
		}
	}
	return first
}
