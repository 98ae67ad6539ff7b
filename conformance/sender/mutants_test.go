package sender

import (
	"slices"
	"strings"
	"testing"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/mutant"
)

// The self-test judges every mutant by every row, and knows which it breaks.
// Here each mutant is judged by the rows of these groups that its fault touches,
// and has to be found by one of them, in words that say everything.
func TestMutantsOfTheseGroupsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some dozens of processes")
	}
	for _, wrong := range mutant.Senders() {
		mine := func(id string) bool {
			return slices.Contains(wrong.Fails, id) && slices.Contains(engineGroups(), groupOf(id))
		}
		// One that is made for another group may touch a row of these in passing.
		if len(wrong.Fails) == 0 || !mine(wrong.Fails[0]) {
			continue
		}
		t.Run(wrong.Name, func(t *testing.T) {
			t.Parallel()
			e := newReference(t, wrong.Profile, Virtual, mutantVariable+"="+wrong.Name)
			found := false
			for _, r := range ruledOn(t, e, ask(e, mine)) {
				if r.Outcome != evidence.Fail && r.Outcome != evidence.Warn {
					t.Logf("%s: %s %s %s", r.Requirement, r.Outcome, r.Skip.Detail, r.Detail)
					continue
				}
				found = true
				f := r.Findings[0]
				if f.Sent == "" || f.Expected == "" || f.Got == "" || f.Fix == "" {
					t.Errorf("%s: the finding leaves something out: %+v", r.Requirement, f)
				}
				t.Logf("%s: %s: expected %s; got %s; %s", r.Requirement, f.Sent, f.Expected, f.Got, strings.TrimSpace(f.Cause))
			}
			if !found {
				t.Errorf("not found: %s", wrong.Doc)
			}
		})
	}
}
