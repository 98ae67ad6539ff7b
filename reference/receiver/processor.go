package receiver

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Handler is the business: what an event means. It runs outside of any
// transaction, so it may ask somebody and wait for the answer, and returns what
// is to be changed; nil changes nothing.
//
// Every step can run twice: a crash may come at any moment, and what was not
// committed is done again. So a Handler changes nothing by itself. What its
// Effect writes is committed together with the note that the message is
// processed, or not at all.
//
// After an error the message is tried again later; after one that [Permanent]
// made, not until somebody asks for it. Either way the error stands beside the
// message, where operators read it: no secret belongs into it.
type Handler func(ctx context.Context, m Message) (Effect, error)

// Effect writes what an event changes. It must not wait for anything but tx:
// others wait for the transaction to end.
type Effect func(ctx context.Context, tx Tx) error

// Permanent marks an error that trying again cannot mend.
func Permanent(err error) error { return &permanentError{err} }

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

const (
	// firstWait is how long a message that failed once waits for its second
	// attempt, 1 s; each further wait is four times as long, up to longestWait.
	firstWait   = time.Second
	longestWait = 15 * time.Minute

	// maxErrorBytes is how much of an error is kept beside a message, 1 KiB.
	maxErrorBytes = 1 << 10
)

// errRunning is returned by a second Run.
var errRunning = errors.New("the inbox is being processed already")

// Run processes the messages that wait, the longest waiting first and several at
// a time, and forgets ids that no provider will send again, until ctx is done.
// What waits when it starts, because a crash or a shutdown came between its 2xx
// and its processing, is done first.
//
// It returns nil after ctx is done and the work under way has ended.
func (b *Inbox) Run(ctx context.Context) error {
	if !b.running.CompareAndSwap(false, true) {
		return errRunning
	}
	defer b.running.Store(false)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { b.keepForgetting(ctx) })

	free := make(chan struct{}, b.workers)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		c, err := b.db.claim(ctx, b.clock.Now())
		if ctx.Err() == nil {
			b.tell(b.reading, err)
		}
		switch {
		case err != nil:
			<-free
			b.pause(ctx)
		case c == nil:
			<-free
			b.idle(ctx)
		default:
			all.Go(func() {
				defer func() { <-free }()
				b.work(ctx, c)
			})
		}
	}
}

// pause waits before something that failed is tried again, in real time, in
// which databases recover.
func (b *Inbox) pause(ctx context.Context) {
	timer := time.NewTimer(b.poll)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// idle waits until there may be something to claim.
func (b *Inbox) idle(ctx context.Context) {
	if due, ok := b.nextDue(ctx); ok {
		timer := b.clock.AfterFunc(due, b.rouse)
		defer timer.Stop()
	}
	poll := time.NewTimer(b.poll)
	defer poll.Stop()
	select {
	case <-b.wake:
	case <-poll.C:
		b.look(ctx)
	case <-ctx.Done():
	}
}

// look lets the writer find out about a fault that no delivery has met yet.
func (b *Inbox) look(ctx context.Context) {
	if b.db.check() == nil {
		return
	}
	nothing := func(context.Context, Tx) error { return nil }
	_ = b.db.update(ctx, nothing) // the writer reports it
}

// nextDue is the time until the next message is due, if that is in the future.
func (b *Inbox) nextDue(ctx context.Context) (time.Duration, bool) {
	var at *int64
	if err := b.db.reader().QueryRowContext(ctx, selectNextDue).Scan(&at); err != nil || at == nil {
		return 0, false // an error shows at the next claim
	}
	d := time.UnixMicro(*at).Sub(b.clock.Now())
	return d, d > 0
}

// work does one message. Where that cannot be written down it keeps the message
// for a while, or the next worker would try in vain at once.
func (b *Inbox) work(ctx context.Context, c *claim) {
	defer c.release()
	err := b.process(ctx, c)
	if ctx.Err() != nil {
		return
	}
	if err == nil || !errors.Is(err, ErrUnavailable) { // else the writer has told
		b.tell(b.settling, err)
	}
	if err != nil {
		b.pause(ctx)
	}
}

// process does one message and writes down how it went.
func (b *Inbox) process(ctx context.Context, c *claim) error {
	effect, failure := b.handle(ctx, c.Message)
	if ctx.Err() != nil {
		return ctx.Err() // interrupted, not failed: it still waits
	}
	var came outcome
	err := c.settle(ctx, func(ctx context.Context, tx Tx) (err error) {
		came, err = b.settle(ctx, tx, c, effect, failure)
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case came.taken:
		b.log.Debug("another process was faster", "id", c.ID)
	case came.failure == nil:
		b.counts.processed.Add(1)
		b.log.Debug("processed", "id", c.ID)
	case came.again > 0:
		b.log.Warn("processing failed", "id", c.ID, "attempt", c.attempts+1, "again in", came.again, "error", came.failure)
		b.rouse() // to set the timer
	default:
		b.counts.failed.Add(1)
		b.log.Error("processing failed: the message stands on the failed list", "id", c.ID, "attempts", c.attempts+1, "error", came.failure)
	}
	return nil
}

// handle asks the handler. A handler that panics has failed at this message; the
// others are processed as ever.
func (b *Inbox) handle(ctx context.Context, m Message) (effect Effect, err error) {
	defer survive(&err)
	if b.hooks.fails(m.ID) {
		return nil, errFailOnce
	}
	return b.handler(ctx, m)
}

// survive turns a panic into an error.
func survive(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

// outcome is how processing a message came out.
type outcome struct {
	taken   bool          // somebody else had processed it
	failure error         // of the handler or its effect
	again   time.Duration // until the next attempt; 0: none
}

// settle writes down that c is processed, together with its effect, or how it
// failed.
func (b *Inbox) settle(ctx context.Context, tx Tx, c *claim, effect Effect, failure error) (outcome, error) {
	now := b.clock.Now()
	if failure == nil {
		taken := false
		failure = within(ctx, tx, "effect", func(ctx context.Context, tx Tx) (err error) {
			defer survive(&err)
			// The note comes first: it locks the row, and whoever comes second
			// finds it changed and leaves the effect alone.
			n, err := changed(tx.ExecContext(ctx, markProcessed, c.ID, now.UnixMicro()))
			if taken = n == 0; err != nil || taken || effect == nil {
				return err
			}
			return effect(ctx, tx)
		})
		if errors.Is(failure, errNotTakenBack) || ctx.Err() != nil {
			return outcome{}, failure
		}
		if failure == nil {
			return outcome{taken: taken}, nil
		}
	}
	out := outcome{failure: failure, again: b.wait(c, failure)}
	text := plainError(failure)
	var err error
	var n int64
	if out.again > 0 {
		n, err = changed(tx.ExecContext(ctx, markTryAgain, c.ID, now.Add(out.again).UnixMicro(), text))
	} else {
		n, err = changed(tx.ExecContext(ctx, markFailed, c.ID, now.UnixMicro(), text))
	}
	out.taken = n == 0
	return out, err
}

// wait is how long c waits for its next attempt, 0 when there is none.
func (b *Inbox) wait(c *claim, failure error) time.Duration {
	if _, permanent := errors.AsType[*permanentError](failure); permanent || c.attempts+1 >= b.attempts {
		return 0
	}
	d := firstWait
	for range c.attempts {
		if d *= 4; d >= longestWait {
			return longestWait
		}
	}
	return d
}

// plainError is what is kept of an error beside a message.
func plainError(err error) string {
	return clip(err.Error(), maxErrorBytes)
}
