package sender

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/profile"
	"pgregory.net/rapid"
)

const (
	// modelRuns is how often the model is run; as often as rapid asks for where
	// the variable is set.
	modelRuns     = 5
	modelVariable = "WHCONFORM_MODEL"
)

// scripted is a transport without a network, which the model watches. What each
// endpoint answers is set by the test.
type scripted struct {
	now func() time.Time

	mu      sync.Mutex
	answers map[string]int // by URL
	doing   map[string]bool
	made    map[string][]time.Time // attempts by message
	bodies  map[string]string
	won     map[string]bool // messages that were answered 2xx
	faults  []string
}

func (s *scripted) Attempt(_ context.Context, r Request) Result {
	var id string
	for _, h := range r.Headers {
		if h.Name == "webhook-id" {
			id = h.Value
		}
	}
	s.mu.Lock()
	if s.doing[id] {
		s.faults = append(s.faults, id+": two attempts at one time")
	}
	if body, seen := s.bodies[id]; seen && body != string(r.Body) {
		s.faults = append(s.faults, id+": other bytes")
	}
	s.doing[id], s.bodies[id] = true, string(r.Body)
	s.made[id] = append(s.made[id], s.now())
	status := s.answers[r.URL]
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.doing, id)
	}()
	if status == 200 {
		s.mu.Lock()
		s.won[id] = true
		s.mu.Unlock()
	}
	return Result{Status: status}
}

// model drives a sender by random steps and keeps what it knows for certain.
type model struct {
	t    *rapid.T
	s    *Sender
	path string
	mock *clock.Mock
	net  *scripted
	stop func()

	endpoints []Endpoint
	state     map[string]string // of the endpoints, as the owner set it
	messages  map[string]string // their endpoints
	resent    map[string]int
}

