package sender

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

const (
	// tidyEvery is how often old messages are deleted, 1 h.
	tidyEvery = time.Hour

	// tidyBatch is how many are deleted in one transaction, 500, so that
	// publishing never waits long behind it.
	tidyBatch = 500
)

// tidy deletes what is old enough, if it is time to. It does one batch: with
// more to do, attempts come in between.
func (s *Sender) tidy(ctx context.Context) error {
	now := s.clock.Now()
	if now.Before(s.tidyAt) && s.tidyAt.Sub(now) <= tidyEvery {
		return nil
	}
	n, err := s.forget(ctx, now)
	if err != nil {
		return fmt.Errorf("deleting old messages: %w", err)
	}
	if n < tidyBatch {
		s.tidyAt = now.Add(tidyEvery)
	}
	return nil
}

// Forget deletes delivered messages after Policy.KeepDelivered and failed ones
// after Policy.KeepFailed, counted from their last attempt, with their log and
// their bytes, and returns how many. Messages that wait stay, however old; those
// that have waited for a disabled endpoint as long as failed ones are kept have
// failed, and stand on the failed list as long again.
//
// Run does it every hour.
func (s *Sender) Forget(ctx context.Context) (n int, err error) {
	for {
		deleted, err := s.forget(ctx, s.clock.Now())
		n += deleted
		if err != nil {
			return n, fmt.Errorf("deleting old messages: %w", err)
		}
		if deleted < tidyBatch {
			return n, nil
		}
	}
}

// forget does one batch.
func (s *Sender) forget(ctx context.Context, now time.Time) (n int, err error) {
	old := map[string]time.Time{
		MessageDelivered: now.Add(-s.policy.KeepDelivered),
		MessageFailed:    now.Add(-s.policy.KeepFailed),
	}
	// A look costs nothing; a transaction is a commit.
	some, err := column[string](s.store.query(ctx, selectOld+` LIMIT 1`, old[MessageDelivered].UnixNano(), old[MessageFailed].UnixNano()))
	if err != nil {
		return 0, err
	}
	held, err := column[string](s.store.query(ctx, selectHeld+` LIMIT 1`, old[MessageFailed].UnixNano()))
	if err != nil || len(some)+len(held) == 0 {
		return 0, err
	}
	err = s.store.update(ctx, func(ctx context.Context, tx Tx) error {
		if err := giveUp(ctx, tx, old[MessageFailed], now); err != nil {
			return err
		}
		n, err = deleteOld(ctx, tx, old[MessageDelivered], old[MessageFailed])
		return err
	})
	return n, err
}

const (
	selectOld = `SELECT id FROM messages WHERE finished_at IS NOT NULL AND owner IS NULL AND queued_at IS NULL AND
		(status = 'delivered' AND finished_at < $1 OR status = 'failed' AND finished_at < $2)`

	selectHeld = `SELECT m.id FROM endpoints e JOIN messages m ON m.endpoint_id = e.id
		WHERE e.status = 'disabled' AND m.queued_at IS NOT NULL AND m.created_at < $1`
)

// giveUp lets messages fail that have waited too long for a disabled endpoint.
func giveUp(ctx context.Context, tx Tx, before, now time.Time) error {
	_, err := tx.ExecContext(ctx, `UPDATE messages SET status = CASE status WHEN 'pending' THEN 'failed' ELSE status END,
		finished_at = coalesce(finished_at, $2), due_at = NULL, manual_at = NULL, queued_at = NULL WHERE id IN (`+selectHeld+`)`,
		before.UnixNano(), now.UnixNano())
	return err
}

// deleteOld deletes a batch of messages with all that belongs to them alone.
func deleteOld(ctx context.Context, tx Tx, delivered, failed time.Time) (int, error) {
	all, err := belongings(tx.QueryContext(ctx, `SELECT id, event_id, payload_id FROM messages WHERE id IN (`+selectOld+` LIMIT $3)`,
		delivered.UnixNano(), failed.UnixNano(), tidyBatch))
	if err != nil {
		return 0, err
	}
	for _, m := range all {
		for _, d := range []struct {
			statement string
			args      []any
		}{
			{`DELETE FROM attempts WHERE message_id = $1`, []any{m.id}},
			{`DELETE FROM messages WHERE id = $1`, []any{m.id}},
			{`DELETE FROM payloads WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM messages WHERE event_id = $2 AND payload_id = $1)`, []any{m.payload, m.event}},
			{`DELETE FROM events WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM messages WHERE event_id = $1)`, []any{m.event}},
		} {
			if _, err := tx.ExecContext(ctx, d.statement, d.args...); err != nil {
				return 0, err
			}
		}
	}
	return len(all), nil
}

// belonging is a message with what was stored for it.
type belonging struct {
	id             string
	event, payload int64
}

func belongings(rows *sql.Rows, err error) (all []belonging, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var m belonging
		if err := rows.Scan(&m.id, &m.event, &m.payload); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, rows.Err()
}
