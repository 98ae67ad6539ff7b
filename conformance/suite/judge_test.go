package suite

import (
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

const (
	row      = "receiver.example.row"
	scenario = "receiver.example.scenario"
	mend     = "Do it the right way."
)

// situation is one input of Judge, right in everything that a case does not
// change: the requirement was asked for, has a check, and its transcript is
// complete and holds an accepted control and an accepted probe.
type situation struct {
	question    Question
	checks      []Check
	transcripts []evidence.Transcript
}

func sound() situation {
	return situation{
		question: Question{Requirement: catalogue.Requirement{ID: row, Fix: mend}, Level: evidence.Must},
		checks:   []Check{{Requirement: row, Scenario: scenario, Judge: finds()}},
		transcripts: []evidence.Transcript{{
			Scenario: scenario, Control: "control",
			Exchanges: []wire.Exchange{answered("control", http.StatusOK), answered("probe", http.StatusOK)},
		}},
	}
}

func finds(findings ...evidence.Finding) func(*evidence.Transcript) []evidence.Finding {
	return func(*evidence.Transcript) []evidence.Finding { return slices.Clone(findings) }
}

func answered(label string, status int, headers ...wire.Header) wire.Exchange {
	return wire.Exchange{Label: label, Response: &wire.Response{Status: status, Headers: headers}}
}

// change is one thing that is not as in the sound situation.
type change func(*situation)

func (s situation) with(changes ...change) situation {
	for _, c := range changes {
		c(&s)
	}
	return s
}

func (s situation) judge() evidence.Ruling {
	return Judge([]Question{s.question}, s.checks, s.transcripts)[0]
}

func level(l string) change { return func(s *situation) { s.question.Level = l } }

func decided(reason evidence.SkipReason) change {
	return func(s *situation) { s.question.Skip = &evidence.Skip{Reason: reason, Detail: "decided before"} }
}

func noCheck(s *situation)      { s.checks = nil }
func noTranscript(s *situation) { s.transcripts = nil }
func brokeDown(s *situation)    { s.transcripts[0].Error = "the scenario broke down" }
func gone(s *situation)         { s.transcripts[0].Gone = true }
func partial(s *situation)      { s.transcripts[0].Partial = true }

func ownSkip(reason evidence.SkipReason) change {
	return func(s *situation) {
		s.transcripts[0].Skips = map[string]evidence.Skip{row: {Reason: reason, Detail: "the scenario's own"}}
	}
}

func control(x wire.Exchange) change {
	return func(s *situation) {
		x.Label = "control"
		s.transcripts[0].Exchanges[0] = x
	}
}

func probe(x wire.Exchange) change {
	return func(s *situation) {
		x.Label = "probe"
		s.transcripts[0].Exchanges[1] = x
	}
}

func finding(s *situation) {
	s.checks[0].Judge = finds(evidence.Finding{Sent: "probe", Got: "wrong"})
}

func panics(value any) change {
	return func(s *situation) {
		s.checks[0].Judge = func(*evidence.Transcript) []evidence.Finding { panic(value) }
	}
}

var (
	busy       = answered("", http.StatusTooManyRequests)
	retryLater = answered("", http.StatusServiceUnavailable, wire.Header{Name: "retry-after", Value: "1"})
	plain503   = answered("", http.StatusServiceUnavailable)
	refused401 = answered("", http.StatusUnauthorized)
	nobody     = wire.Exchange{Fault: wire.FaultRefused}
	reset      = wire.Exchange{Fault: wire.FaultReset}
)

func TestARequirementIsRuledByWhatIsKnownOfIt(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes []change
		outcome evidence.Outcome
		reason  evidence.SkipReason
		detail  string // a part of the ruling's detail, or of its skip's
	}{
		{"a MUST without a finding passes", nil, evidence.Pass, "", ""},
		{"a SHOULD without a finding passes", []change{level(evidence.Should)}, evidence.Pass, "", ""},
		{"a MUST with a finding fails", []change{finding}, evidence.Fail, "", ""},
		{"a SHOULD with a finding warns", []change{level(evidence.Should), finding}, evidence.Warn, "", ""},
		{"a MAY without a finding is information", []change{level(evidence.May)}, evidence.Info, "", ""},
		{"a MAY with a finding is information", []change{level(evidence.May), finding}, evidence.Info, "", ""},

		{"what the selection leaves out is skipped", []change{decided(evidence.NotSelected)}, evidence.Skipped, evidence.NotSelected, "decided before"},
		{"what was not reached is skipped", []change{decided(evidence.NotReached)}, evidence.Skipped, evidence.NotReached, "decided before"},
		{"what the subject does not offer is skipped", []change{decided(evidence.NotDeclared)}, evidence.Skipped, evidence.NotDeclared, "decided before"},
		{"what the profile does not have is skipped", []change{decided(evidence.NotApplicable)}, evidence.Skipped, evidence.NotApplicable, "decided before"},
		{"what has no check is skipped", []change{noCheck}, evidence.Skipped, evidence.NoCheck, "no check"},
		{"what has no transcript was not reached", []change{noTranscript}, evidence.Skipped, evidence.NotReached, "before its scenario began"},
		{"what broke down is an error", []change{brokeDown}, evidence.Error, "", "the scenario broke down"},
		{"what a dead subject could not show was not reached", []change{gone}, evidence.Skipped, evidence.NotReached, "did not come back"},
		{"what was cut short was not reached", []change{partial}, evidence.Skipped, evidence.NotReached, "in the middle"},
		{"what the scenario could not see is skipped", []change{ownSkip(evidence.NotObservable)}, evidence.Skipped, evidence.NotObservable, "the scenario's own"},
		{"what the scenario found throttled is skipped", []change{ownSkip(evidence.Throttled)}, evidence.Skipped, evidence.Throttled, "the scenario's own"},
		{"a scenario's skip of another row means nothing", []change{func(s *situation) {
			s.transcripts[0].Skips = map[string]evidence.Skip{"receiver.example.other": {Reason: evidence.NotObservable}}
		}}, evidence.Pass, "", ""},

		{"a refused control leaves the rest not reached", []change{control(refused401)}, evidence.Skipped, evidence.NotReached, "was not accepted: answered 401"},
		{"a redirected control leaves the rest not reached", []change{control(answered("", 302))}, evidence.Skipped, evidence.NotReached, "answered 302"},
		{"a control answered 503 leaves the rest not reached", []change{control(plain503)}, evidence.Skipped, evidence.NotReached, "answered 503"},
		{"a control without an answer leaves the rest not reached", []change{control(reset)}, evidence.Skipped, evidence.NotReached, "reset without an answer"},
		{"a control answered 429 was throttled", []change{control(busy)}, evidence.Skipped, evidence.Throttled, "(429)"},
		{"a control answered 503 with Retry-After was throttled", []change{control(retryLater)}, evidence.Skipped, evidence.Throttled, "(503)"},
		{"a control that was never sent leaves the rest not reached", []change{func(s *situation) { s.transcripts[0].Exchanges = s.transcripts[0].Exchanges[1:] }}, evidence.Skipped, evidence.NotReached, "never sent"},
		{"a scenario without a control needs none", []change{func(s *situation) { s.transcripts[0].Control = "" }, control(refused401)}, evidence.Pass, "", ""},
		{"a control answered 204 is accepted", []change{control(answered("", http.StatusNoContent))}, evidence.Pass, "", ""},

		{"a throttled probe hides a pass", []change{probe(busy)}, evidence.Skipped, evidence.Throttled, "429"},
		{"a probe asked to come later hides a pass", []change{probe(retryLater)}, evidence.Skipped, evidence.Throttled, "lower --rate"},
		{"a probe answered 503 alone hides nothing", []change{probe(plain503)}, evidence.Pass, "", ""},
		{"a throttled probe hides no finding of a MUST", []change{probe(busy), finding}, evidence.Fail, "", ""},
		{"a throttled probe hides no finding of a SHOULD", []change{probe(busy), finding, level(evidence.Should)}, evidence.Warn, "", ""},
		{"a throttled probe hides a pass of a SHOULD", []change{probe(busy), level(evidence.Should)}, evidence.Skipped, evidence.Throttled, ""},
		{"a throttled probe leaves a MAY information", []change{probe(busy), level(evidence.May)}, evidence.Info, "", ""},

		{"a probe that found nobody listening hides a pass", []change{probe(nobody)}, evidence.Skipped, evidence.NotReached, "stopped listening"},
		{"a probe that found nobody listening hides no finding", []change{probe(nobody), finding}, evidence.Fail, "", ""},
		{"a probe that found nobody listening leaves a MAY information", []change{probe(nobody), level(evidence.May)}, evidence.Info, "", ""},
		{"a probe whose connection was reset hides nothing: its check has looked at it", []change{probe(reset)}, evidence.Pass, "", ""},

		{"a check that panics is an error", []change{panics("boom")}, evidence.Error, "", "judging " + row},
		{"a MAY whose check panics is an error", []change{panics("boom"), level(evidence.May)}, evidence.Error, "", "boom"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := sound().with(tt.changes...).judge()
			if got.Outcome != tt.outcome || got.Skip.Reason != tt.reason {
				t.Errorf("got %s %s, want %s %s", got.Outcome, got.Skip.Reason, tt.outcome, tt.reason)
			}
			if detail := got.Detail + got.Skip.Detail; !strings.Contains(detail, tt.detail) {
				t.Errorf("the detail is %q, want %q in it", detail, tt.detail)
			}
			if got.Outcome == evidence.Skipped && got.Skip.Detail == "" {
				t.Error("a skip does not say why")
			}
			if got.Requirement != row || got.Level == "" {
				t.Errorf("the ruling is on %q at %q", got.Requirement, got.Level)
			}
		})
	}
}

