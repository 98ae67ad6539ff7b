package fakeprovider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/whconform/whconform/reference/signature"
)

// The bounds of a load.
const (
	// MaxRate bounds the deliveries begun a second: twice what one machine
	// sends and a receiver on it answers. More is a typing error.
	MaxRate = 100_000

	// MaxLoadDuration bounds how long a load lasts: one that was forgotten ends
	// within the hour.
	MaxLoadDuration = time.Hour

	// MaxConnections bounds the connections of a load. Most systems allow a
	// process 1024 files at first.
	MaxConnections = 1000

	// DefaultConnections is how many there are at most where nothing is said:
	// enough for 500 deliveries a second that take an eighth of a second each.
	DefaultConnections = 64

	// MaxCopies bounds how often an event is sent: a provider that ends after
	// that many attempts is not known.
	MaxCopies = 100
)

// LoadConfig says what a load consists of. Deliveries come at a constant rate,
// whether the receiver keeps up or not: that is how events happen.
type LoadConfig struct {
	// Rate is how many deliveries are due each second, copies, duplicates and
	// forgeries included; above 0, at most MaxRate.
	Rate float64
	// Duration is for how long they become due; above 0, at most
	// MaxLoadDuration. What was not sent by then is still sent for as long as
	// an answer may take (Target.Answer), then given up.
	Duration time.Duration

	// Copies is how often each event is sent, the same bytes in deliveries that
	// follow one another and often overlap; 0 and 1: once; at most MaxCopies.
	Copies int
	// Duplicates is the share of events, from 0 to 1, that are not new but one
	// of the last thousand once more, signed anew, as a provider retries.
	Duplicates float64
	// Forged is the share of events, from 0 to 1, that are signed by keys which
	// nobody else has. They are counted apart: none may be accepted.
	Forged float64

	// Connections is how many are open at most; 0: DefaultConnections; at most
	// MaxConnections. A delivery that finds all of them taken waits, and what it
	// waits is a part of its latency.
	Connections int

	Keys []signature.Key // required; each of them signs
	Type string          // of the events; empty: the profile's first
	// Event makes the body of an event; nil: the profile's example. It is called
	// by several goroutines at a time.
	Event func(id, eventType string) ([]byte, error)

	// Seed decides which events are duplicates and forgeries: the same seed, the
	// same ones.
	Seed uint64

	// Second, where it is set, is told each second what happened in it. It is
	// called by one goroutine at a time, and should return at once.
	Second func(LoadSecond)
}

// LoadSecond is one second of a load.
type LoadSecond struct {
	Second   int           // 1 is the first
	Due      int64         // deliveries that were due by its end, of the whole load
	Sent     int64         // deliveries begun in it
	Accepted int64         // answered with a 2xx in it
	Refused  int64         // answered with another status in it
	Failed   int64         // not answered: ended by a fault in it
	Max      time.Duration // the largest latency that was seen in it
}

// LoadResult is what became of a load.
type LoadResult struct {
	Rate        float64       // as it was asked for
	Duration    time.Duration // likewise
	Connections int           // likewise
	Seed        uint64        // likewise

	Due     int64         // deliveries that were due
	Sent    int64         // of which were begun
	Sending time.Duration // for how long deliveries were begun: Duration, longer where the receiver did not keep up
	Elapsed time.Duration // until the last was answered
	Events  int64         // different events among what was sent, forgeries not counted
	// Dialed is how many connections were opened. Resent is how many deliveries
	// were sent once more because a connection that had been used was closed
	// before a byte of the answer came; the receiver may have had them before.
	Dialed, Resent int64

	FirstFault string // the first fault in words, or ""

	// Genuine are first deliveries and their copies, Duplicates events that were
	// sent before, Forged what must be refused.
	Genuine, Duplicates, Forged LoadCount

	// Latency is how long genuine deliveries and duplicates took, from the
	// instant they were due to the end of the answer's head; not from when they
	// were sent: a receiver that stands still for a second has made everybody
	// wait who came in it, and not only the one whom it held. Deliveries that got no
	// answer in time, and those that were never sent since the connections were
	// taken, count with what they waited; other faults do not count.
	Latency *Distribution
	// ForgedLatency is the same of forgeries.
	ForgedLatency *Distribution
	// Waited is how long deliveries waited to be sent, which is a part of their
	// latency. Where it is large the connections were too few, or this machine
	// too slow.
	Waited *Distribution
}

