package receiver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/wire"
)

const (
	killAfterAck  = "receiver.durability.kill-after-ack"
	killUnderLoad = "receiver.durability.kill-under-load"
	remembers     = "receiver.durability.remembers-across-restart"

	killedEvent     = "an event whose receiver was killed as soon as it was acknowledged"
	rememberedEvent = "an event delivered before a restart and again after it"

	// loadDeliveries are sent loadAtOnce at a time while the receiver is killed.
	loadDeliveries, loadAtOnce = 100, 8
	// loadTries is how often a delivery that was not acknowledged is sent again
	// after the restart, as a provider does.
	loadTries = 3
)

// receiver.durability: a 2xx is a promise.
func durabilityRules() []rule {
	return []rule{
		{
			id: killAfterAck, kills: true,
			record: apart("to be killed", recordKillAfterAck),
			judge: func(t *evidence.Transcript) []evidence.Finding {
				return notLost(t, killedEvent, "The 2xx is sent before the event is stored, or the store keeps it in memory.")
			},
		},
		{
			id: killAfterAck + ".once", use: killAfterAck,
			judge: func(t *evidence.Transcript) []evidence.Finding {
				return notTwice(t, killedEvent, "The effect and the mark that it is done are two commits: a crash between them repeats the effect.")
			},
		},
		{
			id: killUnderLoad, kills: true,
			record: apart("to be killed", recordKillUnderLoad),
			judge:  judgeLoad(factLost, "every one of them processed", "never processed", "What was acknowledged was not yet stored, or rows that were received and not processed are not queued again at the start."),
		},
		{
			id: killUnderLoad + ".once", use: killUnderLoad,
			judge: judgeLoad(factTwice, "each processed once", "processed more than once", "The effect and the mark that it is done are two commits, or the copy that the provider sent again is not known."),
		},
		{
			id: remembers, kills: true,
			record: apart("to be restarted", recordRemembers),
			judge: all(
				copiesAccepted("The copy that comes after a restart meets an error."),
				processedOnce(rememberedEvent, lostCause, "Ids are remembered in memory only, so a restart forgets them.")),
		},
	}
}

// apart records on a receiver of the scenario's own, with a state of its own, so
// that killing it, or moving its clock, disturbs no other scenario. what says
// what it is started for.
func apart(what string, record func(*session)) func(*session) {
	return func(s *session) {
		if s.over() {
			return
		}
		own, err := s.Subject.Variant(s.ctx, s.Keys.Texts)
		if err != nil {
			s.fail(fmt.Errorf("starting a receiver %s: %w", what, err))
			return
		}
		if s.Subject.Has(drive.Observe) && !own.Has(drive.Observe) {
			s.skipAll(evidence.NotObservable, "the adapter belongs to the first receiver alone, and the one that was started for this row has none; let its address hold {port}")
			s.fail(own.Close(context.WithoutCancel(s.ctx)))
			return
		}
		env := *s.Env
		env.Subject = own
		alone := env.session(s.ctx, s.rec, s.id)
		record(alone)
		s.fail(errors.Join(alone.err, own.Close(context.WithoutCancel(s.ctx))))
	}
}

// skipAll skips every requirement that is judged from this scenario.
func (s *session) skipAll(reason evidence.SkipReason, detail string) {
	for _, r := range rules() {
		if r.id == s.id || r.use == s.id {
			s.rec.Skip(r.id, reason, detail)
		}
	}
}

// recordKillAfterAck kills the receiver as soon as a 2xx is read and starts it
// again on the same state.
func recordKillAfterAck(s *session) {
	d := s.event()
	draft, ok := s.draft(d)
	if !ok || !s.controlDraft(draft) {
		return
	}
	if err := s.Subject.Restart(s.ctx, true); err != nil {
		s.fail(fmt.Errorf("starting the receiver again after a kill: %w", err))
		return
	}
	if !s.observerBroken(killAfterAck, killAfterAck+".once") {
		s.count(killAfterAck, killedEvent, d.ID)
	}
}

