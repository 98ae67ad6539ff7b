package sender

import (
	"context"
	"fmt"
	"strings"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
)

// PreflightScenario is recorded before all others: one event for one endpoint.
// It has the name of the scenario that shows more of the same, so that its row
// is judged even where the run ends here; where it goes on, that scenario's
// transcript takes its place.
const PreflightScenario = verifiesRow

// preflightName is the endpoint of the preflight: what is judged as the plain
// endpoint of the scenario whose name it bears.
const preflightName = plainName

// Preflight is what the first event showed.
type Preflight struct {
	Transcript evidence.Transcript
	// Accepted: a request came and its signature verifies; go on.
	Accepted bool
	// Unreachable: the adapter does not answer, or makes no endpoint; there is no
	// verdict.
	Unreachable bool
	// Diagnosis explains what is not simply a request that verifies; nil if it is.
	Diagnosis *evidence.Finding
}

// JudgedFromPreflight tells whether a requirement is judged when the preflight
// is all that was recorded.
func JudgedFromPreflight(id string) bool { return id == verifiesRow || id == "sender.signature.tokens" }

// RunPreflight publishes an event to an endpoint of its own and looks at what
// comes. The caller's timeline has to be running.
func RunPreflight(ctx context.Context, e *Env) Preflight {
	e.Prepare()
	var p Preflight
	scenario := suite.Scenario{Name: PreflightScenario, Record: func(ctx context.Context, rec *suite.Recorder) error {
		s := e.session(ctx, rec, PreflightScenario, nil)
		e.Timeline.Join()
		defer e.Timeline.Leave()
		s.preflight(&p)
		s.finish()
		return s.err
	}}
	recorded := suite.Record(ctx, suite.Config{}, []suite.Scenario{scenario})
	if len(recorded) == 0 { // ctx had ended before
		recorded = []evidence.Transcript{{Scenario: PreflightScenario, Partial: true}}
	}
	p.Transcript = recorded[0]
	p.conclude()
	return p
}

// preflight publishes, and notes where that was not possible.
func (s *session) preflight(p *Preflight) {
	connections := s.Server.Stats().Connections
	e := s.endpoint(preflightName, "200")
	if s.over() {
		p.Unreachable, p.Diagnosis = true, s.noEndpoint()
		return
	}
	ids, err := e.tryPublish(s.ordinary(e))
	if err != nil {
		s.fail(fmt.Errorf("publishing the first event: %w", err))
		p.Unreachable, p.Diagnosis = true, &evidence.Finding{
			Sent: "publishing the first event", Expected: "a confirmation", Got: oneLine(err.Error()),
			Cause: "The adapter or the sender behind it failed.",
		}
		return
	}
	if e.await(1, s.firstWithin()) || s.over() {
		return
	}
	p.Diagnosis = s.nothingCame(ids, s.Server.Stats().Connections-connections)
}

// noEndpoint says why the first endpoint could not be made.
func (s *session) noEndpoint() *evidence.Finding {
	s.mu.Lock()
	err := s.err
	s.mu.Unlock()
	f := &evidence.Finding{Sent: "creating the first endpoint", Expected: "an endpoint with its secret", Got: oneLine(err.Error())}
	f.Cause = "The adapter failed; `whconform adapter check` walks through it step by step."
	if refused(err) {
		f.Cause = "The sender refuses the fake endpoint's address, a loopback address that is given in allowHosts for the run."
	}
	return f
}

// nothingCame explains the silence, from what else was seen.
func (s *session) nothingCame(ids []string, connections int64) *evidence.Finding {
	f := &evidence.Finding{
		Sent: "the first event", Expected: fmt.Sprintf("a request within %v", shown(s.firstWithin())), Got: "none came",
		Cause: "The event was confirmed and is not sent. Does a dispatcher run, and does it connect to loopback addresses?",
	}
	strays := s.Server.Strays()
	switch {
	case len(strays) > 0:
		f.Got = "a connection came, and no request: " + strays[len(strays)-1].Reason
		f.Cause = "Another protocol is spoken, HTTP/2 or TLS for instance, or the request is framed wrongly."
	case connections > 0:
		f.Got = "a connection came, and no request on it"
		f.Cause = "The sender checks the address by connecting, or its client waits for something."
	case len(ids) == 0:
		f.Cause = "Publishing returned no message: the event matched no endpoint. Are the endpoint's event types compared as they were given?"
	}
	return f
}

// conclude judges what the preflight recorded.
func (p *Preflight) conclude() {
	t := &p.Transcript
	if p.Diagnosis != nil || t.Partial || t.Error != "" {
		if p.Diagnosis == nil && t.Error != "" {
			p.Unreachable = true
			p.Diagnosis = &evidence.Finding{Sent: "the first event", Expected: "a request", Got: oneLine(t.Error)}
		}
		return
	}
	list := attempts(t, preflightName)
	if len(list) == 0 {
		return
	}
	a := list[0]
	if a.verified() {
		p.Accepted = true
		return
	}
	got, cause := a.unverified()
	f := finding("the first event", "a request whose signature verifies by the endpoint's secret", got, cause, a)
	if f.Cause == "" {
		f.Cause = "The sender signs with another secret than the one it shows, or signs other bytes than it sends."
		for name, text := range t.Facts {
			if strings.HasPrefix(name, secretFact) && text != secretWell {
				f.Cause = "The secret is not in the profile's form: " + text + "."
			}
		}
	}
	p.Diagnosis = &f
}
