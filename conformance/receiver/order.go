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

const (
	doesNotRegress = "receiver.order.state-does-not-regress"
	asksProvider   = "receiver.order.asks-provider"

	lateSuccess  = "an earlier success that comes after the refund of a payment"
	refundFirst  = "the success of a payment of which the refund came first"
	wrongAmount  = "an event whose amount the provider's API contradicts"
	wrongOrder   = "an event whose reference the provider's API contradicts"
	slowProvider = "an event while the provider's API is slow"
)

// receiver.order: events come in any order, and say what was so when they were
// made.
func orderRules() []rule {
	const (
		arrival    = "The last event to arrive overwrites the state, whatever happened last. Retries and parallel delivery mix the order up every day."
		unasked    = "The event is believed because its signature is right. The signature tells who sent it, not that what it says is so."
		beforehand = "The provider is asked, or the answer compared, before the delivery is answered. Store the event, answer 2xx, and ask afterwards."
	)
	return []rule{
		{
			id: "receiver.order.accepts-out-of-order",
			record: func(s *session) {
				if !s.control() {
					return
				}
				earlier := s.event() // its payload tells the earlier time
				later := s.event()
				s.send("the later event first", later)
				s.send("the earlier event after it, a minute old", earlier, fp.Age(min(time.Minute, max(s.tolerance()/2, time.Second))))
			},
			judge: accepted("Events are taken only in the order in which they happened. Retries and parallel delivery mix them up every day."),
		},
		{
			id:     doesNotRegress,
			record: recordRegress,
			judge: all(
				stateKept(lateSuccess, "the state stays as the refund left it", arrival),
				stateKept(refundFirst, "the state stays as the refund left it", arrival)),
		},
		{
			// Alone: the API is slow for whatever is asked meanwhile.
			id: asksProvider, alone: true,
			record: recordAsksProvider,
			judge: all(
				but(copiesAccepted(beforehand), slowProvider),
				only(promptly(beforehand), slowProvider),
				stateKept(wrongAmount, "the state stays as it was", unasked),
				stateKept(wrongOrder, "the state stays as it was", unasked)),
		},
	}
}

// promptly expects a 2xx within the bound for a fast answer.
func promptly(cause string) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		limit := fastFact(t)
		return each(fmt.Sprintf("2xx within %v", limit), func(_ *evidence.Transcript, x *wire.Exchange) (string, string) {
			if x.OK() && x.Took <= limit {
				return "", ""
			}
			return fmt.Sprintf("%s after %v", suite.Came(x), x.Took.Round(time.Millisecond)), cause
		})(t)
	}
}

// recordRegress lets a payment succeed and be refunded, then sends a success
// that happened before the refund; and likewise for a payment that the receiver
// hears of by its refund. Whether the receiver has states at all, and which, the
// first two events show.
func recordRegress(s *session) {
	r := s.newRecord(doesNotRegress)
	if r == nil {
		return
	}
	earlier, later := s.Event.steps()
	now := s.Clock.Now()
	first := r.event(earlier, now.Add(-3*time.Minute))
	before, err := s.state(first.ID, r)
	if s.stateBroken(doesNotRegress, err) {
		return
	}
	r.agree(first)
	draft, ok := s.draft(first)
	if !ok || !s.controlDraft(draft) {
		return
	}
	succeeded, took, err := s.awaitState(first.ID, r, s.Bounds.Process, before)
	if s.stateBroken(doesNotRegress, err) || s.unmoved(doesNotRegress, earlier, succeeded, before) {
		return
	}
	second := r.event(later, now.Add(-time.Minute))
	r.agree(second)
	if x := s.send("control: the refund", second); !x.OK() {
		s.skip(doesNotRegress, evidence.NotObservable, "the event %s was not accepted, so there is no refund that could be undone", later)
		return
	}
	refunded, slower, err := s.awaitState(second.ID, r, s.Bounds.Process, before, succeeded)
	if s.stateBroken(doesNotRegress, err) || s.unmoved(doesNotRegress, later, refunded, before, succeeded) {
		return
	}
	took = max(took, slower)

	var watching sync.WaitGroup
	watching.Go(func() { s.refundFirst(earlier, later, refunded, took) })
	// Another event than the first, which would be its copy.
	late := r.event(earlier, now.Add(-2*time.Minute))
	s.send("control: "+lateSuccess, late)
	s.watchLate(lateSuccess, late.ID, r, refunded, took)
	watching.Wait()
}

