// Package sender holds the scenarios and checks for webhook senders, one file a
// requirement group: sender.retry.* stands in retry.go.
//
// A [rule] is one requirement: a scenario that makes endpoints on the fake
// endpoint, publishes to them and lets the sender's time pass, and a judge that
// looks at what came. Judges see the transcript alone: each attempt is an
// exchange labelled "NAME #N" with what only the fake endpoint knew of it as a
// fact, and the numbers that the sender declared are facts too.
//
// Read session.go first (how a scenario speaks to the sender), then judge.go
// and window.go (what judges have to hand), then rotation.go, a short group.
package sender

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
)

// The clock modes of a run. They stand on every verdict about time.
const (
	Virtual = "virtual" // the sender's clock is moved by clock.advance
	Scaled  = "scaled"  // real time, and a short schedule that the sender declares
)

// Env is what the scenarios work with. It is made once a run and not changed
// while scenarios are recorded.
type Env struct {
	Subject  drive.Sender
	Server   *fakeendpoint.Server // its clock is the timeline's
	Timeline drive.Timeline
	Profile  *profile.Profile
	Mode     string // Virtual or Scaled
	Declared Declared
	Bounds   Bounds
	// Random makes a source for one purpose, the same for the same seed.
	Random func(purpose string) *rand.ChaCha8
	// Another starts another sender of the same kind for a scenario that needs
	// one of its own: on a fresh state, with a fake endpoint and a timeline of
	// their own, and with as many processes on that state as instances says.
	// The second result ends all of them. May be nil: then nothing is offered
	// that needs it.
	Another func(ctx context.Context, instances int) (*Env, func(context.Context) error, error)
	// Names is the name server that the sender was told to ask, with
	// [AllowedNames] among its allowed hosts; nil: none.
	Names *drive.NameServer

	ledger *ledger // what scenarios published; shared with the senders of their own
}

// Bounds are the numbers that scenarios wait for or count to.
type Bounds struct {
	// First is how long the first attempt of a message may take beyond its
	// schedule before it counts as not coming, on the sender's clock.
	First time.Duration
	// Settle is how long a path is watched, on the sender's clock, for what must
	// not come; long schedules are watched for longer by the rows themselves.
	Settle time.Duration
	// Call bounds each call to the sender in real time.
	Call time.Duration
	// Sparse tries fewer of what differs by a number alone: a dozen statuses, an
	// event a day. For the suite's own test, which makes a hundred runs.
	Sparse bool
}

// DefaultBounds are the numbers for a clock mode.
func DefaultBounds(mode string) Bounds {
	if mode == Virtual {
		// Virtual time costs nothing: a sender that polls each minute is waited for.
		return Bounds{First: 2 * time.Minute, Settle: time.Minute, Call: 30 * time.Second}
	}
	return Bounds{First: 10 * time.Second, Settle: time.Second, Call: 30 * time.Second}
}

// Keys are the secrets of all endpoints that were made, which no report may
// show.
func (e *Env) Keys() []signature.Key {
	if e.ledger == nil {
		return nil
	}
	return e.ledger.secrets()
}

// Prepare fills in what is left out and makes e ready to record with. Scenarios
// and RunPreflight call it; it is not for use beside them.
func (e *Env) Prepare() {
	if e.ledger == nil {
		e.ledger = newLedger()
	}
	if e.Bounds == (Bounds{}) {
		e.Bounds = DefaultBounds(e.Mode)
	}
	if len(e.Declared.Schedule) == 0 && e.Subject != nil {
		e.Declared = Declare(e.Subject.About(), e.Profile)
	}
}

// Offers tells whether the subject and the run offer a capability.
func (e *Env) Offers(need string) bool {
	switch need {
	case drive.Clock:
		return e.Mode == Virtual && e.Subject.Has(drive.Clock)
	case drive.Schedule:
		return e.Mode == Scaled || e.Subject.Has(drive.Schedule)
	case drive.Managed, drive.Instances:
		return e.Another != nil && e.Subject.Has(need)
	case drive.Resolver:
		return e.Names != nil && e.Subject.Has(need)
	}
	return e.Subject.Has(need)
}

// Capabilities lists what the subject and the run offer beside publishing to a
// URL.
func (e *Env) Capabilities() []string {
	offered := []string{}
	for _, need := range catalogue.Needs(catalogue.Sender) {
		if e.Offers(need) {
			offered = append(offered, need)
		}
	}
	return offered
}

// rule is one requirement: how it is tried and how it is judged. It has a
// record function, or the scenario of another rule.
type rule struct {
	id     string
	record func(*session)
	use    string // the id of the rule whose scenario this one judges
	judge  judge
	alone  bool // it measures or disturbs others: recorded last, by itself
	slow   bool // it takes tens of real seconds
	kills  bool // on a sender of its own, which it may end
	twins  bool // likewise, with two processes on one state
	holds  bool // its endpoints keep requests waiting on purpose: recorded in a phase behind the others
}

