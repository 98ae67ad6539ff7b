package sender

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// settle writes down how an attempt came out: the line in the log, the message's
// next state and what follows for its endpoint, in one transaction.
func (s *Sender) settle(a *attempt, r Result, o Outcome, ended time.Time) {
	line := Attempt{
		MessageID: a.MessageID, EndpointID: a.EndpointID, Number: a.Number, Manual: a.Manual,
		At: a.Began, Duration: max(0, ended.Sub(a.Began)), Status: r.Status, Fault: r.Fault, Error: o.Error,
	}
	if a.Manual {
		line.Number = 0
	}
	if !o.Delivered {
		line.Body = r.Body[:min(len(r.Body), s.policy.ErrorBody)]
	}
	// Drawn once, also where the transaction is tried again.
	delay := s.policy.Next(a.Number, o.RetryAfter, ended, s.random)
	if s.faults.Delay != nil {
		delay = s.faults.Delay(a.AttemptInfo, o, delay)
	}
	s.persist(a, func(ctx context.Context, tx Tx) error {
		return s.write(ctx, tx, a, line, o, ended, delay)
	})
	s.tellOutcome(a, o)
}

func (s *Sender) tellOutcome(a *attempt, o Outcome) {
	s.counts.add(a.EndpointID, o.Delivered)
	if o.Delivered {
		s.log.Debug("delivered", "message", a.MessageID, "endpoint", a.EndpointID, "attempt", a.Number, "manual", a.Manual)
		return
	}
	s.log.Info("an attempt failed", "message", a.MessageID, "endpoint", a.EndpointID, "attempt", a.Number, "manual", a.Manual, "because", o.Error)
}

// write is settle's transaction.
func (s *Sender) write(ctx context.Context, tx Tx, a *attempt, line Attempt, o Outcome, ended time.Time, delay time.Duration) error {
	if err := s.logAttempt(ctx, tx, line); err != nil {
		return err
	}
	e, err := readStanding(ctx, tx, a.EndpointID)
	if err != nil {
		return err
	}
	u := s.follow(a, o, e, ended, delay)
	if s.faults.Update != nil {
		u = s.faults.Update(a.AttemptInfo, o, u)
	}
	if err := s.updateMessage(ctx, tx, a, u, ended); err != nil {
		return err
	}
	return s.updateEndpoint(ctx, tx, a, o, e, u, ended)
}

// follow is what follows from an attempt for its message and its endpoint.
func (s *Sender) follow(a *attempt, o Outcome, e standing, ended time.Time, delay time.Duration) Update {
	u := Update{Status: a.status, Count: !a.Manual}
	switch {
	case o.Delivered:
		u.Status = MessageDelivered
	case a.status == MessageDelivered:
		// A delivered message that was sent again by hand stays delivered.
	case e.status == EndpointDeleted:
		u.Status = MessageFailed
	case a.Manual:
		if a.due.Valid { // the schedule goes on as if nothing had been
			u.Next = fromNano(a.due.Int64)
		}
	case a.Number >= s.policy.Attempts():
		u.Status = MessageFailed
	default:
		u.Next = ended.Add(delay)
	}
	if e.status == EndpointEnabled {
		u.Disable = s.whyDisable(o, e, ended)
	}
	return u
}

func (s *Sender) logAttempt(ctx context.Context, tx Tx, line Attempt) error {
	if s.faults.Log != nil {
		var keep bool
		if line, keep = s.faults.Log(line); !keep {
			return nil
		}
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO attempts (message_id, endpoint_id, number, manual, began_at, duration, status, fault, error, body)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, line.MessageID, line.EndpointID, line.Number, flag(line.Manual),
		line.At.UnixNano(), line.Duration.Nanoseconds(), line.Status, line.Fault, line.Error, line.Body)
	return err
}

// updateMessage gives the message its next state, if it is still this process's:
// a lease that has ended may have been taken over.
func (s *Sender) updateMessage(ctx context.Context, tx Tx, a *attempt, u Update, ended time.Time) error {
	// A resend that was asked for while this attempt was under way is not the
	// one that was claimed, and stays.
	const manual = `CASE WHEN manual_at = $6 THEN NULL ELSE manual_at END`
	n, err := changed(tx.ExecContext(ctx, `UPDATE messages SET status = $3, attempts = attempts + $4, due_at = $5,
		manual_at = `+manual+`, queued_at = `+earlier("$5", "("+manual+")")+`,
		finished_at = $7, owner = NULL, leased_at = NULL, lease_until = NULL
		WHERE id = $1 AND owner = $2 AND leased_at = $8`,
		a.MessageID, s.store.me, u.Status, flag(u.Count), nullTime(u.Next), a.manual, finished(u.Status, ended), a.Began.UnixNano()))
	if err == nil && n == 0 {
		s.log.Warn("an attempt ended after its lease: the message may be sent twice", "message", a.MessageID)
	}
	return err
}

// finished is the time at which a message came to rest, NULL while it is pending.
func finished(status string, at time.Time) sql.NullInt64 {
	if status == MessagePending {
		return sql.NullInt64{}
	}
	return nullTime(at)
}

// nullTime is a time as it is stored; the zero time is NULL.
func nullTime(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixNano(), Valid: !t.IsZero()}
}

// timeOf is the inverse of nullTime.
func timeOf(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return fromNano(n.Int64)
}

// standing is how an endpoint stands.
type standing struct {
	url, status                                  string
	created, lastSuccess, failingSince, notifyAt sql.NullInt64
	notified                                     int
	alerted                                      bool
}

func readStanding(ctx context.Context, tx Tx, endpoint string) (e standing, err error) {
	err = tx.QueryRowContext(ctx, `SELECT url, status, created_at, last_success, failing_since, notify_at, notified, alerted
		FROM endpoints WHERE id = $1`, endpoint).
		Scan(&e.url, &e.status, &e.created, &e.lastSuccess, &e.failingSince, &e.notifyAt, &e.notified, &e.alerted)
	if err != nil {
		return e, fmt.Errorf("reading the endpoint %s: %w", endpoint, err)
	}
	return e, nil
}

// updateEndpoint writes down how an endpoint stands after an attempt, and gives
// it its place in the queue.
func (s *Sender) updateEndpoint(ctx context.Context, tx Tx, a *attempt, o Outcome, e standing, u Update, ended time.Time) error {
	e, told := s.stand(a, o, e, u, ended)
	for _, n := range told {
		if err := s.notify(ctx, tx, n); err != nil {
			return err
		}
	}
	reason := sql.NullString{String: u.Disable, Valid: u.Disable != ""}
	_, err := tx.ExecContext(ctx, `UPDATE endpoints SET next_at = `+place("$5", "$11", servedBefore)+`,
		status = $5, reason = coalesce($6, reason), last_success = $7, failing_since = $8, notify_at = $9, notified = $10,
		trusted = $11, silent = $12, alerted = $13 WHERE id = $1`,
		a.EndpointID, s.clock.Now().UnixNano(), s.policy.PerEndpoint, flag(s.faults.IgnoreStatus),
		e.status, reason, e.lastSuccess, e.failingSince, e.notifyAt, e.notified, flag(!o.Unanswered), flag(o.Unanswered), flag(e.alerted))
	return err
}
