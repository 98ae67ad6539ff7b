package sender

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
)

const (
	attemptsRecorded = "sender.log.attempts-recorded"
	failedList       = "sender.log.failed-list"
	failedKept       = "sender.log.failed-list.kept"

	loggedName = "logged"

	// errorBody is what the first attempt is answered, to be found in the log.
	errorBody = "whconform: this error is to be found in the log"
	// logSlack is how far a logged time or duration may be from what the endpoint
	// saw: logs keep whole seconds, and real clocks are read at other moments.
	logSlack = time.Second

	// keptAtLeast is how long a failed message stays listed. source: P.
	keptAtLeast = 30 * 24 * time.Hour
)

// sender.log: what happened to a message can be looked up.
func logRules() []rule {
	return []rule{
		{id: attemptsRecorded, record: recordLog, judge: judgeLog},
		{id: failedList, record: recordFailedList, judge: judgeFailedList},
		{id: failedKept, record: recordFailedKept, judge: judgeFailedKept},
	}
}

// slowAnswer is how long the third attempt is kept waiting: seconds in virtual
// time, and in real time enough to be told from none.
func (s *session) slowAnswer() time.Duration {
	if s.virtual() {
		return min(3*time.Second, s.Declared.Timeout/2)
	}
	return min(500*time.Millisecond, s.Declared.Timeout/2)
}

// recordLog lets a message meet an error, a closed connection, a slow error and
// a success, as far as the schedule goes and can be waited for.
func recordLog(s *session) {
	steps := []string{fmt.Sprintf("500(body=%q)", errorBody), "close", fmt.Sprintf("slow(%v,503)", s.slowAnswer()), "200"}
	n := min(len(steps), s.Declared.attemptsAtMost())
	for n > 1 && !s.affords(s.within(n)) {
		n--
	}
	e := s.endpoint(loggedName, strings.Join(steps[:n], ","))
	message := e.publish()
	if !e.await(n, s.within(n)) {
		return // what has come is in the log all the same
	}
	s.until(s.Declared.Granularity)
	if s.over() {
		return
	}
	s.recordAttempts(loggedName, message)
}

// logFact begins the name of a fact: "log: NAME" is the delivery log of an
// endpoint's message, as JSON.
const logFact = "log: "

// logged is a line of a delivery log in a transcript.
type logged struct {
	At       time.Time     `json:"at"`
	Status   int           `json:"status,omitempty"`
	Error    string        `json:"error,omitempty"`
	Duration time.Duration `json:"duration"`       // nanoseconds
	Body     string        `json:"body,omitempty"` // the beginning of it
	Size     int           `json:"size,omitempty"` // bytes of the whole body in the log
}

// logBodyShown is how much of a logged body a transcript keeps.
const logBodyShown = 256

// recordAttempts records the delivery log of a message.
func (s *session) recordAttempts(name, message string) {
	var lines []drive.LoggedAttempt
	if !s.must("reading the delivery log of a message", func(ctx context.Context) (err error) {
		lines, err = s.Subject.Attempts(ctx, message)
		return err
	}) {
		return
	}
	out := make([]logged, len(lines))
	for i, l := range lines {
		out[i] = logged{At: l.At, Status: l.Status, Error: oneLine(l.Error), Duration: l.Duration, Body: l.Body, Size: len(l.Body)}
		if len(l.Body) > logBodyShown {
			out[i].Body = strings.ToValidUTF8(l.Body[:logBodyShown], "")
		}
	}
	text, err := json.Marshal(out)
	s.fail(err)
	s.rec.Fact(logFact+name, string(text))
}

// readLog is the delivery log in a transcript; ok is false where none was read.
func readLog(t *evidence.Transcript, name string) (lines []logged, ok bool) {
	text, ok := t.Facts[logFact+name]
	if !ok {
		return nil, false
	}
	if err := json.Unmarshal([]byte(text), &lines); err != nil {
		panic(fmt.Sprintf("the delivery log of %q in the transcript cannot be read: %v", name, err))
	}
	return lines, true
}

