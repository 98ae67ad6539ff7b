package sender

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// patience is how long a test waits for what should come at once.
const patience = 20 * time.Second

// beginning of these tests on the virtual clock.
func startTime() time.Time { return time.Date(2026, 1, 2, 15, 4, 5, 6, time.UTC) }

// call is a request that an endpoint got.
type call struct {
	path, id, key string // key: label of the secret that verified
	tokens        string // the signature header
	at            time.Time
	body          string
	headers       http.Header
}

// hang is a step that never answers.
const hangs = -1

// peer plays the endpoints: each path answers by its script, whose last step
// repeats.
type peer struct {
	t      testing.TB
	scheme signature.Scheme
	now    func() time.Time
	server *httptest.Server

	mu      sync.Mutex
	scripts map[string][]int
	keys    map[string][]signature.Key
	headers map[string]http.Header // of the answer
	calls   []call
	held    int
	doing   map[string]bool // message ids of requests under way

	killed bool          // senders die, so requests may overlap with what is left of others
	slow   time.Duration // how long an answer takes, in real time
}

func newPeer(t testing.TB, scheme signature.Scheme, now func() time.Time) *peer {
	p := &peer{t: t, scheme: scheme, now: now, scripts: map[string][]int{}, keys: map[string][]signature.Key{}, headers: map[string]http.Header{}, doing: map[string]bool{}}
	p.server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender went away
	}
	status, done := p.take(r, string(body))
	defer done()
	if status == hangs {
		p.mu.Lock()
		p.held++
		p.mu.Unlock()
		<-r.Context().Done()
		p.mu.Lock()
		p.held--
		p.mu.Unlock()
		return
	}
	if p.slow > 0 {
		<-time.After(p.slow)
	}
	p.mu.Lock()
	for name, values := range p.headers[r.URL.Path] {
		w.Header()[name] = values
	}
	p.mu.Unlock()
	w.WriteHeader(status)
	if status >= 300 {
		fmt.Fprintf(w, "status %d because of the script", status)
	}
}

// take notes a request and gives the next step of its script.
func (p *peer) take(r *http.Request, body string) (status int, done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := call{path: r.URL.Path, at: p.now(), body: body, headers: r.Header}
	raw := &wire.Request{Method: r.Method, Target: r.URL.RequestURI(), Body: []byte(body), Size: int64(len(body))}
	for name, values := range r.Header {
		for _, v := range values {
			raw.Headers = append(raw.Headers, wire.Header{Name: name, Value: v})
		}
	}
	if key, err := p.scheme.Verify(raw, p.now(), p.keys[r.URL.Path]...); err != nil {
		p.t.Errorf("%s: a request does not verify: %v", r.URL.Path, err)
	} else {
		c.key = key.Label
	}
	c.id, _ = p.scheme.ID(raw)
	c.tokens = r.Header.Get(p.scheme.Spec().Signature.Name)
	if p.doing[c.id] && !p.killed {
		p.t.Errorf("%s: two attempts of %s at one time", r.URL.Path, c.id)
	}
	p.doing[c.id] = true
	p.calls = append(p.calls, c)
	status = http.StatusOK
	if script := p.scripts[r.URL.Path]; len(script) > 0 {
		status = script[0]
		if len(script) > 1 {
			p.scripts[r.URL.Path] = script[1:]
		}
	}
	return status, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.doing, c.id)
	}
}

// script sets what a path answers.
func (p *peer) script(path string, steps ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripts[path] = steps
}

// learn adds a secret to a path.
func (p *peer) learn(path, label, secret string) {
	p.t.Helper()
	key, err := p.scheme.Key(label, secret)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[path] = append(p.keys[path], key)
}

// at are the requests that a path got.
func (p *peer) at(path string) (calls []call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if c.path == path {
			calls = append(calls, c)
		}
	}
	return calls
}

func (p *peer) holding() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// stage is a sender on a virtual clock, with a peer for its endpoints.
type stage struct {
	*Sender
	t    testing.TB
	mock *clock.Mock
	peer *peer
	path string // of the outbox
	stop func()
}

