package sender

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// these are parts of a hand-made transcript.
func these(p ...part) []part { return p }

// number is a fact that is a number.
func number(name string, n int) fact { return fact{name, fmt.Sprint(n)} }

// eachStatus is an event for each failure status, tried again but where left is
// true.
func eachStatus(left func(status int) bool) []part {
	var out []part
	for _, status := range failureStatuses() {
		out = append(out, event(answering(status), 1, 0, "msg_1"), try(answering(status), 0, status))
		if !left(status) {
			out = append(out, try(answering(status), 5*time.Second, 200))
		}
	}
	return out
}

func TestEveryFailureStatusIsTriedAgain(t *testing.T) {
	only := func(statuses ...int) []part {
		return eachStatus(func(status int) bool { return slices.Contains(statuses, status) })
	}
	final := drive.About{FinalStatuses: []int{404, 408, 410}}
	tell(t, judgeFailureStatuses, map[string]*evidence.Transcript{
		"all are": recorded(only()...), "those that are declared final are not": recordedBy(final, only(404)...),
	}, []wrongly{
		{"304 is a success", recorded(only(304)...), "no second request", "taken for a success"},
		{"redirects are followed", recorded(append(only(301), try(answering(301)+trapName, 0, 200))...), "no second request", "followed"},
		{"4xx are final", recorded(only(400, 404)...), "no second request", "taken for final"},
		{"408 is final, whatever is declared", recordedBy(final, only(408)...), "no second request", `"later"`},
		{"429 is final", recorded(only(429)...), "no second request", `"later"`},
		{"500 is final", recorded(only(500)...), "no second request", "given up"},
		{"the dispatcher ends", recorded(append(only(), event("answers 599 again", 1, 0))...), "nothing came at 1 endpoint", "stopped"},
	})
	got := judgeFailureStatuses(recorded(eachStatus(func(int) bool { return true })...))
	if len(got) != 4 {
		t.Errorf("where nothing is tried again, %d findings say it: %+v", len(got), got)
	}
}

func TestStatusesAreWrittenAsRanges(t *testing.T) {
	for _, tt := range []struct {
		list []int
		want string
	}{{[]int{301}, "301"}, {[]int{301, 302, 303, 307}, "301-303, 307"}, {[]int{408, 409, 411}, "408-411"}, {nil, ""}} {
		if got := ranges(tt.list); got != tt.want {
			t.Errorf("%v: %q", tt.list, got)
		}
	}
}

func TestAFinalStatusIsAWarning(t *testing.T) {
	tell(t, judgeFinalStatuses, map[string]*evidence.Transcript{
		"none is declared": recorded(), "only 410 is": recordedBy(drive.About{FinalStatuses: []int{410}}),
	}, []wrongly{
		{"404 is", recordedBy(drive.About{FinalStatuses: []int{410, 404}}, try(answering(404), 0, 404)), "declares it final", "for ever"},
	})
}

func TestEveryTransportFailureIsTriedAgain(t *testing.T) {
	each := func(change func(name string) []part) []part {
		out := these(number(refusedFact, 1), event(refusingProbe, 1, 0), try(refusingProbe, 0, 500), try(refusingProbe, 5*time.Minute, 200))
		for _, p := range transportProbes() {
			out = append(out, event(p.name, 1, 0))
			if changed := change(p.name); changed != nil {
				out = append(out, changed...)
				continue
			}
			out = append(out, try(p.name, 0, 0, unanswered(wire.FaultReset)), try(p.name, 5*time.Second, 200))
		}
		return out
	}
	left := func(which string) *evidence.Transcript {
		return recorded(each(func(name string) []part {
			if name == which {
				return these(try(name, 0, 0, unanswered(wire.FaultReset)))
			}
			return nil
		})...)
	}
	expired := certificateProbe + "expired"
	trusting := each(func(name string) []part {
		if name == expired {
			return these(try(name, 0, 200))
		}
		return nil
	})
	refused := recorded(number(refusedFact, 1), try(refusingProbe, 0, 500))
	tell(t, judgeTransportFailures, map[string]*evidence.Transcript{
		"all are": recorded(each(func(string) []part { return nil })...), "an outage was not tried": recorded(try("resets the connection", 0, 0, unanswered(wire.FaultReset)), try("resets the connection", 5*time.Second, 200)),
	}, []wrongly{
		{"a reset is not", left("resets the connection"), "none came", "not caught"},
		{"garbage is not", left("answers what is not HTTP"), "none came", "not caught"},
		{"a certificate is not verified", recorded(trusting...), "sent all the same", "not verified"},
		{"a refused connection is not", refused, "none came", "refused"},
	})
}

