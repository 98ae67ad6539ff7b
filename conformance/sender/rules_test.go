package sender

import (
	"slices"
	"strings"
	"testing"

	"github.com/whconform/whconform/conformance/catalogue"
)

func TestEveryRowHasACheckAndEveryCheckARow(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Checks() {
		if _, ok := catalogue.Find(c.Requirement); !ok {
			t.Errorf("%s is not in the catalogue", c.Requirement)
		}
		if seen[c.Requirement] {
			t.Errorf("%s has two checks", c.Requirement)
		}
		seen[c.Requirement] = true
		if c.Judge == nil {
			t.Errorf("%s has no judge", c.Requirement)
		}
	}
	for _, row := range catalogue.OfPart(catalogue.Sender) {
		if !seen[row.ID] {
			t.Errorf("%s has no check", row.ID)
		}
	}
}

func TestEveryRuleIsTriedInOneWay(t *testing.T) {
	recorded := map[string]bool{}
	for _, r := range rules() {
		if r.record != nil {
			recorded[r.id] = true
		}
	}
	for _, r := range rules() {
		if (r.record != nil) == (r.use != "") {
			t.Errorf("%s has a scenario of its own and uses another, or neither", r.id)
		}
		if r.use != "" && !recorded[r.use] {
			t.Errorf("%s uses the scenario of %s, which has none", r.id, r.use)
		}
	}
}

func TestRulesStandInTheFileOfTheirGroup(t *testing.T) {
	for _, g := range groups() {
		for _, r := range g.rules() {
			if !strings.HasPrefix(r.id, "sender."+g.name+".") {
				t.Errorf("%s stands in the group %s", r.id, g.name)
			}
		}
	}
}

// A scenario that needs something beside publishing may stand only under rows
// that need it, too: the door asks for the rows' needs alone.
func TestAScenarioWithASenderOfItsOwnIsForRowsThatNeedOne(t *testing.T) {
	for _, r := range rules() {
		row, ok := catalogue.Find(r.id)
		if !ok {
			continue
		}
		if r.kills && !slices.Contains(row.Needs, catalogue.NeedManaged) {
			t.Errorf("%s kills a sender and does not need %s", r.id, catalogue.NeedManaged)
		}
		if r.twins && !slices.Contains(row.Needs, catalogue.NeedInstances) {
			t.Errorf("%s starts two processes and does not need %s", r.id, catalogue.NeedInstances)
		}
	}
}

func TestScenariosComeInPhases(t *testing.T) {
	all := rules()
	of := func(name string) *rule {
		i := slices.IndexFunc(all, func(r rule) bool { return r.id == name })
		return &all[i]
	}
	phases := Scenarios(&Env{}, func(string) bool { return true })
	for i, phase := range phases {
		for _, s := range phase {
			r := of(s.Name)
			switch {
			case r.alone && len(phase) != 1:
				t.Errorf("%s is not alone", r.id)
			case !r.alone && r.holds != (i == 1):
				t.Errorf("%s stands in phase %d", r.id, i)
			}
		}
	}
	only := func(wanted ...string) string {
		var names []string
		for _, phase := range Scenarios(&Env{}, func(id string) bool { return slices.Contains(wanted, id) }) {
			for _, s := range phase {
				names = append(names, s.Name)
			}
		}
		return strings.Join(names, " ")
	}
	for _, tt := range []struct {
		name   string
		wanted []string
		want   string
	}{
		{"none", nil, ""},
		{"one", []string{rotateTwice}, rotateTwice},
		{"the scenario that a row uses", []string{"sender.request.headers"}, requestPost},
		{"one for several rows", []string{"sender.request.headers", "sender.request.small", requestPost}, requestPost},
		{"the preflight's name, whose scenario shows more", []string{verifiesRow}, verifiesRow},
	} {
		if got := only(tt.wanted...); got != tt.want {
			t.Errorf("%s: recorded is %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestWhatIsJudgedFromThePreflightIsOfItsScenario(t *testing.T) {
	for _, c := range Checks() {
		if JudgedFromPreflight(c.Requirement) && c.Scenario != PreflightScenario {
			t.Errorf("%s is judged from %s", c.Requirement, c.Scenario)
		}
	}
	if !JudgedFromPreflight(verifiesRow) || JudgedFromPreflight("sender.retry.schedule") {
		t.Error("other rows are judged from the preflight")
	}
}
