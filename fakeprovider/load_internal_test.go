package fakeprovider

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"pgregory.net/rapid"

	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// virtual is a clock on which waiting takes no time: whoever waits moves it.
// With one worker everything on it is exact.
type virtual struct{ *clock.Mock }

func (v virtual) Timer(d time.Duration) *clock.Timer {
	t := v.Mock.Timer(d)
	v.Add(d)
	return t
}

func newVirtual() virtual {
	v := virtual{clock.NewMock()}
	v.Set(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	return v
}

// virtualLoad is a load of one connection to a receiver that takes serve(n) for
// its delivery n, on a virtual clock. It returns when deliveries were begun, too.
func virtualLoad(t *testing.T, c LoadConfig, serve func(n int) (time.Duration, answer)) (*LoadResult, []time.Duration) {
	t.Helper()
	l, v := virtualLoader(t, c)
	var begun []time.Duration
	start := v.Now()
	l.send = func(context.Context, []byte) answer {
		begun = append(begun, v.Now().Sub(start))
		took, a := serve(len(begun) - 1)
		if took > 0 {
			v.Add(took)
		}
		a.at = v.Now()
		return a
	}
	r, err := l.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r, begun
}

func virtualLoader(t testing.TB, c LoadConfig) (*loader, virtual) {
	t.Helper()
	contract, err := profile.Load("standard-webhooks")
	if err != nil {
		t.Fatal(err)
	}
	v := newVirtual()
	p, err := New(Config{Profile: contract, Clock: v, Rand: rand.NewChaCha8([32]byte{1})})
	if err != nil {
		t.Fatal(err)
	}
	key, err := signature.NewKey(p.scheme, "current", rand.NewChaCha8([32]byte{2}))
	if err != nil {
		t.Fatal(err)
	}
	c.Connections, c.Keys = 1, []signature.Key{key}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	l, err := p.newLoader(Target{URL: "http://127.0.0.1:1/", Answer: 10 * time.Second}, c)
	if err != nil {
		t.Fatal(err)
	}
	return l, v
}

func TestDeliveriesAreBegunWhenTheyAreDue(t *testing.T) {
	r, begun := virtualLoad(t, LoadConfig{Rate: 40, Duration: 2 * time.Second}, func(int) (time.Duration, answer) {
		return time.Millisecond, answer{status: 200}
	})
	if len(begun) != 80 {
		t.Fatalf("%d deliveries, want 80", len(begun))
	}
	for n, at := range begun {
		if want := time.Duration(n) * 25 * time.Millisecond; at != want {
			t.Fatalf("delivery %d was begun after %v, want %v", n, at, want)
		}
	}
	if r.AchievedRate() != 40 || r.Latency.Max() != time.Millisecond || r.Waited.Max() != 0 {
		t.Errorf("rate %v, latency up to %v, waited up to %v", r.AchievedRate(), r.Latency.Max(), r.Waited.Max())
	}
}

func TestAStallIsFeltByEverybodyWhoCameInIt(t *testing.T) {
	const stall, usual, every = time.Second, time.Millisecond, 10 * time.Millisecond
	r, begun := virtualLoad(t, LoadConfig{Rate: 100, Duration: 3 * time.Second}, func(n int) (time.Duration, answer) {
		if n == 50 {
			return stall, answer{status: 200}
		}
		return usual, answer{status: 200}
	})
	// The same by hand: each is begun when it is due or when the one before is
	// answered, and took what passed since it was due.
	var want []time.Duration
	free := time.Duration(0)
	for n := range 300 {
		due, service := time.Duration(n)*every, usual
		if n == 50 {
			service = stall
		}
		free = max(due, free) + service
		want = append(want, free-due)
	}
	slices.Sort(want)
	for _, p := range []float64{50, 90, 99, 99.9, 100} {
		exact := want[int(max(1, p/100*300+0.999999))-1]
		if got := r.Latency.Percentile(p); got < exact || got > exact+exact/128+time.Microsecond {
			t.Errorf("p%v is %v, want %v", p, got, exact)
		}
	}
	slow := 0
	for _, v := range want {
		if v > 100*time.Millisecond {
			slow++
		}
	}
	// Measured from when they were sent, one would be slow.
	if slow < 90 || r.Latency.Percentile(100-float64(slow-1)/3) < 100*time.Millisecond {
		t.Errorf("%d are slow, want the hundred that came in the stall", slow)
	}
	if len(begun) != 300 || r.Sent != 300 || r.Waited.Max() != stall-every {
		t.Errorf("%d sent, one waited %v", r.Sent, r.Waited.Max())
	}
}

func TestAReceiverThatIsTooSlowEndsTheLoadAllTheSame(t *testing.T) {
	r, begun := virtualLoad(t, LoadConfig{Rate: 10, Duration: 10 * time.Second}, func(int) (time.Duration, answer) {
		return time.Second, answer{status: 200}
	})
	// One a second for the ten seconds and for the ten of an answer.
	if len(begun) != 20 || r.Sent != 20 || r.Due != 100 || r.Genuine.Unsent != 80 || r.Unanswered() != 80 {
		t.Errorf("%d begun, %d sent of %d, %d unsent", len(begun), r.Sent, r.Due, r.Genuine.Unsent)
	}
	if r.Latency.Count() != 100 || r.Latency.Max() < 17*time.Second {
		t.Errorf("%d latencies up to %v: those that were never sent count with what they waited", r.Latency.Count(), r.Latency.Max())
	}
	if rate := r.AchievedRate(); rate < 1 || rate > 1.1 {
		t.Errorf("achieved %v a second, want one", rate)
	}
}

func TestWhatRefusesAtOnceIsNotFast(t *testing.T) {
	r, _ := virtualLoad(t, LoadConfig{Rate: 10, Duration: time.Second}, func(n int) (time.Duration, answer) {
		switch {
		case n < 5:
			return time.Millisecond, answer{fault: wire.FaultReset, detail: "first"}
		case n < 7:
			return 50 * time.Millisecond, answer{fault: wire.FaultTimeout, detail: "second"}
		}
		return 2 * time.Millisecond, answer{status: 503}
	})
	if r.Latency.Count() != 5 || r.Latency.Min() != 2*time.Millisecond || r.Latency.Max() != 50*time.Millisecond {
		t.Errorf("%d latencies from %v to %v", r.Latency.Count(), r.Latency.Min(), r.Latency.Max())
	}
	g := r.Genuine
	if g.Failed != 7 || g.Faults[wire.FaultReset] != 5 || g.Faults[wire.FaultTimeout] != 2 || g.Other != 3 || g.Statuses[503] != 3 || r.FirstFault != "first" {
		t.Errorf("%+v, first %q", g, r.FirstFault)
	}
}

func TestEachSecondIsTold(t *testing.T) {
	var told []LoadSecond
	over := make(chan struct{})
	l, v := virtualLoader(t, LoadConfig{Rate: 10, Duration: 2 * time.Second, Second: func(s LoadSecond) {
		if told = append(told, s); len(told) == 2 {
			close(over)
		}
	}})
	l.schedule = schedule{began: v.Now(), rate: 10, count: 20}
	l.tally.begin(genuine, 0, 0)
	l.tally.end(genuine, answer{status: 200}, time.Millisecond)
	l.tally.begin(genuine, 0, 0)
	l.tally.end(genuine, answer{status: 500}, time.Second)
	l.tell(over)
	// On this clock time is always up, so it may be told of one more.
	if len(told) < 2 || told[0] != (LoadSecond{Second: 1, Due: 10, Sent: 2, Accepted: 1, Refused: 1, Max: time.Second}) || told[1] != (LoadSecond{Second: 2, Due: 20}) {
		t.Errorf("told %+v", told)
	}
}

func TestPercentilesAreNeverTooSmallAndHardlyTooLarge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 300_000), rapid.Int64Range(0, int64(2*time.Hour))), 1, 200).Draw(t, "values")
		var d Distribution
		for _, v := range values {
			d.add(time.Duration(v))
		}
		slices.Sort(values)
		p := rapid.Float64Range(0, 100).Draw(t, "p")
		rank := 1
		for float64(rank) < p/100*float64(len(values)) {
			rank++
		}
		exact := time.Duration(values[rank-1])
		if got := d.Percentile(p); got < exact || got > exact+exact/128+time.Microsecond {
			t.Fatalf("p%v is %v, want %v", p, got, exact)
		}
		if d.Count() != int64(len(values)) || d.Min() != time.Duration(values[0]) || d.Max() != time.Duration(values[len(values)-1]) {
			t.Fatalf("%d from %v to %v", d.Count(), d.Min(), d.Max())
		}
	})
	var none Distribution
	if none.Percentile(50) != 0 || none.Mean() != 0 {
		t.Error("an empty one has values")
	}
	none.add(-time.Second)
	none.add(100 * time.Hour)
	if none.Percentile(0) > time.Microsecond || none.Percentile(100) > 100*time.Hour || none.Max() != 100*time.Hour {
		t.Errorf("%v, %v", none.Percentile(0), none.Percentile(100))
	}
}

