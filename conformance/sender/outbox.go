package sender

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
)

const (
	survivesKill   = "sender.outbox.survives-kill"
	transactional  = "sender.outbox.transactional"
	committed      = "sender.outbox.transactional.committed"
	filterRow      = "sender.outbox.filter"
	fanOut         = "sender.outbox.fan-out"
	twoDispatchers = "sender.outbox.two-dispatchers"

	publishedName = "published" // killed as soon as publishing has returned
	inFlightName  = "in flight" // killed while the attempt waits for its answer
	waitingName   = "waiting"   // killed while a retry waits
	calmName      = "calm"      // retried without a kill

	// killedEvents are published in one go before the kill, so that some of them
	// have not begun and others are on their way.
	killedEvents = 5

	// recovery is how long after a restart a message may take on the sender's
	// clock: a claim of the dead process may have to run out first.
	recoveryVirtual = time.Hour
	recoveryReal    = time.Minute
)

// sender.outbox: what was published is delivered.
func outboxRules() []rule {
	return []rule{
		{id: survivesKill, record: recordSurvivesKill, judge: judgeSurvivesKill, kills: true},
		{id: transactional, record: recordTransactional, judge: judgeTransactional},
		{id: committed, record: recordCommitted, judge: judgeCommitted, kills: true},
		{id: filterRow, record: recordFilter, judge: judgeFilter},
		{id: fanOut, record: recordFanOut, judge: judgeFanOut},
		{id: twoDispatchers, record: recordTwoDispatchers, judge: judgeTwoDispatchers, twins: true},
	}
}

func (s *session) recovery() time.Duration {
	if s.virtual() {
		return recoveryVirtual
	}
	return recoveryReal
}

// kill ends the sender without a warning and starts it again.
func (s *session) kill() {
	if s.over() {
		return
	}
	if err := s.Subject.Restart(s.ctx, true); err != nil {
		s.fail(fmt.Errorf("starting the sender again after a kill: %w", err))
	}
}

// recordSurvivesKill kills the sender when one message's retry waits, another
// one's attempt is under way, and others were published just before.
func recordSurvivesKill(s *session) {
	if !s.control() {
		return
	}
	calm, waiting := s.endpoint(calmName, "500,200"), s.endpoint(waitingName, "500,200")
	flying, fresh := s.endpoint(inFlightName, "hang,200"), s.endpoint(publishedName, "200")
	retries := len(s.Declared.Schedule) > 1 && s.affords(s.within(2))
	if retries {
		calm.publish()
		calm.await(2, s.within(2))
		waiting.publish()
		waiting.await(1, s.firstWithin())
	}
	flying.publish()
	flying.awaitArrived(1, s.firstWithin())
	for range killedEvents {
		fresh.publish()
	}
	s.kill()
	within := s.recovery() + s.within(2)
	fresh.awaitMessages(killedEvents, within)
	flying.await(2, within)
	if retries {
		waiting.await(2, within)
	}
	s.quiet(2)
}

func judgeSurvivesKill(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	lost := len(published(t, publishedName)) - distinct(t, publishedName, requests(t, publishedName))
	if lost > 0 {
		findings = append(findings, finding(fmt.Sprintf("%s, and a kill as soon as publishing returned", plural(killedEvents, "event")), "all of them after the restart", plural(lost, "event")+" never came",
			"The queue is in memory, or publishing returns before its write is durable.", attempts(t, publishedName)...))
	}
	findings = append(findings, judgeInFlight(t)...)
	return append(findings, judgeWaiting(t)...)
}

func judgeInFlight(t *evidence.Transcript) []evidence.Finding {
	// All requests: the one after the restart may follow in the same second, and
	// is no repetition by a client, which has died.
	list := requests(t, inFlightName)
	const sent = "a message whose attempt was under way when the sender was killed"
	if len(list) == 0 {
		return nil // it was never under way; what was lost is told of the others
	}
	if len(list) < 2 {
		return []evidence.Finding{finding(sent, "another attempt after the restart", "none came", "The claim of the process that died is never released, or the message counted as sent when its attempt began.", list...)}
	}
	return unlikeByKill(t, sent, list)
}

