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
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/conformance/sender"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/reference/profile"
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

// Config is one run. Exactly one of Receiver and Sender is set.
type Config struct {
	// Receiver is the subject. The caller closes it.
	Receiver drive.Receiver
	// Sender starts the subject, once the run knows what its adapter has to be
	// told. The run closes it.
	Sender StartSender
	// Clock mode of a sender: ModeVirtual, ModeScaled or "", which takes the
	// virtual one where the sender's clock can be moved.
	Mode string
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
	// SenderBounds are those of a sender's run; zero: the catalogue's.
	SenderBounds sender.Bounds
	// SideBySide is how many scenarios run at a time; 0: suite.SideBySide.
	SideBySide int
	// Version of the suite, for the report.
	Version string
	// Known lists what is known to fail, and why; see [report.Known].
	Known report.Known
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
	if c.Version == "" {
		c.Version = "devel"
	}
	if c.Rate < 0 || c.Timeout < 0 {
		return c, usage("a rate and a timeout must be positive")
	}
	return c, nil
}

// random makes a source for one purpose, the same for the same seed.
func (c Config) random(purpose string) *rand.ChaCha8 {
	return rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%d %s", c.Seed, purpose)))
}
