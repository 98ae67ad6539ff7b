package receiver

import (
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// Parts of the causes that do not depend on the row.
const (
	hangs      = "hangs on this delivery"
	crashed    = "crashed on this delivery"
	uncaught   = "an error that it does not catch"
	redirected = "A redirect"
	otherRoute = "Another route"
	gaveUp     = "gave up reading"
	inFront    = "A server, proxy or framework in front"
	something  = "Something other than the signature check"
	own        = "the row's own cause"
)

type wrongly struct {
	x     wire.Exchange
	cause string
}

// What each judge helper takes for right and for wrong. A row is as sure as
// these tables.
func TestJudgesTellRightFromWrong(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name  string
		judge judge
		right []wire.Exchange
		wrong []wrongly
	}{
		{
			"rejected wants one of the profile's rejections",
			rejected(own),
			[]wire.Exchange{answer(400), answer(401), answer(403), answer(422)},
			[]wrongly{
				{answer(200), own}, {answer(204), own}, {answer(299), own},
				{answer(301), redirected}, {answer(302), redirected}, {answer(404), otherRoute}, {answer(405), otherRoute},
				{answer(408), gaveUp}, {answer(413), inFront}, {answer(415), inFront}, {answer(431), inFront},
				{answer(402), something}, {answer(418), something}, {answer(500), uncaught}, {answer(503), uncaught},
				{broken(wire.FaultClosed), crashed}, {broken(wire.FaultReset), crashed}, {broken(wire.FaultTimeout), hangs},
			},
		},
		{
			"rejected takes further statuses where the row names them",
			rejected(own, 413, 431),
			[]wire.Exchange{answer(401), answer(413), answer(431)},
			[]wrongly{{answer(200), own}, {answer(415), inFront}, {answer(500), uncaught}},
		},
		{
			"accepted wants a 2xx",
			accepted(own),
			[]wire.Exchange{answer(200), answer(201), answer(204), answer(299)},
			[]wrongly{
				{answer(400), own}, {answer(401), own}, {answer(403), own}, {answer(422), own},
				{answer(302), redirected}, {answer(404), otherRoute}, {answer(413), inFront}, {answer(500), uncaught},
				{broken(wire.FaultClosed), crashed}, {broken(wire.FaultTimeout), hangs},
			},
		},
		{
			"acceptedSize wants a 2xx and blames the row's own cause for anything else but a crash",
			acceptedSize(own),
			[]wire.Exchange{answer(200), answer(202)},
			[]wrongly{{answer(401), own}, {answer(413), own}, {answer(415), own}, {answer(500), uncaught}, {broken(wire.FaultReset), crashed}},
		},
		{
			"copiesAccepted wants a 2xx",
			copiesAccepted(own),
			[]wire.Exchange{answer(200), answer(208)},
			[]wrongly{{answer(409), own}, {answer(500), own}, {broken(wire.FaultTimeout), own}},
		},
		{
			"survived wants an answer of the receiver's own",
			survived(own),
			[]wire.Exchange{answer(200), answer(302), answer(400), answer(404), answer(413), answer(499)},
			[]wrongly{{answer(500), own}, {answer(599), own}, {broken(wire.FaultClosed), own}, {broken(wire.FaultTimeout), own}},
		},
		{
			"survived without a cause of the row's looks for one",
			survived(""),
			[]wire.Exchange{answer(400)},
			[]wrongly{{answer(500), uncaught}, {broken(wire.FaultClosed), crashed}, {broken(wire.FaultTimeout), hangs}},
		},
		{
			"within looks at the time alone",
			within(fastFact, own),
			[]wire.Exchange{after(time.Second, answer(401)), after(0, answer(500))},
			[]wrongly{{after(time.Second+1, answer(401)), own}, {after(9*time.Second, broken(wire.FaultTimeout)), own}},
		},
		{
			"notAccepted wants anything but a 2xx",
			notAccepted(own),
			[]wire.Exchange{answer(401), answer(405), answer(500), broken(wire.FaultClosed), broken(wire.FaultTimeout)},
			[]wrongly{{answer(200), own}, {answer(204), own}},
		},
		{
			"a NUL may also be met by 400 or a closed connection",
			judgeNUL,
			[]wire.Exchange{answer(400), answer(401), broken(wire.FaultClosed), broken(wire.FaultReset)},
			[]wrongly{{answer(200), "not compared"}, {answer(404), otherRoute}, {answer(500), uncaught}, {broken(wire.FaultTimeout), hangs}},
		},
		{
			"without a secret nothing is accepted",
			judgeUnsetSecret,
			[]wire.Exchange{answer(401), answer(500), answer(503), broken(wire.FaultClosed)},
			[]wrongly{{answer(200), "A missing secret"}},
		},
		{
			"an oversize body is refused before it is read",
			oversizeRefused(own),
			[]wire.Exchange{
				of(mib, 64*mib, answer(413)), of(0, 64*mib, answer(401)), of(mib, 64*mib, answer(400)),
				of(mib, 64*mib, broken(wire.FaultReset)), of(mib, 64*mib, broken(wire.FaultClosed)),
			},
			[]wrongly{
				{of(mib, 64*mib, answer(200)), own}, {of(64*mib, 64*mib, answer(200)), own},
				{of(64*mib, 64*mib, answer(413)), own}, {of(64*mib, 64*mib, answer(401)), own}, {of(65*mib, 64*mib, answer(413)), own},
				{of(mib, 64*mib, answer(500)), uncaught}, {of(mib, 64*mib, answer(302)), redirected},
				{of(64*mib, 64*mib, broken(wire.FaultReset)), own}, {of(mib, 64*mib, broken(wire.FaultTimeout)), own},
			},
		},
		{
			"an oversize body is refused by 413",
			oversizeStatus,
			[]wire.Exchange{
				of(mib, 64*mib, answer(413)), of(mib, 64*mib, broken(wire.FaultReset)),
				// These the stricter row blames already.
				of(64*mib, 64*mib, answer(401)), of(mib, 64*mib, answer(200)), of(mib, 64*mib, answer(500)),
			},
			[]wrongly{{of(mib, 64*mib, answer(401)), "the status of the signature check"}, {of(mib, 64*mib, answer(400)), "the status"}},
		},
		{
			"a header of a mebibyte may be taken or refused",
			headerSurvived,
			[]wire.Exchange{answer(200), answer(400), answer(431), broken(wire.FaultClosed), broken(wire.FaultReset)},
			[]wrongly{{answer(500), "not caught"}, {broken(wire.FaultTimeout), "not caught"}},
		},
		{
			"a far larger header is refused",
			headerRefused,
			[]wire.Exchange{answer(431), answer(400), broken(wire.FaultClosed), broken(wire.FaultReset)},
			[]wrongly{{answer(200), "no bound"}, {answer(302), "no bound"}, {answer(500), "no bound"}, {broken(wire.FaultTimeout), "no bound"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, x := range tt.right {
				if findings := tt.judge(recorded(x)); len(findings) > 0 {
					t.Errorf("%s is blamed: %+v", words(x), findings)
				}
			}
			for _, w := range tt.wrong {
				t.Run(words(w.x), func(t *testing.T) { says(t, tt.judge(recorded(w.x)), w.cause) })
			}
			for _, x := range silent() {
				if findings := tt.judge(recorded(x)); len(findings) > 0 {
					t.Errorf("%s says nothing, and is blamed: %+v", words(x), findings)
				}
			}
			for _, w := range tt.wrong {
				for _, label := range []string{controlLabel, "control: anything"} {
					if findings := tt.judge(recorded(labelled(label, w.x))); len(findings) > 0 {
						t.Errorf("the control %s is judged as a probe", words(w.x))
					}
				}
			}
		})
	}
}

func TestTheRejectionsAreTheProfiles(t *testing.T) {
	tr := recorded(answer(401), labelled("another", answer(403)))
	tr.Facts[evidence.FactRejections] = "401"
	says(t, rejected(own)(tr), something)
}

func TestEachWrongProbeIsAFindingOfItsOwn(t *testing.T) {
	findings := rejected(own)(recorded(
		labelled(controlLabel, answer(200)), labelled("a", answer(200)), labelled("b", answer(401)), labelled("c", answer(500))))
	if len(findings) != 2 || findings[0].Sent != "a" || findings[1].Sent != "c" {
		t.Errorf("got %+v", findings)
	}
}

func TestOnlyAndButDivideTheProbes(t *testing.T) {
	tr := recorded(labelled("one", answer(200)), labelled("two", answer(200)), labelled("three", answer(200)))
	sent := func(j judge) string {
		var out []string
		for _, f := range j(tr) {
			out = append(out, f.Sent)
		}
		return strings.Join(out, " ")
	}
	for _, tt := range []struct {
		name string
		j    judge
		want string
	}{
		{"only", only(rejected(own), "t"), "two three"},
		{"only, with several", only(rejected(own), "one", "three"), "one three"},
		{"but", but(rejected(own), "t"), "one"},
		{"all", all(only(rejected(own), "one"), but(rejected(own), "one")), "one two three"},
		{"none", only(rejected(own), "x"), ""},
	} {
		if got := sent(tt.j); got != tt.want {
			t.Errorf("%s judges %q, want %q", tt.name, got, tt.want)
		}
	}
	if len(tr.Exchanges) != 3 {
		t.Error("the transcript was changed")
	}
}

func TestAliveLooksAtTheControlAfterwards(t *testing.T) {
	for _, tt := range []struct {
		name string
		x    wire.Exchange
		want int
	}{
		{"accepted", labelled(afterLabel, answer(200)), 0},
		{"throttled", labelled(afterLabel, answer(429)), 0},
		{"refused", labelled(afterLabel, answer(401)), 1},
		{"broken", labelled(afterLabel, broken(wire.FaultClosed)), 1},
		{"never sent", labelled("probe", answer(500)), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			findings := alive(own)(recorded(tt.x))
			if len(findings) != tt.want {
				t.Errorf("got %+v", findings)
			}
			if tt.want == 1 {
				says(t, findings, own)
			}
		})
	}
}

