package receiver

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
)

const (
	remembersIDs = "receiver.duplicate.remembers"

	// leastRemembered is how long every receiver has to know an id.
	// source: Patterns, Designing Webhooks: store processed ids ≥ 24 h.
	leastRemembered = 24 * time.Hour
	// rememberedRoom is how much earlier the copy comes: an id that is forgotten
	// exactly then was remembered for long enough.
	rememberedRoom = time.Minute

	dayCopy = "an event whose copy came 24 h later"
	endCopy = "an event whose copy came at the end of the provider's retry schedule"

	factBefore = "before: " // + what was sent: how often it was processed before its copy
)

// remembered is how long an id has to be known: a day, and as long as the
// provider may send a copy by itself, where that is longer. Jitter that makes a
// delay longer is not counted.
func remembered(p *profile.Profile) []waiting {
	all := []waiting{{dayCopy, leastRemembered}}
	var schedule time.Duration
	for _, d := range p.Schedule {
		schedule += d
	}
	if schedule = max(schedule, p.Remember); schedule > leastRemembered {
		all = append(all, waiting{endCopy, schedule})
	}
	return all
}

// waiting is a copy that comes so long after its event.
type waiting struct {
	what string
	long time.Duration
}

// recordRemembersIDs moves the clock of a receiver of the scenario's own, and
// delivers copies to it that are signed at the time that it shows then.
func recordRemembersIDs(s *session) {
	d := s.event()
	draft, ok := s.draft(d)
	if !ok || !s.controlDraft(draft) || s.observerBroken(remembersIDs) {
		return
	}
	if !s.Subject.Has(drive.SecondConfiguration) {
		s.skip(remembersIDs, evidence.NotObservable, "a clock that was moved stays so, and all other rows with it: this one needs a receiver of its own, started by --exec")
		return
	}
	if _, err := drive.AwaitProcessed(s.ctx, s.Clock, s.Subject, d.ID, 1, s.Bounds.Process); err != nil {
		s.breakUnlessOver(remembersIDs, fmt.Errorf("asking how often an event was processed: %w", err))
		return
	}
	apart("whose clock is moved", func(own *session) { own.remembers(d.ID) })(s)
}

// remembers does it, on a receiver that elsewhere, the id of an event at another
// one, must not be known to.
func (s *session) remembers(elsewhere string) {
	if !s.Subject.Has(drive.Clock) {
		s.skip(remembersIDs, evidence.NotObservable, "the clock of the receiver that was started for this row cannot be moved; let the adapter's address hold {port}")
		return
	}
	if c, err := s.Subject.Processed(s.ctx, elsewhere); err != nil || c.N > 0 {
		if s.breakUnlessOver(remembersIDs, err); err == nil {
			s.skip(remembersIDs, evidence.NotObservable, "the receiver that was started for this row keeps its state where the first one does: with its clock moved it would forget the ids of the other rows. Keep the state in the folder that WHCONFORM_STATE_DIR names")
		}
		return
	}
	waits := remembered(s.Profile)
	events := make([]fp.Delivery, len(waits))
	var took time.Duration
	for i, w := range waits {
		events[i] = s.event()
		began := s.Clock.Now()
		if x := s.send("control: "+w.what, events[i]); !x.OK() {
			s.skip(remembersIDs, evidence.NotReached, "the event was not accepted by the receiver that was started for this row")
			return
		}
		c, err := drive.AwaitProcessed(s.ctx, s.Clock, s.Subject, events[i].ID, 1, s.Bounds.Process)
		if err != nil {
			s.breakUnlessOver(remembersIDs, fmt.Errorf("asking how often this was processed: %s: %w", w.what, err))
			return
		}
		if c.N == 0 {
			s.skip(remembersIDs, evidence.NotObservable, "the event was not processed in the first place")
			return
		}
		took = max(took, s.Clock.Now().Sub(began))
	}
	s.copiesLater(waits, events, took)
}

// copiesLater moves the clock to each of the times and sends the event's copy.
func (s *session) copiesLater(waits []waiting, events []fp.Delivery, took time.Duration) {
	began := s.Clock.Now()
	var counting sync.WaitGroup
	defer counting.Wait()
	for i, w := range waits {
		to := began.Add(w.long - rememberedRoom)
		if err := s.Subject.AdvanceClock(s.ctx, to); err != nil {
			s.breakUnlessOver(remembersIDs, fmt.Errorf("moving the receiver's clock: %w", err))
			return
		}
		later := fp.At(to.Sub(s.Clock.Now()))
		if x := s.send(fmt.Sprintf("control: a new event, signed %v later", w.long), s.event(), later); !x.OK() {
			s.breakUnlessOver(remembersIDs, fmt.Errorf("the receiver's clock was moved to %s, and it did not accept a new event signed then: does its signature check go by the clock that clock.advance moves?", to.UTC().Format(time.RFC3339)))
			return
		}
		before, err := s.Subject.Processed(s.ctx, events[i].ID)
		if err != nil {
			s.breakUnlessOver(remembersIDs, fmt.Errorf("asking how often this was processed: %s: %w", w.what, err))
			return
		}
		s.send(fmt.Sprintf("the copy, %v later", w.long), events[i], later)
		counting.Go(func() { s.again(w.what, events[i].ID, before.N, took) })
	}
}

// again watches for a second effect for as long as the first one took, with
// room. A count may have gone down meanwhile: some keep effects and ids together.
func (s *session) again(what, event string, before int, took time.Duration) {
	c, err := drive.Settled(s.ctx, s.Clock, s.Subject, event, before, s.patience(took))
	if err != nil {
		s.breakUnlessOver(remembersIDs, fmt.Errorf("asking how often this was processed: %s: %w", what, err))
		return
	}
	s.rec.Fact(factBefore+what, strconv.Itoa(before))
	s.rec.Fact(factProcessed+what, strconv.Itoa(c.N))
}

// breakUnlessOver breaks a requirement, but not for what the end of the run cut
// short.
func (s *session) breakUnlessOver(id string, err error) {
	if err != nil && !s.over() {
		s.rec.Break(id, err)
	}
}

// notAgain expects no effect of a copy.
func notAgain(what, cause string) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		before, err := strconv.Atoi(t.Facts[factBefore+what])
		n, nErr := strconv.Atoi(t.Facts[factProcessed+what])
		if err != nil || nErr != nil || n <= before {
			return nil // not tried, or no effect
		}
		return []evidence.Finding{{Sent: what, Expected: "not processed again", Got: "processed again", Cause: cause}}
	}
}
