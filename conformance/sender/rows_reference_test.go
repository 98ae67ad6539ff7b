package sender

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
)

// inGroups tells whether a requirement is of one of the groups.
func inGroups(groups ...string) func(id string) bool {
	return func(id string) bool { return slices.Contains(groups, strings.Split(id, ".")[1]) }
}

func TestTheReferenceKeepsEveryRowAboutFailuresAndStrangers(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs many senders")
	}
	for _, tt := range []struct {
		mode, contract string
		skipped        []string // what cannot be observed so
	}{
		{Virtual, "standard-webhooks", nil},
		{Virtual, "delivery-envelope", nil},
		{Scaled, "standard-webhooks", []string{retryJitter, timeoutConnect, timeoutConnectFast, timeoutRange}},
	} {
		t.Run(tt.contract+" in "+tt.mode+" time", func(t *testing.T) {
			r := newRig(t, tt.mode, tt.contract, nil)
			mine := inGroups("retry", "retry-after", "timeout", "response", "redirect", "disable", "ssrf")
			rulings := r.rule(t, func(id string) bool { return mine(id) && r.offersAll(id) })
			for _, id := range slices.Sorted(maps.Keys(rulings)) {
				got := rulings[id]
				row, _ := catalogue.Find(id)
				may := r.env.Profile.Level(id, row.LevelIn(r.env.Profile.Name)) == evidence.May
				switch {
				case may && (got.outcome == "pass" || got.outcome == "found"):
					t.Logf("%s: %s", id, inWords(got.findings))
				case got.outcome == "skip" && (slices.Contains(tt.skipped, id) || id == timeoutPublishAbs): // that is this machine's fault
				case got.outcome != "pass":
					t.Errorf("%s: %s %s %s", id, got.outcome, got.detail, inWords(got.findings))
				}
			}
		})
	}
}

// offersAll tells whether the reference offers what a row needs.
func (r *rig) offersAll(id string) bool {
	row, ok := catalogue.Find(id)
	return ok && !slices.ContainsFunc(row.Needs, func(need string) bool { return !r.env.Offers(need) })
}

func inWords(findings []evidence.Finding) string {
	var out strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&out, "\n\t%s: expected %s, got %s (%s) %v", f.Sent, f.Expected, f.Got, f.Cause, f.Exchanges)
	}
	return out.String()
}