// Each step is the reason that counts where all later ones hold too. The order
// is the rule: what was never tried is no error, what broke down says nothing of
// a control, and a finding outweighs a throttled probe.
func TestTheFirstReasonThatHoldsCounts(t *testing.T) {
	steps := []struct {
		name    string
		hold    change
		outcome evidence.Outcome
		reason  evidence.SkipReason
		detail  string
	}{
		{"decided before anything was sent", decided(evidence.NotDeclared), evidence.Skipped, evidence.NotDeclared, "decided before"},
		{"no check", noCheck, evidence.Skipped, evidence.NoCheck, ""},
		{"no transcript", noTranscript, evidence.Skipped, evidence.NotReached, "before its scenario began"},
		{"the scenario broke down", brokeDown, evidence.Error, "", "broke down"},
		{"the subject died and did not come back", gone, evidence.Skipped, evidence.NotReached, "did not come back"},
		{"the scenario was cut short", partial, evidence.Skipped, evidence.NotReached, "in the middle"},
		{"the scenario's own skip", ownSkip(evidence.NotApplicable), evidence.Skipped, evidence.NotApplicable, "own"},
		{"the control was throttled", control(busy), evidence.Skipped, evidence.Throttled, "control"},
		{"the control was refused", control(refused401), evidence.Skipped, evidence.NotReached, "control"},
		{"a check that panics", panics("boom"), evidence.Error, "", "boom"},
		{"a finding", finding, evidence.Fail, "", ""},
		{"a probe that found nobody listening", probe(nobody), evidence.Skipped, evidence.NotReached, "stopped listening"},
		{"a throttled probe", probe(busy), evidence.Skipped, evidence.Throttled, "one of its deliveries"},
	}
	for i, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			s := sound()
			// From the last to this one, so that of two that set the same thing
			// the earlier has the last word.
			for _, later := range slices.Backward(steps[i:]) {
				later.hold(&s)
			}
			got := s.judge()
			if got.Outcome != step.outcome || got.Skip.Reason != step.reason {
				t.Errorf("got %s %s (%s%s), want %s %s", got.Outcome, got.Skip.Reason, got.Detail, got.Skip.Detail, step.outcome, step.reason)
			}
			if detail := got.Detail + got.Skip.Detail; !strings.Contains(detail, step.detail) {
				t.Errorf("the detail is %q, want %q in it", detail, step.detail)
			}
		})
	}
}

