package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// The methods of a sender's adapter. [MethodAdvance] is one of them too.
const (
	MethodCreateEndpoint  = "endpoint.create"
	MethodGetEndpoint     = "endpoint.get"
	MethodEnableEndpoint  = "endpoint.enable"
	MethodDisableEndpoint = "endpoint.disable"
	MethodDeleteEndpoint  = "endpoint.delete"
	MethodRotateSecret    = "endpoint.rotateSecret"
	MethodPublish         = "event.publish"
	MethodMutate          = "event.mutate"
	MethodResend          = "message.resend"
	MethodAttempts        = "message.attempts"
	MethodMessages        = "messages.list"
	MethodNotifications   = "notifications.list"
)

// Bounds of what a sender's adapter may say.
const (
	// maxSecret bounds a secret, in bytes: 64 bytes in base64 and a prefix are 94.
	maxSecret = 1 << 10
	// maxList bounds the length of a list. Whatever is listed is the work of a
	// run, which makes some thousands of messages.
	maxList = 10_000
	// maxSeconds is the longest time that anybody declares: ten years.
	maxSeconds = 10 * 366 * 24 * 3600
)

// What an endpoint and a message can be.
const (
	StatusEnabled   = "enabled"
	StatusDisabled  = "disabled"
	StatusDeleted   = "deleted"
	StatusPending   = "pending"
	StatusDelivered = "delivered"
	StatusFailed    = "failed"
)

// CreateEndpointParams is an endpoint to be made.
type CreateEndpointParams struct {
	URL        string   `json:"url"`
	EventTypes []string `json:"eventTypes,omitempty"` // that it gets; none: all
	APIVersion string   `json:"apiVersion,omitempty"`
}

// CreatedEndpoint is an endpoint that was made, with the secret as its owner
// would be shown it.
type CreatedEndpoint struct {
	EndpointID string `json:"endpointId"`
	Secret     string `json:"secret"`
}

func (CreatedEndpoint) form() string { return `{"endpointId":"…","secret":"…"}` }

func (c *CreatedEndpoint) check() error {
	if err := checkText("endpointId", c.EndpointID, 1, maxText); err != nil {
		return err
	}
	return checkText("secret", c.Secret, 1, maxSecret)
}

// EndpointParams names an endpoint.
type EndpointParams struct {
	EndpointID string `json:"endpointId"`
}

// EndpointStatus is whether an endpoint gets attempts: [StatusEnabled],
// [StatusDisabled] or [StatusDeleted].
type EndpointStatus struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"` // why it is disabled
}

func (EndpointStatus) form() string {
	return `{"status":"enabled"}, or disabled or deleted, with "reason"`
}

func (s *EndpointStatus) check() error {
	return checkWord("status", s.Status, StatusEnabled, StatusDisabled, StatusDeleted)
}

// RotatedSecret is the new secret of an endpoint.
type RotatedSecret struct {
	Secret string `json:"secret"`
}

func (RotatedSecret) form() string { return `{"secret":"…"}` }

func (s *RotatedSecret) check() error { return checkText("secret", s.Secret, 1, maxSecret) }

// PublishParams is an event. Its payload stands in one of two members: Payload
// is JSON that the sender spells as it likes, PayloadBase64 are exact bytes.
type PublishParams struct {
	Type          string          `json:"type"`
	Timestamp     time.Time       `json:"timestamp"` // when it happened
	Payload       json.RawMessage `json:"payload,omitzero"`
	PayloadBase64 []byte          `json:"payloadBase64,omitzero"`
	// EndpointIDs are those that the suite means it for: a hint for a sender that
	// cannot choose by type.
	EndpointIDs []string `json:"endpointIds,omitempty"`
	// Transaction is "", "commit" or "rollback": publish inside a transaction
	// that ends so.
	Transaction string `json:"transaction,omitempty"`
}

// Published is what came of an event: the ids of its messages, one an endpoint.
type Published struct {
	MessageIDs []string `json:"messageIds"`
}

func (Published) form() string {
	return `{"messageIds":["…"]}, one for each endpoint that gets it, perhaps none`
}

func (p *Published) check() error {
	if p.MessageIDs == nil {
		return missing("messageIds")
	}
	return checkTexts("messageIds", p.MessageIDs, maxList)
}

// MessageParams names a message.
type MessageParams struct {
	MessageID string `json:"messageId"`
}

// ResendParams is a message, or all that failed since a time, of one endpoint or
// of all.
type ResendParams struct {
	MessageID  string     `json:"messageId,omitempty"`
	Since      *time.Time `json:"since,omitempty"`
	EndpointID string     `json:"endpointId,omitempty"`
}

// Attempts is the delivery log of a message, the oldest first.
type Attempts struct {
	Attempts []Attempt `json:"attempts"`
}

// Attempt is one line of a delivery log.
type Attempt struct {
	At       time.Time `json:"at"`
	Status   int       `json:"status,omitempty"` // of the answer; 0 where none came
	Error    string    `json:"error,omitempty"`
	Duration float64   `json:"duration"`       // in seconds
	Body     string    `json:"body,omitempty"` // the start of an error's body
}

func (Attempts) form() string {
	return `{"attempts":[{"at":"2026-01-02T15:04:05Z","status":500,"duration":0.2,"error":"…","body":"…"}]}`
}

func (a *Attempts) check() error {
	if a.Attempts == nil {
		return missing("attempts")
	}
	if len(a.Attempts) > maxList {
		return wrongMember("attempts", "has %d entries, more than %d", len(a.Attempts), maxList)
	}
	for i, one := range a.Attempts {
		name := func(member string) string { return fmt.Sprintf("attempts[%d].%s", i, member) }
		if one.At.IsZero() {
			return missing(name("at"))
		}
		if one.Status < 0 || one.Status > 999 {
			return wrongMember(name("status"), "is %d, which is no HTTP status", one.Status)
		}
		if err := checkSeconds(name("duration"), &one.Duration, 0); err != nil {
			return err
		}
	}
	return nil
}