func judgeWaiting(t *evidence.Transcript) []evidence.Finding {
	list := attempts(t, waitingName)
	const sent = "a message whose retry waited when the sender was killed"
	switch {
	case len(published(t, waitingName)) == 0 || len(list) == 0:
		return nil
	case len(list) == 1:
		return []evidence.Finding{finding(sent, "the retry after the restart", "none came", "Retries wait in timers of the process.", list...)}
	case len(list) > 2:
		return append(unlikeByKill(t, sent, list), finding(sent, "the retry exactly once", plural(len(list)-1, "request")+" came", "The message is taken up at the start and by the dispatcher, or its success is not stored.", list...))
	}
	return unlikeByKill(t, sent, list)
}

// unlike finds attempts that differ from the first in id or bytes.
func unlike(sent string, list []attempt) []evidence.Finding {
	var findings []evidence.Finding
	for i := range list[1:] {
		a := &list[i+1]
		if a.ID != list[0].ID {
			findings = append(findings, finding(sent, "the same id", fmt.Sprintf("%q instead of %q", cut(a.ID), cut(list[0].ID)), "The event is published again at the start, as a new message.", list[0], *a))
		}
		if !sameBody(&list[0], a) {
			findings = append(findings, finding(sent, "the same bytes", "other bytes", "The payload is built when it is sent.", list[0], *a))
		}
	}
	return findings
}

// unlikeByKill is unlike, where a retry without a kill is as it should be:
// otherwise that is what other rows tell.
func unlikeByKill(t *evidence.Transcript, sent string, list []attempt) []evidence.Finding {
	if calm := attempts(t, calmName); len(calm) > 1 && len(unlike(sent, calm)) > 0 {
		return nil
	}
	return unlike(sent, list)
}

// Transactions.

const (
	rolledBackName = "rolled back"
	committedName  = "committed"
)

// recordTransactional publishes in a transaction that is rolled back and in one
// that is committed.
func recordTransactional(s *session) {
	back, done := s.endpoint(rolledBackName, "200"), s.endpoint(committedName, "200")
	s.rec.Control(committedName + " #1")
	back.publishEvent(drive.Event{Payload: s.payload(back.eventType, back.label()), Transaction: "rollback"})
	done.publishEvent(drive.Event{Payload: s.payload(done.eventType, done.label()), Transaction: "commit"})
	done.await(1, s.firstWithin())
	s.settle()
}

func judgeTransactional(t *evidence.Transcript) []evidence.Finding {
	list := attempts(t, rolledBackName)
	if len(list) == 0 {
		return nil
	}
	return []evidence.Finding{finding("an event in a transaction that is rolled back", "no request", plural(len(list), "request"),
		"The message is handed to the dispatcher, or written over another connection, before the transaction ends.", list...)}
}

// recordCommitted kills the sender as soon as a transaction was committed.
func recordCommitted(s *session) {
	if !s.control() {
		return
	}
	// What is sent before the kill fails, so that no speed makes up for a loss.
	e := s.endpoint(committedName, fmt.Sprintf("500*%d,200", killedEvents))
	for range killedEvents {
		e.publishEvent(drive.Event{Payload: s.payload(e.eventType, e.label()), Transaction: "commit"})
	}
	s.kill()
	e.awaitDelivered(killedEvents, s.within(2)+s.recovery())
}

func judgeCommitted(t *evidence.Transcript) []evidence.Finding {
	list := requests(t, committedName)
	came := distinct(t, committedName, slices.DeleteFunc(slices.Clone(list), func(a attempt) bool { return !a.OK() }))
	if n := len(published(t, committedName)); came < n {
		return []evidence.Finding{finding(plural(n, "event")+" in committed transactions, and a kill immediately afterwards", "all of them after the restart", fmt.Sprintf("%d were delivered", came),
			"The message is handed over after the commit, and was not part of it.", list...)}
	}
	return nil
}

