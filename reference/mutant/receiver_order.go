package mutant

import (
	"net/http"
	"strconv"
	"sync/atomic"
)

// orderMutants break receiver.order.*, as far as the wire shows it.
func orderMutants() []Mutant {
	return []Mutant{{
		Name: "wants-order", Doc: "It refuses an event that is much older than the newest it has seen.",
		// It cannot tell an event that comes late from a clock that is slow.
		Fails: []string{"receiver.order.accepts-out-of-order", "receiver.replay.accepts-skew"},
		New: answering(func(c Config) func(*http.Request, []byte, int) int {
			var newest atomic.Int64
			return func(req *http.Request, _ []byte, right int) int {
				at, err := strconv.ParseInt(req.Header.Get("webhook-timestamp"), 10, 64)
				if err != nil || right != http.StatusOK {
					return right
				}
				if at < newest.Load()-45 {
					return http.StatusConflict
				}
				newest.Store(max(newest.Load(), min(at, c.Clock.Now().Unix())))
				return right
			}
		}),
	}}
}