func TestReportedTellsOfEveryProbe(t *testing.T) {
	facts := reported(recorded(labelled(controlLabel, answer(200)), labelled("a", answer(200)), labelled("b", broken(wire.FaultReset))))
	if len(facts) != 2 || facts[0].Got != "answered 200" || !strings.Contains(facts[1].Got, "reset") {
		t.Errorf("got %+v", facts)
	}
}

func TestBeforeParsingBothBodiesAreAnsweredAlike(t *testing.T) {
	const well, malformed = "well-formed JSON under a wrong signature", "malformed JSON under a wrong signature"
	for _, tt := range []struct {
		name string
		a, b wire.Exchange
		want int
	}{
		{"alike", answer(401), answer(401), 0},
		{"otherwise", answer(401), answer(400), 1},
		{"by an error", answer(401), answer(500), 1},
		{"not at all", answer(401), broken(wire.FaultClosed), 1},
		{"throttled", answer(429), answer(400), 0},
		{"throttled the other way round", answer(401), answer(429), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if findings := judgeBeforeParsing(recorded(labelled(well, tt.a), labelled(malformed, tt.b))); len(findings) != tt.want {
				t.Errorf("got %+v", findings)
			}
		})
	}
	if findings := judgeBeforeParsing(recorded(labelled(well, answer(401)))); len(findings) > 0 {
		t.Errorf("half a transcript: %+v", findings)
	}
}