// distinct is how many messages are in a list of requests: by their ids where
// those are what publishing returned, and all of them where nobody can tell
// them apart.
func distinct(t *evidence.Transcript, name string, list []attempt) int {
	ids := map[string]bool{}
	for i := range list {
		ids[list[i].ID] = true
	}
	for _, p := range published(t, name) {
		if slices.ContainsFunc(p.IDs, func(id string) bool { return ids[id] }) {
			return len(ids)
		}
	}
	return len(list)
}

// Who gets an event.

// recordFilter makes endpoints whose types begin alike, and publishes each type
// for the endpoint that has it.
func recordFilter(s *session) {
	if known := s.Subject.About().EventTypes; len(known) > 0 && len(known) < 2 {
		s.skip(filterRow, evidence.NotObservable, "the sender knows one event type only")
		return
	}
	var made []*endpoint
	for _, f := range s.filters() {
		e := s.endpointFor(f.name, "200", func(spec *drive.EndpointSpec) { spec.EventTypes = f.types })
		made = append(made, e)
	}
	s.rec.Control(made[0].name + " #1")
	for _, e := range made {
		e.publish()
	}
	for _, e := range made {
		e.await(1, s.firstWithin())
	}
	s.settle()
}

// filtered is an endpoint with the types that it gets; the first one is
// published.
type filtered struct {
	name  string
	types []string
}

// filters are types of which one is the beginning of the others.
func (s *session) filters() []filtered {
	if known := s.Subject.About().EventTypes; len(known) > 0 {
		return []filtered{{"of " + known[0], known[:1]}, {"of " + known[1], known[1:2]}}
	}
	base := s.eventType(s.ledger.number())
	var out []filtered
	for _, t := range []string{base, base + "_item.created", base + ".created"} {
		out = append(out, filtered{"of " + t, []string{t}})
	}
	return append(out, filtered{"of two types", []string{base + ".shipped", base + ".returned"}})
}

