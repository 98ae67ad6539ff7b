package drive

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

// senderSecret is the secret that the adapter in these tests gives out.
const senderSecret = "correct horse battery staple"

// declareVariable holds, as JSON, what the adapter declares in place of the
// ordinary.
const declareVariable = "WHCONFORM_DRIVE_TEST_DECLARE"

// playSender is an adapter whose sender sends nothing. It keeps what it was told
// in its state folder, a line each, and says so again.
func playSender() int {
	fmt.Fprintln(os.Stderr, "the adapter starts")
	if err := adapter.Serve(context.Background(), os.Stdin, os.Stdout, noted(os.Getenv("WHCONFORM_STATE_DIR"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// noted are the methods of a sender that notes each request. Its clock stands
// where initialize or clock.advance put it.
func noted(state string) adapter.Methods {
	clock := time.Time{}
	note := func(what string, params any) {
		text, _ := json.Marshal(params)
		f, err := os.OpenFile(filepath.Join(state, "notes"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return
		}
		defer f.Close()
		_, _ = fmt.Fprintf(f, "%s %s\n", what, text)
	}
	m := adapter.Methods{}
	answer := func(method string, result any) {
		m[method] = func(_ context.Context, params json.RawMessage) (any, error) {
			note(method, params)
			return result, nil
		}
	}
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	answer(adapter.MethodCreateEndpoint, adapter.CreatedEndpoint{EndpointID: "ep_1", Secret: senderSecret})
	answer(adapter.MethodGetEndpoint, adapter.EndpointStatus{Status: adapter.StatusDisabled, Reason: "410"})
	answer(adapter.MethodEnableEndpoint, nil)
	answer(adapter.MethodDisableEndpoint, nil)
	answer(adapter.MethodRotateSecret, adapter.RotatedSecret{Secret: senderSecret + " 2"})
	answer(adapter.MethodPublish, adapter.Published{MessageIDs: []string{"msg_1"}})
	answer(adapter.MethodMutate, nil)
	answer(adapter.MethodResend, nil)
	answer(adapter.MethodAttempts, adapter.Attempts{Attempts: []adapter.Attempt{{At: at, Status: 500, Duration: 0.25, Body: "oops"}, {At: at.Add(time.Minute), Error: "refused"}}})
	answer(adapter.MethodMessages, adapter.Messages{Messages: []adapter.Message{{MessageID: "msg_1", EndpointID: "ep_1", Status: adapter.StatusFailed, Type: "a.b"}}})
	answer(adapter.MethodNotifications, adapter.Notifications{Notifications: []adapter.Notification{{At: at, EndpointID: "ep_1", Kind: "disabled", Text: "no more"}}})
	m[adapter.MethodDeleteEndpoint] = func(context.Context, json.RawMessage) (any, error) {
		return nil, fmt.Errorf("cannot delete while %s is in use", senderSecret)
	}
	m[adapter.MethodAdvance] = adapter.Func(func(_ context.Context, p adapter.AdvanceParams) (adapter.Advanced, error) {
		clock = p.To
		next, flying := p.To.Add(time.Minute), 2
		return adapter.Advanced{Now: clock, Next: &next, InFlight: &flying}, nil
	})
	m[adapter.MethodInitialize] = adapter.Func(func(_ context.Context, p adapter.InitializeParams) (json.RawMessage, error) {
		p.StateDir = strings.TrimSuffix(p.StateDir, "/")
		note(adapter.MethodInitialize, p)
		declared := map[string]any{"protocolVersion": 1, "name": "shop", "version": "1.2"}
		capabilities := []string{"managed", "instances", "transaction"}
		for name := range m {
			if name != adapter.MethodInitialize {
				capabilities = append(capabilities, name)
			}
		}
		slices.Sort(capabilities)
		declared["capabilities"] = capabilities
		if other := os.Getenv(declareVariable); other != "" {
			if err := json.Unmarshal([]byte(other), &declared); err != nil {
				return nil, err
			}
		}
		return json.Marshal(declared)
	})
	return m
}