// recordRemembers restarts the receiver without a kill between a delivery and
// its copy.
func recordRemembers(s *session) {
	d := s.event()
	draft, ok := s.draft(d)
	if !ok || !s.controlDraft(draft) {
		return
	}
	if s.observerBroken(remembers) {
		return
	}
	// Processed before the restart: otherwise a rerun after it would be right.
	if _, err := drive.AwaitProcessed(s.ctx, s.Clock, s.Subject, d.ID, 1, s.Bounds.Process); err != nil {
		s.rec.Break(remembers, fmt.Errorf("asking how often this was processed: %s: %w", rememberedEvent, err))
		return
	}
	if err := s.Subject.Restart(s.ctx, false); err != nil {
		s.fail(fmt.Errorf("restarting the receiver: %w", err))
		return
	}
	s.send("the copy after the restart", d, fp.At(time.Second))
	s.count(remembers, rememberedEvent, d.ID)
}

// Facts of the load.
const (
	factKilledAt = "killed at" // the acknowledgement, counted from 1
	factRetried  = "retried"   // deliveries that were sent again
)

// load is a run of deliveries during which the receiver is killed.
type load struct {
	*session
	events       []fp.Delivery
	acknowledged []atomic.Bool
	tries        []atomic.Int32
}

// recordKillUnderLoad delivers under load, kills the receiver at a random
// acknowledgement, starts it again and sends once more what was not
// acknowledged. Then every event is asked for.
func recordKillUnderLoad(s *session) {
	if !s.control() {
		return
	}
	l := &load{session: s, events: make([]fp.Delivery, loadDeliveries), acknowledged: make([]atomic.Bool, loadDeliveries), tries: make([]atomic.Int32, loadDeliveries)}
	for i := range l.events {
		l.events[i] = s.event()
	}
	// Not among the last: others are to be under way when it dies.
	at := int64(1 + s.random.Uint64()%(loadDeliveries-2*loadAtOnce))
	s.rec.Fact(factKilledAt, strconv.FormatInt(at, 10))
	l.deliver(at)
	for range loadTries {
		l.deliver(0)
	}
	retried, refused := 0, 0
	for i := range l.events {
		if l.tries[i].Load() > 1 {
			retried++
		}
		if !l.acknowledged[i].Load() {
			refused++
		}
	}
	s.rec.Fact(factRetried, strconv.Itoa(retried))
	if refused > 0 && !s.over() {
		s.fail(fmt.Errorf("%d of %d deliveries were not acknowledged in %d tries after the restart", refused, loadDeliveries, loadTries))
		return
	}
	l.count()
}

// deliver sends what is not acknowledged yet. At the acknowledgement numbered
// killAt the receiver is killed and started again; 0: never.
func (l *load) deliver(killAt int64) {
	var acks atomic.Int64
	var workers sync.WaitGroup
	next := make(chan int)
	for range loadAtOnce {
		workers.Go(func() {
			for i := range next {
				if x := l.one(i); x.OK() && acks.Add(1) == killAt {
					if err := l.Subject.Restart(l.ctx, true); err != nil {
						l.fail(fmt.Errorf("starting the receiver again after a kill: %w", err))
					}
				}
			}
		})
	}
	for i := range l.events {
		if !l.acknowledged[i].Load() {
			next <- i
		}
	}
	close(next)
	workers.Wait()
}

func (l *load) one(i int) wire.Exchange {
	draft, ok := l.draft(l.events[i])
	if !ok {
		return wire.Exchange{}
	}
	x := l.Provider.Send(l.ctx, l.target(), draft, fmt.Sprintf("delivery %d of %d, try %d", i+1, loadDeliveries, l.tries[i].Add(1)))
	if l.ctx.Err() == nil {
		l.rec.Add(x)
	}
	if x.OK() {
		l.acknowledged[i].Store(true)
	}
	return x
}

// count asks how often each event was processed.
func (l *load) count() {
	ids := make([]string, len(l.events))
	for i, d := range l.events {
		ids[i] = d.ID
	}
	l.tally(ids, killUnderLoad, killUnderLoad+".once")
}

// judgeLoad makes one finding of the ids in a fact.
func judgeLoad(fact, expected, got, cause string) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		ids := t.Facts[fact]
		if ids == "" {
			return nil
		}
		return []evidence.Finding{{
			Sent: fmt.Sprintf("%d deliveries, %d at a time, the receiver killed at acknowledgement %s, %s of them sent again",
				loadDeliveries, loadAtOnce, t.Facts[factKilledAt], t.Facts[factRetried]),
			Expected: expected, Got: got + ": " + ids, Cause: cause,
		}}
	}
}
