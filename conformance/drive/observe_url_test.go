package drive

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

	"github.com/whconform/whconform/reference/wire"
)

// observing is an observer whose transport answers one address.
func observing(t *testing.T, template, address string, answer httpmock.Responder) Observer {
	t.Helper()
	transport := httpmock.NewMockTransport()
	transport.RegisterResponder(http.MethodGet, address, answer)
	o, err := ObserveURL(ObserveURLConfig{Template: template, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTheIDStandsWhereTheTemplateHasIt(t *testing.T) {
	for _, tt := range []struct{ name, template, id, address, answer string }{
		{"in the path", "http://shop.example/_obs/{id}", "evt_1", "http://shop.example/_obs/evt_1", "2"},
		{"in the path, escaped", "http://shop.example/_obs/{id}/count", "a/b c", "http://shop.example/_obs/a%2Fb%20c/count", "2"},
		{"in the query", "http://shop.example/_obs?of={id}&x=1", "evt_1", "http://shop.example/_obs?of=evt_1&x=1", `{"processed":2}`},
		{"in the query, escaped", "http://shop.example/_obs?of={id}", "a&b=c", "http://shop.example/_obs?of=a%26b%3Dc", "2"},
		{"in the fragment", "http://shop.example/_obs#/processed/{id}", "evt_1", "http://shop.example/_obs", `{"processed":{"evt_0":1,"evt_1":2}}`},
		{"in the fragment, of any form", "http://shop.example/_obs#/by%20id/{id}", "a/b~c", "http://shop.example/_obs", `{"by id":{"a/b~c":{"processed":2}}}`},
		{"in path and fragment", "http://shop.example/{id}#/0/processed", "evt_1", "http://shop.example/evt_1", `[{"processed":2}]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := observing(t, tt.template, tt.address, httpmock.NewStringResponder(200, tt.answer))
			if got, err := o.Processed(t.Context(), tt.id); err != nil || got != (Count{N: 2}) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestAnEventThatIsNotKnownWasNeverProcessed(t *testing.T) {
	for _, tt := range []struct {
		name, template string
		status         int
		answer         string
	}{
		{"status 404", "http://shop.example/_obs/{id}", 404, "404 page not found"},
		{"a member that is missing", "http://shop.example/_obs/{id}#/processed/{id}", 200, `{"processed":{}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := observing(t, tt.template, "http://shop.example/_obs/evt_1", httpmock.NewStringResponder(tt.status, tt.answer))
			if got, err := o.Processed(t.Context(), "evt_1"); err != nil || got != (Count{Unknown: true}) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestAnObserverThatDoesNotTellIsNamed(t *testing.T) {
	const template = "http://shop:hunter22@shop.example/_obs/{id}"
	const name = "the observer --observe http://shop.example/_obs/{id}, asked for evt_1: "
	for _, tt := range []struct {
		name   string
		answer httpmock.Responder
		fault  ObserverFault
		want   string
	}{
		{"another page", httpmock.NewStringResponder(200, "<html>\n"), ObserverNonsense, `it answered with status 200 "<html>": no count: it is neither JSON nor a number`},
		{"a long page", httpmock.NewStringResponder(200, strings.Repeat("<p>", 1000)), ObserverNonsense, `it answered with status 200 "` + strings.Repeat("<p>", 53) + `<"… (3000 bytes): no count: it is neither JSON nor a number`},
		{"nothing", httpmock.NewStringResponder(200, ""), ObserverNonsense, `it answered with status 200: no count: it is neither JSON nor a number`},
		{"less than none", httpmock.NewStringResponder(200, `{"processed":-1}`), ObserverNonsense, `it answered with status 200 "{\"processed\":-1}": no count: the number is not from 0 to 1000000000`},
		{"a login", httpmock.NewStringResponder(302, "").HeaderSet(http.Header{"Location": {"/login"}}), ObserverUnfit, `it answered with status 302`},
		{"not allowed", httpmock.NewStringResponder(401, "who are you?"), ObserverUnfit, `it answered with status 401 "who are you?"`},
		{"created", httpmock.NewStringResponder(201, "1"), ObserverUnfit, `it answered with status 201 "1"`},
		{"a crash", httpmock.NewStringResponder(500, "oops"), ObserverRefuses, `it answered with status 500 "oops"`},
		{"no contact", httpmock.NewErrorResponder(errors.New("connection refused")), ObserverUnreachable, `no answer: connection refused`},
		{"more than anybody reads", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(zeros{})}, nil
		}, ObserverNonsense, `it answered with more than 8388608 bytes`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := observing(t, template, "http://shop:hunter22@shop.example/_obs/evt_1", tt.answer)
			_, err := o.Processed(t.Context(), "evt_1")
			isFault(t, err, tt.fault, name+tt.want)
			if err != nil && strings.Contains(err.Error(), "hunter22") {
				t.Errorf("it shows the password: %v", err)
			}
		})
	}
}

func TestAPointerToNothingIsNamed(t *testing.T) {
	o := observing(t, "http://shop.example/_obs#/procesed/{id}", "http://shop.example/_obs", httpmock.NewStringResponder(200, `{"processed":{"evt_1":1}}`))
	_, err := o.Processed(t.Context(), "evt_1")
	isFault(t, err, ObserverNonsense, `the observer --observe http://shop.example/_obs#/procesed/{id}, asked for evt_1: it answered with status 200 "{\"processed\":{\"evt_1\":1}}": no count at /procesed: there is no such member`)
}

// zeros is an answer without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}

func TestAnEndlessAnswerOfAnObserverCostsLittle(t *testing.T) {
	o := observing(t, "http://shop.example/{id}", "http://shop.example/evt_1", func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(zeros{})}, nil
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := o.Processed(t.Context(), "evt_1")
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 128<<20 {
		t.Errorf("%d MiB were allocated: %v", took>>20, err)
	}
}

// A host that accepts and says nothing: a real one, since the transport's own
// waiting is what is tried.
func TestAnObserverThatHangsIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	template := "http://" + listener.Addr().String() + "/{id}"
	o, err := ObserveURL(ObserveURLConfig{Template: template, ObserveOptions: ObserveOptions{Timeout: 200 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Processed(t.Context(), "evt_1")
	isFault(t, err, ObserverHangs, "the observer --observe "+template+", asked for evt_1: no whole answer within 200ms")

	over := errors.New("the run is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	var of *ObserverError
	if _, err = o.Processed(ctx, "evt_1"); !errors.Is(err, over) || errors.As(err, &of) {
		t.Errorf("got %v", err)
	}
}

func TestARealObserverIsAskedWithItsHeaders(t *testing.T) {
	noLeaks(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token-of-the-test" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"processed":1}`)
	}))
	transport := &http.Transport{DisableKeepAlives: true}
	o, err := ObserveURL(ObserveURLConfig{Template: server.URL + "/{id}", Transport: transport,
		Headers: []wire.Header{{Name: "Authorization", Value: "Bearer token-of-the-test"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := o.Processed(t.Context(), "evt_1"); err != nil || got != (Count{N: 1}) {
		t.Errorf("got %+v, %v", got, err)
	}
	server.Close()
	_, err = o.Processed(t.Context(), "evt_1")
	var of *ObserverError
	if !errors.As(err, &of) || of.Fault != ObserverUnreachable {
		t.Errorf("after it is gone: %v", err)
	}
}

func TestATemplateThatCannotBeAskedIsRefused(t *testing.T) {
	for _, tt := range []struct{ template, want string }{
		{"http://shop.example/_obs", "--observe http://shop.example/_obs: the address needs {id} for the id of the event"},
		{"shop.example/{id}", "--observe shop.example/{id}: the address is not http://HOST/… or https://HOST/…"},
		{"ftp://shop.example/{id}", "--observe ftp://shop.example/{id}: the address is not http://HOST/… or https://HOST/…"},
		{"http://u:hunter22@{id}.example/", "--observe http://{id}.example/: {id} stands in the host"},
		{"http://u:hunter22@shop.example:x/{id}", "--observe http://shop.example:x/{id}: it is not a URL"},
		{"http://shop.example/#{id}", "--observe http://shop.example/#{id}: the part behind # is no JSON Pointer: a JSON Pointer begins with /"},
		{"http://shop.example/#/%zz{id}", `--observe http://shop.example/#/%zz{id}: the part behind # is no JSON Pointer: invalid URL escape "%zz"`},
	} {
		if _, err := ObserveURL(ObserveURLConfig{Template: tt.template}); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v", tt.template, err)
		}
	}
}

func TestAnObserversAnswerShowsNoSecret(t *testing.T) {
	transport := httpmock.NewMockTransport()
	transport.RegisterResponder(http.MethodGet, "http://shop.example/evt_1?token=hunter22", httpmock.NewStringResponder(200, strings.Repeat("x", quoteMax-3)+"hunter22"))
	o, err := ObserveURL(ObserveURLConfig{Template: "http://shop.example/{id}?token=hunter22", Transport: transport,
		ObserveOptions: ObserveOptions{Redact: func(s string) string { return Redact(s, []string{"hunter22"}) }}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Processed(t.Context(), "evt_1")
	isFault(t, err, ObserverNonsense, `the observer --observe http://shop.example/{id}?token=[secret], asked for evt_1: it answered with status 200 "`+strings.Repeat("x", quoteMax-3)+`[se"… (165 bytes): no count: it is neither JSON nor a number`)
}
