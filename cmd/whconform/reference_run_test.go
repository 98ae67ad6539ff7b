package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/report"
)

// slowRows asks for the rows that wait for half a minute and more, too, as CI
// does.
var slowRows = os.Getenv("CI") != "" // read once, and never changed

// wholeRun bounds a run over every row, on a machine that is busy with others.
const wholeRun = 5 * time.Minute

// The rows of the reference that a run may leave unjudged, and why. A row that
// moves to another list has to be moved here by hand.
func allowedSkips() map[evidence.SkipReason][]string {
	allowed := map[evidence.SkipReason][]string{
		// Timing a comparison is done on request only.
		evidence.NotSelected: {"receiver.signature.constant-time"},
		// The profile has no such thing, or loopback has none.
		evidence.NotApplicable: {
			"receiver.duplicate.unsigned-id", "receiver.acknowledge.handshake", "receiver.acknowledge.other-version",
			"receiver.limits.accepts-provider-size", "receiver.transport.https", "receiver.transport.https.public",
		},
	}
	if !slowRows {
		for _, row := range catalogue.OfPart(catalogue.Receiver) {
			if row.Has(catalogue.LabelSlow) {
				allowed[evidence.NotSelected] = append(allowed[evidence.NotSelected], row.ID)
			}
		}
	}
	return allowed
}

// The reference is a receiver like any other: started as a process, asked by its
// adapter, killed, doubled. Whatever its inbox is kept in, and however it is
// started, every row holds.
func TestTheReferenceIsConformantOverEveryRow(t *testing.T) {
	for _, tt := range []struct {
		name string
		args func(t *testing.T) []string
	}{
		{"as --reference, on SQLite", func(*testing.T) []string { return []string{"--reference"} }},
		{"by --exec, on SQLite", func(*testing.T) []string {
			return []string{
				"--exec", "whconform reference receiver --hooks stdio", "--control", "stdio", "--instances", "--provider-api",
				"--secret-env", "SECRET", "--secret-env", "PREVIOUS", "--secret-env", "PRIVATE",
			}
		}},
		{"two instances, on PostgreSQL", func(t *testing.T) []string { return []string{"--reference", "--db", newDatabase(t)} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // most of a run is a minute's wait for bodies that do not come
			args := append([]string{"receiver", "--format", "json"}, tt.args(t)...)
			if slowRows {
				args = append(args, "--slow")
			}
			conformantButFor(t, judged(t, args...), allowedSkips())
		})
	}
}

// The rows on the state of a record are tried with the user's own payload.
func TestEventsOfTheUsersTellOfOneRecord(t *testing.T) {
	event := filepath.Join(t.TempDir(), "event.json")
	const template = `{"type":{{json .Type}},"timestamp":"{{.Now}}","data":{"id":"ch_{{.Random}}","amount":990,"currency":"TRY"}}`
	if err := os.WriteFile(event, []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	r := judged(t, "receiver", "--reference", "--format", "json", "--payload", event, "--event-type", "payment.succeeded", "--run", "order")
	passed := 0
	for _, row := range r.Results {
		if row.Outcome == evidence.Pass {
			passed++
		}
	}
	if passed != 3 {
		t.Errorf("%d rows passed, want 3: %v", passed, r.Reasons)
	}
}

// timed are the rows that hold an answer to a second or two. How fast one comes
// is the machine's affair as well, which has other tests to run: what they find
// is told, and the benchmarks are where speed is judged.
func timed() []string {
	return []string{
		"receiver.signature.survives-odd-signatures.fast", "receiver.acknowledge.fast", "receiver.acknowledge.burst.fast",
		"receiver.limits.many-signatures.fast", "receiver.limits.flood",
		"sender.timeout.publish-returns.absolute",
	}
}

// judged runs the program and reads its report.
func judged(t *testing.T, args ...string) *report.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wholeRun)
	defer cancel()
	c := exec.CommandContext(ctx, "whconform", args...)
	c.Env = append(os.Environ(), "SECRET="+newSecret(), "PREVIOUS="+newSecret(), "PRIVATE="+newPrivate())
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	r, err := report.ReadJSON(bytes.NewReader(out))
	if err != nil {
		t.Fatalf("exit code %d, no report: %v\n%s", c.ProcessState.ExitCode(), err, stderr.String())
	}
	if code := c.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	return r
}

// newPrivate is a private Ed25519 key of Standard Webhooks' form.
func newPrivate() string {
	seed := make([]byte, 32)
	_, _ = rand.Read(seed) // never fails
	return "whsk_" + base64.StdEncoding.EncodeToString(seed)
}

// conformantButFor fails the test unless all rows hold but those that may be
// skipped.
func conformantButFor(t *testing.T, r *report.Report, allowed map[evidence.SkipReason][]string) {
	t.Helper()
	if r.Verdict != report.Conformant || r.Gate != report.Open {
		t.Errorf("verdict %s, gate %s: %v", r.Verdict, r.Gate, r.Reasons)
	}
	skipped := map[evidence.SkipReason][]string{}
	for _, row := range r.Results {
		switch row.Outcome {
		case evidence.Skipped:
			skipped[row.SkipReason] = append(skipped[row.SkipReason], row.ID)
		case evidence.Pass, evidence.Info:
		case evidence.Warn:
			if slices.Contains(timed(), row.ID) {
				t.Logf("%s: %s%s", row.ID, row.Outcome, said(row.Findings))
				continue
			}
			t.Errorf("%s: %s%s", row.ID, row.Outcome, said(row.Findings))
		default:
			t.Errorf("%s: %s %s %s", row.ID, row.Outcome, row.Detail, said(row.Findings))
		}
	}
	reasons := slices.Sorted(maps.Keys(skipped))
	for reason := range allowed {
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	for _, reason := range reasons {
		slices.Sort(skipped[reason])
		slices.Sort(allowed[reason])
		if !slices.Equal(skipped[reason], allowed[reason]) {
			t.Errorf("skipped as %s:\n%s\nwant:\n%s", reason, strings.Join(skipped[reason], "\n"), strings.Join(allowed[reason], "\n"))
		}
	}
}

func said(findings []evidence.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "\n  %s: %s", f.Sent, f.Got)
	}
	return b.String()
}
