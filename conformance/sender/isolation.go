package sender

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
)

// What a hanging endpoint may cost others: rows of sender.timeout.

// Bounds of these rows.
// source: requirements §2, sender.timeout.
const (
	publishCalls    = 100                    // of which one may take longer
	publishTimes    = 3                      // as long as to a healthy endpoint
	publishMore     = 100 * time.Millisecond // and that much more
	publishAbsolute = 100 * time.Millisecond
	isolationPiled  = 100 // messages for the hanging endpoint
	isolationDelay  = 2 * time.Second
	// isolationOverlap is how long two requests have to be open together to count
	// as in flight at one time; each of them hangs for seconds.
	isolationOverlap = 100 * time.Millisecond
)

// publishBound is how long a call that does not return is waited for, in real
// time: far more than any bound above.
const publishBound = 3 * time.Second

// publishRounds is how often the calls are timed, the best of which counts: a
// machine that is busy makes one round slow, and a sender that waits for its
// deliveries each of them. A round ends early when its calls have taken
// publishRound in all: they are slow then, and more of them say nothing more.
const (
	publishRounds = 3
	publishRound  = 3 * time.Second
)

const (
	healthyName  = "answers 200 at once"
	hangingName  = "never answers"
	publishFact  = "99th percentile of publishing to an endpoint that " // + name, of the best round
	longestFact  = "longest call to publish to an endpoint that "       // + name, of that round
	publishEnded = "publishing did not return"                          // to the hanging endpoint, within publishBound
)

// recordPublishReturns times calls to publish, one to each endpoint in turn, so
// that what slows the machine down slows both.
func recordPublishReturns(s *session) {
	if !s.control() {
		return
	}
	healthy, hanging := s.endpoint(healthyName, "200"), s.endpoint(hangingName, "hang")
	var best [2]timing
	lags := lagsFromNow()
	defer lags.stop()
	calls := publishCalls
	if s.Bounds.Sparse {
		calls /= 4
	}
	for round := range publishRounds {
		var now [2]timing
		for n := 0; n < calls && now[1].sum() < publishRound; n++ {
			for i, e := range []*endpoint{healthy, hanging} {
				took, returned := e.timePublish()
				if s.over() {
					return
				}
				if !returned {
					s.rec.Fact(publishEnded, publishBound.String())
					return
				}
				now[i] = append(now[i], took)
			}
		}
		if round == 0 || now[1].percentile() < best[1].percentile() {
			best = now
		}
		if best[1].percentile() <= publishAbsolute {
			break
		}
	}
	if lag := lags.stop(); best[1].percentile() > publishAbsolute && lag > publishLag {
		s.skip(timeoutPublishAbs, evidence.NotObservable, "this machine is too busy to tell: its own timers were up to %v late", shown(lag))
	}
	for i, name := range []string{healthyName, hangingName} {
		s.rec.Fact(publishFact+name, best[i].percentile().String())
		s.rec.Fact(longestFact+name, slices.Max(best[i]).String())
	}
}

// publishLag is how late a machine's own timers may be for an absolute bound on
// a call to say something about the sender: a fifth of the bound.
const publishLag = publishAbsolute / 5

// lagPause is how long each timer of a lagMeter runs.
const lagPause = 5 * time.Millisecond

// lagMeter watches how late the timers of this process are: a measure of how
// busy the machine is.
type lagMeter struct {
	end  chan struct{}
	once sync.Once
	done sync.WaitGroup
	seen timing
}

func lagsFromNow() *lagMeter {
	m := &lagMeter{end: make(chan struct{})}
	m.done.Go(func() {
		for {
			began := time.Now()
			timer := time.NewTimer(lagPause)
			select {
			case <-timer.C:
				m.seen = append(m.seen, time.Since(began)-lagPause)
			case <-m.end:
				timer.Stop()
				return
			}
		}
	})
	return m
}

