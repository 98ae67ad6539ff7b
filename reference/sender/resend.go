package sender

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Resend sends a message again by hand: the same id and bytes, one attempt. It
// is no part of the schedule, which neither counts it nor waits for it; a message
// that it delivers is delivered. Asking again before it was made changes nothing.
//
// The error is [ErrNotFound], [ErrConflict] where the message's endpoint is
// disabled or deleted, or [ErrUnavailable].
func (s *Sender) Resend(ctx context.Context, messageID string) error {
	err := s.store.update(ctx, func(ctx context.Context, tx Tx) error { return s.askFor(ctx, tx, messageID) })
	if err != nil {
		return fmt.Errorf("resending the message %q: %w", messageID, err)
	}
	s.rouse()
	return nil
}

// ResendFailed sends the messages again that have failed since a time, of an
// endpoint or, where it is "", of all. They do not meet the endpoint as a crowd:
// it gets no more at one time than otherwise. It returns how many there are.
func (s *Sender) ResendFailed(ctx context.Context, endpointID string, since time.Time) (n int, err error) {
	err = s.store.update(ctx, func(ctx context.Context, tx Tx) error {
		ids, err := column[string](tx.QueryContext(ctx, `SELECT m.id FROM messages m JOIN endpoints e ON e.id = m.endpoint_id
			WHERE m.status = 'failed' AND e.status = 'enabled' AND ($1 = '' OR m.endpoint_id = $1) AND m.finished_at >= $2
			ORDER BY m.id`, endpointID, since.UnixNano()))
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := s.askFor(ctx, tx, id); err != nil {
				return err
			}
		}
		n = len(ids)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("resending failed messages: %w", err)
	}
	s.rouse()
	return n, nil
}

// askFor puts an attempt by hand into the queue.
func (s *Sender) askFor(ctx context.Context, tx Tx, id string) error {
	var m Message
	var due sql.NullInt64
	var endpoint string
	err := tx.QueryRowContext(ctx, `SELECT m.id, m.endpoint_id, m.type, m.status, m.attempts, m.due_at, e.status
		FROM messages m JOIN endpoints e ON e.id = m.endpoint_id WHERE m.id = $1`, id).
		Scan(&m.ID, &m.EndpointID, &m.Type, &m.Status, &m.Attempts, &due, &endpoint)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return ErrNotFound
	case err != nil:
		return err
	case endpoint != EndpointEnabled:
		return fmt.Errorf("%w: its endpoint is %s", ErrConflict, endpoint)
	}
	now := s.clock.Now()
	next, manual := timeOf(due), now
	if s.faults.Resend != nil {
		next, manual = s.faults.Resend(m, now, next, manual)
	}
	_, err = tx.ExecContext(ctx, `UPDATE messages SET due_at = $2, manual_at = $3,
		queued_at = CASE WHEN owner IS NULL THEN `+earlier("$2", "$3")+` END WHERE id = $1`, id, nullTime(next), nullTime(manual))
	if err != nil {
		return err
	}
	return s.requeue(ctx, tx, m.EndpointID)
}
