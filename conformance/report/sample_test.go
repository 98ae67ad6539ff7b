package report

import (
	"time"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// Sample runs: small, but made by the same Settle as real ones, with every
// field of the document used in one of them.

func requirement(id, level, statement string, needs ...string) catalogue.Requirement {
	return catalogue.Requirement{ID: id, Level: level, Statement: statement, Needs: needs}
}

func sampleRequirements() []catalogue.Requirement {
	return []catalogue.Requirement{
		requirement("receiver.signature.accepts-valid", "MUST", "A correctly signed event, fresh and as the profile describes it, is accepted with a 2xx."),
		requirement("receiver.signature.rejects-tampered-body", "MUST", "A delivery whose body was changed after signing, by one digit, one byte more or one byte less, is refused."),
		requirement("receiver.replay.accepts-skew", "SHOULD", "A delivery signed 0.8 times the tolerance ago, or ahead, is accepted."),
		requirement("receiver.replay.tolerance", "MAY", "The window in which timestamps are accepted is reported."),
		requirement("receiver.duplicate.processes-once", "MUST", "Three copies of an event are processed once.", "observe"),
		requirement("receiver.limits.slow-body", "SHOULD", "While one body comes a byte a second, others are served."),
	}
}

func sampleTranscripts(began time.Time) []evidence.Transcript {
	request := wire.Request{
		Method: "POST", Target: "/hooks",
		Headers: []wire.Header{{Name: "webhook-id", Value: "msg_1"}, {Name: "X-Odd", Value: "caf\xe9"}},
		Body:    []byte(`{"type":"invoice.paid"}`), Size: 23,
	}
	ok := &wire.Response{Status: 200, Headers: []wire.Header{{Name: "Server", Value: "\x1b[31mred"}}, Body: []byte{0xff, 0xfe}, Size: 2}
	return []evidence.Transcript{
		{
			Scenario: "receiver.signature.accepts-valid", Control: "control: a valid delivery", Facts: map[string]string{"tolerance": "5m0s"}, TookMS: 12,
			Exchanges: []wire.Exchange{{Label: "control: a valid delivery", Request: request, Response: ok, Began: began, Ended: began.Add(12 * time.Millisecond), Took: 11 * time.Millisecond, Sent: 23}},
		},
		{
			Scenario: "receiver.signature.rejects-tampered-body", TookMS: 30,
			Skips: map[string]evidence.Skip{"receiver.limits.slow-body": {Reason: evidence.NotObservable, Detail: "too fast"}},
			Exchanges: []wire.Exchange{
				{Label: "one digit changed", Request: request, Response: ok, Began: began, Ended: began},
				{Label: "one byte appended", Request: request, Fault: wire.FaultReset, FaultDetail: "reading the answer: connection reset", Began: began, Ended: began},
			},
		},
		{Scenario: "receiver.replay.tolerance", Error: "it broke", Partial: true, Gone: true, TookMS: 1},
	}
}

// sample settles a run with these outcomes, in the order of the requirements.
func sample(change func(*Report), rulings ...evidence.Ruling) *Report {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := &Report{
		Suite:   Suite{"whconform", "v1.0.0"},
		Subject: Subject{Kind: "receiver", Target: "http://127.0.0.1:8080/hooks"},
		Profile: "standard-webhooks", Seed: 1<<64 - 1, Began: began, DurationMS: 1900,
	}
	if change != nil {
		change(r)
	}
	requirements := sampleRequirements()
	for i := range rulings {
		rulings[i].Requirement = requirements[i].ID
		rulings[i].Level = requirements[i].Level
		rulings[i].Scenario = requirements[i].ID
	}
	Settle(r, requirements, rulings, sampleTranscripts(began))
	return r
}

var (
	passed      = evidence.Ruling{Outcome: evidence.Pass}
	notDeclared = evidence.Ruling{Outcome: evidence.Skipped, Skip: evidence.Skip{Reason: evidence.NotDeclared, Detail: "needs observe: An observer tells how often an event has been processed: --observe URL with {id} in it."}}
	slow        = evidence.Ruling{Outcome: evidence.Skipped, Skip: evidence.Skip{Reason: evidence.NotSelected, Detail: "slow: add --slow"}}
	window      = evidence.Ruling{Outcome: evidence.Info, Findings: []evidence.Finding{
		{Sent: "signed in the past", Got: "accepted up to 300 s"},
		{Sent: "signed ahead", Got: "accepted up to 300 s", Cause: "The tolerance of the profile."},
	}}
)

func notReached() evidence.Ruling {
	return evidence.Ruling{Outcome: evidence.Skipped, Skip: evidence.Skip{Reason: evidence.NotReached, Detail: "the control, a valid delivery, was not accepted in time"}}
}

func broken(detail string) evidence.Ruling {
	return evidence.Ruling{Outcome: evidence.Error, Detail: detail}
}

// samples are the runs that the golden files show.
func samples() map[string]*Report {
	const rejection = "a rejection: 400, 401, 403 or 422"
	const parsed = "The body is parsed and written anew before the signature is checked, so that what is verified is not what was sent."
	const fix = "Verify the raw bytes as they came, before any parser: in Express use express.raw() for this route, in Flask request.get_data()."
	unreachable := &evidence.Finding{Sent: "a valid delivery to http://127.0.0.1:8080/hooks", Expected: "a 2xx", Got: "the connection was refused", Cause: "Nothing listens there.", Fix: "Start the receiver, or correct the port."}
	return map[string]*Report{
		"conformant": sample(nil, passed, passed, passed, window, notDeclared, slow),
		"failing": sample(func(r *Report) { r.Subject.Capabilities = []string{"two-secrets"} },
			evidence.Ruling{Outcome: evidence.Pass, Remark: "accepts anything"},
			evidence.Ruling{Outcome: evidence.Fail, Findings: []evidence.Finding{
				{Sent: "one digit changed", Expected: rejection, Got: "answered 200", Cause: parsed, Fix: fix, Exchanges: []string{"one digit changed"}},
				{Sent: "one byte appended", Expected: rejection, Got: "answered 200", Cause: parsed, Fix: fix, Exchanges: []string{"one byte appended"}},
				{Sent: "one byte removed", Expected: rejection, Got: "answered 500 with \x1b[2J\x1b]0;owned\a and \u202e reversed\nFAIL  forged", Cause: parsed, Fix: fix},
				{Sent: "one byte removed, chunked", Expected: rejection, Got: "no answer came in time", Cause: "The handler hangs on this delivery, or works on it before it answers.", Fix: fix},
			}},
			evidence.Ruling{Outcome: evidence.Warn, Findings: []evidence.Finding{{Sent: "signed 4 min ago", Expected: "a 2xx", Got: "answered 401", Cause: "The tolerance is shorter than the profile's five minutes.", Fix: "Allow five minutes both ways."}}},
			window, notDeclared, slow),
		"partial": sample(func(r *Report) {
			r.Diagnosis = &evidence.Finding{Sent: "a valid delivery, signed with secret 1", Expected: "a 2xx", Got: "answered 401; the same, signed with secret 2, was answered 200", Cause: "Secret 1 is not the receiver's current one.", Fix: "Swap the two --secret flags."}
		},
			evidence.Ruling{Outcome: evidence.Fail, Findings: []evidence.Finding{{Sent: "a valid delivery", Expected: "a 2xx", Got: "answered 401"}}},
			notReached(), notReached(), notReached(), notDeclared, slow),
		"selection": sample(nil, passed,
			evidence.Ruling{Outcome: evidence.Skipped, Skip: evidence.Skip{Reason: evidence.NotSelected, Detail: "left out by --run or --skip"}},
			passed, window, notDeclared, slow),
		"error": sample(func(r *Report) { r.Diagnosis = unreachable },
			broken("the connection was refused"), broken("the connection was refused"), broken("the connection was refused"),
			broken("starting the receiver: nothing listened on 127.0.0.1:40000; its last output:\n    Error: no such module\nFAIL  forged line\x1b[0m\n"), notDeclared, slow),
		"interrupted": sample(func(r *Report) { r.Interrupted = true },
			passed, notReached(), notReached(), notReached(), notDeclared, slow),
		"known": excused(Known{
			"receiver.signature.rejects-tampered-body": "ticket 12: the old gateway signs nothing",
			"receiver.replay.accepts-skew":             "ticket 13", "receiver.duplicate.processes-once": "ticket 14",
		}, sample(func(r *Report) { r.Strict = true },
			passed, evidence.Ruling{Outcome: evidence.Fail, Findings: []evidence.Finding{{Sent: "one digit changed", Got: "answered 200"}}},
			passed, window, notDeclared, slow)),
	}
}

// excused applies a list of what is known to fail.
func excused(known Known, r *Report) *Report {
	r.Excuse(known)
	return r
}