// stop ends it and returns the 99th percentile. Stopping twice is no error.
func (m *lagMeter) stop() time.Duration {
	m.once.Do(func() { close(m.end) })
	m.done.Wait()
	return m.seen.percentile()
}

// timing is how long calls took.
type timing []time.Duration

// percentile is the 99th.
func (t timing) percentile() time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	return sorted[(len(sorted)*99+99)/100-1]
}

// sum is how long all of them took.
func (t timing) sum() time.Duration {
	var sum time.Duration
	for _, d := range t {
		sum += d
	}
	return sum
}

// timePublish publishes an event and tells how long the call took, in real
// time, or that it did not return in publishBound. An adapter that is told to
// end the call may still do so.
func (e *endpoint) timePublish() (took time.Duration, returned bool) {
	if e.unmade() {
		return 0, false
	}
	event := drive.Event{Type: e.eventType, At: e.s.now(), Payload: e.s.payload(e.eventType, e.label()), EndpointIDs: []string{e.id}}
	ctx, cancel := context.WithTimeoutCause(e.s.ctx, publishBound, errNotReturned)
	defer cancel()
	began := time.Now()
	ids, err := e.s.Subject.Publish(ctx, event)
	took = time.Since(began)
	e.s.ledger.note(e.s.id, ids)
	switch {
	case err == nil:
		return took, true
	case ctx.Err() != nil && e.s.ctx.Err() == nil:
		return took, false
	}
	e.s.fail(fmt.Errorf("publishing to the endpoint %q: %w", e.name, err))
	return took, false
}

var errNotReturned = errors.New("publishing did not return")

func judgePublishReturns(t *evidence.Transcript) []evidence.Finding {
	const cause = "Publishing sends, or waits for a free worker or a lock that sending holds."
	sent := fmt.Sprintf("%d events for an endpoint that %s", publishCalls, hangingName)
	if bound, ended := t.Facts[publishEnded]; ended {
		return []evidence.Finding{finding(sent, "publishing returns at once", "a call did not return within "+bound, cause)}
	}
	healthy, hanging := durationFact(t, publishFact+healthyName), durationFact(t, publishFact+hangingName)
	if limit := publishTimes*healthy + publishMore; hanging > limit {
		return []evidence.Finding{finding(sent, fmt.Sprintf("99 of 100 calls return within %v: %d times what they take for a healthy endpoint, and %v", shown(limit), publishTimes, publishMore),
			fmt.Sprintf("99 of 100 within %v, the longest in %v", shown(hanging), shown(durationFact(t, longestFact+hangingName))), cause)}
	}
	return nil
}

func judgePublishAbsolute(t *evidence.Transcript) []evidence.Finding {
	sent := fmt.Sprintf("%d events for an endpoint that %s", publishCalls, hangingName)
	expected := fmt.Sprintf("99 of 100 calls return within %v", publishAbsolute)
	if bound, ended := t.Facts[publishEnded]; ended {
		return []evidence.Finding{finding(sent, expected, "a call did not return within "+bound, "Publishing waits for the delivery.")}
	}
	if hanging := durationFact(t, publishFact+hangingName); hanging > publishAbsolute {
		return []evidence.Finding{finding(sent, expected, fmt.Sprintf("99 of 100 within %v, the longest in %v", shown(hanging), shown(durationFact(t, longestFact+hangingName))),
			"Publishing does more than one insert.")}
	}
	return nil
}

// recordIsolation piles messages up for a hanging endpoint and then publishes to
// another one. It watches until two more attempts have timed out, as a sender
// that begins with one of them at a time is allowed to.
func recordIsolation(s *session) {
	if !s.control() {
		return
	}
	hanging := s.endpoint(hangingName, "hang")
	healthy := s.endpoint(healthyName, "200")
	sideBySide(isolationPiled, func(int) { hanging.publish() })
	if !hanging.awaitArrived(1, s.firstWithin()) {
		return
	}
	healthy.publish()
	healthy.await(1, s.firstWithin()+time.Duration(isolationPiled)*s.patientTimeout())
	s.await(3*s.Declared.gaveUpBy(), concluded(2*s.Declared.PerEndpoint+1, hanging))
}

