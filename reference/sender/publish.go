package sender

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Publish publishes an event. When it returns, a message for each endpoint that
// has subscribed to the event's type is on the disk, and is delivered whatever
// becomes of this process. The ids are those of the messages, one an endpoint;
// none where nobody has subscribed.
//
// The error is [ErrInvalid] for an event that can never be taken, or
// [ErrUnavailable] where the database did not take it.
func (s *Sender) Publish(ctx context.Context, e Event) (ids []string, err error) {
	if err := s.checkEvent(&e); err != nil {
		return nil, fmt.Errorf("publishing: %w", err)
	}
	err = s.store.update(ctx, func(ctx context.Context, tx Tx) (err error) {
		ids, err = s.insertEvent(ctx, tx, e)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("publishing: %w", err)
	}
	s.rouse()
	return ids, nil
}

// PublishTx publishes an event in a transaction of the caller, on the outbox's
// own file: the event is there with what it tells of, or neither is. Nothing is
// sent before the commit, nor ever after a rollback. After an error the
// transaction can go on, and the event is no part of it.
//
// [Sender.Transaction] gives such a transaction and lets the dispatcher know when
// it is committed. One of another *sql.DB is found by the dispatcher's poll.
func (s *Sender) PublishTx(ctx context.Context, tx *sql.Tx, e Event) (ids []string, err error) {
	if err := s.checkEvent(&e); err != nil {
		return nil, fmt.Errorf("publishing in a transaction: %w", err)
	}
	err = within(ctx, tx, func(ctx context.Context, tx Tx) (err error) {
		ids, err = s.insertEvent(ctx, tx, e)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("publishing in a transaction: %w", err)
	}
	return ids, nil
}

// Transaction runs do in a transaction on the outbox's file, and commits it where
// do returns nil. The caller's own tables stand in the same file. It should be
// short: SQLite has one writer at a time, and sending waits, too. The error is
// do's, or [ErrUnavailable] with its cause.
func (s *Sender) Transaction(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	err := s.store.lend(ctx, do)
	if err == nil {
		s.rouse()
	}
	return err
}

// lend runs do in a transaction of a caller.
func (st *store) lend(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	select {
	case st.turn <- struct{}{}:
		defer func() { <-st.turn }()
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for the writer: %w", ErrUnavailable, context.Cause(ctx))
	}
	if err := st.files.present(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	tx, err := st.callers.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%w: beginning a transaction: %w", ErrUnavailable, err)
	}
	defer tx.Rollback() // after a commit it does nothing
	if err := do(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		// The connection may still be in its transaction.
		_, _ = st.callers.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return fmt.Errorf("%w: committing: %w", ErrUnavailable, err)
	}
	if err := st.files.present(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

func (s *Sender) checkEvent(e *Event) error {
	if e.Time.IsZero() {
		e.Time = s.clock.Now()
	}
	var err error
	switch {
	case len(e.Data) > 0 && len(e.Raw) > 0:
		err = errors.New("it has both data and a finished payload")
	case len(e.Data) == 0 && len(e.Raw) == 0:
		err = errors.New("it has no payload")
	case max(len(e.Data), len(e.Raw)) > MaxPayload:
		err = tooLarge(max(len(e.Data), len(e.Raw)))
	default:
		err = s.catalogue.Check(e.Type)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

func tooLarge(n int) error {
	return fmt.Errorf("its payload has %d bytes, at most %d can be", n, MaxPayload)
}

// subscriber is an endpoint that gets an event.
type subscriber struct {
	id, version string
	next        sql.NullInt64 // its place in the queue
}

// insertEvent inserts an event with its messages and puts them into the queue.
func (s *Sender) insertEvent(ctx context.Context, tx Tx, e Event) ([]string, error) {
	subscribers, err := s.subscribers(ctx, tx, e)
	if err != nil || len(subscribers) == 0 {
		return nil, err
	}
	now := s.clock.Now()
	var record any
	if len(e.Raw) == 0 {
		record = []byte(e.Data)
	}
	event, err := inserted(tx.ExecContext(ctx, `INSERT INTO events (type, happened_at, record, created_at) VALUES ($1, $2, $3, $4)`,
		e.Type, e.Time.UnixNano(), record, now.UnixNano()))
	if err != nil {
		return nil, fmt.Errorf("inserting the event: %w", err)
	}
	ids := make([]string, 0, len(subscribers))
	payloads := payloads{s: s, tx: tx, event: event, of: e, byVersion: map[string]int64{}}
	for _, to := range subscribers {
		id, err := s.insertMessage(ctx, tx, &payloads, to, now)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (s *Sender) insertMessage(ctx context.Context, tx Tx, p *payloads, to subscriber, now time.Time) (string, error) {
	id, err := s.newID(firstOf(s.profile.IDPrefix, "msg_"), now)
	if err != nil {
		return "", err
	}
	payload, err := p.id(ctx, id, to.version)
	if err != nil {
		return "", err
	}
	due := now.Add(s.policy.Delay(0, s.random)).UnixNano()
	_, err = tx.ExecContext(ctx, `INSERT INTO messages (id, event_id, payload_id, endpoint_id, type, status, created_at, due_at, queued_at)
		VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7, $7)`, id, p.event, payload, to.id, p.of.Type, now.UnixNano(), due)
	if err != nil {
		return "", fmt.Errorf("inserting a message: %w", err)
	}
	if to.next.Valid && to.next.Int64 <= due {
		return id, nil // it stands in the queue for a message that comes before
	}
	return id, s.requeue(ctx, tx, to.id)
}

// subscribers are the endpoints that get an event. One that is disabled is among
// them: its messages wait.
func (s *Sender) subscribers(ctx context.Context, tx Tx, e Event) ([]subscriber, error) {
	if s.faults.Publish != nil {
		return s.faultySubscribers(ctx, e)
	}
	rows, err := tx.QueryContext(ctx, `SELECT e.id, e.api_version, e.next_at FROM subscriptions s JOIN endpoints e ON e.id = s.endpoint_id
		WHERE (s.type = $1 OR s.type = '`+everyType+`') AND e.status <> 'deleted'`, e.Type)
	if err != nil {
		return nil, fmt.Errorf("looking for subscribers: %w", err)
	}
	defer rows.Close()
	var all []subscriber
	for rows.Next() {
		var to subscriber
		if err := rows.Scan(&to.id, &to.version, &to.next); err != nil {
			return nil, fmt.Errorf("looking for subscribers: %w", err)
		}
		all = append(all, to)
	}
	return all, rows.Err()
}

func (s *Sender) faultySubscribers(ctx context.Context, e Event) (all []subscriber, err error) {
	endpoints, err := s.endpoints(ctx, selectEndpoints+` WHERE status <> 'deleted'`)
	for _, to := range endpoints {
		if s.faults.Publish(e, to, Subscribes(to.EventTypes, e.Type)) {
			all = append(all, subscriber{id: to.ID, version: to.APIVersion})
		}
	}
	return all, err
}

// payloads stores the bytes of an event's messages, each spelling once.
type payloads struct {
	s         *Sender
	tx        Tx
	event     int64
	of        Event
	byVersion map[string]int64
}

// id is the payload of a message, in the version of its endpoint. It is rendered
// here and never again: what a retry sends is what the first attempt sent,
// whatever has changed meanwhile.
func (p *payloads) id(ctx context.Context, message, version string) (int64, error) {
	shared := len(p.of.Raw) > 0 || !Envelope(p.s.profile)
	if len(p.of.Raw) > 0 {
		version = ""
	}
	if id, ok := p.byVersion[version]; ok && shared {
		return id, nil
	}
	body := p.of.Raw
	if len(body) == 0 {
		var err error
		body, err = p.s.catalogue.Render(p.s.profile, Rendering{ID: message, Type: p.of.Type, At: p.of.Time, Version: version, Data: p.of.Data})
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if len(body) > MaxPayload {
			return 0, fmt.Errorf("%w: %w", ErrInvalid, tooLarge(len(body)))
		}
	}
	id, err := inserted(p.tx.ExecContext(ctx, `INSERT INTO payloads (body) VALUES ($1)`, body))
	if err != nil {
		return 0, fmt.Errorf("inserting a payload: %w", err)
	}
	p.byVersion[version] = id
	return id, nil
}

// ChangeRecord changes the record that a message was made from, as the business
// goes on while a retry waits. The message keeps its bytes: who receives it late
// learns what happened then. The error is [ErrNotFound] or [ErrUnavailable].
func (s *Sender) ChangeRecord(ctx context.Context, messageID string, record []byte) error {
	err := s.store.update(ctx, func(ctx context.Context, tx Tx) error {
		n, err := changed(tx.ExecContext(ctx, `UPDATE events SET record = $2 WHERE id = (SELECT event_id FROM messages WHERE id = $1)`, messageID, record))
		if err == nil && n == 0 {
			return ErrNotFound
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("changing the record of the message %q: %w", messageID, err)
	}
	return nil
}

// Record is the record that a message was made from, as it stands now; nil where
// publishing was given finished bytes.
func (s *Sender) Record(ctx context.Context, messageID string) ([]byte, error) {
	records, err := column[[]byte](s.store.query(ctx, `SELECT e.record FROM messages m JOIN events e ON e.id = m.event_id WHERE m.id = $1`, messageID))
	if err == nil && len(records) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record of the message %q: %w", messageID, err)
	}
	return records[0], nil
}
