package receiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/whconform/whconform/reference/profile"
)

const (
	// leastRemember is how long an id is remembered at least, 24 h.
	// source: Patterns, Designing Webhooks: store processed ids ≥ 24 h.
	leastRemember = 24 * time.Hour

	// forgetEvery is how often old ids are deleted, 1 h: a twenty-fourth more
	// than needed is kept at most.
	forgetEvery = time.Hour

	// forgetBatch is how many are deleted in one transaction, 500, so that
	// deliveries never wait long behind it.
	forgetBatch = 500
)

// Remember is how long a receiver must know the ids of a provider's messages:
// 24 h, what the profile asks for, or as long as the provider may still send a
// copy by itself, whichever is longest. That is every delay of its schedule with
// the largest jitter, and the time that each attempt takes. Without a profile it
// is 24 h.
func Remember(p *profile.Profile) time.Duration {
	if p == nil {
		return leastRemember
	}
	var schedule time.Duration
	for _, d := range p.Schedule {
		schedule += d + time.Duration(float64(d)*max(p.JitterHigh, 0)) + p.AttemptTimeout
	}
	return max(leastRemember, p.Remember, schedule)
}

// keepForgetting forgets old ids at once and then every hour, until ctx is done.
func (b *Inbox) keepForgetting(ctx context.Context) {
	due := make(chan struct{}, 1)
	for {
		if _, err := b.Forget(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, ErrUnavailable) {
			b.log.Error("forgetting old messages: tried again later", "error", err)
		}
		timer := b.clock.AfterFunc(forgetEvery, func() { due <- struct{}{} })
		select {
		case <-due:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// Forget deletes the processed messages that are older than ids have to be
// remembered, and returns how many. Messages that wait or have failed stay,
// however old: nobody has done yet what they were sent for.
//
// Run calls it every hour.
func (b *Inbox) Forget(ctx context.Context) (n int64, err error) {
	before := b.clock.Now().Add(-b.remember).UnixMicro()
	for {
		var deleted int64
		err := b.db.update(ctx, func(ctx context.Context, tx Tx) (err error) {
			deleted, err = changed(tx.ExecContext(ctx, `DELETE FROM messages WHERE id IN
				(SELECT id FROM messages WHERE status = 'processed' AND received_at < $1
				ORDER BY received_at LIMIT $2`+b.db.rowLock()+`)`, before, forgetBatch))
			return err
		})
		n += deleted
		if err != nil {
			return n, fmt.Errorf("forgetting messages: %w", err)
		}
		if deleted < forgetBatch {
			return n, nil
		}
	}
}
