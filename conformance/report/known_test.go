package report

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/whconform/whconform/conformance/evidence"
)

func TestAListOfKnownFailuresIsReadOrRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want Known
		err  []string
	}{
		"an empty file":          {},
		"comments and blanks":    {text: "# nothing\n\n   \n\t# more\n"},
		"an id":                  {text: "receiver.replay.rejects-stale # ticket 12", want: Known{"receiver.replay.rejects-stale": "ticket 12"}},
		"a reason with a #":      {text: "receiver.replay.rejects-stale#see #12\r\n", want: Known{"receiver.replay.rejects-stale": "see #12"}},
		"a glob":                 {text: "receiver.signature.rejects-unsign* # old", want: Known{"receiver.signature.rejects-unsigned": "old"}},
		"the first reason":       {text: "receiver.signature.rejects-unsigned # one\nreceiver.signature.rejects-unsign* # two", want: Known{"receiver.signature.rejects-unsigned": "one"}},
		"no reason":              {text: "\nreceiver.replay.rejects-stale", err: []string{"line 2: no reason is given for receiver.replay.rejects-stale"}},
		"an empty reason":        {text: "receiver.replay.rejects-stale #  ", err: []string{"line 1: no reason"}},
		"matches nothing":        {text: "receiver.replay.rejects-stail # x", err: []string{"line 1: ", "matches no requirement", "receiver.replay.rejects-stale"}},
		"all faults, not one":    {text: "nosuch # x\nreplay\n[ # y", err: []string{"line 1: ", "line 2: ", "line 3: "}},
		"bytes that are no text": {text: "receiver.replay.rejects-stale # \xff", err: []string{"line 1: it is not UTF-8"}},
		"a file without an end":  {text: strings.Repeat("#", knownLimit+1), err: []string{"larger than"}},
	} {
		got, err := ReadKnown(strings.NewReader(c.text))
		if (err != nil) != (c.err != nil) || c.err == nil && !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		for _, want := range c.err {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", name, err, want)
			}
		}
	}
	gone := errors.New("the disk is gone")
	if _, err := ReadKnown(readFailing{gone}); !errors.Is(err, gone) {
		t.Errorf("%v, want %v", err, gone)
	}
}

func TestAListOpensTheGateAndNothingElse(t *testing.T) {
	const pass, fail, warn, info, broke, xfail, xpass = evidence.Pass, evidence.Fail, evidence.Warn, evidence.Info, evidence.Error, evidence.XFail, evidence.XPass
	list := func(ids ...string) Known {
		k := Known{}
		for _, id := range ids {
			k[id] = "ticket 12"
		}
		return k
	}
	for name, c := range map[string]struct {
		strict  bool
		rows    []ruled
		known   Known
		first   evidence.Outcome // of the first row
		verdict Verdict
		exit    int
	}{
		"no list":                        {rows: []ruled{is(core, fail)}, first: fail, verdict: NotConformant, exit: 1},
		"a list of something else":       {rows: []ruled{is(core, fail), skips(should, evidence.NotSelected)}, known: list(should.ID), first: fail, verdict: NotConformant, exit: 1},
		"a broken MUST":                  {rows: []ruled{is(core, fail), is(other, pass)}, known: list(core.ID), first: xfail, verdict: NotConformant, exit: 0},
		"a broken MUST beside another":   {rows: []ruled{is(core, fail), is(other, fail)}, known: list(core.ID), first: xfail, verdict: NotConformant, exit: 1},
		"a MUST that holds":              {rows: []ruled{is(core, pass), is(other, pass)}, known: list(core.ID), first: xpass, verdict: Conformant, exit: 1},
		"a broken SHOULD":                {rows: []ruled{is(should, warn), is(core, pass)}, known: list(should.ID), first: xfail, verdict: Conformant, exit: 0},
		"a broken SHOULD under --strict": {strict: true, rows: []ruled{is(should, warn), is(core, pass)}, known: list(should.ID), first: xfail, verdict: Conformant, exit: 0},
		"one SHOULD of two, --strict":    {strict: true, rows: []ruled{is(should, warn), is(requirement("receiver.acknowledge.burst", "SHOULD", ""), warn)}, known: list(should.ID), first: xfail, verdict: Conformant, exit: 1},
		"a SHOULD that holds":            {rows: []ruled{is(should, pass), is(core, pass)}, known: list(should.ID), first: xpass, verdict: Conformant, exit: 1},
		"an error":                       {rows: []ruled{is(core, broke), is(other, pass)}, known: list(core.ID), first: broke, verdict: Broken, exit: 3},
		"not reached":                    {rows: []ruled{skips(core, evidence.NotReached), is(other, pass)}, known: list(core.ID), first: evidence.Skipped, verdict: Partial, exit: 1},
		"a fact":                         {rows: []ruled{is(may, info), is(core, pass)}, known: list(may.ID), first: info, verdict: Conformant, exit: 0},
		"everything that there is":       {rows: []ruled{is(core, fail), is(should, warn)}, known: list(core.ID, should.ID), first: xfail, verdict: NotConformant, exit: 0},
	} {
		r := settled(c.strict, false, c.rows)
		before := r.Results
		r.Excuse(c.known)
		if r.Results[0].Outcome != c.first || r.Verdict != c.verdict || r.ExitCode() != c.exit {
			t.Errorf("%s: outcome %s, verdict %s, exit %d; want %s, %s, %d (%q)", name, r.Results[0].Outcome, r.Verdict, r.ExitCode(), c.first, c.verdict, c.exit, r.Reasons)
		}
		if before[0].Outcome != c.rows[0].ruling.Outcome {
			t.Errorf("%s: the results that were given are changed", name)
		}
		// Another list takes the place of this one.
		r.Excuse(nil)
		for i := range r.Results {
			if r.Results[i].Outcome != c.rows[i].ruling.Outcome || r.Results[i].Known != "" {
				t.Errorf("%s: without the list row %d is %s, listed for %q", name, i+1, r.Results[i].Outcome, r.Results[i].Known)
			}
		}
	}
}

