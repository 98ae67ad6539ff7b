package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/whconform/whconform/conformance/evidence"
)

func junit(t testing.TB, r *Report) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WriteJUnit(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestTheJUnitXMLOfEachKindOfRun(t *testing.T) {
	for name, r := range samples() {
		t.Run(name, func(t *testing.T) { golden(t, name+".xml", junit(t, r)) })
	}
}

// readCase is a test case as a pipeline reads it.
type readCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	Failure *readProblem `xml:"failure"`
	Error   *readProblem `xml:"error"`
	Skipped *readProblem `xml:"skipped"`
	Out     string       `xml:"system-out"`
}

type readProblem struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

type readSuites struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Skipped  int `xml:"skipped,attr"`
	Suite    struct {
		Tests      int             `xml:"tests,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []readCase      `xml:"testcase"`
	} `xml:"testsuite"`
}

// readJUnit reads a document and compares its counts with its cases.
func readJUnit(t interface {
	Helper()
	Fatalf(string, ...any)
}, text []byte) readSuites {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(text))
	var doc readSuites
	if err := decoder.Decode(&doc); err != nil {
		t.Fatalf("no XML: %v\n%s", err, text)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) && err != nil {
		t.Fatalf("behind the document: %v", err)
	}
	failures, errs, skipped := 0, 0, 0
	for _, c := range doc.Suite.Cases {
		if c.Failure != nil {
			failures++
		}
		if c.Error != nil {
			errs++
		}
		if c.Skipped != nil {
			skipped++
		}
	}
	if doc.Tests != len(doc.Suite.Cases) || doc.Suite.Tests != doc.Tests || doc.Failures != failures || doc.Errors != errs || doc.Skipped != skipped {
		t.Fatalf("it counts %d tests, %d failures, %d errors, %d skipped; there are %d, %d, %d, %d", doc.Tests, doc.Failures, doc.Errors, doc.Skipped, len(doc.Suite.Cases), failures, errs, skipped)
	}
	return doc
}

func TestEveryRequirementIsATestCaseOfItsGroup(t *testing.T) {
	for name, r := range samples() {
		doc := readJUnit(t, junit(t, r))
		if len(doc.Suite.Cases) != len(r.Results)+1 {
			t.Fatalf("%s: %d cases for %d results and the verdict", name, len(doc.Suite.Cases), len(r.Results))
		}
		for i, c := range doc.Suite.Cases[:len(r.Results)] {
			group := r.Results[i].ID[:strings.LastIndexByte(r.Results[i].ID, '.')]
			if c.Name != r.Results[i].ID || c.Class != group {
				t.Errorf("%s: case %d is %s of %s, want %s of %s", name, i+1, c.Name, c.Class, r.Results[i].ID, group)
			}
		}
		properties := map[string]string{}
		for _, p := range doc.Suite.Properties {
			properties[p.Name] = p.Value
		}
		for key, want := range map[string]string{
			"subject": r.Subject.Target, "profile": r.Profile, "seed": strconv.FormatUint(r.Seed, 10), "verdict": string(r.Verdict), "gate": string(r.Gate),
		} {
			if properties[key] != want {
				t.Errorf("%s: property %s is %q, want %q", name, key, properties[key], want)
			}
		}
	}
}

func TestAClosedGateIsNeverGreen(t *testing.T) {
	for name, r := range samples() {
		doc := readJUnit(t, junit(t, r))
		last := doc.Suite.Cases[len(doc.Suite.Cases)-1]
		if last.Name != "verdict" || (last.Failure == nil) != (r.Gate == Open) {
			t.Errorf("%s: the gate is %s, the last case %+v", name, r.Gate, last)
		}
		if r.Gate == Closed && (doc.Failures == 0 || !strings.Contains(last.Failure.Message, string(r.Verdict)+": "+r.Reasons[0])) {
			t.Errorf("%s: %d failures, the verdict says %q", name, doc.Failures, last.Failure.Message)
		}
	}
}

func TestOutcomesAreWhatAPipelineCountsThemAs(t *testing.T) {
	finding := []evidence.Finding{{Sent: "a delivery", Expected: "a 2xx", Got: "answered 401", Cause: "a guess"}, {Sent: "another", Got: "no answer"}}
	for name, c := range map[string]struct {
		strict           bool
		ruling           evidence.Ruling
		kind, text, more string
	}{
		"a pass":                      {ruling: passed},
		"a pass with a remark":        {ruling: evidence.Ruling{Outcome: evidence.Pass, Remark: "accepts anything"}, kind: "out", more: "accepts anything"},
		"a failure":                   {ruling: evidence.Ruling{Outcome: evidence.Fail, Findings: finding}, kind: "failure", text: "a delivery: answered 401; expected a 2xx (and 1 more)", more: "likely cause  a guess"},
		"a warning":                   {ruling: evidence.Ruling{Outcome: evidence.Warn, Findings: finding}, kind: "out", more: "answered 401"},
		"a warning under strict":      {strict: true, ruling: evidence.Ruling{Outcome: evidence.Warn, Findings: finding}, kind: "failure", text: "a delivery: answered 401", more: "no answer"},
		"a fact":                      {ruling: window, kind: "out", more: "signed in the past: accepted up to 300 s"},
		"an error":                    {ruling: broken("it broke\nin two"), kind: "error", text: "could not be judged: it broke", more: "| in two"},
		"a skip":                      {ruling: slow, kind: "skipped", text: "not-selected: slow: add --slow"},
		"a known failure":             {ruling: evidence.Ruling{Outcome: evidence.XFail, Findings: finding}, kind: "skipped", text: "known to fail: a delivery: answered 401"},
		"a pass that was not awaited": {ruling: evidence.Ruling{Outcome: evidence.XPass}, kind: "failure", text: "take it off the list"},
	} {
		r := sample(func(r *Report) { r.Strict = c.strict }, c.ruling)
		got := readJUnit(t, junit(t, r)).Suite.Cases[0]
		kind, problem := "", &readProblem{}
		for k, p := range map[string]*readProblem{"failure": got.Failure, "error": got.Error, "skipped": got.Skipped} {
			if p != nil {
				kind, problem = k, p
			}
		}
		if kind == "" && got.Out != "" {
			kind = "out"
		}
		if kind != c.kind || !strings.Contains(problem.Message, c.text) || !strings.Contains(problem.Text+got.Out, c.more) {
			t.Errorf("%s: %q, message %q, text %q", name, kind, problem.Message, problem.Text+got.Out)
		}
	}
}

// hostileReport has one value wherever a subject may have had a say.
func hostileReport(hostile string) *Report {
	finding := evidence.Finding{Sent: hostile, Expected: hostile, Got: hostile, Cause: hostile, Fix: hostile}
	return sample(func(r *Report) {
		r.Diagnosis, r.Subject.Target, r.Profile = &finding, hostile, hostile
	},
		evidence.Ruling{Outcome: evidence.Fail, Findings: []evidence.Finding{finding, {Sent: "plain", Got: hostile}}},
		evidence.Ruling{Outcome: evidence.Error, Detail: hostile},
		evidence.Ruling{Outcome: evidence.Warn, Findings: []evidence.Finding{finding}},
		evidence.Ruling{Outcome: evidence.Info, Findings: []evidence.Finding{finding}},
		evidence.Ruling{Outcome: evidence.Pass, Remark: hostile},
		evidence.Ruling{Outcome: evidence.Skipped, Skip: evidence.Skip{Reason: evidence.NotReached, Detail: hostile}})
}

func TestAHostileSubjectCannotBreakTheXML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hostile := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.SampledFrom([]string{"]]>", "</failure><testcase/>", "<!--", "&#0;", "\x00\x0b\ufffe\uffff", "\xed\xa0\x80"})).Draw(t, "hostile")
		var out bytes.Buffer
		if err := WriteJUnit(&out, hostileReport(hostile)); err != nil {
			t.Fatal(err)
		}
		doc := readJUnit(t, out.Bytes())
		if len(doc.Suite.Cases) != 7 || doc.Failures != 2 || doc.Errors != 1 || doc.Skipped != 1 {
			t.Fatalf("read as %+v", doc)
		}
		if strings.ContainsAny(out.String(), "\x00\x0b\ufffe\uffff\x1b") {
			t.Fatalf("a character that is none in XML 1.0: %q", out.String())
		}
	})
}
