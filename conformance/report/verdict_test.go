package report

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
)

// Rows of three kinds: a MUST of the core set, a MUST that needs more than a
// URL, and a SHOULD.
var (
	core   = requirement("receiver.signature.accepts-valid", "MUST", "")
	other  = requirement("receiver.signature.rejects-unsigned", "MUST", "")
	needy  = requirement("receiver.duplicate.processes-once", "MUST", "", "observe")
	should = requirement("receiver.acknowledge.fast", "SHOULD", "")
	may    = requirement("receiver.replay.tolerance", "MAY", "")
)

// is rules on a requirement.
func is(r catalogue.Requirement, o evidence.Outcome) ruled {
	return ruled{r, evidence.Ruling{Requirement: r.ID, Level: r.Level, Outcome: o}}
}

// skips rules that a requirement was not judged.
func skips(r catalogue.Requirement, reason evidence.SkipReason) ruled {
	made := is(r, evidence.Skipped)
	made.ruling.Skip = evidence.Skip{Reason: reason}
	return made
}

type ruled struct {
	requirement catalogue.Requirement
	ruling      evidence.Ruling
}

func settled(strict, interrupted bool, rows []ruled) *Report {
	r := &Report{Strict: strict, Interrupted: interrupted}
	var requirements []catalogue.Requirement
	var rulings []evidence.Ruling
	for _, row := range rows {
		requirements = append(requirements, row.requirement)
		rulings = append(rulings, row.ruling)
	}
	Settle(r, requirements, rulings, nil)
	return r
}

