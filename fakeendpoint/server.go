// Package fakeendpoint plays the endpoint that webhooks are sent to: it answers
// as a script says, right or wrong in every way a network knows, and records
// each request as its bytes came.
//
// Read [Server] first: [Start] starts one, [Server.Path] gives a scenario its
// own address and [Script], [Path.Wait] waits for what comes and returns it. A
// script is a text such as "500*2,slow(20s,503),200"; [ParseScript] reads one,
// and docs/fake-endpoint.md describes the language. An [Attempt] is what was
// recorded of a request, the check of its signature included. [Handler]s are
// for tests that decide in Go.
//
// No HTTP library stands between the socket and the record: net/http loses the
// order and case of header lines, mends what a fault is meant to break, and
// costs twice the memory for each connection that a script holds.
//
// Everything that a script waits for is on the clock of [Config]; what guards
// against peers is real time. [Server.Held] tells what is held on purpose and
// when the next of it is due, for those who move a virtual clock.
package fakeendpoint

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// The reserved beginnings of a URL's path.
const (
	scriptPrefix = "/s/"    // the script itself follows
	trapPrefix   = "/trap/" // the name of the path whose trap it is follows
)

// ErrClosed tells that the server was closed.
var ErrClosed = errors.New("the fake endpoint is closed")

// Config is what a server is made from.
type Config struct {
	Clock clock.Clock // required: the time of scripts and attempts

	// Profile says how requests are signed; nil: Standard Webhooks. Its scheme
	// must be one that can be verified here.
	Profile *profile.Profile

	// Addr is the host and port to listen on; empty: a free port on 127.0.0.1.
	// Others than this machine can reach no address unless Remote is set.
	Addr   string
	Remote bool

	// Certificate has the server speak TLS, and chooses what it shows; empty:
	// plain HTTP. Hosts are names and addresses for which the good certificate is
	// good, beside localhost and the loopback addresses.
	Certificate Certificate
	Hosts       []string
	// Certificates is a server whose certificates this one shows, so that who was
	// told to trust its authority trusts this one as well; nil: it makes its own.
	Certificates *Server

	// Fallback is the script for requests to an address of no path; nil: they are
	// answered 404. Keys check those, and the ones with their script in the URL.
	Fallback *Script
	Keys     []signature.Key

	// OnAttempt, if set, is called with each attempt when it is concluded, by one
	// goroutine at a time; OnStray likewise with strays. They must not wait for
	// the server.
	OnAttempt func(Attempt)
	OnStray   func(Stray)

	Limits Limits
}

// Server is a fake endpoint that listens. It is safe for use by several
// goroutines at a time.
type Server struct {
	config  Config
	limits  Limits
	clock   clock.Clock
	scheme  signature.Scheme
	certs   *authority
	door    *door     // that all paths share which have none of their own
	filler  []byte    // pieceSize bytes of large bodies
	chunk   []byte    // the same as a chunk
	buffers sync.Pool // of *[bufferSize]byte

	done  chan struct{} // closed when Close begins
	conns sync.WaitGroup

	inFlight atomic.Int64 // bytes of bodies that are not answered yet
	serial   atomic.Int64 // of connections
	date     atomic.Pointer[dateLine]

	telling sync.Mutex // held around OnAttempt and OnStray

	mu       sync.Mutex // guards what follows, and the paths
	closed   bool
	open     map[*conn]struct{}
	doors    []*door
	paths    map[string]*Path
	count    int // of paths, traps among them
	fallback *Path
	ledger   ledger
	messages messages
	strays   []Stray
	known    []signature.Key // that paths have had, the last ones: for secrets that strays hold
	stats    Stats

	heldMu  sync.Mutex          // guards what follows
	held    map[*conn]time.Time // until when, zero: not known
	due     map[*door]time.Time // when outages end
	changed chan struct{}       // nil until somebody waits
}

