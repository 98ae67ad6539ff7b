// Package conformance runs the suite against a webhook implementation.
//
// [Run] is the door for a program or a test: it returns a report. [Describe]
// registers the same specs into a Ginkgo suite of the caller's own. Both record
// everything first, side by side, and judge afterwards; one spec is one
// requirement. [Prepare] gives the same run in steps, without Ginkgo.
//
// This package is the only one that imports Ginkgo.
package conformance

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/benbjohnson/clock"
	"golang.org/x/time/rate"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// Bounds and defaults of a run.
const (
	// DefaultTimeout ends a run that does not end by itself. The slow rows need
	// little more than a minute, a receiver that hangs on every odd delivery
	// some minutes more.
	DefaultTimeout = 10 * time.Minute
	// DefaultRate is how many deliveries a second are begun on loopback. High
	// enough not to be the longest wait of a run, low enough not to be a flood.
	DefaultRate = 1000
	// RemoteRate is DefaultRate for any other host, where limits and other
	// people's traffic are likely.
	RemoteRate = 50
)

// Config is one run.
type Config struct {
	// Receiver is the subject; required. The caller closes it.
	Receiver drive.Receiver
	// Target names the subject in the report, without credentials.
	Target string
	// Profile is the contract; nil: standard-webhooks.
	Profile *profile.Profile
	// Secrets are those the receiver accepts, the current one first, then the
	// previous one; a private Ed25519 key (whsk_…) may stand among them. At
	// least one; no report or error shows them.
	Secrets []string
	// Event is what deliveries carry; zero: the profile's own payload.
	Event receiver.Event
	// Headers are added to every delivery.
	Headers []wire.Header

	// Run and Skip select requirements by id, group or glob; see
	// [catalogue.Match]. Empty Run: all.
	Run, Skip []string
	// Slow lets the requirements labelled slow run, which wait for a minute.
	Slow bool
	// Load allows floods; on loopback they are always allowed.
	Load bool
	// Strict makes warnings close the gate.
	Strict bool

	Seed    uint64        // of every random choice; 0 is a seed like any other
	Rate    float64       // deliveries a second; 0: DefaultRate or RemoteRate
	Timeout time.Duration // of the whole run; 0: DefaultTimeout
	Clock   clock.Clock   // nil: the real one
	Bounds  receiver.Bounds
	// SideBySide is how many scenarios run at a time; 0: suite.SideBySide.
	SideBySide int
	// Version of the suite, for the report.
	Version string
	// Progress is told of each scenario's end. May be nil.
	Progress func(suite.Progress)
}

// UsageError says that the run was asked for what cannot be: a pattern that
// matches nothing, a secret that is none. The command line ends with 2.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

