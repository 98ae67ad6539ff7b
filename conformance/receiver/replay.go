package receiver

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/wire"
)

// receiver.replay: an old request is worth nothing.
func replayRules() []rule {
	return []rule{
		{
			id: "receiver.replay.rejects-stale",
			probes: func(s *session) []probe {
				return []probe{one(fmt.Sprintf("validly signed %v ago", 2*s.tolerance()), fp.Age(2*s.tolerance()))}
			},
			judge: rejected("The timestamp is not compared with the clock, so a captured delivery can be sent again for ever."),
		},
		{
			id: "receiver.replay.rejects-future",
			probes: func(s *session) []probe {
				ahead := 2 * max(s.tolerance(), s.Profile.Signature.Timestamp.Future)
				return []probe{one(fmt.Sprintf("validly signed %v ahead", ahead), fp.At(ahead))}
			},
			judge: rejected("Only the past is checked: a delivery signed ahead of time stays good for as long as it likes."),
		},
		{
			id: "receiver.replay.accepts-small-skew",
			probes: func(s *session) []probe {
				return []probe{
					one("validly signed 5 s ago", fp.Age(5*time.Second)),
					one("validly signed 5 s ahead", fp.At(5*time.Second)),
				}
			},
			judge: accepted("The tolerance is too tight. A few seconds pass on the way, and clocks differ by as much."),
		},
		{
			id: "receiver.replay.accepts-skew",
			probes: func(s *session) []probe {
				near := (8 * s.tolerance() / 10).Truncate(time.Second)
				return []probe{
					one(fmt.Sprintf("validly signed %v ago", near), fp.Age(near)),
					one(fmt.Sprintf("validly signed %v ahead", near), fp.At(near)),
				}
			},
			judge: accepted("The tolerance is tighter than the documented one, so deliveries are lost when clocks drift."),
		},
		{
			id:     "receiver.replay.tolerance",
			record: recordTolerance,
			judge:  judgeTolerance,
		},
		{
			id:    "receiver.replay.clock",
			use:   PreflightScenario,
			judge: judgeClock,
		},
		{
			id: "receiver.replay.rejects-malformed-timestamp",
			probes: func(s *session) []probe {
				now := s.Clock.Now()
				var probes []probe
				for _, t := range []struct{ label, text string }{
					{"abc", "abc"}, {"nothing", ""}, {"-1", "-1"}, {"1e400", "1e400"}, {"NaN", "NaN"}, {"nan", "nan"}, {"inf", "inf"}, {"-Infinity", "-Infinity"}, {"2^63", "9223372036854775808"},
					{"hex", "0x" + strconv.FormatInt(now.Unix(), 16)},
					{"milliseconds", strconv.FormatInt(now.UnixMilli(), 10)},
					{"microseconds", strconv.FormatInt(now.UnixMicro(), 10)},
					{"an ISO date", now.UTC().Format(time.RFC3339)},
				} {
					probes = append(probes, one("the timestamp "+t.label+", signed as it stands", fp.Timestamp(t.text)))
				}
				return probes
			},
			judge: rejected("The timestamp is parsed leniently, or a failed parse (NaN, 0) passes the comparison with the clock."),
		},
		{
			id: "receiver.replay.lenient-timestamp",
			probes: func(s *session) []probe {
				now := strconv.FormatInt(s.Clock.Now().Unix(), 10)
				var probes []probe
				for _, t := range []struct{ label, text string }{
					{"with a fraction", now + ".5"}, {"after a blank", " " + now}, {"after a plus sign", "+" + now},
					{"after a zero", "0" + now}, {"before letters", now + "abc"},
				} {
					probes = append(probes, one("the timestamp "+t.label+", signed as it stands", fp.Timestamp(t.text)))
				}
				return probes
			},
			judge: reported,
		},
		{
			id: exactReplay,
			record: func(s *session) {
				d := s.event()
				draft, ok := s.draft(d)
				if !ok || !s.controlDraft(draft) {
					return
				}
				s.sendDraft("the captured request again, inside the tolerance", draft)
				s.count(exactReplay, replayedEvent, d.ID)
			},
			judge: all(
				copiesAccepted("A copy is answered as an error. The provider takes that for a failed delivery and goes on sending."),
				processedOnce(replayedEvent, lostCause, "Only the timestamp guards against a replay, and inside the tolerance it guards against nothing.")),
		},
	}
}

const (
	exactReplay   = "receiver.replay.exact-replay"
	replayedEvent = "an event whose request was captured and sent again"
)

// toleranceSteps bounds the bisection: from two hours to a second takes 13.
const (
	toleranceTop   = 2 * time.Hour
	toleranceSteps = 13
)

// recordTolerance finds the accepted window in each direction by bisection: the
// largest age that is still accepted, to the second.
func recordTolerance(s *session) {
	if !s.control() {
		return
	}
	for _, d := range []struct {
		name string
		at   func(time.Duration) fp.Alteration
	}{{"past", fp.Age}, {"future", fp.At}} {
		probe := func(off time.Duration) bool {
			x := s.deliver(fmt.Sprintf("%v in the %s", off, d.name), d.at(off))
			return x.OK()
		}
		if probe(toleranceTop) {
			s.rec.Fact("window "+d.name, "more than "+toleranceTop.String())
			continue
		}
		low, high := time.Duration(0), toleranceTop
		for range toleranceSteps {
			if high-low <= time.Second {
				break
			}
			middle := ((low + high) / 2).Truncate(time.Second)
			if probe(middle) {
				low = middle
			} else {
				high = middle
			}
		}
		s.rec.Fact("window "+d.name, low.String())
	}
}

func judgeTolerance(t *evidence.Transcript) []evidence.Finding {
	return []evidence.Finding{{
		Sent: "valid deliveries of different ages",
		Got:  fmt.Sprintf("accepted up to %s in the past and %s in the future; the profile says %s", t.Facts["window past"], t.Facts["window future"], t.Facts[evidence.FactTolerance]),
	}}
}

// judgeClock compares the receiver's Date header with the run's clock. The
// header has whole seconds, so up to a second says nothing.
func judgeClock(t *evidence.Transcript) []evidence.Finding {
	x := t.Find(t.Facts[factAccepted])
	if x == nil || x.Response == nil {
		return nil
	}
	finding := evidence.Finding{Sent: "a valid delivery", Got: "the answer has no Date header", Exchanges: []string{x.Label}}
	if offset, ok := clockOffset(x); ok {
		finding.Got = "the receiver's clock is within a second of this one"
		if offset < -time.Second || offset > time.Second {
			finding.Got = fmt.Sprintf("the receiver's clock is %v off, by its Date header", offset.Round(time.Second))
		}
	}
	return []evidence.Finding{finding}
}

// clockOffset is how far the receiver's clock is ahead of the run's.
func clockOffset(x *wire.Exchange) (time.Duration, bool) {
	if x.Response == nil {
		return 0, false
	}
	text, ok := wire.Get(x.Response.Headers, "Date")
	if !ok {
		return 0, false
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return date.Sub(x.Ended), true
}
