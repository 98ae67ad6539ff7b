package fakeprovider

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
)

// loader is one load at work. Its workers take deliveries in the order in which
// they become due, wait for that instant, and send. What no worker is free for
// waits, and is sent late: the schedule does not move.
type loader struct {
	config   LoadConfig
	clock    clock.Clock
	schedule schedule
	parcels  *parcels
	send     func(ctx context.Context, request []byte) answer // by conns
	conns    *conns
	tally    *tally

	next   atomic.Int64 // the delivery that is taken next
	drain  time.Duration
	failed func(error) // ends the load
}

// schedule says when deliveries are due.
type schedule struct {
	began time.Time
	rate  float64
	count int64
	ends  time.Time // nothing is begun from then on
}

// due is when delivery n, counted from 0, is to be sent. It is counted from the
// beginning, so that errors do not add up.
func (s *schedule) due(n int64) time.Time {
	return s.began.Add(time.Duration(math.Round(float64(n) * float64(time.Second) / s.rate)))
}

// dueBefore is how many deliveries were due before an instant.
func (s *schedule) dueBefore(now time.Time) int64 {
	return min(s.count, dueWithin(now.Sub(s.began), s.rate))
}

// dueWithin is how many deliveries are due within a time: the first at once,
// none at the very end.
func dueWithin(d time.Duration, rate float64) int64 {
	// The least error of a product must not add one: 0.3 s at 10 a second are 3.
	return max(0, int64(math.Ceil(d.Seconds()*rate-1e-6)))
}

func (p *Provider) newLoader(to Target, c LoadConfig) (*loader, error) {
	if c.Copies == 0 {
		c.Copies = 1
	}
	if c.Connections == 0 {
		c.Connections = DefaultConnections
	}
	if c.Type == "" {
		c.Type = p.profile.EventTypes[0]
	}
	if to.Answer <= 0 {
		to.Answer = AnswerTimeout
	}
	addr, err := parseTarget(to)
	if err != nil {
		return nil, err
	}
	parcels, err := p.newParcels(addr, to, &c)
	if err != nil {
		return nil, err
	}
	l := &loader{config: c, clock: p.clock, parcels: parcels, drain: to.Answer}
	l.conns = newConns(addr, to, p.clock.Now)
	l.send = l.conns.send
	l.tally = newTally(p.profile.Rejections())
	return l, nil
}

// run sends everything and waits for the end of it.
func (l *loader) run(ctx context.Context) (*LoadResult, error) {
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.failed = cancel
	defer l.conns.close()
	unwatch := context.AfterFunc(work, l.conns.interrupt)
	defer unwatch()

	now := l.clock.Now()
	l.schedule = schedule{began: now, rate: l.config.Rate, count: dueWithin(l.config.Duration, l.config.Rate), ends: now.Add(l.config.Duration + l.drain)}
	var workers sync.WaitGroup
	for range min(int64(l.config.Connections), l.schedule.count) {
		workers.Go(func() { l.work(work) })
	}
	over := make(chan struct{})
	var reporter sync.WaitGroup
	if l.config.Second != nil {
		reporter.Go(func() { l.tell(over) })
	}
	workers.Wait()
	close(over)
	reporter.Wait()
	result := l.result()
	if err := context.Cause(work); err != nil {
		result.Due = l.schedule.dueBefore(l.clock.Now())
		return result, fmt.Errorf("loading: ended after %d of %d deliveries: %w", result.Sent, l.schedule.count, err)
	}
	return result, nil
}

// work sends deliveries until none is left. A worker has at most one delivery,
// and none takes a later one before an earlier one is taken.
func (l *loader) work(ctx context.Context) {
	var buffer []byte
	for ctx.Err() == nil {
		n := l.next.Add(1) - 1
		if n >= l.schedule.count {
			return
		}
		due := l.schedule.due(n)
		if !l.await(ctx, due) {
			return
		}
		buffer = l.deliver(ctx, n, due, buffer[:0])
	}
}

// deliver sends delivery n and counts it. It returns the buffer to use again.
func (l *loader) deliver(ctx context.Context, n int64, due time.Time, buffer []byte) []byte {
	begun := l.clock.Now()
	if !begun.Before(l.schedule.ends) {
		kind := l.parcels.kind(n)
		l.parcels.drop(n)
		l.tally.unsent(kind, begun.Sub(due))
		return buffer
	}
	request, kind, err := l.parcels.make(n, buffer)
	if err != nil {
		l.failed(err)
		return buffer
	}
	l.tally.begin(kind, begun.Sub(l.schedule.began), begun.Sub(due))
	got := l.send(ctx, request)
	if got.fault != "" {
		got.at, got.cancelled = l.clock.Now(), ctx.Err() != nil
		for _, key := range l.config.Keys { // a receiver may answer with the secret it knows
			got.detail = string(key.Redact([]byte(got.detail)))
		}
	}
	l.tally.end(kind, got, got.at.Sub(due))
	return request
}

// await waits for an instant; false when ctx ended first.
func (l *loader) await(ctx context.Context, due time.Time) bool {
	wait := due.Sub(l.clock.Now())
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := l.clock.Timer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tell reports each second until the load is over, and what is left of the last
// one.
func (l *loader) tell(over <-chan struct{}) {
	for second := 1; ; second++ {
		end := l.schedule.began.Add(time.Duration(second) * time.Second)
		timer := l.clock.Timer(end.Sub(l.clock.Now()))
		select {
		case <-timer.C:
			l.config.Second(l.tally.second(second, l.schedule.dueBefore(end)))
		case <-over:
			timer.Stop()
			if last := l.tally.second(second, l.schedule.dueBefore(l.clock.Now())); last.Sent+last.Accepted+last.Refused+last.Failed > 0 {
				l.config.Second(last)
			}
			return
		}
	}
}

// result is what was counted.
func (l *loader) result() *LoadResult {
	r := &LoadResult{
		Due: l.schedule.count, Rate: l.config.Rate, Duration: l.config.Duration, Connections: l.config.Connections, Seed: l.config.Seed,
		Elapsed: l.clock.Now().Sub(l.schedule.began), Events: l.parcels.events.Load(),
		Dialed: l.conns.dialed.Load(), Resent: l.conns.resent.Load(),
	}
	l.tally.fill(r)
	return r
}
