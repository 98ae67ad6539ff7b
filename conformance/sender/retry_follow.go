package sender

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
)

// What is judged from messages that are followed through their schedule.

// followed are the endpoints of the schedule's scenario whose messages fail for
// ever, and those that fail once.
func followed(t *evidence.Transcript) []string {
	return slices.DeleteFunc(endpoints(t), func(name string) bool { return name == controlName })
}

// judgeSchedule compares every delay with its window.
func judgeSchedule(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	var findings []evidence.Finding
	for _, name := range followed(t) {
		got := attempts(t, name)
		if len(got) == 1 && d.attemptsAtMost() > 1 {
			findings = append(findings, finding("an event for an endpoint that "+name, "another attempt after "+d.between(1), "none came",
				"A failed attempt does not set a time for the next one.", got...))
		}
		for n := 1; n < len(got) && n < d.attemptsAtMost(); n++ {
			before, next := &got[n-1], &got[n]
			if wrong := d.wrong(n, before, next); wrong != "" {
				findings = append(findings, finding(fmt.Sprintf("an event for an endpoint that %s, attempt %d", name, n+1),
					fmt.Sprintf("after %s, from the end of attempt %d", d.between(n), n), "it came after "+wrong, causeOfDelay(t, d, n, got), *before, *next))
			}
		}
	}
	return findings
}

// causeOfDelay is the likely cause of a wrong delay behind attempt n.
func causeOfDelay(t *evidence.Transcript, d Declared, n int, got []attempt) string {
	before, next := &got[n-1], &got[n]
	fits := func(n int, since time.Duration) bool {
		return n > 0 && n < d.attemptsAtMost() && d.outside(n, since) == ""
	}
	first := got[0].Began
	if list := published(t, before.Endpoint); len(list) > 0 {
		first = list[0].At
	}
	low, _ := d.window(n)
	switch g := gap(before, next); {
	case before.Ended.After(before.Began) && fits(n, next.Began.Sub(before.Began)):
		return "The delay is counted from the beginning of the attempt, and so shrinks by what the attempt takes."
	case n > 1 && fits(n, next.Began.Sub(first)):
		return "The delay is counted from publishing, or from the first attempt."
	case fits(n+1, g):
		return fmt.Sprintf("This is the delay behind attempt %d: the schedule is read one entry too far.", n+1)
	case fits(n-1, g):
		return fmt.Sprintf("This is the delay behind attempt %d: the schedule is read one entry too early.", n-1)
	case g < low:
		return "The next attempt does not wait for its time, or the delay has more jitter than is declared."
	}
	return "The dispatcher looks for due messages too rarely, or with too few workers; if that is meant, declare its granularity."
}

// judgeAttempts counts the attempts of messages that always fail.
func judgeAttempts(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	most := d.attemptsAtMost()
	var findings []evidence.Finding
	for _, name := range []string{alwaysFails, slowFails} {
		got := attempts(t, name)
		least := d.leastBeforeDisabled(got)
		switch sent := "an event for an endpoint that " + name; {
		case len(got) == 0:
		case len(got) > most:
			findings = append(findings, finding(sent, plural(most, "attempt")+", and then no more", plural(len(got), "attempt")+" came",
				moreThanScheduled(d, got), got[most-1:]...))
		case len(got) < least:
			findings = append(findings, finding(sent, plural(least, "attempt"), plural(len(got), "attempt")+" came",
				fewerThanScheduled(most, len(got)), got[len(got)-1]))
		}
	}
	return findings
}

func moreThanScheduled(d Declared, got []attempt) string {
	if len(got) == d.attemptsAtMost()+1 {
		return "The delays are counted instead of the attempts: a schedule names the delay before each attempt, the first included."
	}
	return "Nothing compares the count of attempts with the schedule; its last delay repeats."
}

func fewerThanScheduled(most, got int) string {
	switch got {
	case most - 1:
		return "The attempts are counted one too far: the first one, at once, is an attempt of the schedule."
	case 1:
		return "A failed attempt is the end of the message."
	}
	return "Another bound ends the message before its schedule does: a limit of attempts, or an age."
}

// leastBeforeDisabled is how many attempts there have to be: all of the
// schedule, or those that come before the endpoint may be disabled because it
// has failed for too long.
func (d Declared) leastBeforeDisabled(got []attempt) int {
	most := d.attemptsAtMost()
	if len(got) == 0 || d.DisableAfter <= 0 {
		return most
	}
	var sum time.Duration
	for n := 1; n < most; n++ {
		_, high := d.window(n)
		if sum += high; sum >= d.DisableAfter {
			return n + 1 // the failure that disables may be this one
		}
	}
	return most
}

func judgeMarkedFailed(t *evidence.Transcript) []evidence.Finding {
	got := attempts(t, alwaysFails)
	status, looked := t.Facts[listedFact+alwaysFails]
	if !looked || status == "failed" || len(got) == 0 {
		return nil
	}
	return []evidence.Finding{finding(fmt.Sprintf("the list of messages, after the last of %s that failed", plural(len(got), "attempt")), `status "failed"`,
		listedAs(status), "The last attempt is recorded, and the message keeps the state it had before.", got[len(got)-1])}
}

func listedAs(status string) string {
	if status == "nowhere" {
		return "the message is not listed at all"
	}
	return fmt.Sprintf("it is listed as %q", status)
}