func TestTheSameSeedChoosesTheSame(t *testing.T) {
	kindsOf := func(seed uint64) []loadKind {
		l, _ := virtualLoader(t, LoadConfig{Rate: 1, Duration: time.Hour, Copies: 3, Forged: 0.1, Duplicates: 0.2, Seed: seed})
		var out []loadKind
		for n := range int64(600) {
			out = append(out, l.parcels.kind(n))
		}
		return out
	}
	one := kindsOf(7)
	if !slices.Equal(one, kindsOf(7)) || slices.Equal(one, kindsOf(8)) {
		t.Error("the seed does not decide")
	}
	count := map[loadKind]int{}
	for n, k := range one {
		count[k]++
		if k != one[n/3*3] {
			t.Fatalf("copy %d is of another kind than the first", n)
		}
	}
	if count[forged] < 20 || count[forged] > 130 || count[duplicate] < 60 || count[duplicate] > 200 {
		t.Errorf("%v of 600, want about 60 and 120", count)
	}
}

func TestWhatIsKeptOfEventsIsBounded(t *testing.T) {
	l, _ := virtualLoader(t, LoadConfig{Rate: 1, Duration: time.Hour, Copies: 2, Duplicates: 0.5})
	s := l.parcels
	var buffer []byte
	for n := range int64(6000) {
		request, _, err := s.make(n, buffer[:0])
		if err != nil {
			t.Fatal(err)
		}
		buffer = request
	}
	if len(s.recent) != recentEvents || len(s.shared) != 0 {
		t.Errorf("%d events are kept to be repeated, %d for their copies", len(s.recent), len(s.shared))
	}
	for range 20 {
		s.remember(loadEvent{body: make([]byte, 1<<20)})
	}
	if s.size > recentBytes || len(s.recent) > 8 {
		t.Errorf("%d B in %d events", s.size, len(s.recent))
	}
	s.remember(loadEvent{body: make([]byte, recentBytes+1)})
	if s.size > recentBytes {
		t.Errorf("%d B", s.size)
	}
}