func TestAWrittenListOpensTheGateOfItsRun(t *testing.T) {
	for name, c := range map[string]struct {
		r    *Report
		want string // without the first line, which says what this is
	}{
		"failures": {samples()["failing"], "receiver.signature.rejects-tampered-body  # one digit changed: answered 200; expected a rejection: 400, 401, 403 or 422 (and 3 more)\n"},
		"under strict warnings, too": {strict(samples()["failing"]), "receiver.signature.rejects-tampered-body  # one digit changed: answered 200; expected a rejection: 400, 401, 403 or 422 (and 3 more)\n" +
			"receiver.replay.accepts-skew  # signed 4 min ago: answered 401; expected a 2xx\n"},
		"nothing":                {samples()["conformant"], ""},
		"errors are not excused": {samples()["error"], ""},
		"old reasons are kept, and what holds now is left out": {samples()["known"], "receiver.signature.rejects-tampered-body  # ticket 12: the old gateway signs nothing\n" +
			"receiver.duplicate.processes-once  # ticket 14\n"},
	} {
		var out bytes.Buffer
		if err := WriteKnown(&out, c.r); err != nil {
			t.Fatal(err)
		}
		head, list, _ := strings.Cut(out.String(), "\n")
		if !strings.HasPrefix(head, "# ") || list != c.want {
			t.Errorf("%s: %q, want %q", name, list, c.want)
		}
		if c.r.Verdict == Broken {
			continue
		}
		known, err := ReadKnown(&out)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.r.Excuse(known); c.r.Gate != Open {
			t.Errorf("%s: with the list the gate is still closed: %q", name, c.r.Reasons)
		}
	}
}

func strict(r *Report) *Report {
	r.Strict = true
	r.settle()
	return r
}

func TestAWrittenListIsReadWhateverTheSubjectSaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hostile := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\n* # all", "\xff", "# ", strings.Repeat("é", 1000)})).Draw(t, "hostile")
		r := hostileReport(hostile)
		var out bytes.Buffer
		if err := WriteKnown(&out, r); err != nil {
			t.Fatal(err)
		}
		known, err := ReadKnown(&out)
		if err != nil {
			t.Fatal(err)
		}
		if len(known) != 1 || known["receiver.signature.accepts-valid"] == "" {
			t.Fatalf("%q makes %v", hostile, known)
		}
	})
}

func TestErrorsOfTheWriterOfAListAreReturned(t *testing.T) {
	if err := WriteKnown(failing{io.ErrShortWrite}, samples()["failing"]); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("%v, want %v", err, io.ErrShortWrite)
	}
}
