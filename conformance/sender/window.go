package sender

import (
	"fmt"
	"time"
)

// A delay is right when it lies in a window: the schedule's delay with the
// declared jitter, and the granularity of the sender's timers behind it.

// early is how much before its window an attempt may begin in real time, where
// the sender's clock and the fake endpoint's are read at different moments and
// are cut to milliseconds. In virtual time both are the same clock.
const early = 5 * time.Millisecond

// window is the shortest and the longest delay from the end of attempt n,
// counted from 1, to the beginning of the next; for n = 0 from publishing to
// the first attempt. It panics where the schedule has no such attempt.
func (d Declared) window(n int) (low, high time.Duration) {
	delay := d.Schedule[n]
	return scaled(delay, 1+d.JitterLow), scaled(delay, 1+d.JitterHigh) + d.Granularity
}

func scaled(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }

// attemptsAtMost is how often a message is tried by the schedule.
func (d Declared) attemptsAtMost() int { return len(d.Schedule) }

// horizon is how long after publishing the last attempt of a message that
// always fails has ended, at the latest, whatever its attempts end by.
func (d Declared) horizon() time.Duration { return d.until(len(d.Schedule)) }

// until is how long after publishing attempt n has ended, at the latest, when
// all before it failed. More than the schedule has count as all it has.
func (d Declared) until(n int) time.Duration {
	var sum time.Duration
	for i := range min(n, len(d.Schedule)) {
		_, high := d.window(i)
		sum += high + d.Timeout + d.Granularity
	}
	return sum
}

// misses says what is wrong with the time of the attempt that follows attempt
// n; "" if nothing is.
func (d Declared) misses(n int, before, next *attempt) string {
	return d.outside(n, gap(before, next), next.Window)
}

// outside says what is wrong with a delay before the attempt that follows
// attempt n, where the sender's clock may have been moved past it by slack.
func (d Declared) outside(n int, gap time.Duration, slack ...time.Duration) string {
	low, high := d.window(n)
	allowed := high
	for _, s := range slack {
		allowed += s
	}
	switch {
	case gap < low-early:
		return fmt.Sprintf("%v, which is %v early", shown(gap), shown(low-gap))
	case gap > allowed:
		return fmt.Sprintf("%v, which is %v late", shown(gap), shown(gap-high))
	}
	return ""
}

// between writes the window behind attempt n.
func (d Declared) between(n int) string {
	low, high := d.window(n)
	return fmt.Sprintf("%v to %v", shown(low), shown(high))
}

// shown is a duration as people read it.
func shown(d time.Duration) time.Duration {
	if d.Abs() >= time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}