func TestANameThatVanishesIsTriedAgain(t *testing.T) {
	tell(t, judgeVanishedName, map[string]*evidence.Transcript{
		"it is": recorded(try(hasName, 0, 500), try(hasName, 5*time.Minute, 200)), "it was not tried": recorded(),
	}, []wrongly{{"it is not", recorded(try(hasName, 0, 500)), "none came", "resolver"}})
}

func TestASuccessIsSentOnce(t *testing.T) {
	const plain, bodied = "answers 204 without a body", "answers 200 with a body"
	tell(t, judgeSuccesses, map[string]*evidence.Transcript{
		"once each": recorded(try(controlName, 0, 200), try(plain, 0, 204), try(bodied, 0, 200)),
	}, []wrongly{
		{"204 again", recorded(try(plain, 0, 204), try(plain, 5*time.Second, 204)), "2 requests came", "Only some"},
		{"the body counts", recorded(try(bodied, 0, 200), try(bodied, 5*time.Second, 200)), "2 requests came", "The body"},
		{"one did not come", recorded(event(plain, 1, 0), try(bodied, 0, 200)), "nothing came", "stopped"},
	})
}

func TestAnInterimAnswerChangesNothing(t *testing.T) {
	const ok, failed = "sends 100, then 200", "sends 103, then 500"
	tell(t, judgeInterim, map[string]*evidence.Transcript{
		"as without it": recorded(try(ok, 0, 200), try(failed, 0, 500), try(failed, 5*time.Second, 200)),
	}, []wrongly{
		{"it is a failure", recorded(try(ok, 0, 200), try(ok, 5*time.Second, 200)), "2 requests came", "for a failure"},
		{"it is a success", recorded(try(failed, 0, 500)), "1 request came", "for a success"},
	})
}

// ladder are attempts at an endpoint with these gaps between them, each lasting
// so long.
func ladder(name string, lasts time.Duration, gaps ...time.Duration) []part {
	out := these(event(name, 1, 0, "msg_1"), try(name, 0, 500, lasting(lasts)))
	at := time.Duration(0)
	for _, g := range gaps {
		at += lasts + g
		out = append(out, try(name, at, 500, lasting(lasts)))
	}
	return out
}

const second, minute, hour = time.Second, time.Minute, time.Hour

// rightGaps are those of standard-webhooks with some jitter.
func rightGaps() []time.Duration {
	return []time.Duration{5200 * time.Millisecond, 5*minute + 10*second, 31 * minute, 2*hour + 5*minute, 5*hour + 20*minute, 10 * hour, 15 * hour, 22 * hour, 26 * hour}
}

func TestEveryDelayIsJudged(t *testing.T) {
	right := rightGaps()
	with := func(n int, g time.Duration) []time.Duration {
		out := slices.Clone(right)
		out[n-1] = g
		return out
	}
	shifted := func(by time.Duration) *evidence.Transcript { // as if from the beginning of attempts that take so long
		return recorded(ladder(slowFails, by, 5*second-by, 5*minute-by)...)
	}
	tell(t, judgeSchedule, map[string]*evidence.Transcript{
		"in their windows":          recorded(append(ladder(alwaysFails, 0, right...), ladder(slowFails, 13*second, right...)...)...),
		"at the far ends":           recorded(ladder(alwaysFails, 0, 5*second, 331*second, 30*minute)...),
		"one more is another row's": recorded(ladder(alwaysFails, 0, append(right, minute)...)...),
	}, []wrongly{
		{"from the beginning", shifted(4 * second), "early", "beginning of the attempt"},
		{"too early", recorded(ladder(alwaysFails, 0, with(4, hour)...)...), "early", "does not wait"},
		{"from publishing", recorded(ladder(alwaysFails, 0, 5*second, 5*minute-5*second, 25*minute-5*second)...), "early", "publishing"},
		{"too late", recorded(ladder(alwaysFails, 0, with(2, 6*minute)...)...), "late", "too rarely"},
		{"one entry too far", recorded(ladder(alwaysFails, 0, 5*minute, 30*minute)...), "late", "one entry too far"},
		{"one entry too early", recorded(ladder(alwaysFails, 0, with(3, 5*minute)...)...), "early", "one entry too early"},
		{"not at all", recorded(ladder(alwaysFails, 0)...), "none came", "set a time"},
	})
}

