package sender

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
)

// Requirements whose scenario others use, or that scenarios skip by themselves.
const (
	retryOnStatus    = "sender.retry.on-failure-status"
	retryFinal       = "sender.retry.on-failure-status.final"
	retryOnTransport = "sender.retry.on-transport-failure"
	retryDNS         = "sender.retry.on-transport-failure.dns"
	retrySuccess     = "sender.retry.success-is-2xx"
	retryInterim     = "sender.retry.informational"
	retrySchedule    = "sender.retry.schedule"
	retryAttempts    = "sender.retry.attempts"
	retryMarked      = "sender.retry.attempts.marked-failed"
	retrySpans       = "sender.retry.spans-days"
	retryJitter      = "sender.retry.jitter"
	retryMutate      = "sender.retry.same-bytes-after-change"
	retryFreshSign   = "sender.retry.fresh-signature"
	retryAlone       = "sender.retry.alone"
	retryThrottles   = "sender.retry.throttles"
	retryRepeats     = "sender.retry.transport-duplicate"
)

// retryRules is sender.retry.*. Most of them are judged from one message that
// always fails and is watched beyond the end of its schedule; see
// recordSchedule.
func retryRules() []rule {
	return []rule{
		{id: retryOnStatus, record: recordFailureStatuses, judge: judgeFailureStatuses, alone: true}, // hundreds of endpoints
		{id: retryFinal, use: retryOnStatus, judge: judgeFinalStatuses},
		{id: retryOnTransport, record: recordTransportFailures, judge: judgeTransportFailures},
		{id: retryDNS, record: recordVanishedName, judge: judgeVanishedName},
		{id: retrySuccess, record: recordSuccesses, judge: judgeSuccesses},
		{id: retryInterim, record: recordInterim, judge: judgeInterim},
		{id: retrySchedule, record: recordSchedule, judge: judgeSchedule, alone: true},
		{id: retryAttempts, use: retrySchedule, judge: judgeAttempts},
		{id: retryMarked, use: retrySchedule, judge: judgeMarkedFailed},
		{id: retrySpans, record: recordDefaultSchedule, judge: judgeSpansDays},
		{id: retryJitter, record: recordJitter, judge: judgeJitter},
		{id: "sender.retry.same-id", use: retrySchedule, judge: judgeSameID},
		{id: "sender.retry.same-bytes", use: retrySchedule, judge: judgeSameBytes("It is serialised again for each attempt: the order of a map, a number's format or the present time changes from one to the next.")},
		{id: retryMutate, record: recordMutated, judge: judgeSameBytes("The payload is built from the record when it is sent, and the record has changed since.")},
		{id: "sender.retry.fresh-timestamp", use: retrySchedule, judge: judgeFreshTimestamp},
		{id: retryFreshSign, use: retrySchedule, judge: judgeFreshSignature},
		{id: "sender.retry.no-overlap", use: retrySchedule, judge: judgeNoOverlap},
		{id: retryAlone, record: recordAlone, judge: judgeAlone, alone: true},
		{id: retryThrottles, record: recordThrottles, judge: judgeThrottles, alone: true},
		{id: retryRepeats, record: recordRepeats, judge: judgeRepeats},
	}
}

// answering names the endpoint that answers with a status.
func answering(status int) string { return "answers " + strconv.Itoa(status) }

// failureStatuses are those after which a message is tried again: all that are
// neither a success nor 410.
func failureStatuses() []int {
	var out []int
	for status := 300; status <= 599; status++ {
		if status != 410 {
			out = append(out, status)
		}
	}
	return out
}

// commonStatuses are those that endpoints and what stands before them answer.
func commonStatuses() []int {
	return []int{300, 301, 302, 303, 304, 307, 308, 399, 400, 401, 403, 404, 408, 409, 422, 425, 429, 499, 500, 501, 502, 503, 504, 599}
}

// recordFailureStatuses has an endpoint for each status, which never answered
// otherwise before: some senders judge an endpoint by what it was. The retry is
// answered 200, so that it is the last.
func recordFailureStatuses(s *session) {
	if !s.affordsRetry(1, retryOnStatus) || !s.control() {
		return
	}
	statuses := failureStatuses()
	if s.Bounds.Sparse {
		statuses = slices.DeleteFunc(statuses, func(status int) bool { return !slices.Contains(commonStatuses(), status) })
	}
	all := make([]*endpoint, len(statuses))
	sideBySide(len(statuses), func(i int) {
		all[i] = s.endpoint(answering(statuses[i]), fmt.Sprintf("%d,200", statuses[i]))
		all[i].publish()
	})
	s.await(s.within(2), concluded(2, all...))
}

// transportProbe is an endpoint that fails in its own way, and then answers.
type transportProbe struct{ name, script string }