// patientTimeout is what one hanging attempt may hold up an event that waits
// behind it, as far as a run waits for it.
func (s *session) patientTimeout() time.Duration {
	if s.virtual() {
		return s.Declared.gaveUpBy()
	}
	return min(s.Declared.gaveUpBy(), patienceReal/(2*isolationPiled))
}

// judgeIsolation looks at the delay of the healthy endpoint's event, and at the
// requests that were open at the hanging one at one time.
func judgeIsolation(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	hanging, healthy := attempts(t, hangingName), attempts(t, healthyName)
	events := published(t, healthyName)
	if len(events) == 0 {
		return nil
	}
	var findings []evidence.Finding
	_, first := d.window(0)
	limit := isolationDelay + first
	sent := fmt.Sprintf("an event for a healthy endpoint, with %d events piled up for one that %s", isolationPiled, hangingName)
	const cause = "All endpoints share a queue or a few workers, and the hanging one holds them, a timeout each."
	switch {
	case len(healthy) == 0:
		findings = append(findings, finding(sent, fmt.Sprintf("an attempt within %v", shown(limit)), "none came in the time that was watched", cause))
	case healthy[0].Began.Sub(events[0].At)-healthy[0].Window > limit+early:
		findings = append(findings, finding(sent, fmt.Sprintf("an attempt within %v", shown(limit)), fmt.Sprintf("it came after %v", shown(healthy[0].Began.Sub(events[0].At))), cause, healthy[0]))
	}
	if !d.declares(factPerEndpoint) {
		return findings
	}
	if most := max(atOnce(hanging, isolationOverlap), unfinished(t, hangingName)); most > d.PerEndpoint {
		findings = append(findings, finding(fmt.Sprintf("%d events for an endpoint that %s", isolationPiled, hangingName), fmt.Sprintf("at most the declared %d attempts in flight", d.PerEndpoint),
			fmt.Sprintf("%d at one time", most), "Nothing counts the attempts of one endpoint, or each worker counts its own.", hanging[:min(len(hanging), 8)]...))
	}
	return findings
}

// isolationMany are how many endpoints hang at one time.
func isolationMany() []int { return []int{3, 8, 32} }

func besideName(n int) string { return "answers 200 beside " + strconv.Itoa(n) + " that hang" }

// recordIsolationMany makes more and more endpoints hang, and publishes to a
// healthy one each time.
func recordIsolationMany(s *session) {
	if !s.control() {
		return
	}
	made := 0
	for _, n := range isolationMany() {
		var hanging []*endpoint
		for ; made < n; made++ {
			hanging = append(hanging, s.endpoint(fmt.Sprintf("%s (%d)", hangingName, made+1), "hang"))
		}
		sideBySide(len(hanging), func(i int) { hanging[i].publish() })
		// A sender that has not enough places for all begins with some.
		s.await(isolationDelay, func() bool {
			return !slices.ContainsFunc(hanging, func(e *endpoint) bool {
				if e.path == nil {
					return false
				}
				arrived, _ := e.path.Count()
				return arrived == 0
			})
		})
		healthy := s.endpoint(besideName(n), "200")
		healthy.publish()
		healthy.await(1, s.firstWithin())
	}
}

func judgeIsolationMany(t *evidence.Transcript) []evidence.Finding {
	var facts []evidence.Finding
	for _, n := range isolationMany() {
		events := published(t, besideName(n))
		if len(events) == 0 {
			continue
		}
		got := attempts(t, besideName(n))
		what := "no attempt came in the time that was watched"
		if len(got) > 0 {
			what = fmt.Sprintf("its attempt came after %v", shown(got[0].Began.Sub(events[0].At)))
		}
		facts = append(facts, finding(fmt.Sprintf("an event for a healthy endpoint, beside %d that hang", n), "", what, "", got...))
	}
	return facts
}
