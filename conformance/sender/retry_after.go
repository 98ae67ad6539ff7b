package sender

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
)

const (
	retryAfterLonger   = "sender.retry-after.longer-wins"
	retryAfterShorter  = "sender.retry-after.shorter-loses"
	retryAfterDate     = "sender.retry-after.http-date"
	retryAfterNonsense = "sender.retry-after.nonsense"
)

func retryAfterRules() []rule {
	return []rule{
		{id: retryAfterLonger, record: recordLonger, judge: judgeLonger},
		{id: retryAfterShorter, record: recordShorter, judge: judgeShorter},
		{id: retryAfterDate, record: recordDate, judge: judgeDate},
		{id: retryAfterNonsense, record: recordNonsense, judge: judgeNonsense},
	}
}

// Facts of these scenarios, as Go durations and numbers.
const (
	wishFact   = "Retry-After"             // what the endpoint wishes
	behindFact = "Retry-After on attempt"  // on which attempt it stands
	cappedFact = "Retry-After beyond caps" // what nonsense may be taken for at most; absent: it was not waited for
)

// wish is what the endpoint of a scenario asks for: 10 minutes, as the
// catalogue has it, or twice the first delay where that is longer. Where time
// is real it is as short as whole seconds permit that lie beyond the schedule's
// own window.
func (s *session) wish() time.Duration {
	_, high := s.Declared.window(1)
	if s.virtual() {
		return max(10*time.Minute, 2*high).Round(time.Second)
	}
	return high.Truncate(time.Second) + 2*time.Second
}

// obeying are the shortest and the longest delay behind attempt n where its
// answer asks for a wait: the schedule's, or the wish as far as it is followed.
func (d Declared) obeying(n int, wish time.Duration) (low, high time.Duration) {
	low, high = d.window(n)
	wish = min(wish, d.RetryAfterCap)
	return max(low, wish), max(high, scaled(wish, 1+d.JitterHigh)+d.Granularity)
}

// recordWish has an endpoint for 503 and one for 429 with a Retry-After that is
// longer than the first delay.
func (s *session) recordWish(id, form string) {
	if !s.affordsRetry(1, id) {
		return
	}
	wish := s.wish()
	_, high := s.Declared.obeying(1, wish)
	if !s.affords(high) {
		s.skip(id, evidence.NotObservable, "a Retry-After of %v takes longer than a run waits in real time", wish)
		return
	}
	if !s.control() {
		return
	}
	s.rec.Fact(wishFact, wish.String())
	var both []*endpoint
	for _, status := range []int{503, 429} {
		e := s.endpoint(answering(status), fmt.Sprintf("%d(retry-after=%s),200", status, fmt.Sprintf(form, int(wish/time.Second))))
		e.publish()
		both = append(both, e)
	}
	s.await(s.firstWithin(), concluded(1, both...))
	s.await(high+s.Bounds.First, concluded(2, both...))
}

func recordLonger(s *session) { s.recordWish(retryAfterLonger, "%d") }

func recordDate(s *session) { s.recordWish(retryAfterDate, "date+%ds") }

func judgeLonger(t *evidence.Transcript) []evidence.Finding {
	wish := durationFact(t, wishFact)
	return judgeWish(t, func(*attempt) time.Duration { return wish }, 0)
}

// judgeDate takes the wish from the date that was sent, and allows for the
// sender's looking at whole seconds.
func judgeDate(t *evidence.Transcript) []evidence.Finding {
	return judgeWish(t, func(a *attempt) time.Duration {
		date, err := http.ParseTime(retryAfterOf(a))
		if err != nil {
			panic(fmt.Sprintf("the Retry-After of %s is no date: %v", a.Label, err))
		}
		return date.Sub(a.Ended)
	}, time.Second)
}

func judgeWish(t *evidence.Transcript, wish func(*attempt) time.Duration, cut time.Duration) []evidence.Finding {
	d := declaredOf(t)
	var findings []evidence.Finding
	for _, status := range []int{503, 429} {
		got := attempts(t, answering(status))
		if len(got) == 0 || got[0].Response == nil {
			continue
		}
		low, high := d.obeying(1, wish(&got[0]))
		low, high = low-cut, high+cut
		sent := fmt.Sprintf("an event for an endpoint that answers %d with Retry-After: %s", status, retryAfterOf(&got[0]))
		expected := fmt.Sprintf("another attempt after %v to %v", shown(low), shown(high))
		if len(got) == 1 {
			findings = append(findings, finding(sent, expected, "none came", "The header ends the message, or its value is read in another unit.", got...))
			continue
		}
		least, most := delay(&got[0], &got[1])
		switch g := gap(&got[0], &got[1]); {
		case most < low-early && d.outside(1, g) == "":
			findings = append(findings, finding(sent, expected, fmt.Sprintf("it came after %v", shown(g)), "The header is not looked at: the delay is the schedule's.", got[:2]...))
		case most < low-early:
			findings = append(findings, finding(sent, expected, fmt.Sprintf("it came after %v", shown(g)), "The header is bounded by less than the declared cap, or jitter shortens it.", got[:2]...))
		case least > high:
			findings = append(findings, finding(sent, expected, fmt.Sprintf("it came after %v", shown(g)), "The header is added to the schedule's delay, or exceeds the cap.", got[:2]...))
		}
	}
	return append(findings, judgeUnserved(t, "an attempt")...)
}

