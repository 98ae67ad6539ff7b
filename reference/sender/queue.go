package sender

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// Fairness. Messages do not stand in one queue, or an endpoint with a backlog
// would be in front of all others for as long as it has one. Endpoints do, each
// with its own messages behind it, and whoever was served goes to the back:
// next_at is when the endpoint's first message is due, or when it was last
// served, whichever is later. So what has to wait is never longer than one
// attempt for each endpoint before it.
//
// An endpoint that does not answer holds its attempts for the whole timeout. It
// gets one slot until it answers, as does one that has never been tried, and all
// the silent ones together get at most half of the slots.

// requeue puts an endpoint to its place in the queue, after anything has changed
// for it. It stands there only if it is enabled, has a message and a slot.
func (s *Sender) requeue(ctx context.Context, tx Tx, endpoint string) error {
	_, err := tx.ExecContext(ctx, `UPDATE endpoints SET next_at = `+place("status", "trusted", servedBefore)+` WHERE id = $1`,
		endpoint, s.clock.Now().UnixNano(), s.policy.PerEndpoint, flag(s.faults.IgnoreStatus))
	return err
}

// servedBefore is when an endpoint was last served, in SQL. A time in the future,
// after the clock has jumped back, must not keep it waiting.
const servedBefore = "min(served_at, $2)"

// place is an endpoint's next_at in SQL, of its status, whether it is trusted and
// when it was last served. Its parameters are endpoint, now, slots and whether
// the status is no matter.
func place(status, trusted, served string) string {
	return `CASE
	WHEN ` + status + ` <> 'enabled' AND $4 = 0 THEN NULL
	WHEN (SELECT count(*) FROM messages WHERE endpoint_id = $1 AND owner IS NOT NULL) >= CASE ` + trusted + ` WHEN 1 THEN $3 ELSE 1 END THEN NULL
	ELSE max((SELECT queued_at FROM messages WHERE endpoint_id = $1 AND queued_at IS NOT NULL ORDER BY queued_at LIMIT 1), ` + served + `) END`
}

// earlier is the earlier of two times in SQL, either of which may be NULL.
func earlier(a, b string) string {
	return fmt.Sprintf("CASE WHEN %[1]s IS NULL THEN %[2]s WHEN %[2]s IS NULL THEN %[1]s ELSE min(%[1]s, %[2]s) END", a, b)
}

// flag is a truth value as it is stored.
func flag(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// room is how many attempts may begin: altogether, and at silent endpoints.
type room struct{ free, silent int }

// ready is an endpoint that may have an attempt.
type ready struct {
	id         string
	next, turn int64
	silent     bool
}

// selectReady reads no further than its caller has room for, which is why it has
// no LIMIT: one that is a parameter makes SQLite parse the statement anew each
// time.
const selectReady = `SELECT id, next_at, turn FROM endpoints
	WHERE silent = $1 AND next_at IS NOT NULL AND next_at <= $2 ORDER BY next_at, turn`

// line is the queue's front: endpoints that are due, as many as there is room
// for, in the order in which they are served.
func line(ctx context.Context, query func(context.Context, string, ...any) (*sql.Rows, error), now time.Time, r room) ([]ready, error) {
	var all []ready
	for _, silent := range []bool{false, true} {
		n := r.free
		if silent {
			n = min(r.free, r.silent)
		}
		if n <= 0 {
			continue
		}
		rows, err := query(ctx, selectReady, flag(silent), now.UnixNano())
		if err != nil {
			return nil, err
		}
		all, err = appendReady(all, n, rows, silent)
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b ready) int { return cmp.Or(cmp.Compare(a.next, b.next), cmp.Compare(a.turn, b.turn)) })
	return all[:min(len(all), r.free)], nil
}

// appendReady appends n endpoints at most.
func appendReady(all []ready, n int, rows *sql.Rows, silent bool) ([]ready, error) {
	defer rows.Close()
	for ; n > 0 && rows.Next(); n-- {
		e := ready{silent: silent}
		if err := rows.Scan(&e.id, &e.next, &e.turn); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, rows.Err()
}

// claim is a message that this process works on.
type claim struct {
	AttemptInfo
	payload int64
	status  string // of the message
	due     sql.NullInt64
	manual  sql.NullInt64 // when an attempt by hand was asked for, if this is one
	silent  bool          // the endpoint did not answer the last time
}

// claimDue claims messages as long as there is room, one from each endpoint in a
// round. A message that was claimed is out of the queue, and the mark is in the
// database before anything is sent: of two processes that come at one moment the
// second finds nothing.
func (s *Sender) claimDue(ctx context.Context, tx Tx, now time.Time, r room) ([]*claim, error) {
	var claims []*claim
	for r.free > 0 {
		endpoints, err := line(ctx, tx.QueryContext, now, r)
		if err != nil {
			return nil, err
		}
		if len(endpoints) == 0 {
			break
		}
		for _, e := range endpoints {
			c, err := s.claimOne(ctx, tx, e, now)
			if err != nil {
				return nil, err
			}
			if c == nil {
				continue
			}
			claims = append(claims, c)
			r.free--
			if e.silent {
				r.silent--
			}
		}
	}
	return claims, nil
}

const claimFirst = `UPDATE messages SET owner = $2, leased_at = $3, lease_until = $4, queued_at = NULL
	WHERE id = (SELECT id FROM messages WHERE endpoint_id = $1 AND queued_at IS NOT NULL AND queued_at <= $3 ORDER BY queued_at, id LIMIT 1)
	RETURNING id, type, payload_id, status, attempts, due_at, manual_at`

// claimOne claims the first message of an endpoint; nil where there is none.
func (s *Sender) claimOne(ctx context.Context, tx Tx, e ready, now time.Time) (*claim, error) {
	c := &claim{silent: e.silent, AttemptInfo: AttemptInfo{EndpointID: e.id, Began: now}}
	err := tx.QueryRowContext(ctx, claimFirst, e.id, s.store.me, now.UnixNano(), now.Add(firstOf(s.faults.Lease, s.policy.Lease)).UnixNano()).
		Scan(&c.MessageID, &c.Type, &c.payload, &c.status, &c.Number, &c.due, &c.manual)
	found := err == nil
	if err != nil && err != sql.ErrNoRows {
		return nil, err
	}
	s.turns++
	err = tx.QueryRowContext(ctx, `UPDATE endpoints SET served_at = $2, turn = $5, next_at = `+place("status", "trusted", "$2")+` WHERE id = $1 RETURNING url`,
		e.id, now.UnixNano(), s.policy.PerEndpoint, flag(s.faults.IgnoreStatus), s.turns).Scan(&c.URL)
	if err != nil || !found {
		return nil, err
	}
	// What somebody asked for comes first: if it is delivered by that, nothing
	// else is due.
	if c.manual.Valid && c.manual.Int64 <= now.UnixNano() {
		c.Manual = true
	} else {
		c.manual.Valid = false
		c.Number++
	}
	return c, nil
}

// column reads rows of one column.
func column[T any](rows *sql.Rows, err error) (all []T, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}
