package sender

import (
	"context"
	"fmt"
	"time"
)

// notifyAt is when the owner of an endpoint that has failed since a time is told
// so for the (n+1)th time; zero for never.
func (s *Sender) notifyAt(since time.Time, n int) time.Time {
	if n >= len(s.policy.NotifyAfter) {
		return time.Time{}
	}
	return since.Add(s.policy.NotifyAfter[n])
}

// notifyDue tells the owners of endpoints that have been failing for so long
// that they are to know. It goes by the clock and not by attempts: the next one
// may be a day away.
func (s *Sender) notifyDue(ctx context.Context) error {
	const due = `SELECT id FROM endpoints WHERE notify_at IS NOT NULL AND notify_at <= $1`
	now := s.clock.Now()
	if ids, err := column[string](s.store.query(ctx, due, now.UnixNano())); err != nil || len(ids) == 0 {
		return err
	}
	return s.store.update(ctx, func(ctx context.Context, tx Tx) error {
		ids, err := column[string](tx.QueryContext(ctx, due, now.UnixNano()))
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := s.notifyFailing(ctx, tx, id, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// notifyFailing tells an owner all that is due by now, each thing once.
func (s *Sender) notifyFailing(ctx context.Context, tx Tx, id string, now time.Time) error {
	e, err := readStanding(ctx, tx, id)
	if err != nil {
		return err
	}
	since := timeOf(e.failingSince)
	for at := s.notifyAt(since, e.notified); !at.IsZero() && !at.After(now); at = s.notifyAt(since, e.notified) {
		err := s.notify(ctx, tx, Notification{At: now, EndpointID: id, Kind: NotifyFailing, Text: fmt.Sprintf(
			"%s has been failing for %v, since %s. Its messages are tried again; after %v without a success it is disabled.",
			e.url, s.policy.NotifyAfter[e.notified], since.Format(time.RFC3339), s.policy.DisableAfter)})
		if err != nil {
			return err
		}
		e.notified++
	}
	_, err = tx.ExecContext(ctx, `UPDATE endpoints SET notified = $2, notify_at = $3 WHERE id = $1`,
		id, e.notified, nullTime(s.notifyAt(since, e.notified)))
	return err
}

// notify tells an owner. It is written down in the transaction of what it tells
// of; whoever sends e-mails reads [Sender.Notifications].
func (s *Sender) notify(ctx context.Context, tx Tx, n Notification) error {
	if s.faults.Notify != nil {
		var keep bool
		if n, keep = s.faults.Notify(n); !keep {
			return nil
		}
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO notifications (endpoint_id, kind, text, created_at) VALUES ($1, $2, $3, $4)`,
		n.EndpointID, n.Kind, n.Text, n.At.UnixNano())
	return err
}

// Notifications lists what the owner of an endpoint was told, or all owners
// where it is "", the oldest first; the last [MaxPage] of them.
func (s *Sender) Notifications(ctx context.Context, endpointID string) ([]Notification, error) {
	rows, err := s.store.query(ctx, `SELECT endpoint_id, kind, text, created_at FROM
		(SELECT * FROM notifications WHERE $1 = '' OR endpoint_id = $1 ORDER BY id DESC LIMIT $2) ORDER BY id`, endpointID, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("listing notifications: %w", err)
	}
	defer rows.Close()
	var all []Notification
	for rows.Next() {
		var n Notification
		var at int64
		if err := rows.Scan(&n.EndpointID, &n.Kind, &n.Text, &at); err != nil {
			return nil, fmt.Errorf("listing notifications: %w", err)
		}
		n.At = fromNano(at)
		all = append(all, n)
	}
	return all, rows.Err()
}