// newStage opens a sender in a new outbox.
func newStage(t testing.TB, name string, change ...func(*Options)) *stage {
	t.Helper()
	p := contract(t, name)
	scheme, err := p.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	mock := clock.NewMock()
	mock.Set(startTime())
	g := &stage{t: t, mock: mock, peer: newPeer(t, scheme, mock.Now), path: filepath.Join(t.TempDir(), "sender.db")}
	g.open(name, change...)
	return g
}

// open opens the outbox, again after a close.
func (g *stage) open(name string, change ...func(*Options)) {
	g.t.Helper()
	o := Options{Profile: contract(g.t, name), Clock: g.mock, Guard: newGuard(g.t, "127.0.0.1"), Poll: -1, Random: random(7)}
	for _, c := range change {
		c(&o)
	}
	s, err := Open(context.Background(), g.path, o)
	if err != nil {
		g.t.Fatal(err)
	}
	g.Sender = s
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	if err := s.start(); err != nil {
		g.t.Fatal(err)
	}
	go func() { ended <- s.loop(ctx) }()
	var once sync.Once
	g.stop = func() {
		once.Do(func() {
			cancel()
			if err := errors.Join(<-ended, s.Close()); err != nil {
				g.t.Error(err)
			}
		})
	}
	g.t.Cleanup(g.stop)
}

// endpoint creates an endpoint at a path of the peer, with a script.
func (g *stage) endpoint(path string, types []string, steps ...int) Endpoint {
	g.t.Helper()
	g.peer.script(path, steps...)
	e, secret, err := g.CreateEndpoint(context.Background(), EndpointSpec{URL: g.peer.server.URL + path, EventTypes: types})
	if err != nil {
		g.t.Fatal(err)
	}
	g.peer.learn(path, "first", secret)
	return e
}

// publish publishes an event that one endpoint gets.
func (g *stage) publish(eventType string) (id string) {
	g.t.Helper()
	ids, err := g.Publish(context.Background(), Event{Type: eventType, Data: []byte(`{"n":1}`)})
	if err != nil || len(ids) != 1 {
		g.t.Fatalf("published %v, %v; want one message", ids, err)
	}
	return ids[0]
}

func (g *stage) state() State {
	g.t.Helper()
	state, err := g.State(context.Background())
	if err != nil {
		g.t.Fatal(err)
	}
	return state
}

// settle waits until nothing goes on but what the peer holds on purpose.
func (g *stage) settle() State {
	g.t.Helper()
	var state State
	await(g.t, "all is quiet", func() bool {
		state = g.state()
		return state.InFlight == g.peer.holding() && (state.Next.IsZero() || state.Next.After(state.Now))
	})
	return state
}

// pass lets time go by, from one instant at which something happens to the next.
func (g *stage) passTime(d time.Duration) {
	g.t.Helper()
	until := g.mock.Now().Add(d)
	for {
		state := g.settle()
		if state.Next.IsZero() || state.Next.After(until) {
			break
		}
		g.mock.Set(state.Next)
	}
	g.mock.Set(until)
	g.settle()
}

// message reads a message.
func (g *stage) message(id string) Message {
	g.t.Helper()
	m, err := g.Message(context.Background(), id)
	if err != nil {
		g.t.Fatal(err)
	}
	return m
}

// log reads the delivery log of a message.
func (g *stage) lines(id string) []Attempt {
	g.t.Helper()
	lines, err := g.Attempts(context.Background(), id)
	if err != nil {
		g.t.Fatal(err)
	}
	return lines
}

// told are the kinds of notifications that an owner got.
func (g *stage) told(endpoint string) (kinds []string) {
	g.t.Helper()
	all, err := g.Notifications(context.Background(), endpoint)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, n := range all {
		kinds = append(kinds, n.Kind)
	}
	return kinds
}

// gaps are the times between the requests of a path.
func gaps(calls []call) (all []time.Duration) {
	for i := 1; i < len(calls); i++ {
		all = append(all, calls[i].at.Sub(calls[i-1].at))
	}
	return all
}

// same tells whether all requests had one id and one body.
func same(calls []call) bool {
	return !slices.ContainsFunc(calls, func(c call) bool { return c.id != calls[0].id || c.body != calls[0].body })
}

// await waits until ready says yes.
func await(t testing.TB, what string, ready func() bool) {
	t.Helper()
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		if ready() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waiting until %s: it takes too long", what)
		}
	}
}
