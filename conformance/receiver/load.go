package receiver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/wire"
)

// How many deliveries the latency rows send, and how many at a time.
const (
	fastDeliveries, fastAtOnce = 100, 8
	burstAtOnce                = 64
	// floodAtOnce workers send forged deliveries: each waits for its answer, so
	// eight keep one core busy without a backlog of connections.
	floodAtOnce = 8
	// floodEvery is how often an authentic delivery is sent beside the flood.
	floodEvery = 100 * time.Millisecond
)

// volley sends n valid deliveries, at most atOnce at a time, and records them.
// With paced they obey the run's rate.
// It stops early when so many were slower than bound that the 99th percentile
// is settled: a receiver that takes ten seconds is not asked two hundred times.
func (s *session) volley(label string, n, atOnce int, bound time.Duration, paced bool) {
	var workers sync.WaitGroup
	var slow atomic.Int64
	next := make(chan int)
	for range atOnce {
		workers.Go(func() {
			for i := range next {
				name := fmt.Sprintf("%s %d of %d", label, i+1, n)
				var x wire.Exchange
				if paced {
					x = s.deliver(name)
				} else if draft, ok := s.draft(s.event()); ok {
					x = s.Provider.Send(s.ctx, s.target(), draft, name)
					s.rec.Add(x)
				}
				if x.Took > bound {
					slow.Add(1)
				}
			}
		})
	}
	for i := range n {
		if slow.Load() > int64(n/100) {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	s.over()
}

// percentile returns the p-th percentile of sorted durations: the smallest that
// p per cent do not exceed.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*p+99)/100-1, 0)]
}

// answerTimes are the times of a transcript's probes, sorted. An exchange
// without an answer counts with the time it was waited for.
func answerTimes(t *evidence.Transcript) []time.Duration {
	var times []time.Duration
	for i := range t.Exchanges {
		if x := &t.Exchanges[i]; !isControl(x) && !evidence.Throttles(x) {
			times = append(times, x.Took)
		}
	}
	slices.Sort(times)
	return times
}

// quick expects the 99th percentile to lie under a bound, and tells the
// distribution.
func quick(sent string, bound func(*evidence.Transcript) time.Duration, cause string) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		times, limit := answerTimes(t), bound(t)
		p99 := percentile(times, 99)
		if p99 <= limit {
			return nil
		}
		return []evidence.Finding{{
			Sent: sent, Expected: fmt.Sprintf("99 of 100 answered within %v", limit), Got: distribution(times), Cause: cause,
		}}
	}
}

func distribution(times []time.Duration) string {
	ms := func(p int) time.Duration { return percentile(times, p).Round(time.Millisecond) }
	return fmt.Sprintf("half within %v, 90 %% within %v, 99 %% within %v, the slowest %v", ms(50), ms(90), ms(99), ms(100))
}

// eachAccepted expects a 2xx for each of many equal deliveries, and tells in one
// finding how many were not. Throttled ones say nothing either way.
func eachAccepted(sent, cause string) judge {
	return func(t *evidence.Transcript) []evidence.Finding {
		refused := map[string][]string{}
		for i := range t.Exchanges {
			if x := &t.Exchanges[i]; !isControl(x) && !x.OK() && !evidence.Throttles(x) {
				came := suite.Came(x)
				refused[came] = append(refused[came], x.Label)
			}
		}
		var findings []evidence.Finding
		for _, came := range slices.Sorted(maps.Keys(refused)) {
			labels := refused[came]
			findings = append(findings, evidence.Finding{
				Sent: sent, Expected: "2xx to each", Got: fmt.Sprintf("%d of them: %s", len(labels), came), Cause: cause, Exchanges: labels,
			})
		}
		return findings
	}
}

// recordFlood sends forged deliveries as fast as one core makes them, and
// authentic ones beside them. Of the forged only counts are kept.
func recordFlood(s *session) {
	if !s.control() {
		return
	}
	forged, ok := s.draft(s.event(), fp.WithKeys(s.Keys.Wrong))
	if !ok {
		return
	}
	flood, stop := context.WithTimeout(s.ctx, s.Bounds.Flood+s.Bounds.FloodMore)
	defer stop()
	began := time.Now()
	var sent, rejections, throttled, other, spent atomic.Int64
	var workers sync.WaitGroup
	for range floodAtOnce {
		workers.Go(func() {
			for flood.Err() == nil {
				x := s.Provider.Send(flood, s.target(), forged, "forged")
				if flood.Err() != nil {
					return
				}
				if n := sent.Add(1); n >= s.Bounds.FloodLeast && time.Since(began) >= s.Bounds.Flood {
					stop()
				}
				spent.Add(int64(x.Took))
				switch {
				case evidence.Throttles(&x):
					throttled.Add(1)
				case x.Response != nil && x.Response.Status >= 400 && x.Response.Status < 500:
					rejections.Add(1)
				default:
					other.Add(1)
				}
			}
		})
	}
	s.beside(flood)
	workers.Wait()
	for name, n := range map[string]*atomic.Int64{"sent": &sent, "rejected": &rejections, "throttled": &throttled, "other": &other} {
		s.rec.Fact("forged "+name, strconv.FormatInt(n.Load(), 10))
	}
	s.rec.Fact("forged mean", (time.Duration(spent.Load()) / time.Duration(max(sent.Load(), 1))).Round(time.Microsecond).String())
}

// beside sends authentic deliveries until the flood ends.
func (s *session) beside(flood context.Context) {
	again := time.NewTicker(min(floodEvery, s.Bounds.Flood/10))
	defer again.Stop()
	for i := 1; ; i++ {
		select {
		case <-flood.Done():
			return
		case <-again.C:
			draft, ok := s.draft(s.event())
			if !ok {
				return
			}
			x := s.Provider.Send(s.ctx, s.target(), draft, fmt.Sprintf("authentic delivery %d beside the flood", i))
			if s.ctx.Err() == nil {
				s.rec.Add(x)
			}
		}
	}
}

// judgeFlood: authentic deliveries are served beside the flood. Here 429 to an
// authentic one is the fault itself, not a reason to skip.
func judgeFlood(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	var times []time.Duration
	for i := range t.Exchanges {
		x := &t.Exchanges[i]
		if isControl(x) {
			continue
		}
		times = append(times, x.Took)
		if !x.OK() {
			findings = append(findings, evidence.Finding{
				Sent: x.Label, Expected: "2xx", Got: suite.Came(x),
				Cause:     "The limit counts authentic deliveries together with forged ones, or the flood takes all workers.",
				Exchanges: []string{x.Label},
			})
		}
	}
	slices.Sort(times)
	if limit := fastFact(t); percentile(times, 99) > limit {
		findings = append(findings, evidence.Finding{
			Sent: "authentic deliveries beside a flood of forged ones", Expected: fmt.Sprintf("99 of 100 answered within %v", limit), Got: distribution(times),
			Cause: "Refusing a forged delivery costs as much as handling an authentic one.",
		})
	}
	return findings
}

func judgeThrottles(t *evidence.Transcript) []evidence.Finding {
	return []evidence.Finding{{
		Sent: t.Facts["forged sent"] + " forged deliveries at full speed",
		Got: fmt.Sprintf("%s were rejected, %s throttled, %s neither; one took %s on average",
			t.Facts["forged rejected"], t.Facts["forged throttled"], t.Facts["forged other"], t.Facts["forged mean"]),
	}}
}