// transportProbes are the failures that show at the fake endpoint as an attempt.
// What is cut is an error's answer: of a 2xx the status may count alone, and a
// sender that does not wait for its body is right.
func transportProbes() []transportProbe {
	return []transportProbe{
		{"resets the connection", "reset,200"},
		{"closes without an answer", "close,200"},
		{"cuts its answer", "truncate(status=503),200"},
		{"cuts its answer in a chunk", "truncate(status=503,chunked),200"},
		{"answers what is not HTTP", "garbage,200"},
		{certificateProbe + "expired", "expired,200"},
		{certificateProbe + "for another host", "wrong-host,200"},
		{certificateProbe + "signed by itself", "self-signed,200"},
	}
}

const (
	certificateProbe = "shows a certificate that is "
	refusingProbe    = "refuses connections"
)

func recordTransportFailures(s *session) {
	if !s.affordsRetry(1, retryOnTransport) || !s.control() {
		return
	}
	var all []*endpoint
	for _, p := range transportProbes() {
		e := s.endpoint(p.name, p.script)
		e.publish()
		all = append(all, e)
	}
	refusing, n := s.recordRefused()
	s.await(s.within(2), concluded(2, all...))
	if refusing != nil {
		refusing.await(n+1, s.within(n+2))
	}
	s.noteDistrusted(all)
}

// distrustedFact begins the name of a fact: how many handshakes failed at an
// endpoint when it showed its good certificate. They are attempts of a sender
// that does not trust the run's authority.
const distrustedFact = "good certificate refused: "

func (s *session) noteDistrusted(all []*endpoint) {
	counts := map[string]int{}
	for _, stray := range s.Server.Strays() {
		counts[stray.Path]++
	}
	for _, e := range all {
		if e.path == nil || !strings.HasPrefix(e.name, certificateProbe) {
			continue
		}
		if n := counts[e.path.Name()]; n > 0 {
			s.rec.Fact(distrustedFact+e.name, strconv.Itoa(n))
		}
	}
}

// recordRefused makes an endpoint that fails, is then not there for as long as
// the next attempt takes to come, and answers after that. Nobody sees a
// connection that is refused: what shows is the attempt behind it. It has to
// come surely after the outage, so that it is not the refused one, late. n is
// how many attempts come before the outage; the result is nil where no step of
// the schedule is right for it.
func (s *session) recordRefused() (e *endpoint, n int) {
	d := s.Declared
	for n = 1; n+1 < d.attemptsAtMost(); n++ {
		low, high := d.window(n)
		next, _ := d.window(n + 1)
		outage := high + d.Granularity + 50*time.Millisecond
		if low+next <= outage {
			continue
		}
		if !s.affords(d.begins(n + 1)) {
			break
		}
		e = s.endpoint(refusingProbe, fmt.Sprintf("500*%d,refuse(%v),200", n, outage))
		e.publish()
		s.rec.Fact(refusedFact, strconv.Itoa(n))
		return e, n
	}
	return nil, 0
}

// refusedFact is how many attempts the endpoint that refuses connections
// answers first; absent where it was not tried.
const refusedFact = "answered before the outage"

// recordVanishedName has a name resolve, not resolve, and resolve again.
func recordVanishedName(s *session) {
	if s.Names == nil {
		s.skip(retryDNS, evidence.NotObservable, "the run has no name server of its own")
		return
	}
	if !s.affordsRetry(2, retryDNS) || !s.control() {
		return
	}
	s.Names.Set(vanishingName, s.fakeAddress())
	e, refusal := s.endpointNamed(hasName, "500(close),200", vanishingName)
	if refusal != nil {
		s.skip(retryDNS, evidence.NotObservable, "the sender refuses an endpoint at %s, which is among the hosts that it was told to allow: %v", vanishingName, refusal)
		return
	}
	e.publish()
	if !e.await(1, s.firstWithin()) {
		s.skip(retryDNS, evidence.NotObservable, "no event arrived at %s, which the run's name server leads to the fake endpoint: does the sender ask it (resolver)?", vanishingName)
		return
	}
	s.Names.Set(vanishingName) // the name has no address any more
	asked := s.Names.Asked(vanishingName)
	_, high := s.Declared.window(1)
	s.await(high+s.Bounds.First, func() bool {
		came, _ := e.path.Count()
		return came > 1 || s.Names.Asked(vanishingName) > asked
	})
	s.writtenDown()
	if came, _ := e.path.Count(); came > 1 || s.Names.Asked(vanishingName) == asked {
		s.skip(retryDNS, evidence.NotObservable, "the sender did not ask for the name again while it had no address: it remembers addresses, or keeps connections")
		return
	}
	s.Names.Set(vanishingName, s.fakeAddress())
	e.await(2, s.within(3))
}