func TestVerdictGateAndExitCode(t *testing.T) {
	const (
		pass, fail, warn, info, broke = evidence.Pass, evidence.Fail, evidence.Warn, evidence.Info, evidence.Error
		xfail, xpass                  = evidence.XFail, evidence.XPass
	)
	for name, c := range map[string]struct {
		strict, interrupted bool
		rows                []ruled
		verdict             Verdict
		gate                Gate
		exit                int
		reasons             []string // each stands in the reason of its place
	}{
		"all pass": {
			rows:    []ruled{is(core, pass), is(needy, pass), is(should, pass)},
			verdict: Conformant, gate: Open, exit: 0,
		},
		"a fact changes nothing": {
			rows:    []ruled{is(core, pass), is(may, info)},
			verdict: Conformant, gate: Open, exit: 0,
		},
		"a warning leaves it conformant": {
			rows:    []ruled{is(core, pass), is(should, warn)},
			verdict: Conformant, gate: Open, exit: 0,
		},
		"under --strict a warning closes the gate, not the verdict": {
			strict: true, rows: []ruled{is(core, pass), is(should, warn)},
			verdict: Conformant, gate: Closed, exit: 1, reasons: []string{"1 SHOULD broken, which --strict counts: receiver.acknowledge.fast"},
		},
		"under --strict without a warning nothing changes": {
			strict: true, rows: []ruled{is(core, pass), is(should, pass)},
			verdict: Conformant, gate: Open, exit: 0,
		},
		"a broken MUST": {
			rows:    []ruled{is(core, fail), is(other, pass)},
			verdict: NotConformant, gate: Closed, exit: 1, reasons: []string{"1 MUST broken: receiver.signature.accepts-valid"},
		},
		"a broken MUST outside the core set": {
			rows:    []ruled{is(core, pass), is(needy, fail)},
			verdict: NotConformant, gate: Closed, exit: 1, reasons: []string{"1 MUST broken"},
		},
		"an error is no verdict": {
			rows:    []ruled{is(core, pass), is(should, broke)},
			verdict: Broken, gate: Closed, exit: 3, reasons: []string{"1 could not be judged because something broke down: receiver.acknowledge.fast"},
		},
		"an error goes before a failure": {
			rows:    []ruled{is(core, fail), is(other, broke)},
			verdict: Broken, gate: Closed, exit: 3, reasons: []string{"broke down", "MUST broken"},
		},
		"an error goes before a partial run": {
			rows:    []ruled{skips(core, evidence.NotReached), is(other, broke)},
			verdict: Broken, gate: Closed, exit: 3, reasons: []string{"broke down", "not reached", "nothing was judged"},
		},
		"a MUST left out by the user's own selection is partial and open": {
			rows:    []ruled{is(core, pass), skips(other, evidence.NotSelected)},
			verdict: Partial, gate: Open, exit: 0, reasons: []string{"1 MUST of the core set left out by the selection: receiver.signature.rejects-unsigned"},
		},
		"a failure among the selected closes it": {
			rows:    []ruled{is(core, fail), skips(other, evidence.NotSelected)},
			verdict: NotConformant, gate: Closed, exit: 1, reasons: []string{"MUST broken", "left out by the selection"},
		},
		"a selection under --strict with a warning": {
			strict: true, rows: []ruled{is(should, warn), skips(core, evidence.NotSelected)},
			verdict: Partial, gate: Closed, exit: 1, reasons: []string{"left out", "--strict"},
		},
		"not reached is partial and closed": {
			rows:    []ruled{is(core, pass), skips(other, evidence.NotReached)},
			verdict: Partial, gate: Closed, exit: 1, reasons: []string{"1 MUST of the core set not reached, throttled or without a check"},
		},
		"throttled is partial and closed": {
			rows:    []ruled{is(core, pass), skips(other, evidence.Throttled)},
			verdict: Partial, gate: Closed, exit: 1, reasons: []string{"throttled"},
		},
		"a MUST without a check is partial and closed": {
			rows:    []ruled{is(core, pass), skips(other, evidence.NoCheck)},
			verdict: Partial, gate: Closed, exit: 1, reasons: []string{"without a check"},
		},
		"not reached beside not selected is closed": {
			rows:    []ruled{is(core, pass), skips(other, evidence.NotReached), skips(requirement("receiver.replay.rejects-stale", "MUST", ""), evidence.NotSelected)},
			verdict: Partial, gate: Closed, exit: 1, reasons: []string{"not reached", "left out"},
		},
		"a capability that is not declared leaves it conformant": {
			rows:    []ruled{is(core, pass), skips(needy, evidence.NotDeclared)},
			verdict: Conformant, gate: Open, exit: 0,
		},
		"what cannot be seen leaves it conformant": {
			rows:    []ruled{is(core, pass), skips(other, evidence.NotObservable)},
			verdict: Conformant, gate: Open, exit: 0,
		},
		"what does not apply leaves it conformant": {
			rows:    []ruled{is(core, pass), skips(other, evidence.NotApplicable)},
			verdict: Conformant, gate: Open, exit: 0,
		},
		"a SHOULD that was not selected, reached or let through leaves it conformant": {
			rows:    []ruled{is(core, pass), skips(should, evidence.NotSelected), skips(may, evidence.NotReached), skips(requirement("receiver.acknowledge.burst", "SHOULD", ""), evidence.Throttled)},
			verdict: Conformant, gate: Open, exit: 0,
		},
		"a needy MUST that was not reached leaves it conformant": {
			rows:    []ruled{is(core, pass), skips(needy, evidence.NotReached)},
			verdict: Conformant, gate: Open, exit: 0,
		},
		"nothing judged is no success, also when nothing was selected": {
			rows:    []ruled{skips(core, evidence.NotSelected), skips(should, evidence.NotDeclared)},
			verdict: Partial, gate: Closed, exit: 1, reasons: []string{"left out", "nothing was judged"},
		},
		"nothing judged outside the core set is no success": {
			rows:    []ruled{skips(needy, evidence.NotDeclared)},
			verdict: Partial, gate: Closed, exit: 1, reasons: []string{"nothing was judged"},
		},
		"no rows at all are no success": {
			verdict: Partial, gate: Closed, exit: 1, reasons: []string{"nothing was judged"},
		},
		"a fact alone was judged": {
			rows:    []ruled{is(may, info), skips(core, evidence.NotSelected)},
			verdict: Partial, gate: Open, exit: 0, reasons: []string{"left out"},
		},
		"interrupted, all good so far": {
			interrupted: true, rows: []ruled{is(core, pass)},
			verdict: Partial, gate: Closed, exit: 130, reasons: []string{"the run was interrupted"},
		},
		"interrupted after a failure": {
			interrupted: true, rows: []ruled{is(core, fail), skips(other, evidence.NotReached)},
			verdict: NotConformant, gate: Closed, exit: 130, reasons: []string{"MUST broken", "not reached", "interrupted"},
		},
		"interrupted after an error": {
			interrupted: true, rows: []ruled{is(core, broke)},
			verdict: Broken, gate: Closed, exit: 130, reasons: []string{"broke down", "nothing was judged", "interrupted"},
		},
		"a known failure keeps the verdict and opens the gate": {
			rows:    []ruled{is(core, pass), is(other, xfail)},
			verdict: NotConformant, gate: Open, exit: 0, reasons: []string{"1 known to fail: receiver.signature.rejects-unsigned"},
		},
		"a known failure beside an unknown one": {
			rows:    []ruled{is(core, fail), is(other, xfail)},
			verdict: NotConformant, gate: Closed, exit: 1, reasons: []string{"MUST broken: receiver.signature.accepts-valid", "known to fail"},
		},
		"a known failure in a run that did not reach the rest": {
			rows:    []ruled{is(core, xfail), skips(other, evidence.NotReached)},
			verdict: NotConformant, gate: Closed, exit: 1, reasons: []string{"known to fail", "not reached"},
		},
		"a known failure beside a warning under --strict": {
			strict: true, rows: []ruled{is(core, xfail), is(should, warn)},
			verdict: NotConformant, gate: Closed, exit: 1, reasons: []string{"known to fail", "--strict"},
		},
		"an error is never excused": {
			rows:    []ruled{is(core, xfail), is(other, broke)},
			verdict: Broken, gate: Closed, exit: 3, reasons: []string{"broke down", "known to fail"},
		},
		"a listed requirement that passes closes the gate": {
			rows:    []ruled{is(core, pass), is(other, xpass)},
			verdict: Conformant, gate: Closed, exit: 1, reasons: []string{"1 listed as known to fail, but passed: receiver.signature.rejects-unsigned"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := settled(c.strict, c.interrupted, c.rows)
			if r.Verdict != c.verdict || r.Gate != c.gate || r.ExitCode() != c.exit {
				t.Errorf("verdict %s, gate %s, exit %d; want %s, %s, %d (reasons: %q)", r.Verdict, r.Gate, r.ExitCode(), c.verdict, c.gate, c.exit, r.Reasons)
			}
			if len(r.Reasons) != len(c.reasons) {
				t.Fatalf("reasons %q, want %d of them: %q", r.Reasons, len(c.reasons), c.reasons)
			}
			for i, want := range c.reasons {
				if !strings.Contains(r.Reasons[i], want) {
					t.Errorf("reason %d is %q, want %q in it", i+1, r.Reasons[i], want)
				}
			}
		})
	}
}

