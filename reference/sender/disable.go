package sender

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// whyDisable is why an endpoint is disabled after an attempt, in words for its
// owner; "" if it is not.
//
// The count begins at the end of the first failure since the last success, and
// is looked at on a failure only: an endpoint to which nothing is sent for a
// week has not failed for a week.
func (s *Sender) whyDisable(o Outcome, e standing, ended time.Time) string {
	switch {
	case o.Gone:
		return "it answered 410 Gone"
	case o.Delivered || s.policy.DisableAfter <= 0 || !e.failingSince.Valid:
		return ""
	}
	since := fromNano(e.failingSince.Int64)
	if ended.Sub(since) < s.policy.DisableAfter {
		return ""
	}
	return fmt.Sprintf("every attempt since %s has failed, the last one with: %s", since.Format(time.RFC3339), o.Error)
}

// stand is how an endpoint stands after an attempt, and what its owner is told.
func (s *Sender) stand(a *attempt, o Outcome, e standing, u Update, ended time.Time) (standing, []Notification) {
	var told []Notification
	tell := func(kind, text string) {
		told = append(told, Notification{At: ended, EndpointID: a.EndpointID, Kind: kind, Text: text})
	}
	if o.Delivered {
		e.lastSuccess = nullTime(ended)
		e.failingSince, e.notifyAt = nullTime(time.Time{}), nullTime(time.Time{})
		e.notified, e.alerted = 0, false
	} else if !e.failingSince.Valid {
		e.failingSince = nullTime(ended)
		e.notifyAt = nullTime(s.notifyAt(ended, 0))
	}
	if o.Credentials && e.lastSuccess.Valid && !e.alerted {
		e.alerted = true
		tell(NotifyCredentials, fmt.Sprintf("%s has accepted deliveries and now answers that the caller is not allowed (%s). Most likely a secret was changed on one side only. Attempts go on by the schedule.", e.url, o.Error))
	}
	if u.Disable != "" {
		e.status = EndpointDisabled
		e.notifyAt = nullTime(time.Time{})
		tell(NotifyDisabled, fmt.Sprintf("%s was disabled: %s. Its messages wait; enable it to have them sent.", e.url, u.Disable))
	}
	return e, told
}

// EnableEndpoint lets messages flow again: those that wait, at once, and later
// ones. The count of failures begins anew, so that the first hiccup after the
// repair disables nothing. The error is [ErrNotFound], or [ErrConflict] for an
// endpoint that was deleted.
func (s *Sender) EnableEndpoint(ctx context.Context, id string) error {
	return s.changeEndpoint(ctx, id, "enabling", func(ctx context.Context, tx Tx, e standing) error {
		if e.status == EndpointEnabled {
			return nil
		}
		_, err := tx.ExecContext(ctx, `UPDATE endpoints SET status = 'enabled', reason = '', failing_since = NULL,
			notify_at = NULL, notified = 0, alerted = 0, silent = 0 WHERE id = $1`, id)
		return err
	})
}

// DisableEndpoint stops the messages of an endpoint, as its owner would: they
// wait until it is enabled again. No attempt begins after it has returned; one
// that is under way comes to its end. The error is [ErrNotFound], or
// [ErrConflict] for an endpoint that was deleted.
func (s *Sender) DisableEndpoint(ctx context.Context, id string) error {
	return s.changeEndpoint(ctx, id, "disabling", func(ctx context.Context, tx Tx, e standing) error {
		if e.status == EndpointDisabled {
			return nil
		}
		_, err := tx.ExecContext(ctx, `UPDATE endpoints SET status = 'disabled', reason = 'by its owner', notify_at = NULL WHERE id = $1`, id)
		return err
	})
}

// DeleteEndpoint ends an endpoint for good: its secrets are deleted and messages
// that wait have failed. No attempt begins after it has returned. To delete it
// again changes nothing; the error is [ErrNotFound].
func (s *Sender) DeleteEndpoint(ctx context.Context, id string) error {
	err := s.changeEndpoint(ctx, id, "deleting", func(ctx context.Context, tx Tx, _ standing) error {
		_, err := tx.ExecContext(ctx, `UPDATE messages SET status = CASE status WHEN 'pending' THEN 'failed' ELSE status END,
			finished_at = coalesce(finished_at, $2), due_at = NULL, manual_at = NULL, queued_at = NULL
			WHERE endpoint_id = $1 AND queued_at IS NOT NULL`, id, s.clock.Now().UnixNano())
		if err != nil {
			return err
		}
		for _, statement := range []string{
			`UPDATE endpoints SET status = 'deleted', reason = 'by its owner', notify_at = NULL WHERE id = $1`,
			`DELETE FROM secrets WHERE endpoint_id = $1`,
			`DELETE FROM subscriptions WHERE endpoint_id = $1`,
		} {
			if _, err := tx.ExecContext(ctx, statement, id); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, ErrConflict) {
		return nil
	}
	return err
}
