package receiver

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestMemoryRefusesRatherThanForgets(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	message := func(id string, at time.Time) Message {
		return Message{ID: id, Body: make([]byte, 100), ReceivedAt: at}
	}
	s := newMemory(3 * cost(message("a", now)))
	for _, id := range []string{"a", "b", "c"} {
		if added, err := s.Add(ctx, message(id, now)); !added || err != nil {
			t.Fatalf("adding %s: %v, %v", id, added, err)
		}
	}
	if _, err := s.Add(ctx, message("d", now)); !errors.Is(err, ErrFull) {
		t.Errorf("adding to a full store: %v, want ErrFull", err)
	}
	if added, err := s.Add(ctx, message("a", now)); added || err != nil {
		t.Errorf("a copy in a full store: %v, %v, want neither added nor an error", added, err)
	}
	// A day later the first three need no longer be known.
	if added, err := s.Add(ctx, message("d", now.Add(memoryRemember+time.Second))); !added || err != nil {
		t.Errorf("adding a day later: %v, %v", added, err)
	}
	if _, known := s.Get("a"); known || s.Len() != 1 {
		t.Errorf("%d messages are stored, want 1", s.Len())
	}
}

func TestMemoryRemembersIDsForADay(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	s := NewMemory()
	for _, c := range []struct {
		after time.Duration
		added bool
	}{{0, true}, {time.Minute, false}, {memoryRemember, false}, {memoryRemember + time.Second, true}} {
		added, err := s.Add(ctx, Message{ID: "a", ReceivedAt: now.Add(c.after)})
		if added != c.added || err != nil {
			t.Errorf("after %v: added %v, %v; want %v", c.after, added, err, c.added)
		}
	}
}

func TestMemoryStoresNothingForACallerWhoIsGone(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := NewMemory()
	if added, err := s.Add(ctx, Message{ID: "a"}); added || !errors.Is(err, context.Canceled) || s.Len() != 0 {
		t.Errorf("added %v, %v with %d stored", added, err, s.Len())
	}
}
