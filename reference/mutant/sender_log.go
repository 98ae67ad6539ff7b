package mutant

import (
	"context"
	"encoding/json"
	"time"

	"github.com/whconform/whconform/reference/sender"
)

// logSenders break sender.log.*.
func logSenders() []SenderMutant {
	const recorded = "sender.log.attempts-recorded"
	return []SenderMutant{
		{
			Name: "logs-answers-only", Doc: "An attempt that got no answer is not in the log.",
			Fails:  []string{recorded},
			Change: logging(func(line sender.Attempt) (sender.Attempt, bool) { return line, line.Status != 0 }),
		},
		{
			Name: "logs-the-last-attempt", Doc: "The log has one line for a message, written when it is settled.",
			Fails:  []string{recorded},
			Change: logging(func(line sender.Attempt) (sender.Attempt, bool) { return line, line.Number != 1 || line.Error == "" }),
		},
		{
			Name: "logs-no-bodies", Doc: "The log does not keep what an error's body says.",
			Fails: []string{recorded},
			Change: logging(func(line sender.Attempt) (sender.Attempt, bool) {
				line.Body = nil
				return line, true
			}),
		},
		{
			Name: "lists-no-failed-ones", Doc: "Messages that have failed cannot be listed.",
			Fails: []string{"sender.log.failed-list"},
			Wrap: wrapping("messages.list", func(ctx context.Context, params json.RawMessage, right sender.ControlMethod) (any, error) {
				var p struct {
					Status string `json:"status"`
				}
				if json.Unmarshal(params, &p) == nil && p.Status == sender.MessageFailed {
					return map[string]any{"messages": []any{}}, nil
				}
				return right(ctx, params)
			}),
		},
		{
			Name: "keeps-failed-ones-a-week", Doc: "Failed messages are deleted after a week.",
			Fails: []string{"sender.log.failed-list.kept"}, Needs: []string{Virtual},
			Change: policy(func(p *sender.Policy) { p.KeepFailed = 7 * 24 * time.Hour }),
			Wrap:   declaring("failedKept", (30 * 24 * time.Hour).Seconds()),
		},
	}
}