func TestAMayIsNeverJudgedWhateverCameBack(t *testing.T) {
	for _, x := range []wire.Exchange{answered("", 200), answered("", 500), busy, reset} {
		for _, found := range []change{func(*situation) {}, finding} {
			if got := sound().with(level(evidence.May), probe(x), found).judge(); got.Outcome != evidence.Info {
				t.Errorf("%s: the outcome is %s", Came(&x), got.Outcome)
			}
		}
	}
}

func TestTheMendOfTheCatalogueStandsInForAMissingOne(t *testing.T) {
	own := evidence.Finding{Sent: "a", Fix: "Its own."}
	bare := evidence.Finding{Sent: "b"}
	for _, tt := range []struct {
		name, level string
		want        []string
	}{
		{"of a MUST", evidence.Must, []string{"Its own.", mend}},
		{"of a SHOULD", evidence.Should, []string{"Its own.", mend}},
		{"but not of a MAY, which has nothing to mend", evidence.May, []string{"Its own.", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := sound().with(level(tt.level))
			s.checks[0].Judge = finds(own, bare)
			var got []string
			for _, f := range s.judge().Findings {
				got = append(got, f.Fix)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEveryFindingIsKept(t *testing.T) {
	s := sound()
	var many []evidence.Finding
	for i := range 50 {
		many = append(many, evidence.Finding{Sent: fmt.Sprint(i), Fix: "x"})
	}
	s.checks[0].Judge = finds(many...)
	if got := s.judge().Findings; !reflect.DeepEqual(got, many) {
		t.Errorf("%d of 50 findings are left, or changed", len(got))
	}
}

func TestRulingsComeInTheOrderOfTheQuestions(t *testing.T) {
	var questions []Question
	var checks []Check
	var transcripts []evidence.Transcript
	for i := range 20 {
		id := fmt.Sprintf("receiver.example.%02d", i)
		questions = append(questions, Question{Requirement: catalogue.Requirement{ID: id}, Level: evidence.Must})
		// Others stand the other way round, and two rows share a transcript.
		of := fmt.Sprintf("scenario %02d", i/2)
		checks = slices.Insert(checks, 0, Check{Requirement: id, Scenario: of, Judge: func(t *evidence.Transcript) []evidence.Finding {
			return []evidence.Finding{{Sent: t.Scenario}}
		}})
		if i%2 == 0 {
			transcripts = slices.Insert(transcripts, 0, evidence.Transcript{Scenario: of})
		}
	}
	for i, got := range Judge(questions, checks, transcripts) {
		of := fmt.Sprintf("scenario %02d", i/2)
		if got.Requirement != questions[i].Requirement.ID || got.Scenario != of || got.Findings[0].Sent != of {
			t.Errorf("ruling %d is on %s from %s (%s)", i, got.Requirement, got.Scenario, got.Findings[0].Sent)
		}
	}
}

func TestJudgingTwiceGivesTheSame(t *testing.T) {
	for _, changes := range [][]change{nil, {finding}, {brokeDown}, {control(busy)}, {panics("boom")}} {
		s := sound().with(changes...)
		if a, b := s.judge(), s.judge(); !reflect.DeepEqual(a, b) {
			t.Errorf("first %+v, then %+v", a, b)
		}
	}
}

// What a panic prints must not differ from run to run, nor show what was in
// memory.
func TestAPanicIsToldByPlaceWithoutAddresses(t *testing.T) {
	address := regexp.MustCompile(`0x[0-9a-f]+|\{\.\.\.`)
	var none *evidence.Transcript
	for _, tt := range []struct {
		name  string
		check func(*evidence.Transcript) []evidence.Finding
		want  []string
	}{
		{"by a nil pointer", func(*evidence.Transcript) []evidence.Finding {
			return []evidence.Finding{{Sent: none.Scenario}}
		}, []string{"nil pointer", "suite.TestAPanicIsToldByPlaceWithoutAddresses"}},
		{"by an index", func(t *evidence.Transcript) []evidence.Finding {
			return []evidence.Finding{{Sent: t.Exchanges[len(t.Exchanges)].Label}}
		}, []string{"out of range", "suite.TestAPanicIsToldByPlaceWithoutAddresses"}},
		{"in a function that takes strings and slices", func(t *evidence.Transcript) []evidence.Finding {
			return taking(t.Scenario, t.Exchanges, nil)
		}, []string{"no such thing", "suite.taking"}},
		{"with a value that is a pointer", func(*evidence.Transcript) []evidence.Finding {
			panic(new(int))
		}, []string{"suite.TestAPanicIsToldByPlaceWithoutAddresses"}},
		{"with an error", func(*evidence.Transcript) []evidence.Finding {
			panic(fmt.Errorf("reading %d", 7))
		}, []string{"reading 7"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := sound()
			s.checks[0].Judge = tt.check
			got := s.judge()
			if got.Outcome != evidence.Error {
				t.Fatalf("the outcome is %s", got.Outcome)
			}
			if at := address.FindString(got.Detail); at != "" {
				t.Errorf("%q holds %q", got.Detail, at)
			}
			for _, want := range append(tt.want, row, "the suite itself failed") {
				if !strings.Contains(got.Detail, want) {
					t.Errorf("%q does not say %q", got.Detail, want)
				}
			}
			if strings.Contains(got.Detail, "\n") {
				t.Errorf("%q has several lines", got.Detail)
			}
		})
	}
}

//go:noinline
func taking(what string, _ []wire.Exchange, _ any) []evidence.Finding {
	panic("no such thing in " + what)
}

func TestWhatCameBackIsSaidInWords(t *testing.T) {
	for _, tt := range []struct {
		x    wire.Exchange
		want string
	}{
		{answered("", 204), "answered 204"},
		{answered("", 503), "answered 503"},
		{wire.Exchange{Fault: wire.FaultRefused}, "the connection was refused"},
		{wire.Exchange{Fault: wire.FaultReset}, "the connection was reset without an answer"},
		{wire.Exchange{Fault: wire.FaultClosed}, "the connection was closed without an answer"},
		{wire.Exchange{Fault: wire.FaultTimeout}, "no answer came in time"},
		{wire.Exchange{Fault: wire.FaultTLS}, "the TLS handshake failed"},
		{wire.Exchange{Fault: wire.FaultDNS}, "the host name did not resolve"},
		{wire.Exchange{Fault: wire.FaultNotHTTP}, "what came back was not HTTP"},
		{wire.Exchange{Fault: "unheard-of"}, "no answer"},
		{wire.Exchange{}, "no answer"},
	} {
		if got := Came(&tt.x); got != tt.want {
			t.Errorf("fault %q: got %q, want %q", tt.x.Fault, got, tt.want)
		}
	}
}
