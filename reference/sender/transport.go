package sender

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
)

// The bounds of an attempt that no policy changes. An answer is a stranger's
// data: each of them is what one endpoint can cost.
const (
	// maxAnswerHead is how large the headers of an answer may be, 64 KiB: a
	// hundred times what any needs. They are read whole before the sender sees
	// them.
	maxAnswerHead = 64 << 10

	// maxAnswerBody is how much of an answer's body is read, 64 KiB. The status
	// says all; the rest is read only so that the connection can be used again,
	// and beyond this a new one is cheaper.
	maxAnswerBody = 64 << 10

	// DefaultErrorBody is how much of an error's body is kept, 1 KiB: enough for
	// the sentence that says what is wrong.
	DefaultErrorBody = 1 << 10

	// redialAfter is how old a connection may grow, two minutes on the sender's
	// clock: an endpoint that moved is found again by its name, and a kept
	// connection knows no names.
	redialAfter = 2 * time.Minute

	// keepIdle is how long a connection is kept without a request, 4 s of real
	// time. Common servers close theirs after 5 s, and a POST that meets a
	// closing connection is a failed attempt of which the endpoint knows nothing.
	keepIdle = 4 * time.Second

	// maxIdle and maxIdlePerHost bound the connections that are kept: files are
	// scarce, and one host may stand behind many endpoints.
	maxIdle        = 256
	maxIdlePerHost = 64
)

// FaultForbidden is Result.Fault of an attempt that the [Guard] did not let
// connect. All other faults are those of package wire.
const FaultForbidden = "forbidden"

// DefaultUserAgent names the sender where its profile does not.
const DefaultUserAgent = "whconform-sender/1 (+https://github.com/whconform/whconform)"

// TransportOptions say how [NewTransport] reaches endpoints.
type TransportOptions struct {
	Clock     clock.Clock // required
	Guard     *Guard      // required: what may be connected to
	UserAgent string      // sent where a request has none; "": DefaultUserAgent
	Resolver  string      // host:port of the name server to ask; "": the system's
	// Authorities are the certificate authorities to trust beside the system's,
	// in PEM.
	Authorities []byte
	ErrorBody   int // bytes kept of an error's body; 0: DefaultErrorBody

	Faults TransportFaults // for the self-test
}

// TransportFaults are to a transport what [Faults] are to a sender.
type TransportFaults struct {
	Address func(refusal error) error                      // whether a URL, and then an address, may be called
	Pool    func(*http.Transport)                          // the connection pool, before it is used
	Answer  func(next http.RoundTripper) http.RoundTripper // what makes the request

	AnyCertificate     bool // certificates are not verified
	ConnectingIsFree   bool // the timeout does not count as long as there is no connection
	ConnectedByHeaders bool // the connect timeout runs until the answer's headers have come
}

// Options is what the transport was made from, to make another one.
func (t *HTTPTransport) Options() TransportOptions { return t.options }

// HTTPTransport is the [Transport] over net/http. It speaks HTTP/1.1 only: header
// names arrive as the profile writes them, and nothing below this package
// repeats a request.
type HTTPTransport struct {
	options TransportOptions
	dialer  dialer

	mu      sync.Mutex
	current *generation
}

// NewTransport makes a transport. The caller closes it when no attempt runs any
// more.
func NewTransport(o TransportOptions) (*HTTPTransport, error) {
	if o.Clock == nil || o.Guard == nil {
		return nil, errors.New("making a transport: it needs a clock and a guard")
	}
	if o.UserAgent == "" {
		o.UserAgent = DefaultUserAgent
	}
	if o.ErrorBody <= 0 {
		o.ErrorBody = DefaultErrorBody
	}
	d := dialer{guard: o.Guard, resolver: resolver(o.Resolver), faults: o.Faults}
	if len(o.Authorities) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool() // a system without authorities of its own
		}
		if !pool.AppendCertsFromPEM(o.Authorities) {
			return nil, errors.New("making a transport: no certificate could be read from the PEM of the authorities")
		}
		d.authorities = pool
	}
	return &HTTPTransport{options: o, dialer: d}, nil
}

