package mutant

import (
	"strconv"
	"time"

	"github.com/whconform/whconform/reference/sender"
)

// retryAfterSenders break sender.retry-after.*.
func retryAfterSenders() []SenderMutant {
	// wish changes the Retry-After before it is followed.
	wish := func(f func(string) string) optionsChange {
		return judging(func(_ sender.AttemptInfo, _ sender.Result, o sender.Outcome) sender.Outcome {
			o.RetryAfter = f(o.RetryAfter)
			return o
		})
	}
	number := func(text string) (int64, bool) {
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil
	}
	return []SenderMutant{
		{
			Name: "ignores-retry-after", Doc: "It does not look at Retry-After.",
			Fails:  []string{"sender.retry-after.longer-wins", "sender.retry-after.http-date"},
			Change: wish(func(string) string { return "" }),
		},
		{
			Name: "retry-after-of-503-only", Doc: "It follows the Retry-After of a 503, and not that of a 429.",
			Fails: []string{"sender.retry-after.longer-wins", "sender.retry-after.http-date"},
			Change: judging(func(_ sender.AttemptInfo, r sender.Result, o sender.Outcome) sender.Outcome {
				if r.Status == 429 {
					o.RetryAfter = ""
				}
				return o
			}),
		},
		{
			Name: "retry-after-wins-always", Doc: "A Retry-After takes the place of the schedule's delay, also where it is shorter.",
			Fails: []string{"sender.retry-after.shorter-loses"},
			Change: waiting(func(_ sender.AttemptInfo, o sender.Outcome, usual time.Duration) time.Duration {
				if n, ok := number(o.RetryAfter); ok && n > 0 && n < 1e6 {
					return time.Duration(n) * time.Second
				}
				return usual
			}),
		},
		{
			Name: "retry-after-in-seconds-only", Doc: "It reads a number of seconds and no date.",
			Fails: []string{"sender.retry-after.http-date"},
			Change: wish(func(text string) string {
				if _, ok := number(text); !ok {
					return ""
				}
				return text
			}),
		},
		{
			Name: "retry-after-zero-is-now", Doc: "A Retry-After of 0 is followed at once.",
			Fails: []string{"sender.retry-after.nonsense"},
			Change: waiting(func(a sender.AttemptInfo, o sender.Outcome, usual time.Duration) time.Duration {
				if n, ok := number(o.RetryAfter); ok && n <= 0 {
					return time.Millisecond
				}
				return usual
			}),
		},
		{
			Name: "retry-after-without-a-cap", Doc: "A Retry-After of thirty years is followed.",
			Fails: []string{"sender.retry-after.nonsense"},
			Change: waiting(func(_ sender.AttemptInfo, o sender.Outcome, usual time.Duration) time.Duration {
				if n, ok := number(o.RetryAfter); ok && n >= 1e6 {
					return time.Duration(min(n, 1e9)) * time.Second
				}
				return usual
			}),
		},
	}
}
