package receiver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// What an operator is told about a database that does not work, after "it …".
const (
	faultLocked      = "is locked by another process"
	faultReadOnly    = "is read-only"
	faultFull        = "is full, or its disk is"
	faultRemoved     = "was removed or replaced while it was in use"
	faultUnopened    = "cannot be opened: its folder must exist and be writable"
	faultDamaged     = "is damaged, or no database"
	faultDisk        = "cannot be read or written: the disk fails or is full"
	faultUnreachable = "cannot be reached"
	faultOther       = "failed"
)

// The statements of the queue. Literal statuses, not parameters, let the
// partial indexes serve them.
const (
	requeueCopy = `UPDATE messages SET status = 'received', due_at = $2, finished_at = NULL
		WHERE id = $1 AND status = 'failed'`

	selectDue = `SELECT id, type, body, key_label, received_at, attempts FROM messages
		WHERE status = 'received' AND due_at <= $1 ORDER BY due_at, id LIMIT $2`

	selectNextDue = `SELECT min(due_at) FROM messages WHERE status = 'received'`

	markProcessed = `UPDATE messages SET status = 'processed', attempts = attempts + 1, finished_at = $2, error = ''
		WHERE id = $1 AND status = 'received'`

	markTryAgain = `UPDATE messages SET attempts = attempts + 1, due_at = $2, error = $3
		WHERE id = $1 AND status = 'received'`

	markFailed = `UPDATE messages SET status = 'failed', attempts = attempts + 1, finished_at = $2, error = $3
		WHERE id = $1 AND status = 'received'`
)

// insertMessages inserts a number of messages, each of the five parameters id,
// type, body, label of the key, and time.
func insertMessages(rows int) string {
	var b strings.Builder
	b.WriteString(`INSERT INTO messages (id, type, body, key_label, status, received_at, due_at) VALUES `)
	for i := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		n := 5 * i
		fmt.Fprintf(&b, "($%d, $%d, $%d, $%d, 'received', $%d, $%d)", n+1, n+2, n+3, n+4, n+5, n+5)
	}
	return b.String()
}

// errNotTakenBack ends a whole transaction: what it holds is not known any more.
var errNotTakenBack = errors.New("a part of a transaction could not be taken back")

// claim is a message that this process works on.
type claim struct {
	Message
	attempts int // before this one

	// settle runs do in a transaction that may change the message's row.
	settle func(ctx context.Context, do func(context.Context, Tx) error) error

	// release ends the claim; needed after settle, too.
	release func()
}

// scanClaim reads a row of selectDue.
func scanClaim(row interface{ Scan(...any) error }) (*claim, error) {
	var c claim
	var at int64
	if err := row.Scan(&c.ID, &c.Type, &c.Body, &c.Key, &at, &c.attempts); err != nil {
		return nil, err
	}
	c.ReceivedAt = time.UnixMicro(at).UTC()
	return &c, nil
}

// within runs do as a part of tx that can be taken back alone.
func within(ctx context.Context, tx Tx, savepoint string, do func(context.Context, Tx) error) error {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT "+savepoint); err != nil {
		return err
	}
	err := do(ctx, tx)
	if err != nil {
		if _, back := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT "+savepoint); back != nil {
			return errors.Join(err, fmt.Errorf("%w: %w", errNotTakenBack, back))
		}
	}
	if _, release := tx.ExecContext(ctx, "RELEASE SAVEPOINT "+savepoint); release != nil {
		return errors.Join(err, fmt.Errorf("%w: %w", errNotTakenBack, release))
	}
	return err
}

// changed is the number of rows that a statement changed.
func changed(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}