func TestAttemptsAreCounted(t *testing.T) {
	right := rightGaps()
	days := func(d time.Duration) drive.About { return drive.About{DisableAfter: &d} }
	tell(t, judgeAttempts, map[string]*evidence.Transcript{
		"ten":                                 recorded(append(ladder(alwaysFails, 0, right...), ladder(slowFails, second, right...)...)...),
		"fewer, as the endpoint was disabled": recordedBy(days(10*hour), ladder(alwaysFails, 0, right[:6]...)...),
	}, []wrongly{
		{"nine", recorded(ladder(alwaysFails, 0, right[:8]...)...), "9 attempts came", "one too far"},
		{"one", recorded(ladder(alwaysFails, 0)...), "1 attempt came", "end of the message"},
		{"five", recorded(ladder(slowFails, 0, right[:4]...)...), "5 attempts came", "Another bound"},
		{"eleven", recorded(ladder(alwaysFails, 0, append(right, 24*hour)...)...), "11 attempts came", "delays are counted"},
		{"without an end", recorded(ladder(alwaysFails, 0, append(right, 24*hour, 24*hour)...)...), "12 attempts came", "repeats"},
		{"fewer than before it was disabled", recordedBy(days(10*hour), ladder(alwaysFails, 0, right[:2]...)...), "3 attempts came", "Another bound"},
	})
}

func TestAMessageThatFailedIsListedAsFailed(t *testing.T) {
	listed := func(status string) *evidence.Transcript {
		return recorded(try(alwaysFails, 0, 500), fact{listedFact + alwaysFails, status})
	}
	tell(t, judgeMarkedFailed, map[string]*evidence.Transcript{
		"it is": listed("failed"), "nobody looked": recorded(try(alwaysFails, 0, 500)),
	}, []wrongly{
		{"it is pending", listed("pending"), `"pending"`, "keeps the state"},
		{"it is not there", listed("nowhere"), "not listed", "keeps the state"},
	})
}

func TestTheDefaultScheduleSpansDays(t *testing.T) {
	by := func(schedule ...time.Duration) *evidence.Transcript {
		return recordedBy(drive.About{Schedule: []time.Duration{0, second}, Default: schedule})
	}
	tell(t, judgeSpansDays, map[string]*evidence.Transcript{
		"the profile's": recorded(), "25 hours": by(0, hour, 24*hour), "equal delays": by(0, 13*hour, 13*hour),
	}, []wrongly{
		{"a day", by(0, 24*hour), "spans 24h0m0s", "weekend"},
		{"it shrinks", by(0, 24*hour, hour), "is 1h0m0s, after 24h0m0s", "more and more often"},
	})
}

func TestOfEveryAttemptIdAndBytesAreThoseOfTheFirst(t *testing.T) {
	pair := func(changes ...func(*attempt)) *evidence.Transcript {
		return recorded(try(controlName, 0, 200, id("msg_0")), try(alwaysFails, 0, 500), try(alwaysFails, 5*second, 500), try(alwaysFails, 5*minute, 500, changes...))
	}
	tell(t, judgeSameID, map[string]*evidence.Transcript{"it is": pair()}, []wrongly{{"it is another", pair(id("msg_2")), "msg_2", "while sending"}})
	tell(t, judgeSameBytes("rebuilt"), map[string]*evidence.Transcript{"they are": pair()}, []wrongly{
		{"they are others", pair(body(`{"type":"whconform.s2"}`)), "from byte", "rebuilt"},
		{"they are empty", pair(body("")), "0 bytes instead of", "rebuilt"},
	})
	long := pair(func(a *attempt) { a.Digest = "other" })
	if len(judgeSameBytes("rebuilt")(long)) != 1 {
		t.Error("long bodies that differ behind what is kept of them pass")
	}
}