// retryAfterOf is the header as the endpoint sent it.
func retryAfterOf(a *attempt) string {
	if a.Response == nil {
		return ""
	}
	for _, h := range a.Response.Headers {
		if strings.EqualFold(h.Name, "Retry-After") {
			return h.Value
		}
	}
	return ""
}

// shortWish is the wish that is shorter than a delay: 1 s, the least whole one.
// The delay is one that takes half a second longer at least.
const (
	shortWish      = time.Second
	longerThanWish = 1500 * time.Millisecond
)

func recordShorter(s *session) {
	d := s.Declared
	n := 1
	for ; n < d.attemptsAtMost(); n++ {
		if low, _ := d.window(n); low >= longerThanWish {
			break
		}
	}
	if n == d.attemptsAtMost() {
		s.skip(retryAfterShorter, evidence.NotObservable, "no delay of the declared schedule is longer than %v", longerThanWish)
		return
	}
	if !s.affordsRetry(n, retryAfterShorter) || !s.control() {
		return
	}
	s.rec.Fact(behindFact, fmt.Sprint(n))
	var both []*endpoint
	for _, status := range []int{503, 429} {
		script := fmt.Sprintf("%d(retry-after=1),200", status)
		if n > 1 {
			script = fmt.Sprintf("500*%d,%s", n-1, script)
		}
		e := s.endpoint(answering(status), script)
		e.publish()
		both = append(both, e)
	}
	s.await(s.within(n+1), concluded(n+1, both...))
}

func judgeShorter(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	n := numberFact(t, behindFact)
	var findings []evidence.Finding
	for _, status := range []int{503, 429} {
		got := attempts(t, answering(status))
		if len(got) < n {
			continue
		}
		sent := fmt.Sprintf("an event for an endpoint that answers %d with Retry-After: 1 to attempt %d", status, n)
		if len(got) == n {
			findings = append(findings, finding(sent, "another attempt after "+d.between(n), "none came", "The header ends the message.", got[n-1]))
			continue
		}
		wrong := d.wrong(n, &got[n-1], &got[n])
		if wrong == "" {
			continue
		}
		cause := "The delay is neither the schedule's nor the header's."
		if low, _ := d.window(n); gap(&got[n-1], &got[n]) < low {
			cause = "The header replaces the schedule's delay instead of lengthening it."
		}
		findings = append(findings, finding(sent, "another attempt after "+d.between(n), "it came after "+wrong, cause, got[n-1], got[n]))
	}
	return append(findings, judgeUnserved(t, "an attempt")...)
}

// nonsenseProbe is a Retry-After that means nothing, or nothing that can be
// followed.
type nonsenseProbe struct {
	name, value string // value as a script has it
	long        bool   // it asks for more than any cap
}

func nonsenseProbes() []nonsenseProbe {
	return []nonsenseProbe{
		{"asks to wait for 0 seconds", "0", false},
		{"asks to wait for -5 seconds", "-5", false},
		{`asks to wait "a while"`, `"a while"`, false},
		{"asks to wait until a date that has passed", "date-1h", false},
		{"asks to wait for 10^9 seconds", "1000000000", true},
	}
}

// recordNonsense sees each probe's retry. What asks for too much may be
// followed up to the cap; the others may be, too: a sender that finds no number
// may take the longest wait that it knows.
func recordNonsense(s *session) {
	if !s.affordsRetry(1, retryAfterNonsense) || !s.control() {
		return
	}
	d := s.Declared
	_, latest := d.obeying(1, d.RetryAfterCap)
	capped := s.affords(latest)
	if capped {
		s.rec.Fact(cappedFact, latest.String())
	} else {
		_, latest = d.window(1)
	}
	var all []*endpoint
	for _, p := range nonsenseProbes() {
		if p.long && !capped {
			continue
		}
		e := s.endpoint(p.name, fmt.Sprintf("503(retry-after=%s),200", p.value))
		e.publish()
		all = append(all, e)
	}
	s.await(s.firstWithin(), concluded(1, all...))
	s.await(latest+s.Bounds.First, concluded(2, all...))
}

func judgeNonsense(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	low, latest := d.window(1)
	if t.Facts[cappedFact] != "" {
		latest = durationFact(t, cappedFact)
	}
	expected := fmt.Sprintf("another attempt after %v to %v", shown(low), shown(latest))
	hammered := func(got []attempt) bool {
		_, most := delay(&got[0], &got[1])
		return most < low-early
	}
	var findings []evidence.Finding
	for _, p := range nonsenseProbes() {
		got := attempts(t, p.name)
		sent := "an event for an endpoint that answers 503 and " + p.name
		switch {
		case len(got) == 0:
		case len(got) == 1:
			findings = append(findings, finding(sent, expected, "none came", "The message is lost: the value makes a time that is never due, or an error that is not caught.", got...))
		case hammered(got):
			findings = append(findings, finding(sent, expected, fmt.Sprintf("it came after %v", shown(gap(&got[0], &got[1]))),
				"The value is followed although it is shorter than the schedule's delay: nothing bounds it from below.", got[:2]...))
		}
	}
	return append(findings, judgeUnserved(t, "an attempt")...)
}
