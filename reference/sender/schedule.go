package sender

import (
	"encoding/binary"
	"io"
	"math"
	"time"
)

// Delay is how long to wait before an attempt, counted from 0 for the first:
// the schedule's delay with a random part between Policy.JitterLow and
// JitterHigh of it. The random part is drawn anew for each message and attempt,
// so that what failed at one moment does not come back at one moment.
//
// Whoever waits counts from the end of the attempt that failed: counted from its
// beginning, or from publishing, delays would shrink with every slow attempt.
// The result is never negative, and 0 for an attempt that the schedule does not
// have; [Policy.Attempts] tells how many those are. random gives 8 bytes; where
// it cannot, there is no random part.
//
// source: 07 retry schedule.
func (p Policy) Delay(attempt int, random io.Reader) time.Duration {
	if attempt < 0 || attempt >= len(p.Schedule) {
		return 0
	}
	return scaled(p.Schedule[attempt], p.JitterLow, p.JitterHigh, random)
}

// Next is the delay before an attempt after an answer with this Retry-After, ""
// for none. The longer of schedule and wish wins: an endpoint that says when it
// will be ready knows better, but a fixed "Retry-After: 1" in every error of a
// gateway would use up all attempts within seconds. The wish is followed up to
// Policy.RetryAfterCap, or a stranger's number could keep a message for years.
// It gets a random part too, upwards only, since many messages get one wish.
func (p Policy) Next(attempt int, retryAfter string, now time.Time, random io.Reader) time.Duration {
	delay := p.Delay(attempt, random)
	wish, ok := RetryAfter(retryAfter, now)
	if !ok {
		return delay
	}
	return max(delay, scaled(min(wish, p.RetryAfterCap), 0, p.JitterHigh, random))
}

// Attempts is how many attempts a message gets, the first included.
func (p Policy) Attempts() int { return len(p.Schedule) }

// scaled is d × (1 + x) for an x drawn evenly from [low, high).
func scaled(d time.Duration, low, high float64, random io.Reader) time.Duration {
	x := low + (high-low)*unit(random, low, high)
	f := float64(d) * (1 + x)
	switch {
	case !(f > 0): // NaN too
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	}
	return time.Duration(f)
}

// unit draws a number from [0, 1). Without random bytes it is the one that
// makes no difference: low + (high-low)×unit = 0.
func unit(random io.Reader, low, high float64) float64 {
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		if high == low {
			return 0
		}
		return min(max(-low/(high-low), 0), 1)
	}
	return float64(binary.LittleEndian.Uint64(b[:])>>11) / (1 << 53)
}
