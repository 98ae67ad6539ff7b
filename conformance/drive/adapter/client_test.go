package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pair is a client and a server in this process, joined by a pipe.
func pair(t *testing.T, m Methods, o Options) *Client {
	t.Helper()
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(context.Background(), there, there, m) }()
	c := NewClient(here, o)
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
		_ = there.Close()
		<-served
	})
	return c
}

func TestAConversationWithAReceiversAdapter(t *testing.T) {
	noLeaks(t)
	p := started(t, "good", Options{}, nil)
	ctx := t.Context()
	s, err := Open(ctx, p, InitializeParams{Profile: "standard-webhooks", StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if s.About.Name != "shop" || s.About.Version != "1.2" || !s.Has("managed") || !s.Has(MethodProcessed) || s.Has("receiver.nothing") {
		t.Errorf("it told %+v", s.About)
	}
	if got, err := s.Processed(ctx, "evt_1"); err != nil || got != (Processed{Processed: 2}) {
		t.Errorf("processed: %+v, %v", got, err)
	}
	if got, err := s.Processed(ctx, "evt_failed"); err != nil || got != (Processed{Processed: 2, Failed: true}) {
		t.Errorf("processed: %+v, %v", got, err)
	}
	if got, err := s.State(ctx, "evt_1", "pay_1"); err != nil || got != "state of pay_1" {
		t.Errorf("state: %q, %v", got, err)
	}
	to := time.Date(2026, 1, 2, 15, 4, 5, 6, time.UTC)
	if got, err := s.Advance(ctx, to); err != nil || !got.Now.Equal(to) || got.Next != nil {
		t.Errorf("advanced: %+v, %v", got, err)
	}
	var answered *Error
	if err := s.FailOnce(ctx, "evt_9"); !errors.As(err, &answered) || answered.Code != InternalError ||
		err.Error() != `adapter: calling receiver.failOnce: it answered with an error: there is no event evt_9 (code -32603)` {
		t.Errorf("failOnce: %v", err)
	}
	const undeclared = `adapter: calling endpoint.create: undeclared: the adapter did not declare this method; name it in the capabilities that initialize answers, if the subject can do it`
	if err := s.Call(ctx, "endpoint.create", nil, nil); !IsFault(err, Undone) || err.Error() != undeclared {
		t.Errorf("a method that was not declared: %v", err)
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if p.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("after shutdown the adapter ended with %s", p.cmd.ProcessState)
	}
}

func TestOpenRefusesWhatItCannotTalkTo(t *testing.T) {
	for _, tt := range []struct{ name, result, want string }{
		{"another version", `{"protocolVersion":2,"name":"shop","version":"","capabilities":[]}`, "adapter: calling initialize: bad-version: it speaks version 2 of the protocol; this suite speaks version 1"},
		{"no name", `{"protocolVersion":1}`, `adapter: calling initialize: bad-result: the result is not what the protocol says: "{\"protocolVersion\":1}"; expected {"protocolVersion":1,"name":"…","version":"…","capabilities":["…"]}`},
		{"nothing", `null`, `adapter: calling initialize: bad-result: the result is not what the protocol says: "null"; expected {"protocolVersion":1,"name":"…","version":"…","capabilities":["…"]}`},
		{"capabilities that are a text", `{"protocolVersion":1,"name":"shop","capabilities":"all"}`, `adapter: calling initialize: line 1 of its output: bad-result: the member capabilities is a string where a list is expected: "{\"protocolVersion\":1,\"name\":\"shop\",\"capabilities\":\"all\"}"; expected {"protocolVersion":1,"name":"…","version":"…","capabilities":["…"]}`},
		{"an empty capability", `{"protocolVersion":1,"name":"shop","capabilities":[""]}`, `adapter: calling initialize: bad-result: the result is not what the protocol says: "{\"protocolVersion\":1,\"name\":\"shop\",\"capabilities\":[\"\"]}"; expected {"protocolVersion":1,"name":"…","version":"…","capabilities":["…"]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeaks(t)
			p := started(t, `{"jsonrpc":"2.0","id":1,"result":`+tt.result+`}`, Options{}, nil)
			if _, err := Open(t.Context(), p, InitializeParams{}); err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestAnAnswerMustHoldWhatItIsAskedFor(t *testing.T) {
	for _, tt := range []struct {
		name, result string
		call         func(context.Context, *Session) error
		want         string
	}{
		{"a state that is missing", `{}`, func(ctx context.Context, s *Session) error { _, err := s.State(ctx, "e", ""); return err },
			`expected {"state":"…"} of at most 256 bytes, "" for a record that is not known`},
		{"a state without bounds", `{"state":"` + strings.Repeat("x", 1000) + `"}`, func(ctx context.Context, s *Session) error { _, err := s.State(ctx, "e", ""); return err },
			`expected {"state":"…"} of at most 256 bytes, "" for a record that is not known`},
		{"no count", `{"failed":true}`, func(ctx context.Context, s *Session) error { _, err := s.Processed(ctx, "e"); return err },
			`expected {"processed":N} with N a whole number from 0 to 1000000000`},
		{"a clock without a time", `{}`, func(ctx context.Context, s *Session) error { _, err := s.Advance(ctx, time.Unix(9, 0)); return err },
			`expected {"now":"2026-01-02T15:04:05Z"}`},
		{"a clock that stayed behind", `{"now":"1970-01-01T00:00:08Z"}`, func(ctx context.Context, s *Session) error { _, err := s.Advance(ctx, time.Unix(9, 0)); return err },
			`asked to advance to 1970-01-01T00:00:09Z it stands at 1970-01-01T00:00:08Z`},
		{"less than nothing in flight", `{"now":"1970-01-01T00:00:09Z","inFlight":-1}`, func(ctx context.Context, s *Session) error { _, err := s.Advance(ctx, time.Unix(9, 0)); return err },
			`expected {"now":"2026-01-02T15:04:05Z"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeaks(t)
			answer := func(context.Context, json.RawMessage) (any, error) { return json.RawMessage(tt.result), nil }
			m := Methods{MethodProcessed: answer, MethodState: answer, MethodAdvance: answer}
			m[MethodInitialize] = Initialize(Initialized{Name: "odd"}, m, nil)
			s, err := Open(t.Context(), pair(t, m, Options{}), InitializeParams{})
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.call(t.Context(), s); !IsFault(err, BadResult) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestManyCallsAtATimeEachGetTheirAnswer(t *testing.T) {
	noLeaks(t)
	c := pair(t, Methods{"double": Func(func(_ context.Context, n struct{ N int }) (int, error) { return 2 * n.N, nil })}, Options{})
	var calls sync.WaitGroup
	for i := range 10 * maxCalls {
		calls.Go(func() {
			var got int
			if err := c.Call(t.Context(), "double", map[string]int{"n": i}, &got); err != nil || got != 2*i {
				t.Errorf("%d doubled is %d, %v", i, got, err)
			}
		})
	}
	calls.Wait()
}

func TestCloseEndsTheCallsThatAreOpen(t *testing.T) {
	noLeaks(t)
	began := make(chan struct{})
	c := pair(t, Methods{"wait": func(ctx context.Context, _ json.RawMessage) (any, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	}}, Options{})
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- c.Call(ctx, "wait", nil, nil) }()
	<-began
	_ = c.conn.Close() // as a peer that vanishes
	if err := <-ended; !IsFault(err, Died) {
		t.Errorf("got %v", err)
	}
}

func TestACallOnAClosedClientSaysSo(t *testing.T) {
	noLeaks(t)
	c := NewClient(newEnds(t), Options{Name: "adapter of the shop"})
	for range 2 {
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := c.Call(t.Context(), "x", nil, nil); !IsFault(err, Closed) || err.Error() != "adapter of the shop: calling x: closed: the connection was closed" {
		t.Errorf("got %v", err)
	}
	if c.Fault() != nil {
		t.Errorf("closing is a fault: %v", c.Fault())
	}
}

// stuck is a connection that Close does not free.
type stuck struct{ free chan struct{} }

func (s stuck) Read([]byte) (int, error)  { <-s.free; return 0, net.ErrClosed }
func (s stuck) Write([]byte) (int, error) { <-s.free; return 0, net.ErrClosed }
func (stuck) Close() error                { return nil }

func TestCloseGivesUpOnAConnectionThatHoldsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := stuck{make(chan struct{})}
		c := NewClient(conn, Options{})
		const want = "closing the connection to the adapter: it was still held after 2s"
		if err := c.Close(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
		close(conn.free)
		<-c.ended
	})
}

func TestARequestHasABound(t *testing.T) {
	noLeaks(t)
	c := NewClient(newEnds(t), Options{})
	defer func() { _ = c.Close(context.Background()) }()
	const want = "adapter: calling x: big-request: the request has 8388667 bytes, more than the 8388608 of the protocol"
	if err := c.Call(t.Context(), "x", map[string]string{"text": strings.Repeat("<", MaxRequest)}, nil); !IsFault(err, TooLarge) || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if err := c.Call(t.Context(), "x", func() {}, nil); err == nil || !strings.Contains(err.Error(), "unsupported type") {
		t.Errorf("got %v", err)
	}
}

func TestAnErrorOfTheAdaptersShowsNoSecretAndHasABound(t *testing.T) {
	noLeaks(t)
	c := pair(t, Methods{
		"leak": func(context.Context, json.RawMessage) (any, error) {
			return nil, fmt.Errorf("wrong key hunter22 or %s", secret)
		},
		"talk": func(context.Context, json.RawMessage) (any, error) {
			return nil, errors.New(strings.Repeat("x", 100_000))
		},
	}, Options{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter22", "[password]") }})
	const want = "adapter: calling leak: it answered with an error: wrong key [password] or whsec_[secret] (code -32603)"
	if err := c.Call(t.Context(), "leak", nil, nil); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if err := c.Call(t.Context(), "talk", nil, nil); err == nil || len(err.Error()) > 2*errorKept {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}
