package drive

import (
	"context"
	"errors"
	"time"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

// The methods of a sender behind an adapter: each is one call.

// call asks the present session, within the bound of a call.
func (s *remoteSender) call(ctx context.Context, capability string, ask func(context.Context, *adapter.Session) error) error {
	if capability != "" && !s.Has(capability) {
		return ErrNotOffered
	}
	s.mu.RLock()
	session := s.session
	s.mu.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, s.options.CallTimeout)
	defer cancel()
	return ask(ctx, session)
}

func (s *remoteSender) learn(secret string) {
	s.secrets.add(secret)
	if s.options.Secret != nil {
		s.options.Secret(secret)
	}
}

func (s *remoteSender) CreateEndpoint(ctx context.Context, spec EndpointSpec) (e Endpoint, err error) {
	err = s.call(ctx, "", func(ctx context.Context, session *adapter.Session) error {
		made, err := session.CreateEndpoint(ctx, adapter.CreateEndpointParams{URL: spec.URL, EventTypes: spec.EventTypes, APIVersion: spec.APIVersion})
		if err == nil {
			s.learn(made.Secret)
			e = Endpoint{ID: made.EndpointID, Secret: made.Secret}
		}
		return err
	})
	return e, err
}

func (s *remoteSender) EndpointStatus(ctx context.Context, id string) (e EndpointStatus, err error) {
	err = s.call(ctx, Status, func(ctx context.Context, session *adapter.Session) error {
		got, err := session.GetEndpoint(ctx, id)
		e = EndpointStatus{Status: got.Status, Reason: got.Reason}
		return err
	})
	return e, err
}

func (s *remoteSender) EnableEndpoint(ctx context.Context, id string) error {
	return s.set(ctx, adapter.MethodEnableEndpoint, id)
}

func (s *remoteSender) DisableEndpoint(ctx context.Context, id string) error {
	return s.set(ctx, adapter.MethodDisableEndpoint, id)
}

func (s *remoteSender) DeleteEndpoint(ctx context.Context, id string) error {
	return s.set(ctx, adapter.MethodDeleteEndpoint, id)
}

func (s *remoteSender) set(ctx context.Context, method, id string) error {
	return s.call(ctx, Disable, func(ctx context.Context, session *adapter.Session) error {
		return session.SetEndpoint(ctx, method, id)
	})
}

func (s *remoteSender) RotateSecret(ctx context.Context, id string) (secret string, err error) {
	err = s.call(ctx, Rotate, func(ctx context.Context, session *adapter.Session) error {
		got, err := session.RotateSecret(ctx, id)
		if err == nil {
			s.learn(got.Secret)
			secret = got.Secret
		}
		return err
	})
	return secret, err
}

func (s *remoteSender) Publish(ctx context.Context, e Event) (ids []string, err error) {
	if (e.Payload == nil) == (e.Raw == nil) {
		return nil, errors.New("publishing an event: exactly one of Payload and Raw is to be set")
	}
	capability := ""
	if e.Transaction != "" {
		capability = Transaction
	}
	err = s.call(ctx, capability, func(ctx context.Context, session *adapter.Session) error {
		got, err := session.Publish(ctx, adapter.PublishParams{
			Type: e.Type, Timestamp: e.At, Payload: e.Payload, PayloadBase64: e.Raw,
			EndpointIDs: e.EndpointIDs, Transaction: e.Transaction,
		})
		ids = got.MessageIDs
		return err
	})
	return ids, err
}

func (s *remoteSender) Mutate(ctx context.Context, messageID string) error {
	return s.call(ctx, Mutate, func(ctx context.Context, session *adapter.Session) error {
		return session.Mutate(ctx, messageID)
	})
}

func (s *remoteSender) Resend(ctx context.Context, messageID string) error {
	return s.call(ctx, Resend, func(ctx context.Context, session *adapter.Session) error {
		return session.Resend(ctx, adapter.ResendParams{MessageID: messageID})
	})
}

func (s *remoteSender) ResendFailed(ctx context.Context, endpointID string, since time.Time) error {
	return s.call(ctx, Resend, func(ctx context.Context, session *adapter.Session) error {
		since := since.UTC()
		return session.Resend(ctx, adapter.ResendParams{Since: &since, EndpointID: endpointID})
	})
}

func (s *remoteSender) Attempts(ctx context.Context, messageID string) (log []LoggedAttempt, err error) {
	err = s.call(ctx, AttemptLog, func(ctx context.Context, session *adapter.Session) error {
		got, err := session.Attempts(ctx, messageID)
		for _, a := range got.Attempts {
			log = append(log, LoggedAttempt{At: a.At, Status: a.Status, Error: a.Error, Duration: seconds(a.Duration), Body: a.Body})
		}
		return err
	})
	return log, err
}

func (s *remoteSender) Messages(ctx context.Context, f MessageFilter) (list []Message, err error) {
	err = s.call(ctx, List, func(ctx context.Context, session *adapter.Session) error {
		p := adapter.MessagesParams{Status: f.Status, EndpointID: f.EndpointID}
		if !f.Since.IsZero() {
			since := f.Since.UTC()
			p.Since = &since
		}
		got, err := session.Messages(ctx, p)
		for _, m := range got.Messages {
			list = append(list, Message{ID: m.MessageID, EndpointID: m.EndpointID, Status: m.Status, Type: m.Type})
		}
		return err
	})
	return list, err
}

func (s *remoteSender) Notifications(ctx context.Context, endpointID string) (list []Notification, err error) {
	err = s.call(ctx, Notifications, func(ctx context.Context, session *adapter.Session) error {
		got, err := session.Notifications(ctx, endpointID)
		for _, n := range got.Notifications {
			list = append(list, Notification{At: n.At, EndpointID: n.EndpointID, Kind: n.Kind, Text: n.Text})
		}
		return err
	})
	return list, err
}

func (s *remoteSender) Advance(ctx context.Context, to time.Time) (state ClockState, err error) {
	err = s.call(ctx, Clock, func(ctx context.Context, session *adapter.Session) error {
		got, err := session.Advance(ctx, to)
		if err != nil {
			return err
		}
		state.Now = got.Now
		if got.InFlight != nil {
			state.InFlight, state.Told = *got.InFlight, true
			if got.Next != nil {
				state.Next = *got.Next
			}
		}
		s.clock.Lock()
		defer s.clock.Unlock()
		s.now = got.Now
		return nil
	})
	return state, err
}