func judgeFilter(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	var names []string
	for name := range t.Facts {
		if of, ok := strings.CutPrefix(name, publishedFact); ok {
			if of, n, ok := splitLabel(of); ok && n == 1 {
				names = append(names, of)
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		list := attempts(t, name)
		own := published(t, name)
		if len(list) < len(own) {
			findings = append(findings, finding(fmt.Sprintf("an event for the endpoint %q", name), plural(len(own), "request"), came(len(list)), "Types are compared as patterns or by a part, or an endpoint of several types gets the first of them only.", list...))
		}
		if len(list) > len(own) {
			findings = append(findings, finding(fmt.Sprintf("events of other types than those of the endpoint %q", name), "none of them at this endpoint", plural(len(list)-len(own), "request")+" too many",
				"Types are compared by their beginnings, or every endpoint gets everything.", list...))
		}
	}
	return findings
}

// recordFanOut publishes one event for two endpoints.
func recordFanOut(s *session) {
	shared := s.eventType(s.ledger.number())
	subscribe := func(spec *drive.EndpointSpec) { spec.EventTypes = []string{shared} }
	first, second := s.endpointFor("first", "200", subscribe), s.endpointFor("second", "200", subscribe)
	if first.unmade() || second.unmade() {
		return
	}
	first.publishEvent(drive.Event{Payload: s.payload(shared, s.id), EndpointIDs: []string{first.id, second.id}})
	for _, e := range []*endpoint{first, second} {
		e.await(1, s.firstWithin())
	}
	s.settle()
}

func judgeFanOut(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for _, name := range []string{"first", "second"} {
		list := attempts(t, name)
		const sent = "one event that two endpoints have subscribed to"
		if len(list) != 1 {
			cause := "One message is made an event instead of one an endpoint, and the first endpoint settles it."
			if len(list) > 1 {
				cause = "The event is published once for each endpoint to all of them."
			}
			findings = append(findings, finding(sent, fmt.Sprintf("one request at the endpoint %q", name), came(len(list)), cause, list...))
		}
		for i := range list {
			if !list[i].verified() {
				got, cause := list[i].unverified()
				findings = append(findings, finding(sent, "a signature by the secret of the endpoint that it goes to", got, cause, list[i]))
			}
		}
	}
	return findings
}

// Two dispatchers.

const (
	// twinEndpoints get twinEvents each, so that both processes have enough to
	// choose from in spite of limits for an endpoint.
	twinEndpoints, twinEvents = 6, 3
	// twinAnswer is how long an endpoint thinks, so that two requests for one
	// message are seen beside each other.
	twinAnswer = time.Second
)

// recordTwoDispatchers publishes to two processes on one outbox. All messages
// fail once, and their retries are due for both processes at nearly one moment.
func recordTwoDispatchers(s *session) {
	var made []*endpoint
	answer := min(twinAnswer, s.Declared.Timeout/3)
	retries := len(s.Declared.Schedule) > 1 && s.affords(s.within(2))
	script := fmt.Sprintf("slow(%v,200)", answer)
	if retries {
		script = fmt.Sprintf("slow(%v,500)*%d,slow(%v,200)", answer, twinEvents, answer)
	}
	for i := range twinEndpoints {
		made = append(made, s.endpoint(fmt.Sprintf("endpoint %d", i+1), script))
	}
	for range twinEvents {
		for _, e := range made {
			e.publish()
		}
	}
	want, within := twinEvents, s.within(1)+twinEvents*s.Declared.Timeout
	if retries {
		want, within = 2*twinEvents, s.within(2)+2*twinEvents*s.Declared.Timeout
	}
	for _, e := range made {
		if e.unmade() {
			return
		}
		s.await(within, func() bool { _, over := e.path.Count(); return over >= want || overrun(made, want) })
	}
	if !overrun(made, want) {
		s.settle()
	}
	if !s.known(made) {
		s.skip(twoDispatchers, evidence.NotObservable, "requests carry other ids than publishing returns, so nobody can tell messages apart")
	}
}

// known tells whether requests carry ids that publishing returned to this
// scenario. Where none came it cannot tell.
func (s *session) known(made []*endpoint) bool {
	some := false
	for _, e := range made {
		for _, a := range e.path.Attempts() {
			if some = true; s.ledger.own(s.id, a.ID) {
				return true
			}
		}
	}
	return !some
}

// overrun tells whether more requests are over at an endpoint than its messages
// can need: what there is to be seen has been seen then, and it may go on for
// ever.
func overrun(made []*endpoint, want int) bool {
	return slices.ContainsFunc(made, func(e *endpoint) bool {
		_, over := e.path.Count()
		return over > want
	})
}

func judgeTwoDispatchers(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	some := 0
	for _, name := range endpoints(t) {
		for _, list := range byMessage(requests(t, name)) {
			some += len(list)
			findings = append(findings, judgeTwins(list)...)
		}
	}
	if some == 0 {
		return []evidence.Finding{finding("events for two processes on one outbox", "requests", "none came", "")}
	}
	return findings
}

// judgeTwins expects the attempts of one message to follow each other, and to
// end with a success.
func judgeTwins(list []attempt) []evidence.Finding {
	const sent = "a message that two processes can see"
	for i := range list[1:] {
		before, a := &list[i], &list[i+1]
		switch {
		case a.Began.Before(before.Ended):
			return []evidence.Finding{finding(sent, "one attempt at a time", fmt.Sprintf("another one %v after the first began", shown(a.Began.Sub(before.Began))),
				"Both processes read the same due rows before either marks them.", *before, *a)}
		case before.OK():
			return []evidence.Finding{finding(sent, "no request after a success", "another one came", "One process does not see what the other has stored.", *before, *a)}
		}
	}
	return nil
}