func TestAnEventThatCannotBeMadeEndsTheLoad(t *testing.T) {
	broken := errors.New("no such event")
	l, _ := virtualLoader(t, LoadConfig{Rate: 100, Duration: time.Second, Event: func(string, string) ([]byte, error) { return nil, broken }})
	l.send = func(context.Context, []byte) answer { return answer{status: 200} }
	if r, err := l.run(t.Context()); !errors.Is(err, broken) || r.Sent != 0 {
		t.Errorf("%v, %d sent", err, r.Sent)
	}
}

// FuzzLoadHead compares the short reader of heads with the long one.
func FuzzLoadHead(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.0 204\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 401 No\nA: b\n\n",
		"HTTP/1.1 200\r\nA: b\r\n c\r\n\r\n", "HTTP/1.1 200\r\n A: b\r\n\r\n", "HTTP/1.1 99 x\r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 200\r\n: x\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		long, errLong := newResponseReader(bytes.NewReader(text)).head("POST")
		short, errShort := newResponseReader(bytes.NewReader(text)).loadHead()
		var a, b *notHTTP
		if (errLong == nil) != (errShort == nil) || errors.As(errLong, &a) != errors.As(errShort, &b) {
			t.Fatalf("%q: %v, want %v", text, errShort, errLong)
		}
		if errLong == nil && long.Status != short.status {
			t.Fatalf("%q: status %d, want %d", text, short.status, long.Status)
		}
	})
}

func TestAConnectionIsUsedAgainOnlyWhereTheAnswersEndIsKnown(t *testing.T) {
	nobody, other := net.Pipe() // for its deadlines
	defer nobody.Close()
	defer other.Close()
	for text, want := range map[string]bool{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok":                                  true,
		"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n":                                    true,
		"HTTP/1.1 204 No Content\r\n\r\n":                                                 true,
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n":                          true,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n":       true,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nmore":   false,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay":                                false,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: Close\r\n\r\nok":             false,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive, close\r\n\r\nok": false,
		"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok":                                  false,
		"HTTP/1.1 200 OK\r\n\r\nok":                                                       false,
		"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok":                               false,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok":             false,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n 3\r\n\r\nok":                            false,
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nok":                        false,
		"HTTP/1.1 101 Switching Protocols\r\n\r\n":                                        false,
	} {
		r := newResponseReader(strings.NewReader(text))
		h, err := r.loadHead()
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		c := &conn{Conn: nobody, reader: *r}
		if got := h.keep && c.skipBody(h) && r.r.Buffered() == 0; got != want {
			t.Errorf("%q: used again: %t, want %t", text, got, want)
		}
	}
	if _, err := newResponseReader(strings.NewReader("HTTP/1.1 200 " + strings.Repeat("x", 32<<10))).loadHead(); err == nil {
		t.Error("a line without an end is read")
	}
	endless := io.MultiReader(strings.NewReader("HTTP/1.1 200 OK\r\n"), strings.NewReader(strings.Repeat("A: b\r\n", HeadLimit/6+1)))
	if _, err := newResponseReader(endless).loadHead(); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("an endless head: %v", err)
	}
}
