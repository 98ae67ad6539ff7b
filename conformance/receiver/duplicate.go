package receiver

import (
	"fmt"
	"sync"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/wire"
)

// copiesAtOnce is how many equal deliveries are released at one moment: enough
// that some meet inside the handler on two cores.
const copiesAtOnce = 16

// receiver.duplicate: once, however often it comes. Whether a copy is accepted
// the wire shows; how often its event is processed, an observer.
func duplicateRules() []rule {
	const refusedCopy = "A copy is answered as an error. The provider takes that for a failed delivery and goes on sending."
	return []rule{
		{
			id: "receiver.duplicate.acks-duplicate",
			record: func(s *session) {
				draft, ok := s.draft(s.event())
				if !ok || !s.controlDraft(draft) {
					return
				}
				s.sendDraft("the same delivery again", draft)
				s.sendDraft("the same delivery a third time", draft)
			},
			judge: copiesAccepted(refusedCopy),
		},
		{
			id: "receiver.duplicate.acks-retry",
			record: func(s *session) {
				d := s.event()
				draft, ok := s.draft(d)
				if !ok || !s.controlDraft(draft) {
					return
				}
				// A second later by the timestamp, so that timestamp and
				// signature differ as they do on a provider's retry.
				s.send("the same id and bytes, signed anew", d, fp.At(time.Second), fp.AddHeader("X-Request-Id", s.Provider.NewID()))
			},
			judge: copiesAccepted(refusedCopy),
		},
		{
			id: processesOnce,
			record: func(s *session) {
				d := s.event()
				draft, ok := s.draft(d)
				if !ok || !s.controlDraft(draft) {
					return
				}
				s.sendDraft("an exact copy", draft)
				s.send("a copy signed anew", d, fp.At(time.Second))
				s.count(processesOnce, copiedEvent, d.ID)
			},
			judge: processedOnce(copiedEvent, lostCause, twiceCause),
		},
		{
			id:     concurrentCopies,
			record: recordConcurrentCopies,
			judge:  eachAccepted(fmt.Sprintf("%d copies of one delivery at one moment", copiesAtOnce), "Copies that arrive at one moment meet between the look for the id and its insertion; the loser's unique-key error becomes a 5xx or a conflict."),
		},
		{
			id: concurrentCopies + ".once", use: concurrentCopies,
			judge: processedOnce(concurrentEvent, lostCause,
				"Copies that arrive at one moment all find the id absent, and all go on. Let a unique key decide, not a look beforehand."),
		},
		{
			id:     distinctEvents,
			record: recordDistinct,
			judge: all(
				processedOnce(firstDistinct, distinctCause, twiceCause),
				processedOnce(secondDistinct, distinctCause, twiceCause)),
		},
		{
			id: forgedFirst,
			record: func(s *session) {
				if !s.control() {
					return
				}
				d := s.event()
				s.send("control: a forged delivery of the id", d, fp.WithKeys(s.Keys.Wrong))
				s.send("the true delivery, after a forged one of the same id", d)
				s.count(forgedFirst+".processed", claimedEvent, d.ID)
			},
			judge: copiesAccepted("Ids are remembered before the signature is checked, so anybody who guesses an id can make the true event disappear."),
		},
		{
			id: forgedFirst + ".processed", use: forgedFirst,
			judge: processedOnce(claimedEvent,
				"Ids are remembered before the signature is checked, so the true event counts as a copy of the forged one and is dropped.", twiceCause),
		},
		{
			id:     failedIsNotLost,
			record: recordFailed,
			judge:  all(copiesAccepted("The copy of an event that failed before is answered as an error."), judgeFailed),
		},
		{
			id:     remembersIDs,
			record: recordRemembersIDs,
			judge: all(
				copiesAccepted("A copy that comes so late is answered as an error."),
				notAgain(dayCopy, "Ids are forgotten within a day. A provider's retries, and an operator's resend, come later than that."),
				notAgain(endCopy, "Ids are forgotten before the provider's last retry, which then counts as a new event.")),
		},
		{
			id:     twoInstances,
			record: apart("with a second instance", recordInstances),
			judge:  all(copiesAccepted("The instance that comes second meets the other's row, and the error of the unique key becomes a 5xx or a conflict."), judgeInstances),
		},
		{
			id: "receiver.duplicate.id-reuse",
			record: func(s *session) {
				d := s.event()
				draft, ok := s.draft(d)
				if !ok || !s.controlDraft(draft) {
					return
				}
				s.send("the same id with another body, validly signed", d, fp.AddMember("whconform", `"another body"`))
			},
			judge: reported,
		},
		{
			id:     unsignedID,
			record: recordUnsignedID,
			judge:  reportUnsignedID,
		},
	}
}

