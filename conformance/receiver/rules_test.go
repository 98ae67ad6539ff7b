package receiver

import (
	"strings"
	"testing"

	"github.com/whconform/whconform/conformance/catalogue"
)

func TestEveryCheckJudgesARowOfTheCatalogue(t *testing.T) {
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
}

func TestEveryRowHasACheck(t *testing.T) {
	has := map[string]bool{}
	for _, c := range Checks() {
		has[c.Requirement] = true
	}
	for _, row := range catalogue.OfPart(catalogue.Receiver) {
		if !has[row.ID] {
			t.Errorf("%s has no check", row.ID)
		}
	}
}

func TestEveryRuleIsTriedSomehow(t *testing.T) {
	scenarios := map[string]bool{}
	for _, r := range rules() {
		if r.use == "" {
			scenarios[r.id] = true
		}
	}
	for _, r := range rules() {
		ways := 0
		for _, way := range []bool{r.probes != nil, r.record != nil, r.use != ""} {
			if way {
				ways++
			}
		}
		switch {
		case r.id == PreflightScenario:
			if ways != 0 {
				t.Errorf("%s is recorded by the preflight and again", r.id)
			}
		case ways != 1:
			t.Errorf("%s is tried in %d ways", r.id, ways)
		}
		if r.use != "" && !scenarios[r.use] {
			t.Errorf("%s uses the scenario of %s, which has none", r.id, r.use)
		}
	}
}

// The catalogue says of each row how it is tried; the rules must agree, or a
// row that waits for a minute would run without being asked for.
func TestLabelsOfTheCatalogueAreThoseOfTheRules(t *testing.T) {
	by := map[string]rule{}
	for _, r := range rules() {
		by[r.id] = r
	}
	for id, r := range by {
		row, ok := catalogue.Find(id)
		if !ok {
			continue
		}
		scenario := r
		if r.use != "" {
			scenario = by[r.use]
		}
		if row.Has("slow") != scenario.slow {
			t.Errorf("%s: the catalogue says slow: %t, its scenario: %t", id, row.Has("slow"), scenario.slow)
		}
		// A scenario may stand alone though the catalogue does not say so.
		if row.Has("alone") && !scenario.alone {
			t.Errorf("%s: the catalogue says alone, its scenario stands beside others", id)
		}
	}
}

func TestRulesStandInTheFileOfTheirGroup(t *testing.T) {
	for group, rules := range map[string][]rule{
		"signature": signatureRules(), "rawbody": rawbodyRules(), "replay": replayRules(), "duplicate": duplicateRules(), "acknowledge": acknowledgeRules(),
		"order": orderRules(), "limits": limitsRules(), "rotation": rotationRules(), "transport": transportRules(),
	} {
		for _, r := range rules {
			if !strings.HasPrefix(r.id, "receiver."+group+".") {
				t.Errorf("%s stands in %s.go", r.id, group)
			}
		}
	}
}

func TestOnlyTheScenariosThatAreWantedAreRecorded(t *testing.T) {
	e := &Env{}
	names := func(wanted ...string) string {
		var out []string
		for _, s := range Scenarios(e, func(id string) bool {
			for _, w := range wanted {
				if w == id {
					return true
				}
			}
			return false
		}) {
			out = append(out, s.Name)
		}
		return strings.Join(out, " ")
	}
	for _, tt := range []struct {
		name   string
		wanted []string
		want   string
	}{
		{"none", nil, ""},
		{"one", []string{"receiver.limits.chunked"}, "receiver.limits.chunked"},
		{"the scenario that a row uses", []string{"receiver.limits.throttles"}, "receiver.limits.flood"},
		{"one scenario for two rows", []string{"receiver.limits.flood", "receiver.limits.throttles"}, "receiver.limits.flood"},
		{"not the preflight, which is recorded before", []string{PreflightScenario, "receiver.replay.clock"}, ""},
	} {
		if got := names(tt.wanted...); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestWhatIsJudgedFromThePreflightIsKnown(t *testing.T) {
	for id, want := range map[string]bool{
		PreflightScenario: true, "receiver.acknowledge.no-redirect": true, "receiver.acknowledge.within-provider-timeout": true,
		"receiver.limits.chunked": false, "receiver.none.such": false,
	} {
		if got := JudgedFromPreflight(id); got != want {
			t.Errorf("%s: %t", id, got)
		}
	}
}
