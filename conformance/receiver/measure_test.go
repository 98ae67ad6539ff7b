package receiver

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

func TestPercentileIsTheSmallestThatSoManyDoNotExceed(t *testing.T) {
	upTo := func(n int) []time.Duration {
		var out []time.Duration
		for i := range n {
			out = append(out, time.Duration(i+1))
		}
		return out
	}
	for _, tt := range []struct{ n, p, want int }{
		{0, 99, 0}, {1, 50, 1}, {1, 99, 1}, {1, 0, 1}, {2, 50, 1}, {2, 51, 2}, {3, 50, 2},
		{100, 1, 1}, {100, 50, 50}, {100, 99, 99}, {100, 100, 100}, {200, 99, 198}, {150, 99, 149}, {10, 99, 10},
	} {
		if got := percentile(upTo(tt.n), tt.p); got != time.Duration(tt.want) {
			t.Errorf("%d per cent of %d: got %d, want %d", tt.p, tt.n, got, tt.want)
		}
	}
}

func TestAtLeastSoManyPerCentLieAtOrBelowThePercentile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, p := rapid.IntRange(1, 500).Draw(t, "n"), rapid.IntRange(1, 100).Draw(t, "p")
		times := make([]time.Duration, n)
		for i := range times {
			times[i] = time.Duration(i)
		}
		got := int(percentile(times, p)) + 1 // so many lie at or below
		if got*100 < n*p || (got-1)*100 >= n*p {
			t.Fatalf("%d of %d lie at or below the %d-th percentile", got, n, p)
		}
	})
}

func TestQuickLetsOneInAHundredBeSlow(t *testing.T) {
	volley := func(n, slow int) *evidence.Transcript {
		tr := recorded(labelled(controlLabel, after(time.Minute, answer(200))))
		for i := range n {
			x := labelled(fmt.Sprint(i), after(time.Millisecond, answer(200)))
			if i < slow {
				x.Took = 3 * time.Second
			}
			tr.Exchanges = append(tr.Exchanges, x)
		}
		return tr
	}
	for _, tt := range []struct {
		n, slow int
		fails   bool
	}{{100, 0, false}, {100, 1, false}, {100, 2, true}, {200, 2, false}, {200, 3, true}, {1, 1, true}, {0, 0, false}} {
		findings := quick("deliveries", fastFact, own)(volley(tt.n, tt.slow))
		if (len(findings) > 0) != tt.fails {
			t.Errorf("%d of %d slow: %+v", tt.slow, tt.n, findings)
		}
		if tt.fails && !strings.Contains(findings[0].Got, "the slowest 3s") {
			t.Errorf("it tells %q", findings[0].Got)
		}
	}
	throttled := volley(100, 0)
	throttled.Exchanges = append(throttled.Exchanges, labelled("x", after(time.Hour, answer(429))), labelled("y", after(time.Hour, answer(429))))
	if findings := quick("deliveries", fastFact, own)(throttled); len(findings) > 0 {
		t.Errorf("throttled ones count: %+v", findings)
	}
}

func TestEachAcceptedTellsHowManyWereRefusedHow(t *testing.T) {
	findings := eachAccepted("deliveries", own)(recorded(
		labelled(controlLabel, answer(500)), labelled("1", answer(200)), labelled("2", answer(500)), labelled("3", broken(wire.FaultReset)),
		labelled("4", answer(500)), labelled("5", answer(429))))
	if len(findings) != 2 {
		t.Fatalf("got %+v", findings)
	}
	if got := findings[0]; got.Got != "2 of them: answered 500" || strings.Join(got.Exchanges, " ") != "2 4" {
		t.Errorf("got %+v", got)
	}
	if got := findings[1].Got; !strings.HasPrefix(got, "1 of them: the connection was reset") {
		t.Errorf("got %q", got)
	}
	if findings := eachAccepted("deliveries", own)(recorded(answer(200))); len(findings) > 0 {
		t.Errorf("got %+v", findings)
	}
}

