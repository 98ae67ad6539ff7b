package sender

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/wire"
)

// rig is a transport on a mock clock that may call loopback.
type rig struct {
	*HTTPTransport
	clock *clock.Mock
}

func newRig(t *testing.T, change ...func(*TransportOptions)) rig {
	t.Helper()
	mock := clock.NewMock()
	mock.Set(day)
	o := TransportOptions{Clock: mock, Guard: newGuard(t, "127.0.0.1")}
	for _, f := range change {
		f(&o)
	}
	made, err := NewTransport(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	return rig{made, mock}
}

func (r rig) post(t *testing.T, to string, body string) Result {
	t.Helper()
	return r.Attempt(t.Context(), attemptAt(to, body))
}

func attemptAt(to, body string) Request {
	return Request{URL: to, Body: []byte(body), Timeout: 15 * time.Second, ConnectTimeout: 5 * time.Second,
		Headers: []wire.Header{{Name: "webhook-id", Value: "msg_1"}, {Name: "Content-Type", Value: "application/json"}}}
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// raw serves each connection by f, which gets it after the request's head.
func raw(t *testing.T, f func(*net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_, _ = http.ReadRequest(newReader(c))
				f(c.(*net.TCPConn))
			}()
		}
	}()
	return "http://" + l.Addr().String() + "/"
}

func TestAnAttemptIsAPostOfTheBytesAsTheyAre(t *testing.T) {
	var got bytes.Buffer
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		req, err := http.ReadRequest(newReader(io.TeeReader(c, &got)))
		if err == nil {
			_, _ = io.Copy(io.Discard, req.Body)
		}
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		_ = c.Close()
	}()
	result := newRig(t).post(t, "http://"+l.Addr().String()+"/a?b=%20c", `{"a": 1}`)
	<-done
	if result.Status != 204 || result.Err != nil || result.Fault != "" || result.ConnectionReused {
		t.Errorf("%+v", result)
	}
	head, body, _ := strings.Cut(got.String(), "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	slices.Sort(lines[1:])
	want := []string{"POST /a?b=%20c HTTP/1.1", "Content-Length: 8", "Content-Type: application/json", "Host: " + l.Addr().String(), "User-Agent: " + DefaultUserAgent, "webhook-id: msg_1"}
	if !slices.Equal(lines, want) || body != `{"a": 1}` {
		t.Errorf("sent\n%s\n\n%s\nwant\n%s", strings.Join(lines, "\n"), body, strings.Join(want, "\n"))
	}
}

func TestAnEmptyPayloadIsAPostOfNothing(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, req *http.Request) {
		if req.ContentLength != 0 || len(req.TransferEncoding) > 0 {
			w.WriteHeader(400)
		}
	})
	if r := newRig(t).post(t, s.URL, ""); r.Status != 200 {
		t.Errorf("%+v", r)
	}
}

func TestTheUserAgentIsTheRequestsOwn(t *testing.T) {
	agent := make(chan string, 1)
	s := serve(t, func(_ http.ResponseWriter, req *http.Request) { agent <- strings.Join(req.Header["User-Agent"], "|") })
	r := attemptAt(s.URL, "x")
	r.Headers = append(r.Headers, wire.Header{Name: "user-agent", Value: "shop/2"})
	newRig(t).Attempt(t.Context(), r)
	if got := <-agent; got != "shop/2" {
		t.Errorf("User-Agent: %s", got)
	}
}

func TestAStatusSettlesTheOutcome(t *testing.T) {
	for _, status := range []int{200, 201, 204, 299, 300, 301, 302, 303, 304, 307, 308, 400, 404, 410, 429, 500, 503, 599} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var requests atomic.Int32
			s := serve(t, func(w http.ResponseWriter, req *http.Request) {
				requests.Add(1)
				w.Header().Set("Location", "/elsewhere")
				w.Header().Set("Retry-After", "600")
				w.Header().Set("Set-Cookie", "a=b")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "why")
			})
			rig := newRig(t)
			for range 2 {
				r := rig.post(t, s.URL, "x")
				if r.Status != status || r.Err != nil || r.Fault != "" || r.RetryAfter != "600" {
					t.Errorf("%+v", r)
				}
				if bodied := status >= 300 && status != 304; bodied != (string(r.Body) == "why") {
					t.Errorf("kept %q", r.Body)
				}
			}
			if n := requests.Load(); n != 2 {
				t.Errorf("%d requests for two attempts", n)
			}
		})
	}
}