// judgeLog compares the log with what the endpoint saw, line by line.
func judgeLog(t *evidence.Transcript) []evidence.Finding {
	seen := attempts(t, loggedName)
	lines, ok := readLog(t, loggedName)
	if !ok || len(seen) == 0 {
		return []evidence.Finding{finding("a message that meets errors", "attempts, and a log of them", came(len(seen))+", and there is no log", "", seen...)}
	}
	if len(lines) != len(seen) {
		return []evidence.Finding{finding(fmt.Sprintf("a message with %s", plural(len(seen), "attempt")), "a line in the log for each", plural(len(lines), "line"),
			missingLines(seen, lines), seen...)}
	}
	if lines[0].At.After(lines[len(lines)-1].At) { // the newest first, against the protocol's wish
		slices.Reverse(lines)
	}
	slack := logSlack + declaredOf(t).Granularity
	var findings []evidence.Finding
	for i := range seen {
		findings = append(findings, judgeLine(&seen[i], &lines[i], slack)...)
	}
	return findings
}

func missingLines(seen []attempt, lines []logged) string {
	answered := 0
	for i := range seen {
		if seen[i].Response != nil {
			answered++
		}
	}
	switch {
	case len(lines) == answered && answered < len(seen):
		return "Attempts without an answer are not recorded."
	case len(lines) == 1:
		return "The log keeps the last attempt of a message only."
	case len(lines) < len(seen):
		return "A line is written for some outcomes of an attempt only."
	}
	return "A line is written when an attempt begins and another one when it ends."
}

// judgeLine compares one line of the log with the attempt that it is about.
func judgeLine(a *attempt, l *logged, slack time.Duration) []evidence.Finding {
	var findings []evidence.Finding
	wrong := func(expected, got, cause string) {
		findings = append(findings, finding(fmt.Sprintf("attempt %d of a message", a.Number), expected, got, cause, *a))
	}
	status := 0
	if a.Response != nil {
		status = a.Response.Status
	}
	switch {
	case status != 0 && l.Status != status:
		wrong(fmt.Sprintf("the status %d in the log", status), fmt.Sprintf("%d", l.Status), "")
	case status == 0 && l.Status != 0:
		wrong("no status in the log, as no answer came", fmt.Sprintf("%d", l.Status), "The status of another attempt, or one made up by the client, is written down.")
	case status == 0 && strings.TrimSpace(l.Error) == "":
		wrong("an error in the log, as no answer came", "none", "The client's error is dropped.")
	}
	if off := l.At.Sub(a.Began).Abs(); off > slack {
		wrong("the time of the attempt in the log: "+a.Began.UTC().Format(time.RFC3339), l.At.UTC().Format(time.RFC3339), "The time of the event or of the message's first attempt is written down, or local time without its offset.")
	}
	if took := a.Ended.Sub(a.Began); (l.Duration - took).Abs() > slack {
		wrong(fmt.Sprintf("a duration of %v in the log", shown(took)), shown(l.Duration).String(), "The duration is in another unit, or measured around something else.")
	}
	if a.Response != nil && status >= 300 && len(a.Response.Body) > 0 && !strings.HasPrefix(l.Body, string(a.Response.Body[:min(len(a.Response.Body), len(errorBody)/2)])) {
		wrong("the start of the error's body in the log", fmt.Sprintf("%q", cut(l.Body)), "The body is read only after a success, or closed before it is read.")
	}
	return findings
}

// Lists.

// inListFact begins the name of a fact: "in list: STATUS NAME" are the ids of the
// messages that are listed by a status at an endpoint.
const inListFact = "in list: "

func (e *endpoint) recordList(status string) {
	if e.unmade() {
		return
	}
	if ids := e.s.listed(e, status); !e.s.over() {
		e.s.rec.Fact(inListFact+status+" "+e.name, strings.Join(ids, " "))
	}
}

