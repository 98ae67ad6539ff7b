package drive

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// triggers makes a sender whose events a shell script hands over.
func triggers(t *testing.T, script string, change func(*TriggerConfig)) Sender {
	t.Helper()
	c := TriggerConfig{Command: []string{"sh", "-c", script}, Dir: t.TempDir(), Secret: func(n int) (string, error) { return "secret number " + strconv.Itoa(n), nil }}
	if change != nil {
		change(&c)
	}
	s, err := SenderTrigger(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestATriggerIsToldOfTheEvent(t *testing.T) {
	var folder string
	s := triggers(t, `{ echo "$WHCONFORM_URL $WHCONFORM_SECRET $WHCONFORM_EVENT_TYPE $WHCONFORM_EVENT_TIME"; cat; cat "$WHCONFORM_MESSAGE"; } >>told; echo msg_1`,
		func(c *TriggerConfig) { folder = c.Dir })
	for _, url := range []string{"http://127.0.0.1:1/a", "http://127.0.0.1:1/b"} {
		if _, err := s.CreateEndpoint(t.Context(), EndpointSpec{URL: url, EventTypes: []string{"order." + url[len(url)-1:]}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []Event{
		{Type: "order.a", At: epoch, Raw: []byte("raw\n")},
		{Type: "order.c", At: epoch, Payload: []byte("{}\n"), EndpointIDs: []string{"endpoint-2"}},
		{Type: "order.none", At: epoch, Raw: []byte("x")},
	} {
		ids, err := s.Publish(t.Context(), e)
		want := []string{"msg_1"}
		if e.Type == "order.none" {
			want = nil
		}
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("%s: %q, %v", e.Type, ids, err)
		}
	}
	told, err := os.ReadFile(filepath.Join(folder, "told"))
	const want = "http://127.0.0.1:1/a secret number 1 order.a 2026-01-02T15:04:05Z\nraw\nraw\n" +
		"http://127.0.0.1:1/b secret number 2 order.c 2026-01-02T15:04:05Z\n{}\n{}\n"
	if err != nil || string(told) != want {
		t.Errorf("it was told\n%s%v", told, err)
	}
}

func TestATriggerThatFailsIsAnErrorOfPublishing(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"an exit code", `echo "no such shop, $WHCONFORM_SECRET" >&2; exit 3`, "it ended with exit status 3; its last words on stderr:\n    no such shop, [secret]"},
		{"no end", `echo waiting >&2; while :; do sleep 10; done`, "it did not end within 500ms; its last words on stderr:\n    waiting"},
		{"a signal", `kill -9 $$`, "it ended with signal: killed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeaks(t)
			s := triggers(t, tt.script, func(c *TriggerConfig) { c.Time = 500 * time.Millisecond })
			if _, err := s.CreateEndpoint(t.Context(), EndpointSpec{URL: "http://127.0.0.1:1/"}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Publish(t.Context(), Event{Type: "a", At: epoch, Raw: []byte("x")}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestATriggersOutputIsTakenForAnIDOnlyIfItIsOneWord(t *testing.T) {
	for script, want := range map[string][]string{
		"echo msg_1":                         {"msg_1"},
		"printf msg_1":                       {"msg_1"},
		"true":                               nil,
		"echo sent the event":                nil,
		"head -c 300 /dev/zero|tr '\\0' x":   nil,
		"head -c 99999 /dev/zero|tr '\\0' x": nil,
		"cat >/dev/null; echo msg_1":         {"msg_1"},
	} {
		s := triggers(t, script, nil)
		if _, err := s.CreateEndpoint(t.Context(), EndpointSpec{URL: "http://127.0.0.1:1/"}); err != nil {
			t.Fatal(err)
		}
		ids, err := s.Publish(t.Context(), Event{Type: "a", At: epoch, Raw: bytes.Repeat([]byte("x"), 1<<20)})
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("%s: %q, %v", script, ids, err)
		}
	}
}

func TestATriggerOffersNothingElse(t *testing.T) {
	s := triggers(t, "true", nil)
	for _, c := range []string{Clock, Managed, Rotate, Status, Resend} {
		if s.Has(c) {
			t.Errorf("it offers %s", c)
		}
	}
	if err := s.Resend(t.Context(), "m"); !errors.Is(err, ErrNotOffered) {
		t.Errorf("got %v", err)
	}
	if s.About().Name != "trigger" {
		t.Errorf("it is %+v", s.About())
	}
	if _, err := s.Publish(t.Context(), Event{Type: "a", Raw: []byte("x"), Transaction: "commit"}); !errors.Is(err, ErrNotOffered) {
		t.Errorf("got %v", err)
	}
	refusal := errors.New("there are only two secrets")
	s = triggers(t, "true", func(c *TriggerConfig) { c.Secret = func(int) (string, error) { return "", refusal } })
	if _, err := s.CreateEndpoint(t.Context(), EndpointSpec{URL: "http://127.0.0.1:1/"}); !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
	for _, c := range []TriggerConfig{{}, {Command: []string{"true"}}} {
		if _, err := SenderTrigger(c); err == nil {
			t.Errorf("%+v makes a sender", c)
		}
	}
}

func TestATriggerEndsWithItsContext(t *testing.T) {
	s := triggers(t, "while :; do sleep 10; done", nil)
	if _, err := s.CreateEndpoint(t.Context(), EndpointSpec{URL: "http://127.0.0.1:1/"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Publish(ctx, Event{Type: "a", Raw: []byte("x")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
