package receiver

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Method is one method by which a test asks the receiver for what no delivery
// can: parameters and result are JSON. See docs/adapter-protocol.md.
type Method = func(ctx context.Context, params json.RawMessage) (any, error)

// Methods are those of a receiver's adapter, by their names in the protocol:
//
//	receiver.processed {id}             {processed, failed}
//	receiver.state     {id, reference}  {state}, "" for a payment that is not known
//	receiver.failOnce  {id}             null; only with Options.TestHooks
//	clock.advance      {to}             {now}; only with a clock that can be moved
//
// c is the clock that the receiver and its inbox were made with; nil where that
// is another one. They are for tests only: whoever reaches them moves the clock.
func Methods(b *Inbox, c *MovableClock) map[string]Method {
	methods := map[string]Method{
		"receiver.processed": method(func(ctx context.Context, p eventParams) (any, error) {
			e, err := b.Event(ctx, p.ID)
			return processedResult{e.Processed, e.Failed}, err
		}),
		"receiver.state": method(func(ctx context.Context, p eventParams) (any, error) {
			state, err := b.stateOf(ctx, p.ID, p.Reference)
			return stateResult{state}, err
		}),
	}
	if b.hooks != nil {
		methods["receiver.failOnce"] = method(func(_ context.Context, p eventParams) (any, error) {
			if p.ID == "" {
				return nil, errors.New("making a message fail: its id is missing")
			}
			return nil, b.FailOnce(p.ID)
		})
	}
	if c != nil {
		methods["clock.advance"] = method(func(ctx context.Context, p advanceParams) (any, error) {
			return b.advance(ctx, c, p.To)
		})
	}
	return methods
}

// The parameters and results, as the protocol spells them.
type (
	eventParams struct {
		ID        string `json:"id"`
		Reference string `json:"reference"`
	}
	processedResult struct {
		Processed int  `json:"processed"`
		Failed    bool `json:"failed"`
	}
	stateResult struct {
		State string `json:"state"`
	}
	advanceParams struct {
		To time.Time `json:"to"`
	}
	advanceResult struct {
		Now time.Time `json:"now"`
	}
)

// method reads the parameters of f. Members that P does not have are passed
// over, as the protocol demands.
func method[P any](f func(context.Context, P) (any, error)) Method {
	return func(ctx context.Context, params json.RawMessage) (any, error) {
		var p P
		if len(params) > 0 {
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, fmt.Errorf("reading the params: %w", err)
			}
		}
		ctx, cancel := context.WithTimeout(ctx, observeTimeout)
		defer cancel()
		return f(ctx, p)
	}
}

// stateOf is the state of the payment with this id or, without one, of the
// payment that an event was about. It is empty where there is none.
func (b *Inbox) stateOf(ctx context.Context, event, id string) (string, error) {
	if id == "" {
		err := b.db.reader().QueryRowContext(ctx, `SELECT payment FROM effects WHERE event_id = $1`, storedID(event)).Scan(&id)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("looking for the payment of an event: %w", err)
		}
	}
	p, err := b.Payment(ctx, id)
	if err != nil || p.State == StatusUnknown {
		return "", err
	}
	return p.State, nil
}

// advance moves the clock and does at once what is due by then: timers that were
// set before run for as long as they were meant to.
func (b *Inbox) advance(ctx context.Context, c *MovableClock, to time.Time) (advanceResult, error) {
	now, err := c.Advance(to)
	if err != nil {
		return advanceResult{}, err
	}
	if _, err := b.Forget(ctx); err != nil {
		return advanceResult{}, fmt.Errorf("moving the clock: %w", err)
	}
	b.rouse()
	return advanceResult{now}, nil
}
