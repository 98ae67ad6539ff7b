package conformance

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/reference/signature"
)

// Plan is a run in steps: what to ask, then the recording, then the report.
type Plan struct {
	config    Config
	env       *receiver.Env
	questions []suite.Question
	checks    []suite.Check

	began       time.Time
	took        time.Duration
	transcripts []evidence.Transcript
	preflight   receiver.Preflight
	interrupted bool
}

// UnreachableError says that the control delivery got no answer of any kind.
// The command line ends with 3.
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
	env, err := c.env()
	if err != nil {
		return nil, err
	}
	questions, err := c.questions(env)
	if err != nil {
		return nil, err
	}
	return &Plan{config: c, env: env, questions: questions, checks: receiver.Checks()}, nil
}

// Record sends everything and keeps what came back. An *UnreachableError means
// that there was nobody to send to. When ctx ends, or the run's timeout has
// passed, what was recorded so far can still be reported.
func (p *Plan) Record(ctx context.Context) error {
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.Timeout, fmt.Errorf("the run took longer than its timeout of %v", p.config.Timeout))
	defer cancel()
	p.began = p.config.Clock.Now()
	began := time.Now()
	defer func() {
		p.took = time.Since(began)
		// A run that is out of time leaves rows not reached; only the caller
		// interrupts it.
		p.interrupted = caller.Err() != nil
		p.redact()
	}()

	p.preflight = receiver.RunPreflight(ctx, p.env)
	p.transcripts = []evidence.Transcript{p.preflight.Transcript}
	if p.preflight.Unreachable {
		if ctx.Err() != nil {
			return nil
		}
		p.redact() // the error quotes the diagnosis
		return &UnreachableError{*p.preflight.Diagnosis}
	}
	if !p.preflight.Accepted {
		return nil // the rest is not reached
	}
	scenarios := receiver.Scenarios(p.env, p.wanted())
	cfg := suite.Config{SideBySide: p.config.SideBySide, Progress: p.config.Progress,
		Revive: func(ctx context.Context) error { return drive.Revive(ctx, p.config.Receiver) }}
	if p.env.Slow && cfg.SideBySide == 0 {
		cfg.SideBySide = 2 * suite.SideBySide
	}
	p.transcripts = append(p.transcripts, suite.Record(ctx, cfg, scenarios)...)
	return nil
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
	if q.Skip == nil && p.preflight.Unreachable {
		return evidence.Ruling{Requirement: q.Requirement.ID, Level: q.Level, Outcome: evidence.Error, Detail: p.preflight.Diagnosis.Got}
	}
	if q.Skip == nil && !p.preflight.Accepted && !receiver.JudgedFromPreflight(q.Requirement.ID) {
		q.Skip = &evidence.Skip{Reason: evidence.NotReached, Detail: "the control, a valid delivery, was not accepted in time"}
	}
	return suite.Judge([]suite.Question{q}, p.checks, p.transcripts)[0]
}

// Report judges what was recorded.
func (p *Plan) Report() *report.Report {
	rulings := make([]evidence.Ruling, len(p.questions))
	for i, q := range p.questions {
		rulings[i] = p.rule(q)
	}
	return p.settle(receiver.Remark(rulings))
}

func (p *Plan) settle(rulings []evidence.Ruling) *report.Report {
	version := p.config.Version
	if version == "" {
		version = "devel"
	}
	r := &report.Report{
		Suite:   report.Suite{Name: "whconform", Version: version},
		Subject: report.Subject{Kind: catalogue.Receiver, Target: p.target(), Capabilities: p.env.Capabilities()},
		Profile: p.config.Profile.Name, Seed: p.config.Seed,
		Began: p.began, DurationMS: p.took.Milliseconds(),
		Interrupted: p.interrupted, Strict: p.config.Strict, Diagnosis: p.preflight.Diagnosis,
	}
	requirements := make([]catalogue.Requirement, len(p.questions))
	for i, q := range p.questions {
		requirements[i] = q.Requirement
	}
	report.Settle(r, requirements, rulings, p.transcripts)
	return r
}

// target names the subject without credentials.
func (p *Plan) target() string {
	text := p.config.Target
	if text == "" {
		text = p.config.Receiver.Target(0).URL
	}
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return text
	}
	u.User = url.User("redacted")
	return u.String()
}

// Loopback tells whether deliveries to target stay on this machine, so that no
// permission is needed for them.
func Loopback(target string) bool {
	u, err := url.Parse(target)
	return err == nil && drive.Loopback(u.Hostname())
}

// foreignKey makes a key of the scheme's own form that nobody was given.
func foreignKey(scheme signature.Scheme, label string, random io.Reader) (signature.Key, error) {
	text, err := scheme.Spec().NewSecret(random)
	if err != nil {
		return signature.Key{}, fmt.Errorf("making %s: %w", label, err)
	}
	key, err := scheme.Key(label, text)
	if err != nil {
		return signature.Key{}, fmt.Errorf("making %s: %w", label, err)
	}
	return key, nil
}

// selected is what --run and --skip leave.
type selected struct {
	run, skip map[string]bool
	all       bool
}

func (s selected) has(id string) bool { return (s.all || s.run[id]) && !s.skip[id] }

// named tells whether --run names the requirement, by itself or by its group.
func (s selected) named(id string) bool { return !s.all && s.run[id] }

func selection(run, skip []string) (selected, error) {
	s := selected{run: map[string]bool{}, skip: map[string]bool{}, all: len(run) == 0}
	for _, part := range []struct {
		flag     string
		patterns []string
		into     map[string]bool
	}{{"--run", run, s.run}, {"--skip", skip, s.skip}} {
		if len(part.patterns) == 0 {
			continue
		}
		ids, err := catalogue.Match(part.patterns)
		if err != nil {
			return s, &UsageError{fmt.Errorf("%s: %w", part.flag, err)}
		}
		for _, id := range ids {
			part.into[id] = true
		}
	}
	return s, nil
}
