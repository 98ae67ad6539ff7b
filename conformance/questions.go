package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/reference/profile"
)

// questions turns the catalogue and the selection into what the run rules on.
func (c Config) questions(p part) ([]suite.Question, error) {
	rows, err := catalogue.Load()
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(r catalogue.Requirement) bool { return r.Part() != p.kind() })
	chosen, err := selection(c.Run, c.Skip)
	if err != nil {
		return nil, err
	}
	questions := make([]suite.Question, len(rows))
	for i, row := range rows {
		level := c.Profile.Level(row.ID, row.LevelIn(c.Profile.Name))
		skip := c.skip(row, level, chosen, p)
		if level == profile.NotApplicableLevel {
			level = row.LevelIn(c.Profile.Name) // what it would be elsewhere
		}
		questions[i] = suite.Question{Requirement: row, Level: level, Skip: skip}
	}
	if !slices.ContainsFunc(questions, func(q suite.Question) bool { return q.Skip == nil || q.Skip.Reason != evidence.NotSelected }) {
		return nil, usage("the selection leaves nothing to judge of a %s: %s", p.kind(), strings.Join(slices.Concat(c.Run, c.Skip), ", "))
	}
	return questions, nil
}

// skip decides what is known before anything is sent.
func (c Config) skip(row catalogue.Requirement, level string, chosen selected, p part) *evidence.Skip {
	if !chosen.has(row.ID) {
		return &evidence.Skip{Reason: evidence.NotSelected, Detail: "left out by --run or --skip"}
	}
	if reason, ok := c.Profile.NotApplicable(row.ID); ok {
		return &evidence.Skip{Reason: evidence.NotApplicable, Detail: reason}
	}
	if level == profile.NotApplicableLevel {
		return &evidence.Skip{Reason: evidence.NotApplicable, Detail: "the profile " + c.Profile.Name + " has no such thing"}
	}
	if c.Profile.Signature.ID.In == "none" && slices.Contains(row.Needs, catalogue.NeedObserve) {
		return &evidence.Skip{Reason: evidence.NotApplicable, Detail: "the scheme carries no id, by which an observer could tell events apart"}
	}
	if !hasCheck(p.checks(), row.ID) {
		return &evidence.Skip{Reason: evidence.NoCheck, Detail: "this version has no check for it yet"}
	}
	for _, need := range row.Needs {
		if !p.offers(need) {
			return &evidence.Skip{Reason: evidence.NotDeclared, Detail: "needs " + need + ": " + catalogue.NeedText(need)}
		}
	}
	if row.Has(catalogue.LabelSlow) && !c.Slow {
		return &evidence.Skip{Reason: evidence.NotSelected, Detail: "slow: add --slow"}
	}
	if row.Has(catalogue.LabelOnRequest) && !chosen.named(row.ID) {
		return &evidence.Skip{Reason: evidence.NotSelected, Detail: "only on request: add --run " + row.ID}
	}
	return nil
}

func hasCheck(checks []suite.Check, id string) bool {
	return slices.ContainsFunc(checks, func(c suite.Check) bool { return c.Requirement == id })
}

// selected is what --run and --skip leave.
type selected struct {
	run, skip map[string]bool
	all       bool
}

func (s selected) has(id string) bool { return (s.all || s.run[id]) && !s.skip[id] }

// named tells whether --run names the requirement, by itself or by its group.
func (s selected) named(id string) bool { return !s.all && s.run[id] }

func selection(run, skip []string) (selected, error) {
	s := selected{run: map[string]bool{}, skip: map[string]bool{}, all: len(run) == 0}
	for _, part := range []struct {
		flag     string
		patterns []string
		into     map[string]bool
	}{{"--run", run, s.run}, {"--skip", skip, s.skip}} {
		if len(part.patterns) == 0 {
			continue
		}
		ids, err := catalogue.Match(part.patterns)
		if err != nil {
			return s, &UsageError{fmt.Errorf("%s: %w", part.flag, err)}
		}
		for _, id := range ids {
			part.into[id] = true
		}
	}
	return s, nil
}
