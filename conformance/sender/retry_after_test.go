package sender

import (
	"net/http"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// wishing has an answer carry a Retry-After.
func wishing(value string) func(*attempt) {
	return func(a *attempt) {
		a.Response.Headers = append(a.Response.Headers, wire.Header{Name: "Retry-After", Value: value})
	}
}

func TestALongerRetryAfterWins(t *testing.T) {
	come := func(cap time.Duration, after ...time.Duration) *evidence.Transcript {
		p := these(fact{wishFact, "10m0s"}, try(answering(503), 0, 503, wishing("600")))
		for _, d := range after {
			p = append(p, try(answering(503), d, 200))
		}
		return recordedBy(drive.About{RetryAfterCap: &cap}, p...)
	}
	tell(t, judgeLonger, map[string]*evidence.Transcript{
		"at once when it is over": come(hour, 10*minute), "with jitter": come(hour, 11*minute), "by a shorter cap": come(5*minute, 5*minute+10*second),
		"nothing came, which is another row's": recorded(fact{wishFact, "10m0s"}),
	}, []wrongly{
		{"it is ignored", come(hour, 5200*time.Millisecond), "after 5.2s", "not looked at"},
		{"it is cut", come(hour, 9*minute), "after 9m0s", "less than the declared cap"},
		{"it is added", come(hour, 11*minute+5*second), "after 11m5s", "added"},
		{"it ends the message", come(hour), "none came", "ends the message"},
		{"it did not arrive", recorded(fact{wishFact, "10m0s"}, event(answering(429), 1, 0)), "nothing came", ""},
	})
}

func TestADateIsHonouredLikeSeconds(t *testing.T) {
	date := start.Add(10*minute + 700*time.Millisecond).Truncate(second).Format(http.TimeFormat)
	come := func(after ...time.Duration) *evidence.Transcript {
		p := these(fact{wishFact, "10m0s"}, try(answering(429), 0, 429, wishing(date)))
		for _, d := range after {
			p = append(p, try(answering(429), d, 200))
		}
		return recorded(p...)
	}
	tell(t, judgeDate, map[string]*evidence.Transcript{
		"in time": come(10*minute + second), "a second early, by whole seconds": come(10*minute - 900*time.Millisecond),
	}, []wrongly{
		{"it is ignored", come(5 * second), "after 5s", "not looked at"},
		{"it ends the message", come(), "none came", "another unit"},
	})
}

func TestAShorterRetryAfterLoses(t *testing.T) {
	come := func(after ...time.Duration) *evidence.Transcript {
		p := these(number(behindFact, 2), try(answering(503), 0, 500), try(answering(503), 5*second, 503, wishing("1")))
		for _, d := range after {
			p = append(p, try(answering(503), 5*second+d, 200))
		}
		return recorded(p...)
	}
	tell(t, judgeShorter, map[string]*evidence.Transcript{
		"the schedule's": come(5*minute + 3*second), "it is not there yet": recorded(number(behindFact, 2), try(answering(503), 0, 500)),
	}, []wrongly{
		{"it replaces the delay", come(second), "early", "replaces"},
		{"it is late", come(hour), "late", "neither"},
		{"it ends the message", come(), "none came", "ends"},
	})
}

func TestNonsenseNeitherHammersNorLoses(t *testing.T) {
	const zero, long = "asks to wait for 0 seconds", "asks to wait for 10^9 seconds"
	come := func(name string, after ...time.Duration) *evidence.Transcript {
		p := these(fact{cappedFact, "24h0m1s"}, try(name, 0, 503))
		for _, d := range after {
			p = append(p, try(name, d, 200))
		}
		return recorded(p...)
	}
	tell(t, judgeNonsense, map[string]*evidence.Transcript{
		"the schedule's": come(zero, 5*second), "the cap": come(long, 24*hour), "later, as for what is not understood": come(zero, hour),
	}, []wrongly{
		{"it is hammered", come(zero, time.Millisecond), "after 1ms", "nothing bounds it"},
		{"it is lost", come(long), "none came", "lost"},
	})
}

func TestWhatAnEndpointMayWishFor(t *testing.T) {
	d := declaredOf(recorded()) // 5 s, +10 %, granularity 1 s, cap 24 h
	for _, tt := range []struct{ wish, low, high time.Duration }{
		{second, 5 * second, 6500 * time.Millisecond},
		{10 * minute, 10 * minute, 11*minute + second},
		{48 * hour, 24 * hour, 26*hour + 24*minute + second},
	} {
		if low, high := d.obeying(1, tt.wish); low != tt.low || high != tt.high {
			t.Errorf("%v: %v to %v, want %v to %v", tt.wish, low, high, tt.low, tt.high)
		}
	}
}
