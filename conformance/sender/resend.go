package sender

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
)

const (
	sameMessage       = "sender.resend.same-message"
	scheduleUntouched = "sender.resend.schedule-untouched"
	resendRange       = "sender.resend.range"

	deliveredName = "delivered"
	failedName    = "failed"

	// resendAfter is how long after the first attempt a message is sent again by
	// hand: longer than a timestamp may be off.
	resendAfter = 10 * time.Second

	// rangeEvents fail before they are sent again at once.
	rangeEvents = 3

	// resentFact begins the name of a fact: "resent: NAME" is the sender's time
	// when the call began.
	resentFact = "resent: "
)

// sender.resend: again by hand, the same message.
func resendRules() []rule {
	return []rule{
		{id: sameMessage, record: recordSameMessage, judge: all(judgeResentDelivered, judgeResentFailed)},
		{id: scheduleUntouched, record: recordScheduleUntouched, judge: judgeScheduleUntouched},
		{id: resendRange, record: recordRange, judge: reportRange},
	}
}

// resend sends a message again by hand.
func (e *endpoint) resend(message string) {
	if e.unmade() {
		return
	}
	e.s.rec.Fact(resentFact+e.name, e.s.now().Format(time.RFC3339Nano))
	e.s.must(fmt.Sprintf("sending a message of the endpoint %q again", e.name), func(ctx context.Context) error {
		return e.s.Subject.Resend(ctx, message)
	})
}

func resentAt(t *evidence.Transcript, name string) (at time.Time, ok bool) {
	at, err := time.Parse(time.RFC3339Nano, t.Facts[resentFact+name])
	return at, err == nil
}

// exhaust publishes a message that fails as often as the schedule has attempts,
// and tells whether that came to pass.
func (e *endpoint) exhaust() (message string, ok bool) {
	message = e.publish()
	ok = e.await(e.s.Declared.attemptsAtMost(), e.s.horizon())
	e.s.until(e.s.aging()) // what comes next has another timestamp
	return message, ok
}

// failing is a script that answers as many errors as the schedule has attempts,
// and 200 from then on.
func (s *session) failing() string {
	return fmt.Sprintf("500*%d,200", s.Declared.attemptsAtMost())
}

// recordSameMessage sends a delivered and a failed message again.
func recordSameMessage(s *session) {
	delivered := s.endpoint(deliveredName, "200")
	s.rec.Control(deliveredName + " #1")
	message := delivered.publish()
	if !delivered.await(1, s.firstWithin()) {
		return
	}
	if message == "" {
		s.skip(sameMessage, evidence.NotObservable, "publishing returns no message id, so nothing can be named to be sent again")
		return
	}
	s.until(s.aging())
	delivered.resend(message)
	delivered.await(2, s.firstWithin())
	s.quiet(1)
	if !s.affords(s.horizon()) {
		return // the part about failed messages takes a schedule that can be waited for
	}
	failed := s.endpoint(failedName, s.failing())
	if message, ok := failed.exhaust(); ok {
		failed.resend(message)
		failed.await(s.Declared.attemptsAtMost()+1, s.firstWithin())
		s.quiet(1)
	}
}

// aging is how long a message waits until it is sent again: in real time just
// long enough for another timestamp.
func (s *session) aging() time.Duration {
	if s.virtual() {
		return resendAfter
	}
	return 2 * time.Second
}

func judgeResentDelivered(t *evidence.Transcript) []evidence.Finding {
	list := attempts(t, deliveredName)
	if _, ok := resentAt(t, deliveredName); !ok || len(list) == 0 {
		return nil
	}
	const sent = "a delivered message, sent again by hand"
	switch n := len(list) - 1; {
	case n == 0:
		return []evidence.Finding{finding(sent, "exactly one request more", "none came", "A delivered message counts as done, and the resend is refused in silence.", list...)}
	case n > 1:
		return append([]evidence.Finding{finding(sent, "exactly one request more", plural(n, "request")+" more",
			"The resend enters the whole schedule, and a success does not end it.", list...)}, resentAlike(t, sent, &list[0], &list[1])...)
	}
	return resentAlike(t, sent, &list[0], &list[1])
}