// refundFirst sends the two events about a payment in the wrong order. A
// receiver that keeps a refund back until it has heard of the payment is right,
// too: there is nothing to watch then.
func (s *session) refundFirst(earlier, later, refunded string, took time.Duration) {
	r := s.newRecord(doesNotRegress)
	if r == nil {
		return
	}
	now := s.Clock.Now()
	first := r.event(later, now.Add(-time.Minute))
	r.agree(first)
	if x := s.send("control: a refund of a payment that no event spoke of", first); !x.OK() {
		return
	}
	state, err := s.watchState(first.ID, r, now.Add(s.patience(took)), func(state string) bool { return state == refunded })
	if s.stateBroken(doesNotRegress, err) || state != refunded {
		return
	}
	late := r.event(earlier, now.Add(-2*time.Minute))
	s.send("control: "+refundFirst, late)
	s.watchLate(refundFirst, late.ID, r, refunded, took)
}

// watchLate watches what a late event makes of a record.
func (s *session) watchLate(what, event string, r *record, refunded string, took time.Duration) {
	state, err := s.keeps(event, r, refunded, took)
	if !s.stateBroken(doesNotRegress, err) && !s.over() {
		s.noteState(what, refunded, state)
	}
}

// unmoved skips a requirement where an event did not bring the state that it has
// to bring: it shows nothing of the order then.
func (s *session) unmoved(id, eventType, state string, others ...string) bool {
	for _, other := range others {
		if state == other {
			s.skip(id, evidence.NotObservable, "after an event of the type %s the record's state is %s, as it was before one: give events that the receiver acts on by --payload and --event-type", eventType, stateWord(state))
			return true
		}
	}
	return false
}

// agree lets the provider's API, where there is one, say what an event says.
func (r *record) agree(d fp.Delivery) {
	api := r.Subject.Provider()
	if api == nil {
		return
	}
	if p, ok := r.payment(d); ok {
		r.fail(api.Set(p))
	}
}

// recordAsksProvider sends events that the provider's API contradicts, and one
// while it is slow. That a state changes at all is shown by an event that it
// confirms.
func recordAsksProvider(s *session) {
	api := s.Subject.Provider()
	confirmed := s.newRecord(asksProvider)
	if confirmed == nil || api == nil {
		return
	}
	eventType, _ := s.Event.steps()
	d := confirmed.event(eventType, s.Clock.Now())
	if _, ok := confirmed.payment(d); !ok {
		s.skip(asksProvider, evidence.NotObservable, "the payload tells no amount that the provider's API could contradict: a whole number in a member amount")
		return
	}
	before, err := s.state(d.ID, confirmed)
	if s.stateBroken(asksProvider, err) {
		return
	}
	confirmed.agree(d)
	draft, ok := s.draft(d)
	if !ok || !s.controlDraft(draft) {
		return
	}
	state, took, err := s.awaitState(d.ID, confirmed, s.Bounds.Process, before)
	if s.stateBroken(asksProvider, err) || s.unmoved(asksProvider, eventType, state, before) {
		return
	}
	var watching sync.WaitGroup
	watching.Go(func() { s.contradict(api, wrongAmount, eventType, took, func(p *fp.Payment) { p.Amount += 1000 }) })
	watching.Go(func() {
		s.contradict(api, wrongOrder, eventType, took, func(p *fp.Payment) { p.Reference += "-another" })
	})
	watching.Wait()
	s.whileSlow(api, eventType)
}

// contradict sends an event about a payment of which the API says otherwise. An
// event without a reference has none to contradict.
func (s *session) contradict(api *fp.API, what, eventType string, took time.Duration, change func(*fp.Payment)) {
	r := s.newRecord(asksProvider)
	if r == nil {
		return
	}
	d := r.event(eventType, s.Clock.Now())
	p, _ := r.payment(d)
	if what == wrongOrder && p.Reference == "" {
		return
	}
	change(&p)
	s.fail(api.Set(p))
	before, err := s.state(d.ID, r)
	if s.stateBroken(asksProvider, err) {
		return
	}
	if x := s.send(what, d); !x.OK() {
		return // told by the answer
	}
	state, err := s.keeps(d.ID, r, before, took)
	if !s.stateBroken(asksProvider, err) && !s.over() {
		s.noteState(what, before, state)
	}
}

// whileSlow sends an event while the API takes its time. Whoever asks has his
// answer later; the delivery has to be answered at once.
func (s *session) whileSlow(api *fp.API, eventType string) {
	r := s.newRecord(asksProvider)
	if r == nil {
		return
	}
	d := r.event(eventType, s.Clock.Now())
	r.agree(d)
	api.SetDelay(s.Bounds.ProviderDelay)
	defer api.SetDelay(0)
	s.send(fmt.Sprintf("%s: it takes %v to answer", slowProvider, s.Bounds.ProviderDelay), d)
}
