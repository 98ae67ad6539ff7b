// Package fakeprovider plays the provider of a profile towards a receiver: it
// builds deliveries, spoils them on purpose, sends them byte by byte and
// records what came back.
//
// Read [Provider] first: [Provider.Draft] builds a delivery and applies
// alterations to it, [Provider.Send] sends it and returns the exchange. An
// [Alteration] is one deliberate change, made at its [Stage]: before signing,
// when the signature covers the change; to the signature itself; after signing,
// when it does not; or on the wire. The constructors in the alter_*.go files
// are all that the conformance suite uses; a literal Alteration does as well.
//
// [Respell] writes a JSON body as another library would, [Serializers] lists
// the libraries it knows, and [Explain] goes the other way: from the bodies
// that a receiver refused to the library that must stand between the wire and
// its signature check. [Spellings] is the set of bodies which that takes.
//
// [Provider.Load] sends many at a constant rate and counts how long each took
// from the instant it was due.
//
// Sending uses no HTTP library: net/http mends what this package breaks on
// purpose (order and case of header lines, lengths, early answers). Nothing
// here goes through a proxy or follows a redirect, and nothing is sent twice, but
// for a delivery of a load that meets a connection which was just closed.
package fakeprovider

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// The bounds of a delivery where its Target names none.
const (
	// ConnectTimeout bounds connecting and the TLS handshake. Providers give
	// it 1 s (Shopify) to 5 s (Standard Webhooks senders); the longest of
	// them, so that a slow handshake is not taken for a dead receiver.
	ConnectTimeout = 5 * time.Second

	// AnswerTimeout bounds the time from the first byte sent to the end of the
	// answer. It is the longest attempt timeout that Standard Webhooks
	// advises (15 to 30 s): who is slower was given up by every provider.
	AnswerTimeout = 30 * time.Second
)

// Config is what a Provider is made from.
type Config struct {
	Profile *profile.Profile // required
	Clock   clock.Clock      // required: the time of deliveries and exchanges

	// Rand is where ids take their randomness from. Nil: crypto/rand. With a
	// seeded source a run repeats its ids. It is read by one goroutine at a
	// time.
	Rand io.Reader
}

// Provider plays the provider of a profile. It is safe for use by several
// goroutines at a time.
type Provider struct {
	profile *profile.Profile
	scheme  signature.Scheme
	clock   clock.Clock

	mu   sync.Mutex // guards rand and the last id
	rand io.Reader
	last idStamp
}

// New makes a Provider. It fails when something required is missing or when
// the profile's scheme is one that cannot be signed here.
func New(c Config) (*Provider, error) {
	if c.Profile == nil {
		return nil, errors.New("making a provider: a profile is required")
	}
	if c.Clock == nil {
		return nil, errors.New("making a provider: a clock is required")
	}
	scheme, err := signature.New(c.Profile.Signature)
	if err != nil {
		return nil, fmt.Errorf("making a provider of profile %q: %w", c.Profile.Name, err)
	}
	p := &Provider{profile: c.Profile, scheme: scheme, clock: c.Clock, rand: c.Rand}
	if p.rand == nil {
		p.rand = rand.Reader
	}
	return p, nil
}

// Scheme is the signature scheme of the provider's profile.
func (p *Provider) Scheme() signature.Scheme { return p.scheme }

// Profile is what the provider was made from.
func (p *Provider) Profile() *profile.Profile { return p.profile }

// Target is where deliveries go and how long they may take.
type Target struct {
	// URL is an http or https address. A user and password in it are sent as
	// basic authorization.
	URL string

	// Address is the host and port to connect to in place of the URL's, for a
	// receiver whose public name does not lead to it yet. Host header and
	// certificate stay the URL's. Empty: the URL's own.
	Address string

	TLS *tls.Config // nil: the system's roots

	// Headers are added to each delivery, before the profile's. They are the
	// receiver's own affair (a gateway's key), so the exchange records their
	// names and [Redacted] in place of their values.
	Headers []wire.Header

	Connect time.Duration // bound on connecting and the TLS handshake; 0: ConnectTimeout
	Answer  time.Duration // bound from the first byte sent to the end of the answer; 0: AnswerTimeout
}

// Redacted stands in an exchange for a value that may be a secret.
const Redacted = "(not recorded)"

// Delivery is one event on its way to one receiver.
type Delivery struct {
	ID, Type string
	At       time.Time // zero: now by the provider's clock
	Keys     []signature.Key
	Body     []byte
	URL      string // only needed by schemes that sign it
}

// Stage says when an alteration is made.
type Stage int

// The stages, in their order.
const (
	BeforeSigning Stage = iota // changes Draft.Input, Draft.Keys: the signature covers the change
	OnTokens                   // changes Draft.Tokens: the signature header is written from them
	AfterSigning               // changes Draft.Request: the signature no longer covers it
	OnWire                     // changes how the bytes are sent
	stageEnd
)

// Alteration is one deliberate change to a delivery.
type Alteration struct {
	Name  string // short, fit for a label: "age-10m0s"
	Stage Stage
	Apply func(*Draft)
}

// Draft is a delivery being built.
type Draft struct {
	Input   signature.Input
	Keys    []signature.Key
	Tokens  []signature.Token
	Request wire.Request // Body and Headers are set before signing too; Target empty: from the URL when sent
	Wire    Wire
	Type    string // the event's type, for header templates

	scheme        signature.Scheme
	signingScheme signature.Scheme // in place of scheme where the signed content is not the scheme's
	emptyTime     bool             // the timestamp is the empty text
	err           error
}

// Fail makes Draft return err: for alterations that cannot be made, such as a
// change to an id that the body does not have. The first one counts.
func (d *Draft) Fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// Scheme is the scheme that signs the draft.
func (d *Draft) Scheme() signature.Scheme { return d.scheme }

// Wire is how a draft's bytes are sent, for what net/http cannot send.
type Wire struct {
	Length    *string          // Content-Length line as it stands; nil: the true one; "": no such line
	Chunked   bool             // Transfer-Encoding: chunked, no Content-Length unless Length is set
	Expect    bool             // Expect: 100-continue: waits (ExpectWait at most) before the body
	Body      func() io.Reader // streamed in place of Request.Body; Request.Size must be its size
	Pace      []Pause          // before the body byte at Offset, wait
	Drip      time.Duration    // wait between single body bytes
	StallAt   int64            // after that many body bytes write nothing more and wait for the peer; 0: no stall; negative: before the first
	HalfClose bool             // shut down the writing side after the body
}

// Pause is a wait before the body byte at Offset. Waits are real time.
type Pause struct {
	Offset int64
	Wait   time.Duration
}
