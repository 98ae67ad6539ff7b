// Package report is the record of a run: one versioned JSON document, and the
// texts made from it. The comments on the fields say what a value means for
// conformance; verdict.go holds the rules that lead from outcomes to a verdict,
// a gate and an exit code.
//
// Start with [Report] and [Settle].
package report

import (
	"time"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
)

// SchemaName names the form of the document. It changes when a reader of the
// old form would misread the new one; fields may be added without a change.
const SchemaName = "whconform-report/1"

// Report is one run against one subject.
type Report struct {
	Schema  string  `json:"schema"`
	Suite   Suite   `json:"suite"`
	Subject Subject `json:"subject"`
	// Profile is the contract that the subject was judged by.
	Profile string `json:"profile"`
	// Seed repeats the run's choices with --seed.
	Seed       uint64    `json:"seed"`
	Began      time.Time `json:"began"`
	DurationMS int64     `json:"durationMs"`

	// Verdict is the answer about the subject; see [Verdict].
	Verdict Verdict `json:"verdict"`
	// Gate is the answer for a pipeline: open lets it go on. It differs from the
	// verdict where the user's own selection left requirements out (open), where
	// nothing but what is known to fail fails (open), or where --strict makes
	// warnings count (closed).
	Gate Gate `json:"gate"`
	// Reasons say in sentences why the verdict and the gate are what they are.
	Reasons []string `json:"reasons"`
	// Interrupted is set when the run ended before its scenarios did.
	Interrupted bool `json:"interrupted,omitempty"`
	// Strict is set when warnings close the gate.
	Strict bool `json:"strict,omitempty"`

	// Diagnosis is what the preflight found out about a control delivery that
	// did not simply pass. It leads the report.
	Diagnosis *evidence.Finding `json:"diagnosis,omitempty"`

	Summary Summary  `json:"summary"`
	Results []Result `json:"results"`
	// Transcripts are the recorded evidence, one a scenario. They hold no
	// secrets; everything in Results can be judged again from them.
	Transcripts []evidence.Transcript `json:"transcripts"`
	// End is the last field written: a document without it was cut short.
	End End `json:"end"`
}

// Suite is what judged.
type Suite struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Subject is what was judged.
type Subject struct {
	Kind   string `json:"kind"`   // receiver or sender
	Target string `json:"target"` // its URL or command, without credentials
	// Capabilities are what it offered beside a URL.
	Capabilities []string `json:"capabilities"`
	// Clock is by which clock a sender was judged: virtual, or scaled, which is
	// real time and a shorter schedule. Empty for a receiver.
	Clock string `json:"clock,omitempty"`
	// Declared are the numbers that a sender named and was held to, as text.
	Declared map[string]string `json:"declared,omitempty"`
}

// Summary counts results by outcome.
type Summary struct {
	Pass  int `json:"pass"`
	Fail  int `json:"fail"`
	Warn  int `json:"warn"`
	Info  int `json:"info"`
	Skip  int `json:"skip"`
	Error int `json:"error"`
	XFail int `json:"xfail"`
	XPass int `json:"xpass"`
}

// Result is one requirement of the catalogue. Every row of the subject's part
// is listed, also those that were not tried.
type Result struct {
	ID    string `json:"id"`
	Level string `json:"level"` // as the profile has it
	// Core is set for a MUST that needs nothing but a URL: without it a run is
	// partial.
	Core      bool             `json:"core"`
	Statement string           `json:"statement"`
	Outcome   evidence.Outcome `json:"outcome"`
	// SkipReason and SkipDetail are set when Outcome is skip.
	SkipReason evidence.SkipReason `json:"skipReason,omitempty"`
	SkipDetail string              `json:"skipDetail,omitempty"`
	// Detail says what broke down when Outcome is error.
	Detail string `json:"detail,omitempty"`
	// Known is why the requirement is listed as known to fail, where it is, also
	// when it was not judged; see [Known].
	Known string `json:"known,omitempty"`
	// Remark is a caveat on a pass.
	Remark string `json:"remark,omitempty"`
	// Findings are all facts against the requirement; for info, what was seen.
	Findings []evidence.Finding `json:"findings"`
	// DurationMS is how long its scenario took; scenarios overlap.
	DurationMS int64 `json:"durationMs"`
	// Scenario and Exchanges name the evidence in Transcripts.
	Scenario  string   `json:"scenario,omitempty"`
	Exchanges []string `json:"exchanges"`
}

// End closes the document.
type End struct {
	Complete bool `json:"complete"` // false when the run was interrupted
	Results  int  `json:"results"`  // how many there are
}

// results turns rulings into the report's rows.
func results(requirements []catalogue.Requirement, rulings []evidence.Ruling, transcripts []evidence.Transcript) []Result {
	byID := map[string]catalogue.Requirement{}
	for _, r := range requirements {
		byID[r.ID] = r
	}
	byScenario := map[string]*evidence.Transcript{}
	for i := range transcripts {
		byScenario[transcripts[i].Scenario] = &transcripts[i]
	}
	rows := make([]Result, 0, len(rulings))
	for _, r := range rulings {
		requirement := byID[r.Requirement]
		row := Result{
			ID: r.Requirement, Level: r.Level, Core: requirement.CoreAt(r.Level), Statement: requirement.Statement,
			Outcome: r.Outcome, SkipReason: r.Skip.Reason, SkipDetail: r.Skip.Detail, Detail: r.Detail, Remark: r.Remark,
			Findings: r.Findings, Exchanges: []string{},
		}
		if row.Findings == nil {
			row.Findings = []evidence.Finding{}
		}
		if t := byScenario[r.Scenario]; t != nil && r.Outcome != evidence.Skipped {
			row.Scenario, row.DurationMS = r.Scenario, t.TookMS
			for i := range t.Exchanges {
				row.Exchanges = append(row.Exchanges, t.Exchanges[i].Label)
			}
		}
		rows = append(rows, row)
	}
	return rows
}
