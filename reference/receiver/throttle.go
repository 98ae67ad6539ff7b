package receiver

import (
	"golang.org/x/time/rate"
)

// Limit is how many deliveries that do not verify are answered as such.
type Limit struct {
	PerSecond float64 // refill; 0 means DefaultForged.PerSecond
	Burst     int     // at once, after a quiet time; 0 means DefaultForged.Burst
}

// DefaultForged is the limit for failed verifications when none is configured,
// 500 a second with 1,000 at once. A provider whose secret was rotated on one
// side only stays far below it, and so does somebody who tries a few hundred
// forgeries in a few seconds to see that each is refused; a flood does not.
func DefaultForged() Limit { return Limit{PerSecond: 500, Burst: 1000} }

// throttle limits what forgeries may cost.
//
// It counts failed verifications alone, and it is asked after a verification
// failed, never before one: a limit on deliveries as such would let whoever can
// send forgeries decide that the authentic ones are refused. A verification
// costs about as much as reading the bytes it covers, so it is not the thing
// to save. What is saved is everything after it: beyond the limit a forgery is
// answered 429 and leaves no line in the log.
type throttle struct{ bucket *rate.Limiter }

func newThrottle(l Limit) throttle {
	def := DefaultForged()
	if l.PerSecond == 0 {
		l.PerSecond = def.PerSecond
	}
	if l.Burst == 0 {
		l.Burst = def.Burst
	}
	return throttle{rate.NewLimiter(rate.Limit(l.PerSecond), l.Burst)}
}
