package sender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// attempt is an exchange of a transcript with what was noted of it.
type attempt struct {
	wire.Exchange
	noted
	Endpoint string // its name in the scenario
	Number   int    // of its requests, from 1
}

// requests are all that came at an endpoint, in order.
func requests(t *evidence.Transcript, name string) []attempt {
	var out []attempt
	for i := range t.Exchanges {
		if of, n, ok := splitLabel(t.Exchanges[i].Label); ok && of == name {
			out = append(out, attemptOf(t, &t.Exchanges[i], of, n))
		}
	}
	return out
}

// attempts are what came at an endpoint, without the requests that an HTTP
// client repeated by itself: those are no attempts of the sender's.
func attempts(t *evidence.Transcript, name string) []attempt {
	all := requests(t, name)
	var out []attempt
	for i := range all {
		if i > 0 && repeats(t, &all[i-1], &all[i]) {
			continue
		}
		out = append(out, all[i])
	}
	return out
}

// endpoints are the names of all endpoints at which something came, in the
// order of the transcript, the control's among them and traps left out.
func endpoints(t *evidence.Transcript) []string {
	var names []string
	for i := range t.Exchanges {
		name, _, ok := splitLabel(t.Exchanges[i].Label)
		if ok && !strings.HasSuffix(name, trapName) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// everyAttempt is what came at all endpoints.
func everyAttempt(t *evidence.Transcript) []attempt {
	var out []attempt
	for _, name := range endpoints(t) {
		out = append(out, attempts(t, name)...)
	}
	return out
}

// splitLabel reads "NAME #N".
func splitLabel(label string) (name string, n int, ok bool) {
	i := strings.LastIndex(label, " #")
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(label[i+2:])
	return label[:i], n, err == nil
}

func attemptOf(t *evidence.Transcript, x *wire.Exchange, name string, n int) attempt {
	a := attempt{Exchange: *x, Endpoint: name, Number: n}
	if text, ok := t.Facts[attemptFact+x.Label]; ok {
		if err := json.Unmarshal([]byte(text), &a.noted); err != nil {
			panic(fmt.Sprintf("what was noted of %s cannot be read: %v", x.Label, err))
		}
	}
	return a
}

// byMessage groups attempts by the id that they carry, in the order of each
// one's first.
func byMessage(list []attempt) [][]attempt {
	var ids []string
	groups := map[string][]attempt{}
	for i := range list {
		if _, known := groups[list[i].ID]; !known {
			ids = append(ids, list[i].ID)
		}
		groups[list[i].ID] = append(groups[list[i].ID], list[i])
	}
	out := make([][]attempt, len(ids))
	for i, id := range ids {
		out[i] = groups[id]
	}
	return out
}

// repeatWithin is how soon an HTTP client repeats a request by itself: at once,
// when a kept connection breaks, or after a short pause of its own.
const repeatWithin = time.Second

// repeats tells whether an HTTP client sent the request before it again by
// itself: the same timestamp and signature, at once, after no success. Two
// attempts of a sender's own never look so: a retry comes after its delay, and
// two dispatchers that send one message at a time do not wait for each other.
func repeats(t *evidence.Transcript, before, a *attempt) bool {
	soon := repeatWithin
	if schedule := durationsFact(t, factSchedule); len(schedule) > 1 {
		low, _ := declaredOf(t).window(1)
		soon = min(soon, max(low-early, 0))
	}
	return !before.OK() && before.ID == a.ID && sameBody(before, a) &&
		header(before, t.Facts[factSignatureHeader]) == header(a, t.Facts[factSignatureHeader]) &&
		header(before, t.Facts[factTimestampHeader]) == header(a, t.Facts[factTimestampHeader]) &&
		!a.Began.Before(before.Ended) && a.Began.Sub(before.Ended) < soon
}

func header(a *attempt, name string) string {
	value, _ := wire.Get(a.Request.Headers, name)
	return value
}

// sameBody compares bodies, by their digests where they are long.
func sameBody(a, b *attempt) bool {
	return a.Request.Size == b.Request.Size && a.Digest == b.Digest && bytes.Equal(a.Request.Body, b.Request.Body)
}

// verified tells whether some secret of the endpoint signs the attempt.
func (a *attempt) verified() bool { return len(a.By) > 0 }

// unverified says why no secret signs the attempt.
func (a *attempt) unverified() (got, cause string) {
	got = "it does not verify: " + strings.TrimSuffix(a.Rule+": "+a.Detail, ": ")
	if a.Rule == "" {
		got = "it could not be verified"
	}
	return got, sentence(a.Hint)
}

func sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// gap is the time from the end of one attempt to the beginning of the next.
func gap(before, next *attempt) time.Duration { return next.Began.Sub(before.Ended) }

// publication is what was published to an endpoint.
type publication struct {
	At  time.Time
	IDs []string
}

// published are the events that were published to an endpoint, in order.
func published(t *evidence.Transcript, name string) []publication {
	var out []publication
	for n := 1; ; n++ {
		words := t.SplitFact(fmt.Sprintf("%s%s #%d", publishedFact, name, n))
		if len(words) == 0 {
			return out
		}
		at, err := time.Parse(time.RFC3339Nano, words[0])
		if err != nil {
			panic(fmt.Sprintf("when event %d of %q was published cannot be read: %v", n, name, err))
		}
		out = append(out, publication{at, words[1:]})
	}
}

// finding makes a finding about attempts.
func finding(sent, expected, got, cause string, about ...attempt) evidence.Finding {
	f := evidence.Finding{Sent: sent, Expected: expected, Got: got, Cause: cause}
	for i := range about {
		f.Exchanges = append(f.Exchanges, about[i].Label)
	}
	return f
}

// all joins the findings of several judges.
func all(judges ...judge) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		var findings []evidence.Finding
		for _, j := range judges {
			findings = append(findings, j(t)...)
		}
		return findings
	}
}

// eachAttempt judges every attempt of a transcript by one expectation: what came
// and the likely cause; got is "" when nothing is wrong.
func eachAttempt(expected string, wrong func(t *evidence.Transcript, a *attempt) (got, cause string)) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		var findings []evidence.Finding
		for _, a := range everyAttempt(t) {
			if got, cause := wrong(t, &a); got != "" {
				findings = append(findings, finding(described(&a), expected, got, cause, a))
			}
		}
		return findings
	}
}

// described names an attempt for people.
func described(a *attempt) string {
	return fmt.Sprintf("request %d at the endpoint %q", a.Number, a.Endpoint)
}

// arrived expects at least n attempts at an endpoint, where nothing else would
// say that they are missing.
func arrived(name string, n int, cause string) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		got := attempts(t, name)
		if len(got) >= n {
			return nil
		}
		return []evidence.Finding{finding(fmt.Sprintf("an event for the endpoint %q", name), plural(n, "attempt"), came(len(got)), cause, got...)}
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func came(n int) string {
	if n == 0 {
		return "none came"
	}
	return plural(n, "attempt") + " came"
}