func TestTheClockOffsetComesFromTheDateHeader(t *testing.T) {
	ended := time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC)
	date := func(text string) wire.Exchange {
		x := answer(200, wire.Header{Name: "date", Value: text})
		x.Ended = ended
		return x
	}
	for _, tt := range []struct {
		name string
		x    wire.Exchange
		want time.Duration
		ok   bool
	}{
		{"right", date("Fri, 02 Jan 2026 03:04:05 GMT"), -500 * time.Millisecond, true},
		{"ahead", date("Fri, 02 Jan 2026 04:04:05 GMT"), time.Hour - 500*time.Millisecond, true},
		{"behind", date("Thu, 01 Jan 2026 03:04:05 GMT"), -24*time.Hour - 500*time.Millisecond, true},
		{"in an older form", date("Friday, 02-Jan-26 03:04:05 GMT"), -500 * time.Millisecond, true},
		{"no date", answer(200), 0, false},
		{"garbage", date("yesterday"), 0, false},
		{"no answer", broken(wire.FaultReset), 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := clockOffset(&tt.x); got != tt.want || ok != tt.ok {
				t.Errorf("got %v, %t; want %v, %t", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestTheClockIsToldToASecond(t *testing.T) {
	told := func(ahead time.Duration) string {
		x := answer(200, wire.Header{Name: "Date", Value: "Fri, 02 Jan 2026 03:04:05 GMT"})
		x.Label, x.Ended = validLabel, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(-ahead)
		tr := recorded(x)
		tr.Facts[factAccepted] = validLabel
		return judgeClock(tr)[0].Got
	}
	for ahead, want := range map[time.Duration]string{
		0: "within a second", time.Second: "within a second", -time.Second: "within a second",
		3 * time.Second: "3s off", -90 * time.Second: "-1m30s off",
	} {
		if got := told(ahead); !strings.Contains(got, want) {
			t.Errorf("%v ahead: %q", ahead, got)
		}
	}
	tr := recorded(labelled(validLabel, answer(200)))
	tr.Facts[factAccepted] = validLabel
	if got := judgeClock(tr)[0].Got; !strings.Contains(got, "no Date") {
		t.Errorf("without a Date header: %q", got)
	}
	if findings := judgeClock(recorded()); len(findings) > 0 {
		t.Errorf("without an accepted delivery: %+v", findings)
	}
}

func TestALeakIsFoundWhereverAndHoweverItStands(t *testing.T) {
	mac := []byte("\xfb\xff0123456789abcdef0123456789abcdef") // its base64 holds + and /
	secret := []byte("the receiver's own secret, 32 byte")
	keys := Keys{Current: signature.RawKey("current", secret), Wrong: signature.RawKey("wrong", []byte("a secret that nobody was given 1"))}
	in := func(text string, headers ...wire.Header) wire.Exchange {
		x := answer(401, headers...)
		x.Response.Body = []byte(text)
		return x
	}
	std, upper := base64.StdEncoding.EncodeToString(mac), strings.ToUpper(hex.EncodeToString(mac))
	for _, tt := range []struct {
		name string
		x    wire.Exchange
		want []string
	}{
		{"nowhere", in("bad signature"), nil},
		{"an answer without a body", answer(401), nil},
		{"no answer", broken(wire.FaultReset), nil},
		{"the signature in base64", in("expected v1," + std + " got v1,x"), []string{"the body", "expected signature in base64"}},
		{"the signature in base64 without padding", in(strings.TrimRight(std, "=")), []string{"expected signature in base64"}},
		{"the signature in url-safe base64", in(base64.URLEncoding.EncodeToString(mac)), []string{"url-safe base64"}},
		{"the signature in hex", in("want " + hex.EncodeToString(mac)), []string{"in hex"}},
		{"the signature in upper-case hex", in(upper), []string{"in hex"}},
		{"the signature as raw bytes", in("\x00" + string(mac)), []string{"raw bytes"}},
		{"the signature in a header", in("", wire.Header{Name: "X-Debug", Value: std}), []string{"the header X-Debug", "base64"}},
		{"the secret as text", in("secret: " + string(secret)), []string{"the secret itself", "raw"}},
		{"the secret in base64", in(base64.StdEncoding.EncodeToString(secret)), []string{"the secret itself", "base64"}},
		{"the secret in a header", in("", wire.Header{Name: "X-Key", Value: hex.EncodeToString(secret)}), []string{"the header X-Key", "the secret itself"}},
		{"another secret", in("a secret that nobody was given 1"), nil},
		{"half the signature", in(std[:20]), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := leak(&tt.x, mac, keys)
			if (got == "") != (tt.want == nil) {
				t.Errorf("got %q", got)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("got %q, want %q in it", got, want)
				}
			}
			// What is found is told, and becomes part of a report.
			if strings.Contains(got, std[:10]) || strings.Contains(got, string(secret)) {
				t.Errorf("%q repeats what leaked", got)
			}
		})
	}
}

func TestAnOracleIsAFindingOfItsProbe(t *testing.T) {
	tr := recorded(labelled("a tampered body", answer(401)), labelled("no signature headers", answer(401)))
	tr.Facts["oracle: a tampered body"] = "the body holds the expected signature in hex"
	findings := judgeOracle(tr)
	says(t, findings, "debug output")
	if findings[0].Sent != "a tampered body" {
		t.Errorf("got %+v", findings)
	}
}

func TestMomentsAreMeanAndVariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 2, 100).Draw(t, "values")
		var m moments
		sum := 0.0
		for _, v := range values {
			m.add(v)
			sum += v
		}
		n := float64(len(values))
		squares := 0.0
		for _, v := range values {
			squares += (v - sum/n) * (v - sum/n)
		}
		close := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)+math.Abs(b)) }
		if !close(m.mean, sum/n) || !close(m.variance(), squares/(n-1)) {
			t.Fatalf("mean %g and variance %g, want %g and %g", m.mean, m.variance(), sum/n, squares/(n-1))
		}
	})
	var m moments
	m.add(3)
	if m.variance() != 0 {
		t.Error("one value has a variance")
	}
}