func TestTimestampAndSignatureAreFresh(t *testing.T) {
	at := func(d time.Duration) func(*attempt) {
		return with("webhook-timestamp", fmt.Sprint(start.Add(d).Unix()))
	}
	trio := func(changes ...func(*attempt)) *evidence.Transcript {
		return recorded(try(alwaysFails, 0, 500), try(alwaysFails, 5*second, 500), try(alwaysFails, 5*minute, 500, changes...))
	}
	behind := recorded(try(alwaysFails, 0, 500, at(-hour)), try(alwaysFails, 5*minute, 500, at(5*minute-hour)))
	tell(t, judgeFreshTimestamp, map[string]*evidence.Transcript{
		"it is": trio(), "the clock is an hour behind": behind, "it has none": trio(without("webhook-timestamp")),
	}, []wrongly{
		{"it is the first's", trio(at(0)), "one 0s after", "first attempt"},
		{"it is that of the plan", trio(at(4 * minute)), "one 4m0s after", "planned"},
	})
	envelope := trio()
	envelope.Facts[factTimestampHeader] = ""
	for i := range envelope.Exchanges {
		envelope.Exchanges[i].Request.Headers = wire.Set(envelope.Exchanges[i].Request.Headers, "webhook-signature", fmt.Sprintf("t=%d,v1=00", start.Unix()))
	}
	if len(judgeFreshTimestamp(envelope)) != 1 {
		t.Error("a stale timestamp within the signature's header passes")
	}

	same := with("webhook-signature", goodSignature+fmt.Sprint(" v9,", start.UnixNano()))
	tell(t, judgeFreshSignature, map[string]*evidence.Transcript{
		"it is": trio(), "the first does not verify either": recorded(try(alwaysFails, 0, 500, by()), try(alwaysFails, 5*second, 500, by())),
	}, []wrongly{
		{"it is another's", trio(by()), "does not verify", ""},
		{"it is the first's", trio(by(), same), "does not verify", "stored with the message"},
	})
}

func TestAttemptsOfAMessageDoNotOverlap(t *testing.T) {
	tell(t, judgeNoOverlap, map[string]*evidence.Transcript{
		"they follow each other":     recorded(try("a", 0, 500, lasting(13*second)), try("a", 13*second, 500)),
		"those of different ones do": recorded(try("a", 0, 500, lasting(13*second)), try("a", second, 500, id("msg_2"))),
	}, []wrongly{
		{"they do", recorded(try("a", 0, 500, lasting(13*second)), try("a", second, 500)), "12s before attempt 1 ended", "not claimed"},
	})
}

func TestASingleFailureIsTriedAgainByItself(t *testing.T) {
	tell(t, judgeAlone, map[string]*evidence.Transcript{
		"it is": recorded(try(aloneName, 0, 500), try(aloneName, 5*second, 200)), "it did not come": recorded(),
	}, []wrongly{
		{"it is not", recorded(try(aloneName, 0, 500)), "no second request", "Nothing wakes"},
		{"it is late", recorded(try(aloneName, 0, 500), try(aloneName, minute, 200)), "late", "Nothing wakes"},
		{"with the next event", recorded(try(aloneName, 0, 500), try(aloneName, minute, 200), fact{wokenFact, "yes"}), "late", "when something is published"},
	})
}

func TestWhatIsReportedOfOverloadAndOfRepeats(t *testing.T) {
	got := judgeThrottles(recorded(try(answering(429), 0, 429, lasting(second)), try(answering(429), 0, 429, id("msg_2"), lasting(second)), try(answering(502), 0, 502)))
	if len(got) != 2 || got[0].Got != "2 of the 50 were sent within 0s, at most 2 at a time" {
		t.Errorf("of overload: %+v", got)
	}
	signed := with("webhook-signature", "v1,x")
	repeated := judgeRepeats(recorded(
		try(repeatsName+"close", 0, 200), try(repeatsName+"close", 0, 0, id("msg_2"), signed, unanswered(wire.FaultClosed)), try(repeatsName+"close", 0, 200, id("msg_2"), signed),
		try(repeatsName+"reset", 0, 200), try(repeatsName+"reset", 0, 0, id("msg_2"), unanswered(wire.FaultReset)), try(repeatsName+"reset", 5*second, 200, id("msg_2")),
	))
	if len(repeated) != 2 || repeated[0].Got == repeated[1].Got {
		t.Errorf("of repeats: %+v", repeated)
	}
}

