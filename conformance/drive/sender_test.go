package drive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

// asSender describes this binary as a sender's adapter that declares as told.
func asSender(t *testing.T, declare string) SenderExecConfig {
	t.Helper()
	return SenderExecConfig{
		SenderSetup: SenderSetup{Profile: "standard-webhooks", State: t.TempDir(), Virtual: true, Now: epoch, AllowHosts: []string{"127.0.0.1"}},
		Command:     []string{os.Args[0], "-test.run=^$"},
		Env:         []string{roleVariable + "=" + roleSender, declareVariable + "=" + declare, "GORACE=atexit_sleep_ms=0"},
	}
}

func startSender(t *testing.T, c SenderExecConfig) Sender {
	t.Helper()
	s, err := SenderExec(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// notes is what a sender was asked, a line each.
func notes(t *testing.T, state string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(state, "notes"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestEachMethodOfASenderIsOneCall(t *testing.T) {
	noLeaks(t)
	c := asSender(t, "{}")
	var learned []string
	c.Secret = func(secret string) { learned = append(learned, secret) }
	s := startSender(t, c)
	ctx, at := t.Context(), epoch.Add(time.Second)
	e, err := s.CreateEndpoint(ctx, EndpointSpec{URL: "http://127.0.0.1:1/a", EventTypes: []string{"a.b"}, APIVersion: "2026-01-01"})
	if want := (Endpoint{"ep_1", senderSecret}); err != nil || e != want {
		t.Errorf("endpoint %+v, %v", e, err)
	}
	status, err := s.EndpointStatus(ctx, "ep_1")
	if want := (EndpointStatus{"disabled", "410"}); err != nil || status != want {
		t.Errorf("status %+v, %v", status, err)
	}
	secret, err := s.RotateSecret(ctx, "ep_1")
	if err != nil || secret != senderSecret+" 2" {
		t.Errorf("rotated to %q, %v", secret, err)
	}
	ids, err := s.Publish(ctx, Event{Type: "a.b", At: at, Raw: []byte{}, EndpointIDs: []string{"ep_1"}, Transaction: "commit"})
	if err != nil || !slices.Equal(ids, []string{"msg_1"}) {
		t.Errorf("published %q, %v", ids, err)
	}
	if _, err := s.Publish(ctx, Event{Type: "a.b", At: at, Payload: json.RawMessage(`{"a": 1}`)}); err != nil {
		t.Error(err)
	}
	for _, err := range []error{
		s.EnableEndpoint(ctx, "ep_1"), s.DisableEndpoint(ctx, "ep_1"), s.Mutate(ctx, "msg_1"),
		s.Resend(ctx, "msg_1"), s.ResendFailed(ctx, "ep_1", at),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	attempts, err := s.Attempts(ctx, "msg_1")
	if want := []LoggedAttempt{{At: epoch, Status: 500, Duration: 250 * time.Millisecond, Body: "oops"}, {At: epoch.Add(time.Minute), Error: "refused"}}; err != nil || !reflect.DeepEqual(attempts, want) {
		t.Errorf("attempts %+v, %v", attempts, err)
	}
	messages, err := s.Messages(ctx, MessageFilter{Status: "failed", EndpointID: "ep_1", Since: at})
	if want := []Message{{"msg_1", "ep_1", "failed", "a.b"}}; err != nil || !slices.Equal(messages, want) {
		t.Errorf("messages %+v, %v", messages, err)
	}
	told, err := s.Notifications(ctx, "ep_1")
	if want := []Notification{{epoch, "ep_1", "disabled", "no more"}}; err != nil || !reflect.DeepEqual(told, want) {
		t.Errorf("notifications %+v, %v", told, err)
	}
	state, err := s.Advance(ctx, at)
	if want := (ClockState{Now: at, Next: at.Add(time.Minute), InFlight: 2, Told: true}); err != nil || !reflect.DeepEqual(state, want) {
		t.Errorf("state %+v, %v", state, err)
	}
	if !slices.Equal(learned, []string{senderSecret, senderSecret + " 2"}) {
		t.Errorf("the caller learned %q", learned)
	}
	got := notes(t, c.State)
	want := []string{
		`initialize {"protocolVersion":1,"profile":"standard-webhooks","stateDir":` + quoted(c.State) + `,"now":"2026-01-02T15:04:05Z","clock":"virtual","allowHosts":["127.0.0.1"]}`,
		`endpoint.create {"url":"http://127.0.0.1:1/a","eventTypes":["a.b"],"apiVersion":"2026-01-01"}`,
		`endpoint.get {"endpointId":"ep_1"}`,
		`endpoint.rotateSecret {"endpointId":"ep_1"}`,
		`event.publish {"type":"a.b","timestamp":"2026-01-02T15:04:06Z","payloadBase64":"","endpointIds":["ep_1"],"transaction":"commit"}`,
		`event.publish {"type":"a.b","timestamp":"2026-01-02T15:04:06Z","payload":{"a":1}}`,
		`endpoint.enable {"endpointId":"ep_1"}`,
		`endpoint.disable {"endpointId":"ep_1"}`,
		`event.mutate {"messageId":"msg_1"}`,
		`message.resend {"messageId":"msg_1"}`,
		`message.resend {"since":"2026-01-02T15:04:06Z","endpointId":"ep_1"}`,
		`message.attempts {"messageId":"msg_1"}`,
		`messages.list {"status":"failed","endpointId":"ep_1","since":"2026-01-02T15:04:06Z"}`,
		`notifications.list {"endpointId":"ep_1"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("it was asked\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // text always encodes
	return string(b)
}

func TestASendersErrorHoldsNoSecret(t *testing.T) {
	s := startSender(t, asSender(t, "{}"))
	if _, err := s.CreateEndpoint(t.Context(), EndpointSpec{URL: "http://127.0.0.1:1/a"}); err != nil {
		t.Fatal(err)
	}
	err := s.DeleteEndpoint(t.Context(), "ep_1")
	var answered *adapter.Error
	if !errors.As(err, &answered) || strings.Contains(err.Error(), senderSecret) || !strings.Contains(err.Error(), "cannot delete while [secret] is in use") {
		t.Errorf("got %v", err)
	}
}

func TestWhatASenderOffersFollowsFromItsMethods(t *testing.T) {
	for _, tt := range []struct {
		name, declare string
		want          []string
	}{
		{"the least", `{"capabilities":["endpoint.create","event.publish"]}`, nil},
		{"a method each", `{"capabilities":["endpoint.create","event.publish","endpoint.rotateSecret","message.resend","message.attempts","messages.list","endpoint.get","notifications.list","event.mutate","clock.advance"]}`,
			[]string{Rotate, Resend, AttemptLog, List, Status, Notifications, Mutate, Clock}},
		{"disabling takes three", `{"capabilities":["endpoint.create","event.publish","endpoint.disable","endpoint.enable"]}`, nil},
		{"disabling has three", `{"capabilities":["endpoint.create","event.publish","endpoint.disable","endpoint.enable","endpoint.delete"]}`, []string{Disable}},
		{"words", `{"capabilities":["endpoint.create","event.publish","managed","instances","transaction","resolver","versions","own-events","ed25519","schedule"]}`,
			[]string{Schedule, Managed, Instances, Transaction, Resolver, Versions, OwnEvents, Ed25519}},
		{"a default schedule beside the present one", `{"capabilities":["endpoint.create","event.publish"],"retrySchedule":[0,1],"defaultSchedule":[0,60]}`, []string{Schedule}},
		{"words that nobody knows", `{"capabilities":["endpoint.create","event.publish","endpoint.explode"]}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startSender(t, asSender(t, tt.declare))
			if got := s.(*remoteSender).offers; !slices.Equal(got, tt.want) {
				t.Errorf("it offers %q, want %q", got, tt.want)
			}
			for _, c := range []string{Rotate, Managed, Clock} {
				if s.Has(c) != slices.Contains(tt.want, c) {
					t.Errorf("Has(%s) is %v", c, s.Has(c))
				}
			}
		})
	}
}

func TestWhatIsNotOfferedIsNotAskedFor(t *testing.T) {
	c := asSender(t, `{"capabilities":["endpoint.create","event.publish"]}`)
	s := startSender(t, c)
	ctx := t.Context()
	_, status := s.EndpointStatus(ctx, "e")
	_, rotate := s.RotateSecret(ctx, "e")
	_, attempts := s.Attempts(ctx, "m")
	_, messages := s.Messages(ctx, MessageFilter{})
	_, told := s.Notifications(ctx, "e")
	_, advance := s.Advance(ctx, epoch)
	_, transaction := s.Publish(ctx, Event{Type: "a", Raw: []byte("x"), Transaction: "commit"})
	_, another := s.Another(ctx, epoch, false)
	for i, err := range []error{
		status, rotate, attempts, messages, told, advance, transaction, another, s.EnableEndpoint(ctx, "e"),
		s.DeleteEndpoint(ctx, "e"), s.Mutate(ctx, "m"), s.Resend(ctx, "m"), s.ResendFailed(ctx, "e", epoch), s.Restart(ctx, true),
	} {
		if !errors.Is(err, ErrNotOffered) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if got := notes(t, c.State); len(got) != 1 {
		t.Errorf("it was asked %q", got)
	}
	for _, e := range []Event{{Type: "a"}, {Type: "a", Raw: []byte{}, Payload: []byte("1")}} {
		if _, err := s.Publish(ctx, e); err == nil {
			t.Errorf("%+v is published", e)
		}
	}
}

func TestASenderIsHeldToWhatItDeclares(t *testing.T) {
	s := startSender(t, asSender(t, `{"capabilities":["endpoint.create","event.publish"],"retrySchedule":[0,0.4,60],"defaultSchedule":[0,3600],
		"jitter":{"low":-0.2,"high":0.2},"granularity":0.3,"timeout":2,"connectTimeout":1,"retryAfterCap":86400,"perEndpointLimit":2,"rotationOverlap":86400,
		"disableAfter":432000,"notifyAfter":[86400,259200],"finalStatuses":[400],"errorBodyKept":1024,"failedKept":2592000,"eventTypes":["a.b"]}`))
	about := s.About()
	about.Capabilities = nil
	low, high, limit, kept := -0.2, 0.2, 2, 1024
	d := func(d time.Duration) *time.Duration { return &d }
	want := About{
		Name: "shop", Version: "1.2", Schedule: []time.Duration{0, 400 * time.Millisecond, time.Minute}, Default: []time.Duration{0, time.Hour},
		JitterLow: &low, JitterHigh: &high, Granularity: d(300 * time.Millisecond), Timeout: d(2 * time.Second), ConnectTimeout: d(time.Second),
		RetryAfterCap: d(24 * time.Hour), PerEndpointLimit: &limit, RotationOverlap: d(24 * time.Hour), DisableAfter: d(120 * time.Hour),
		NotifyAfter: []time.Duration{24 * time.Hour, 72 * time.Hour}, FinalStatuses: []int{400}, ErrorBodyKept: &kept, FailedKept: d(720 * time.Hour), EventTypes: []string{"a.b"},
	}
	if !reflect.DeepEqual(about, want) {
		t.Errorf("it declares %+v, want %+v", about, want)
	}
}

func TestASenderThatDeclaresWhatCannotBeIsRefused(t *testing.T) {
	for declare, want := range map[string]string{
		`{"retrySchedule":[]}`:                    "the member retrySchedule is empty",
		`{"retrySchedule":[0,-1]}`:                "the member retrySchedule[1] is -1 seconds",
		`{"retrySchedule":"0,5"}`:                 "the member retrySchedule is a string where a list is expected",
		`{"retrySchedule":[0,1e18]}`:              "the member retrySchedule[1] is 1e+18 seconds, more than ten years",
		`{"jitter":{"low":0.5,"high":0.1}}`:       "the member jitter.low is 0.5, more than jitter.high, 0.1",
		`{"jitter":{"low":0,"high":20}}`:          "the member jitter.high is 20. It is a share of the delay",
		`{"timeout":0}`:                           "the member timeout is 0 seconds",
		`{"perEndpointLimit":0}`:                  "the member perEndpointLimit is 0",
		`{"finalStatuses":[500]}`:                 "the member finalStatuses[0] is 500",
		`{"notifyAfter":[0]}`:                     "the member notifyAfter[0] is 0",
		`{"eventTypes":[""]}`:                     "the member eventTypes[0] is missing or empty",
		`{"capabilities":["event.publish"]}`:      "it does not declare endpoint.create, without which nothing can be sent",
		`{"protocolVersion":2}`:                   "this suite speaks version 1",
		`{"capabilities":[],"retrySchedule":[0]}`: "it does not declare endpoint.create",
		`{"defaultSchedule":[` + many(101) + `]}`: "the member defaultSchedule has 101 entries, more than 100",
	} {
		noLeaks(t)
		s, err := SenderExec(t.Context(), asSender(t, declare))
		if err == nil {
			_ = s.Close(t.Context())
		}
		var fault *adapter.Fault
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", declare, err)
		} else if fault.Kind == adapter.BadResult && (fault.Line != 1 || fault.Quote == "") {
			t.Errorf("%s: line %d, %s", declare, fault.Line, fault.Quote)
		}
	}
}

func many(n int) string { return strings.TrimSuffix(strings.Repeat("1,", n), ",") }

func TestAKilledSenderIsStartedAgainOnItsState(t *testing.T) {
	noLeaks(t)
	c := asSender(t, "{}")
	var log bytes.Buffer
	c.Log = &log
	s := startSender(t, c)
	if _, err := s.Advance(t.Context(), epoch.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, kill := range []bool{true, false} {
		if err := s.Restart(t.Context(), kill); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.CreateEndpoint(t.Context(), EndpointSpec{URL: "http://127.0.0.1:1/"}); err != nil {
		t.Error(err)
	}
	got := notes(t, c.State)
	if len(got) != 4 || !strings.Contains(got[0], `"now":"2026-01-02T15:04:05Z"`) || !strings.Contains(got[1], `"now":"2026-01-02T16:04:05Z"`) || !strings.Contains(got[2], `"now":"2026-01-02T16:04:05Z"`) {
		t.Errorf("it was asked %q", got)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "the adapter starts"); n != 3 {
		t.Errorf("it started %d times:\n%s", n, log.String())
	}
}

func TestAnotherSenderIsAProcessOfItsOwn(t *testing.T) {
	c := asSender(t, "{}")
	s := startSender(t, c)
	later := epoch.Add(time.Hour)
	twin, err := s.Another(t.Context(), later, true)
	if err != nil {
		t.Fatal(err)
	}
	own, err := s.Another(t.Context(), later, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := notes(t, c.State); len(got) != 2 || !strings.Contains(got[1], `"now":"2026-01-02T16:04:05Z"`) {
		t.Errorf("on the first one's state it was asked %q", got)
	}
	folder := own.(*remoteSender).setup.State
	if got := notes(t, folder); len(got) != 1 {
		t.Errorf("on its own state it was asked %q", got)
	}
	if err := errors.Join(twin.Close(t.Context()), own.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("its state folder is still there: %v", err)
	}
}

func TestTwinsShareTheWork(t *testing.T) {
	c := asSender(t, "{}")
	first := startSender(t, c)
	second, err := first.Another(t.Context(), epoch, false)
	if err != nil {
		t.Fatal(err)
	}
	folder := second.(*remoteSender).setup.State
	both := Twins(first, second)
	for range 4 {
		if _, err := both.Publish(t.Context(), Event{Type: "a", Raw: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	state, err := both.Advance(t.Context(), epoch)
	if err != nil || state.InFlight != 4 || !state.Told || !state.Next.Equal(epoch.Add(time.Minute)) {
		t.Errorf("they stand at %+v, %v", state, err)
	}
	for _, state := range []string{c.State, folder} {
		if got := notes(t, state); len(got) != 3 {
			t.Errorf("one was asked %q", got)
		}
	}
	if err := both.Restart(t.Context(), true); err != nil {
		t.Error(err)
	}
	if err := both.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAControlURLIsASenderThatIsNotStarted(t *testing.T) {
	control := httptest.NewServer(adapter.Handler(noted(t.TempDir())))
	defer control.Close()
	s, err := SenderControl(t.Context(), SenderControlConfig{URL: control.URL, SenderSetup: SenderSetup{Profile: "standard-webhooks", State: "/ignored"}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Has(Managed) || s.Has(Instances) || !s.Has(Clock) {
		t.Errorf("it offers %q", s.(*remoteSender).offers)
	}
	if ids, err := s.Publish(t.Context(), Event{Type: "a", Raw: []byte("x")}); err != nil || len(ids) != 1 {
		t.Errorf("published %q, %v", ids, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = SenderControl(t.Context(), SenderControlConfig{URL: "ftp://127.0.0.1/"})
	if err == nil || !strings.Contains(err.Error(), "reading the control URL") {
		t.Errorf("got %v", err)
	}
}

func TestACommandThatCannotBeStartedIsAnError(t *testing.T) {
	for _, command := range [][]string{nil, {"/does/not/exist"}, {"false"}} {
		if _, err := SenderExec(t.Context(), SenderExecConfig{Command: command}); err == nil {
			t.Errorf("%q was started", command)
		}
	}
}
