package suite

import (
	"fmt"
	"runtime/debug"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// Judge answers each question from the transcripts, in the order of the
// questions. It is pure.
func Judge(questions []Question, checks []Check, transcripts []evidence.Transcript) []evidence.Ruling {
	byRequirement := map[string]Check{}
	for _, c := range checks {
		byRequirement[c.Requirement] = c
	}
	byScenario := map[string]*evidence.Transcript{}
	for i := range transcripts {
		byScenario[transcripts[i].Scenario] = &transcripts[i]
	}
	rulings := make([]evidence.Ruling, len(questions))
	for i, q := range questions {
		check, found := byRequirement[q.Requirement.ID]
		rulings[i] = answer(q, check, found, byScenario[check.Scenario])
	}
	return rulings
}

// answer rules on one requirement. The order of the cases is the rule: what
// was never tried is skipped, what broke down is an error, and only then do
// findings count.
func answer(q Question, check Check, found bool, t *evidence.Transcript) evidence.Ruling {
	ruling := evidence.Ruling{Requirement: q.Requirement.ID, Level: q.Level, Scenario: check.Scenario}
	switch {
	case q.Skip != nil:
		return skipped(ruling, *q.Skip)
	case !found:
		return skipped(ruling, evidence.Skip{Reason: evidence.NoCheck, Detail: "this version has no check for it yet"})
	case t == nil:
		return skipped(ruling, evidence.Skip{Reason: evidence.NotReached, Detail: "the run ended before its scenario began"})
	case t.Error != "":
		ruling.Outcome, ruling.Detail = evidence.Error, t.Error
		return ruling
	case t.Gone:
		return skipped(ruling, evidence.Skip{Reason: evidence.NotReached, Detail: "the subject stopped listening while its scenario ran beside others, and did not come back; see receiver.limits.alive-after-abuse"})
	case t.Partial:
		return skipped(ruling, evidence.Skip{Reason: evidence.NotReached, Detail: "the run ended in the middle of its scenario"})
	}
	if broken, ok := t.Errors[q.Requirement.ID]; ok {
		ruling.Outcome, ruling.Detail = evidence.Error, broken
		return ruling
	}
	if skip, ok := t.Skips[q.Requirement.ID]; ok {
		return skipped(ruling, skip)
	}
	if skip := controlFailed(t, q.Requirement.ID); skip != nil {
		return skipped(ruling, *skip)
	}

	findings, err := judged(check, t)
	if err != nil {
		ruling.Outcome, ruling.Detail = evidence.Error, err.Error()
		return ruling
	}
	for i := range findings {
		if findings[i].Fix == "" && q.Level != evidence.May {
			findings[i].Fix = q.Requirement.Fix
		}
	}
	ruling.Findings = findings
	switch {
	case q.Level == evidence.May:
		ruling.Outcome = evidence.Info
	case len(findings) > 0 && q.Level == evidence.Must:
		ruling.Outcome = evidence.Fail
	case len(findings) > 0:
		ruling.Outcome = evidence.Warn
	case faulty(t, wire.FaultRefused):
		return skipped(ruling, evidence.Skip{Reason: evidence.NotReached, Detail: "the subject stopped listening in the middle of its scenario"})
	case throttled(t):
		// Nothing wrong was seen, but not everything was: a pass would say too much.
		return skipped(ruling, evidence.Skip{Reason: evidence.Throttled, Detail: "the subject answered 429, or 503 with Retry-After, twice to one of its deliveries; lower --rate or lift the limit for the run"})
	default:
		ruling.Outcome = evidence.Pass
	}
	return ruling
}

// controlFailed tells why a transcript says nothing: its control, the same
// delivery unharmed, was not accepted.
func controlFailed(t *evidence.Transcript, id string) *evidence.Skip {
	if t.Control == "" {
		return nil
	}
	x := t.Find(t.Control)
	switch {
	case x == nil && t.Received:
		return &evidence.Skip{Reason: evidence.NotReached, Detail: "its control, an attempt that has to come in any case, never came"}
	case x == nil:
		return &evidence.Skip{Reason: evidence.NotReached, Detail: "its control delivery was never sent"}
	case x.OK() || t.Received:
		return nil
	case evidence.Throttles(x):
		return &evidence.Skip{Reason: evidence.Throttled, Detail: fmt.Sprintf("its control delivery was throttled (%d); lower --rate or lift the limit for the run", x.Response.Status)}
	}
	return &evidence.Skip{Reason: evidence.NotReached, Detail: "its control, a valid delivery, was not accepted: " + Came(x)}
}

// throttled tells whether any exchange of the transcript was throttled in the
// end; its scenario has already tried it twice.
func throttled(t *evidence.Transcript) bool {
	if t.Received {
		return false
	}
	for i := range t.Exchanges {
		if evidence.Throttles(&t.Exchanges[i]) {
			return true
		}
	}
	return false
}

// Came says in a few words what came back of an exchange.
func Came(x *wire.Exchange) string {
	if x.Response != nil {
		return fmt.Sprintf("answered %d", x.Response.Status)
	}
	words := map[string]string{
		wire.FaultRefused: "the connection was refused",
		wire.FaultReset:   "the connection was reset without an answer",
		wire.FaultClosed:  "the connection was closed without an answer",
		wire.FaultTimeout: "no answer came in time",
		wire.FaultTLS:     "the TLS handshake failed",
		wire.FaultDNS:     "the host name did not resolve",
		wire.FaultNotHTTP: "what came back was not HTTP",
	}
	if w, ok := words[x.Fault]; ok {
		return w
	}
	return "no answer"
}

func skipped(r evidence.Ruling, s evidence.Skip) evidence.Ruling {
	r.Outcome, r.Skip = evidence.Skipped, s
	return r
}

// judged calls the check; a panic of a check is an error of its requirement.
func judged(c Check, t *evidence.Transcript) (findings []evidence.Finding, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("judging %s: the suite itself failed (please report this): %s at %s", c.Requirement, said(p), place(debug.Stack()))
		}
	}()
	return c.Judge(t), nil
}
