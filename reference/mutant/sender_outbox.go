package mutant

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/whconform/whconform/reference/sender"
)

// outboxSenders break sender.outbox.*.
func outboxSenders() []SenderMutant {
	const kill, transactional, committed = "sender.outbox.survives-kill", "sender.outbox.transactional", "sender.outbox.transactional.committed"
	return []SenderMutant{
		{
			Name: "loses-retries-on-restart", Doc: "Retries wait in memory, and a restart forgets them.",
			Fails: []string{kill, committed}, Needs: []string{Managed},
			Change: prepared(`UPDATE messages SET status = 'failed', due_at = NULL, queued_at = NULL WHERE status = 'pending' AND attempts > 0`),
		},
		{
			Name: "starts-with-nothing", Doc: "What was published and not sent is lost by a restart.",
			Fails: []string{kill, committed}, Needs: []string{Managed},
			Change: prepared(`UPDATE messages SET status = 'failed', due_at = NULL, queued_at = NULL WHERE status = 'pending'`),
		},
		{
			Name: "publishes-outside-the-transaction", Doc: "A message is written by a connection of the library's own, whatever becomes of the caller's transaction.",
			Fails: []string{transactional},
			Wrap: wrapping("event.publish", func(ctx context.Context, params json.RawMessage, right sender.ControlMethod) (any, error) {
				return right(ctx, withoutTransaction(params))
			}),
		},
		{
			Name: "hands-over-after-the-commit", Doc: "A message is handed to the outbox after the caller's commit, which a kill in between prevents.",
			Fails: []string{committed}, Needs: []string{Managed, Virtual},
			Wrap: handingOver,
		},
		{
			Name: "filters-by-prefix", Doc: "An endpoint gets the types that begin like one of its own.",
			Fails: []string{"sender.outbox.filter"},
			Change: func(o *sender.Options) {
				o.Faults.Publish = func(e sender.Event, to sender.Endpoint, subscribed bool) bool {
					for _, name := range to.EventTypes {
						// Numbered types are no part of it: a run has hundreds of them.
						subscribed = subscribed || strings.HasPrefix(e.Type, name+".") || strings.HasPrefix(e.Type, name+"_")
					}
					return subscribed
				}
			},
		},
		{
			Name: "copies-share-a-signature", Doc: "All copies of an event are signed with the secret of the first endpoint that gets it.",
			Fails: []string{"sender.outbox.fan-out"},
			Change: func(o *sender.Options) {
				var first memory[string]
				var secrets memory[[]string]
				o.Faults.Secrets = func(a sender.AttemptInfo, all []string) []string {
					if to := first.keep(a.Type, a.EndpointID); to != a.EndpointID {
						return secrets.keep(to, all)
					}
					return secrets.change(a.EndpointID, func([]string) []string { return all })
				}
			},
		},
		{
			Name: "claims-nothing", Doc: "A message that one process sends is taken for abandoned by the other.",
			Fails: []string{"sender.outbox.two-dispatchers"}, Needs: []string{Instances},
			Change: func(o *sender.Options) { o.Faults.Lease = time.Nanosecond },
		},
	}
}

// withoutTransaction is the parameters of event.publish without a transaction.
func withoutTransaction(params json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(params, &members) != nil {
		return params
	}
	delete(members, "transaction")
	out, err := json.Marshal(members)
	if err != nil {
		return params
	}
	return out
}

// handingOver keeps what is published in a transaction in memory until the clock
// is moved.
func handingOver() methodWrap {
	var mu sync.Mutex
	var kept []func(context.Context) error
	hand := func(ctx context.Context) error {
		mu.Lock()
		all := kept
		kept = nil
		mu.Unlock()
		for _, publish := range all {
			if err := publish(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	return func(name string, right sender.ControlMethod) sender.ControlMethod {
		switch name {
		case "event.publish":
			return func(ctx context.Context, params json.RawMessage) (any, error) {
				if !strings.Contains(string(params), `"commit"`) {
					return right(ctx, params)
				}
				mu.Lock()
				defer mu.Unlock()
				kept = append(kept, func(ctx context.Context) error {
					_, err := right(ctx, withoutTransaction(params))
					return err
				})
				return map[string]any{"messageIds": []string{}}, nil
			}
		case "clock.advance":
			return func(ctx context.Context, params json.RawMessage) (any, error) {
				if err := hand(ctx); err != nil {
					return nil, err
				}
				return right(ctx, params)
			}
		}
		return right
	}
}
