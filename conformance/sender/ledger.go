package sender

import (
	"slices"
	"sync"

	"github.com/whconform/whconform/reference/signature"
)

// ledger knows which scenario published which message. A sender that does not
// filter by event type sends a scenario's message to the endpoints of all
// others; those drop it, so that only the row about filtering speaks of it.
type ledger struct {
	mu    sync.Mutex
	owner map[string]string // message id -> scenario
	made  int               // endpoints
	keys  []signature.Key
}

func newLedger() *ledger { return &ledger{owner: map[string]string{}} }

// note says that a scenario published messages.
func (l *ledger) note(scenario string, ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		l.owner[id] = scenario
	}
}

// foreign tells whether another scenario published the message. What nobody is
// known to have published is nobody's: the ids that a sender returns may be
// others than those it sends.
func (l *ledger) foreign(scenario, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	owner, known := l.owner[id]
	return known && owner != scenario
}

// own tells whether a scenario published the message.
func (l *ledger) own(scenario, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owner[id] == scenario && id != ""
}

// number counts endpoints over the run.
func (l *ledger) number() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made++
	return l.made
}

// know remembers a secret.
func (l *ledger) know(k signature.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = append(l.keys, k)
}

func (l *ledger) secrets() []signature.Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.keys)
}