func TestAHeldBodyEndsAndOthersAreServedMeanwhile(t *testing.T) {
	held := func(x wire.Exchange) *evidence.Transcript {
		return recorded(labelled("a body that stops half way", x), labelled("meanwhile: valid delivery 1", answer(200)))
	}
	for _, x := range []wire.Exchange{answer(408), answer(400), answer(200), broken(wire.FaultClosed)} {
		if findings := judgeHeldBody(own)(held(x)); len(findings) > 0 {
			t.Errorf("%s is blamed: %+v", words(x), findings)
		}
	}
	findings := judgeHeldBody(own)(held(after(65*time.Second, broken(wire.FaultTimeout))))
	says(t, findings, own)
	if !strings.Contains(findings[0].Expected, "1m5s") {
		t.Errorf("expected is %q", findings[0].Expected)
	}
	says(t, judgeHeldBody(own)(recorded(labelled("meanwhile: valid delivery 1", broken(wire.FaultTimeout)))), "holds a worker")
}

func TestAHandshakeIsJudgedByItsFactAndItsForgery(t *testing.T) {
	right := recorded(labelled(handshakeLabel, answer(200)), labelled(forgedPing, answer(401)))
	if findings := judgeHandshake(right); len(findings) > 0 {
		t.Errorf("got %+v", findings)
	}
	right.Facts[factHandshake] = "the challenge is not in the answer"
	says(t, judgeHandshake(right), "treats the validation request as an event")
	says(t, judgeHandshake(recorded(labelled(forgedPing, answer(200)))), "on purpose")
	says(t, judgeHandshake(recorded(labelled(forgedPing, broken(wire.FaultClosed)))), "on purpose")
}

