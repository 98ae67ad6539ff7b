package sender

import (
	"sync"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
)

// What a row waits for at most, on the sender's clock. Virtual time costs a
// step of the timeline for each thing that happens in it; 60 days are more than
// any schedule and any time until an endpoint is disabled. Real time is what
// somebody sits in front of: two minutes reach the first retry of the schedules
// that are documented.
const (
	patienceVirtual = 60 * 24 * time.Hour
	patienceReal    = 2 * time.Minute
)

// affords tells whether the run waits for so long.
func (s *session) affords(d time.Duration) bool {
	if s.virtual() {
		return d <= patienceVirtual
	}
	return d <= patienceReal
}

// affordsRetry is affords for the beginning of the attempt that follows attempt
// n, when all before it fail at once. Where it is too far off, or the schedule
// has no such attempt, the requirements are skipped.
func (s *session) affordsRetry(n int, ids ...string) bool {
	if n >= s.Declared.attemptsAtMost() {
		for _, id := range ids {
			s.skip(id, evidence.NotObservable, "the declared schedule has %s, and this takes %d", plural(s.Declared.attemptsAtMost(), "attempt"), n+1)
		}
		return false
	}
	after := s.Declared.begins(n)
	if s.affords(after) {
		return true
	}
	for _, id := range ids {
		s.skip(id, evidence.NotObservable, "attempt %d comes up to %v after the event, and the sender's clock cannot be moved; declare a shorter schedule for the run (retrySchedule, with defaultSchedule for the real one)", n+1, shown(after))
	}
	return false
}

// begins is how long after publishing the attempt behind attempt n has begun,
// at the latest, when those before it failed at once.
func (d Declared) begins(n int) time.Duration {
	var sum time.Duration
	for i := range min(n+1, len(d.Schedule)) {
		_, high := d.window(i)
		sum += high
	}
	return sum
}

// quiet lets pass the time in which the attempt behind attempt n would come if
// there were one, so that its absence says something.
func (s *session) quiet(n int) {
	var high time.Duration
	if n < s.Declared.attemptsAtMost() {
		_, high = s.Declared.window(n)
	}
	if !s.affords(high) {
		high = 0
	}
	s.until(high + s.Bounds.Settle)
}

// concluded makes a condition: that at each of the endpoints n attempts are
// over.
func concluded(n int, at ...*endpoint) func() bool {
	return func() bool {
		for _, e := range at {
			if e.path == nil {
				continue
			}
			if _, over := e.path.Count(); over < n {
				return false
			}
		}
		return true
	}
}

// gaveUpBy is the time from when an attempt begins until the sender gave it
// up at the latest: the declared timeout, or twice the profile's where nothing
// is declared. (Standard Webhooks asks for 15 to 30 seconds.)
func (d Declared) gaveUpBy() time.Duration {
	if d.declares(factTimeout) {
		return d.Timeout + d.Granularity
	}
	return 2*d.Timeout + d.Granularity
}

// delay is the time between two attempts, from the end of one to the beginning
// of the next. Where the sender does not tell when something is due, its clock is
// moved in steps, and either may have been due so much earlier.
func delay(before, next *attempt) (least, most time.Duration) {
	g := gap(before, next)
	return g - next.Window, g + before.Window
}

// wrong says what is wrong with the delay behind attempt n, "" if nothing is.
func (d Declared) wrong(n int, before, next *attempt) string {
	least, most := delay(before, next)
	if low, high := d.window(n); most >= low-early && least <= high {
		return ""
	}
	return d.outside(n, gap(before, next))
}

// unfinished is how many requests at an endpoint were still open when its
// scenario ended.
func unfinished(t *evidence.Transcript, name string) int {
	if _, some := t.Facts[unfinishedFact+name]; !some {
		return 0
	}
	return numberFact(t, unfinishedFact+name)
}

// publishers is how many calls to the sender a scenario makes at one time, where
// it makes hundreds: an outbox that commits what comes together stores them
// sooner.
const publishers = 16

// sideBySide does n things, some at a time.
func sideBySide(n int, do func(i int)) {
	var running sync.WaitGroup
	next := make(chan int)
	for range min(n, publishers) {
		running.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	running.Wait()
}

// writtenDown lets the sender write down what has just ended at the fake
// endpoint, before it is asked about it. In virtual time it is at rest already.
func (s *session) writtenDown() {
	if s.virtual() {
		return
	}
	s.until(s.Declared.Granularity + 200*time.Millisecond)
}
