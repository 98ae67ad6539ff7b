package conformance

import (
	"fmt"
	"slices"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/conformance/suite"
)

// Rejudge judges a saved run again, from its transcripts and with this version's
// catalogue and checks: checks are pure, and a report holds all that they need.
// It sends nothing and changes nothing in what it is given.
//
// Levels are those of the report, since the profile they came from may have
// changed. Only what that run tried is judged. What was skipped before anything
// was sent stays skipped, for the same reason, and so does what broke down or
// was not reached before its scenario began. Requirements that are new in this
// version are not reached. A list of what is known to fail still applies.
//
// It is a *UsageError if the report is of a kind of subject that this version
// does not judge.
func Rejudge(r *report.Report) (*report.Report, error) {
	if checksOf(r.Subject.Kind) == nil {
		return nil, usage("judging a saved run: its subject is a %.40q; this version judges receivers and senders", r.Subject.Kind)
	}
	j, err := newRejudge(r)
	if err != nil {
		return nil, fmt.Errorf("judging a saved run: %w", err)
	}
	requirements := j.requirements()
	rulings := make([]evidence.Ruling, len(requirements))
	known := report.Known{}
	for i, requirement := range requirements {
		rulings[i] = j.rule(requirement)
		if reason := j.rows[requirement.ID].Known; reason != "" {
			known[requirement.ID] = reason
		}
	}
	again := *r
	if r.Subject.Kind == catalogue.Receiver {
		rulings = receiver.Remark(rulings)
	}
	report.Settle(&again, requirements, rulings, slices.Clone(r.Transcripts))
	again.Excuse(known)
	return &again, nil
}

// rejudge is a saved run with what this version judges it by.
type rejudge struct {
	saved    *report.Report
	rows     map[string]report.Result // of the saved run, by requirement
	checks   map[string]suite.Check   // of this version, by requirement
	recorded map[string]bool          // the scenarios that there are transcripts of
	current  []catalogue.Requirement  // the subject's part of this version's catalogue
}

func newRejudge(r *report.Report) (*rejudge, error) {
	all, err := catalogue.Load()
	if err != nil {
		return nil, err
	}
	j := &rejudge{saved: r, rows: map[string]report.Result{}, checks: map[string]suite.Check{}, recorded: map[string]bool{}}
	kind := r.Subject.Kind
	j.current = slices.DeleteFunc(all, func(r catalogue.Requirement) bool { return r.Part() != kind })
	for _, row := range r.Results {
		j.rows[row.ID] = row
	}
	for _, c := range checksOf(kind) {
		j.checks[c.Requirement] = c
	}
	for i := range r.Transcripts {
		j.recorded[r.Transcripts[i].Scenario] = true
	}
	return j, nil
}

// requirements are those of this version, then what the run has beside them.
func (j *rejudge) requirements() []catalogue.Requirement {
	rows := slices.Clone(j.current)
	for _, row := range j.saved.Results {
		if !slices.ContainsFunc(j.current, func(r catalogue.Requirement) bool { return r.ID == row.ID }) {
			rows = append(rows, catalogue.Requirement{ID: row.ID, Level: row.Level, Statement: row.Statement})
		}
	}
	return rows
}

// rule answers one question, by the transcripts where it can.
func (j *rejudge) rule(requirement catalogue.Requirement) evidence.Ruling {
	row, listed := j.rows[requirement.ID]
	if !listed {
		return evidence.Ruling{
			Requirement: requirement.ID, Level: requirement.LevelIn(j.saved.Profile), Outcome: evidence.Skipped,
			Skip: evidence.Skip{Reason: evidence.NotReached, Detail: "the run that is judged again did not try it; it was made by another version"},
		}
	}
	check, checked := j.checks[row.ID]
	if j.stands(row, checked && j.recorded[check.Scenario]) {
		return evidence.Ruling{
			Requirement: row.ID, Level: row.Level, Outcome: row.Outcome, Detail: row.Detail,
			Skip: evidence.Skip{Reason: row.SkipReason, Detail: row.SkipDetail}, Scenario: row.Scenario,
		}
	}
	question := suite.Question{Requirement: requirement, Level: row.Level}
	if checked && !j.recorded[check.Scenario] {
		question.Skip = &evidence.Skip{Reason: evidence.NotReached, Detail: "the run that is judged again recorded nothing for it as this version tries it"}
	}
	return suite.Judge([]suite.Question{question}, checksOf(j.saved.Subject.Kind), j.saved.Transcripts)[0]
}

// stands tells whether a result was decided without its transcript. recorded
// tells whether there is one.
func (j *rejudge) stands(row report.Result, recorded bool) bool {
	switch row.Outcome {
	case evidence.Skipped:
		switch row.SkipReason {
		case evidence.NotSelected, evidence.NotDeclared, evidence.NotApplicable, evidence.NoCheck:
			return true
		}
		return !recorded
	case evidence.Error:
		// Nobody answered the first delivery: then nothing was judged at all.
		unreachable := j.saved.Diagnosis != nil && len(j.saved.Transcripts) == 1 && row.Detail == j.saved.Diagnosis.Got
		return !recorded || unreachable
	}
	return false
}
