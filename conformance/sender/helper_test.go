package sender

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/wire"
)

// start is when hand-made transcripts begin.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// part is something that a hand-made transcript holds.
type part interface{ put(*evidence.Transcript) }

// recorded is a transcript of a sender by standard-webhooks that declares
// nothing, in virtual time.
func recorded(parts ...part) *evidence.Transcript { return recordedBy(drive.About{}, parts...) }

func recordedBy(about drive.About, parts ...part) *evidence.Transcript {
	p, err := profile.Load("standard-webhooks")
	if err != nil {
		panic(err)
	}
	t := &evidence.Transcript{Scenario: "sender.example.row", Facts: Declare(about, p).Facts()}
	spec := p.Signature
	t.Facts[factMode] = Virtual
	t.Facts[factSignatureHeader], t.Facts[factTimestampHeader], t.Facts[factIDHeader] = spec.Signature.Name, spec.Timestamp.Name, spec.ID.Name
	text, _ := json.Marshal(formOf(spec))
	t.Facts[factForm] = string(text)
	t.Facts[factHeaders] = "webhook-id webhook-timestamp webhook-signature"
	t.Facts[factMembers], t.Facts[factTime] = "data timestamp type", "timestamp"
	t.Facts[factEventAt] = start.Add(-eventAge).Format(time.RFC3339)
	for _, p := range parts {
		p.put(t)
	}
	return t
}

// request is an attempt in a hand-made transcript: the next one at its endpoint.
type request struct{ attempt }

func (r request) put(t *evidence.Transcript) {
	n := 1
	for _, x := range t.Exchanges {
		if name, _, _ := splitLabel(x.Label); name == r.Endpoint {
			n++
		}
	}
	r.Label = fmt.Sprintf("%s #%d", r.Endpoint, n)
	text, err := json.Marshal(r.noted)
	if err != nil {
		panic(err)
	}
	t.Exchanges = append(t.Exchanges, r.Exchange)
	t.Facts[attemptFact+r.Label] = string(text)
}

// goodSignature has the form of one.
var goodSignature = "v1," + strings.Repeat("A", 43) + "="

// try is a request as a right sender makes it, after so long, that was answered
// with a status at once.
func try(name string, after time.Duration, status int, changes ...func(*attempt)) request {
	at := start.Add(after)
	body := fmt.Sprintf(`{"type":"whconform.s1","timestamp":%q,"data":{"note":"x"}}`, start.Add(-eventAge).Format(time.RFC3339))
	a := attempt{
		Exchange: wire.Exchange{
			Request: wire.Request{
				Method: "POST", Target: "/x", Body: []byte(body), Size: int64(len(body)),
				Headers: []wire.Header{
					{Name: "Content-Type", Value: "application/json"}, {Name: "User-Agent", Value: "shop/1"},
					{Name: "webhook-id", Value: "msg_1"}, {Name: "webhook-timestamp", Value: strconv.FormatInt(at.Unix(), 10)},
					{Name: "webhook-signature", Value: goodSignature + fmt.Sprint(" v9,", at.UnixNano())},
				},
			},
			Response: &wire.Response{Status: status}, Began: at, Ended: at,
		},
		noted: noted{ID: "msg_1", By: []string{"secret 1"}}, Endpoint: name,
	}
	for _, change := range changes {
		change(&a)
	}
	return request{a}
}

// What may be otherwise about a request.

func id(text string) func(*attempt) {
	return func(a *attempt) { a.ID = text; setHeader(a, "webhook-id", text) }
}

func setHeader(a *attempt, name, value string) {
	a.Request.Headers = wire.Set(a.Request.Headers, name, value)
}

func with(name, value string) func(*attempt) { return func(a *attempt) { setHeader(a, name, value) } }

func more(name, value string) func(*attempt) {
	return func(a *attempt) { a.Request.Headers = append(a.Request.Headers, wire.Header{Name: name, Value: value}) }
}

func without(name string) func(*attempt) {
	return func(a *attempt) { a.Request.Headers = wire.Drop(a.Request.Headers, name) }
}

func body(text string) func(*attempt) {
	return func(a *attempt) { a.Request.Body, a.Request.Size = []byte(text), int64(len(text)) }
}

func by(labels ...string) func(*attempt) {
	return func(a *attempt) {
		a.By = labels
		if len(labels) == 0 {
			a.Rule = "no-match"
		}
	}
}

func hint(text string) func(*attempt) { return func(a *attempt) { a.Hint = text } }

func lasting(d time.Duration) func(*attempt) { return func(a *attempt) { a.Ended = a.Began.Add(d) } }

func unanswered(fault string) func(*attempt) {
	return func(a *attempt) { a.Response, a.Fault = nil, fault }
}

func answered(text string) func(*attempt) {
	return func(a *attempt) { a.Response.Body = []byte(text) }
}

func method(name string) func(*attempt) { return func(a *attempt) { a.Request.Method = name } }

func leaking(a *attempt) { a.Leaks = []string{"secret 1"} }

// fact is a fact of a hand-made transcript.
type fact struct{ name, value string }

func (f fact) put(t *evidence.Transcript) { t.Facts[f.name] = f.value }

// event is that an event was published.
func event(name string, n int, after time.Duration, ids ...string) fact {
	return fact{fmt.Sprintf("%s%s #%d", publishedFact, name, n), strings.TrimSpace(start.Add(after).Format(time.RFC3339Nano) + " " + strings.Join(ids, " "))}
}

// moment is a fact that is a time.
func moment(name string, after time.Duration) fact {
	return fact{name, start.Add(after).Format(time.RFC3339Nano)}
}

// wrongly is a transcript in which a judge is to find one thing, with words of
// what it got and of the cause.
type wrongly struct {
	name       string
	t          *evidence.Transcript
	got, cause string
}

// tell checks that a judge is silent on what is right and finds each wrong thing.
func tell(t *testing.T, j judge, right map[string]*evidence.Transcript, wrong []wrongly) {
	t.Helper()
	for name, transcript := range right {
		if got := j(transcript); len(got) != 0 {
			t.Errorf("%s: it is right, and this is found: %+v", name, got)
		}
	}
	for _, w := range wrong {
		got := j(w.t)
		if len(got) == 0 {
			t.Errorf("%s: nothing is found", w.name)
			continue
		}
		f := got[0]
		if !strings.Contains(f.Got, w.got) || !strings.Contains(f.Cause, w.cause) {
			t.Errorf("%s: found is %q because %q; want %q because %q", w.name, f.Got, f.Cause, w.got, w.cause)
		}
		if f.Sent == "" || f.Got == "" || f.Expected == "" {
			t.Errorf("%s: the finding does not say what was sent, expected, or got: %+v", w.name, f)
		}
	}
}
