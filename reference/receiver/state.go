package receiver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// The statuses of a message.
const (
	StatusUnknown   = "unknown"   // never seen, or forgotten
	StatusReceived  = "received"  // waits to be processed
	StatusProcessed = "processed" // its effect took place
	StatusFailed    = "failed"    // stands on the failed list
)

// maxFailed is how many failed messages are listed at once, 1,000.
const maxFailed = 1000

// Stats is the inbox at one moment: what an operator watches. A growing Waiting
// or Oldest says that processing is stuck, Failed is a list for a person to look
// at.
type Stats struct {
	Waiting int           // messages received and not processed
	Oldest  time.Duration // since the oldest of them was received
	Failed  int           // messages on the failed list
}

// Stats counts. The time it takes grows with what waits and has failed, not with
// what is remembered.
func (b *Inbox) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	var oldest *int64
	err := b.db.reader().QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM messages WHERE status = 'received'),
		(SELECT min(received_at) FROM messages WHERE status = 'received'),
		(SELECT count(*) FROM messages WHERE status = 'failed')`).Scan(&s.Waiting, &oldest, &s.Failed)
	if err != nil {
		return Stats{}, fmt.Errorf("counting the inbox: %w", err)
	}
	if oldest != nil {
		s.Oldest = max(0, b.clock.Now().Sub(time.UnixMicro(*oldest)))
	}
	return s, nil
}

// Event is what became of an event.
type Event struct {
	ID        string `json:"id"`
	Processed int    `json:"processed"` // effects of the event: 0 or 1
	Failed    bool   `json:"failed"`
	State     string `json:"state"` // one of the statuses
	Attempts  int    `json:"attempts"`
	Error     string `json:"error,omitempty"` // of the last attempt
}

// Event tells what became of the event with this id. One that is not known, or
// no longer, has StatusUnknown; its effect counts all the same.
func (b *Inbox) Event(ctx context.Context, id string) (Event, error) {
	e := Event{ID: id, State: StatusUnknown}
	db, key := b.db.reader(), storedID(id)
	// Effects first: a message that is processed between the two queries then
	// shows as processed with none, and a moment later with one. The other way
	// round it would seem to have an effect while it waits.
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM effects WHERE event_id = $1`, key).Scan(&e.Processed); err != nil {
		return Event{}, fmt.Errorf("counting the effects of an event: %w", err)
	}
	err := db.QueryRowContext(ctx, `SELECT status, attempts, error FROM messages WHERE id = $1`, key).Scan(&e.State, &e.Attempts, &e.Error)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Event{}, fmt.Errorf("looking for an event: %w", err)
	}
	e.Failed = e.State == StatusFailed
	return e, nil
}

// FailedMessage is a row of the failed list.
type FailedMessage struct {
	ID         string    `json:"id"`
	Type       string    `json:"type,omitempty"`
	ReceivedAt time.Time `json:"received_at"`
	FailedAt   time.Time `json:"failed_at"`
	Attempts   int       `json:"attempts"`
	Error      string    `json:"error"`
}

// Failed lists messages that failed, in the order of their ids: those after the
// id given, which is empty for the first page, at most 1,000 of them.
func (b *Inbox) Failed(ctx context.Context, after string) ([]FailedMessage, error) {
	rows, err := b.db.reader().QueryContext(ctx, `SELECT id, type, received_at, finished_at, attempts, error FROM messages
		WHERE status = 'failed' AND id > $1 ORDER BY id LIMIT $2`, after, maxFailed)
	if err != nil {
		return nil, fmt.Errorf("listing failed messages: %w", err)
	}
	defer rows.Close()
	var all []FailedMessage
	for rows.Next() {
		var m FailedMessage
		var received, failed int64
		if err := rows.Scan(&m.ID, &m.Type, &received, &failed, &m.Attempts, &m.Error); err != nil {
			return nil, fmt.Errorf("listing failed messages: %w", err)
		}
		m.ReceivedAt, m.FailedAt = time.UnixMicro(received).UTC(), time.UnixMicro(failed).UTC()
		all = append(all, m)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("listing failed messages: %w", err)
	}
	return all, nil
}

// Retry puts failed messages back into the queue, those with the ids given or,
// without any, all of them, and returns how many. Each gets one attempt: what
// failed so often and fails again is not mended yet.
func (b *Inbox) Retry(ctx context.Context, ids ...string) (n int64, err error) {
	err = b.db.update(ctx, func(ctx context.Context, tx Tx) error {
		n = 0
		now := b.clock.Now().UnixMicro()
		if len(ids) == 0 {
			n, err = changed(tx.ExecContext(ctx, `UPDATE messages SET status = 'received', due_at = $1, finished_at = NULL
				WHERE status = 'failed'`, now))
			return err
		}
		for _, id := range ids {
			one, err := changed(tx.ExecContext(ctx, requeueCopy, storedID(id), now))
			if err != nil {
				return err
			}
			n += one
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("putting failed messages back into the queue: %w", err)
	}
	b.rouse()
	return n, nil
}