func usage(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// withDefaults fills in what was left out.
func (c Config) withDefaults() (Config, error) {
	if c.Receiver == nil {
		return c, usage("no receiver to judge")
	}
	if c.Profile == nil {
		p, err := profile.Load("standard-webhooks")
		if err != nil {
			return c, fmt.Errorf("loading the default profile: %w", err)
		}
		c.Profile = p
	}
	if c.Clock == nil {
		c.Clock = clock.New()
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Bounds == (receiver.Bounds{}) {
		c.Bounds = receiver.DefaultBounds()
	}
	local := Loopback(c.Receiver.Target(0).URL)
	if c.Rate == 0 {
		c.Rate = RemoteRate
		if local {
			c.Rate = DefaultRate
		}
	}
	if c.Rate < 0 || c.Timeout < 0 {
		return c, usage("a rate and a timeout must be positive")
	}
	c.Load = c.Load || local
	c.Bounds.Load = c.Load
	return c, nil
}

// env makes what the scenarios work with.
func (c Config) env() (*receiver.Env, error) {
	provider, err := fakeprovider.New(fakeprovider.Config{Profile: c.Profile, Clock: c.Clock, Rand: c.random("ids")})
	if err != nil {
		return nil, usage("preparing deliveries of the profile %s: %w", c.Profile.Name, err)
	}
	keys, err := readKeys(provider.Scheme(), c.Secrets, c.random("foreign keys"))
	if err != nil {
		return nil, err
	}
	event := c.Event
	if event.Render == nil {
		event.Render = receiver.ProfileEvent(c.Profile, c.Clock)
	}
	if event.Type == "" {
		event.Type = c.Profile.EventTypes[0]
	}
	payload, err := event.Render(provider.NewID(), event.Type)
	if err != nil {
		return nil, usage("making the payload: %w", err)
	}
	// The rows on unknown fields, spellings and sizes add members to it.
	var object map[string]any
	if err := json.Unmarshal(payload, &object); err != nil {
		return nil, usage("making the payload: it has to be a JSON object, as deliveries with further members are made from it: %w", err)
	}
	return &receiver.Env{
		Subject: c.Receiver, Provider: provider, Profile: c.Profile, Keys: keys, Event: event, Bounds: c.Bounds, Clock: c.Clock,
		// A burst of a tenth of a second's worth: a receiver sees the rate that
		// was asked for, not one gulp a second.
		Limiter: rate.NewLimiter(rate.Limit(c.Rate), max(1, int(c.Rate/10))),
		Random:  c.random,
		Extra:   c.Headers,
	}, nil
}

// random makes a source for one purpose, the same for the same seed.
func (c Config) random(purpose string) *rand.ChaCha8 {
	return rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%d %s", c.Seed, purpose)))
}

// readKeys sorts the secrets into current, previous and Ed25519.
func readKeys(scheme signature.Scheme, texts []string, random io.Reader) (receiver.Keys, error) {
	var keys receiver.Keys
	symmetric := 0
	for i, text := range texts {
		name := fmt.Sprintf("secret %d", i+1)
		key, err := scheme.Key(name, text)
		if err != nil {
			return keys, usage("reading %s: %w", name, err)
		}
		switch {
		case key.Kind() == signature.Ed25519Private:
			keys.Ed25519 = &key
			keys.Texts.Public = key.PublicText()
		case key.Kind() == signature.Ed25519Public:
			return keys, usage("reading %s: a public key cannot sign; give the private one (whsk_…)", name)
		case symmetric == 0:
			keys.Current, keys.Texts.Current = key, text
			symmetric++
		case symmetric == 1:
			keys.Previous, keys.Texts.Previous = &key, text
			symmetric++
		default:
			return keys, usage("reading %s: a receiver in rotation knows two secrets, the current one and the previous one; this is a third", name)
		}
	}
	if symmetric == 0 {
		return keys, usage("no secret: give the one that the receiver is configured with by --secret, --secret-env or --secret-file")
	}
	var err error
	if keys.Wrong, err = foreignKey(scheme, "a secret that the receiver does not know", random); err != nil {
		return keys, err
	}
	if keys.Third, err = foreignKey(scheme, "a third secret", random); err != nil {
		return keys, err
	}
	return keys, nil
}

// questions turns the catalogue and the selection into what the run rules on.
func (c Config) questions(env *receiver.Env) ([]suite.Question, error) {
	rows, err := catalogue.Load()
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(r catalogue.Requirement) bool { return r.Part() != catalogue.Receiver })
	chosen, err := selection(c.Run, c.Skip)
	if err != nil {
		return nil, err
	}
	questions := make([]suite.Question, len(rows))
	for i, row := range rows {
		level := c.Profile.Level(row.ID, row.LevelIn(c.Profile.Name))
		skip := c.skip(row, level, chosen, env)
		if level == profile.NotApplicableLevel {
			level = row.LevelIn(c.Profile.Name) // what it would be elsewhere
		}
		questions[i] = suite.Question{Requirement: row, Level: level, Skip: skip}
	}
	if !slices.ContainsFunc(questions, func(q suite.Question) bool { return q.Skip == nil || q.Skip.Reason != evidence.NotSelected }) {
		return nil, usage("the selection leaves nothing to judge: %s", strings.Join(append(c.Run, c.Skip...), ", "))
	}
	return questions, nil
}

// skip decides what is known before anything is sent.
func (c Config) skip(row catalogue.Requirement, level string, chosen selected, env *receiver.Env) *evidence.Skip {
	if !chosen.has(row.ID) {
		return &evidence.Skip{Reason: evidence.NotSelected, Detail: "left out by --run or --skip"}
	}
	if reason, ok := c.Profile.NotApplicable(row.ID); ok {
		return &evidence.Skip{Reason: evidence.NotApplicable, Detail: reason}
	}
	if level == profile.NotApplicableLevel {
		return &evidence.Skip{Reason: evidence.NotApplicable, Detail: "the profile " + c.Profile.Name + " has no such thing"}
	}
	if c.Profile.Signature.ID.In == "none" && slices.Contains(row.Needs, catalogue.NeedObserve) {
		return &evidence.Skip{Reason: evidence.NotApplicable, Detail: "the scheme carries no id, by which an observer could tell events apart"}
	}
	if !c.hasCheck(row.ID) {
		return &evidence.Skip{Reason: evidence.NoCheck, Detail: "this version has no check for it yet"}
	}
	for _, need := range row.Needs {
		if !env.Offers(need) {
			return &evidence.Skip{Reason: evidence.NotDeclared, Detail: "needs " + need + ": " + catalogue.NeedText(need)}
		}
	}
	if row.Has("slow") && !c.Slow {
		return &evidence.Skip{Reason: evidence.NotSelected, Detail: "slow: add --slow"}
	}
	if row.Has("on-request") && !chosen.named(row.ID) {
		return &evidence.Skip{Reason: evidence.NotSelected, Detail: "only on request: add --run " + row.ID}
	}
	return nil
}

func (Config) hasCheck(id string) bool {
	return slices.ContainsFunc(receiver.Checks(), func(c suite.Check) bool { return c.Requirement == id })
}