const (
	processesOnce    = "receiver.duplicate.processes-once"
	concurrentCopies = "receiver.duplicate.concurrent-copies"
	distinctEvents   = "receiver.duplicate.distinct-events"
	forgedFirst      = "receiver.duplicate.forgery-does-not-claim-id"

	copiedEvent     = "an event delivered three times, twice as an exact copy and once signed anew"
	concurrentEvent = "an event delivered 16 times at one moment"
	firstDistinct   = "the first of two events with equal bodies"
	secondDistinct  = "the second of two events with equal bodies"
	claimedEvent    = "an event whose id a forged delivery bore first"

	lostCause     = "The event was acknowledged and then lost on the way to the worker."
	twiceCause    = "Nothing remembers the ids of events that were taken in, or the look for the id and its insertion are two steps."
	distinctCause = "Copies are told by the body instead of the id, so a second event that happens to say the same is dropped."
)

// recordDistinct sends two events whose bodies are equal byte by byte.
func recordDistinct(s *session) {
	if s.Profile.Signature.ID.In != "header" {
		s.skip(distinctEvents, evidence.NotApplicable, "the id is part of the body, so two events never have equal bodies")
		return
	}
	first := s.event()
	draft, ok := s.draft(first)
	if !ok || !s.controlDraft(draft) {
		return
	}
	second := s.event()
	second.Body = first.Body
	s.send("another event with the same body", second)
	var counting sync.WaitGroup
	counting.Go(func() { s.count(distinctEvents, firstDistinct, first.ID) })
	s.count(distinctEvents, secondDistinct, second.ID)
	counting.Wait()
}

// controlDraft is control with a delivery of the scenario's own.
func (s *session) controlDraft(draft fp.Draft) bool {
	s.rec.Control(controlLabel)
	x := s.sendDraft(controlLabel, draft)
	return x.OK()
}

// copiesAccepted expects a 2xx and has one cause for whatever else comes.
func copiesAccepted(cause string) judge {
	return each("2xx", func(_ *evidence.Transcript, x *wire.Exchange) (string, string) {
		if x.OK() {
			return "", ""
		}
		return suite.Came(x), cause
	})
}

// recordConcurrentCopies releases equal deliveries at one moment: connections
// are held by a barrier until all are ready.
func recordConcurrentCopies(s *session) {
	if !s.control() {
		return
	}
	event := s.event()
	draft, ok := s.draft(event)
	if !ok {
		return
	}
	// The rate holds before and after; the copies themselves go at one moment.
	if err := s.Limiter.WaitN(s.ctx, min(copiesAtOnce, s.Limiter.Burst())); err != nil {
		s.fail(fmt.Errorf("%w: %w", suite.ErrOutOfTime, err))
		return
	}
	release := make(chan struct{})
	var ready, done sync.WaitGroup
	for i := range copiesAtOnce {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-release
			s.rec.Add(s.Provider.Send(s.ctx, s.target(), draft, fmt.Sprintf("copy %d of %d, all at once", i+1, copiesAtOnce)))
		})
	}
	ready.Wait()
	close(release)
	done.Wait()
	s.count(concurrentCopies+".once", concurrentEvent, event.ID)
}
