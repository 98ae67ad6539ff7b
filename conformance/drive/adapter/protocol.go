package adapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The methods of a receiver's adapter, and those that every adapter has.
const (
	MethodInitialize = "initialize"
	MethodShutdown   = "shutdown"
	MethodCancel     = "cancel" // a notification: nobody waits for the request any more
	MethodProcessed  = "receiver.processed"
	MethodState      = "receiver.state"
	MethodFailOnce   = "receiver.failOnce"
	MethodAdvance    = "clock.advance"
)

// Bounds of what an adapter may say.
const (
	// MaxProcessed is the highest count that is believed: no run sends a
	// thousandth of it.
	MaxProcessed = 1_000_000_000
	// maxText bounds a name, a version, a capability or a state, in bytes.
	maxText = 256
	// maxCapabilities bounds their number.
	maxCapabilities = 200
)

// InitializeParams introduces the suite.
type InitializeParams struct {
	ProtocolVersion int        `json:"protocolVersion"` // set by [Open]
	Profile         string     `json:"profile"`         // the contract's name
	StateDir        string     `json:"stateDir,omitempty"`
	Now             *time.Time `json:"now,omitempty"`           // the run's clock, where it is virtual
	Clock           string     `json:"clock,omitempty"`         // ClockVirtual, ClockReal, or "" where it does not matter
	AllowHosts      []string   `json:"allowHosts,omitempty"`    // that may be called although they are internal
	Resolver        string     `json:"resolver,omitempty"`      // host:port of a name server
	CACertificate   string     `json:"caCertificate,omitempty"` // PEM
}

// What InitializeParams.Clock says. With a real clock the run waits for every
// delay: a sender that has a shorter schedule for tests uses it then.
const (
	ClockVirtual = "virtual" // moved by clock.advance, beginning with Now
	ClockReal    = "real"
)

// Initialized is what an adapter tells of its subject. Times are in seconds.
type Initialized struct {
	ProtocolVersion int    `json:"protocolVersion"`
	Name            string `json:"name"`
	Version         string `json:"version"`
	// Capabilities are the methods that the adapter answers, and beside them
	// the catalogue's words for what is no method ("managed", "ed25519").
	Capabilities []string `json:"capabilities"`

	// What a sender declares, and is then held to. Nil: not declared.
	RetrySchedule    []float64 `json:"retrySchedule,omitempty"`   // the delay before each attempt, the first included
	DefaultSchedule  []float64 `json:"defaultSchedule,omitempty"` // the one it is shipped with, where RetrySchedule is a shorter one
	Jitter           *Jitter   `json:"jitter,omitempty"`
	Granularity      *float64  `json:"granularity,omitempty"`
	Timeout          *float64  `json:"timeout,omitempty"`
	ConnectTimeout   *float64  `json:"connectTimeout,omitempty"`
	RetryAfterCap    *float64  `json:"retryAfterCap,omitempty"`
	PerEndpointLimit *int      `json:"perEndpointLimit,omitempty"` // attempts in flight
	RotationOverlap  *float64  `json:"rotationOverlap,omitempty"`
	DisableAfter     *float64  `json:"disableAfter,omitempty"`
	NotifyAfter      []float64 `json:"notifyAfter,omitempty"`   // of failures, when the owner is told
	FinalStatuses    []int     `json:"finalStatuses,omitempty"` // that are not tried again
	ErrorBodyKept    *int      `json:"errorBodyKept,omitempty"` // bytes
	FailedKept       *float64  `json:"failedKept,omitempty"`
	EventTypes       []string  `json:"eventTypes,omitempty"`  // the only ones it knows
	APIVersions      []string  `json:"apiVersions,omitempty"` // of the payload, that endpoints can be pinned to
}

// Jitter is how far a delay may be from its schedule, as a share of it: -0.2 and
// 0.2 for ±20 %.
type Jitter struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

func (Initialized) form() string {
	return fmt.Sprintf(`{"protocolVersion":%d,"name":"…","version":"…","capabilities":["…"]}`, ProtocolVersion)
}

func (i *Initialized) check() error {
	switch {
	case i.Name == "" || len(i.Name) > maxText:
		return errors.New("the name is missing or too long")
	case len(i.Version) > maxText:
		return errors.New("the version is too long")
	case len(i.Capabilities) > maxCapabilities:
		return fmt.Errorf("%d capabilities, more than %d", len(i.Capabilities), maxCapabilities)
	}
	for _, c := range i.Capabilities {
		if c == "" || len(c) > maxText {
			return errors.New("a capability is empty or too long")
		}
	}
	return i.checkDeclared()
}

// ProcessedParams asks how often the effect of an event came about.
type ProcessedParams struct {
	ID string `json:"id"`
}

// Processed is how often the effect of an event came about, and whether the
// event stands on the receiver's list of failed ones.
type Processed struct {
	Processed int  `json:"processed"`
	Failed    bool `json:"failed,omitempty"`
}

// processedAnswer is Processed with a count that must be there.
type processedAnswer struct {
	Processed *json.Number `json:"processed"`
	Failed    bool         `json:"failed"`

	count int
}

func (processedAnswer) form() string {
	return fmt.Sprintf(`{"processed":N} with N a whole number from 0 to %d, and "failed":true for an event on the list of failed ones`, MaxProcessed)
}

func (p *processedAnswer) check() error {
	if p.Processed == nil {
		return errors.New("the member processed is missing")
	}
	n, err := p.Processed.Int64()
	if err != nil || n < 0 || n > MaxProcessed {
		return errors.New("the count is out of range")
	}
	p.count = int(n)
	return nil
}

// StateParams asks for the current state of the record that an event speaks of.
type StateParams struct {
	ID        string `json:"id"`                  // of an event that speaks of the record
	Reference string `json:"reference,omitempty"` // the record's own name in the payload, where the suite knows it
}

// State is the current state of a record in the receiver's own word; "" for a
// record that it does not know.
type State struct {
	State string `json:"state"`
}

// stateAnswer is State with a state that must be there.
type stateAnswer struct {
	State *string `json:"state"`
}

func (stateAnswer) form() string {
	return fmt.Sprintf(`{"state":"…"} of at most %d bytes, "" for a record that is not known`, maxText)
}

func (s *stateAnswer) check() error {
	if s.State == nil || len(*s.State) > maxText {
		return errors.New("the state is missing or too long")
	}
	return nil
}

// FailOnceParams asks that the first processing of an event fails.
type FailOnceParams struct {
	ID string `json:"id"` // of an event that has not been sent yet
}

// AdvanceParams asks that the subject's clock is moved.
type AdvanceParams struct {
	To time.Time `json:"to"` // not before its present time
}

// Advanced is where the subject's clock stands.
type Advanced struct {
	Now time.Time `json:"now"`
	// Next is the next instant at which something is due; nil for none.
	Next *time.Time `json:"next,omitempty"`
	// InFlight is how many attempts a sender has under way. Nil for a receiver,
	// and for a sender that does not know; of such a one Next means nothing.
	InFlight *int `json:"inFlight,omitempty"`
}

func (Advanced) form() string {
	return `{"now":"2026-01-02T15:04:05Z"} with, for a sender, "next" and "inFlight"`
}

func (a *Advanced) check() error {
	switch {
	case a.Now.IsZero():
		return errors.New("the member now is missing")
	case a.InFlight != nil && (*a.InFlight < 0 || *a.InFlight > MaxProcessed):
		return errors.New("inFlight is out of range")
	}
	return nil
}

// CancelParams names the request that nobody waits for any more.
type CancelParams struct {
	ID int64 `json:"id"`
}