// MessagesParams chooses messages; a member left out chooses all.
type MessagesParams struct {
	Status     string     `json:"status,omitempty"`
	EndpointID string     `json:"endpointId,omitempty"`
	Since      *time.Time `json:"since,omitempty"`
}

// Messages is a list of messages, in any order.
type Messages struct {
	Messages []Message `json:"messages"`
}

// Message is one message of a list. Its status is [StatusPending],
// [StatusDelivered] or [StatusFailed].
type Message struct {
	MessageID  string `json:"messageId"`
	EndpointID string `json:"endpointId,omitempty"`
	Status     string `json:"status"`
	Type       string `json:"type,omitempty"`
}

func (Messages) form() string {
	return `{"messages":[{"messageId":"…","endpointId":"…","status":"pending","type":"…"}]} with the status pending, delivered or failed`
}

func (m *Messages) check() error {
	if m.Messages == nil {
		return missing("messages")
	}
	if len(m.Messages) > maxList {
		return wrongMember("messages", "has %d entries, more than %d", len(m.Messages), maxList)
	}
	for i, one := range m.Messages {
		if err := checkText(fmt.Sprintf("messages[%d].messageId", i), one.MessageID, 1, maxText); err != nil {
			return err
		}
		if err := checkWord(fmt.Sprintf("messages[%d].status", i), one.Status, StatusPending, StatusDelivered, StatusFailed); err != nil {
			return err
		}
	}
	return nil
}

// NotificationsParams names an endpoint; "" chooses all.
type NotificationsParams struct {
	EndpointID string `json:"endpointId,omitempty"`
}

// Notifications is what owners of endpoints were told, the oldest first.
type Notifications struct {
	Notifications []Notification `json:"notifications"`
}

// Notification is what an owner was told.
type Notification struct {
	At         time.Time `json:"at"`
	EndpointID string    `json:"endpointId"`
	Kind       string    `json:"kind,omitempty"` // in the sender's own word
	Text       string    `json:"text,omitempty"`
}

func (Notifications) form() string {
	return `{"notifications":[{"at":"2026-01-02T15:04:05Z","endpointId":"…","kind":"…","text":"…"}]}`
}

func (n *Notifications) check() error {
	if n.Notifications == nil {
		return missing("notifications")
	}
	if len(n.Notifications) > maxList {
		return wrongMember("notifications", "has %d entries, more than %d", len(n.Notifications), maxList)
	}
	for i, one := range n.Notifications {
		if one.At.IsZero() {
			return missing(fmt.Sprintf("notifications[%d].at", i))
		}
		if err := checkText(fmt.Sprintf("notifications[%d].endpointId", i), one.EndpointID, 1, maxText); err != nil {
			return err
		}
	}
	return nil
}

// CreateEndpoint makes an endpoint.
func (s *Session) CreateEndpoint(ctx context.Context, p CreateEndpointParams) (CreatedEndpoint, error) {
	return ask[CreatedEndpoint](ctx, s, MethodCreateEndpoint, p)
}

// GetEndpoint tells how an endpoint stands.
func (s *Session) GetEndpoint(ctx context.Context, id string) (EndpointStatus, error) {
	return ask[EndpointStatus](ctx, s, MethodGetEndpoint, EndpointParams{EndpointID: id})
}

// SetEndpoint calls [MethodEnableEndpoint], [MethodDisableEndpoint] or
// [MethodDeleteEndpoint].
func (s *Session) SetEndpoint(ctx context.Context, method, id string) error {
	return s.Call(ctx, method, EndpointParams{EndpointID: id}, nil)
}

// RotateSecret gives an endpoint a new secret and returns it.
func (s *Session) RotateSecret(ctx context.Context, id string) (RotatedSecret, error) {
	return ask[RotatedSecret](ctx, s, MethodRotateSecret, EndpointParams{EndpointID: id})
}

// Publish publishes an event. It returns when the sender has confirmed it.
func (s *Session) Publish(ctx context.Context, p PublishParams) (Published, error) {
	p.Timestamp = p.Timestamp.UTC()
	return ask[Published](ctx, s, MethodPublish, p)
}

// Mutate changes the record that a message was made from.
func (s *Session) Mutate(ctx context.Context, messageID string) error {
	return s.Call(ctx, MethodMutate, MessageParams{MessageID: messageID}, nil)
}

// Resend sends messages again by hand.
func (s *Session) Resend(ctx context.Context, p ResendParams) error {
	return s.Call(ctx, MethodResend, p, nil)
}

// Attempts is the delivery log of a message.
func (s *Session) Attempts(ctx context.Context, messageID string) (Attempts, error) {
	return ask[Attempts](ctx, s, MethodAttempts, MessageParams{MessageID: messageID})
}

// Messages lists messages.
func (s *Session) Messages(ctx context.Context, p MessagesParams) (Messages, error) {
	return ask[Messages](ctx, s, MethodMessages, p)
}

// Notifications lists what owners were told.
func (s *Session) Notifications(ctx context.Context, endpointID string) (Notifications, error) {
	return ask[Notifications](ctx, s, MethodNotifications, NotificationsParams{EndpointID: endpointID})
}

func ask[R any](ctx context.Context, s *Session, method string, params any) (R, error) {
	var result R
	if err := s.Call(ctx, method, params, &result); err != nil {
		var none R
		return none, err
	}
	return result, nil
}
