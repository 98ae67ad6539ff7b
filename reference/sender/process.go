package sender

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A message on which a process works is marked with the process and the end of
// a lease. The mark keeps a second process away; it must not outlive the first.
// So each process holds a lock as long as it lives. Who finds the lock of another
// one free knows that its attempts have ended with it, and frees its messages at
// once. A process that hangs keeps its lock: from it they are taken when their
// leases end, later than any attempt.

// interrupted is what the delivery log says of an attempt whose process died.
const interrupted = "interrupted: the process ended before the outcome was written down"

// register notes this process among those that send from the file.
func (st *store) register(ctx context.Context) error {
	// Not from Options.Random: two processes that repeat one run are two.
	me := rand.Text()
	// The lock comes before the row, so that no row is without one.
	alive, err := acquire(st.lockPath(me), true)
	if err != nil {
		return fmt.Errorf("marking this process as alive: %w", err)
	}
	st.me, st.alive = me, alive
	return st.transaction(ctx, func(ctx context.Context, tx Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO processes (id, started_at) VALUES ($1, $2)`, me, st.clock.Now().UnixNano())
		return err
	})
}

func (st *store) lockPath(process string) string { return st.path + "-sender-" + process + ".lock" }

// dead lists the processes that are known to have ended without resigning.
func (st *store) dead(ctx context.Context) (ids []string, err error) {
	all, err := column[string](st.query(ctx, `SELECT id FROM processes WHERE id <> $1`, st.me))
	if err != nil {
		return nil, err
	}
	for _, id := range all {
		l, err := acquire(st.lockPath(id), false)
		switch {
		case err == nil:
			l.abandon() // the file goes when the row is gone
			ids = append(ids, id)
		case errors.Is(err, fs.ErrNotExist):
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// resign takes this process off the list. Whatever goes wrong is no matter: the
// lock goes with the process, and shows the same.
func (st *store) resign() {
	_ = st.transaction(context.Background(), func(ctx context.Context, tx Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM processes WHERE id = $1`, st.me)
		return err
	})
}

// takeOver frees the messages of processes that died.
func (s *Sender) takeOver(ctx context.Context) error {
	dead, err := s.store.dead(ctx)
	if err != nil {
		return err
	}
	for _, id := range dead {
		err := s.store.update(ctx, func(ctx context.Context, tx Tx) error {
			held, err := leases(tx.QueryContext(ctx, selectLeases+` AND owner = $1`, id))
			if err != nil {
				return err
			}
			if err := s.free(ctx, tx, held, interrupted); err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, `DELETE FROM processes WHERE id = $1`, id)
			return err
		})
		if err != nil {
			return err
		}
		_ = os.Remove(s.store.lockPath(id)) // what is left is only a name
	}
	return nil
}

// freeOverdue frees the messages whose leases have ended, of processes that hang.
// Those of this process are not among them: their attempts end in time, or are
// being written down.
func (s *Sender) freeOverdue(ctx context.Context) error {
	const overdue = selectLeases + ` AND owner <> $1 AND lease_until <= $2`
	now := s.clock.Now().UnixNano()
	held, err := leases(s.store.query(ctx, overdue, s.store.me, now))
	if err != nil || len(held) == 0 {
		return err
	}
	return s.store.update(ctx, func(ctx context.Context, tx Tx) error {
		held, err := leases(tx.QueryContext(ctx, overdue, s.store.me, now))
		if err != nil {
			return err
		}
		return s.free(ctx, tx, held, "interrupted: the process that made it did not come back to it")
	})
}

// lease is a message on which a process works.
type lease struct {
	message, endpoint string
	began             int64
}

const selectLeases = `SELECT id, endpoint_id, leased_at FROM messages WHERE owner IS NOT NULL`

func leases(rows *sql.Rows, err error) (all []lease, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var l lease
		if err := rows.Scan(&l.message, &l.endpoint, &l.began); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, rows.Err()
}

// free puts messages back into the queue, as they were before they were claimed:
// an attempt whose outcome nobody knows does not count, and is made again. The
// log shows why, for the endpoint may have seen it; "" for one that was not made.
func (s *Sender) free(ctx context.Context, tx Tx, held []lease, why string) error {
	for _, l := range held {
		if why != "" {
			_, err := tx.ExecContext(ctx, `INSERT INTO attempts (message_id, endpoint_id, number, manual, began_at, duration, status, fault, error)
				VALUES ($1, $2, 0, 0, $3, $4, 0, '', $5)`, l.message, l.endpoint, l.began, max(0, s.clock.Now().UnixNano()-l.began), why)
			if err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `UPDATE messages SET owner = NULL, leased_at = NULL, lease_until = NULL,
			queued_at = `+earlier("due_at", "manual_at")+` WHERE id = $1`, l.message)
		if err != nil {
			return err
		}
		if err := s.failIfDeleted(ctx, tx, l); err != nil {
			return err
		}
		if err := s.requeue(ctx, tx, l.endpoint); err != nil {
			return err
		}
	}
	return nil
}

// failIfDeleted ends a message whose endpoint was deleted while a process worked
// on it.
func (s *Sender) failIfDeleted(ctx context.Context, tx Tx, l lease) error {
	_, err := tx.ExecContext(ctx, `UPDATE messages SET status = 'failed', finished_at = $2, due_at = NULL, manual_at = NULL, queued_at = NULL
		WHERE id = $1 AND status = 'pending' AND (SELECT status FROM endpoints WHERE id = endpoint_id) = 'deleted'`,
		l.message, s.clock.Now().UnixNano())
	return err
}
