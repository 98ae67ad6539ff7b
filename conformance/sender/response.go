package sender

import (
	"fmt"
	"strings"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

const (
	responseHuge    = "sender.response.huge-body"
	responseHeaders = "sender.response.endless-headers"
	responseTrickle = "sender.response.trickle-after-2xx"
	responseStored  = "sender.response.not-stored-whole"
)

func responseRules() []rule {
	return []rule{
		{id: responseHuge, record: recordHuge, judge: judgeHuge, holds: true},
		{id: responseHeaders, record: recordEndlessHeaders, judge: judgeEndlessHeaders},
		{id: responseTrickle, record: recordTrickle, judge: judgeTrickle, holds: true},
		{id: responseStored, record: recordStored, judge: judgeStored},
	}
}

// hugeProbe is an endpoint with a body of 1 GiB.
type hugeProbe struct {
	form, step string
	packed     bool // it expands to that
}

func hugeProbes() []hugeProbe {
	return []hugeProbe{
		{"a body of 1 GiB", "huge(1GiB", false},
		{"a body of 1 GiB in chunks", "huge(1GiB,chunked", false},
		{"a gzip body that expands to 1 GiB", "gzip-bomb(1GiB", true},
	}
}

func (p hugeProbe) name(status int) string { return fmt.Sprintf("answers %d with %s", status, p.form) }

// recordHuge has an endpoint for each form, on a success and on an error. What
// follows is a plain 200, so that a retry ends.
func recordHuge(s *session) {
	if !s.affordsRetry(1, responseHuge) || !s.control() {
		return
	}
	var all, failing []*endpoint
	for _, p := range hugeProbes() {
		for _, status := range []int{200, 500} {
			step := p.step
			if s.Bounds.Sparse {
				step = strings.Replace(step, "1GiB", "64MiB", 1) // still far above what is judged
			}
			e := s.endpoint(p.name(status), fmt.Sprintf("%s,status=%d),200", step, status))
			e.publish()
			all = append(all, e)
			if status == 500 {
				failing = append(failing, e)
			}
		}
	}
	s.await(s.within(1), concluded(1, all...))
	s.await(s.within(2), concluded(2, failing...))
	s.quiet(1)
}

// hugeRead is what a sender may have read of a huge body, 8 MiB: a limit of a
// KiB shows as some hundred, by what the kernels of both sides hold.
const hugeRead = 8 << 20

// judgeHuge looks at how much of each body went over the wire. One that expands
// is a megabyte on the wire: that it was taken whole says something only of a
// client that asked for gzip, and so unpacks it.
func judgeHuge(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for _, p := range hugeProbes() {
		for _, status := range []int{200, 500} {
			name := p.name(status)
			got := attempts(t, name)
			sent := "an event for an endpoint that " + name
			if len(got) == 0 {
				if unfinished(t, name) > 0 {
					findings = append(findings, finding(sent, "an attempt that ends", "it was still reading at the end of the scenario", "The body is read without a limit."))
				}
				continue
			}
			findings = append(findings, judgeRead(sent, p, &got[0])...)
			switch {
			case status == 200 && len(got) > 1:
				findings = append(findings, finding(sent, "no other attempt: the status is a success", plural(len(got), "request")+" came",
					"The body's size, or the error of reading it, makes the attempt a failure.", got...))
			case status == 500 && len(got) == 1:
				findings = append(findings, finding(sent, "another attempt", "none came", "The error of reading the body is not caught, or the process has ended over it.", got...))
			}
		}
	}
	return append(findings, judgeUnserved(t, "an attempt at each endpoint, whatever the others answer")...)
}

func judgeRead(sent string, p hugeProbe, a *attempt) []evidence.Finding {
	expected := "the beginning of the body is read, and the connection ends"
	if a.Written > hugeRead {
		return []evidence.Finding{finding(sent, expected, fmt.Sprintf("%d MiB of it were read", a.Written>>20), "The body is read whole, without a limit.", *a)}
	}
	accepts, _ := wire.Get(a.Request.Headers, "Accept-Encoding")
	if p.packed && a.Peer == "" && a.Fault == "" && strings.Contains(strings.ToLower(accepts), "gzip") {
		return []evidence.Finding{finding(sent, expected, fmt.Sprintf("all of it was read, %d KiB that expand to 1 GiB, by a client that asks for gzip", a.Written>>10),
			"The client unpacks by itself, and the limit counts what was packed, or there is none.", *a)}
	}
	return nil
}

// recordEndlessHeaders ends with an event for a healthy endpoint: the sender
// lives.
func recordEndlessHeaders(s *session) {
	if !s.affordsRetry(1, responseHeaders) {
		return
	}
	const control = "answers 200 before"
	before := s.endpoint(control, "200")
	s.rec.Control(control + " #1")
	before.publish()
	if !before.await(1, s.firstWithin()) {
		return
	}
	var all []*endpoint
	for _, p := range headerProbes() {
		e := s.endpoint(p.name, p.script)
		e.publish()
		all = append(all, e)
	}
	s.await(s.within(1), concluded(1, all...))
	after := s.endpoint(aliveName, "200")
	after.publish()
	s.await(s.within(2), concluded(2, all...))
	after.await(1, s.firstWithin())
}

const aliveName = "answers 200 after"

func headerProbes() []transportProbe {
	return []transportProbe{
		{"answers 200 with 16 MiB of header lines", "headers(16MiB),200"},
		{"answers 200 with a header line of 16 MiB", "headers(16MiB,one-line),200"},
	}
}

func judgeEndlessHeaders(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for _, p := range headerProbes() {
		got := attempts(t, p.name)
		if len(got) != 1 {
			continue
		}
		what, cause := "none came", "The error of the client is not caught, or the process has ended over it."
		if got[0].Response != nil {
			what, cause = fmt.Sprintf("none came: all of %d MiB was read and taken for a success", got[0].Written>>20), "The client's limit for headers is off, or far above what any server sends."
		}
		findings = append(findings, finding("an event for an endpoint that "+p.name, "a failure, and another attempt", what, cause, got...))
	}
	if len(attempts(t, aliveName)) == 0 {
		findings = append(findings, finding("an event for a healthy endpoint after that", "an attempt", "none came", "The sender, or its dispatcher, has ended.", everyAttempt(t)...))
	}
	return findings
}

const trickleName = "answers 200 with a body that never ends"

// recordTrickle has a success whose body drips.
func recordTrickle(s *session) {
	if !s.control() {
		return
	}
	e := s.endpoint(trickleName, fmt.Sprintf("drip(1B,%v),200", s.dripPause()))
	id := e.publish()
	e.await(1, s.firstWithin()+s.Declared.gaveUpBy())
	s.quiet(1)
	s.noteListed(e, id)
}

func judgeTrickle(t *evidence.Transcript) []evidence.Finding {
	sent := "an event for an endpoint that " + trickleName
	got := attempts(t, trickleName)
	if len(got) == 0 {
		if unfinished(t, trickleName) > 0 {
			return []evidence.Finding{finding(sent, "", "the attempt was still reading at the end of the scenario", "")}
		}
		return nil
	}
	what := fmt.Sprintf("the attempt ended after %v, and the message was not sent again", shown(got[0].Ended.Sub(got[0].Began)))
	if len(got) > 1 {
		what = fmt.Sprintf("the attempt ended after %v, and the message was sent again", shown(got[0].Ended.Sub(got[0].Began)))
	}
	if status := t.Facts[listedFact+trickleName]; status != "" {
		what += "; " + listedAs(status)
	}
	return []evidence.Finding{finding(sent, "", what, "", got...)}
}

// storedName answers an error with 64 KiB of text.
const storedName = "answers 500 with a body of 64 KiB"

// storedFact is how many bytes of an error's body the log shows.
const storedFact = "bytes of the error body in the log"

// storedMore is what a log may add to the part of the body that it keeps, in
// bytes: a mark that something was cut, a note of how much.
const storedMore = 64

func recordStored(s *session) {
	s.rec.Control(storedName + " #2") // the log is read when the message has been delivered
	if !s.affordsRetry(1, responseStored) {
		return
	}
	e := s.endpoint(storedName, "huge(64KiB,status=500),200")
	id := e.publish()
	if !e.await(2, s.within(2)) {
		return
	}
	log, ok := s.logOf(e, id)
	if !ok {
		return
	}
	most := 0
	for _, line := range log {
		most = max(most, len(line.Body))
	}
	s.rec.Fact(storedFact, fmt.Sprint(most))
	if len(log) == 0 {
		s.skip(responseStored, evidence.NotObservable, "the log of the message is empty; see sender.log.attempts-recorded")
	}
}

func judgeStored(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	got := numberFact(t, storedFact)
	if got <= d.ErrorBody+storedMore {
		return nil
	}
	return []evidence.Finding{finding("the log of a message whose endpoint "+storedName, fmt.Sprintf("%d bytes of it at most", d.ErrorBody),
		fmt.Sprintf("%d bytes", got), "The body is stored as it was read, and cut nowhere.", attempts(t, storedName)...)}
}
