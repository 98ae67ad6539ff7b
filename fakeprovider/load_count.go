package fakeprovider

import (
	"slices"
	"sync"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// loadKind is what a delivery of a load is.
type loadKind int

const (
	genuine loadKind = iota
	duplicate
	forged
	kinds
)

// answer is what came back, as far as a load looks at it.
type answer struct {
	status    int
	at        time.Time // the end of its head
	fault     string    // in its place: one of the wire.Fault constants, or ""
	detail    string    // of the fault, for people
	cancelled bool      // the fault is that the load was ended
}

// tally counts. It is small enough to be held for a moment by one worker at a
// time.
type tally struct {
	rejections []int

	mu      sync.Mutex
	counts  [kinds]LoadCount
	latency [2]Distribution // of what is genuine or repeated, of forgeries
	waited  Distribution
	last    time.Duration // when the last one was begun, from the beginning
	fault   string        // the first one, in words
	current LoadSecond    // since it was last asked for
}

func newTally(rejections []int) *tally {
	t := &tally{rejections: rejections}
	for k := range t.counts {
		t.counts[k].Statuses, t.counts[k].Faults = map[int]int64{}, map[string]int64{}
	}
	return t
}

// begin counts a delivery that is sent after it waited, so long after the
// beginning of the load.
func (t *tally) begin(k loadKind, at, waited time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last, at)
	t.counts[k].Sent++
	t.current.Sent++
	t.waited.add(waited)
}

// unsent counts a delivery that was given up before it was sent.
func (t *tally) unsent(k loadKind, waited time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[k].Unsent++
	t.waited.add(waited)
	t.latencyOf(k).add(waited)
}

func (t *tally) latencyOf(k loadKind) *Distribution {
	if k == forged {
		return &t.latency[1]
	}
	return &t.latency[0]
}

// end counts what came back, so long after the delivery was due.
func (t *tally) end(k loadKind, a answer, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	count := &t.counts[k]
	switch {
	case a.cancelled:
		count.Cancelled++
		return
	case a.fault != "":
		count.Failed++
		count.Faults[a.fault]++
		t.current.Failed++
		if t.fault == "" {
			t.fault = a.detail
		}
		if a.fault != wire.FaultTimeout {
			return // who refuses a connection at once is not fast
		}
	default:
		count.Statuses[a.status]++
		t.answered(count, a.status)
	}
	t.latencyOf(k).add(took)
	t.current.Max = max(t.current.Max, took)
}

func (t *tally) answered(count *LoadCount, status int) {
	switch {
	case status >= 200 && status < 300:
		count.Accepted++
		t.current.Accepted++
		return
	case slices.Contains(t.rejections, status):
		count.Refused++
	default:
		count.Other++
	}
	t.current.Refused++
}

// second is what was counted since the last call.
func (t *tally) second(number int, due int64) LoadSecond {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.current
	out.Second, out.Due = number, due
	t.current = LoadSecond{}
	return out
}

// fill puts the counts into a result. Nothing is counted any more.
func (t *tally) fill(r *LoadResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Genuine, r.Duplicates, r.Forged = t.counts[genuine], t.counts[duplicate], t.counts[forged]
	r.Latency, r.ForgedLatency, r.Waited = &t.latency[0], &t.latency[1], &t.waited
	for _, c := range t.counts {
		r.Sent += c.Sent
	}
	r.FirstFault = t.fault
	if r.Sent > 0 {
		r.Sending = t.last + time.Duration(float64(time.Second)/r.Rate)
	}
}
