package sender

import (
	"fmt"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// timing15 declares the timeout of standard-webhooks, exactly.
func timing15() drive.About {
	timeout, exact := 15*second, time.Duration(0)
	return drive.About{Timeout: &timeout, Granularity: &exact}
}

// open is that requests were not over at the end.
func open(name string, n int) fact { return number(unfinishedFact+name, n) }

// gaveUp is an attempt that the sender ended after so long.
func gaveUp(name string, after, lasts time.Duration, changes ...func(*attempt)) request {
	return try(name, after, 0, append([]func(*attempt){unanswered(wire.FaultTimeout), lasting(lasts)}, changes...)...)
}

func TestAnAttemptEndsAtItsTimeout(t *testing.T) {
	again := try(hangsName, 21*second, 200)
	tell(t, judgeGivesUp, map[string]*evidence.Transcript{
		"at the declared one": recordedBy(timing15(), gaveUp(hangsName, 0, 15*second), again), "sooner is another row's": recordedBy(timing15(), gaveUp(hangsName, 0, 5*second), again),
		"within twice the profile's where none is declared": recorded(gaveUp(hangsName, 0, 30*second), try(hangsName, 36*second, 200)),
	}, []wrongly{
		{"later", recordedBy(timing15(), gaveUp(hangsName, 0, 100*second), try(hangsName, 105*second, 200)), "lasted 1m40s", "no limit"},
		{"later than twice the profile's", recorded(gaveUp(hangsName, 0, 100*second), try(hangsName, 105*second, 200)), "lasted 1m40s", "no limit"},
		{"never", recordedBy(timing15(), open(hangsName, 1)), "still open", "no limit"},
		{"it is not tried again", recordedBy(timing15(), gaveUp(hangsName, 0, 15*second)), "none came", "not caught"},
	})
}

func TestTheTimeoutIsInTheProfilesRange(t *testing.T) {
	lasts := func(profile string, d time.Duration) *evidence.Transcript {
		return recordedBy(timing15(), fact{profileTimeoutFact, profile}, gaveUp(hangsName, 0, d))
	}
	tell(t, judgeTimeoutRange, map[string]*evidence.Transcript{
		"the shortest": lasts("15s", 15*second), "the longest": lasts("15s", 30*second), "the only one": lasts("10s", 10*second),
		"nothing came": recorded(fact{profileTimeoutFact, "15s"}),
	}, []wrongly{
		{"too short", lasts("15s", 5*second), "after 5s", "taken for failed"},
		{"too long", lasts("15s", 31*second), "after 31s", "hold workers"},
		{"not the only one", lasts("10s", 15*second), "after 15s", "hold workers"},
	})
}

func TestAnAnswerBeforeTheTimeoutCounts(t *testing.T) {
	tell(t, judgeWaits, map[string]*evidence.Transcript{
		"once": recordedBy(timing15(), try(waitsName, 0, 200, lasting(14*second))),
	}, []wrongly{
		{"given up before", recordedBy(timing15(), gaveUp(waitsName, 0, 10*second), try(waitsName, 15*second, 200)), "after 10s", "shorter limit"},
		{"sent again", recordedBy(timing15(), try(waitsName, 0, 200, lasting(14*second)), try(waitsName, 15*second, 200)), "sent again", "lease"},
		{"nothing", recordedBy(timing15(), event(waitsName, 1, 0)), "nothing came", ""},
	})
}

func TestDripsDoNotStretchAnAttempt(t *testing.T) {
	right := func(more ...part) *evidence.Transcript {
		return recordedBy(timing15(), append(these(gaveUp(dripsHead, 0, 15*second), try(dripsHead, 20*second, 200),
			try(dripsError, 0, 500, lasting(15*second)), try(dripsError, 20*second, 200)), more...)...)
	}
	tell(t, judgeTotal, map[string]*evidence.Transcript{
		"a success may end at once":     right(try(dripsSuccess, 0, 200)),
		"or at the timeout, as failure": right(try(dripsSuccess, 0, 200, lasting(15*second)), try(dripsSuccess, 20*second, 200)),
	}, []wrongly{
		{"the body of a success does", right(try(dripsSuccess, 0, 200, lasting(90*second))), "lasted 1m30s", "starts anew"},
		{"it never ends", right(open(dripsSuccess, 1)), "still open", "starts anew"},
		{"a head that drips ends the message", recordedBy(timing15(), gaveUp(dripsHead, 0, 15*second)), "none came", "not caught"},
	})
}

func TestConnectingIsPartOfAnAttempt(t *testing.T) {
	for _, tt := range []struct {
		name  string
		judge judge
		cause string
	}{{connectName, judgeConnect, "does not cover connecting"}, {connectFastName, judgeConnectFast, "limit of its own"}} {
		come := func(after ...time.Duration) *evidence.Transcript {
			p := these(number(connectFact+tt.name, 1), try(tt.name, 0, 500))
			for _, d := range after {
				p = append(p, try(tt.name, d, 200))
			}
			return recordedBy(timing15(), p...)
		}
		tell(t, tt.judge, map[string]*evidence.Transcript{
			"the attempt behind it comes": come(5*minute + 11*second), "the least time": come(5*minute + 5*second), "it was not tried": recorded(), "its first failure never came": recorded(number(connectFact+tt.name, 1)),
		}, []wrongly{
			{"it was still connecting", come(22 * second), "came 22s after", tt.cause},
			{"nothing comes", come(), "none came", "ends the message"},
		})
	}
}

func TestPublishingReturnsAtOnce(t *testing.T) {
	took := func(healthy, hanging string) *evidence.Transcript {
		return recorded(fact{publishFact + healthyName, healthy}, fact{publishFact + hangingName, hanging}, fact{longestFact + healthyName, "1s"}, fact{longestFact + hangingName, "1s"})
	}
	never := recorded(fact{publishEnded, "3s"})
	tell(t, judgePublishReturns, map[string]*evidence.Transcript{
		"alike": took("5ms", "5ms"), "three times and a tenth of a second": took("50ms", "250ms"),
	}, []wrongly{
		{"longer", took("5ms", "120ms"), "99 of 100 within 120ms", "Publishing sends"}, {"not at all", never, "did not return within 3s", "Publishing sends"},
	})
	tell(t, judgePublishAbsolute, map[string]*evidence.Transcript{"in time": took("5ms", "100ms")}, []wrongly{
		{"longer", took("50ms", "120ms"), "99 of 100 within 120ms", "more than one insert"}, {"not at all", never, "did not return", "waits"},
	})
}

func TestThe99thPercentile(t *testing.T) {
	var hundred timing
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	for _, tt := range []struct {
		t    timing
		want time.Duration
	}{{nil, 0}, {timing{7}, 7}, {timing{2, 1}, 2}, {hundred, 99}} {
		if got := tt.t.percentile(); got != tt.want {
			t.Errorf("of %d: %v, want %v", len(tt.t), got, tt.want)
		}
	}
}

func TestTheLagOfTimersIsMeasured(t *testing.T) {
	m := lagsFromNow()
	if first, again := m.stop(), m.stop(); first != again || first < 0 {
		t.Errorf("%v, and then %v", first, again)
	}
}

func TestAHangingEndpointHoldsNobodyElse(t *testing.T) {
	two := 2
	limited := timing15()
	limited.PerEndpointLimit = &two
	hanging := func(at ...time.Duration) []part {
		out := these(event(healthyName, 1, 0))
		for i, d := range at {
			out = append(out, gaveUp(hangingName, d, 15*second, id(fmt.Sprintf("msg_%d", i+10))))
		}
		return out
	}
	with := func(about drive.About, p []part, more ...part) *evidence.Transcript {
		return recordedBy(about, append(p, more...)...)
	}
	tell(t, judgeIsolation, map[string]*evidence.Transcript{
		"at once, two at a time":              with(limited, hanging(0, 0, 15*second, 15*second), try(healthyName, 0, 200)),
		"within two seconds":                  with(limited, hanging(0), try(healthyName, 2*second, 200)),
		"three at a time, of which none says": with(timing15(), hanging(0, 0, 0), try(healthyName, 0, 200)),
		"nothing was published":               recorded(),
	}, []wrongly{
		{"behind one timeout", with(limited, hanging(0), try(healthyName, 15*second, 200)), "after 15s", "share a queue"},
		{"never", with(limited, hanging(0)), "none came", "share a queue"},
		{"three at a time", with(limited, hanging(0, 0, 0), try(healthyName, 0, 200)), "3 at one time", "counts"},
		{"many that were never over", with(limited, hanging(0), try(healthyName, 0, 200), open(hangingName, 9)), "9 at one time", "counts"},
	})
}

func TestWhatIsReportedOfManyHangingEndpoints(t *testing.T) {
	got := judgeIsolationMany(recorded(event(besideName(3), 1, 0), try(besideName(3), second, 200), event(besideName(32), 1, 0)))
	if len(got) != 2 || got[0].Got != "its attempt came after 1s" || got[1].Got == got[0].Got {
		t.Errorf("%+v", got)
	}
}
