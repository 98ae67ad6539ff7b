package suite

import (
	"context"
	"slices"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// A delivery can end the subject. Beside it other scenarios are under way, whose
// deliveries then fail through no fault of their own. So when anything was
// refused a connection, the subject is brought back and every scenario that
// lost one is recorded again, by itself: what happens then is its own doing.

// NotReproduced stands in Recorder.Died for an end that no scenario caused again
// when it was recorded by itself.
const NotReproduced = "a delivery of the run that did not end it again when it was sent by itself"

// revisit records again, one at a time, what a death of the subject disturbed.
func (r *recording) revisit(ctx context.Context, indexes []int) {
	if !slices.ContainsFunc(indexes, func(i int) bool { return faulty(r.out[i], wire.FaultRefused) }) {
		return
	}
	if !r.revive(ctx) {
		r.bury(indexes)
		return
	}
	found := false
	for at, i := range indexes {
		if ctx.Err() != nil {
			return
		}
		if !faulty(r.out[i], wire.FaultRefused, wire.FaultReset, wire.FaultClosed) {
			continue
		}
		if !r.revive(ctx) {
			r.bury(indexes[at:])
			return
		}
		r.out[i] = r.record(ctx, i)
		for again := 0; again < reviveTries && innocent(r.out[i]) && r.revive(ctx); again++ {
			r.out[i] = r.record(ctx, i)
		}
		if faulty(r.out[i], wire.FaultRefused) {
			r.died = append(r.died, r.scenarios[i].Name)
			found = true
		}
	}
	if !found {
		r.died = append(r.died, NotReproduced)
	}
	r.revive(ctx)
}

// bury notes that the subject does not come back. Of scenarios that ran beside
// each other none can be told to have ended it, so they are not judged where a
// connection was lost; those that lost one in the middle are the suspects.
func (r *recording) bury(indexes []int) {
	if len(indexes) == 1 && r.scenarios[indexes[0]].Alone {
		return // what it lost is its own doing, or found dead
	}
	for _, i := range indexes {
		if !faulty(r.out[i], wire.FaultRefused, wire.FaultReset, wire.FaultClosed) {
			continue
		}
		r.out[i].Gone = true
		if faulty(r.out[i], wire.FaultReset, wire.FaultClosed) {
			r.died = append(r.died, r.scenarios[i].Name)
		}
	}
	if len(r.died) == 0 {
		r.died = append(r.died, NotReproduced)
	}
}

// reviveTries is how often a scenario is recorded again that met a subject on
// its way out: a process may listen for some milliseconds after the delivery
// that ends it.
const reviveTries = 3

// innocent tells whether nothing that the scenario sent can have ended the
// subject: its first fault was that nobody listened, or befell its control.
func innocent(t *evidence.Transcript) bool {
	i := slices.IndexFunc(t.Exchanges, func(x wire.Exchange) bool { return x.Response == nil })
	return i >= 0 && (t.Exchanges[i].Fault == wire.FaultRefused || t.Exchanges[i].Label == t.Control)
}

// onceMore is how long a subject that did not come back before is given from
// then on: dozens of scenarios ask for it, one after another.
const onceMore = time.Second

// revive brings the subject back, as far as that can be done.
func (r *recording) revive(ctx context.Context) bool {
	if r.cfg.Revive == nil {
		return false
	}
	if r.lost {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, onceMore)
		defer cancel()
	}
	r.lost = r.cfg.Revive(ctx) != nil
	return !r.lost
}

// faulty tells whether an exchange of the transcript ended with one of faults.
func faulty(t *evidence.Transcript, faults ...string) bool {
	return t != nil && !t.Kills && !t.Received && slices.ContainsFunc(t.Exchanges, func(x wire.Exchange) bool { return slices.Contains(faults, x.Fault) })
}