// Close closes the connections that are kept.
func (t *HTTPTransport) Close() error {
	t.mu.Lock()
	old := t.current
	t.current = nil
	t.mu.Unlock()
	if old != nil {
		old.retire()
	}
	return nil
}

// The causes by which an attempt is ended early.
var (
	errConnectTimeout = errors.New("no connection within the connect timeout")
	errTimeout        = errors.New("no answer within the timeout")
)

// Attempt makes one request, a POST, and reads its answer as far as it counts.
// What ends it early is a timeout, or ctx. Header names go out in their case;
// their order is net/http's.
//
// A 2xx settles the outcome by its status; the body is read only to see that the
// answer is whole and to use the connection again. A 2xx whose body breaks off
// is no whole answer, and a failure (RFC 9112 §8); one whose body never ends
// stays a success when the time is over.
func (t *HTTPTransport) Attempt(ctx context.Context, r Request) Result {
	err := t.options.Guard.CheckURL(r.URL)
	if t.options.Faults.Address != nil {
		err = t.options.Faults.Address(err)
	}
	if err != nil {
		return Result{Fault: FaultForbidden, Err: err}
	}
	if r.Began.IsZero() {
		r.Began = t.options.Clock.Now()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var reused, connected atomic.Bool
	defer t.at(r.Began.Add(r.Timeout), func() {
		if connected.Load() || !t.options.Faults.ConnectingIsFree {
			cancel(errTimeout)
		}
	})()
	defer t.at(r.Began.Add(r.ConnectTimeout), func() {
		if !connected.Load() {
			cancel(errConnectTimeout)
		}
	})()
	connect := func() {
		if !connected.Swap(true) && r.Connected != nil {
			r.Connected()
		}
	}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		reused.Store(info.Reused)
		if !t.options.Faults.ConnectedByHeaders {
			connect()
		}
	}})

	g := t.acquire()
	defer g.release()
	result := t.exchange(withAttempt(traced, ctx), g.pool, r, connect)
	result.ConnectionReused = reused.Load()
	return result
}

// at calls f when the clock has reached an instant, at once where it has passed
// already, and returns what takes that back. A clock that is moved by hand may
// move between the look at it and the timer; the timer is then set anew.
func (t *HTTPTransport) at(instant time.Time, f func()) (stop func()) {
	const unmoved = 10 * time.Millisecond
	for {
		now := t.options.Clock.Now()
		if !now.Before(instant) {
			f()
			return func() {}
		}
		timer := t.options.Clock.AfterFunc(instant.Sub(now), f)
		if t.options.Clock.Now().Sub(now) < unmoved {
			return func() { timer.Stop() }
		}
		timer.Stop()
	}
}

func (t *HTTPTransport) exchange(ctx context.Context, pool *http.Transport, r Request, connected func()) Result {
	req, err := t.request(ctx, r)
	if err != nil {
		return Result{Fault: FaultForbidden, Err: err}
	}
	// RoundTrip and not http.Client: a client follows redirects and keeps cookies.
	var tripper http.RoundTripper = pool
	if t.options.Faults.Answer != nil {
		tripper = t.options.Faults.Answer(pool)
	}
	answer, err := tripper.RoundTrip(req)
	if err != nil {
		return fault(ctx, r, err)
	}
	connected()
	result := Result{Status: answer.StatusCode, RetryAfter: answer.Header.Get("Retry-After")}
	kept, err := t.read(answer)
	// Closing without having read all closes the connection: nothing is drained.
	_ = answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		result.Body = kept
		return result
	}
	if err != nil && ctx.Err() == nil {
		f := fault(ctx, r, err)
		f.Err = fmt.Errorf("status %d, but the answer's body broke off: %w", answer.StatusCode, f.Err)
		return f
	}
	return result
}

