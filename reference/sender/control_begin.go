package sender

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/profile"
)

const (
	// controlVersion is the version of the adapter protocol.
	controlVersion = 1

	// virtualGranularity is how late an attempt may begin on a virtual clock,
	// 0.1 s: it begins in the instant in which it is due, and that is when the
	// clock is moved to.
	virtualGranularity = 100 * time.Millisecond

	// realGranularity is the same on the real clock, 0.3 s: what a busy machine
	// may need.
	realGranularity = 300 * time.Millisecond

	// envelopeVersion is the version of payloads for endpoints that name none.
	envelopeVersion = "2026-06-01"
)

// realPolicy is the policy on the real clock: everything that a run has to wait
// for takes seconds. The rest is the profile's.
func realPolicy() Policy {
	return Policy{
		Schedule: []time.Duration{
			0, 400 * time.Millisecond, 800 * time.Millisecond, 1200 * time.Millisecond, 1600 * time.Millisecond,
		},
		Timeout:        2 * time.Second,
		ConnectTimeout: time.Second,
		RetryAfterCap:  3 * time.Second,
	}
}

type initializeParams struct {
	ProtocolVersion int       `json:"protocolVersion"`
	Profile         string    `json:"profile"`
	StateDir        string    `json:"stateDir"`
	Now             time.Time `json:"now"`
	Clock           string    `json:"clock"` // virtual or real; "": virtual where now is set
	AllowHosts      []string  `json:"allowHosts"`
	Resolver        string    `json:"resolver"`
	CACertificate   string    `json:"caCertificate"`
}

type jitter struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// initialized is what the sender declares of itself; times are in seconds.
type initialized struct {
	ProtocolVersion  int       `json:"protocolVersion"`
	Name             string    `json:"name"`
	Version          string    `json:"version"`
	Capabilities     []string  `json:"capabilities"`
	RetrySchedule    []float64 `json:"retrySchedule"`
	DefaultSchedule  []float64 `json:"defaultSchedule,omitempty"`
	Jitter           jitter    `json:"jitter"`
	Granularity      float64   `json:"granularity"`
	Timeout          float64   `json:"timeout"`
	ConnectTimeout   float64   `json:"connectTimeout"`
	RetryAfterCap    float64   `json:"retryAfterCap"`
	PerEndpointLimit int       `json:"perEndpointLimit"`
	RotationOverlap  float64   `json:"rotationOverlap"`
	DisableAfter     float64   `json:"disableAfter,omitempty"`
	NotifyAfter      []float64 `json:"notifyAfter,omitempty"`
	FinalStatuses    []int     `json:"finalStatuses"`
	ErrorBodyKept    int       `json:"errorBodyKept"`
	FailedKept       float64   `json:"failedKept"`
}

// initialize opens the sender. A second one opens it anew, for another run.
func (c *Control) initialize(ctx context.Context, p initializeParams) (*initialized, error) {
	if p.ProtocolVersion != controlVersion {
		return nil, &ControlError{CodeInvalidParams, fmt.Sprintf("this adapter speaks version %d of the protocol, not %d", controlVersion, p.ProtocolVersion)}
	}
	o, mock, err := c.begin(p)
	if err != nil {
		return nil, &ControlError{CodeInvalidParams, err.Error()}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.close(); err != nil {
		return nil, err
	}
	if err := c.open(ctx, firstOf(p.StateDir, c.options.StateDir), o, mock); err != nil {
		return nil, err
	}
	return c.about(c.sender, mock != nil), nil
}

// begin makes the options of the sender that initialize asks for.
func (c *Control) begin(p initializeParams) (o Options, mock *clock.Mock, err error) {
	o = Options{Profile: c.options.Profile, Random: c.options.Random, Logger: c.options.Logger}
	if o.Profile == nil {
		if o.Profile, err = profile.Load(p.Profile); err != nil {
			return o, nil, err
		}
	}
	switch {
	case p.Clock == "real" || p.Clock == "" && p.Now.IsZero():
		o.Clock, o.Policy = clock.New(), realPolicy()
	case p.Clock == "virtual" || p.Clock == "":
		mock = clock.NewMock()
		if p.Now.IsZero() {
			p.Now = clock.New().Now()
		}
		mock.Set(p.Now)
		o.Clock, o.Poll = mock, -1
		o.Unsynced = true // a run kills processes, and cuts no power
	default:
		return o, nil, fmt.Errorf("there is no clock %q: it is virtual or real", p.Clock)
	}
	if o.Guard, err = NewGuard(p.AllowHosts...); err != nil {
		return o, nil, err
	}
	o.Transport, err = NewTransport(TransportOptions{
		Clock: o.Clock, Guard: o.Guard, UserAgent: o.Profile.UserAgent, Resolver: p.Resolver, Authorities: []byte(p.CACertificate),
	})
	if err == nil && c.options.Change != nil {
		c.options.Change(&o)
	}
	return o, mock, err
}

// about is what the sender declares: what it is held to, and what it offers.
func (c *Control) about(s *Sender, virtual bool) *initialized {
	p := s.policy
	a := &initialized{
		ProtocolVersion: controlVersion, Name: c.options.Name, Version: c.options.Version,
		Capabilities:  c.capabilities(s.profile, virtual),
		RetrySchedule: seconds(p.Schedule...),
		Jitter:        jitter{p.JitterLow, p.JitterHigh}, Granularity: realGranularity.Seconds(),
		Timeout: p.Timeout.Seconds(), ConnectTimeout: p.ConnectTimeout.Seconds(), RetryAfterCap: p.RetryAfterCap.Seconds(),
		PerEndpointLimit: p.PerEndpoint, RotationOverlap: p.RotationOverlap.Seconds(), DisableAfter: p.DisableAfter.Seconds(),
		NotifyAfter: seconds(p.NotifyAfter...), FinalStatuses: []int{}, ErrorBodyKept: p.ErrorBody, FailedKept: p.KeepFailed.Seconds(),
	}
	if virtual {
		a.Granularity = virtualGranularity.Seconds()
	} else {
		a.Capabilities = append(a.Capabilities, "schedule")
		a.DefaultSchedule = seconds(s.profile.Schedule...)
	}
	return a
}

func (c *Control) capabilities(p *profile.Profile, virtual bool) []string {
	all := []string{"instances", "transaction", "resolver", "own-events"}
	if Envelope(p) {
		all = append(all, "versions") // the payload says in which one it is
	}
	for _, name := range slices.Sorted(maps.Keys(c.methods())) {
		if virtual || !strings.HasPrefix(name, "clock.") {
			all = append(all, name)
		}
	}
	return all
}

func seconds(durations ...time.Duration) []float64 {
	all := make([]float64, len(durations))
	for i, d := range durations {
		all[i] = d.Seconds()
	}
	return all
}
