package drive

import (
	"context"
	"encoding/json"
	"time"
)

// Capabilities that a sender may offer beside publishing to a URL, by the names
// that the catalogue's Needs use. Managed, Clock and Instances are shared with
// receivers.
const (
	Rotate        = "rotate"
	Resend        = "resend"
	AttemptLog    = "attempts"
	List          = "list"
	Status        = "status"
	Disable       = "disable"
	Schedule      = "schedule" // it declares a shorter schedule for tests
	Transaction   = "transaction"
	Mutate        = "mutate"
	Resolver      = "resolver"
	Notifications = "notifications"
	Versions      = "versions"
	OwnEvents     = "own-events" // the sender builds the payload
	Ed25519       = "ed25519"
)

// Sender is a webhook sender, as its adapter lets the suite reach it. Methods
// whose capability it lacks return ErrNotOffered. Safe for concurrent use.
type Sender interface {
	Subject
	// About is what the sender declared of itself.
	About() About

	CreateEndpoint(context.Context, EndpointSpec) (Endpoint, error)
	// EndpointStatus needs Status.
	EndpointStatus(ctx context.Context, endpointID string) (EndpointStatus, error)
	// EnableEndpoint, DisableEndpoint and DeleteEndpoint need Disable.
	EnableEndpoint(ctx context.Context, endpointID string) error
	DisableEndpoint(ctx context.Context, endpointID string) error
	DeleteEndpoint(ctx context.Context, endpointID string) error
	// RotateSecret gives the endpoint a new secret and returns it. Needs Rotate.
	RotateSecret(ctx context.Context, endpointID string) (string, error)

	// Publish returns when the sender has confirmed the event: from then on it
	// must not be lost. The ids are those of its messages, one an endpoint.
	Publish(context.Context, Event) (messageIDs []string, err error)
	// Mutate changes the record that a message was made from. Needs Mutate.
	Mutate(ctx context.Context, messageID string) error
	// Resend sends a message again by hand. Needs Resend.
	Resend(ctx context.Context, messageID string) error
	// ResendFailed sends all failed messages of an endpoint since a time again.
	// Needs Resend.
	ResendFailed(ctx context.Context, endpointID string, since time.Time) error
	// Attempts is the delivery log of a message, the oldest first. Needs AttemptLog.
	Attempts(ctx context.Context, messageID string) ([]LoggedAttempt, error)
	// Messages lists messages. Needs List.
	Messages(context.Context, MessageFilter) ([]Message, error)
	// Notifications lists what the owner of an endpoint was told, the oldest
	// first. Needs Notifications.
	Notifications(ctx context.Context, endpointID string) ([]Notification, error)

	// Advance moves the sender's clock; what is due by then is claimed before it
	// returns. Advancing to the present time asks for the state. Needs Clock.
	Advance(ctx context.Context, to time.Time) (ClockState, error)

	// Another starts another process of the same sender: on the same state, as a
	// second dispatcher (needs Instances), or on a state of its own, to be killed
	// or joined by a second one (needs Managed or Instances). Its clock starts at
	// now. The caller closes it.
	Another(ctx context.Context, now time.Time, sameState bool) (Sender, error)
}

// About is what a sender declares: who it is, and the numbers that it is then
// held to. A nil pointer, or an empty list, was not declared; see
// conformance/sender for what counts in its place.
type About struct {
	Name, Version string
	Capabilities  []string
	// Schedule is the delay before each attempt, the first included; Default is
	// the one that it is shipped with, where Schedule is a shorter one for tests.
	Schedule, Default       []time.Duration
	JitterLow, JitterHigh   *float64
	Granularity             *time.Duration // how coarse its timers are; 1 s if undeclared
	Timeout, ConnectTimeout *time.Duration // of one attempt
	RetryAfterCap           *time.Duration
	PerEndpointLimit        *int // attempts in flight at one endpoint
	RotationOverlap         *time.Duration
	DisableAfter            *time.Duration // without a success
	NotifyAfter             []time.Duration
	FinalStatuses           []int // answers that are not tried again
	ErrorBodyKept           *int  // bytes of an error's body in the log
	FailedKept              *time.Duration
	EventTypes              []string // the only ones it knows; empty: any
	APIVersions             []string // of the payload, that endpoints can be pinned to
	GivenSecrets            bool     // secrets are the user's own, not made by the sender: nothing is said of their form
}

// EndpointSpec is an endpoint to be made.
type EndpointSpec struct {
	URL        string
	EventTypes []string // that it gets; empty: all
	APIVersion string   // needs Versions; "" for the sender's own choice
}

// Endpoint is an endpoint that was made. Its secret is what the owner is shown.
type Endpoint struct{ ID, Secret string }

// EndpointStatus is whether an endpoint gets attempts: enabled, disabled or
// deleted, and why, in the sender's own words.
type EndpointStatus struct{ Status, Reason string }

// Event is what is published. Exactly one of Payload and Raw is set.
type Event struct {
	Type string
	At   time.Time
	// Payload is JSON that the sender spells as it likes; Raw are exact bytes.
	Payload json.RawMessage
	Raw     []byte
	// EndpointIDs are those that the suite means it for. A sender that fans out
	// by event type alone need not look at them.
	EndpointIDs []string
	// Transaction is "", "commit" or "rollback"; the latter two need Transaction.
	Transaction string
}

// LoggedAttempt is one line of a delivery log.
type LoggedAttempt struct {
	At       time.Time
	Status   int // 0: no answer came
	Error    string
	Duration time.Duration
	Body     string // the start of the answer's body
}

// MessageFilter chooses messages. Status is "", "pending", "delivered" or
// "failed"; a zero member chooses all.
type MessageFilter struct {
	Status, EndpointID string
	Since              time.Time
}

// Message is one message of a list.
type Message struct{ ID, EndpointID, Status, Type string }

// Notification is what an owner was told. Kind is the sender's own word.
type Notification struct {
	At                     time.Time
	EndpointID, Kind, Text string
}

// ClockState is how a sender stands at an instant of its clock.
type ClockState struct {
	Now time.Time
	// Next is when something is due next, the ends of running attempts included;
	// zero for never.
	Next     time.Time
	InFlight int // attempts under way
	// Told says that the sender knows Next and InFlight. Without them the
	// timeline can only wait a bounded time.
	Told bool
}
