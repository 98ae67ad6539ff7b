package receiver

import (
	"fmt"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	fp "github.com/whconform/whconform/fakeprovider"
)

const (
	unsignedID = "receiver.duplicate.unsigned-id"

	underNewID = "the same body and signature under a new id"
	withoutID  = "the same body and signature without an id"
)

// recordUnsignedID replays a delivery under an id that its signature does not
// cover, and without one. An observer is asked by ids, so what became of the
// latter shows only by the id of the original.
func recordUnsignedID(s *session) {
	d := s.event()
	d.At = s.Clock.Now() // one signature for all
	draft, ok := s.draft(d)
	if !ok || !s.controlDraft(draft) || s.observerBroken(unsignedID) {
		return
	}
	began := s.Clock.Now()
	if _, err := drive.AwaitProcessed(s.ctx, s.Clock, s.Subject, d.ID, 1, s.Bounds.Process); err != nil {
		s.breakUnlessOver(unsignedID, fmt.Errorf("asking how often an event was processed: %w", err))
		return
	}
	hold := s.patience(s.Clock.Now().Sub(began))
	another := s.Provider.NewID()
	for _, replay := range []struct {
		label, event string
		want         int
		change       fp.Alteration
	}{
		{underNewID, another, 0, fp.SwapID(another)},
		{withoutID, d.ID, 1, fp.DropHeader(s.Profile.Signature.ID.Name)},
	} {
		s.send(replay.label, d, replay.change)
		c, err := drive.Settled(s.ctx, s.Clock, s.Subject, replay.event, replay.want, hold)
		if err != nil {
			s.breakUnlessOver(unsignedID, fmt.Errorf("asking how often this was processed: %s: %w", replay.label, err))
			return
		}
		if c.N > replay.want {
			s.rec.Fact(factProcessed+replay.label, "again")
		}
	}
}

// reportUnsignedID tells what came back, and whether the event was processed
// again.
func reportUnsignedID(t *evidence.Transcript) []evidence.Finding {
	var facts []evidence.Finding
	for _, label := range []string{underNewID, withoutID} {
		x := t.Find(label)
		if x == nil {
			continue
		}
		got := suite.Came(x) + ", not processed again"
		if t.Facts[factProcessed+label] != "" {
			got = suite.Came(x) + ", processed again"
		}
		facts = append(facts, evidence.Finding{Sent: label, Got: got, Exchanges: []string{label}})
	}
	return facts
}
