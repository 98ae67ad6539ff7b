package adapter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// serve gives requests to the good methods and returns the lines of the answer.
func serve(t *testing.T, in string) []string {
	t.Helper()
	var out bytes.Buffer
	if err := Serve(t.Context(), strings.NewReader(in), &out, goodMethods()); err != nil {
		t.Error(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// What Serve and Handler answer is the same, and fits the schema.
func TestARequestIsAnswered(t *testing.T) {
	schema := compiled(t, "#/$defs/answer")
	control := httptest.NewServer(Handler(goodMethods()))
	defer control.Close()
	for _, tt := range []struct{ name, request, want string }{
		{"a request", `{"jsonrpc":"2.0","id":1,"method":"receiver.processed","params":{"id":"evt_1"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"processed":2}}`},
		{"an id that is a text", `{"jsonrpc":"2.0","id":"a-1","method":"receiver.processed","params":{"id":"evt_1"}}`,
			`{"jsonrpc":"2.0","id":"a-1","result":{"processed":2}}`},
		{"an id of any length", `{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"shutdown"}`,
			`{"jsonrpc":"2.0","id":123456789012345678901234567890,"result":null}`},
		{"members that nobody knows", `{"jsonrpc":"2.0","id":1,"method":"receiver.processed","params":{"id":"evt_1","new":1},"new":2}`,
			`{"jsonrpc":"2.0","id":1,"result":{"processed":2}}`},
		{"an error that the method chose", `{"jsonrpc":"2.0","id":1,"method":"receiver.processed","params":{"id":""}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no id"}}`},
		{"another error", `{"jsonrpc":"2.0","id":1,"method":"receiver.failOnce","params":{"id":"evt_1"}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"there is no event evt_1"}}`},
		{"a panic", `{"jsonrpc":"2.0","id":1,"method":"test.panic"}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the method test.panic panicked: a bug"}}`},
		{"an answer that is too long", `{"jsonrpc":"2.0","id":1,"method":"test.big"}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the answer has 1048613 bytes, more than the 1048576 of the protocol"}}`},
		{"no params", `{"jsonrpc":"2.0","id":1,"method":"receiver.processed"}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no id"}}`},
		{"params of another kind", `{"jsonrpc":"2.0","id":1,"method":"receiver.processed","params":{"id":7}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"reading the params: json: cannot unmarshal number into Go struct field ProcessedParams.id of type string"}}`},
		{"params in a list", `{"jsonrpc":"2.0","id":1,"method":"receiver.processed","params":["evt_1"]}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"params are not an object"}}`},
		{"a method that is not there", `{"jsonrpc":"2.0","id":1,"method":"endpoint.create"}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"there is no method \"endpoint.create\""}}`},
		{"no method", `{"jsonrpc":"2.0","id":1}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the member method is missing or no text"}}`},
		{"an id that is an object", `{"jsonrpc":"2.0","id":{},"method":"shutdown"}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the id is neither a number nor a string"}}`},
		{"another protocol", `{"id":1,"method":"shutdown"}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"it is JSON, but no JSON-RPC message: the member \"jsonrpc\":\"2.0\" is missing"}}`},
		{"no JSON", `hello`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"it is not JSON: invalid character 'h' looking for beginning of value at byte 1"}}`},
		{"another version of the protocol", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":2}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"this adapter speaks version 1 of the protocol, not 2"}}`},
		{"initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"profile":"standard-webhooks"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"name":"shop","version":"1.2","capabilities":["managed","clock.advance","receiver.failOnce","receiver.processed","receiver.state","test.big","test.panic","test.size","test.wait"]}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := serve(t, tt.request+"\n"); len(got) != 1 || got[0] != tt.want {
				t.Errorf("on a line it answered\n%s\nwant\n%s", got, tt.want)
			}
			if got := post(t, control.URL, tt.request); got != tt.want+"\n" {
				t.Errorf("by POST it answered\n%s\nwant\n%s", got, tt.want)
			}
			valid(t, schema, tt.want)
		})
	}
}

func post(t *testing.T, address, body string) string {
	t.Helper()
	answer, err := http.Post(address, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", answer.StatusCode, err)
	}
	return string(b)
}