func TestTimesThatDifferAreToldNotJudged(t *testing.T) {
	for value, want := range map[string]string{"0.30": "no difference seen", "-4.50": "no difference seen", "4.51": "differ", "-9.00": "differ"} {
		findings := judgeTiming(&evidence.Transcript{Facts: map[string]string{"t": value, "pairs": "2000", "difference": "12 ns"}})
		if len(findings) != 1 || !strings.Contains(findings[0].Got, want) {
			t.Errorf("t = %s: %+v", value, findings)
		}
	}
	for _, value := range []string{"", "NaN"} {
		if findings := judgeTiming(&evidence.Transcript{Facts: map[string]string{"t": value}}); len(findings) > 0 {
			t.Errorf("t = %q: %+v", value, findings)
		}
	}
}

func TestBesideAFloodThrottlingIsTheFaultItself(t *testing.T) {
	for _, tt := range []struct {
		name string
		x    wire.Exchange
		want int
	}{
		{"served", answer(200), 0},
		{"throttled", answer(429), 1},
		{"an error", answer(500), 1},
		{"dropped", broken(wire.FaultReset), 1},
		{"served late", after(2*time.Second, answer(200)), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if findings := judgeFlood(recorded(labelled("authentic delivery 1 beside the flood", tt.x))); len(findings) != tt.want {
				t.Errorf("got %+v", findings)
			}
		})
	}
}

func TestADeathOnTheWayIsToldWhereTheReceiverStillServes(t *testing.T) {
	tr := recorded(labelled(aliveLabel, answer(200)))
	if findings := judgeAlive(tr); len(findings) > 0 {
		t.Errorf("got %+v", findings)
	}
	tr.Facts[factDied] = "receiver.limits.deep-json"
	if findings := judgeAlive(tr); len(findings) != 1 || !strings.Contains(findings[0].Sent, "deep-json") {
		t.Errorf("got %+v", findings)
	}
	says(t, judgeAlive(recorded(labelled(aliveLabel, answer(401)))), "a block list")
	if findings := judgeAlive(recorded(labelled(aliveLabel, answer(429)))); len(findings) > 0 {
		t.Errorf("throttled: %+v", findings)
	}
}

func TestARemarkMarksThePassesOfAReceiverThatAcceptsAnything(t *testing.T) {
	const unsigned, wrong, other = "receiver.signature.rejects-unsigned", "receiver.signature.rejects-wrong-secret", "receiver.limits.chunked"
	rule := func(id string, o evidence.Outcome) evidence.Ruling {
		return evidence.Ruling{Requirement: id, Outcome: o}
	}
	for _, tt := range []struct {
		name    string
		rulings []evidence.Ruling
		marked  bool
	}{
		{"it fails both", []evidence.Ruling{rule(unsigned, evidence.Fail), rule(wrong, evidence.Fail), rule(other, evidence.Pass)}, true},
		{"it fails one", []evidence.Ruling{rule(unsigned, evidence.Fail), rule(wrong, evidence.Pass), rule(other, evidence.Pass)}, false},
		{"it fails the other", []evidence.Ruling{rule(unsigned, evidence.Pass), rule(wrong, evidence.Fail), rule(other, evidence.Pass)}, false},
		{"neither was judged", []evidence.Ruling{rule(unsigned, evidence.Skipped), rule(wrong, evidence.Skipped), rule(other, evidence.Pass)}, false},
		{"one was not asked for", []evidence.Ruling{rule(wrong, evidence.Fail), rule(other, evidence.Pass)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range Remark(tt.rulings) {
				if want := tt.marked && r.Outcome == evidence.Pass; (r.Remark == AcceptsAnything) != want {
					t.Errorf("%s: the remark is %q", r.Requirement, r.Remark)
				}
			}
			for _, r := range tt.rulings {
				if r.Remark != "" {
					t.Error("the argument was changed")
				}
			}
		})
	}
}