// hasName is the endpoint whose host is a name.
const hasName = "has a name"

// recordSuccesses has an endpoint for each success. 204 has no body by HTTP's
// own rules.
func recordSuccesses(s *session) {
	if !s.affordsRetry(1, retrySuccess) || !s.control() {
		return
	}
	var all []*endpoint
	for _, status := range []int{200, 201, 202, 203, 204, 206, 299} {
		all = append(all, s.endpoint(answering(status)+" without a body", strconv.Itoa(status)))
		if status != 204 {
			all = append(all, s.endpoint(answering(status)+" with a body", fmt.Sprintf(`%d(body="not what you think")`, status)))
		}
	}
	for _, e := range all {
		e.publish()
	}
	s.await(s.firstWithin(), concluded(1, all...))
	s.quiet(1)
}

// interimProbe is an endpoint that sends 1xx answers first, and how many
// requests there are then.
type interimProbe struct {
	name, script string
	requests     int
}

func interimProbes() []interimProbe {
	return []interimProbe{
		{"sends 100, then 200", "100,200", 1},
		{"sends 103 with a link, then 200", `103(header="Link: </style.css>; rel=preload"),200`, 1},
		{"sends 100 three times, then 204", "100*3,204", 1},
		{"sends 103, then 500", "103,500,200", 2},
	}
}

func recordInterim(s *session) {
	if !s.affordsRetry(1, retryInterim) || !s.control() {
		return
	}
	var all []*endpoint
	for _, p := range interimProbes() {
		e := s.endpoint(p.name, p.script)
		e.publish()
		all = append(all, e)
	}
	s.await(s.firstWithin(), concluded(1, all...))
	s.quiet(1)
}

// Endpoints of the scenario of the schedule.
const (
	alwaysFails = "always answers 500"
	slowFails   = "answers 500 late" // every time
	lateFails   = "answers 500 late the first time"
)

// recordSchedule follows messages that always fail to the end of the schedule
// and beyond. One endpoint takes its time to answer: only there is a delay that
// counts from the beginning of an attempt, or from publishing, another than one
// that counts from its end.
func recordSchedule(s *session) {
	if !s.affordsRetry(1, retrySchedule) || !s.control() {
		return
	}
	d := s.Declared
	n := d.attemptsAtMost()
	whole := s.affords(d.begins(n) + time.Duration(n)*d.Timeout)
	if !whole {
		for n > 1 && !s.affords(d.begins(n-1)+time.Duration(n)*d.Timeout) {
			n--
		}
		for _, id := range []string{retryAttempts, retryMarked} {
			s.skip(id, evidence.NotObservable, "the schedule ends after %v, and the sender's clock cannot be moved; declare a shorter schedule for the run (retrySchedule, with defaultSchedule for the real one)", shown(d.begins(d.attemptsAtMost())))
		}
	}
	hold := scaled(d.Timeout, 0.9).Round(time.Millisecond)
	followed := []*endpoint{s.endpoint(alwaysFails, "500"), s.endpoint(slowFails, fmt.Sprintf("slow(%v,500)", hold))}
	for i := range s.lateOnes(hold) {
		followed = append(followed, s.endpoint(fmt.Sprintf("%s (%d)", lateFails, i+1), fmt.Sprintf("slow(%v,500),200", hold)))
	}
	ids := map[*endpoint]string{}
	for _, e := range followed {
		ids[e] = e.publish()
	}
	s.await(s.within(n), concluded(n, followed[:2]...))
	if whole {
		s.until(s.beyond())
		s.noteListed(followed[0], ids[followed[0]])
	}
	s.firstMustVerify(followed[0])
}

// lateOnes is how many endpoints have to answer late once, so that a sender
// that counts from the beginning of an attempt is early at one of them with a
// probability of 1 − 10⁻⁴: where the jitter is wider than an attempt may last,
// one of them says little.
func (s *session) lateOnes(hold time.Duration) int {
	d := s.Declared
	band := scaled(d.Schedule[1], d.JitterHigh-d.JitterLow)
	if hold >= band {
		return 0
	}
	miss := 1 - float64(hold)/float64(band)
	return min(int(math.Ceil(math.Log(1e-4)/math.Log(miss))), 50)
}

// beyond is how long a message is watched after its last attempt: a further
// one would come after the last delay, or twice it where delays grow.
func (s *session) beyond() time.Duration {
	d := s.Declared
	_, last := d.window(len(d.Schedule) - 1)
	if s.virtual() {
		return max(2*last, 48*time.Hour)
	}
	return min(2*last, patienceReal/2) + s.Bounds.Settle
}

// listedFact begins the name of a fact: as what the message of an endpoint is
// listed in the end: "pending", "delivered", "failed", or "nowhere".
const listedFact = "listed: "

