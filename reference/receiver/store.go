package receiver

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Message is one authentic delivery as it is stored.
type Message struct {
	ID         string    // the provider's message id: the key of the store
	Type       string    // event type where the provider names it in a header, else "": it stands in the body
	Body       []byte    // the bytes as they were sent and signed; the store owns them
	ReceivedAt time.Time // by the receiver's clock
	Key        string    // label of the key that verified: shows when a retired secret is still in use
}

// Store keeps messages until they are processed.
type Store interface {
	// Add stores m unless a message with its ID is there already, and tells
	// whether it was added. Both outcomes are success: a provider that retries
	// has done nothing wrong. Check and insertion are one step, since copies
	// arrive at the same moment.
	//
	// Once Add has returned without an error the message must survive a crash,
	// for the 2xx that follows is a promise and the provider will not send it
	// again. An error becomes a 503, so that it does.
	Add(ctx context.Context, m Message) (added bool, err error)
}

// MemoryBytes bounds a [Memory], 256 MiB: some 500,000 messages of 250 bytes,
// many times what the longest conformance run delivers, and bearable on a small
// machine.
const MemoryBytes = 256 << 20

// memoryOverhead is what a stored message costs beside its id and body: the
// struct, its map entry and its place in the queue, rounded up.
const memoryOverhead = 256

// memoryRemember is how long a [Memory] knows the id of a message, 24 h: the
// shortest time that the contracts allow, and longer than most providers retry.
const memoryRemember = 24 * time.Hour

// ErrFull is returned by a [Memory] that has met its bound.
var ErrFull = errors.New("the in-memory store is full")

// Memory is a [Store] that lasts as long as the process: for tests, for trying
// things out, and to show what a store must do. It is bounded by [MemoryBytes]
// and refuses more with [ErrFull] rather than forget what it acknowledged;
// messages older than 24 h make room for new ones.
//
// It cannot keep the promise of a 2xx through a crash. Production wants a
// database with a unique key on the id.
type Memory struct {
	mu    sync.Mutex
	limit int64
	bytes int64
	byID  map[string]Message
	order []string // ids, the oldest first
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return newMemory(MemoryBytes) }

func newMemory(limit int64) *Memory {
	return &Memory{limit: limit, byID: make(map[string]Message)}
}

// Add implements [Store].
func (s *Memory) Add(ctx context.Context, m Message) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err // nobody waits for the answer any more
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(m.ReceivedAt.Add(-memoryRemember))
	if _, known := s.byID[m.ID]; known {
		return false, nil
	}
	if s.bytes+cost(m) > s.limit {
		return false, ErrFull
	}
	s.bytes += cost(m)
	s.byID[m.ID] = m
	s.order = append(s.order, m.ID)
	return true, nil
}

// Get returns the message with this id.
func (s *Memory) Get(id string) (Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.byID[id]
	return m, ok
}

// Len is how many messages are stored.
func (s *Memory) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.order)
}

// forget drops what was received before t. Messages stand in the order of their
// arrival, so it looks no further than the first that stays.
func (s *Memory) forget(t time.Time) {
	n := 0
	for n < len(s.order) && s.byID[s.order[n]].ReceivedAt.Before(t) {
		s.bytes -= cost(s.byID[s.order[n]])
		delete(s.byID, s.order[n])
		n++
	}
	s.order = s.order[n:]
}

func cost(m Message) int64 {
	return int64(len(m.ID)+len(m.Type)+cap(m.Body)) + memoryOverhead
}
