package receiver

import (
	"fmt"
	"math"
	"strconv"

	"github.com/whconform/whconform/conformance/evidence"
	fp "github.com/whconform/whconform/fakeprovider"
)

// timingPairs is how many interleaved pairs are timed: a Welch t of 4.5 then
// shows a difference of a tenth of the answer time's spread.
const timingPairs = 2000

// recordTiming times forged signatures that differ from the true one in their
// first byte and in their last, in turn, so that drift of the machine falls on
// both alike.
func recordTiming(s *session) {
	if !s.Bounds.Load {
		s.skip("receiver.signature.constant-time", evidence.NotObservable, "answer times of another host drown the difference")
		return
	}
	if !s.control() {
		return
	}
	var first, last moments
	for i := range timingPairs {
		order := []struct {
			m    *moments
			byte int
		}{{&first, 0}, {&last, -1}}
		if i%2 == 1 {
			order[0], order[1] = order[1], order[0]
		}
		for _, o := range order {
			draft, ok := s.draft(s.event(), flipByte(o.byte))
			if !ok {
				return
			}
			x := s.Provider.Send(s.ctx, s.target(), draft, "timed")
			if x.Response != nil {
				o.m.add(float64(x.Took.Nanoseconds()))
			}
		}
	}
	t := (first.mean - last.mean) / math.Sqrt(first.variance()/first.n+last.variance()/last.n)
	s.rec.Fact("pairs", strconv.Itoa(timingPairs))
	s.rec.Fact("t", strconv.FormatFloat(t, 'f', 2, 64))
	s.rec.Fact("difference", fmt.Sprintf("%.0f ns", last.mean-first.mean))
}

// moments are the running mean and variance of a sample (Welford).
type moments struct{ n, mean, m2 float64 }

func (m *moments) add(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / m.n
	m.m2 += d * (x - m.mean)
}

func (m *moments) variance() float64 {
	if m.n < 2 {
		return 0
	}
	return m.m2 / (m.n - 1)
}

// flipByte changes one bit of one byte of the MAC; a negative index counts from
// the end.
func flipByte(i int) fp.Alteration {
	return mapMAC("one bit of the signature changed", func(mac []byte) { mac[(i+len(mac))%len(mac)] ^= 1 })
}

func judgeTiming(t *evidence.Transcript) []evidence.Finding {
	value, err := strconv.ParseFloat(t.Facts["t"], 64)
	if err != nil || math.IsNaN(value) {
		return nil
	}
	got := fmt.Sprintf("no difference seen (Welch t = %.2f, %s on average)", value, t.Facts["difference"])
	if math.Abs(value) > 4.5 {
		got = fmt.Sprintf("answer times differ (Welch t = %.2f, %s on average): the comparison may end at the first wrong byte", value, t.Facts["difference"])
	}
	return []evidence.Finding{{Sent: t.Facts["pairs"] + " pairs of signatures, wrong in the first or in the last byte", Got: got}}
}
