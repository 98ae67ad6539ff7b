package receiver

import (
	"log/slog"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// What a health tells when it begins to fail and when it ends. The first of each
// is about storing; the others are about what goes on behind the deliveries.
const (
	cannotStore  = "the inbox cannot store: deliveries are answered 503 until it can, and nothing that was acknowledged is touched"
	storesAgain  = "the inbox stores again"
	cannotRead   = "the inbox cannot be read: messages wait, and none is lost"
	readsAgain   = "the inbox can be read again"
	cannotSettle = "the inbox cannot write down what was processed: those messages are processed again, and none is lost"
	settlesAgain = "the inbox writes down again what was processed"
)

// health tells the operator when a part of the inbox stops to work, when the
// reason changes, and when it works again: a line for each change, however many
// deliveries or messages meet it meanwhile.
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

// ill notes a failure.
func (h *health) ill(fault string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fault == fault {
		return
	}
	if h.fault == "" {
		h.since = h.clock.Now()
	}
	h.fault = fault
	h.log.Error(h.stops, "database", h.database, "because", "it "+fault, "error", err)
}

// well notes a success.
func (h *health) well() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fault == "" {
		return
	}
	h.log.Info(h.ends, "database", h.database, "after", h.clock.Now().Sub(h.since), "was", "it "+h.fault)
	h.fault = ""
}

// up tells whether all was well the last time.
func (h *health) up() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fault == ""
}