func TestANotificationIsNotAnswered(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"receiver.processed","params":{"id":"evt_1"}}`
	if got := serve(t, note+"\n"+`{"jsonrpc":"2.0","method":"cancel","params":{"id":99}}`+"\n"); len(got) != 1 || got[0] != "" {
		t.Errorf("it answered %q", got)
	}
	for _, body := range []string{note, `{"jsonrpc":"2.0","method":"cancel","params":{"id":99}}`} {
		w := httptest.NewRecorder()
		Handler(goodMethods()).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		if w.Code != http.StatusNoContent || w.Body.Len() > 0 {
			t.Errorf("by POST it answered %d %q", w.Code, w.Body)
		}
	}
}

func TestNothingIsReadBehindAShutdown(t *testing.T) {
	got := serve(t, `{"jsonrpc":"2.0","id":1,"method":"shutdown"}`+"\n"+`{"jsonrpc":"2.0","id":2,"method":"shutdown"}`+"\n")
	if len(got) != 1 || got[0] != `{"jsonrpc":"2.0","id":1,"result":null}` {
		t.Errorf("it answered %q", got)
	}
}

func TestAShutdownThatFailsDoesNotEndTheConversation(t *testing.T) {
	var out bytes.Buffer
	times := 0
	m := Methods{MethodShutdown: func(context.Context, json.RawMessage) (any, error) {
		if times++; times == 1 {
			return nil, &Error{Code: NotPossible, Message: "still busy"}
		}
		return map[string]int{"times": times}, nil
	}}
	in := `{"jsonrpc":"2.0","id":1,"method":"shutdown"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"shutdown"}` + "\n"
	if err := Serve(t.Context(), strings.NewReader(in), &out, m); err != nil {
		t.Error(err)
	}
	const want = `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"still busy"}}` + "\n" + `{"jsonrpc":"2.0","id":2,"result":{"times":2}}` + "\n"
	if out.String() != want {
		t.Errorf("it answered %s", out.String())
	}
}

func TestARequestThatIsTooLongEndsTheConversation(t *testing.T) {
	var out bytes.Buffer
	err := Serve(t.Context(), endless{}, &out, goodMethods())
	if !errors.Is(err, errLongLine) || out.String() != `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a request is longer than 8388608 bytes"}}`+"\n" {
		t.Errorf("%v, %s", err, out.String())
	}
	w := httptest.NewRecorder()
	Handler(goodMethods()).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", io.LimitReader(endless{}, 2*MaxRequest)))
	if w.Code != http.StatusOK || w.Body.String() != out.String() {
		t.Errorf("by POST: %d %s", w.Code, w.Body)
	}
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestARequestCutOffIsAnError(t *testing.T) {
	err := Serve(t.Context(), strings.NewReader(`{"jsonrpc":`), io.Discard, goodMethods())
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "reading requests: unexpected EOF" {
		t.Errorf("got %v", err)
	}
}

func TestTheControlURLTakesPOSTOnly(t *testing.T) {
	w := httptest.NewRecorder()
	Handler(goodMethods()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Errorf("got %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

func TestAnIdIsNotUsedTwiceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, w := io.Pipe()
		var out bytes.Buffer
		ended := make(chan error, 1)
		go func() { ended <- Serve(t.Context(), in, &out, goodMethods()) }()
		say := func(line string) {
			if _, err := io.WriteString(w, line+"\n"); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		say(`{"jsonrpc":"2.0","id":1,"method":"test.wait"}`)
		say(`{"jsonrpc":"2.0","id":1,"method":"test.size"}`)
		say(`{"jsonrpc":"2.0","method":"cancel","params":{"id":1}}`)
		say(`{"jsonrpc":"2.0","id":1,"method":"test.size","params":{"text":"four"}}`)
		_ = w.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		const want = `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"a request with this id is still being worked on"}}` + "\n" +
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"the request was taken back"}}` + "\n" +
			`{"jsonrpc":"2.0","id":1,"result":4}` + "\n"
		if out.String() != want {
			t.Errorf("it answered\n%s", out.String())
		}
	})
}

func TestServeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, w := io.Pipe()
		over := errors.New("the program ends")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, in, io.Discard, goodMethods()) }()
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"method":"test.wait"}`+"\n")
		cancel(over)
		if err := <-ended; !errors.Is(err, over) {
			t.Errorf("got %v", err)
		}
		_ = w.Close()
	})
}

func TestMethodsGetASecondWhenTheSuiteIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := Serve(t.Context(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"test.wait"}`+"\n"), io.Discard, goodMethods())
		if err != nil || time.Since(began) != serveGrace {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// broken is an output whose reader is gone.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAnOutputThatBreaksIsAnError(t *testing.T) {
	err := Serve(t.Context(), strings.NewReader("1\n2\n"), broken{}, goodMethods())
	if !errors.Is(err, io.ErrClosedPipe) || err.Error() != "writing an answer: io: read/write on closed pipe" {
		t.Errorf("got %v", err)
	}
}