func TestALevelOfTheProfileDecidesOverTheCoreSet(t *testing.T) {
	// The catalogue's MUST is this profile's SHOULD: leaving it out is not
	// partial.
	row := skips(core, evidence.NotSelected)
	row.ruling.Level = "SHOULD"
	if r := settled(false, false, []ruled{is(other, evidence.Pass), row}); r.Verdict != Conformant {
		t.Errorf("verdict %s, want conformant", r.Verdict)
	}
	// And the other way round.
	row = skips(should, evidence.NotSelected)
	row.ruling.Level = "MUST"
	if r := settled(false, false, []ruled{is(other, evidence.Pass), row}); r.Verdict != Partial {
		t.Errorf("verdict %s, want partial", r.Verdict)
	}
}

func TestTheRulesHoldForEveryRun(t *testing.T) {
	outcomes := []evidence.Outcome{evidence.Pass, evidence.Fail, evidence.Warn, evidence.Info, evidence.Skipped, evidence.Error, evidence.XFail, evidence.XPass}
	reasons := []evidence.SkipReason{evidence.NotSelected, evidence.NotReached, evidence.Throttled, evidence.NotDeclared, evidence.NotObservable, evidence.NotApplicable, evidence.NoCheck}
	rapid.Check(t, func(t *rapid.T) {
		var rows []ruled
		has := map[evidence.Outcome]bool{}
		for i, r := range []catalogue.Requirement{core, other, needy, should, may} {
			if i > 0 && !rapid.Bool().Draw(t, "present") {
				continue
			}
			row := is(r, rapid.SampledFrom(outcomes).Draw(t, "outcome"))
			if row.ruling.Outcome == evidence.Skipped {
				row.ruling.Skip.Reason = rapid.SampledFrom(reasons).Draw(t, "reason")
			}
			has[row.ruling.Outcome] = true
			rows = append(rows, row)
		}
		r := settled(rapid.Bool().Draw(t, "strict"), rapid.Bool().Draw(t, "interrupted"), rows)
		exit := r.ExitCode()
		switch {
		case (r.Gate == Open) != (exit == 0):
			t.Errorf("gate %s with exit %d", r.Gate, exit)
		case has[evidence.Error] && r.Gate == Open, has[evidence.Fail] && r.Gate == Open, r.Interrupted && exit != 130:
			t.Errorf("outcomes %v, interrupted %t: gate %s, exit %d", has, r.Interrupted, r.Gate, exit)
		case has[evidence.Error] != (r.Verdict == Broken):
			t.Errorf("outcomes %v: verdict %s", has, r.Verdict)
		case exit != 0 && len(r.Reasons) == 0:
			t.Errorf("exit %d without a reason", exit)
		case r.End.Results != len(rows) || r.End.Complete == r.Interrupted:
			t.Errorf("footer %+v for %d rows", r.End, len(rows))
		case r.Summary.Pass+r.Summary.Fail+r.Summary.Warn+r.Summary.Info+r.Summary.Skip+r.Summary.Error+r.Summary.XFail+r.Summary.XPass != len(rows):
			t.Errorf("summary %+v for %d rows", r.Summary, len(rows))
		}
	})
}

func TestResultsNameTheirEvidence(t *testing.T) {
	r := samples()["failing"]
	row := r.Results[1]
	if row.Scenario != row.ID || row.DurationMS != 30 || strings.Join(row.Exchanges, "|") != "one digit changed|one byte appended" {
		t.Errorf("scenario %q, %d ms, exchanges %q", row.Scenario, row.DurationMS, row.Exchanges)
	}
	if skipped := r.Results[5]; skipped.Scenario != "" || len(skipped.Exchanges) != 0 {
		t.Errorf("a skipped requirement names the evidence %q %q", skipped.Scenario, skipped.Exchanges)
	}
}
