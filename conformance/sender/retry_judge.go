package sender

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
)

// alwaysRetried are the 4xx that no sender may declare final: they say "later".
func alwaysRetried() []int { return []int{408, 425, 429} }

// mayBeFinal tells whether a sender that declares it may give a message up
// after this status.
func (d Declared) mayBeFinal(status int) bool {
	return status >= 400 && status < 500 && !slices.Contains(alwaysRetried(), status) && slices.Contains(d.FinalStatuses, status)
}

// judgeFailureStatuses puts the statuses that are not tried again into one
// finding a class and cause: three hundred of one kind say no more than one.
func judgeFailureStatuses(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	wrong := map[string][]int{} // by cause
	labels := map[string][]attempt{}
	var causes []string
	for _, status := range failureStatuses() {
		name := answering(status)
		got := attempts(t, name)
		if len(got) != 1 || d.mayBeFinal(status) {
			continue // one at which nothing came is another row's: see judgeUnserved
		}
		cause := causeOfNoRetry(t, status)
		if wrong[cause] == nil {
			causes = append(causes, cause)
		}
		wrong[cause] = append(wrong[cause], status)
		labels[cause] = append(labels[cause], got[0])
	}
	var findings []evidence.Finding
	for _, cause := range causes {
		about := labels[cause]
		findings = append(findings, finding(fmt.Sprintf("an event for an endpoint that answers %s", ranges(wrong[cause])),
			"another attempt after "+d.between(1), "no second request came", cause, about[:min(len(about), 8)]...))
	}
	return append(findings, judgeUnserved(t, "an attempt at each endpoint, whatever the others answer")...)
}

func causeOfNoRetry(t *evidence.Transcript, status int) string {
	switch {
	case len(requests(t, answering(status)+trapName)) > 0:
		return "The redirect was followed, and the answer from there was taken for the endpoint's."
	case status < 400:
		return "What is not an error is taken for a success: the test is status < 400, or the client throws at 4xx and 5xx only. A 304 or 302 has delivered nothing."
	case slices.Contains(alwaysRetried(), status):
		return "A status that says \"later\" is taken for final."
	case status < 500:
		return "A 4xx is taken for final. Most are faults of a few minutes; a sender that gives up after some on purpose declares them (finalStatuses)."
	}
	return "The message is given up, or stays claimed, after this answer."
}

