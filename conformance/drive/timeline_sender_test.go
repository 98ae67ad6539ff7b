package drive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
)

// ladder is the schedule of the sender in these tests: that of Standard
// Webhooks.
var ladder = []time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}

const (
	ladderTimeout = 15 * time.Second
	ladderLimit   = 2 // attempts in flight at one endpoint
)

// ladderSender is a small sender on a virtual clock: real HTTP, a queue, a
// schedule with jitter, a timeout, a limit for each endpoint. It remembers which
// delays it chose.
type ladderSender struct {
	bareSender
	untold bool // it does not tell what is under way
	lazy   bool // it begins nothing when its clock is moved
	mock   *clock.Mock
	client *http.Client
	ended  sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand
	queue  []*ladderMessage
	busy   map[string]int // attempts in flight, by URL
	flying int
	limits map[*ladderMessage]time.Time // when running attempts time out
	delays map[string][]time.Duration   // chosen, by URL
	fails  error                        // what Advance answers
}

type ladderMessage struct {
	id, url  string
	attempts int
	due      time.Time
	taken    bool
}

var errLadderTimeout = errors.New("the attempt took too long")

func newLadderSender(t *testing.T, now time.Time, seed uint64) *ladderSender {
	s := &ladderSender{
		mock:   clock.NewMock(),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		random: rand.New(rand.NewPCG(seed, 0)), busy: map[string]int{}, limits: map[*ladderMessage]time.Time{}, delays: map[string][]time.Duration{},
	}
	s.mock.Set(now)
	t.Cleanup(func() {
		s.mock.Add(ladderTimeout) // whatever hangs
		s.ended.Wait()
		s.client.CloseIdleConnections()
	})
	return s
}

func (*ladderSender) Has(capability string) bool { return capability == Clock }

func (s *ladderSender) CreateEndpoint(_ context.Context, spec EndpointSpec) (Endpoint, error) {
	return s.add(spec, "none"), nil
}

func (s *ladderSender) Publish(_ context.Context, e Event) ([]string, error) {
	var ids []string
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, to := range s.targets(e) {
		m := &ladderMessage{id: "msg_" + strconv.Itoa(s.random.Int()), url: to.spec.URL, due: s.mock.Now()}
		s.queue = append(s.queue, m)
		ids = append(ids, m.id)
	}
	s.claim()
	return ids, nil
}

// claim begins what is due. s.mu is held.
func (s *ladderSender) claim() {
	now := s.mock.Now()
	for _, m := range s.queue {
		if m.taken || m.due.After(now) || s.busy[m.url] >= ladderLimit {
			continue
		}
		m.taken = true
		s.busy[m.url]++
		s.flying++
		s.limits[m] = now.Add(ladderTimeout)
		ctx, cancel := context.WithCancelCause(context.Background())
		timer := s.mock.AfterFunc(ladderTimeout, func() { cancel(errLadderTimeout) })
		s.ended.Go(func() {
			ok := s.attempt(ctx, m)
			timer.Stop()
			cancel(nil)
			s.conclude(m, ok)
		})
	}
}

func (s *ladderSender) attempt(ctx context.Context, m *ladderMessage) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader([]byte("{}")))
	if err != nil {
		return false
	}
	r.GetBody = nil
	r.Header.Set("webhook-id", m.id)
	answer, err := s.client.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)); err != nil {
		return false
	}
	return answer.StatusCode/100 == 2
}

func (s *ladderSender) conclude(m *ladderMessage, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy[m.url]--
	s.flying--
	delete(s.limits, m)
	m.taken = false
	if m.attempts++; ok || m.attempts == len(ladder) {
		for i, o := range s.queue {
			if o == m {
				s.queue = append(s.queue[:i], s.queue[i+1:]...)
				break
			}
		}
	} else {
		d := ladder[m.attempts]
		d += time.Duration(s.random.Float64() * 0.1 * float64(d))
		s.delays[m.url] = append(s.delays[m.url], d)
		m.due = s.mock.Now().Add(d)
	}
	s.claim() // a slot is free
}

func (s *ladderSender) Advance(_ context.Context, to time.Time) (ClockState, error) {
	if to.After(s.mock.Now()) {
		s.mock.Set(to)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return ClockState{}, s.fails
	}
	if !s.lazy {
		s.claim()
	}
	if s.untold {
		return ClockState{Now: s.mock.Now()}, nil
	}
	state := ClockState{Now: s.mock.Now(), InFlight: s.flying, Told: true}
	earlier := func(at time.Time) {
		if state.Next.IsZero() || at.Before(state.Next) {
			state.Next = at
		}
	}
	for _, m := range s.queue {
		if !m.taken && s.busy[m.url] < ladderLimit {
			earlier(m.due)
		}
	}
	for _, at := range s.limits {
		earlier(at)
	}
	return state, nil
}

// chosen are the delays that it chose for messages to a URL.
func (s *ladderSender) chosen(url string) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Duration(nil), s.delays[url]...)
}
