package receiver

import (
	"fmt"
	"sync"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	fp "github.com/whconform/whconform/fakeprovider"
)

const (
	twoInstances = "receiver.duplicate.two-instances"

	// instanceEvents are sent one after another, each to two instances at one
	// moment, instanceCopies times to each: a race that is lost once in a while
	// is lost in one of them.
	instanceEvents, instanceCopies = 8, 2
)

// recordInstances sends each of some events to two instances on one store at one
// moment. They are the scenario's own: a second instance works on whatever waits
// in the store, also on what another scenario lets fail in the first.
func recordInstances(s *session) {
	if !s.control() {
		return
	}
	second, err := s.Subject.Second(s.ctx)
	if err != nil {
		s.breakUnlessOver(twoInstances, err)
		return
	}
	targets := []fp.Target{s.target(), s.targetOf(second)}
	ids := make([]string, instanceEvents)
	for n := range ids {
		d := s.event()
		ids[n] = d.ID
		draft, ok := s.draft(d)
		if !ok || !s.atOneMoment(targets, n+1, draft) {
			return
		}
	}
	s.tally(ids, twoInstances)
}

// atOneMoment sends copies to all targets, held by a barrier until all are ready.
func (s *session) atOneMoment(targets []fp.Target, event int, draft fp.Draft) bool {
	copies := len(targets) * instanceCopies
	// The rate holds before and after; the copies themselves go at one moment.
	if err := s.Limiter.WaitN(s.ctx, min(copies, s.Limiter.Burst())); err != nil {
		s.fail(fmt.Errorf("%w: %w", suite.ErrOutOfTime, err))
		return false
	}
	release := make(chan struct{})
	var ready, done sync.WaitGroup
	for i := range copies {
		to, label := targets[i%len(targets)], fmt.Sprintf("event %d of %d at instance %d, copy %d", event, instanceEvents, i%len(targets)+1, i/len(targets)+1)
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-release
			if x := s.Provider.Send(s.ctx, to, draft, label); s.ctx.Err() == nil {
				s.rec.Add(x)
			}
		})
	}
	ready.Wait()
	close(release)
	done.Wait()
	return !s.over()
}

// judgeInstances finds events that were lost or processed twice.
func judgeInstances(t *evidence.Transcript) []evidence.Finding {
	sent := fmt.Sprintf("%d events, each at two instances at one moment", instanceEvents)
	var findings []evidence.Finding
	for _, part := range []struct{ fact, got, cause string }{
		{factLost, "never processed", "Each instance takes the event for one that the other works on."},
		{factTwice, "processed more than once", "Ids are remembered in the memory of one process, or the look for the id and its insertion are two steps. Let a unique key of the shared database decide."},
	} {
		if ids := t.Facts[part.fact]; ids != "" {
			findings = append(findings, evidence.Finding{Sent: sent, Expected: "each processed once", Got: part.got + ": " + ids, Cause: part.cause})
		}
	}
	return findings
}