// noteListed looks a message up in the sender's list.
func (s *session) noteListed(e *endpoint, id string) {
	if e.unmade() || !s.Offers(drive.List) {
		return
	}
	if id == "" { // publishing told none
		if attempts := e.path.Attempts(); len(attempts) > 0 {
			id = attempts[0].ID
		}
	}
	var list []drive.Message
	s.must("listing the messages of an endpoint", func(ctx context.Context) (err error) {
		list, err = s.Subject.Messages(ctx, drive.MessageFilter{EndpointID: e.id})
		return err
	})
	status := "nowhere"
	if i := slices.IndexFunc(list, func(m drive.Message) bool { return m.ID == id }); i >= 0 {
		status = list[i].Status
	}
	s.rec.Fact(listedFact+e.name, status)
}

// firstMustVerify skips the row about fresh signatures where not even the first
// attempt verifies: that is another row's matter.
func (s *session) firstMustVerify(e *endpoint) {
	if e.path == nil {
		return
	}
	if list := e.path.Attempts(); len(list) > 0 && !list[0].Verification.OK() {
		s.skip(retryFreshSign, evidence.NotReached, "the first attempt does not verify; see sender.signature.verifies")
	}
}

// recordDefaultSchedule records nothing but the declared numbers.
func recordDefaultSchedule(s *session) {
	short := s.Mode == Scaled || s.Subject.Has(drive.Schedule)
	if short && !s.Declared.declares(factDefault) {
		s.skip(retrySpans, evidence.NotObservable, "the schedule that is declared is the run's own; declare the one that the sender is shipped with as defaultSchedule")
	}
}

// recordMutated changes the record behind a message while its retry waits. Two
// more attempts are watched: the change may come too late for the first.
func recordMutated(s *session) {
	if !s.affordsRetry(1, retryMutate) {
		return
	}
	const name = "answers 500 twice"
	s.rec.Control(name + " #3") // without a retry there is nothing to compare
	e := s.endpoint(name, "500*2,200")
	id := e.publish()
	if !e.await(1, s.firstWithin()) {
		return
	}
	if id == "" {
		id = e.path.Attempts()[0].ID
	}
	if s.must("changing the record of a message", func(ctx context.Context) error { return s.Subject.Mutate(ctx, id) }) {
		e.await(3, s.within(3))
	}
}

// recordAlone publishes one event and nothing else, and waits. What was
// published before has ended: a retry that comes is the sender's own timer's.
func recordAlone(s *session) {
	if !s.affordsRetry(1, retryAlone) {
		return
	}
	e := s.endpoint(aloneName, "500,200")
	e.publish()
	if !e.await(1, s.firstWithin()) {
		s.skip(retryAlone, evidence.NotReached, "the event did not arrive at all")
		return
	}
	_, high := s.Declared.window(1)
	s.until(high)
	if came, _ := e.path.Count(); came > 1 {
		e.await(2, s.firstWithin())
		return
	}
	// Where it is late, does other traffic wake it?
	s.quiet(1)
	if came, _ := e.path.Count(); came == 1 {
		s.control()
		if e.await(2, s.firstWithin()) {
			s.rec.Fact(wokenFact, "yes")
		}
	}
}

const (
	aloneName = "fails once"
	wokenFact = "woken by another event"
)

// throttlePending is how many messages are pending when the endpoint says that
// it has too much to do.
const throttlePending = 50

// throttleStatuses say that an endpoint is overloaded.
func throttleStatuses() []int { return []int{429, 502, 504} }

// recordThrottles piles messages up at endpoints that are overloaded.
func recordThrottles(s *session) {
	if !s.control() {
		return
	}
	var all []*endpoint
	for _, status := range throttleStatuses() {
		e := s.endpoint(answering(status), strconv.Itoa(status))
		sideBySide(throttlePending, func(int) { e.publish() })
		all = append(all, e)
	}
	low, _ := s.Declared.window(min(1, s.Declared.attemptsAtMost()-1))
	s.await(min(s.firstWithin(), max(low, time.Second)), concluded(throttlePending, all...))
	for _, e := range all {
		e.remove() // a hundred and fifty retries would say nothing more
	}
}

// recordRepeats breaks connections that have served a request before: there
// some HTTP clients send again by themselves.
func recordRepeats(s *session) {
	if !s.control() {
		return
	}
	for _, how := range []string{"close", "reset"} {
		e := s.endpoint(repeatsName+how, "200,"+how+",200")
		e.publish()
		if !e.await(1, s.firstWithin()) {
			continue
		}
		e.publish()
		e.await(2, s.firstWithin())
	}
	s.settle()
}

// repeatsName begins the name of an endpoint that breaks kept connections.
const repeatsName = "ends a kept connection by "
