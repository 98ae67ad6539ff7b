package receiver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/reference/wire"
)

// recorded is a transcript with the facts that every receiver's has.
func recorded(exchanges ...wire.Exchange) *evidence.Transcript {
	return &evidence.Transcript{
		Scenario: "receiver.example.row", Control: controlLabel,
		Facts: map[string]string{
			evidence.FactRejections: "400 401 403 422", evidence.FactAckTimeout: "15s", evidence.FactTolerance: "5m0s",
			factFast: "1s", factBurst: "2s", factStall: "1m5s",
		},
		Exchanges: exchanges,
	}
}

// answer is an exchange that was answered.
func answer(status int, headers ...wire.Header) wire.Exchange {
	return wire.Exchange{Label: "probe", Response: &wire.Response{Status: status, Headers: headers}}
}

// broken is an exchange that ended in a fault.
func broken(fault string) wire.Exchange { return wire.Exchange{Label: "probe", Fault: fault} }

// labelled gives an exchange another label.
func labelled(label string, x wire.Exchange) wire.Exchange {
	x.Label = label
	return x
}

// after gives an exchange another duration.
func after(took time.Duration, x wire.Exchange) wire.Exchange {
	x.Took = took
	return x
}

// of gives an exchange a body of which a part was sent.
func of(sent, size int64, x wire.Exchange) wire.Exchange {
	x.Sent, x.Request.Size = sent, size
	return x
}

// words names an exchange in a test's failure.
func words(x wire.Exchange) string {
	if x.Response != nil {
		return fmt.Sprintf("%q answered %d after %v", x.Label, x.Response.Status, x.Took)
	}
	return fmt.Sprintf("%q ended in %q after %v", x.Label, x.Fault, x.Took)
}

var retryAfter = wire.Header{Name: "Retry-After", Value: "1"}

// silent are exchanges that say nothing either way, whatever is expected.
func silent() []wire.Exchange {
	return []wire.Exchange{answer(429), answer(503, retryAfter), broken(wire.FaultRefused)}
}

// says fails the test unless the only finding says all of it.
func says(t *testing.T, findings []evidence.Finding, cause string) {
	t.Helper()
	if len(findings) != 1 {
		t.Fatalf("%d findings: %+v", len(findings), findings)
	}
	f := findings[0]
	if f.Sent == "" || f.Got == "" || len(f.Exchanges) == 0 {
		t.Errorf("the finding does not say what was sent, what came, or where it stands: %+v", f)
	}
	if !strings.Contains(f.Cause, cause) || cause != "" && f.Cause == "" {
		t.Errorf("the cause is %q, want %q in it", f.Cause, cause)
	}
}

// nothing is a recorder that nobody reads.
func nothing() (rec *suite.Recorder) {
	suite.Record(context.Background(), suite.Config{}, []suite.Scenario{{Name: "nothing", Record: func(_ context.Context, r *suite.Recorder) error {
		rec = r
		return nil
	}}})
	return rec
}