// Start listens and serves until [Server.Close].
func Start(c Config) (*Server, error) {
	if c.Clock == nil {
		return nil, errors.New("starting the fake endpoint: a clock is required")
	}
	s := &Server{
		config: c, limits: c.Limits, clock: c.Clock, done: make(chan struct{}),
		open: map[*conn]struct{}{}, paths: map[string]*Path{}, held: map[*conn]time.Time{}, due: map[*door]time.Time{},
		filler: makeFiller(),
	}
	s.chunk = makeChunk(s.filler)
	s.buffers.New = func() any { return new([bufferSize]byte) }
	s.limits.defaults()
	s.ledger.limit = s.limits.Record
	spec := signature.StandardWebhooks()
	if c.Profile != nil {
		spec = c.Profile.Signature
	}
	var err error
	if s.scheme, err = signature.New(spec); err != nil {
		return nil, fmt.Errorf("starting the fake endpoint: %w", err)
	}
	if c.Certificates != nil {
		s.certs = c.Certificates.certs
	} else if s.certs, err = newAuthority(c.Clock.Now(), c.Hosts); err != nil {
		return nil, fmt.Errorf("starting the fake endpoint: making certificates: %w", err)
	}
	if !c.Certificate.known() {
		return nil, fmt.Errorf("starting the fake endpoint: there is no certificate %q", c.Certificate)
	}
	s.fallback = s.newFallback()
	s.know(c.Keys)
	if c.Fallback != nil && c.Fallback.OwnPort() {
		return nil, fmt.Errorf("starting the fake endpoint: the script %s is about connections and cannot be for addresses of no path", c.Fallback)
	}
	if s.door, err = s.openDoor(c.Addr, c.Certificate, nil); err != nil {
		return nil, fmt.Errorf("starting the fake endpoint: %w", err)
	}
	return s, nil
}

// newFallback is the path of requests to no path's address.
func (s *Server) newFallback() *Path {
	script, _ := NewScript(Step{Kind: KindStatus, Status: 404, Body: "no path of the fake endpoint has this address\n"})
	if s.config.Fallback != nil {
		script = *s.config.Fallback
	}
	return s.newPath("", script, newVerifier(s.scheme, s.config.Keys))
}

// Close stops listening, closes every connection, and waits for what serves
// them. Paths can be read from afterwards. Closing twice is no error.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		<-s.done
		s.conns.Wait()
		return nil
	}
	s.closed = true
	doors := s.doors
	open := make([]*conn, 0, len(s.open))
	for c := range s.open {
		open = append(open, c)
	}
	s.mu.Unlock()
	close(s.done)
	var errs []error
	for _, d := range doors {
		errs = append(errs, d.close())
	}
	for _, c := range open {
		c.abort()
	}
	s.conns.Wait()
	return errors.Join(errs...)
}

// URL is the beginning of the URLs of all paths that share the server's port:
// scheme, host and port.
func (s *Server) URL() string { return s.door.base() }

// Fallback is the path of requests to no path's address.
func (s *Server) Fallback() *Path { return s.fallback }

// Path makes a path: its URL is the server's with the name behind it. The name
// may hold slashes; it is the path of a URL as it stands on the wire, without
// the first slash. The keys check the signatures of its requests, by the
// profile's scheme; without one nothing is checked.
//
// A name that is taken gets a new path: the one before receives no more
// requests. A script that has steps about connections gets the path a port of
// its own; if that fails, [Path.Err] says so.
func (s *Server) Path(name string, script Script, keys ...signature.Key) *Path {
	return s.PathBy(s.scheme, name, script, keys...)
}

// PathBy is Path with another scheme than the server's profile's.
func (s *Server) PathBy(scheme signature.Scheme, name string, script Script, keys ...signature.Key) *Path {
	p := s.newPath(strings.TrimPrefix(name, "/"), script, newVerifier(scheme, keys))
	if problem := reserved(p.name); problem != "" {
		p.err = fmt.Errorf("making the path %q: %s", name, problem)
		return p
	}
	if script.OwnPort() {
		certificate := s.config.Certificate
		if script.usesTLS() {
			certificate = Good
		}
		host, _, _ := net.SplitHostPort(s.door.address)
		if p.door, p.err = s.openDoor(net.JoinHostPort(host, "0"), certificate, p); p.err != nil {
			p.err = fmt.Errorf("making the path %q: %w", name, p.err)
			return p
		}
	}
	s.mu.Lock()
	replaced := s.paths[p.name]
	switch {
	case s.closed:
		p.err = fmt.Errorf("making the path %q: %w", name, ErrClosed)
	case replaced == nil && s.count >= s.limits.Paths:
		p.err = fmt.Errorf("making the path %q: there are %d paths already, see Limits.Paths", name, s.count)
	default:
		if replaced == nil {
			s.count++
		}
		s.paths[p.name] = p
		s.know(keys)
	}
	s.mu.Unlock()
	s.retire(p, replaced)
	return p
}