func TestAttemptsAtOneTimeAreCounted(t *testing.T) {
	list := func(spans ...[2]time.Duration) []attempt {
		var out []attempt
		for _, s := range spans {
			out = append(out, attempts(recorded(try("a", s[0], 500, lasting(s[1]-s[0]))), "a")...)
		}
		return out
	}
	for _, tt := range []struct {
		name string
		list []attempt
		want int
	}{
		{"none", nil, 0},
		{"one behind the other", list([2]time.Duration{0, 5}, [2]time.Duration{5, 9}), 1},
		{"two", list([2]time.Duration{0, 5}, [2]time.Duration{4, 9}, [2]time.Duration{9, 12}), 2},
		{"one within another", list([2]time.Duration{0, 50}, [2]time.Duration{4, 9}, [2]time.Duration{10, 12}), 2},
		{"at one instant", list([2]time.Duration{0, 5}, [2]time.Duration{0, 5}, [2]time.Duration{0, 5}), 3},
	} {
		if got := atOnce(tt.list, 0); got != tt.want {
			t.Errorf("%s: %d", tt.name, got)
		}
	}
	if got := atOnce(list([2]time.Duration{0, 5}, [2]time.Duration{4, 9}), 2); got != 1 {
		t.Errorf("an overlap that is too short counts: %d", got)
	}
}

// fifty are fifty endpoints that fail once and come back after these delays.
func fifty(delay func(i int) time.Duration) []part {
	out := these(number(jitterStepFact, 1))
	for i := range jitterEndpoints {
		name := fmt.Sprintf("%s (%d)", jitterName, i+1)
		out = append(out, try(name, 0, 500), try(name, delay(i), 200))
	}
	return out
}

func TestFiftyRetriesAreSpread(t *testing.T) {
	exact, coarse, none := time.Duration(0), 100*time.Millisecond, 0.0
	fine := drive.About{Granularity: &exact}
	even := func(i int) time.Duration { return 5*second + time.Duration(i)*10*time.Millisecond }
	ticks := func(i int) time.Duration { return 5*second + even(i).Truncate(coarse) - 5*second }
	tell(t, judgeJitter, map[string]*evidence.Transcript{
		"evenly": recordedBy(fine, fifty(even)...),
		"evenly, seen by a sender that looks ten times a second": recordedBy(drive.About{Granularity: &coarse}, fifty(ticks)...),
	}, []wrongly{
		{"all at once", recordedBy(fine, fifty(func(int) time.Duration { return 5 * second })...), "50 of 50 came within 50ms", "no random part"},
		{"all but two", recordedBy(fine, fifty(func(i int) time.Duration { return 5*second + time.Duration(i/48)*400*time.Millisecond })...), "48 of 50", "no random part"},
		{"by declaration", recordedBy(drive.About{JitterLow: &none, JitterHigh: &none}), "jitter of 0", "no random part"},
	})
	if got := judgeJitter(recordedBy(fine, fifty(func(i int) time.Duration { return 5*second + time.Duration(i/47)*400*time.Millisecond })...)); len(got) != 0 {
		t.Errorf("47 of 50 may be chance, and this is found: %+v", got)
	}
}

// The bound that jitterTogether names, computed: fifty delays, each in a given
// half of the band with a probability of a half.
func TestTheCriterionForJitterHasTheStatedProbabilityOfAFalseAlarm(t *testing.T) {
	choose := func(n, k int) float64 {
		c := 1.0
		for i := range k {
			c = c * float64(n-i) / float64(i+1)
		}
		return c
	}
	others := jitterEndpoints - 1
	sum := 0.0
	for k := jitterTogether - 1; k <= others; k++ {
		sum += choose(others, k)
	}
	if p := jitterEndpoints * sum / math.Pow(2, float64(others)); p >= 1e-9 {
		t.Errorf("it is %g", p)
	}
}

func TestTheMostDelaysWithinASpan(t *testing.T) {
	for _, tt := range []struct {
		delays []time.Duration
		span   time.Duration
		want   int
	}{{nil, 1, 0}, {[]time.Duration{3}, 0, 1}, {[]time.Duration{9, 1, 5, 2, 1}, 1, 3}, {[]time.Duration{9, 1, 5, 2, 1}, 4, 4}, {[]time.Duration{1, 1, 1}, 0, 3}} {
		if got := mostWithin(tt.delays, tt.span); got != tt.want {
			t.Errorf("%v within %v: %d", tt.delays, tt.span, got)
		}
	}
}