func (m *model) open() {
	p, err := profile.Load("standard-webhooks")
	if err != nil {
		m.t.Fatal(err)
	}
	m.s, err = Open(context.Background(), m.path, Options{
		Profile: p, Clock: m.mock, Transport: m.net, Poll: -1, Policy: Policy{AtOnce: 6, DisableAfter: -1},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	if err := m.s.start(); err != nil {
		m.t.Fatal(err)
	}
	s := m.s
	go func() { ended <- s.loop(ctx) }()
	m.stop = func() {
		cancel()
		if err := errors.Join(<-ended, s.Close()); err != nil {
			m.t.Error(err)
		}
	}
}

// quiet waits until nothing goes on, and tells what is next.
func (m *model) quiet() time.Time {
	for end := time.Now().Add(patience); ; {
		state, err := m.s.State(context.Background())
		if err != nil {
			m.t.Fatal(err)
		}
		if state.InFlight == 0 && (state.Next.IsZero() || state.Next.After(state.Now)) {
			return state.Next
		}
		if time.Now().After(end) {
			m.t.Fatalf("it does not come to rest: %+v", state)
		}
	}
}

func (m *model) passTime(d time.Duration) {
	until := m.mock.Now().Add(d)
	for next := m.quiet(); !next.IsZero() && !next.After(until); next = m.quiet() {
		m.mock.Set(next)
	}
	m.mock.Set(until)
	m.quiet()
}

func (m *model) pick() Endpoint { return rapid.SampledFrom(m.endpoints).Draw(m.t, "endpoint") }

// must fails the test for an error that is not one that may be.
func (m *model) must(err error, mayBe ...error) {
	if err != nil && !slices.ContainsFunc(mayBe, func(e error) bool { return errors.Is(err, e) }) {
		m.t.Fatal(err)
	}
}

// check holds what the sender says against what the network saw.
func (m *model) check() {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	for _, fault := range m.net.faults {
		m.t.Error(fault)
	}
	for id := range m.messages {
		got, err := m.s.Message(context.Background(), id)
		if err != nil {
			m.t.Fatal(err)
		}
		if (got.Status == MessageDelivered) != m.net.won[id] {
			m.t.Errorf("%s is %s and was answered 2xx: %v", id, got.Status, m.net.won[id])
		}
		if most := len(m.s.policy.Schedule) + m.resent[id]; len(m.net.made[id]) > most || got.Attempts > len(m.s.policy.Schedule) {
			m.t.Errorf("%s: %d attempts, %d by the schedule, %d by hand at most", id, len(m.net.made[id]), got.Attempts, m.resent[id])
		}
	}
}

// TestWhateverIsDoneEveryMessageComesToItsEnd does random things to a sender and
// then lets all endpoints work: no message may be lost, sent twice at one time,
// tried too often, or changed.
func TestWhateverIsDoneEveryMessageComesToItsEnd(t *testing.T) {
	dir, run, failed := t.TempDir(), 0, false
	rapid.Check(t, func(t *rapid.T) {
		// A run takes a second of real commits, and rapid asks for a hundred.
		if run++; run > modelRuns && !failed && os.Getenv(modelVariable) == "" {
			return
		}
		failed = true // unless it comes to its end; a failure is then made small
		mock := clock.NewMock()
		mock.Set(startTime())
		m := &model{
			t: t, mock: mock, path: fmt.Sprintf("%s/%d.db", dir, run), state: map[string]string{}, messages: map[string]string{}, resent: map[string]int{},
			net: &scripted{now: mock.Now, answers: map[string]int{}, doing: map[string]bool{}, made: map[string][]time.Time{}, bodies: map[string]string{}, won: map[string]bool{}},
		}
		m.open()
		defer func() {
			m.stop()
			_ = os.Remove(m.path)
		}()
		for i := range 3 {
			url := fmt.Sprintf("https://e%d.example.com/", i)
			e, _, err := m.s.CreateEndpoint(context.Background(), EndpointSpec{URL: url, EventTypes: []string{fmt.Sprintf("t%d", i), "all"}})
			m.must(err)
			m.net.answers[url] = 200
			m.endpoints, m.state[e.ID] = append(m.endpoints, e), EndpointEnabled
		}
		t.Repeat(m.steps())
		m.end()
		failed = t.Failed()
	})
}

func (m *model) steps() map[string]func(*rapid.T) {
	ctx := context.Background()
	return map[string]func(*rapid.T){
		"publish": func(t *rapid.T) {
			kind := rapid.SampledFrom([]string{"t0", "t1", "t2", "all"}).Draw(t, "type")
			ids, err := m.s.Publish(ctx, Event{Type: kind, Data: []byte(`1`)})
			m.must(err)
			for _, id := range ids {
				got, err := m.s.Message(ctx, id)
				m.must(err)
				m.messages[id] = got.EndpointID
			}
		},
		"answer": func(t *rapid.T) {
			status := rapid.SampledFrom([]int{200, 301, 404, 500, 0}).Draw(t, "status")
			m.net.mu.Lock()
			defer m.net.mu.Unlock()
			m.net.answers[m.pick().URL] = status
		},
		"wait": func(t *rapid.T) {
			m.passTime(rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second, 10 * time.Minute, 20 * time.Hour}).Draw(t, "for"))
		},
		"resend": func(t *rapid.T) {
			if len(m.messages) == 0 {
				t.Skip()
			}
			id := rapid.SampledFrom(slices.Sorted(maps.Keys(m.messages))).Draw(t, "message")
			m.must(m.s.Resend(ctx, id), ErrConflict)
			m.resent[id]++
		},
		"disable": func(t *rapid.T) {
			e := m.pick()
			m.quiet()
			m.must(m.s.DisableEndpoint(ctx, e.ID))
			m.state[e.ID] = EndpointDisabled
		},
		"enable": func(t *rapid.T) {
			e := m.pick()
			m.must(m.s.EnableEndpoint(ctx, e.ID))
			m.state[e.ID] = EndpointEnabled
		},
		"rotate":  func(t *rapid.T) { _, err := m.s.RotateSecret(ctx, m.pick().ID); m.must(err) },
		"restart": func(t *rapid.T) { m.stop(); m.open() },
		"clock back": func(t *rapid.T) {
			m.quiet()
			m.mock.Set(m.mock.Now().Add(-rapid.SampledFrom([]time.Duration{time.Second, time.Hour}).Draw(t, "by")))
		},
		"": func(t *rapid.T) {
			m.quiet()
			m.check()
		},
	}
}

// end lets every endpoint work, and time go by.
func (m *model) end() {
	m.net.mu.Lock()
	for url := range m.net.answers {
		m.net.answers[url] = 200
	}
	m.net.mu.Unlock()
	for _, e := range m.endpoints {
		m.must(m.s.EnableEndpoint(context.Background(), e.ID))
	}
	m.passTime(40 * time.Hour)
	m.check()
	for id := range m.messages {
		if got, err := m.s.Message(context.Background(), id); err != nil || got.Status == MessagePending {
			m.t.Errorf("%s is %s in the end, %v", id, got.Status, err)
		}
	}
}
