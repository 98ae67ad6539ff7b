package sender

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// dispatcher is the part of a Sender that sends.
type dispatcher struct {
	wake    chan struct{} // something may be due that was not
	passing sync.Mutex    // held during a pass
	turns   int64         // counts the endpoints that were served
	tidyAt  time.Time     // when old messages are deleted next

	attempts sync.WaitGroup // those under way
	halt     context.Context
	stop     context.CancelCauseFunc // ends halt, and with it the attempts

	mu      sync.Mutex
	active  bool // Run is under way
	running map[*attempt]struct{}
	leaving map[string]chan struct{} // endpoints that have answered 410, until that is written down

	changes atomic.Int64         // counts what may have made something due, or room for it
	calm    atomic.Pointer[calm] // the last that was seen; nil: none
}

// calm is an instant at which a pass found nothing to do, and when there will be
// something, unless anything changes.
type calm struct {
	changes   int64
	now, next time.Time
}

// What ends an attempt otherwise than its timeout.
var errStopped = errors.New("the sender was stopped")

// errRunning is returned by a second Run.
var errRunning = errors.New("the outbox is being sent already")

func newDispatcher() dispatcher {
	halt, stop := context.WithCancelCause(context.Background())
	return dispatcher{wake: make(chan struct{}, 1), halt: halt, stop: stop, running: map[*attempt]struct{}{}, leaving: map[string]chan struct{}{}}
}

// Run sends what is due, each message when it is, until ctx is done. What a
// process that died was sending, or had confirmed and not sent, is sent first.
//
// It returns nil after ctx is done and the attempts under way have ended.
func (s *Sender) Run(ctx context.Context) error {
	if err := s.start(); err != nil {
		return err
	}
	return s.loop(ctx)
}

// start lets passes begin attempts.
func (s *Sender) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active {
		return errRunning
	}
	s.active = true
	return nil
}

// loop makes a pass whenever something may be due.
func (s *Sender) loop(ctx context.Context) error {
	defer s.drainAttempts()
	for ctx.Err() == nil {
		if err := s.takeOver(ctx); err != nil && ctx.Err() == nil {
			s.reading.tell(err)
		}
		for idle := false; !idle; {
			err := s.pass(ctx)
			if ctx.Err() != nil {
				return nil
			}
			s.reading.tell(err)
			idle = s.rest(ctx, err)
		}
	}
	return nil
}

// rest waits until there may be something to do. It is true when it is time to
// look for what other processes left behind, too.
func (s *Sender) rest(ctx context.Context, failure error) (look bool) {
	wait, ok := s.untilNext(ctx, failure)
	if ok && wait <= 0 {
		return false
	}
	if ok {
		timer := s.clock.AfterFunc(wait, s.rouse)
		defer timer.Stop()
	}
	looking := make(chan struct{}, 1)
	if s.poll > 0 {
		timer := s.clock.AfterFunc(s.poll, func() { looking <- struct{}{} })
		defer timer.Stop()
	}
	select {
	case <-s.wake:
		return false
	case <-looking:
	case <-ctx.Done():
	}
	return true
}

// untilNext is the time until the next pass has something to do. A timer of its
// own ends each attempt, so their ends are not among it.
func (s *Sender) untilNext(ctx context.Context, failure error) (time.Duration, bool) {
	if failure != nil {
		return pollEvery, true // databases recover
	}
	next, err := s.nextDue(ctx)
	if err != nil {
		return pollEvery, true
	}
	s.passing.Lock()
	next = soonest(next, s.tidyAt)
	s.passing.Unlock()
	if next.IsZero() {
		return 0, false
	}
	return next.Sub(s.clock.Now()), true
}

// rouse lets the dispatcher make a pass.
func (s *Sender) rouse() {
	s.changes.Add(1)
	select {
	case s.wake <- struct{}{}:
	default: // it has not looked since it was last told
	}
}

// pass does all that is due by now: it tells owners, deletes what is old, and
// begins attempts as long as there is something due and room for it.
func (s *Sender) pass(ctx context.Context) error {
	s.passing.Lock()
	defer s.passing.Unlock()
	if !s.isActive() {
		return nil
	}
	for _, duty := range []func(context.Context) error{s.freeOverdue, s.notifyDue, s.tidy} {
		if err := duty(ctx); err != nil {
			return err
		}
	}
	for {
		r, now := s.room(), s.clock.Now()
		// A look costs nothing; a claim is a commit.
		waiting, err := line(ctx, s.store.query, now, r)
		if err != nil || len(waiting) == 0 {
			return err
		}
		var claims []*claim
		err = s.store.note(ctx, func(ctx context.Context, tx Tx) (err error) {
			claims, err = s.claimDue(ctx, tx, now, r)
			return err
		})
		if err != nil {
			return err
		}
		for _, c := range claims {
			s.begin(c)
		}
	}
}

