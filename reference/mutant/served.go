package mutant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/whconform/whconform/reference/receiver"
)

// Served is a mutant that is ready to serve, with what a test can ask of it.
type Served struct {
	// Server has the mutant's handler: the reference's server, with the mutant's
	// own changes. The caller wraps the listener and the TLS configuration. At
	// /_observe/events/{id} it tells how often an event had its effect.
	Server *http.Server
	// Methods are those of a receiver's adapter, by their names in the protocol;
	// see receiver.Methods.
	Methods map[string]receiver.Method

	mutant Mutant
	config Config
}

// Serve makes the mutant's handler and the server around it.
func (m Mutant) Serve(c Config) (*Served, error) {
	movable := receiver.NewMovableClock(c.Clock)
	c.Clock = movable
	var err error
	if c.journal, err = openJournal(c.State, movable.Now); err != nil {
		return nil, fmt.Errorf("making the mutant %s: %w", m.Name, err)
	}
	return m.serve(c, movable)
}

// Second makes a second instance, which shares with the first what is stored,
// and nothing that it has in memory only.
func (s *Served) Second() (*Served, error) {
	return s.mutant.serve(s.config, nil)
}

func (m Mutant) serve(c Config, movable *receiver.MovableClock) (*Served, error) {
	h, err := m.New(c)
	if err != nil {
		return nil, fmt.Errorf("making the mutant %s: %w", m.Name, err)
	}
	server := receiver.HTTPServer(c.journal.observed(h))
	if m.Server != nil {
		m.Server(server)
	}
	return &Served{Server: server, Methods: c.journal.methods(movable), mutant: m, config: c}, nil
}

// methods are those of a receiver's adapter. Without a clock none is moved.
func (j *journal) methods(movable *receiver.MovableClock) map[string]receiver.Method {
	methods := map[string]receiver.Method{
		"receiver.processed": aboutEvent(func(id, _ string) any { return j.became(id) }),
		"receiver.state": aboutEvent(func(id, reference string) any {
			return map[string]string{"state": j.stateOf(id, reference)}
		}),
		"receiver.failOnce": aboutEvent(func(id, _ string) any { j.failOnce(id); return nil }),
	}
	if movable != nil {
		methods["clock.advance"] = func(_ context.Context, params json.RawMessage) (any, error) {
			var p struct{ To time.Time }
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, fmt.Errorf("reading the params: %w", err)
			}
			now, err := movable.Advance(p.To)
			return map[string]time.Time{"now": now}, err
		}
	}
	return methods
}

// aboutEvent is a method that is asked about an event.
func aboutEvent(f func(id, reference string) any) receiver.Method {
	return func(_ context.Context, params json.RawMessage) (any, error) {
		var p struct{ ID, Reference string }
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, fmt.Errorf("reading the params: %w", err)
		}
		if p.ID == "" {
			return nil, errors.New("reading the params: the id is missing")
		}
		return f(p.ID, p.Reference), nil
	}
}
