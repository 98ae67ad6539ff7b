package sender

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

type endpointCreateParams struct {
	URL        string   `json:"url"`
	EventTypes []string `json:"eventTypes"`
	APIVersion string   `json:"apiVersion"`
}

type endpointCreated struct {
	EndpointID string `json:"endpointId"`
	Secret     string `json:"secret"`
}

func (c *Control) endpointCreate(ctx context.Context, p endpointCreateParams) (*endpointCreated, error) {
	s, err := c.need()
	if err != nil {
		return nil, err
	}
	if Envelope(s.profile) && s.catalogue == nil {
		p.APIVersion = firstOf(p.APIVersion, envelopeVersion)
	}
	e, secret, err := s.CreateEndpoint(ctx, EndpointSpec(p))
	if err != nil {
		return nil, err
	}
	return &endpointCreated{e.ID, secret}, nil
}

type endpointParams struct {
	EndpointID string `json:"endpointId"`
}

type endpointState struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

func (c *Control) endpointGet(ctx context.Context, p endpointParams) (*endpointState, error) {
	s, err := c.need()
	if err != nil {
		return nil, err
	}
	e, err := s.Endpoint(ctx, p.EndpointID)
	if err != nil {
		return nil, err
	}
	return &endpointState{e.Status, e.Reason}, nil
}

func (c *Control) endpointChange(change func(*Sender, context.Context, string) error) func(context.Context, endpointParams) (any, error) {
	return func(ctx context.Context, p endpointParams) (any, error) {
		s, err := c.need()
		if err != nil {
			return nil, err
		}
		return nil, change(s, ctx, p.EndpointID)
	}
}

type rotated struct {
	Secret string `json:"secret"`
}

func (c *Control) endpointRotate(ctx context.Context, p endpointParams) (*rotated, error) {
	s, err := c.need()
	if err != nil {
		return nil, err
	}
	secret, err := s.RotateSecret(ctx, p.EndpointID)
	if err != nil {
		return nil, err
	}
	return &rotated{secret}, nil
}

type publishParams struct {
	Type          string          `json:"type"`
	Timestamp     time.Time       `json:"timestamp"`
	Payload       json.RawMessage `json:"payload"`
	PayloadBase64 *[]byte         `json:"payloadBase64"`
	Transaction   string          `json:"transaction"` // "", commit or rollback
}

type published struct {
	MessageIDs []string `json:"messageIds"`
}

// errRollback is how the suite's transaction ends that is to leave nothing.
var errRollback = errors.New("rolled back, as asked for")

func (c *Control) eventPublish(ctx context.Context, p publishParams) (*published, error) {
	s, err := c.need()
	if err != nil {
		return nil, err
	}
	e := Event{Type: p.Type, Time: p.Timestamp, Data: p.Payload}
	if p.PayloadBase64 != nil {
		e.Raw = *p.PayloadBase64
	}
	result := &published{MessageIDs: []string{}}
	var ids []string
	switch p.Transaction {
	case "":
		ids, err = s.Publish(ctx, e)
	case "commit", "rollback":
		err = s.Transaction(ctx, func(ctx context.Context, tx *sql.Tx) error {
			if ids, err = s.PublishTx(ctx, tx, e); err == nil && p.Transaction == "rollback" {
				err = errRollback
			}
			return err
		})
		if errors.Is(err, errRollback) {
			return result, nil
		}
	default:
		err = &ControlError{CodeInvalidParams, fmt.Sprintf("a transaction ends by commit or rollback, not by %q", p.Transaction)}
	}
	if err != nil {
		return nil, err
	}
	result.MessageIDs = append(result.MessageIDs, ids...)
	return result, nil
}

type messageParams struct {
	MessageID string `json:"messageId"`
}

// eventMutate changes the record behind a message, as the business would.
func (c *Control) eventMutate(ctx context.Context, p messageParams) (any, error) {
	s, err := c.need()
	if err != nil {
		return nil, err
	}
	return nil, s.ChangeRecord(ctx, p.MessageID, []byte(`{"changed":"after it was published"}`))
}

type resendParams struct {
	MessageID  string    `json:"messageId"`
	EndpointID string    `json:"endpointId"`
	Since      time.Time `json:"since"`
}

func (c *Control) messageResend(ctx context.Context, p resendParams) (any, error) {
	s, err := c.need()
	if err != nil {
		return nil, err
	}
	if p.MessageID != "" {
		return nil, s.Resend(ctx, p.MessageID)
	}
	_, err = s.ResendFailed(ctx, p.EndpointID, p.Since)
	return nil, err
}

type loggedAttempt struct {
	At       time.Time `json:"at"`
	Status   int       `json:"status,omitempty"`
	Error    string    `json:"error,omitempty"`
	Duration float64   `json:"duration"`
	Body     string    `json:"body,omitempty"`
	Manual   bool      `json:"manual,omitempty"`
}

type deliveryLog struct {
	Attempts []loggedAttempt `json:"attempts"`
}

func (c *Control) messageAttempts(ctx context.Context, p messageParams) (*deliveryLog, error) {
	s, err := c.need()
	if err != nil {
		return nil, err
	}
	attempts, err := s.Attempts(ctx, p.MessageID)
	if err != nil {
		return nil, err
	}
	log := &deliveryLog{Attempts: []loggedAttempt{}}
	for _, a := range attempts {
		log.Attempts = append(log.Attempts, loggedAttempt{a.At, a.Status, a.Error, a.Duration.Seconds(), string(a.Body), a.Manual})
	}
	return log, nil
}

type listParams struct {
	Status     string    `json:"status"`
	EndpointID string    `json:"endpointId"`
	Since      time.Time `json:"since"`
}

type listedMessage struct {
	MessageID  string `json:"messageId"`
	EndpointID string `json:"endpointId"`
	Status     string `json:"status"`
	Type       string `json:"type"`
}

type messageList struct {
	Messages []listedMessage `json:"messages"`
}

func (c *Control) messagesList(ctx context.Context, p listParams) (*messageList, error) {
	s, err := c.need()
	if err != nil {
		return nil, err
	}
	messages, err := s.Messages(ctx, MessageFilter{Status: p.Status, EndpointID: p.EndpointID, Since: p.Since})
	if err != nil {
		return nil, err
	}
	list := &messageList{Messages: []listedMessage{}}
	for _, m := range messages {
		list.Messages = append(list.Messages, listedMessage{m.ID, m.EndpointID, m.Status, m.Type})
	}
	return list, nil
}

type listedNotification struct {
	At         time.Time `json:"at"`
	EndpointID string    `json:"endpointId"`
	Kind       string    `json:"kind"`
	Text       string    `json:"text"`
}

type notificationList struct {
	Notifications []listedNotification `json:"notifications"`
}

func (c *Control) notificationsList(ctx context.Context, p endpointParams) (*notificationList, error) {
	s, err := c.need()
	if err != nil {
		return nil, err
	}
	notifications, err := s.Notifications(ctx, p.EndpointID)
	if err != nil {
		return nil, err
	}
	list := &notificationList{Notifications: []listedNotification{}}
	for _, n := range notifications {
		list.Notifications = append(list.Notifications, listedNotification(n))
	}
	return list, nil
}
