package receiver

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
)

// The bounds that apply where Config names none.
const (
	// DefaultMaxBody is what a receiver accepts at most where the profile says
	// nothing, 64 KiB: three times the 20 KiB that a sender should stay within.
	// source: Standard Webhooks, payload size.
	DefaultMaxBody = 64 << 10

	// DefaultMaxConcurrent is how many deliveries are verified and stored at one
	// time, 256: four times the widest burst that providers are known for, few
	// enough that a store which slows down is not buried.
	DefaultMaxConcurrent = 256

	// DefaultBodyTimeout is how long a whole body may take, 30 s: twice what
	// the most patient provider waits for an answer, so no delivery that could
	// still succeed is cut off.
	DefaultBodyTimeout = 30 * time.Second

	// DefaultMemory bounds the bodies in memory at one time, 64 MiB: a thousand
	// of the largest permitted, or a hundred thousand ordinary ones.
	DefaultMemory = 64 << 20

	// slotWait is how long a delivery waits for one of MaxConcurrent slots, 1 s:
	// it levels a burst out, and leaves the provider's timeout (3 s at the
	// strictest) room for the work itself.
	slotWait = time.Second

	// storeTimeout is how long storing may take, 10 s: a store that needs
	// longer is broken, and by then most providers have given up.
	storeTimeout = 10 * time.Second
)

// Config is what a [Receiver] is made from.
type Config struct {
	// Profile is the provider's contract. Required.
	Profile *profile.Profile

	// Keys are the secrets that verify, the current one first, then those that
	// are being retired: while a rotation lasts both are accepted. At least
	// one: without a secret every delivery is a forgery.
	Keys []signature.Key

	// Scheme takes the place of the profile's signature scheme, for receivers
	// that are to be wrong on purpose. Nil: see the function Scheme.
	Scheme signature.Scheme

	// Store is where authentic messages go. Required.
	Store Store

	// Clock tells the time against which timestamps are held. Required. Waits
	// for the network go by real time, as the network does.
	Clock clock.Clock

	// Logger gets a line for each refusal and each fault; nil discards them. No
	// line holds a secret, a signature or a body.
	Logger *slog.Logger

	MaxBody       int64         // bytes; 0: the profile's, at least its largest event, else DefaultMaxBody
	MaxConcurrent int           // 0: DefaultMaxConcurrent
	MaxMemory     int64         // bytes of bodies at one time; 0: DefaultMemory, at least 4 × MaxBody
	BodyTimeout   time.Duration // for the whole body; 0: DefaultBodyTimeout
	ForgedLimit   Limit         // failed verifications; zero fields: DefaultForged

	// VerifyToken is the token that Meta repeats when it validates the address.
	// Empty: the challenge is answered whatever the token. Events are guarded
	// by their signature all the same.
	VerifyToken string
}

// New makes a receiver. Its errors say what the configuration lacks; above all,
// it refuses to start without a secret.
func New(c Config) (*Receiver, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("configuring the receiver: %w", err)
	}
	c.defaults()
	if c.Scheme == nil {
		s, err := Scheme(c.Profile)
		if err != nil {
			return nil, fmt.Errorf("configuring the receiver: profile %s: %w", c.Profile.Name, err)
		}
		c.Scheme = s
	}
	hs, err := newHandshake(c)
	if err != nil {
		return nil, fmt.Errorf("configuring the receiver: handshake %s: %w", c.Profile.Handshake, err)
	}
	return &Receiver{
		scheme:      c.Scheme,
		keys:        slices.Clone(c.Keys),
		identity:    newIdentity(c.Profile, c.Scheme),
		handshake:   hs,
		store:       c.Store,
		clock:       c.Clock,
		log:         c.Logger,
		maxBody:     c.MaxBody,
		bodyTimeout: c.BodyTimeout,
		slots:       make(chan struct{}, c.MaxConcurrent),
		slotWait:    slotWait,
		memory:      &budget{limit: c.MaxMemory},
		forged:      newThrottle(c.ForgedLimit),
		refusal:     refusalStatus(c.Profile),
	}, nil
}

// Scheme is the signature scheme by which a receiver verifies deliveries of a
// profile: the provider's, with a tolerance both ways. Some providers' own
// libraries look for old timestamps only. A receiver is safe to refuse what
// comes from the future too: a delivery signed ahead of time, by whoever had the
// secret for a moment, would stay good for as long as he liked.
//
// The error is a *[signature.UnsupportedError] where the profile's scheme is only
// described.
func Scheme(p *profile.Profile) (signature.Scheme, error) {
	spec := p.Signature
	if spec.Timestamp.Future == 0 {
		spec.Timestamp.Future = spec.Timestamp.Past
	}
	return signature.New(spec)
}

func (c *Config) check() error {
	var errs []error
	if c.Profile == nil {
		errs = append(errs, errors.New("no profile"))
	}
	if c.Store == nil {
		errs = append(errs, errors.New("no store"))
	}
	if c.Clock == nil {
		errs = append(errs, errors.New("no clock"))
	}
	if len(c.Keys) == 0 {
		errs = append(errs, errors.New("no secret: without one nothing can be verified; set the secret that the provider shows for this endpoint"))
	}
	for i, k := range c.Keys {
		if k.IsZero() {
			errs = append(errs, fmt.Errorf("secret %d (%s) is empty: anybody could sign with it", i+1, k.Label))
		}
	}
	if c.MaxBody < 0 || c.MaxConcurrent < 0 || c.MaxMemory < 0 || c.BodyTimeout < 0 || c.ForgedLimit.Burst < 0 || c.ForgedLimit.PerSecond < 0 {
		errs = append(errs, errors.New("a bound is negative"))
	}
	return errors.Join(errs...)
}

func (c *Config) defaults() {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.MaxBody == 0 {
		c.MaxBody = max(c.Profile.MaxBody, c.Profile.EventBytes)
	}
	if c.MaxBody == 0 {
		c.MaxBody = DefaultMaxBody
	}
	if c.MaxConcurrent == 0 {
		c.MaxConcurrent = DefaultMaxConcurrent
	}
	if c.MaxMemory == 0 {
		c.MaxMemory = max(DefaultMemory, 4*c.MaxBody)
	}
	if c.BodyTimeout == 0 {
		c.BodyTimeout = DefaultBodyTimeout
	}
}

// refusalStatus is how a delivery that does not verify is answered: 401, unless
// the provider counts only others as a refusal.
func refusalStatus(p *profile.Profile) int {
	if len(p.RejectWith) == 0 || slices.Contains(p.RejectWith, http.StatusUnauthorized) {
		return http.StatusUnauthorized
	}
	return p.RejectWith[0]
}