// recordFailedList lets one message fail and another one be delivered, each at
// an endpoint of its own, and lists both.
func recordFailedList(s *session) {
	if !s.patient(s.horizon(), failedList) {
		return
	}
	failed, delivered := s.endpoint(failedName, "500"), s.endpoint(deliveredName, "200")
	s.rec.Control(deliveredName + " #1")
	delivered.publish()
	message, ok := failed.exhaust()
	if s.over() {
		return
	}
	switch {
	case !ok:
		s.skip(failedList, evidence.NotReached, "the message was tried less often than the schedule says; see sender.retry.attempts")
		return
	case message == "":
		s.skip(failedList, evidence.NotObservable, "publishing returns no message id, so nothing can be looked for in a list")
		return
	}
	if slices.Contains(s.listed(failed, "pending"), message) {
		s.skip(failedList, evidence.NotReached, "the message is pending still after the last attempt; see sender.retry.attempts.marked-failed")
		return
	}
	for _, e := range []*endpoint{failed, delivered} {
		e.recordList("failed")
	}
	delivered.recordList("delivered")
}

func judgeFailedList(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	missing := func(status, name, cause string) {
		ids := published(t, name)
		if len(ids) == 0 || len(ids[0].IDs) == 0 {
			return
		}
		if !slices.Contains(t.SplitFact(inListFact+status+" "+name), ids[0].IDs[0]) {
			findings = append(findings, finding("listing the "+status+" messages of the endpoint of a "+status+" message", "the message", plural(len(t.SplitFact(inListFact+status+" "+name)), "other message"), cause, attempts(t, name)...))
		}
	}
	missing("failed", failedName, "The message is deleted after its last attempt, or stays pending.")
	missing("delivered", deliveredName, "Delivered messages are deleted at once, or the filter looks at something else.")
	if list := t.SplitFact(inListFact + "failed " + deliveredName); len(list) > 0 {
		findings = append(findings, evidence.Finding{
			Sent: "listing the failed messages of an endpoint where none has failed", Expected: "none", Got: plural(len(list), "message"),
			Cause: "The list does not look at the endpoint, or not at the status.",
		})
	}
	return findings
}

// recordFailedKept looks for a failed message when it is just still to be
// there.
func recordFailedKept(s *session) {
	kept := keptAtLeast
	if s.Declared.declares(factFailedKept) {
		kept = max(kept, s.Declared.FailedKept)
	}
	if !s.patient(s.horizon()+kept, failedKept) {
		return
	}
	e := s.endpoint(failedName, "500")
	message, ok := e.exhaust()
	if s.over() {
		return
	}
	e.recordList("failed")
	switch {
	case !ok:
		s.skip(failedKept, evidence.NotReached, "the message was tried less often than the schedule says; see sender.retry.attempts")
		return
	case message == "":
		s.skip(failedKept, evidence.NotObservable, "publishing returns no message id, so nothing can be looked for in a list")
		return
	case !slices.Contains(s.listed(e, "failed"), message):
		s.skip(failedKept, evidence.NotReached, "the message is not listed as failed in the first place; see %s", failedList)
		return
	}
	s.until(kept - time.Hour)
	s.rec.Fact(factKept, kept.String())
	e.recordList("failed")
}

const factKept = "looked for after" // how long a failed message is to be kept

// listed are the messages of an endpoint by status, at present.
func (s *session) listed(e *endpoint, status string) []string {
	var ids []string
	s.must("listing messages", func(ctx context.Context) error {
		list, err := s.Subject.Messages(ctx, drive.MessageFilter{Status: status, EndpointID: e.id})
		for _, m := range list {
			ids = append(ids, m.ID)
		}
		return err
	})
	return ids
}

func judgeFailedKept(t *evidence.Transcript) []evidence.Finding {
	p := published(t, failedName)
	if len(p) == 0 || len(p[0].IDs) == 0 || slices.Contains(t.SplitFact(inListFact+"failed "+failedName), p[0].IDs[0]) {
		return nil
	}
	return []evidence.Finding{finding("listing the failed messages an hour before "+days(durationFact(t, factKept))+" are over", "the message that failed then", "it is gone",
		"The job that deletes old messages counts from publishing, or treats failed ones like delivered ones.", attempts(t, failedName)...)}
}

func days(d time.Duration) string { return plural(int(d/(24*time.Hour)), "day") }
