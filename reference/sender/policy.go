package sender

import (
	"errors"
	"slices"
	"time"

	"github.com/whconform/whconform/reference/profile"
)

// Policy is how persistent, how patient and how careful a sender is. Zero fields
// are filled from the profile, or with the defaults named here.
type Policy struct {
	// Schedule is the delay before each attempt, the first included, each from
	// the end of the attempt before. JitterLow and JitterHigh bound the random
	// part as shares of a delay; where both are 0 they are the profile's.
	Schedule              []time.Duration
	JitterLow, JitterHigh float64

	Timeout        time.Duration // of an attempt, to the end of its answer; 15 s
	ConnectTimeout time.Duration // until there is a connection; 5 s
	RetryAfterCap  time.Duration // the longest wish of an endpoint that is followed; 24 h

	DisableAfter    time.Duration   // without a success; 0: the profile's, negative: never
	NotifyAfter     []time.Duration // without a success, ascending; nil: the profile's
	RotationOverlap time.Duration   // how long a secret that was replaced still signs; 24 h

	PerEndpoint int           // attempts in flight at one endpoint, 2; one as long as it does not answer
	AtOnce      int           // attempts in flight altogether, 64
	Lease       time.Duration // until a message is free again whose process hangs; Timeout + 15 s

	ErrorBody     int           // bytes of an error's body that are kept, at most 1 KiB, which is the default
	KeepDelivered time.Duration // 30 d
	KeepFailed    time.Duration // from the last attempt on; 30 d
}

// The bounds that apply where neither Options nor the profile names one.
const (
	defaultTimeout        = 15 * time.Second
	defaultConnectTimeout = 5 * time.Second
	defaultRetryAfterCap  = 24 * time.Hour
	defaultOverlap        = 24 * time.Hour
	defaultKeep           = 30 * 24 * time.Hour

	// defaultPerEndpoint is 2: one attempt that hangs does not stop an
	// endpoint's messages, and an endpoint never meets a crowd.
	defaultPerEndpoint = 2

	// defaultAtOnce is 64. An endpoint that does not answer holds one slot, so
	// dozens of them leave room for the others.
	defaultAtOnce = 64

	// leaseMargin is how long an attempt's end may take beyond its timeout, 15 s:
	// the time to write it down while the database is busy.
	leaseMargin = 15 * time.Second

	// maxErrorBody is the first KiB.
	// source: 07 delivery log.
	maxErrorBody = 1 << 10
)

// fill completes a policy.
func (p Policy) fill(c *profile.Profile) (Policy, error) {
	if p.Schedule == nil {
		p.Schedule = c.Schedule
	}
	if p.JitterLow == 0 && p.JitterHigh == 0 {
		p.JitterLow, p.JitterHigh = c.JitterLow, c.JitterHigh
	}
	p.Timeout = firstOf(p.Timeout, c.AttemptTimeout, defaultTimeout)
	p.ConnectTimeout = min(firstOf(p.ConnectTimeout, c.ConnectTimeout, defaultConnectTimeout), p.Timeout)
	p.RetryAfterCap = firstOf(p.RetryAfterCap, c.RetryAfterCap, defaultRetryAfterCap)
	p.DisableAfter = max(0, firstOf(p.DisableAfter, c.DisableAfter))
	if p.NotifyAfter == nil {
		p.NotifyAfter = c.NotifyAfter
	}
	p.RotationOverlap = firstOf(p.RotationOverlap, c.RotationOverlap, defaultOverlap)
	p.PerEndpoint = firstOf(p.PerEndpoint, defaultPerEndpoint)
	p.AtOnce = firstOf(p.AtOnce, defaultAtOnce)
	p.Lease = firstOf(p.Lease, p.Timeout+leaseMargin)
	p.ErrorBody = min(firstOf(p.ErrorBody, maxErrorBody), maxErrorBody)
	p.KeepDelivered = firstOf(p.KeepDelivered, c.RetainDelivered, defaultKeep)
	p.KeepFailed = firstOf(p.KeepFailed, c.RetainFailed, defaultKeep)
	return p, p.check()
}

func (p Policy) check() error {
	switch {
	case len(p.Schedule) == 0:
		return errors.New("there is no retry schedule, neither in the policy nor in the profile")
	case slices.Min(p.Schedule) < 0:
		return errors.New("a delay of the retry schedule is negative")
	case !(p.JitterLow >= -1 && p.JitterLow <= 0 && p.JitterHigh >= 0 && p.JitterHigh <= 1):
		return errors.New("the jitter is not between -1 and 0, and 0 and 1")
	case min(p.Timeout, p.ConnectTimeout, p.RetryAfterCap, p.RotationOverlap, p.KeepDelivered, p.KeepFailed) < 0,
		min(p.PerEndpoint, p.AtOnce, p.ErrorBody) < 0:
		return errors.New("a bound is negative")
	case p.Lease < p.Timeout:
		return errors.New("the lease is shorter than an attempt: messages would be sent twice at one time")
	case !slices.IsSorted(p.NotifyAfter) || len(p.NotifyAfter) > 0 && p.NotifyAfter[0] <= 0:
		return errors.New("the times of notifications are not positive and ascending")
	}
	return nil
}

// firstOf is the first value that is not zero.
func firstOf[T comparable](values ...T) T {
	var zero T
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
}