// retire closes the port of a path that was replaced, or never came to be, and
// begins the first step of the new one, which may be an outage.
func (s *Server) retire(p, replaced *Path) {
	if replaced != nil && replaced.door != nil {
		_ = replaced.door.close()
	}
	if p.door == nil {
		return
	}
	if p.err != nil {
		_ = p.door.close()
		return
	}
	if err := p.door.settle(); err != nil {
		s.mu.Lock()
		p.err = fmt.Errorf("making the path %q: %w", p.name, err)
		s.mu.Unlock()
	}
}

// reserved tells what is wrong with a path's name.
func reserved(name string) string {
	for _, prefix := range []string{scriptPrefix[1:], trapPrefix[1:]} {
		if strings.HasPrefix(name, prefix) {
			return "addresses that begin with /" + prefix + " have a meaning of their own"
		}
	}
	if name == "" {
		return "it has no name; what is sent to no path's address comes to the server's Fallback"
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || c == '?' || c == '#' {
			return fmt.Sprintf("its name holds %q, which stands in no URL's path", c)
		}
	}
	return ""
}

// Find is the path of a name, as in [Server.Path], or nil. The empty name is
// the Fallback's; "trap/NAME" is the trap of NAME.
func (s *Server) Find(name string) *Path {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" {
		return s.fallback
	}
	if of, ok := strings.CutPrefix("/"+name, trapPrefix); ok {
		if p := s.find(of); p != nil {
			return p.trap
		}
		return nil
	}
	return s.paths[name]
}

// find is the path called name, or the nearest one above it. s.mu is held.
func (s *Server) find(name string) *Path {
	for {
		if p := s.paths[name]; p != nil {
			return p
		}
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return nil
		}
		name = name[:i]
	}
}

// Paths lists all paths but the Fallback and the traps.
func (s *Server) Paths() []*Path {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*Path, 0, len(s.paths))
	for _, p := range s.paths {
		out = append(out, p)
	}
	return out
}

// Held is how many requests a script holds on purpose (slow, hang, drip, an
// endless body, a peer that reads no further), and when the earliest of what it
// waits for is due on the server's clock: the end of a wait, of an outage. next
// is zero where nothing is due. A request counts until its answer goes on: when
// next is not after now, something is about to happen.
func (s *Server) Held() (n int, next time.Time) {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	earlier := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, at := range s.held {
		earlier(at)
	}
	for _, at := range s.due {
		earlier(at)
	}
	return len(s.held), next
}

// HeldChanged is closed when what [Server.Held] tells changes next. Take it
// before looking at Held, so that no change is missed.
func (s *Server) HeldChanged() <-chan struct{} {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// CA is the certificate of the authority that signs the good, the expired and
// the wrong-host certificates: who trusts it accepts the good one alone.
func (s *Server) CA() *x509.Certificate { return s.certs.root }

// CAPEM is CA in PEM, for a file that senders are pointed to.
func (s *Server) CAPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certs.root.Raw})
}

// ClientTLS is a configuration for clients that trusts CA alone.
func (s *Server) ClientTLS() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(s.certs.root)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// reserve takes n bytes of what bodies may use together, or tells that there is
// no room.
func (s *Server) reserve(n int64) bool {
	if s.inFlight.Add(n) > s.limits.InFlight {
		s.inFlight.Add(-n)
		return false
	}
	return true
}

// dateLine is the value of a Date header and the second that it is for.
type dateLine struct {
	unix int64
	text string
}

// dateText is now as a Date header says it (RFC 9110 §5.6.7).
func (s *Server) dateText(now time.Time) string {
	unix := now.Unix()
	if d := s.date.Load(); d != nil && d.unix == unix {
		return d.text
	}
	d := &dateLine{unix, httpDate(now)}
	s.date.Store(d)
	return d.text
}

func httpDate(t time.Time) string { return t.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT") }

// makeFiller is what large bodies consist of: lines that say what they are.
func makeFiller() []byte {
	const line = "This body is filler from the fake endpoint of whconform. -------\n"
	filler := strings.Repeat(line, pieceSize/len(line)+1)
	return []byte(filler[:pieceSize])
}

// makeChunk frames a piece as a chunk.
func makeChunk(piece []byte) []byte {
	chunk := fmt.Appendf(nil, "%x\r\n", len(piece))
	return append(append(chunk, piece...), "\r\n"...)
}

// kept is the response as a record shows it.
func kept(status int, headers []wire.Header, body string) *wire.Response {
	r := &wire.Response{Status: status, Headers: headers}
	if body != "" {
		r.Body = []byte(body)
	}
	return r
}
