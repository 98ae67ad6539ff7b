package sender

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// Attempts is the delivery log of a message: every attempt, the oldest first, at
// most [MaxPage]. The error is [ErrNotFound].
func (s *Sender) Attempts(ctx context.Context, messageID string) ([]Attempt, error) {
	all, err := scanAttempts(s.store.query(ctx, `SELECT message_id, endpoint_id, number, manual, began_at, duration, status, fault, error, body
		FROM attempts WHERE message_id = $1 ORDER BY id LIMIT $2`, messageID, MaxPage))
	if err == nil && len(all) == 0 {
		_, err = s.Message(ctx, messageID)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the delivery log: %w", err)
	}
	return all, nil
}

func scanAttempts(rows *sql.Rows, err error) (all []Attempt, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var a Attempt
		var began, took int64
		err := rows.Scan(&a.MessageID, &a.EndpointID, &a.Number, &a.Manual, &began, &took, &a.Status, &a.Fault, &a.Error, &a.Body)
		if err != nil {
			return nil, err
		}
		a.At, a.Duration = fromNano(began), time.Duration(took)
		all = append(all, a)
	}
	return all, rows.Err()
}

const selectMessages = `SELECT id, endpoint_id, type, status, attempts, created_at, queued_at, finished_at FROM messages`

// Message reads a message. The error is [ErrNotFound].
func (s *Sender) Message(ctx context.Context, id string) (Message, error) {
	all, err := scanMessages(s.store.query(ctx, selectMessages+` WHERE id = $1`, id))
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Message{}, fmt.Errorf("reading the message %q: %w", id, err)
	}
	return all[0], nil
}

// Messages lists messages in the order in which they were published, at most
// [MaxPage]: the failed ones of an endpoint, for instance, which need a person.
// The next page follows the last id.
func (s *Sender) Messages(ctx context.Context, f MessageFilter) ([]Message, error) {
	var where []string
	var args []any
	add := func(condition string, arg any) {
		args = append(args, arg)
		where = append(where, fmt.Sprintf(condition, len(args)))
	}
	switch f.Status {
	case "":
	case MessagePending, MessageDelivered, MessageFailed:
		where = append(where, "status = '"+f.Status+"'") // a literal lets the partial indexes serve it
	default:
		return nil, fmt.Errorf("listing messages: %w: there is no status %q", ErrInvalid, f.Status)
	}
	if f.EndpointID != "" {
		add("endpoint_id = $%d", f.EndpointID)
	}
	if !f.Since.IsZero() {
		add("created_at >= $%d", f.Since.UnixNano())
	}
	if f.After != "" {
		add("id > $%d", f.After)
	}
	query := selectMessages
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	limit := MaxPage
	if f.Limit > 0 {
		limit = min(f.Limit, MaxPage)
	}
	args = append(args, limit)
	all, err := scanMessages(s.store.query(ctx, query+fmt.Sprintf(" ORDER BY id LIMIT $%d", len(args)), args...))
	if err != nil {
		return nil, fmt.Errorf("listing messages: %w", err)
	}
	return all, nil
}

func scanMessages(rows *sql.Rows, err error) (all []Message, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var m Message
		var created int64
		var next, finished sql.NullInt64
		if err := rows.Scan(&m.ID, &m.EndpointID, &m.Type, &m.Status, &m.Attempts, &created, &next, &finished); err != nil {
			return nil, err
		}
		m.CreatedAt, m.Next, m.FinishedAt = fromNano(created), timeOf(next), timeOf(finished)
		all = append(all, m)
	}
	return all, rows.Err()
}
