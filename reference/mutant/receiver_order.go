package mutant

import (
	"net/http"
	"strconv"
	"sync/atomic"
)

// orderMutants break receiver.order.*.
func orderMutants() []Mutant {
	return append(stateMutants(), Mutant{
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
	})
}

// stateMutants make of an event about a payment what they should not.
func stateMutants() []Mutant {
	asks := []string{"receiver.order.asks-provider"}
	return []Mutant{
		{
			Name: "last-event-wins", Doc: "It gives a payment the state of the event that came last.",
			Fails: []string{"receiver.order.state-does-not-regress"},
			New:   storing(business{follows: func(_, _ payment) bool { return true }}.store),
		},
		{
			Name: "believes-events", Doc: "It takes what a signed event says for the truth, and asks nobody.", Fails: asks,
			New: storing(business{believes: true}.store),
		},
		{
			Name: "compares-no-amount", Doc: "It asks the provider for a payment, and does not look at the amount.", Fails: asks,
			New: storing(business{agrees: func(said, is payment) bool { return said.Reference == is.Reference }}.store),
		},
		{
			Name: "compares-no-reference", Doc: "It asks the provider for a payment, and does not look at what it was for.", Fails: asks,
			New: storing(business{agrees: func(said, is payment) bool { return said.Amount == is.Amount }}.store),
		},
		{
			Name: "asks-before-it-answers", Doc: "It asks the provider for a payment before it answers the delivery.", Fails: asks,
			New: storing(business{beforehand: true}.store),
		},
	}
}
