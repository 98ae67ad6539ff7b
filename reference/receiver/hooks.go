package receiver

import (
	"errors"
	"sync"
)

// maxHooked is how many ids may be waiting to fail, 10,000: a test names some.
const maxHooked = 10_000

// errFailOnce is the failure that FailOnce asked for.
var errFailOnce = errors.New("made to fail by a test")

// hooks makes processing fail for tests. The zero pointer makes nothing fail.
type hooks struct {
	mu      sync.Mutex
	failing map[string]bool // stored ids
	next    int             // messages to fail, whichever they are
}

// FailOnce makes the next attempt at processing a message fail, that of the
// message with this id or, with an empty id, of whichever comes next. It is
// tried again as after any failure. Without Options.TestHooks it is an error.
func (b *Inbox) FailOnce(id string) error {
	h := b.hooks
	if h == nil {
		return errors.New("making a message fail: the inbox was opened without test hooks")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.failing)+h.next >= maxHooked {
		return errors.New("making a message fail: too many are waiting to fail already")
	}
	if id == "" {
		h.next++
		return nil
	}
	h.failing[storedID(id)] = true
	return nil
}

// fails tells whether this attempt at the message is to fail.
func (h *hooks) fails(id string) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failing[id] {
		delete(h.failing, id)
		return true
	}
	if h.next > 0 {
		h.next--
		return true
	}
	return false
}
