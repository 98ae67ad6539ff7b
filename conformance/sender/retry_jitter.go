package sender

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
)

// jitterEndpoints fail at one moment.
// source: requirements §2, sender.retry.jitter.
const jitterEndpoints = 50

// jitterTogether is how many of the fifty have to come back within one moment
// for the row to warn.
//
// A moment is a tenth of the step's band, or the granularity g where that is
// coarser; a step is chosen whose band is four times as wide as g at least. A
// sender that draws its delays evenly over the band, and looks for due messages
// each g, sends within a moment what is due within a moment and g before it:
// half of the band at most. That a moment which begins with one of the fifty
// holds 47 of the other 49 has a probability below
//
//	50 · (C(49,47) + C(49,48) + C(49,49)) / 2⁴⁹ = 50 · 1226 / 5.6·10¹⁴ < 1.1·10⁻¹⁰,
//
// which is that of a false alarm. A sender without jitter, or with one factor
// for all, always meets it.
const jitterTogether = 48

// jitterBands is how many granularities the band of a step is wide at least.
const jitterBands = 4

// jitterNoise is what real time adds to a delay: bands below a few of it say
// nothing on a busy machine.
const jitterNoise = 10 * time.Millisecond

// jitterStep is the first step, counted from 1, whose band is wide enough.
func (s *session) jitterStep() (n int, found bool) {
	d := s.Declared
	coarse := d.Granularity
	if !s.virtual() {
		coarse = max(coarse, jitterNoise)
	}
	for n := 1; n < d.attemptsAtMost(); n++ {
		if band := d.band(n); band > 0 && band >= jitterBands*coarse {
			return n, true
		}
	}
	return 0, false
}

// band is how wide the jitter of the delay behind attempt n is.
func (d Declared) band(n int) time.Duration {
	return scaled(d.Schedule[n], d.JitterHigh-d.JitterLow)
}

// Facts of the scenario.
const (
	jitterStepFact = "step with jitter"
	jitterName     = "fails with the others"
)

func recordJitter(s *session) {
	if s.Declared.JitterHigh <= s.Declared.JitterLow {
		return // the declaration is the evidence
	}
	n, found := s.jitterStep()
	if !found {
		s.skip(retryJitter, evidence.NotObservable, "no step of the declared schedule has a jitter that is %d times as wide as the declared granularity of %v", jitterBands, s.Declared.Granularity)
		return
	}
	if !s.affordsRetry(n, retryJitter) || !s.control() {
		return
	}
	s.rec.Fact(jitterStepFact, strconv.Itoa(n))
	all := make([]*endpoint, jitterEndpoints)
	sideBySide(len(all), func(i int) {
		all[i] = s.endpoint(fmt.Sprintf("%s (%d)", jitterName, i+1), fmt.Sprintf("500*%d,200", n))
	})
	sideBySide(len(all), func(i int) { all[i].publish() })
	if !s.await(s.within(n+1), concluded(n+1, all...)) {
		s.skip(retryJitter, evidence.NotReached, "not all of %d messages that failed were tried again", jitterEndpoints)
		return
	}
	for _, e := range all {
		if tries := e.path.Attempts(); jitterBands*s.Timeline.Window(tries[len(tries)-1].Began) > s.Declared.band(n) {
			s.skip(retryJitter, evidence.NotObservable, "the sender does not tell when something is due (next), so that its clock is moved in steps too long to tell delays apart")
			return
		}
	}
}

// judgeJitter looks at the delays and not at the times: what fails at one
// moment at the first step does so at several behind a jitter.
func judgeJitter(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	const sent = "fifty events for fifty endpoints that fail at one moment"
	if d.JitterHigh <= d.JitterLow {
		return []evidence.Finding{finding(sent, "retries that are spread over a part of the delay", "the sender declares a jitter of 0", "The delay has no random part.")}
	}
	n := numberFact(t, jitterStepFact)
	var delays []time.Duration
	var about []attempt
	for i := range jitterEndpoints {
		got := attempts(t, fmt.Sprintf("%s (%d)", jitterName, i+1))
		if len(got) > n {
			delays = append(delays, gap(&got[n-1], &got[n]))
			about = append(about, got[n])
		}
	}
	moment := max(d.Granularity, d.band(n)/10)
	together := mostWithin(delays, moment)
	if together < jitterTogether {
		return nil
	}
	slices.Sort(delays)
	return []evidence.Finding{finding(sent, fmt.Sprintf("delays behind attempt %d that are spread over the declared %v", n, shown(d.band(n))),
		fmt.Sprintf("%d of %d came within %v: after %v to %v", together, len(delays), shown(moment), shown(delays[0]), shown(delays[len(delays)-1])),
		"The delay has no random part, or the same one for all: one that is drawn at start, or from a source that is seeded alike.", about[:8]...)}
}

// mostWithin is how many of the delays lie within a span, where that is the most.
func mostWithin(delays []time.Duration, span time.Duration) int {
	sorted := slices.Sorted(slices.Values(delays))
	most, from := 0, 0
	for i := range sorted {
		for sorted[i]-sorted[from] > span {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}
