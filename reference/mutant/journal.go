package mutant

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/whconform/whconform/reference/receiver"
)

// journal is what a mutant keeps: the ids that it took in, and the effects that
// it had, each a line in a file of its own. It is the least that survives a kill
// of the process, so that a mutant's fault shows and nothing else does. With no
// folder it lives in memory.
//
// An effect is its own mark that it is done: one line, written once. What was
// taken in and has no effect is done at the start. The rest is in memory always:
// no mutant is killed to see what became of it.
type journal struct {
	now func() time.Time

	mu      sync.Mutex
	taken   map[string]time.Time // when
	effects map[string]int
	marked  map[string]bool
	inbox   *os.File // nil in memory, like the others
	ledger  *os.File
	marks   *os.File // only for a mutant that keeps effect and mark apart

	payments map[string]payment // by id
	about    map[string]string  // the payment of an event
	failing  map[string]bool    // events whose work is to fail once
	failed   map[string]bool    // events that stand on the list of failed ones
}

func openJournal(dir string, now func() time.Time) (*journal, error) {
	j := &journal{
		now: now, taken: map[string]time.Time{}, effects: map[string]int{}, marked: map[string]bool{},
		payments: map[string]payment{}, about: map[string]string{}, failing: map[string]bool{}, failed: map[string]bool{},
	}
	if dir == "" {
		return j, nil
	}
	opened := now()
	var err error
	if j.inbox, err = openLines(filepath.Join(dir, "inbox"), func(id string) { j.taken[id] = opened }); err == nil {
		j.ledger, err = openLines(filepath.Join(dir, "effects"), func(id string) { j.effects[id]++ })
	}
	if err == nil {
		j.marks, err = openLines(filepath.Join(dir, "marks"), func(id string) { j.marked[id] = true })
	}
	if err != nil {
		return nil, fmt.Errorf("opening the mutant's journal: %w", err)
	}
	return j, nil
}

// openLines reads a file's lines and leaves it open for more. A line without an
// end was being written when the process was killed.
func openLines(name string, each func(string)) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return f, nil
		}
		each(strings.TrimSuffix(line, "\n"))
	}
}

// take stores an id and tells whether it is new.
func (j *journal) take(id string) (bool, error) { return j.takeFor(id, forGood) }

// forGood is longer than any run lasts, also where it moves the clock.
const forGood = 100 * 365 * 24 * time.Hour

// takeFor is take for a receiver that remembers ids for so long.
func (j *journal) takeFor(id string, remember time.Duration) (bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	if at, known := j.taken[id]; known && now.Sub(at) <= remember {
		return false, nil
	}
	j.taken[id] = now
	return true, appendLine(j.inbox, id)
}

// knows tells whether an id was stored.
func (j *journal) knows(id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, known := j.taken[id]
	return known
}

// drop forgets an id.
func (j *journal) drop(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.taken, id)
}

// effect is the business: it happens once for each call.
func (j *journal) effect(id string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.effects[id]++
	return appendLine(j.ledger, id)
}

// pending lists what was taken in and has no effect.
func (j *journal) pending() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var ids []string
	for id := range j.taken {
		if j.effects[id] == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// mark notes that an event is done, beside its effect; unmarked lists what is
// taken in and not noted so.
func (j *journal) mark(id string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.marked[id] = true
	return appendLine(j.marks, id)
}

func (j *journal) unmarked() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var ids []string
	for id := range j.taken {
		if !j.marked[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

func appendLine(f *os.File, id string) error {
	if f == nil {
		return nil
	}
	_, err := f.WriteString(id + "\n") // one write: a kill leaves a line whole or without its end
	return err
}

// observed tells at /_observe/events/{id} how often an event had its effect, and
// leaves everything else to next.
func (j *journal) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		id, asked := strings.CutPrefix(req.URL.Path, "/_observe/events/")
		if !asked || req.Method != http.MethodGet {
			next.ServeHTTP(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(j.became(id))
	})
}

// became is how often an event had its effect, and whether it is listed as
// failed.
func (j *journal) became(id string) map[string]any {
	j.mu.Lock()
	defer j.mu.Unlock()
	return map[string]any{"processed": j.effects[id], "failed": j.failed[id]}
}

// adding is a store by a function. It may be called by several deliveries at one
// time.
type adding func(m receiver.Message) (added bool, err error)

// Add implements receiver.Store.
func (f adding) Add(_ context.Context, m receiver.Message) (bool, error) { return f(m) }

// durable is the right store: it takes in what is new, then does its work, and
// makes up at the start for what a crash prevented.
func durable(c Config) (receiver.Store, error) {
	var errs []error
	if c.journal.inbox != nil { // memory has no crash behind it
		for _, id := range c.journal.pending() {
			errs = append(errs, c.journal.effect(id))
		}
	}
	return business{}.store(c), errors.Join(errs...)
}

// storing puts a store of the mutant's own in place of the right one.
func storing(store func(c Config) receiver.Store) maker {
	return func(c Config) (http.Handler, error) {
		return reference(func(r *receiver.Config) { r.Store = store(c) })(c)
	}
}
