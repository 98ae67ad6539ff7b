package sender

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var day = time.Date(2026, 11, 14, 10, 0, 0, 0, time.UTC)

// random is a repeatable source.
func random(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }

func TestADelayStaysWithinItsJitter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			JitterLow:  rapid.Float64Range(-1, 0).Draw(t, "low"),
			JitterHigh: rapid.Float64Range(0, 1).Draw(t, "high"),
		}
		for range rapid.IntRange(1, 12).Draw(t, "attempts") {
			p.Schedule = append(p.Schedule, time.Duration(rapid.Int64Range(0, int64(240*time.Hour)).Draw(t, "delay")))
		}
		source := random(rapid.Byte().Draw(t, "seed"))
		for n, d := range p.Schedule {
			got := p.Delay(n, source)
			low, high := float64(d)*(1+p.JitterLow), float64(d)*(1+p.JitterHigh)
			if float64(got) < math.Floor(low) || float64(got) > math.Ceil(high) {
				t.Errorf("attempt %d of delay %v waits %v, which is beyond %v and %v", n, d, got, time.Duration(low), time.Duration(high))
			}
		}
		if p.Attempts() != len(p.Schedule) || p.Delay(-1, source) != 0 || p.Delay(len(p.Schedule), source) != 0 {
			t.Error("an attempt that the schedule does not have gets a delay")
		}
	})
}

func TestDelaysOfManyMessagesSpreadOverTheWholeBand(t *testing.T) {
	p := Policy{Schedule: []time.Duration{0, 100 * time.Second}, JitterLow: -0.2, JitterHigh: 0.2}
	source := random(1)
	var counts [40]int
	const draws = 40_000
	for range draws {
		counts[(p.Delay(1, source)-80*time.Second)/time.Second]++
	}
	for i, n := range counts {
		// A thousand are expected in each second, with a deviation of 31: six of
		// these are met once in a billion runs, and the seed is fixed.
		if n < draws/40-190 || n > draws/40+190 {
			t.Errorf("%d of %d delays lie in second %d", n, draws, 80+i)
		}
	}
}

func TestWithoutRandomBytesADelayIsThatOfTheSchedule(t *testing.T) {
	for _, p := range []Policy{{JitterLow: -0.2, JitterHigh: 0.2}, {JitterHigh: 0.1}, {JitterLow: -0.5}, {}} {
		p.Schedule = []time.Duration{time.Hour}
		got := p.Delay(0, bytes.NewReader(nil))
		if d := got - time.Hour; d < -time.Microsecond || d > time.Microsecond {
			t.Errorf("with jitter %v to %v it is %v", p.JitterLow, p.JitterHigh, got)
		}
	}
}

func TestTheLongerOfScheduleAndRetryAfterWins(t *testing.T) {
	p := Policy{Schedule: []time.Duration{0, 5 * time.Second, time.Hour}, RetryAfterCap: 24 * time.Hour}
	for name, c := range map[string]struct {
		attempt    int
		retryAfter string
		want       time.Duration
	}{
		"none":                 {1, "", 5 * time.Second},
		"longer":               {1, "600", 10 * time.Minute},
		"a date":               {1, "Sat, 14 Nov 2026 10:10:00 GMT", 10 * time.Minute},
		"shorter":              {2, "1", time.Hour},
		"nonsense":             {1, "soon", 5 * time.Second},
		"negative":             {1, "-600", 5 * time.Second},
		"a past date":          {1, "Sat, 14 Nov 2026 09:00:00 GMT", 5 * time.Second},
		"longer than the cap":  {1, "1000000000", 24 * time.Hour},
		"longer than any time": {1, "99999999999999999999", 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if got := p.Next(c.attempt, c.retryAfter, day, random(1)); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestAWishIsFollowedAtLeastAndSpread(t *testing.T) {
	p := Policy{Schedule: []time.Duration{0, time.Second}, JitterLow: -0.2, JitterHigh: 0.2, RetryAfterCap: time.Hour}
	source := random(2)
	seen := map[time.Duration]bool{}
	for range 100 {
		got := p.Next(1, "600", day, source)
		if got < 600*time.Second || got > 720*time.Second {
			t.Fatalf("a wish of 600 s is followed after %v", got)
		}
		seen[got] = true
	}
	if len(seen) < 90 {
		t.Errorf("a hundred messages with one wish come back at %d instants", len(seen))
	}
}

func TestADelayBeyondAllMeasureIsTheLongestThereIs(t *testing.T) {
	if got := scaled(math.MaxInt64, 0, 1, random(3)); got <= 0 {
		t.Errorf("it is %v", got)
	}
}
