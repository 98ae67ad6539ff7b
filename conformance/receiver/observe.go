package receiver

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
)

// What the wire cannot show: how often an event was processed, as an observer
// counts it. A scenario asks and records a fact; the check looks at the fact.

const (
	factProcessed = "processed: " // + what was sent: how often
	factFailed    = "failed: "    // + what was sent: the event stands on the failed list
)

// count waits until the event was processed, or stands on the failed list, then
// watches for a second effect, and records what it saw for the requirement id.
// An observer that fails breaks that requirement and no other.
func (s *session) count(id, what, event string) {
	if s.over() || !s.Subject.Has(drive.Observe) || s.Profile.Signature.ID.In == "none" {
		return
	}
	if s.observerBroken(id) {
		return
	}
	reached := func(c drive.Count) bool { return c.N >= 1 || c.Failed }
	c, err := drive.AwaitCount(s.ctx, s.Clock, s.Subject, event, s.Bounds.Process, reached)
	if err == nil && c.N == 1 {
		c, err = drive.Settled(s.ctx, s.Clock, s.Subject, event, 1, s.Bounds.Settle)
	}
	switch {
	case s.over():
	case err != nil:
		s.rec.Break(id, fmt.Errorf("asking how often this was processed: %s: %w", what, err))
	default:
		s.rec.Fact(factProcessed+what, strconv.Itoa(c.N))
		if c.Failed {
			s.rec.Fact(factFailed+what, "yes")
		}
	}
}

// processedOnce expects that what was sent was processed, and once. lost and
// twice are the likely causes.
func processedOnce(what, lost, twice string) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		return append(notLost(t, what, lost), notTwice(t, what, twice)...)
	}
}

// notLost expects at least one effect, notTwice at most one.
func notLost(t *evidence.Transcript, what, cause string) []evidence.Finding {
	if n, err := strconv.Atoi(t.Facts[factProcessed+what]); err == nil && n > 0 {
		return nil
	}
	finding := evidence.Finding{Sent: what, Expected: "processed", Got: "never processed", Cause: cause}
	if t.Facts[factFailed+what] != "" {
		finding.Got = "not processed: it stands on the failed list"
		finding.Cause = "The receiver could not process the suite's own event. Give it one that it can process by --payload."
	}
	return []evidence.Finding{finding}
}

func notTwice(t *evidence.Transcript, what, cause string) []evidence.Finding {
	n, err := strconv.Atoi(t.Facts[factProcessed+what])
	if err != nil || n <= 1 {
		return nil
	}
	return []evidence.Finding{{Sent: what, Expected: "processed once", Got: fmt.Sprintf("processed %d times at least", n), Cause: cause}}
}

// Facts of many events at once.
const (
	factLost  = "lost"  // ids, "" if none
	factTwice = "twice" // likewise, with their counts
)

// askAtOnce is how many events the observer is asked about at a time.
const askAtOnce = 16

// tally asks how often each of many events was processed, watches for second
// effects, asks once more, and records which were lost and which were processed
// twice. An observer that fails breaks the requirements and no others.
func (s *session) tally(events []string, requirements ...string) {
	if s.observerBroken(requirements...) {
		return
	}
	err := ask(events, func(id string) error {
		_, err := drive.AwaitProcessed(s.ctx, s.Clock, s.Subject, id, 1, s.Bounds.Process)
		return err
	})
	if err == nil {
		// One watch over all: a second effect comes right behind the first.
		_, err = drive.Settled(s.ctx, s.Clock, s.Subject, events[0], 1, s.Bounds.Settle)
	}
	var mu sync.Mutex
	var lost, twice []string
	if err == nil {
		err = ask(events, func(id string) error {
			c, err := s.Subject.Processed(s.ctx, id)
			mu.Lock()
			defer mu.Unlock()
			if c.N == 0 && err == nil {
				lost = append(lost, id)
			}
			if c.N > 1 {
				twice = append(twice, fmt.Sprintf("%s (%d times)", id, c.N))
			}
			return err
		})
	}
	switch {
	case s.over():
	case err != nil:
		for _, id := range requirements {
			s.rec.Break(id, fmt.Errorf("asking how often %d events were processed: %w", len(events), err))
		}
	default:
		s.rec.Fact(factLost, listed(lost))
		s.rec.Fact(factTwice, listed(twice))
	}
}

// ask asks for every event, some at a time.
func ask(events []string, question func(id string) error) error {
	errs := make([]error, len(events))
	places := make(chan struct{}, askAtOnce)
	var asking sync.WaitGroup
	for i, id := range events {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			errs[i] = question(id)
		})
	}
	asking.Wait()
	return errors.Join(errs...)
}

// listed names a few and counts the rest.
func listed(ids []string) string {
	const few = 5
	slices.Sort(ids)
	if len(ids) <= few {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(ids[:few], ", "), len(ids)-few)
}

// checkObserver asks about an event that nobody sent: an observer that knows it
// would make every count worthless.
func (s *session) checkObserver() {
	if s.Subject.Has(drive.Observe) && !s.over() {
		s.ObserverFault = drive.CheckObserver(s.ctx, s.Subject, s.Provider.NewID())
	}
}

// observerBroken breaks requirements that rest on an observer which is known to
// be wrong.
func (s *session) observerBroken(ids ...string) bool {
	if s.ObserverFault == nil {
		return false
	}
	for _, id := range ids {
		s.rec.Break(id, fmt.Errorf("trying the observer before the run: %w", s.ObserverFault))
	}
	return true
}