// read reads the body up to its bound and returns the part that is kept. The
// error tells of a body that broke off.
func (t *HTTPTransport) read(answer *http.Response) ([]byte, error) {
	if answer.StatusCode == http.StatusSwitchingProtocols {
		return nil, nil // what follows is another protocol
	}
	kept := beginning{room: t.options.ErrorBody}
	_, err := io.Copy(&kept, io.LimitReader(answer.Body, maxAnswerBody))
	return kept.bytes, err
}

// beginning keeps the first bytes of what is written to it.
type beginning struct {
	bytes []byte
	room  int
}

func (b *beginning) Write(p []byte) (int, error) {
	n := min(len(p), b.room)
	b.bytes = append(b.bytes, p[:n]...)
	b.room -= n
	return len(p), nil
}

// request makes the HTTP request anew for each attempt, so that nothing stays
// from the one before.
func (t *HTTPTransport) request(ctx context.Context, r Request) (*http.Request, error) {
	var body io.Reader = http.NoBody
	if len(r.Body) > 0 {
		// Not a *bytes.Reader: of one, net/http could make a second body and
		// send the request again by itself.
		body = io.NopCloser(bytes.NewReader(r.Body))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, body)
	if err != nil {
		return nil, &RefusedError{Why: "is not well formed"}
	}
	req.ContentLength = int64(len(r.Body))
	req.Header = make(http.Header, len(r.Headers)+1)
	for _, h := range r.Headers {
		name := h.Name
		if isOwn(name) {
			name = http.CanonicalHeaderKey(name) // net/http looks for these itself
		}
		req.Header[name] = append(req.Header[name], h.Value)
	}
	if _, ok := req.Header["User-Agent"]; !ok {
		req.Header["User-Agent"] = []string{t.options.UserAgent}
	}
	return req, nil
}

// isOwn tells whether net/http writes or reads a header by itself, and so has to
// find it under its canonical name.
func isOwn(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "User-Agent", "Content-Type", "Accept-Encoding":
		return true
	}
	return false
}

// generation is the connections that were made within one stretch of
// redialAfter. Those of an older one end with their last request.
type generation struct {
	pool *http.Transport
	born time.Time

	mu      sync.Mutex
	users   int
	retired bool
}

// acquire returns the present generation, or begins one.
func (t *HTTPTransport) acquire() *generation {
	now := t.options.Clock.Now()
	t.mu.Lock()
	g := t.current
	var old *generation
	// A clock that jumped back tells nothing of the age.
	if g == nil || now.Sub(g.born) >= redialAfter || now.Before(g.born) {
		old, g = g, &generation{pool: t.pool(), born: now}
		t.current = g
	}
	g.mu.Lock()
	g.users++
	g.mu.Unlock()
	t.mu.Unlock()
	if old != nil {
		old.retire()
	}
	return g
}

func (g *generation) release() {
	g.mu.Lock()
	g.users--
	last := g.retired && g.users == 0
	g.mu.Unlock()
	if last {
		g.pool.CloseIdleConnections()
	}
}

func (g *generation) retire() {
	g.mu.Lock()
	g.retired = true
	g.mu.Unlock()
	g.pool.CloseIdleConnections() // those in use follow when they are released
}

// pool makes the connection pool of a generation. Its own timeouts stay off, as
// they would be on the real clock.
func (t *HTTPTransport) pool() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	pool := &http.Transport{
		Proxy:                  nil, // one from the environment would make the connections, and the guard would check its address
		Protocols:              protocols,
		DialContext:            t.dialer.dial,
		DialTLSContext:         t.dialer.dialTLS,
		DisableCompression:     true, // what is not unpacked cannot expand
		MaxResponseHeaderBytes: maxAnswerHead,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        keepIdle,
	}
	if t.options.Faults.Pool != nil {
		t.options.Faults.Pool(pool)
	}
	return pool
}
