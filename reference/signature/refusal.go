package signature

import "fmt"

// The rules by which a request is refused. Each has a test of its own, and
// each is a reason a person can act on.
const (
	RuleMissingID          = "missing-id"
	RuleMissingTimestamp   = "missing-timestamp"
	RuleMissingSignature   = "missing-signature"
	RuleRepeatedHeader     = "repeated-header"
	RuleMalformedID        = "malformed-id"
	RuleMalformedTimestamp = "malformed-timestamp"
	RuleMalformedSignature = "malformed-signature"
	RuleMalformedBody      = "malformed-body"
	RuleIncompleteBody     = "incomplete-body"
	RuleStale              = "stale"
	RuleFuture             = "future"
	RuleUnknownVersion     = "unknown-version"
	RuleNoMatch            = "no-match"
)

// RuleDoc is a rule with what it means, in one line.
type RuleDoc struct{ Rule, Doc string }

// Rules lists every rule, in the order in which Verify looks at them.
func Rules() []RuleDoc {
	return []RuleDoc{
		{RuleIncompleteBody, "the record holds only the beginning of the body, so nothing can be verified"},
		{RuleRepeatedHeader, "the id, timestamp or signature header stands in the request more than once"},
		{RuleMissingID, "the signed id is absent or empty"},
		{RuleMissingTimestamp, "the signed timestamp is absent or empty"},
		{RuleMissingSignature, "the signature header is absent or empty"},
		{RuleMalformedID, "the id holds a control character or is longer than 1 KiB"},
		{RuleMalformedTimestamp, "the timestamp is not in its unit's one spelling (for seconds: ASCII digits, no sign, no leading zero, no blanks)"},
		{RuleStale, "the timestamp is older than the tolerance"},
		{RuleFuture, "the timestamp is further ahead than the tolerance"},
		{RuleMalformedSignature, "the signature header holds no token of the scheme's grammar"},
		{RuleUnknownVersion, "there are tokens, none of a version that the keys can check"},
		{RuleNoMatch, "no token is the signature of this request by any of the keys"},
		{RuleMalformedBody, "the body carries the id or timestamp, and it cannot be read there"},
	}
}

// Refusal says why a request does not verify. Detail is for the log of the
// side that verifies; it holds parts of the request, never of a key or of the
// signature that was expected, yet a receiver should not answer with it.
type Refusal struct{ Rule, Detail string }

// Error is the rule and its detail.
func (r *Refusal) Error() string {
	if r.Detail == "" {
		return r.Rule
	}
	return r.Rule + ": " + r.Detail
}

// refuse makes a Refusal.
func refuse(rule, format string, args ...any) *Refusal {
	return &Refusal{Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

// quoteMax is how many bytes of a request's field a Detail quotes: enough to
// recognise it, too little to fill a log.
const quoteMax = 64

// quote shortens s for a Detail.
func quote(s string) string {
	if len(s) > quoteMax {
		return fmt.Sprintf("%q… (%d bytes)", s[:quoteMax], len(s))
	}
	return fmt.Sprintf("%q", s)
}
