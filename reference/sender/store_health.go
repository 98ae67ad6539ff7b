package sender

import (
	"log/slog"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// What a health tells when it begins to fail and when it ends.
const (
	cannotStore  = "the outbox cannot store: publishing is an error until it can, and nothing that was published is touched"
	storesAgain  = "the outbox stores again"
	cannotRead   = "the outbox cannot be read: messages wait, and none is lost"
	readsAgain   = "the outbox can be read again"
	cannotSettle = "the outbox cannot write down how attempts came out: it is tried again, and nothing is lost"
	settlesAgain = "the outbox writes down again how attempts came out"
)

// health tells the operator when a part of the outbox stops to work, when the
// reason changes, and when it works again: a line for each change, however many
// messages meet it meanwhile.
type health struct {
	database    string
	stops, ends string // what to tell
	log         *slog.Logger
	clock       clock.Clock

	mu    sync.Mutex
	fault string // empty while all is well
	since time.Time
}

func newHealth(database string, o Options, stops, ends string) *health {
	return &health{database: database, stops: stops, ends: ends, log: o.Logger, clock: o.Clock}
}

// tell notes how something went.
func (h *health) tell(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		if h.fault != "" {
			h.log.Info(h.ends, "database", h.database, "after", h.clock.Now().Sub(h.since), "was", "it "+h.fault)
			h.fault = ""
		}
		return
	}
	fault := describe(err)
	if h.fault == fault {
		return
	}
	if h.fault == "" {
		h.since = h.clock.Now()
	}
	h.fault = fault
	h.log.Error(h.stops, "database", h.database, "because", "it "+fault, "error", err)
}

// up tells whether all was well the last time.
func (h *health) up() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fault == ""
}
