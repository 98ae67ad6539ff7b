package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// answering is a session with an adapter in this process that answers one
// method, with a text.
func answering(t *testing.T, method, result string) *Session {
	t.Helper()
	m := Methods{method: func(context.Context, json.RawMessage) (any, error) { return json.RawMessage(result), nil }}
	m[MethodInitialize] = Initialize(Initialized{Name: "shop"}, m, nil)
	s, err := Open(t.Context(), Local(m, Options{}), InitializeParams{Profile: "standard-webhooks"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestASendersResultIsChecked(t *testing.T) {
	ask := map[string]func(context.Context, *Session) error{
		MethodCreateEndpoint: func(ctx context.Context, s *Session) error {
			_, err := s.CreateEndpoint(ctx, CreateEndpointParams{URL: "http://127.0.0.1:1/"})
			return err
		},
		MethodGetEndpoint:  func(ctx context.Context, s *Session) error { _, err := s.GetEndpoint(ctx, "ep_1"); return err },
		MethodRotateSecret: func(ctx context.Context, s *Session) error { _, err := s.RotateSecret(ctx, "ep_1"); return err },
		MethodPublish: func(ctx context.Context, s *Session) error {
			_, err := s.Publish(ctx, PublishParams{Type: "a", PayloadBase64: []byte{}})
			return err
		},
		MethodAttempts:      func(ctx context.Context, s *Session) error { _, err := s.Attempts(ctx, "msg_1"); return err },
		MethodMessages:      func(ctx context.Context, s *Session) error { _, err := s.Messages(ctx, MessagesParams{}); return err },
		MethodNotifications: func(ctx context.Context, s *Session) error { _, err := s.Notifications(ctx, ""); return err },
		MethodAdvance:       func(ctx context.Context, s *Session) error { _, err := s.Advance(ctx, time.Unix(0, 0)); return err },
	}
	for _, tt := range []struct{ method, result, want string }{
		{MethodCreateEndpoint, `{"endpointId":"ep_1","secret":"whsec_x"}`, ""},
		{MethodCreateEndpoint, `{"id":"ep_1","secret":"whsec_x"}`, `the member endpointId is missing or empty: "{\"id\":\"ep_1\",\"secret\":\"[secret]\"}"; expected {"endpointId":"…","secret":"…"}`},
		{MethodCreateEndpoint, `{"endpointId":17,"secret":"whsec_x"}`, "the member endpointId is a number where a text is expected"},
		{MethodCreateEndpoint, `{"endpointId":"ep_1"}`, "the member secret is missing or empty"},
		{MethodCreateEndpoint, `{"endpointId":"ep_1","secret":"` + strings.Repeat("x", 1025) + `"}`, "the member secret has 1025 bytes, more than 1024"},
		{MethodGetEndpoint, `{"status":"deleted"}`, ""},
		{MethodGetEndpoint, `{"status":"active"}`, `the member status is "active", not one of enabled, disabled, deleted`},
		{MethodGetEndpoint, `{}`, "the member status is missing"},
		{MethodRotateSecret, `{"secret":""}`, "the member secret is missing or empty"},
		{MethodPublish, `{"messageIds":[]}`, ""},
		{MethodPublish, `{}`, "the member messageIds is missing"},
		{MethodPublish, `{"messageIds":[""]}`, "the member messageIds[0] is missing or empty"},
		{MethodPublish, `{"messageIds":"msg_1"}`, "the member messageIds is a string where a list is expected"},
		{MethodAttempts, `{"attempts":[{"at":"2026-01-02T15:04:05Z","status":204,"duration":0}]}`, ""},
		{MethodAttempts, `{}`, "the member attempts is missing"},
		{MethodAttempts, `{"attempts":[{"duration":0}]}`, "the member attempts[0].at is missing"},
		{MethodAttempts, `{"attempts":[{"at":"2026-01-02T15:04:05Z","status":2000,"duration":0}]}`, "the member attempts[0].status is 2000, which is no HTTP status"},
		{MethodAttempts, `{"attempts":[{"at":"2026-01-02T15:04:05Z","duration":-1}]}`, "the member attempts[0].duration is -1 seconds"},
		{MethodAttempts, `{"attempts":[{"at":"yesterday","duration":1}]}`, "expected {\"attempts\""},
		{MethodMessages, `{"messages":[{"messageId":"msg_1","status":"failed"}]}`, ""},
		{MethodMessages, `{"messages":[{"messageId":"msg_1","status":"dead"}]}`, `the member messages[0].status is "dead"`},
		{MethodMessages, `{"messages":[{"status":"failed"}]}`, "the member messages[0].messageId is missing"},
		{MethodMessages, `[]`, "expected {\"messages\""},
		{MethodNotifications, `{"notifications":[{"at":"2026-01-02T15:04:05Z","endpointId":"ep_1"}]}`, ""},
		{MethodNotifications, `{"notifications":[{"endpointId":"ep_1"}]}`, "the member notifications[0].at is missing"},
		{MethodNotifications, `null`, "the member notifications is missing"},
		{MethodAdvance, `{"now":"2026-01-02T15:04:05Z","inFlight":0}`, ""},
		{MethodAdvance, `{"now":"2026-01-02T15:04:05Z","inFlight":-1}`, "expected {\"now\""},
	} {
		t.Run(tt.method, func(t *testing.T) {
			err := ask[tt.method](t.Context(), answering(t, tt.method, tt.result))
			if tt.want == "" {
				if err != nil {
					t.Errorf("%s: %v", tt.result, err)
				}
				return
			}
			if !IsFault(err, BadResult) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", tt.result, err)
			}
		})
	}
}

func TestASenderThatDoesNotCountTellsSo(t *testing.T) {
	for result, want := range map[string]bool{`{"now":"2026-01-02T15:04:05Z"}`: false, `{"now":"2026-01-02T15:04:05Z","inFlight":0}`: true} {
		a, err := answering(t, MethodAdvance, result).Advance(t.Context(), time.Unix(0, 0))
		if err != nil || (a.InFlight != nil) != want {
			t.Errorf("%s: %+v, %v", result, a, err)
		}
	}
}

func TestAnEmptyPayloadIsSentAsOne(t *testing.T) {
	for _, tt := range []struct {
		p    PublishParams
		want string
	}{
		{PublishParams{Type: "a", PayloadBase64: []byte{}}, `{"type":"a","timestamp":"0001-01-01T00:00:00Z","payloadBase64":""}`},
		{PublishParams{Type: "a", Payload: json.RawMessage("null")}, `{"type":"a","timestamp":"0001-01-01T00:00:00Z","payload":null}`},
	} {
		text, err := json.Marshal(tt.p)
		if err != nil || string(text) != tt.want {
			t.Errorf("got %s, %v", text, err)
		}
		var back PublishParams
		if err := json.Unmarshal(text, &back); err != nil || (back.Payload == nil) != (tt.p.Payload == nil) || (back.PayloadBase64 == nil) != (tt.p.PayloadBase64 == nil) {
			t.Errorf("%s is read as %+v, %v", text, back, err)
		}
	}
}

func TestALocalPeerEndsItsMethods(t *testing.T) {
	noLeaks(t)
	began, ended := make(chan struct{}), make(chan struct{})
	m := Methods{"test.wait": func(ctx context.Context, _ json.RawMessage) (any, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}}
	p := Local(m, Options{})
	asked := make(chan error, 1)
	go func() { asked <- p.Call(t.Context(), "test.wait", nil, nil) }()
	<-began
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	<-ended
	var fault *Fault
	if err := <-asked; !errors.As(err, &fault) || fault.Kind != Closed {
		t.Errorf("got %v", err)
	}
}

func TestTheMethodsOfASenderAreThoseOfTheSchema(t *testing.T) {
	for _, method := range []string{
		MethodCreateEndpoint, MethodGetEndpoint, MethodEnableEndpoint, MethodDisableEndpoint, MethodDeleteEndpoint, MethodRotateSecret,
		MethodPublish, MethodMutate, MethodResend, MethodAttempts, MethodMessages, MethodNotifications,
	} {
		if !slices.Contains(schemaMethods(t), method) {
			t.Errorf("the schema has no %s", method)
		}
	}
}
