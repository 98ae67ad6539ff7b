package receiver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	fp "github.com/whconform/whconform/fakeprovider"
)

// shop is a receiver with all hooks, right where nothing is set: what the rows
// need that look behind the answer.
type shop struct {
	drive.Bare
	server *httptest.Server
	lacks  string // a capability that it does not offer
	api    *fp.API

	hookErr    error                                       // of every hook
	observeErr error                                       // of the observer
	answer     func(id string, known bool) int             // 0: 200
	work       func(s *shop, id string, e shopEvent)       // nil: right
	variant    func(*shop) (drive.Receiver, error)         // nil: another one like it
	second     func(*shop) (fp.Target, error)              // nil: itself
	forgets    time.Duration                               // how long ids are known; 0: for good
	stuck      bool                                        // its signature check does not follow the clock
	word       func(state string) string                   // its own word for a state
	count      func(id string, n int) (drive.Count, error) // what the observer tells

	mu      sync.Mutex
	ahead   time.Duration
	taken   map[string]time.Time
	done    map[string]int
	failing map[string]bool
	states  map[string]string
}

type shopEvent struct {
	Type string
	Data struct {
		ID                string
		Amount            int64
		MerchantReference string `json:"merchant_reference"`
	}
}

// newShop serves a shop until the test ends.
func newShop(t *testing.T, change func(*shop)) *shop {
	t.Helper()
	s := &shop{taken: map[string]time.Time{}, done: map[string]int{}, failing: map[string]bool{}, states: map[string]string{}, api: fp.NewAPI(clock.New())}
	if change != nil {
		change(s)
	}
	if s.variant == nil {
		s.variant = func(*shop) (drive.Receiver, error) { return newShop(t, change), nil }
	}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	s.mu.Lock()
	defer s.mu.Unlock()
	ahead := s.ahead
	if s.stuck {
		ahead = 0
	}
	if err != nil || !(tiny{clock: ahead}).verifies(r.Header, body) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	id, now := r.Header.Get("webhook-id"), time.Now().Add(s.ahead)
	at, known := s.taken[id]
	known = known && (s.forgets == 0 || now.Sub(at) <= s.forgets)
	if s.answer != nil {
		if status := s.answer(id, known); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	if known {
		return
	}
	s.taken[id] = now
	var e shopEvent
	if json.Unmarshal(body, &e) != nil {
		return
	}
	if s.failing[id] {
		delete(s.failing, id)
		delete(s.taken, id)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if s.work != nil {
		s.work(s, id, e)
		return
	}
	s.do(id, e)
}

// do is the right work. Whoever calls it holds mu.
func (s *shop) do(id string, e shopEvent) {
	s.done[id]++
	state, ok := strings.CutPrefix(e.Type, "payment.")
	if !ok {
		return
	}
	if is, asked := s.api.Payment(e.Data.ID); asked && (is.Amount != e.Data.Amount || is.Reference != e.Data.MerchantReference) {
		return
	}
	if s.states[e.Data.ID] != "refunded" {
		s.states[e.Data.ID] = state
	}
}

func (s *shop) Has(capability string) bool {
	return capability != s.lacks && capability != drive.Managed
}

func (s *shop) Target(int) fp.Target { return fp.Target{URL: s.server.URL} }

func (s *shop) Close(context.Context) error { return nil }

func (s *shop) Provider() *fp.API { return s.api }

func (s *shop) Variant(context.Context, drive.Secrets) (drive.Receiver, error) { return s.variant(s) }

func (s *shop) Second(context.Context) (fp.Target, error) {
	if s.second != nil {
		return s.second(s)
	}
	return s.Target(0), nil
}

func (s *shop) Processed(_ context.Context, id string) (drive.Count, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count != nil {
		return s.count(id, s.done[id])
	}
	return drive.Count{N: s.done[id]}, s.observeErr
}

func (s *shop) FailOnce(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing[id] = true
	return s.hookErr
}

func (s *shop) State(_ context.Context, _, reference string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.states[reference]
	if s.word != nil {
		state = s.word(state)
	}
	return state, s.hookErr
}

func (s *shop) AdvanceClock(_ context.Context, to time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = time.Until(to)
	return s.hookErr
}

// ruledOn records the scenario of a requirement against a shop and rules on it.
func ruledOn(t *testing.T, id string, s *shop, change func(*Env)) evidence.Ruling {
	t.Helper()
	e := envOf(t, s.server.URL, amply)
	e.Subject = s
	e.Bounds.Process, e.Bounds.Retry, e.Bounds.Settle = 400*time.Millisecond, 500*time.Millisecond, 40*time.Millisecond
	if change != nil {
		change(e)
	}
	transcripts := suite.Record(t.Context(), suite.Config{}, Scenarios(e, func(wanted string) bool { return wanted == id }))
	row, ok := catalogue.Find(id)
	if !ok {
		t.Fatalf("the catalogue has no row %s", id)
	}
	return suite.Judge([]suite.Question{{Requirement: row, Level: row.LevelIn("")}}, Checks(), transcripts)[0]
}

// ruling is what a shop is to be told.
type ruling struct {
	name    string
	change  func(*shop)
	env     func(*Env)
	outcome evidence.Outcome
	says    string // in a finding, in the detail or in the reason of the skip
}

func (want ruling) check(t *testing.T, id string) {
	t.Run(want.name, func(t *testing.T) {
		t.Parallel() // it waits, mostly
		got := ruledOn(t, id, newShop(t, want.change), want.env)
		text := got.Detail + got.Skip.Detail
		for _, f := range got.Findings {
			text += f.Sent + ": " + f.Got + ". " + f.Cause + "\n"
		}
		if got.Outcome != want.outcome || !strings.Contains(text, want.says) || want.outcome == evidence.Pass && text != "" {
			t.Errorf("%s: %s\nwant %s: %s", got.Outcome, text, want.outcome, want.says)
		}
	})
}

var errHook = errors.New("the adapter at http://127.0.0.1/control answered nonsense")