func (s *Sender) isActive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active
}

// room is how many attempts may begin now.
func (s *Sender) room() room {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := room{free: s.policy.AtOnce - len(s.running), silent: max(1, s.policy.AtOnce/2)}
	for a := range s.running {
		if a.silent {
			r.silent--
		}
	}
	return r
}

// begin begins an attempt. It is counted from here on, before its goroutine runs.
func (s *Sender) begin(c *claim) {
	timeout, connect := s.policy.Timeout, s.policy.ConnectTimeout
	if s.faults.Bounds != nil {
		timeout, connect = s.faults.Bounds(timeout, connect)
	}
	a := &attempt{claim: c, endBy: c.Began.Add(timeout), connectBy: c.Began.Add(connect)}
	s.mu.Lock()
	s.running[a] = struct{}{}
	s.mu.Unlock()
	s.attempts.Go(func() {
		s.perform(a)
		s.changes.Add(1) // before it is gone from those under way; see State
		s.mu.Lock()
		delete(s.running, a)
		s.mu.Unlock()
		s.rouse() // a slot is free
	})
}

// drainAttempts ends the sending: nothing begins any more, what is under way may
// go on for a while, then it is ended.
func (s *Sender) drainAttempts() {
	s.end()
	ended := make(chan struct{})
	go func() {
		s.attempts.Wait()
		close(ended)
	}()
	if s.drain > 0 {
		timer := s.clock.AfterFunc(s.drain, func() { s.stop(errStopped) })
		defer timer.Stop()
	} else {
		s.stop(errStopped)
	}
	<-ended
}

// end keeps passes from beginning attempts; none is under way when it returns.
func (s *Sender) end() {
	s.passing.Lock()
	defer s.passing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = false
}

// abort ends all attempts at once.
func (s *Sender) abort() {
	s.end()
	s.stop(errStopped)
	s.attempts.Wait()
}

// State makes a pass, so that all that is due by now has begun, and tells how
// the sender stands. With a clock that somebody else moves, this is how that
// somebody knows whether to wait and how far to go.
func (s *Sender) State(ctx context.Context) (State, error) {
	// Who moves the clock asks a dozen times at one instant. Where nothing has
	// changed since a pass found nothing to do, there is none to make.
	at := calm{changes: s.changes.Load(), now: s.clock.Now()}
	known := s.calm.Load()
	if known != nil && (known.changes != at.changes || !known.now.Equal(at.now)) {
		known = nil
	}
	if known == nil {
		if err := s.pass(ctx); err != nil {
			return State{}, err
		}
	}
	// First the attempts, then the queue: one that ends in between has put what
	// follows from it into the queue already, and has counted as a change.
	state := State{Now: s.clock.Now()}
	s.mu.Lock()
	for a := range s.running {
		state.Next = soonest(state.Next, a.next())
		if a.againAt.Load() == 0 { // else only the clock can bring it further
			state.InFlight++
		}
	}
	s.mu.Unlock()
	if known != nil && s.changes.Load() == known.changes {
		state.Next = soonest(state.Next, known.next)
		return state, nil
	}
	due, err := s.nextDue(ctx)
	state.Next = soonest(state.Next, due)
	// What is due and was not claimed is another process's, which may leave it.
	waiting := due.IsZero() || due.After(at.now)
	if at.next = due; err == nil && known == nil && waiting && s.changes.Load() == at.changes {
		s.calm.Store(&at)
	}
	return state, err
}

// nextDue is when the next attempt can begin or the next owner is to be told;
// zero for never. What waits for a slot is not counted: an attempt has to end
// before.
func (s *Sender) nextDue(ctx context.Context) (next time.Time, err error) {
	r, now := s.room(), s.clock.Now()
	for _, silent := range []bool{false, true} {
		after := int64(0)
		if r.free <= 0 || silent && r.silent <= 0 {
			after = now.UnixNano() + 1
		}
		at, err := column[int64](s.store.query(ctx, `SELECT next_at FROM endpoints
			WHERE silent = $1 AND next_at IS NOT NULL AND next_at >= $2 ORDER BY next_at LIMIT 1`, flag(silent), after))
		if err != nil {
			return time.Time{}, err
		}
		for _, t := range at {
			next = soonest(next, fromNano(t))
		}
	}
	at, err := column[int64](s.store.query(ctx, `SELECT notify_at FROM endpoints WHERE notify_at IS NOT NULL ORDER BY notify_at LIMIT 1`))
	for _, t := range at {
		next = soonest(next, fromNano(t))
	}
	return next, err
}

// soonest is the earlier of two times, of which a zero one is never.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// fromNano is a stored time.
func fromNano(n int64) time.Time { return time.Unix(0, n).UTC() }