func TestInterimAnswersChangeNothing(t *testing.T) {
	to := raw(t, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	if r := newRig(t).post(t, to, "x"); r.Status != 200 || r.Err != nil {
		t.Errorf("%+v", r)
	}
}

func TestAProtocolSwitchIsAStatusAsOthers(t *testing.T) {
	to := raw(t, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = c.Read(make([]byte, 1))
	})
	if r := newRig(t).post(t, to, "x"); r.Status != 101 || r.Err != nil {
		t.Errorf("%+v", r)
	}
}

func TestWhatIsNoAnswerIsAFault(t *testing.T) {
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = refused.Close()
	answering := func(text string) string {
		return raw(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, text) })
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	for name, c := range map[string]struct{ url, fault, says string }{
		"refused":              {"http://" + refused.Addr().String(), wire.FaultRefused, "refused"},
		"reset":                {raw(t, func(c *net.TCPConn) { _ = c.SetLinger(0) }), wire.FaultReset, "reset"},
		"closed":               {answering(""), wire.FaultClosed, "closed"},
		"closed in the head":   {answering("HTTP/1.1 200 OK\r\nServer: x\r\n"), wire.FaultClosed, "closed"},
		"cut 2xx":              {answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), wire.FaultClosed, "status 200, but"},
		"cut 2xx of large":     {answering("HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n" + strings.Repeat("x", 5000)), wire.FaultClosed, "status 200, but"},
		"cut 2xx in chunks":    {answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), wire.FaultClosed, "status 200, but"},
		"not HTTP":             {answering("SSH-2.0-OpenSSH_9\r\n\x00\x01\r\n"), wire.FaultNotHTTP, "SSH"},
		"another status line":  {answering("HTTP/1.1 two OK\r\n\r\n"), wire.FaultNotHTTP, "malformed"},
		"TLS from nobody":      {secure.URL, wire.FaultTLS, "unknown authority"},
		"no TLS":               {"https" + strings.TrimPrefix(answering("HTTP/1.1 400 Bad\r\n\r\n"), "http"), wire.FaultTLS, "TLS"},
		"an internal address":  {"https://10.0.0.1/", FaultForbidden, "private"},
		"a name of another":    {"https://localhost/", FaultForbidden, "this machine"},
		"plain HTTP elsewhere": {"http://example.com/", FaultForbidden, "https"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t).post(t, c.url, "x")
			if r.Fault != c.fault || r.Status != 0 || r.Err == nil || !strings.Contains(r.Err.Error(), c.says) {
				t.Errorf("%+v, want the fault %s, %q", r, c.fault, c.says)
			}
		})
	}
}

func TestAnErrorWhoseBodyBreaksOffIsItsStatus(t *testing.T) {
	to := raw(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, "HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nhalf") })
	if r := newRig(t).post(t, to, "x"); r.Status != 500 || r.Fault != "" || string(r.Body) != "half" {
		t.Errorf("%+v", r)
	}
}

func TestOfALargeAnswerTheBeginningIsRead(t *testing.T) {
	const size = 256 << 20
	for name, c := range map[string]struct {
		status int
		header string
	}{
		"plain": {200, ""}, "plain error": {500, ""}, "packed": {200, "gzip"}, "packed error": {500, "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			wrote := make(chan int64, 1)
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.header != "" {
					w.Header().Set("Content-Encoding", c.header)
				}
				w.WriteHeader(c.status)
				n, _ := io.CopyN(w, endless{}, size)
				wrote <- n
			})
			r := newRig(t).post(t, s.URL, "x")
			if r.Status != c.status || r.Err != nil {
				t.Errorf("%+v", r)
			}
			if c.status == 500 && len(r.Body) != DefaultErrorBody || c.status == 200 && len(r.Body) != 0 {
				t.Errorf("%d B are kept", len(r.Body))
			}
			if n := <-wrote; n > 8<<20 {
				t.Errorf("%d B were taken", n)
			}
		})
	}
}

