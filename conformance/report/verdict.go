package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
)

// Verdict is the answer about the subject.
type Verdict string

// The verdicts. The first that applies holds, from the bottom up.
const (
	// Conformant: no fail, no error, and no MUST of the core set left unjudged.
	Conformant Verdict = "conformant"
	// Partial: no fail and no error, but a MUST of the core set was not
	// selected, not reached, throttled, or has no check.
	Partial Verdict = "partial"
	// NotConformant: a MUST is broken, known or not.
	NotConformant Verdict = "not-conformant"
	// Broken: the suite or the subject broke down, so there is no verdict.
	Broken Verdict = "error"
)

// Gate is the answer for a pipeline.
type Gate string

// The gates.
const (
	Open   Gate = "open"
	Closed Gate = "closed"
)

// Exit codes of the command line.
const (
	ExitConformant    = 0   // the gate is open: conformant, or partial only by the user's own selection, or nothing but the known fails
	ExitNotConformant = 1   // the gate is closed: not conformant, not reached, throttled, or a warning under --strict
	ExitUsage         = 2   // usage, configuration, empty selection
	ExitError         = 3   // the subject is unreachable, or anything broke down
	ExitInterrupted   = 130 // interrupted; the report so far is written
)

// ExitCode is what the command ends with for this report.
func (r *Report) ExitCode() int {
	switch {
	case r.Interrupted:
		return ExitInterrupted
	case r.Verdict == Broken:
		return ExitError
	case r.Gate == Open:
		return ExitConformant
	}
	return ExitNotConformant
}

// Settle fills a report from rulings: results, summary, verdict, gate, reasons
// and end. Subject, profile and the other circumstances are the caller's.
func Settle(r *Report, requirements []catalogue.Requirement, rulings []evidence.Ruling, transcripts []evidence.Transcript) {
	r.Schema = SchemaName
	if transcripts == nil {
		transcripts = []evidence.Transcript{}
	}
	r.Transcripts = transcripts
	r.Results = results(requirements, rulings, transcripts)
	r.settle()
}

// settle makes what follows from the results.
func (r *Report) settle() {
	r.Summary = summarize(r.Results)
	r.Verdict, r.Gate, r.Reasons = verdict(r)
	r.End = End{Complete: !r.Interrupted, Results: len(r.Results)}
}

func summarize(rows []Result) Summary {
	var s Summary
	counters := map[evidence.Outcome]*int{
		evidence.Pass: &s.Pass, evidence.Fail: &s.Fail, evidence.Warn: &s.Warn, evidence.Info: &s.Info,
		evidence.Skipped: &s.Skip, evidence.Error: &s.Error, evidence.XFail: &s.XFail, evidence.XPass: &s.XPass,
	}
	for _, row := range rows {
		*counters[row.Outcome]++
	}
	return s
}

// verdict holds the rules. A gate opens for a conformant subject, for a partial
// run where nothing but the user's own selection made it partial, and where
// nothing but what is known to fail fails. It stays closed when nothing was
// judged, and when something listed as known to fail passes: the list would
// hide its next fault. Excusing opens the gate alone: a MUST that is known to
// fail is as broken as any, and a SHOULD was never more than a warning.
func verdict(r *Report) (Verdict, Gate, []string) {
	var reasons []string
	because := func(n int, sentence string, ids []string) {
		if n > 0 {
			reasons = append(reasons, fmt.Sprintf(sentence, n)+": "+shorten(ids))
		}
	}
	with := func(outcome evidence.Outcome) []string {
		return idsOf(r.Results, func(row Result) bool { return row.Outcome == outcome })
	}
	failed, known, passed := with(evidence.Fail), with(evidence.XFail), with(evidence.XPass)
	broken := with(evidence.Error)
	unjudged := func(reasons ...evidence.SkipReason) []string {
		return idsOf(r.Results, func(row Result) bool {
			return row.Core && row.Outcome == evidence.Skipped && slices.Contains(reasons, row.SkipReason)
		})
	}
	notSelected := unjudged(evidence.NotSelected)
	missed := unjudged(evidence.NotReached, evidence.Throttled, evidence.NoCheck)
	warned := with(evidence.Warn)
	judged := idsOf(r.Results, func(row Result) bool { return row.Outcome.Judged() })

	because(len(broken), "%d could not be judged because something broke down", broken)
	because(len(failed), "%d MUST broken", failed)
	because(len(known), "%d known to fail", known)
	because(len(passed), "%d listed as known to fail, but passed", passed)
	because(len(missed), "%d MUST of the core set not reached, throttled or without a check", missed)
	because(len(notSelected), "%d MUST of the core set left out by the selection", notSelected)
	if r.Strict {
		because(len(warned), "%d SHOULD broken, which --strict counts", warned)
	}
	if len(judged) == 0 {
		reasons = append(reasons, "nothing was judged")
	}
	if r.Interrupted {
		reasons = append(reasons, "the run was interrupted")
	}

	incomplete := len(missed) > 0 || r.Interrupted || len(judged) == 0
	open := gate(!incomplete && len(passed) == 0 && (!r.Strict || len(warned) == 0))
	switch {
	case len(broken) > 0:
		return Broken, Closed, reasons
	case len(failed) > 0:
		return NotConformant, Closed, reasons
	case slices.ContainsFunc(r.Results, func(row Result) bool { return row.Outcome == evidence.XFail && row.Level == evidence.Must }):
		return NotConformant, open, reasons
	case incomplete || len(notSelected) > 0:
		return Partial, open, reasons
	}
	return Conformant, open, reasons
}

func gate(open bool) Gate {
	if open {
		return Open
	}
	return Closed
}

func idsOf(rows []Result, keep func(Result) bool) []string {
	var ids []string
	for _, row := range rows {
		if keep(row) {
			ids = append(ids, row.ID)
		}
	}
	return ids
}

// shorten lists a few ids; the whole list stands in the results.
func shorten(ids []string) string {
	const few = 3
	if len(ids) <= few {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(ids[:few], ", "), len(ids)-few)
}
