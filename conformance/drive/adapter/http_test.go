package adapter

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jarcoal/httpmock"
)

const control = "http://shop.example/_control"

// mocked is a control URL that answers as it is told.
func mocked(t *testing.T, answer httpmock.Responder, o Options) *HTTP {
	t.Helper()
	transport := httpmock.NewMockTransport()
	transport.RegisterResponder(http.MethodPost, control, answer)
	h, err := NewHTTP(control, transport, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestAControlURLThatMisbehavesIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer httpmock.Responder
		kind   Kind
		want   string
	}{
		{"another page", httpmock.NewStringResponder(200, "<html>Welcome "+secret+"</html>"), Garbage,
			`adapter: calling receiver.processed: garbage: it is not JSON: invalid character '<' looking for beginning of value at byte 1: "<html>Welcome whsec_[secret]</html>"; answer each POST with one JSON-RPC message; is it the right URL?`},
		{"an empty answer", httpmock.NewStringResponder(200, ""), Garbage,
			`adapter: calling receiver.processed: garbage: it is not JSON: unexpected end of JSON input at byte 0; answer each POST with one JSON-RPC message; is it the right URL?`},
		{"not found", httpmock.NewStringResponder(404, "404 page not found\n"), BadStatus,
			`adapter: calling receiver.processed: bad-status: it answered with status 404: "404 page not found\n"; answer 200 with a JSON-RPC message, also where that is an error`},
		{"a redirect", httpmock.NewStringResponder(302, "").HeaderSet(http.Header{"Location": {"http://elsewhere.example/"}}), BadStatus,
			`adapter: calling receiver.processed: bad-status: it answered with status 302; answer 200 with a JSON-RPC message, also where that is an error`},
		{"the id of another request", httpmock.NewStringResponder(200, `{"jsonrpc":"2.0","id":7,"result":{"processed":1}}`), WrongID,
			`adapter: calling receiver.processed: wrong-id: it answers the id 7, which nothing was asked with: "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"processed\":1}}"; copy the id of the request as it stands: a whole number`},
		{"no contact", httpmock.NewErrorResponder(errors.New("connection refused")), NoContact,
			`adapter: calling receiver.processed: unreachable: connection refused; is it the right URL, and is the subject running?`},
		{"a count that is none", httpmock.NewStringResponder(200, `{"jsonrpc":"2.0","id":1,"result":{"processed":0.5}}`), BadResult,
			`adapter: calling receiver.processed: bad-result: the result is not what the protocol says: "{\"processed\":0.5}"; expected {"processed":N} with N a whole number from 0 to 1000000000, and "failed":true for an event on the list of failed ones`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var a processedAnswer
			err := mocked(t, tt.answer, Options{}).Call(t.Context(), MethodProcessed, ProcessedParams{ID: "evt_1"}, &a)
			if !IsFault(err, tt.kind) || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestAnEndlessAnswerByHTTPCostsLittleMemory(t *testing.T) {
	h := mocked(t, func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(endless{})}, nil
	}, Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := h.Call(t.Context(), MethodProcessed, nil, nil)
	runtime.ReadMemStats(&after)
	if !IsFault(err, LongLine) || !strings.HasPrefix(err.Error(), "adapter: calling receiver.processed: long-line: the answer is longer than 1048576 bytes, or has no end: \"xxx") {
		t.Errorf("got %.200v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%d MiB were allocated", took>>20)
	}
}

// A host that accepts and says nothing: a real one, since the transport's own
// waiting is what is tried.
func TestAControlURLThatIsSilent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	h, err := NewHTTP("http://"+listener.Addr().String()+"/", nil, Options{CallTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	const want = `adapter: calling receiver.processed: silent: no answer within 200ms; answer every request, if only with an error, and flush the output after each message`
	if err := h.Call(t.Context(), MethodProcessed, nil, nil); !IsFault(err, Silent) || err.Error() != want {
		t.Errorf("got %v", err)
	}
	lost := errors.New("the scenario is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lost)
	if err := h.Call(ctx, MethodProcessed, nil, nil); !errors.Is(err, lost) || IsFault(err, Silent) {
		t.Errorf("got %v", err)
	}
}

func TestAConversationByHTTP(t *testing.T) {
	noLeaks(t)
	server := httptest.NewServer(Handler(goodMethods()))
	defer server.Close()
	h, err := NewHTTP(server.URL+"/_control", nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), h, InitializeParams{Profile: "standard-webhooks"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Processed(t.Context(), "evt_failed"); err != nil || got != (Processed{Processed: 2, Failed: true}) {
		t.Errorf("processed: %+v, %v", got, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAControlURLIsAnHTTPURL(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"shop.example", "reading the control URL: it is not http://HOST/… or https://HOST/…"},
		{"ftp://shop.example/", "reading the control URL: it is not http://HOST/… or https://HOST/…"},
		{"http://", "reading the control URL: it is not http://HOST/… or https://HOST/…"},
		{"http://user:hunter22@shop.example:x/", `reading the control URL: invalid port ":x" after host`},
	} {
		if _, err := NewHTTP(tt.url, nil, Options{}); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v", tt.url, err)
		}
	}
}