// judgeSpansDays looks at the schedule that the sender is shipped with.
// source: SW, retries over several days.
func judgeSpansDays(t *evidence.Transcript) []evidence.Finding {
	schedule := declaredOf(t).Default
	var sum time.Duration
	for _, delay := range schedule {
		sum += delay
	}
	var findings []evidence.Finding
	if sum <= 24*time.Hour {
		findings = append(findings, finding("the declared default schedule", "more than a day from the first attempt to the last", fmt.Sprintf("it spans %v", shown(sum)), "Retries end before an outage of a weekend does."))
	}
	for i := 1; i < len(schedule); i++ {
		if schedule[i] < schedule[i-1] {
			findings = append(findings, finding("the declared default schedule", "delays that do not shrink",
				fmt.Sprintf("the delay before attempt %d is %v, after %v", i+1, shown(schedule[i]), shown(schedule[i-1])), "An endpoint that is in trouble is tried more and more often."))
			break
		}
	}
	return findings
}

func judgeSameID(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for _, name := range followed(t) {
		got := attempts(t, name)
		for i := 1; i < len(got); i++ {
			if got[i].ID == got[0].ID {
				continue
			}
			findings = append(findings, finding(fmt.Sprintf("an event for an endpoint that %s, attempt %d", name, i+1), fmt.Sprintf("the id of attempt 1, %q", got[0].ID),
				fmt.Sprintf("the id %q", got[i].ID), "The id is made while sending, or a retry is a copy of the message under a new id.", got[0], got[i]))
			break
		}
	}
	return findings
}

func judgeSameBytes(cause string) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		var findings []evidence.Finding
		for _, name := range followed(t) {
			got := attempts(t, name)
			for i := 1; i < len(got); i++ {
				if sameBody(&got[0], &got[i]) {
					continue
				}
				findings = append(findings, finding(fmt.Sprintf("an event for an endpoint that %s, attempt %d", name, i+1), "the bytes of attempt 1",
					difference(got[0].Request.Body, got[i].Request.Body), cause, got[0], got[i]))
				break
			}
		}
		return findings
	}
}

// difference says where two bodies part.
func difference(a, b []byte) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	around := func(body []byte) string { return fmt.Sprintf("%q", body[max(0, i-8):min(len(body), i+24)]) }
	return fmt.Sprintf("%d bytes instead of %d; from byte %d on %s instead of %s", len(b), len(a), i+1, around(b), around(a))
}

// timestampSlack is how far the time between two timestamps may be from the
// time between the requests, 2 s: both are cut to whole seconds, and a sender
// may sign a moment before it sends.
const timestampSlack = 2 * time.Second

// judgeFreshTimestamp compares what passed between the timestamps with what
// passed between the requests, so that a clock that is wrong by a fixed time is
// another row's matter.
func judgeFreshTimestamp(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for _, name := range followed(t) {
		got := attempts(t, name)
		if len(got) == 0 {
			continue
		}
		first, ok := signedAt(t, &got[0])
		for i := 1; ok && i < len(got); i++ {
			at, has := signedAt(t, &got[i])
			passed := got[i].Began.Sub(got[0].Began)
			if !has || (at.Sub(first)-passed).Abs() <= timestampSlack {
				continue
			}
			cause := "The timestamp is stored with the message, or taken when an attempt is planned."
			if at.Equal(first) {
				cause = "The timestamp is that of the first attempt: it is computed once and stored with the message."
			}
			findings = append(findings, finding(fmt.Sprintf("an event for an endpoint that %s, attempt %d", name, i+1),
				fmt.Sprintf("a timestamp %v after that of attempt 1", shown(passed)), fmt.Sprintf("one %v after it", shown(at.Sub(first))), cause, got[0], got[i]))
			break
		}
	}
	return findings
}

// signedAt is the timestamp of an attempt in whole seconds, whether the profile
// has it in a header of its own or in the signature's.
func signedAt(t *evidence.Transcript, a *attempt) (time.Time, bool) {
	text := header(a, t.Facts[factTimestampHeader])
	if t.Facts[factTimestampHeader] == "" {
		for part := range strings.SplitSeq(header(a, t.Facts[factSignatureHeader]), ",") {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(part), "t="); ok {
				text = rest
			}
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0), err == nil
}

func judgeFreshSignature(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for _, name := range followed(t) {
		got := attempts(t, name)
		for i := 1; i < len(got); i++ {
			if got[i].verified() || !got[0].verified() {
				continue
			}
			what, cause := got[i].unverified()
			if header(&got[i], t.Facts[factSignatureHeader]) == header(&got[0], t.Facts[factSignatureHeader]) {
				cause = "The signature is that of the first attempt: it is computed once and stored with the message."
			}
			findings = append(findings, finding(fmt.Sprintf("an event for an endpoint that %s, attempt %d", name, i+1), "a signature over its own timestamp that verifies", what, cause, got[i]))
			break
		}
	}
	return findings
}

// judgeNoOverlap looks for an attempt that begins before the one before it has
// ended, of the same message.
func judgeNoOverlap(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for _, name := range followed(t) {
		for _, same := range byMessage(attempts(t, name)) {
			for i := 1; i < len(same); i++ {
				before, next := &same[i-1], &same[i]
				if !next.Began.Before(before.Ended) {
					continue
				}
				findings = append(findings, finding("an event for an endpoint that "+name, "one attempt of a message at a time",
					fmt.Sprintf("attempt %d began %v before attempt %d ended", i+1, shown(before.Ended.Sub(next.Began)), i),
					"The message is not claimed while it is sent, or the claim ends before the attempt does.", *before, *next))
				break
			}
		}
	}
	return findings
}
