package selftest

import (
	"testing"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/report"
)

func TestTheReferenceIsConformant(t *testing.T) {
	s, err := prepare(reference("standard-webhooks"), clock.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.receiver.Close(t.Context())
	r, err := conformance.Run(t.Context(), s.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Results {
		switch row.Outcome {
		case evidence.Fail, evidence.Warn, evidence.Error:
			t.Errorf("%s %s: %s", row.ID, row.Outcome, row.Detail)
			for _, f := range row.Findings {
				t.Logf("  %+v", f)
			}
		case evidence.Info:
			for _, f := range row.Findings {
				t.Logf("%s  %s -> %s", row.ID, f.Sent, f.Got)
			}
		case evidence.Skipped:
			t.Logf("%s skipped %s %s", row.ID, row.SkipReason, row.SkipDetail)
		}
		t.Logf("%5d ms %s", row.DurationMS, row.ID)
	}
	if r.Verdict != report.Conformant {
		t.Errorf("verdict %s: %v", r.Verdict, r.Reasons)
	}
}