func TestTLSIsJudgedByItsTwoHandshakes(t *testing.T) {
	for _, tt := range []struct {
		facts map[string]string
		want  string
	}{
		{nil, ""},
		{map[string]string{"tls": "certificate has expired"}, "has expired"},
		{map[string]string{"tls old": "yes"}, "accepted"},
	} {
		findings := judgeTLS(&evidence.Transcript{Facts: tt.facts})
		if tt.want == "" {
			if len(findings) > 0 {
				t.Errorf("got %+v", findings)
			}
			continue
		}
		if len(findings) != 1 || !strings.Contains(findings[0].Got, tt.want) {
			t.Errorf("%v: got %+v", tt.facts, findings)
		}
	}
}

func TestBareMinimumTellsWhichHeadersWereMissing(t *testing.T) {
	rule := byID(t, "receiver.acknowledge.bare-minimum")
	if findings := rule.judge(recorded(labelled(validLabel, answer(200)))); len(findings) > 0 {
		t.Errorf("got %+v", findings)
	}
	tr := recorded(labelled(bareLabel, answer(403)), labelled(richLabel, answer(200)))
	tr.Facts[factNeeds] = "a browser's headers"
	findings := rule.judge(tr)
	says(t, findings, "guard meant for browsers")
	if !strings.Contains(findings[0].Got, "403") || !strings.Contains(findings[0].Got, "a browser's headers") {
		t.Errorf("got is %q", findings[0].Got)
	}
}

func TestARedirectIsToldWithItsDestination(t *testing.T) {
	rule := byID(t, "receiver.acknowledge.no-redirect")
	findings := rule.judge(recorded(answer(308, wire.Header{Name: "Location", Value: "/hooks/"})))
	says(t, findings, "not the final one")
	if !strings.Contains(findings[0].Got, `"/hooks/"`) {
		t.Errorf("got is %q", findings[0].Got)
	}
	for _, status := range []int{200, 299, 400, 500} {
		if findings := rule.judge(recorded(answer(status))); len(findings) > 0 {
			t.Errorf("%d: %+v", status, findings)
		}
	}
}

func byID(t *testing.T, id string) rule {
	t.Helper()
	for _, r := range rules() {
		if r.id == id {
			return r
		}
	}
	t.Fatalf("there is no rule %s", id)
	return rule{}
}

func TestTheAnswerIsHeldAgainstAStrictProfileAndToldOtherwise(t *testing.T) {
	accepted := func(strict string, x wire.Exchange) *evidence.Transcript {
		tr := recorded(labelled(validLabel, x))
		tr.Facts[factAccepted], tr.Facts[factAnswer] = validLabel, strict
		return tr
	}
	cookie := wire.Header{Name: "set-cookie", Value: "a=b"}
	full := answer(200, cookie, wire.Header{Name: "Content-Type", Value: "text/html; charset=utf-8"})
	full.Response.Size = 12
	for _, tt := range []struct {
		name, strict string
		x            wire.Exchange
		want         []string
	}{
		{"nothing is wrong with an empty one", "empty no-set-cookie", answer(200), nil},
		{"a cookie", "no-set-cookie", full, []string{"1 Set-Cookie"}},
		{"a body", "empty", full, []string{"12 bytes"}},
		{"both", "empty no-set-cookie", full, []string{"1 Set-Cookie", "12 bytes"}},
		{"elsewhere all of it is told", "", full, []string{"HTML", "cookie", "OK with a body of 12 bytes"}},
		{"elsewhere an empty one is told too", "", answer(204), []string{"No Content with a body of 0 bytes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			findings := judgeAnswer(accepted(tt.strict, tt.x))
			if len(findings) != len(tt.want) {
				t.Fatalf("got %+v", findings)
			}
			for i, want := range tt.want {
				if !strings.Contains(findings[i].Got, want) {
					t.Errorf("finding %d says %q, want %q", i, findings[i].Got, want)
				}
			}
		})
	}
	if findings := judgeAnswer(recorded()); len(findings) > 0 {
		t.Errorf("without an accepted delivery: %+v", findings)
	}
}