func TestAPackedAnswerIsNotUnpacked(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.CopyN(z, endless{}, 1<<20)
	_ = z.Close()
	s := serve(t, func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Accept-Encoding") != "" {
			t.Errorf("asks for %q", req.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(500)
		_, _ = w.Write(packed.Bytes())
	})
	if r := newRig(t).post(t, s.URL, "x"); r.Status != 500 || !bytes.Equal(r.Body, packed.Bytes()[:DefaultErrorBody]) {
		t.Errorf("status %d, kept %.20q", r.Status, r.Body)
	}
}

func TestHeadersWithoutEndAreNoAnswer(t *testing.T) {
	to := raw(t, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		for range 16 << 10 {
			if _, err := io.WriteString(c, "X: "+strings.Repeat("x", 1000)+"\r\n"); err != nil {
				return
			}
		}
		_, _ = io.WriteString(c, "\r\n")
	})
	if r := newRig(t).post(t, to, "x"); r.Status != 0 || r.Fault != wire.FaultNotHTTP {
		t.Errorf("%+v", r)
	}
}

// hang answers with a beginning and then nothing, until the peer has left.
func hang(t *testing.T, beginning string) (string, <-chan struct{}) {
	began := make(chan struct{}, 1)
	return raw(t, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, beginning)
		began <- struct{}{}
		_, _ = io.Copy(io.Discard, c)
	}), began
}

func TestTheTimeoutIsThatOfTheWholeAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		beginning string
		status    int
		fault     string
	}{
		"no answer":                  {"", 0, wire.FaultTimeout},
		"in the head":                {"HTTP/1.1 200 OK\r\nX: ", 0, wire.FaultTimeout},
		"an error's body":            {"HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nha", 500, ""},
		"the body of a 2xx":          {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nha", 200, ""},
		"the body of a 2xx, chunked": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx", 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			to, began := hang(t, c.beginning)
			rig := newRig(t)
			results := make(chan Result, 1)
			go func() { results <- rig.post(t, to, "x") }()
			<-began
			rig.clock.Set(day.Add(15*time.Second - 1))
			select {
			case r := <-results:
				t.Fatalf("a nanosecond before the timeout: %+v", r)
			default:
			}
			rig.clock.Set(day.Add(15 * time.Second))
			if r := <-results; r.Status != c.status || r.Fault != c.fault {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestTheTimeoutsCountFromTheBeginningThatIsGiven(t *testing.T) {
	to, _ := hang(t, "")
	rig := newRig(t)
	r := attemptAt(to, "x")
	r.Began = day.Add(-15 * time.Second)
	if got := rig.Attempt(t.Context(), r); got.Fault != wire.FaultTimeout || !strings.Contains(got.Err.Error(), "15s") {
		t.Errorf("%+v", got)
	}
}

func TestAConnectionThatNeverCompletesEndsAtTheConnectTimeout(t *testing.T) {
	// A listener that never takes the TLS handshake: for plain TCP there would
	// have to be a full queue, for TLS it is enough not to answer.
	to, _ := hang(t, "")
	rig := newRig(t)
	connected := make(chan struct{}, 1)
	r := attemptAt("https"+strings.TrimPrefix(to, "http"), "x")
	r.Began = day // what the test moves away from, whenever the attempt gets to run
	r.Connected = func() { connected <- struct{}{} }
	results := make(chan Result, 1)
	go func() { results <- rig.Attempt(t.Context(), r) }()
	rig.clock.Set(day.Add(5*time.Second - 1))
	select {
	case got := <-results:
		t.Fatalf("before the timeout: %+v", got)
	default:
	}
	rig.clock.Set(day.Add(5 * time.Second))
	if got := <-results; got.Fault != wire.FaultTimeout || !strings.Contains(got.Err.Error(), "no connection within 5s") {
		t.Errorf("%+v", got)
	}
	if len(connected) > 0 {
		t.Error("it was told to be connected")
	}
}

func TestAConnectionIsToldOfOnce(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	n := 0
	r := attemptAt(s.URL, "x")
	r.Connected = func() { n++ }
	if newRig(t).Attempt(t.Context(), r); n != 1 {
		t.Errorf("told %d times", n)
	}
}

func TestAnAttemptEndsWithItsContext(t *testing.T) {
	to, began := hang(t, "")
	ctx, cancel := context.WithCancelCause(t.Context())
	results := make(chan Result, 1)
	rig := newRig(t)
	go func() { results <- rig.Attempt(ctx, attemptAt(to, "x")) }()
	<-began
	cancel(errors.New("closing down"))
	if r := <-results; r.Status != 0 || r.Err == nil || !strings.Contains(r.Err.Error(), "closing down") {
		t.Errorf("%+v", r)
	}
}

func TestConnectionsAreKeptForTwoMinutes(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	rig := newRig(t)
	for _, c := range []struct {
		at     time.Duration
		reused bool
	}{
		{0, false}, {time.Second, true}, {2*time.Minute - 1, true}, {2 * time.Minute, false}, {2*time.Minute + 1, true},
		{100 * time.Hour, false},
	} {
		rig.clock.Set(day.Add(c.at))
		if r := rig.post(t, s.URL, "x"); r.ConnectionReused != c.reused || r.Status != 200 {
			t.Errorf("after %v: %+v", c.at, r)
		}
	}
	// A mock does not go back; a real clock may. What is younger than now is of
	// no known age.
	rig.current.born = day.Add(1000 * time.Hour)
	if r := rig.post(t, s.URL, "x"); r.ConnectionReused {
		t.Error("a connection of the future is used")
	}
}

func TestARequestIsNeverRepeatedOnABrokenConnection(t *testing.T) {
	var requests atomic.Int32
	to := raw(t, func(c *net.TCPConn) {
		requests.Add(1)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		// The next request on this connection is read and not answered.
		if _, err := http.ReadRequest(newReader(c)); err == nil {
			requests.Add(1)
		}
	})
	rig := newRig(t)
	if r := rig.post(t, to, "x"); r.Status != 200 {
		t.Fatalf("%+v", r)
	}
	r := rig.post(t, to, "x")
	if r.Fault != wire.FaultClosed || !r.ConnectionReused {
		t.Errorf("%+v", r)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests for two attempts", n)
	}
}

func TestTheAuthorityOfATestIsTrusted(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.ProtoMajor != 1 {
			t.Errorf("%s", req.Proto)
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if r := newRig(t, func(o *TransportOptions) { o.Authorities = authority }).post(t, s.URL, "x"); r.Status != 200 {
		t.Errorf("%+v", r)
	}
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.Config.ErrorLog = log.New(io.Discard, "", 0)
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, Certificates: s.TLS.Certificates}
	old.StartTLS()
	defer old.Close()
	if r := newRig(t, func(o *TransportOptions) { o.Authorities = authority }).post(t, old.URL, "x"); r.Fault != wire.FaultTLS {
		t.Errorf("TLS 1.1: %+v", r)
	}
	if _, err := NewTransport(TransportOptions{Clock: clock.NewMock(), Guard: newGuard(t), Authorities: []byte("nonsense")}); err == nil {
		t.Error("nonsense is taken for an authority")
	}
	if _, err := x509.ParseCertificate(s.Certificate().Raw); err != nil {
		t.Fatal(err)
	}
}

func TestNoProxyOfTheEnvironmentIsAsked(t *testing.T) {
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") })
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	// net/http never proxies loopback, so the request is to a name.
	names := answers(t, map[string][]string{"hooks.test.": {"127.0.0.1"}})
	rig := newRig(t, func(o *TransportOptions) { o.Guard, o.Resolver = newGuard(t, "hooks.test"), names })
	if r := rig.post(t, "http://hooks.test:"+u.Port()+"/", "x"); r.Status != 200 {
		t.Errorf("%+v", r)
	}
}