// own tells whether the rule's scenario has a sender of its own.
func (r *rule) own() bool { return r.kills || r.twins }

// rules lists every rule, group by group in the catalogue's order.
func rules() []rule {
	var all []rule
	for _, group := range groups() {
		all = append(all, group.rules()...)
	}
	return all
}

// group is one requirement group with its file's rules.
type group struct {
	name  string
	rules func() []rule
}

func groups() []group {
	return []group{
		{"request", requestRules}, {"signature", signatureRules},
		{"retry", retryRules}, {"retry-after", retryAfterRules}, {"timeout", timeoutRules},
		{"response", responseRules}, {"redirect", redirectRules}, {"disable", disableRules},
		{"rotation", rotationRules}, {"resend", resendRules}, {"log", logRules}, {"ssrf", ssrfRules}, {"outbox", outboxRules},
	}
}

// Checks returns the check of every requirement that has one.
func Checks() []suite.Check {
	var checks []suite.Check
	for _, r := range rules() {
		scenario := r.id
		if r.use != "" {
			scenario = r.use
		}
		checks = append(checks, suite.Check{Requirement: r.id, Scenario: scenario, Judge: r.judge})
	}
	return checks
}

// Scenarios returns what has to be recorded to judge the wanted requirements in
// phases: one is to be recorded when the one before has
// ended, each with all of its scenarios side by side, so that the sender's time
// passes for all of them at once. First what only publishes and waits, with
// what has a sender of its own; then what keeps requests waiting on purpose,
// so that a sender with few workers is not held up while others are timed; then
// what is alone, one scenario a phase.
func Scenarios(e *Env, wanted func(id string) bool) [][]suite.Scenario {
	e.Prepare()
	needed := map[string]bool{}
	for _, r := range rules() {
		if !wanted(r.id) {
			continue
		}
		if r.use != "" {
			needed[r.use] = true
		} else {
			needed[r.id] = true
		}
	}
	var beside, holding []suite.Scenario
	var phases, alone [][]suite.Scenario
	together := &gates{} // of the scenarios beside each other
	held := &gates{}
	for _, r := range rules() {
		if r.use != "" || !needed[r.id] {
			continue
		}
		s := suite.Scenario{Name: r.id, Slow: r.slow, Alone: r.alone, Kills: r.kills}
		switch {
		case r.alone:
			s.Record = e.recorder(r, wanted, &gate{})
			alone = append(alone, []suite.Scenario{s})
		case r.holds:
			s.Record = e.recorder(r, wanted, held.of(r))
			holding = append(holding, s)
		default:
			s.Record = e.recorder(r, wanted, together.of(r))
			beside = append(beside, s)
		}
	}
	for _, phase := range [][]suite.Scenario{beside, holding} {
		if len(phase) > 0 {
			phases = append(phases, phase)
		}
	}
	return append(phases, alone...)
}

// gates are those of a phase: its slow scenarios begin when the others have
// ended, and what has a sender of its own does not share the time.
type gates struct{ quick, slow gate }

func (g *gates) of(r rule) *gate {
	switch {
	case r.own():
		return &gate{}
	case r.slow:
		g.slow.left++
		return &g.slow
	}
	g.quick.left++
	return &g.quick
}

// recorder makes the Record function of a rule that has a scenario.
func (e *Env) recorder(r rule, wanted func(id string) bool, g *gate) func(context.Context, *suite.Recorder) error {
	return func(ctx context.Context, rec *suite.Recorder) error {
		if !r.own() {
			return e.record(ctx, rec, r, wanted, g)
		}
		return e.recordApart(ctx, rec, r, wanted)
	}
}

// record records one scenario on e's sender.
func (e *Env) record(ctx context.Context, rec *suite.Recorder, r rule, wanted func(id string) bool, g *gate) error {
	s := e.session(ctx, rec, r.id, wanted)
	g.join(e.Timeline)
	defer e.Timeline.Leave()
	r.record(s)
	s.finish()
	return s.err
}

// recordApart records one scenario on a sender of its own.
func (e *Env) recordApart(ctx context.Context, rec *suite.Recorder, r rule, wanted func(id string) bool) error {
	instances := 1
	if r.twins {
		instances = 2
	}
	if e.Another == nil {
		return errors.New("recording " + r.id + ": the run cannot start another sender")
	}
	own, end, err := e.Another(ctx, instances)
	if err != nil {
		return errors.Join(errors.New("recording "+r.id+": starting a sender of the scenario's own"), err)
	}
	own.ledger = e.ledger
	own.Prepare()
	err = own.record(ctx, rec, r, wanted, &gate{})
	return errors.Join(err, end(context.WithoutCancel(ctx)))
}

// judge is what a check does: from a transcript to findings.
type judge = func(*evidence.Transcript) []evidence.Finding