func judgeResentFailed(t *evidence.Transcript) []evidence.Finding {
	list := attempts(t, failedName)
	if _, ok := resentAt(t, failedName); !ok || len(list) == 0 {
		return nil
	}
	const sent = "a failed message, sent again by hand"
	n := declaredOf(t).attemptsAtMost()
	switch more := len(list) - n; {
	case more <= 0:
		return []evidence.Finding{finding(sent, "one request more", "none came", "The message has used up its attempts, and the resend does not lift that.", list[len(list)-1])}
	case more > 1:
		return append([]evidence.Finding{finding(sent, "one request more, which is answered 200", plural(more, "request")+" more",
			"A success of a resend does not end the message.", list[n:]...)}, resentAlike(t, sent, &list[0], &list[n])...)
	}
	if len(unlike(sent, list[:n])) > 0 {
		return nil // its automatic attempts differ already, which other rows tell
	}
	return resentAlike(t, sent, &list[0], &list[n])
}

// resentAlike compares the first request of a message with its resend.
func resentAlike(t *evidence.Transcript, sent string, first, again *attempt) []evidence.Finding {
	var findings []evidence.Finding
	wrong := func(expected, got, cause string) {
		findings = append(findings, finding(sent, expected, got, cause, *first, *again))
	}
	if again.ID != first.ID {
		wrong("the same id", fmt.Sprintf("%q instead of %q", cut(again.ID), cut(first.ID)), "The resend makes a new message of the event.")
	}
	if !sameBody(first, again) {
		wrong("the same bytes", "other bytes", "The payload is built again from the record as it is now, or a copy with another id or time is made.")
	}
	// By how much the timestamp went on beside the time itself: a sender whose
	// clock is wrong is told of elsewhere.
	f := readForm(t)
	before, _ := f.timestamp(first)
	after, _ := f.timestamp(again)
	if from, ok := f.instant(before); ok {
		if to, ok := f.instant(after); ok {
			passed := again.Began.Sub(first.Began)
			if old := passed - to.Sub(from); old.Abs() > clockError {
				wrong("the time of the resend as its timestamp", fmt.Sprintf("a timestamp that is %v old", shown(old)), "The headers of the first attempt are stored and sent again.")
			}
		}
	}
	if !again.verified() {
		got, cause := again.unverified()
		wrong("a signature that verifies", got, cause)
	}
	return findings
}

// factBehind is the number of the automatic attempt behind which a message was
// sent again by hand.
const factBehind = "resent behind attempt"

// resendBehind is the attempt behind which a message is sent again by hand: the
// first, so that most are still to come, and in real time the one before the
// longest wait, so that the attempt by hand stands apart from the next.
func (s *session) resendBehind() int {
	step := 1
	for n := range s.Declared.Schedule {
		if !s.virtual() && n > 0 && s.Declared.Schedule[n] > s.Declared.Schedule[step] {
			step = n
		}
	}
	return step
}

// recordScheduleUntouched sends a message again by hand between two of its
// attempts, to no avail.
func recordScheduleUntouched(s *session) {
	if len(s.Declared.Schedule) < 2 {
		s.skip(scheduleUntouched, evidence.NotApplicable, "the schedule has no retry")
		return
	}
	if !s.patient(s.horizon(), scheduleUntouched) {
		return
	}
	step := s.resendBehind()
	s.rec.Fact(factBehind, strconv.Itoa(step))
	e, alone := s.endpoint(failedName, "500"), s.endpoint(plainName, "500")
	message := e.publish()
	alone.publish()
	if !e.await(step, s.within(step)) {
		s.skip(scheduleUntouched, evidence.NotReached, "the message was not tried often enough to be sent again in between")
		return
	}
	low, _ := s.Declared.window(step)
	s.until(low / 3)
	e.resend(message)
	e.await(s.Declared.attemptsAtMost()+1, s.horizon())
	alone.await(s.Declared.attemptsAtMost(), s.horizon())
	s.settle()
}

