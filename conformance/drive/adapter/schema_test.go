package adapter

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiled is the part of the schema that a pointer names; "" is a message.
func compiled(t *testing.T, part string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("adapter.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("adapter.json" + part)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

func valid(t *testing.T, s *jsonschema.Schema, text string) {
	t.Helper()
	if err := validate(t, s, text); err != nil {
		t.Errorf("%.200s\n%v", text, err)
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every message that the types of this package make is one of the schema.
func TestWhatTheTypesSayIsInTheSchema(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.FixedZone("", 3600))
	two, five := 2, 5.0
	full := InitializeParams{ProtocolVersion: 1, Profile: "standard-webhooks", StateDir: "/state", Now: &now, Clock: ClockVirtual, AllowHosts: []string{"localhost"}, Resolver: "127.0.0.1:5353", CACertificate: "PEM"}
	declared := Initialized{ProtocolVersion: 1, Name: "shop", Version: "1", Capabilities: []string{MethodAdvance}, RetrySchedule: []float64{0, 5}, DefaultSchedule: []float64{0, 5, 300}, ConnectTimeout: &five, NotifyAfter: []float64{86400}, EventTypes: []string{"order.shipped"},
		Jitter: &Jitter{-0.2, 0.2}, Granularity: &five, Timeout: &five, RetryAfterCap: &five, PerEndpointLimit: &two, RotationOverlap: &five,
		DisableAfter: &five, FinalStatuses: []int{400}, ErrorBodyKept: &two, FailedKept: &five}
	message := compiled(t, "")
	for _, tt := range []struct {
		method         string
		params, result any
	}{
		{MethodInitialize, full, declared},
		{MethodInitialize, InitializeParams{ProtocolVersion: 1}, Initialized{ProtocolVersion: 1, Name: "shop", Capabilities: []string{}}},
		{MethodShutdown, nil, nil},
		{MethodProcessed, ProcessedParams{ID: "evt_1"}, Processed{Processed: 2, Failed: true}},
		{MethodProcessed, ProcessedParams{ID: "evt_1"}, Processed{}},
		{MethodState, StateParams{ID: "evt_1", Reference: "pay_1"}, State{State: "refunded"}},
		{MethodState, StateParams{ID: "evt_1"}, State{}},
		{MethodFailOnce, FailOnceParams{ID: "evt_1"}, nil},
		{MethodAdvance, AdvanceParams{To: now}, Advanced{Now: now, Next: &now, InFlight: &two}},
		{MethodAdvance, AdvanceParams{To: now}, Advanced{Now: now}},
		{MethodCreateEndpoint, CreateEndpointParams{URL: "http://127.0.0.1:1/a", EventTypes: []string{"order.shipped"}, APIVersion: "2026-01-01"}, CreatedEndpoint{EndpointID: "ep_1", Secret: "whsec_x"}},
		{MethodCreateEndpoint, CreateEndpointParams{URL: "http://127.0.0.1:1/a"}, CreatedEndpoint{EndpointID: "ep_1", Secret: "whsec_x"}},
		{MethodGetEndpoint, EndpointParams{EndpointID: "ep_1"}, EndpointStatus{Status: StatusDisabled, Reason: "410"}},
		{MethodGetEndpoint, EndpointParams{EndpointID: "ep_1"}, EndpointStatus{Status: StatusEnabled}},
		{MethodEnableEndpoint, EndpointParams{EndpointID: "ep_1"}, nil},
		{MethodDisableEndpoint, EndpointParams{EndpointID: "ep_1"}, nil},
		{MethodDeleteEndpoint, EndpointParams{EndpointID: "ep_1"}, nil},
		{MethodRotateSecret, EndpointParams{EndpointID: "ep_1"}, RotatedSecret{Secret: "whsec_y"}},
		{MethodPublish, PublishParams{Type: "a.b", Timestamp: now, PayloadBase64: []byte("x"), EndpointIDs: []string{"ep_1"}, Transaction: "commit"}, Published{MessageIDs: []string{"msg_1"}}},
		{MethodPublish, PublishParams{Type: "a.b", Timestamp: now, PayloadBase64: []byte{}}, Published{MessageIDs: []string{}}},
		{MethodPublish, PublishParams{Type: "a.b", Timestamp: now, Payload: json.RawMessage("null")}, Published{MessageIDs: []string{}}},
		{MethodMutate, MessageParams{MessageID: "msg_1"}, nil},
		{MethodResend, ResendParams{MessageID: "msg_1"}, nil},
		{MethodResend, ResendParams{Since: &now, EndpointID: "ep_1"}, nil},
		{MethodAttempts, MessageParams{MessageID: "msg_1"}, Attempts{Attempts: []Attempt{{At: now, Status: 500, Duration: 0.5, Body: "oops"}, {At: now, Error: "refused"}}}},
		{MethodMessages, MessagesParams{Status: StatusFailed, EndpointID: "ep_1", Since: &now}, Messages{Messages: []Message{{MessageID: "msg_1", EndpointID: "ep_1", Status: StatusFailed, Type: "a.b"}}}},
		{MethodMessages, MessagesParams{}, Messages{Messages: []Message{}}},
		{MethodNotifications, NotificationsParams{EndpointID: "ep_1"}, Notifications{Notifications: []Notification{{At: now, EndpointID: "ep_1", Kind: "disabled", Text: "no more"}}}},
	} {
		t.Run(tt.method, func(t *testing.T) {
			line, err := outgoing{ID: rawID(1), Method: tt.method, Params: tt.params}.encode()
			if err != nil {
				t.Fatal(err)
			}
			valid(t, message, string(line))
			valid(t, compiled(t, "#/$defs/"+tt.method+".result"), encoded(t, tt.result))
			valid(t, message, string(encodeAnswer(rawID(1), json.RawMessage(encoded(t, tt.result)), nil)))
		})
	}
	cancel, err := outgoing{Method: MethodCancel, Params: CancelParams{ID: 7}}.encode()
	if err != nil {
		t.Fatal(err)
	}
	valid(t, message, string(cancel))
	valid(t, message, string(encodeAnswer(nil, nil, &Error{Code: ParseError, Message: "no JSON", Data: json.RawMessage(`[1]`)})))
}

func TestASendersMessagesAreInTheSchema(t *testing.T) {
	message := compiled(t, "")
	for _, tt := range []struct{ method, params, result string }{
		{"endpoint.create", `{"url":"http://127.0.0.1:1/a","eventTypes":["order.shipped"],"apiVersion":"2026-01-01"}`, `{"endpointId":"ep_1","secret":"whsec_x"}`},
		{"endpoint.get", `{"endpointId":"ep_1"}`, `{"status":"disabled","reason":"410"}`},
		{"endpoint.enable", `{"endpointId":"ep_1"}`, `null`},
		{"endpoint.disable", `{"endpointId":"ep_1"}`, `{}`},
		{"endpoint.delete", `{"endpointId":"ep_1"}`, `{}`},
		{"endpoint.rotateSecret", `{"endpointId":"ep_1"}`, `{"secret":"whsec_y"}`},
		{"event.publish", `{"type":"order.shipped","timestamp":"2026-01-02T15:04:05Z","payloadBase64":"e30=","transaction":"commit"}`, `{"messageIds":["msg_1"]}`},
		{"event.publish", `{"type":"order.shipped","timestamp":"2026-01-02T15:04:05Z","payload":null}`, `{"messageIds":[]}`},
		{"event.mutate", `{"messageId":"msg_1"}`, `{}`},
		{"message.resend", `{"messageId":"msg_1"}`, `{}`},
		{"message.resend", `{"since":"2026-01-02T15:04:05Z"}`, `{}`},
		{"message.attempts", `{"messageId":"msg_1"}`, `{"attempts":[{"at":"2026-01-02T15:04:05.5Z","status":500,"duration":0.25,"body":"oops"}]}`},
		{"messages.list", `{"status":"failed","endpointId":"ep_1"}`, `{"messages":[{"messageId":"msg_1","endpointId":"ep_1","status":"failed"}]}`},
		{"notifications.list", `{}`, `{"notifications":[{"at":"2026-01-02T15:04:05Z","endpointId":"ep_1","kind":"disabled"}]}`},
	} {
		t.Run(tt.method, func(t *testing.T) {
			valid(t, message, `{"jsonrpc":"2.0","id":1,"method":"`+tt.method+`","params":`+tt.params+`}`)
			valid(t, compiled(t, "#/$defs/"+tt.method+".result"), tt.result)
		})
	}
}

func TestTheSchemaRefuses(t *testing.T) {
	for _, tt := range []struct{ name, part, text string }{
		{"a message that is nothing", "", `{}`},
		{"a message of another version", "", `{"jsonrpc":"1.0","id":1,"result":1}`},
		{"a result and an error", "", `{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}`},
		{"an answer without an id", "", `{"jsonrpc":"2.0","result":1}`},
		{"a method that nobody has", "", `{"jsonrpc":"2.0","id":1,"method":"receiver.explode"}`},
		{"a method without its params", "", `{"jsonrpc":"2.0","id":1,"method":"receiver.processed"}`},
		{"params without the id", "", `{"jsonrpc":"2.0","id":1,"method":"receiver.processed","params":{}}`},
		{"an event without a payload", "", `{"jsonrpc":"2.0","id":1,"method":"event.publish","params":{"type":"a","timestamp":"2026-01-02T15:04:05Z"}}`},
		{"an event with two", "", `{"jsonrpc":"2.0","id":1,"method":"event.publish","params":{"type":"a","timestamp":"2026-01-02T15:04:05Z","payload":1,"payloadBase64":""}}`},
		{"a count below nothing", "#/$defs/receiver.processed.result", `{"processed":-1}`},
		{"no count", "#/$defs/receiver.processed.result", `{"failed":true}`},
		{"half a count", "#/$defs/receiver.processed.result", `{"processed":1.5}`},
		{"a clock without a zone", "#/$defs/clock.advance.result", `{"now":"2026-01-02T15:04:05"}`},
		{"an empty schedule", "#/$defs/initialize.result", `{"protocolVersion":1,"name":"a","version":"","capabilities":[],"retrySchedule":[]}`},
		{"a timeout of nothing", "#/$defs/initialize.result", `{"protocolVersion":1,"name":"a","version":"","capabilities":[],"timeout":0}`},
		{"no capabilities", "#/$defs/initialize.result", `{"protocolVersion":1,"name":"a","version":""}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if validate(t, compiled(t, tt.part), tt.text) == nil {
				t.Errorf("it takes %s", tt.text)
			}
		})
	}
}

// schemaMethods are the methods that the schema names.
func schemaMethods(t *testing.T) []string {
	t.Helper()
	var doc struct {
		Defs struct {
			Request struct {
				Properties struct{ Method struct{ Enum []string } }
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Defs.Request.Properties.Method.Enum
}

// Each method of the schema has parameters and a result, and each member a
// description: the schema is documentation.
func TestTheSchemaDescribesWhatItNames(t *testing.T) {
	var doc struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	methods := schemaMethods(t)
	for _, own := range []string{MethodInitialize, MethodShutdown, MethodProcessed, MethodState, MethodFailOnce, MethodAdvance} {
		if !slices.Contains(methods, own) {
			t.Errorf("it does not name %s", own)
		}
	}
	for _, m := range methods {
		for _, part := range []string{".params", ".result"} {
			var described struct{ Description string }
			if err := json.Unmarshal(doc.Defs[m+part], &described); err != nil || described.Description == "" {
				t.Errorf("%s%s has no description: %v", m, part, err)
			}
		}
	}
	if len(doc.Defs) != 3+2*len(methods) {
		t.Errorf("%d definitions for %d methods", len(doc.Defs), len(methods))
	}
}
