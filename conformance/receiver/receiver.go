// Package receiver holds the scenarios and checks for webhook receivers, one
// file a requirement group: receiver.replay.* stands in replay.go.
//
// A [rule] is one requirement: what is sent, and how the transcript is judged.
// Most rules are a list of probes, each an unharmed delivery with one
// alteration, and an expectation that holds for all of them. To add one, add
// its row to the catalogue and its rule to the group's file; nothing else.
//
// Read signature.go first, then session.go (how a probe is sent) and judge.go
// (what counts as a rejection). What the wire cannot show is asked of hooks that
// the receiver offers: observe.go counts effects, state.go and record.go follow
// what events make of one record.
package receiver

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/benbjohnson/clock"
	"golang.org/x/time/rate"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// Env is what the scenarios work with. It is made once a run and not changed
// after the preflight.
type Env struct {
	Subject  drive.Receiver
	Provider *fakeprovider.Provider
	Profile  *profile.Profile
	Keys     Keys
	Event    Event
	Bounds   Bounds
	Clock    clock.Clock
	Limiter  *rate.Limiter
	// Random makes a source for one scenario, the same for the same seed.
	Random func(scenario string) *rand.ChaCha8
	// Extra are header lines that every delivery carries: the user's own, and,
	// where the preflight found them needed, those of a browser.
	Extra []wire.Header
	// Slow is set by the preflight where answers take long, ObserverFault where
	// the observer tells of an event that was never sent, or nothing at all.
	Slow          bool
	ObserverFault error
}

// Keys are the secrets of a run.
type Keys struct {
	Current  signature.Key
	Previous *signature.Key // accepted too, during a rotation; nil: none is known
	Ed25519  *signature.Key // private; nil: the receiver knows no public key of ours
	Wrong    signature.Key  // valid in form, unknown to the receiver
	Third    signature.Key  // another such
	Texts    drive.Secrets  // as the receiver is configured
}

// Event is what a delivery carries.
type Event struct {
	Type string
	// Render makes a body for the event with this id and type.
	Render func(id, eventType string) ([]byte, error)
	// Records makes bodies of several events about one record, for the rows on
	// its state; see [TemplateRecord]. Nil: a payment in the profile's payload.
	Records RecordEvents
	// Steps are the types of two events about a record, of which the first
	// cannot undo the second. Empty: payment.succeeded and payment.refunded, or
	// what follows from a Type that ends with succeeded.
	Steps [2]string
}

// Bounds are the numbers that scenarios wait for or count to. A shorter run of
// the suite against itself scales them; the defaults are the catalogue's.
type Bounds struct {
	Fast  time.Duration // an answer "within 1 s"
	Burst time.Duration // an answer in a burst, "under 2 s"
	Stall time.Duration // how long a receiver may hold a body that does not come
	Drip  time.Duration // between the bytes of a slow body
	Flood time.Duration // how long forged deliveries are sent at full speed
	// FloodLeast is how many forged deliveries a flood has at least; to reach
	// it on a busy machine it may last FloodMore longer.
	FloodLeast int64
	FloodMore  time.Duration
	BurstSize  int   // deliveries in a burst
	Oversize   int64 // bytes of a body that no receiver should take in
	HeaderTop  int64 // bytes of headers that no receiver should take in
	Load       bool  // floods are allowed at this target

	Process time.Duration // how long an acknowledged event may take to be processed before it counts as lost
	Settle  time.Duration // how long a count is watched for a second effect after the first
	// Retry is how long an event may take whose processing failed: until it is
	// tried again, or stands on the failed list.
	Retry time.Duration
	// ProviderDelay is how long the provider's API takes where it is slow.
	ProviderDelay time.Duration
}

// DefaultBounds are the numbers of the catalogue.
func DefaultBounds() Bounds {
	return Bounds{
		Fast: time.Second, Burst: 2 * time.Second,
		// A minute is the read timeout of common proxies; five seconds more let
		// one that closes at a minute be seen.
		Stall: 65 * time.Second,
		Drip:  time.Second, Flood: 10 * time.Second, BurstSize: 200,
		// 64 MiB, and what the kernels of both sides may hold unread: a receiver
		// that stops at 64 MiB has not read it all.
		Oversize: 64<<20 + 8<<20, HeaderTop: 16 << 20,
		Process: drive.AwaitBound, Settle: drive.SettleTime,
		// Workers that try again after a minute are common; who waits longer shows
		// the event as failed meanwhile.
		Retry: 75 * time.Second,
		// What payment providers are known to take at their worst.
		ProviderDelay: 15 * time.Second,
	}
}

// rule is one requirement: how it is tried and how it is judged. It has probes,
// or a record function, or the scenario of another rule.
type rule struct {
	id     string
	probes func(*session) []probe
	record func(*session)
	use    string // the id of the rule whose scenario this one judges
	judge  func(*evidence.Transcript) []evidence.Finding
	alone  bool
	slow   bool
	kills  bool // it ends the receiver on purpose
}

// probe is one delivery with its alterations. Its label says what was sent, in
// words that a report can show.
type probe struct {
	label   string
	changes []fakeprovider.Alteration
}

func one(label string, changes ...fakeprovider.Alteration) probe { return probe{label, changes} }

// rules lists every rule, group by group in the catalogue's order.
func rules() []rule {
	var all []rule
	for _, group := range [][]rule{
		signatureRules(), rawbodyRules(), replayRules(), duplicateRules(), acknowledgeRules(),
		orderRules(), durabilityRules(), limitsRules(), rotationRules(), transportRules(),
	} {
		all = append(all, group...)
	}
	return all
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

// Scenarios returns what has to be recorded to judge the wanted requirements,
// but the preflight, which is recorded first by [Preflight].
func Scenarios(e *Env, wanted func(id string) bool) []suite.Scenario {
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
	var scenarios []suite.Scenario
	for _, r := range rules() {
		if r.use == "" && needed[r.id] && r.id != PreflightScenario {
			scenarios = append(scenarios, suite.Scenario{Name: r.id, Slow: r.slow, Alone: r.alone, Kills: r.kills, Record: e.recorder(r)})
		}
	}
	return scenarios
}

// recorder makes the Record function of a rule that has a scenario.
func (e *Env) recorder(r rule) func(context.Context, *suite.Recorder) error {
	return func(ctx context.Context, rec *suite.Recorder) error {
		s := e.session(ctx, rec, r.id)
		if r.record != nil {
			r.record(s)
			return s.err
		}
		if s.control() {
			s.deliverAll(r.probes(s))
		}
		return s.err
	}
}
