package receiver

import (
	"fmt"
	"sync"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/wire"
)

// copiesAtOnce is how many equal deliveries are released at one moment: enough
// that some meet inside the handler on two cores.
const copiesAtOnce = 16

// receiver.duplicate: once, however often it comes. Here stand the rows that
// the wire alone shows.
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
				s.send("the same id and bytes, signed anew", d, fp.At(1e9), fp.AddHeader("X-Request-Id", s.Provider.NewID()))
			},
			judge: copiesAccepted(refusedCopy),
		},
		{
			id:     "receiver.duplicate.concurrent-copies",
			record: recordConcurrentCopies,
			judge:  eachAccepted(fmt.Sprintf("%d copies of one delivery at one moment", copiesAtOnce), "Copies that arrive at one moment meet between the look for the id and its insertion; the loser's unique-key error becomes a 5xx or a conflict."),
		},
		{
			id: "receiver.duplicate.forgery-does-not-claim-id",
			record: func(s *session) {
				if !s.control() {
					return
				}
				d := s.event()
				s.send("control: a forged delivery of the id", d, fp.WithKeys(s.Keys.Wrong))
				s.send("the true delivery, after a forged one of the same id", d)
			},
			judge: copiesAccepted("Ids are remembered before the signature is checked, so anybody who guesses an id can make the true event disappear."),
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
	}
}

// controlDraft is control with a delivery of the scenario's own.
func (s *session) controlDraft(draft fp.Draft) bool {
	s.rec.Control(controlLabel)
	x := s.sendDraft(controlLabel, draft)
	return x.OK()
}

// copiesAccepted expects a 2xx for what was, or will be, taken once.
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
	draft, ok := s.draft(s.event())
	if !ok {
		return
	}
	// The rate holds before and after; the copies themselves go at one moment.
	if err := s.Limiter.WaitN(s.ctx, min(copiesAtOnce, s.Limiter.Burst())); err != nil {
		s.over()
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
	s.over()
}
