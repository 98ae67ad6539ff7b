package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/conformance/suite"
)

// Plan is a run in steps: what to ask, then the recording, then the report.
type Plan struct {
	config    Config
	part      part
	questions []suite.Question
	checks    []suite.Check

	began       time.Time
	took        time.Duration
	transcripts []evidence.Transcript
	preflight   preflight
	interrupted bool
}

// UnreachableError says that the control delivery got no answer of any kind, or
// that a sender could not be started. The command line ends with 3.
type UnreachableError struct{ Finding evidence.Finding }

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("%s: %s. %s", e.Finding.Sent, e.Finding.Got, e.Finding.Cause)
}

// Prepare reads the configuration. Its errors are *UsageError where the
// configuration is wrong.
func Prepare(c Config) (*Plan, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	part, err := c.part()
	if err != nil {
		return nil, err
	}
	questions, err := c.questions(part)
	if err != nil {
		return nil, err
	}
	return &Plan{config: c, part: part, questions: questions, checks: part.checks()}, nil
}

// Record sends everything and keeps what came back. An *UnreachableError means
// that there was nobody to send to. When ctx ends, or the run's timeout has
// passed, what was recorded so far can still be reported.
func (p *Plan) Record(ctx context.Context) (err error) {
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.Timeout, fmt.Errorf("the run took longer than its timeout of %v", p.config.Timeout))
	defer cancel()
	p.began = p.config.Clock.Now()
	began := time.Now()
	defer func() {
		err = errors.Join(err, p.part.close(context.WithoutCancel(caller)))
		p.took = time.Since(began)
		// A run that is out of time leaves rows not reached; only the caller
		// interrupts it.
		p.interrupted = caller.Err() != nil
		p.redact()
	}()
	if err := p.part.open(ctx); err != nil {
		return p.cannotBegin(ctx, err)
	}
	if p.questions, err = p.config.questions(p.part); err != nil { // what is offered is known now
		return err
	}

	p.preflight = p.part.preflight(ctx)
	p.transcripts = []evidence.Transcript{p.preflight.transcript}
	if p.preflight.unreachable {
		if ctx.Err() != nil {
			return nil
		}
		p.redact() // the error quotes the diagnosis
		return &UnreachableError{*p.preflight.diagnosis}
	}
	if !p.preflight.accepted {
		return nil // the rest is not reached
	}
	recorded := p.part.record(ctx, p.wanted())
	if slices.ContainsFunc(recorded, func(t evidence.Transcript) bool { return t.Scenario == p.preflight.transcript.Scenario }) {
		p.transcripts = nil // the preflight was the beginning of a scenario that has been recorded whole since
	}
	p.transcripts = append(p.transcripts, recorded...)
	return nil
}

// cannotBegin keeps why the subject could not be started as the run's diagnosis.
func (p *Plan) cannotBegin(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	p.preflight = preflight{unreachable: true, diagnosis: &evidence.Finding{
		Sent: "starting the " + p.part.kind(), Expected: "a " + p.part.kind() + " that can be judged", Got: err.Error(),
		Cause: "Nothing could be judged.",
	}}
	p.redact()
	return &UnreachableError{*p.preflight.diagnosis}
}

// wanted tells which requirements are to be tried.
func (p *Plan) wanted() func(string) bool {
	wanted := map[string]bool{}
	for _, q := range p.questions {
		wanted[q.Requirement.ID] = q.Skip == nil
	}
	return func(id string) bool { return wanted[id] }
}

// rule answers one question.
func (p *Plan) rule(q suite.Question) evidence.Ruling {
	if q.Skip == nil && p.preflight.unreachable {
		return evidence.Ruling{Requirement: q.Requirement.ID, Level: q.Level, Outcome: evidence.Error, Detail: p.preflight.diagnosis.Got}
	}
	if q.Skip == nil && !p.preflight.accepted && !p.part.judgedFromPreflight(q.Requirement.ID) {
		q.Skip = &evidence.Skip{Reason: evidence.NotReached, Detail: "the control, a valid delivery, was not accepted in time"}
		if p.part.kind() == catalogue.Sender {
			q.Skip.Detail = "the control, a first attempt at an endpoint that answers 200, did not come"
		}
	}
	return suite.Judge([]suite.Question{q}, p.checks, p.transcripts)[0]
}

// Report judges what was recorded.
func (p *Plan) Report() *report.Report {
	rulings := make([]evidence.Ruling, len(p.questions))
	for i, q := range p.questions {
		rulings[i] = p.rule(q)
	}
	return p.settle(p.part.remark(rulings))
}

func (p *Plan) settle(rulings []evidence.Ruling) *report.Report {
	r := &report.Report{
		Suite:   report.Suite{Name: "whconform", Version: p.config.Version},
		Subject: report.Subject{Kind: p.part.kind(), Target: p.part.target(), Capabilities: p.part.capabilities(), Clock: p.part.clock(), Declared: p.part.declared()},
		Profile: p.config.Profile.Name, Seed: p.config.Seed,
		Began: p.began, DurationMS: p.took.Milliseconds(),
		Interrupted: p.interrupted, Strict: p.config.Strict, Diagnosis: p.preflight.diagnosis,
	}
	requirements := make([]catalogue.Requirement, len(p.questions))
	for i, q := range p.questions {
		requirements[i] = q.Requirement
	}
	report.Settle(r, requirements, rulings, p.transcripts)
	r.Excuse(p.config.Known)
	return r
}
