// Package evidence holds what a run saw and what was made of it: transcripts of
// exchanges with facts, findings drawn from them, and the ruling on each
// requirement. Transcripts hold no secrets, so that they can be kept, shown
// and judged again; what a check needs to know of a secret is recorded as a
// fact when the exchange is captured.
//
// Start with [Transcript] and [Ruling].
package evidence

import (
	"net/http"
	"slices"
	"strings"

	"github.com/whconform/whconform/reference/wire"
)

// Transcript is what one scenario recorded.
type Transcript struct {
	Scenario  string            `json:"scenario"`
	Control   string            `json:"control,omitempty"` // label of the unharmed delivery; when it is not accepted, what depends on it is not reached
	Facts     map[string]string `json:"facts,omitempty"`   // declared numbers, verifications, counts
	Skips     map[string]Skip   `json:"skips,omitempty"`   // requirement id -> what the scenario itself could not try
	Exchanges []wire.Exchange   `json:"exchanges"`
	Error     string            `json:"error,omitempty"`    // why the scenario broke down, "" if it did not
	Errors    map[string]string `json:"errors,omitempty"`   // requirement id -> why it alone could not be judged, e.g. an observer that hangs
	Kills     bool              `json:"kills,omitempty"`    // it ends the subject on purpose, so lost connections are its own doing
	Received  bool              `json:"received,omitempty"` // its exchanges came to the suite's own endpoint, so the answers in them are the suite's
	Partial   bool              `json:"partial,omitempty"`  // the run was interrupted before the scenario's end
	Gone      bool              `json:"gone,omitempty"`     // the subject died beside it and could not be brought back
	TookMS    int64             `json:"tookMs"`             // real time, in milliseconds
}

// Skip says that a requirement was not judged, and why.
type Skip struct {
	Reason SkipReason `json:"reason"`
	Detail string     `json:"detail"`
}

// SkipReason is why a requirement was not judged.
type SkipReason string

// The reasons. Only the first three of a MUST of the core set make a run partial.
const (
	NotSelected   SkipReason = "not-selected"   // the user's own selection leaves it out
	NotReached    SkipReason = "not-reached"    // its control was not accepted, or the run was interrupted
	Throttled     SkipReason = "throttled"      // the subject answered 429 or 503 with Retry-After, twice
	NotDeclared   SkipReason = "not-declared"   // the subject does not offer a capability that it needs
	NotObservable SkipReason = "not-observable" // what came back does not show it either way
	NotApplicable SkipReason = "not-applicable" // the profile or the subject has no such thing
	NoCheck       SkipReason = "no-check"       // the catalogue has the row, this version has no check for it yet
)

// Outcome is the result of one requirement.
type Outcome string

// The outcomes.
const (
	Pass    Outcome = "pass"
	Fail    Outcome = "fail" // a MUST is broken
	Warn    Outcome = "warn" // a SHOULD is broken
	Info    Outcome = "info" // a MAY: reported, never judged
	Skipped Outcome = "skip"
	Error   Outcome = "error" // the suite or the subject broke down: no statement about the requirement
	XFail   Outcome = "xfail" // fails, and is listed as known failing
	XPass   Outcome = "xpass" // passes although it is listed as known failing
)

// Finding is one fact about the subject: what was sent, what was expected, what
// came back, the likely cause and the mend.
type Finding struct {
	Sent      string   `json:"sent"`
	Expected  string   `json:"expected,omitempty"`
	Got       string   `json:"got"`
	Cause     string   `json:"cause,omitempty"`
	Fix       string   `json:"fix,omitempty"`
	Exchanges []string `json:"exchanges,omitempty"` // labels in the scenario's transcript
}

// Ruling is what was made of one requirement.
type Ruling struct {
	Requirement string
	Level       string // MUST, SHOULD or MAY, as the profile has it
	Outcome     Outcome
	Skip        Skip      // set when Outcome is Skipped
	Detail      string    // what broke down, when Outcome is Error
	Remark      string    // a caveat on a pass, e.g. "accepts anything"
	Findings    []Finding // all of them; for Info they are the facts reported
	Scenario    string    // whose transcript it was judged from, "" if none
}

// Facts that every receiver's transcript holds.
const (
	FactRejections = "rejections" // statuses that count as a rejection, space-separated
	FactAckTimeout = "ackTimeout" // the provider's timeout, as a Go duration
	FactTolerance  = "tolerance"  // how far off a timestamp may be, as a Go duration
)

// Find returns the exchange labelled so, or nil.
func (t *Transcript) Find(label string) *wire.Exchange {
	for i := range t.Exchanges {
		if t.Exchanges[i].Label == label {
			return &t.Exchanges[i]
		}
	}
	return nil
}

// Throttles tells whether an exchange is throttling: 429, or 503 with a
// Retry-After. It says nothing of the delivery either way.
func Throttles(x *wire.Exchange) bool {
	if x.Response == nil {
		return false
	}
	if x.Response.Status == http.StatusTooManyRequests {
		return true
	}
	_, retry := wire.Get(x.Response.Headers, "Retry-After")
	return x.Response.Status == http.StatusServiceUnavailable && retry
}

// SplitFact returns the words of a fact's value.
func (t *Transcript) SplitFact(name string) []string { return strings.Fields(t.Facts[name]) }

// Levels in order of weight.
const (
	Must   = "MUST"
	Should = "SHOULD"
	May    = "MAY"
)

// Judged tells whether the outcome is a statement about the subject.
func (o Outcome) Judged() bool {
	return slices.Contains([]Outcome{Pass, Fail, Warn, Info, XFail, XPass}, o)
}
