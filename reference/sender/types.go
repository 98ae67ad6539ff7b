package sender

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// MaxPayload is how large the payload of a message may be, 1 MiB. Receivers are
// asked to take 64 KiB and the Standard Webhooks specification advises 20 KiB:
// the bound protects the sender, and is no recommendation.
const MaxPayload = 1 << 20

// Event is something that happened, to be told to every endpoint that has
// subscribed to its type. One of Data and Raw is set.
type Event struct {
	Type string    // full-stop separated words of [a-zA-Z0-9_]
	Time time.Time // when it happened; zero: now

	// Data is what is peculiar to the event, as JSON. The payload is built around
	// it once for each version that endpoints are pinned to.
	Data json.RawMessage

	// Raw is a finished payload, sent byte for byte.
	Raw []byte
}

// EndpointSpec is an endpoint to be created.
type EndpointSpec struct {
	URL        string   // see [Guard.CheckURL] for what is refused
	EventTypes []string // whole names; empty: every type
	APIVersion string   // of the payload; "": the newest, from now on
}

// The values of [Endpoint.Status].
const (
	EndpointEnabled  = "enabled"
	EndpointDisabled = "disabled" // messages wait until it is enabled again
	EndpointDeleted  = "deleted"  // its messages have failed
)

// Endpoint is where messages go, without its secrets.
type Endpoint struct {
	ID, URL, APIVersion string
	EventTypes          []string // empty: every type
	Status              string   // one of EndpointEnabled …
	Reason              string   // why it is not enabled, for people
	CreatedAt           time.Time
	FailingSince        time.Time // end of the first failure since the last success; zero: it works, or was not tried
	LastSuccess         time.Time // zero: never
}

// The values of [Message.Status].
const (
	MessagePending   = "pending"
	MessageDelivered = "delivered"
	MessageFailed    = "failed" // every attempt of the schedule is used up
)

// Message is an event addressed to one endpoint.
type Message struct {
	ID, EndpointID, Type string
	Status               string // one of MessagePending …
	Attempts             int    // that the schedule made; those by hand are not counted
	CreatedAt            time.Time
	Next                 time.Time // the next attempt; zero: none, or one is under way
	FinishedAt           time.Time // when it was delivered or failed; zero while pending
}

// MessageFilter chooses messages; a zero member chooses all.
type MessageFilter struct {
	Status, EndpointID string
	Since              time.Time // published at this time or later
	After              string    // id of the last message of the page before
	Limit              int       // 0, and more than MaxPage: MaxPage
}

// MaxPage is how many rows a list gives at most, 1,000.
const MaxPage = 1000

// Attempt is a line of a message's delivery log.
type Attempt struct {
	MessageID, EndpointID string
	Number                int // counted from 1; 0 for one by hand
	Manual                bool
	At                    time.Time // when it began
	Duration              time.Duration
	Status                int    // of the answer; 0: none came
	Fault                 string // one of the wire.Fault constants, where no answer came
	Error                 string // what went wrong, for people; empty after a success
	Body                  []byte // the start of an error's body
}

// The values of [Notification.Kind].
const (
	NotifyFailing     = "endpoint.failing"     // no success for one of Policy.NotifyAfter
	NotifyDisabled    = "endpoint.disabled"    // 410, or no success for Policy.DisableAfter
	NotifyCredentials = "endpoint.credentials" // 401 or 403 after deliveries that worked
)

// Notification is what the owner of an endpoint is told by another way than its
// webhooks.
type Notification struct {
	At                     time.Time
	EndpointID, Kind, Text string
}

// State is how the sender stands at an instant of its clock.
type State struct {
	Now      time.Time
	Next     time.Time // when something is due next, ends of running attempts included; zero: never
	InFlight int       // attempts that are under way or being written down
}

// Transport makes one attempt over the network.
type Transport interface {
	// Attempt never follows a redirect, never repeats a request and is bounded
	// in time and memory. What goes wrong is a Result, too. When ctx is done it
	// returns soon, and the result is not used.
	Attempt(ctx context.Context, r Request) Result
}

// Request is one attempt as it goes to the network.
type Request struct {
	URL     string
	Headers []wire.Header // in this order and case
	Body    []byte

	// Began is when the attempt began on the sender's clock: the timeouts count
	// from here, and one that has passed already ends the attempt at once. Zero
	// is the present.
	Began time.Time

	Timeout        time.Duration // from Began to the end of the answer
	ConnectTimeout time.Duration // from Began until there is a connection

	// Connected, where it is not nil, is called once the request has a
	// connection, TLS included: from then on ConnectTimeout is without meaning.
	Connected func()
}

// Result is how an attempt came out. Status is set as soon as the answer's head
// was read; Err and Fault tell what ended the attempt otherwise.
type Result struct {
	Status           int    // 0: no answer came
	RetryAfter       string // the header as it stood, "" for none
	Body             []byte // at most the first KiB, and of errors only
	Err              error  // what went wrong, for people, without secrets
	Fault            string // one of the wire.Fault constants or FaultForbidden, or ""
	ConnectionReused bool
}

// What callers choose by.
var (
	// ErrUnavailable is returned, wrapped together with the cause, while the
	// database cannot be written. Nothing was stored.
	ErrUnavailable = errors.New("the outbox cannot store")

	// ErrNotFound is returned for ids that are not known.
	ErrNotFound = errors.New("not found")

	// ErrConflict is returned for what the present state does not permit, such
	// as a resend to a deleted endpoint.
	ErrConflict = errors.New("not possible now")

	// ErrInvalid is returned for what can never be taken.
	ErrInvalid = errors.New("invalid")
)