func judgeScheduleUntouched(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	at, ok := resentAt(t, failedName)
	list := attemptsAround(t, failedName, at)
	if !ok || len(list) == 0 {
		return nil
	}
	step := numberFact(t, factBehind)
	if len(list) < step {
		return nil
	}
	const sent = "a message between two attempts, sent again by hand and failing"
	before := &list[step-1]
	low, _ := d.window(step)
	var manual *attempt
	var automatic []attempt
	for i := range list[step:] {
		a := &list[step+i]
		if manual == nil && !a.Began.Before(at) && gap(before, a) < low-early {
			manual = a
			continue
		}
		automatic = append(automatic, *a)
	}
	var findings []evidence.Finding
	if manual == nil {
		findings = append(findings, finding(sent, "a request at once", "none came before the next attempt was due", "The resend only makes the message due, and waits for the dispatcher or for its turn.", *before))
	}
	// Beside it, the same without a resend: a schedule that is wrong by itself is
	// told of elsewhere.
	alone := attempts(t, plainName)
	if want := d.attemptsAtMost() - step; len(automatic) != want && len(alone) == d.attemptsAtMost() {
		cause := "The attempt by hand counts as one of the schedule's."
		switch {
		case len(automatic) > want:
			cause = "The attempt by hand begins the schedule anew."
		case len(automatic) == 0:
			cause = "The attempt by hand takes the place of those that were to come."
		}
		findings = append(findings, finding(sent, plural(want, "automatic attempt")+" afterwards", came(len(automatic)), cause, list[step-1:]...))
	}
	if len(automatic) > 0 && len(alone) > step && d.misses(step, &alone[step-1], &alone[step]) == "" {
		if wrong := d.misses(step, before, &automatic[0]); wrong != "" {
			findings = append(findings, finding(sent, "the next attempt "+d.between(step)+" after the one before", wrong,
				"The attempt by hand sets the time of the next one.", *before, automatic[0]))
		}
	}
	return findings
}

// attemptsAround is attempts, with the first request behind an instant in any
// case: an attempt by hand may come so soon after an automatic one that both
// have one timestamp.
func attemptsAround(t *evidence.Transcript, name string, at time.Time) []attempt {
	list := requests(t, name)
	i := slices.IndexFunc(list, func(a attempt) bool { return !a.Began.Before(at) })
	out := attempts(t, name)
	if i < 0 || slices.ContainsFunc(out, func(a attempt) bool { return a.Label == list[i].Label }) {
		return out
	}
	j := slices.IndexFunc(out, func(a attempt) bool { return a.Number > list[i].Number })
	if j < 0 {
		j = len(out)
	}
	return slices.Insert(out, j, list[i])
}

// recordRange lets several messages fail and asks for all of them at once.
func recordRange(s *session) {
	if !s.patient(s.horizon(), resendRange) {
		return
	}
	e := s.endpoint(failedName, "500")
	since := s.now()
	for range rangeEvents {
		e.publish()
	}
	all := rangeEvents * s.Declared.attemptsAtMost()
	if !e.await(all, s.horizon()) {
		s.skip(resendRange, evidence.NotReached, "the messages did not use up their attempts")
		return
	}
	s.until(s.Declared.Granularity)
	e.setScript("200")
	before, _ := e.path.Count()
	err := s.call(func(ctx context.Context) error { return s.Subject.ResendFailed(ctx, e.id, since) })
	switch {
	case refused(err):
		s.rec.Fact(factRange, oneLine(err.Error()))
		return
	case err != nil:
		s.fail(fmt.Errorf("sending all failed messages again: %w", err))
		return
	}
	e.await(before+rangeEvents, s.firstWithin())
	after, _ := e.path.Count()
	s.rec.Fact(factRange, strconv.Itoa(after-before))
}

const factRange = "sent again" // how many, or why none

func reportRange(t *evidence.Transcript) []evidence.Finding {
	text, ok := t.Facts[factRange]
	if !ok {
		return nil
	}
	f := evidence.Finding{Sent: fmt.Sprintf("all failed messages of an endpoint, of which there are %d, again", rangeEvents), Got: text + " came"}
	if _, err := strconv.Atoi(text); err != nil {
		f.Got = "refused: " + text
	}
	return []evidence.Finding{f}
}