// judgeUnserved finds endpoints of a scenario at which nothing came although its
// control did.
func judgeUnserved(t *evidence.Transcript, expected string) []evidence.Finding {
	var missing []string
	for fact := range t.Facts {
		name, ok := strings.CutPrefix(fact, publishedFact)
		if name, _, is := splitLabel(name); ok && is && name != controlName && len(requests(t, name)) == 0 && unfinished(t, name) == 0 && name != refusingProbe {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	return []evidence.Finding{finding("events for endpoints that fail in different ways", expected,
		fmt.Sprintf("nothing came at %s: %s", plural(len(missing), "endpoint"), strings.Join(missing[:min(len(missing), 8)], ", ")),
		"The dispatcher stopped, or was held up, after a failure at another endpoint.")}
}

// ranges writes statuses as "301, 303-305".
func ranges(list []int) string {
	var words []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && (list[j+1] == list[j]+1 || list[j] == 409 && list[j+1] == 411) { // 410 is tried elsewhere
			j++
		}
		switch {
		case j == i:
			words = append(words, strconv.Itoa(list[i]))
		default:
			words = append(words, fmt.Sprintf("%d-%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(words, ", ")
}

func judgeFinalStatuses(t *evidence.Transcript) []evidence.Finding {
	declared := slices.DeleteFunc(slices.Clone(declaredOf(t).FinalStatuses), func(status int) bool { return status == 410 })
	if len(declared) == 0 {
		return nil
	}
	slices.Sort(declared)
	var about []attempt
	for _, status := range declared {
		about = append(about, attempts(t, answering(status))...)
	}
	return []evidence.Finding{finding("an event for an endpoint that answers "+ranges(declared), "another attempt, as after every other failure",
		"the sender declares it final", "A fault of a few minutes at the receiver ends the message for ever.", about[:min(len(about), 8)]...)}
}

func judgeTransportFailures(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	var findings []evidence.Finding
	for _, p := range transportProbes() {
		got := attempts(t, p.name)
		if len(got) == 0 {
			continue
		}
		sent := "an event for an endpoint that " + p.name
		switch {
		case strings.HasPrefix(p.name, certificateProbe) && got[0].Response != nil:
			findings = append(findings, finding(sent, "no request, and another attempt", "the request was sent all the same",
				"Certificates are not verified: a setting from a test environment, mostly (InsecureSkipVerify, rejectUnauthorized: false, verify=False).", got[0]))
		case len(got) == 1 && t.Facts[distrustedFact+p.name] == "":
			findings = append(findings, finding(sent, "another attempt after "+d.between(1), "none came",
				"The client's error is not caught around the attempt: the message stays claimed, is given up, or the dispatcher has ended.", got...))
		}
	}
	if text, tried := t.Facts[refusedFact]; tried {
		n, err := strconv.Atoi(text)
		if err != nil {
			panic(fmt.Sprintf("the fact %q of the transcript cannot be read: %v", refusedFact, err))
		}
		if got := attempts(t, refusingProbe); len(got) > 0 && len(got) <= n {
			findings = append(findings, finding("an event for an endpoint at which nobody listens for a while", "another attempt when it is back", "none came",
				"A refused connection ends the message, or the attempts altogether.", got...))
		}
	}
	return append(findings, judgeUnserved(t, "an attempt at each endpoint, however the others fail")...)
}

func judgeVanishedName(t *evidence.Transcript) []evidence.Finding {
	got := attempts(t, hasName)
	if len(got) != 1 {
		return nil // without any the scenario has said why
	}
	return []evidence.Finding{finding("an event for an endpoint whose name stops resolving after the first attempt, and resolves again later",
		"another attempt when it resolves", "none came", "The resolver's error is taken for a wrong endpoint, or its negative answer is remembered for ever.", got...)}
}

// counted expects a number of requests at each of some endpoints, and the cause
// where more or fewer came.
func counted(t *evidence.Transcript, want int, why func(a []attempt) string, names ...string) []evidence.Finding {
	var findings []evidence.Finding
	for _, name := range names {
		got := attempts(t, name)
		if len(got) == want || len(got) == 0 {
			continue
		}
		findings = append(findings, finding("an event for an endpoint that "+name, exactly(want), plural(len(got), "request")+" came", why(got), got...))
	}
	return findings
}

func exactly(n int) string {
	if n == 1 {
		return "exactly one request"
	}
	return fmt.Sprintf("exactly %d requests", n)
}

func judgeSuccesses(t *evidence.Transcript) []evidence.Finding {
	var names []string
	for _, name := range endpoints(t) {
		if name != controlName {
			names = append(names, name)
		}
	}
	return append(counted(t, 1, func(a []attempt) string {
		if strings.HasSuffix(a[0].Endpoint, " with a body") {
			return "The body of the answer is looked at; only the status counts."
		}
		return "Only some of 200 to 299 are taken for success."
	}, names...), judgeUnserved(t, "one request at each")...)
}

func judgeInterim(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for _, p := range interimProbes() {
		findings = append(findings, counted(t, p.requests, func(a []attempt) string {
			if len(a) > p.requests {
				return "The interim answer is taken for the answer, and for a failure."
			}
			return "The interim answer is taken for the answer, and for a success."
		}, p.name)...)
	}
	return append(findings, judgeUnserved(t, "requests at each")...)
}

func judgeAlone(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	got := attempts(t, aloneName)
	switch {
	case len(got) == 0:
		return nil
	case len(got) > 1 && d.wrong(1, &got[0], &got[1]) == "":
		return nil
	}
	what := "no second request came"
	if len(got) > 1 {
		what = "it came after " + d.wrong(1, &got[0], &got[1])
	}
	cause := "Nothing wakes the dispatcher at the time of the next attempt."
	if t.Facts[wokenFact] != "" {
		cause = "The dispatcher wakes when something is published, and not by a timer: the retry came with the next event."
	}
	return []evidence.Finding{finding("one event that fails once, and no other traffic", "another attempt after "+d.between(1), what, cause, got...)}
}

// judgeThrottles reports how fast requests came at endpoints that are
// overloaded.
func judgeThrottles(t *evidence.Transcript) []evidence.Finding {
	var facts []evidence.Finding
	for _, status := range throttleStatuses() {
		got := attempts(t, answering(status))
		if len(got) == 0 {
			continue
		}
		first := byMessage(got)
		span := got[len(got)-1].Began.Sub(got[0].Began)
		facts = append(facts, finding(fmt.Sprintf("%d events for an endpoint that answers %d", throttlePending, status), "",
			fmt.Sprintf("%d of the %d were sent within %v, at most %d at a time", len(first), throttlePending, shown(span), atOnce(got, 0)), "", got[0]))
	}
	return facts
}

// atOnce is how many of the attempts were under way at one time at most. Those
// that overlap by less than least follow each other: the fake endpoint may see
// the end of one a little after the beginning of the next.
func atOnce(list []attempt, least time.Duration) int {
	most := 0
	for i := range list {
		n := 0
		for j := range list {
			if j == i || !list[j].Began.After(list[i].Began) && list[j].Ended.Sub(list[i].Began) > least {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func judgeRepeats(t *evidence.Transcript) []evidence.Finding {
	var facts []evidence.Finding
	for _, name := range endpoints(t) {
		if !strings.HasPrefix(name, repeatsName) {
			continue
		}
		all := requests(t, name)
		if len(all) < 2 {
			continue
		}
		what := "the request was not sent again before its time"
		if n := len(all) - len(attempts(t, name)); n > 0 {
			what = fmt.Sprintf("the request came again at once, %s, with equal timestamp and signature: the HTTP client repeats it by itself", times(n))
		}
		facts = append(facts, finding("an event for an endpoint that "+name, "", what, "", all...))
	}
	return facts
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}