// LoadCount is what became of deliveries of one kind.
type LoadCount struct {
	Sent     int64 `json:"sent"`
	Accepted int64 `json:"accepted"` // answered with a 2xx
	Refused  int64 `json:"refused"`  // answered with a rejection of the profile: mostly 400, 401, 403, 422
	Other    int64 `json:"other"`    // answered otherwise
	Failed   int64 `json:"failed"`   // ended by a fault
	// Unsent were due and not sent: all connections were taken until the end.
	// Cancelled were in flight when the context ended.
	Unsent    int64 `json:"unsent"`
	Cancelled int64 `json:"cancelled"`

	Statuses map[int]int64    `json:"statuses"` // by the answer's status
	Faults   map[string]int64 `json:"faults"`   // by wire.Fault
}

// AchievedRate is how many deliveries a second were sent.
func (r *LoadResult) AchievedRate() float64 {
	if r.Sending <= 0 {
		return 0
	}
	return float64(r.Sent) / r.Sending.Seconds()
}

// Unanswered is how many deliveries got no answer, forgeries included.
func (r *LoadResult) Unanswered() int64 {
	n := int64(0)
	for _, c := range []LoadCount{r.Genuine, r.Duplicates, r.Forged} {
		n += c.Failed + c.Unsent
	}
	return n
}

// Load sends deliveries at a constant rate and returns what became of them.
// Everything is signed when it is sent. Connections are kept and used again, as
// providers do; one on which an answer has no plain end is not.
//
// Before the load one connection is opened: where that fails nothing is sent,
// and the error says why. When ctx is done the load ends, and the result so far
// comes with an error that wraps its cause. Other errors are of the
// configuration or of an event that cannot be made.
//
// It ends by itself: after Duration what is late is sent for to.Answer more, and
// the last of that has to.Connect and to.Answer for its own answer. Its memory
// depends on Connections, some 50 KiB each with TLS, and with Duplicates on the
// size of events, 8 MiB at most; not on Rate or Duration.
func (p *Provider) Load(ctx context.Context, to Target, c LoadConfig) (*LoadResult, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("loading: %w", err)
	}
	l, err := p.newLoader(to, c)
	if err != nil {
		return nil, fmt.Errorf("loading: %w", err)
	}
	if err := l.conns.warm(ctx); err != nil {
		return nil, fmt.Errorf("loading: nothing was sent: %w", err)
	}
	return l.run(ctx)
}

// Check tells what is wrong with a configuration before anything is sent: the
// first fault, nil where there is none.
func (c *LoadConfig) Check() error {
	share := func(v float64) bool { return v >= 0 && v <= 1 }
	switch {
	case !(c.Rate > 0) || c.Rate > MaxRate:
		return fmt.Errorf("the rate is %v a second, want more than 0 and at most %d", c.Rate, MaxRate)
	case c.Duration <= 0 || c.Duration > MaxLoadDuration:
		return fmt.Errorf("the duration is %v, want more than 0 and at most %v", c.Duration, MaxLoadDuration)
	case dueWithin(c.Duration, c.Rate) < 1:
		return fmt.Errorf("not one delivery is due within %v at %v a second", c.Duration, c.Rate)
	case c.Copies < 0 || c.Copies > MaxCopies:
		return fmt.Errorf("there are %d copies, want 1 to %d", c.Copies, MaxCopies)
	case c.Connections < 0 || c.Connections > MaxConnections:
		return fmt.Errorf("there are %d connections, want 1 to %d", c.Connections, MaxConnections)
	case !share(c.Forged) || !share(c.Duplicates) || c.Forged+c.Duplicates > 1:
		return fmt.Errorf("the shares are %v forged and %v duplicates, want 0 to 1 each and together", c.Forged, c.Duplicates)
	case len(c.Keys) == 0:
		return errors.New("a key is required")
	}
	return nil
}
