package receiver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
)

// What an event makes of the record that it speaks of, as the receiver's hook
// tells it in a word of its own. A scenario watches and records facts; the
// checks compare words with each other and never read them.

const (
	factState = "state: " // + what was sent: the record's state after it, quoted by stateWord
	factWas   = "was: "   // + what was sent: its state before
)

// The gaps between two questions after a state, as of an observer.
const (
	stateFirst = 10 * time.Millisecond
	stateLast  = 500 * time.Millisecond
)

// room is how many times longer than the last time something is waited for: a
// machine may be busy. leastHold is waited for at least.
const (
	room      = 5
	leastHold = 100 * time.Millisecond
)

// state asks for the state of a record, by an event about it.
func (s *session) state(event string, r *record) (string, error) {
	return s.Subject.State(s.ctx, event, r.spelt)
}

// awaitState asks until the record has a state that is none of those given, or
// the bound is over. It returns the last state and how long it took.
func (s *session) awaitState(event string, r *record, bound time.Duration, other ...string) (string, time.Duration, error) {
	began := s.Clock.Now()
	last, err := s.watchState(event, r, began.Add(bound), func(state string) bool { return !slices.Contains(other, state) })
	return last, s.Clock.Now().Sub(began), err
}

// watchState asks until end or until is says yes, and returns the last state. It
// is asked once more at the end, so that what happened just before is seen.
func (s *session) watchState(event string, r *record, end time.Time, is func(string) bool) (string, error) {
	for gap := stateFirst; ; gap = min(2*gap, stateLast) {
		over := !s.Clock.Now().Before(end)
		state, err := s.state(event, r)
		if err != nil || is(state) || over {
			return state, err
		}
		if err := s.pause(min(gap, end.Sub(s.Clock.Now()))); err != nil {
			return state, err
		}
	}
}

func (s *session) pause(d time.Duration) error {
	timer := s.Clock.Timer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// keeps watches whether a record keeps its state once the receiver has worked on
// an event, and returns the first other state, or the one that it kept. Where an
// observer tells that the event was processed, or has failed, the watch ends a
// moment later; otherwise it lasts for as long as before an earlier event took,
// with room.
func (s *session) keeps(event string, r *record, state string, took time.Duration) (string, error) {
	changed := func(now string) bool { return now != state }
	last, done, err := s.worked(event, r, changed)
	if err != nil || changed(last) {
		return last, err
	}
	hold := s.patience(took)
	if done {
		// What is left is the time between two commits, if the state has one of
		// its own.
		hold = min(max(room*took, leastHold), s.Bounds.Settle)
	}
	return s.watchState(event, r, s.Clock.Now().Add(hold), changed)
}

// worked waits until an observer tells that the event was processed, or has
// failed, or the state has changed. done is false where there is nobody to tell.
func (s *session) worked(event string, r *record, changed func(string) bool) (last string, done bool, err error) {
	end := s.Clock.Now().Add(s.Bounds.Process)
	for gap := stateFirst; ; gap = min(2*gap, stateLast) {
		if last, err = s.state(event, r); err != nil || changed(last) {
			return last, false, err
		}
		if !s.Subject.Has(drive.Observe) || s.ObserverFault != nil {
			return last, false, nil
		}
		c, err := s.Subject.Processed(s.ctx, event)
		switch {
		case err != nil:
			return last, false, nil // the rows that need the observer tell of it
		case c.N > 0 || c.Failed:
			return last, true, nil
		case !s.Clock.Now().Before(end):
			return last, true, nil // long enough
		}
		if err := s.pause(gap); err != nil {
			return last, false, err
		}
	}
}

// patience is how long a change of a state is waited for that need not come,
// where another one took so long.
func (s *session) patience(took time.Duration) time.Duration {
	return min(max(room*took, s.Bounds.Settle), s.Bounds.Process)
}

// stateBroken breaks a requirement whose hook failed.
func (s *session) stateBroken(id string, err error) bool {
	if err == nil {
		return false
	}
	if s.over() || errors.Is(err, context.Cause(s.ctx)) && s.ctx.Err() != nil {
		return true
	}
	s.rec.Break(id, fmt.Errorf("asking for the state of a record: %w", err))
	return true
}

// noteState records what a record's state was before something was sent, and is
// after it.
func (s *session) noteState(what, was, is string) {
	s.rec.Fact(factWas+what, stateWord(was))
	s.rec.Fact(factState+what, stateWord(is))
}

// stateWord is a state as a report shows it.
func stateWord(state string) string {
	if state == "" {
		return "(none)"
	}
	return fmt.Sprintf("%q", state)
}

// stateKept expects that a record's state did not change by what was sent. What
// was not tried is not judged.
func stateKept(what, expected, cause string) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		was, is := t.Facts[factWas+what], t.Facts[factState+what]
		if was == is {
			return nil
		}
		return []evidence.Finding{{
			Sent: what, Expected: expected + ": " + was, Got: "the record's state became " + is, Cause: cause,
		}}
	}
}
