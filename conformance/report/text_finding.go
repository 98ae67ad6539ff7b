package report

import (
	"fmt"

	"github.com/whconform/whconform/conformance/evidence"
)

// Findings of one requirement are mostly variations of one fault: ten ways to
// change a body, all accepted, one cause. They are shown as such: what was sent
// as a list where expectation and answer are the same, and the cause and the
// mend once for all that share them.

// byMend sorts findings into groups with one cause and one fix, in the order of
// their first.
func byMend(findings []evidence.Finding) [][]evidence.Finding {
	return groupBy(findings, func(a, b evidence.Finding) bool { return a.Cause == b.Cause && a.Fix == b.Fix })
}

// byAnswer sorts findings into groups where the same was expected and the same
// came.
func byAnswer(findings []evidence.Finding) [][]evidence.Finding {
	return groupBy(findings, func(a, b evidence.Finding) bool { return a.Expected == b.Expected && a.Got == b.Got })
}

func groupBy(findings []evidence.Finding, same func(a, b evidence.Finding) bool) [][]evidence.Finding {
	var groups [][]evidence.Finding
next:
	for _, f := range findings {
		for i := range groups {
			if same(groups[i][0], f) {
				groups[i] = append(groups[i], f)
				continue next
			}
		}
		groups = append(groups, []evidence.Finding{f})
	}
	return groups
}

// all writes the findings of one requirement.
func (t *text) all(findings []evidence.Finding) {
	groups := byMend(findings)
	shared := len(groupBy(findings, func(a, b evidence.Finding) bool { return a.Fix == b.Fix })) == 1
	for i, same := range groups {
		if shared && i < len(groups)-1 {
			same[0].Fix = "" // it follows the last one
		}
		t.blank()
		t.group(same)
	}
}

// group writes findings that share cause and fix.
func (t *text) group(findings []evidence.Finding) {
	for i, same := range byAnswer(findings) {
		if i > 0 {
			t.blank()
		}
		sent := make([]string, len(same))
		for j, f := range same {
			sent[j] = f.Sent
		}
		got := same[0].Got
		if len(same) > 1 {
			got = fmt.Sprintf("%s, each of the %d times", got, len(same))
		}
		t.list("sent", sent)
		t.term("expected", same[0].Expected)
		t.term("got", got)
	}
	t.term("likely cause", findings[0].Cause)
	t.term("fix", findings[0].Fix)
}

// finding writes a single one.
func (t *text) finding(f evidence.Finding) { t.group([]evidence.Finding{f}) }
