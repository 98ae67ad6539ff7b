package selftest

import (
	"bytes"
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.yaml.in/yaml/v4"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/fakeprovider"
)

// Receivers in other languages, as processes: thirteen of the field and the
// four examples. What the suite finds in each is a golden file.
//
// The ten wrong ones of the field were written from the source documents alone,
// without a look at the checks; the three right ones in frameworks that the
// suite had not been tried on.

var update = flag.Bool("update", false, "write the golden files anew")

// needPeers skips loudly where the other languages' tools may be missing. CI
// sets WHCONFORM_PEERS, and then what cannot be installed is a failure.
func needPeers(t *testing.T) {
	t.Helper()
	if os.Getenv("WHCONFORM_PEERS") == "" {
		t.Skip("NOT TESTED HERE: real receivers in Node, Python, Java and Go. Set WHCONFORM_PEERS=1 where node, npm, python3, javac and their package registries are at hand.")
	}
}

// peer is a receiver that is started by a command.
type peer struct {
	Name    string
	Dir     string
	Install string // run in Dir, "" for nothing
	Start   string
	Path    string
	Run     []string // only these requirements; empty: all
	Right   bool
	// Unsteady says why its findings differ from run to run, so that no golden
	// file holds them; Breaks must be found all the same.
	Unsteady string
	Breaks   []string // what must be found in a wrong one, by the document that it goes against
}

func readPeers(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
}

func TestReceiversOfTheFieldAreJudgedRightly(t *testing.T) {
	needPeers(t)
	t.Parallel() // beside the example senders: both wait most of the time
	var field struct{ Subjects []peer }
	readPeers(t, "field/subjects.yaml", &field)
	if len(field.Subjects) != 13 {
		t.Errorf("%d receivers, want ten wrong and three right", len(field.Subjects))
	}
	for _, p := range field.Subjects {
		t.Run(p.Name, func(t *testing.T) {
			dir := filepath.Join("field", p.Dir)
			shell(t, dir, p.Install)
			r := judgePeer(t, dir, p.Start, p.Path, p.Run...)
			if p.Unsteady == "" {
				golden(t, "field/outcomes/"+p.Name+".txt", outcomes(r))
			}
			if p.Right && r.Verdict != report.Conformant {
				t.Errorf("the verdict is %s: %v", r.Verdict, r.Reasons)
			}
			if !p.Right && len(p.Breaks) == 0 {
				t.Error("nothing is said of what it breaks")
			}
			for _, id := range p.Breaks {
				if !slices.ContainsFunc(r.Results, func(row report.Result) bool {
					return row.ID == id && (row.Outcome == evidence.Fail || row.Outcome == evidence.Warn)
				}) {
					t.Errorf("it is not caught for %s", id)
				}
			}
		})
	}
}

// known is a MUST that an example breaks because a library or framework does.
type known struct{ Receiver, Requirement, Reason string }

func TestExampleReceiversBreakNoMoreThanTheirLibrariesDo(t *testing.T) {
	needPeers(t)
	const root = "../../examples/receivers"
	var examples []struct{ Name, Dir, Run string } // run is the command
	readPeers(t, root+"/receivers.yaml", &examples)
	var list []known
	readPeers(t, root+"/known.yaml", &list)
	shell(t, root, "./install")
	for _, p := range examples {
		t.Run(p.Name, func(t *testing.T) {
			r := judgePeer(t, filepath.Join(root, p.Dir), p.Run, "/webhooks")
			golden(t, "testdata/examples/"+p.Name+".txt", outcomes(r))
			var broken, excused []string
			for _, row := range r.Results {
				if row.Outcome == evidence.Fail || row.Outcome == evidence.Error {
					broken = append(broken, row.ID)
				}
			}
			for _, k := range list {
				if k.Receiver == p.Name {
					excused = append(excused, k.Requirement)
					if k.Reason == "" {
						t.Errorf("%s is excused without a reason", k.Requirement)
					}
				}
			}
			if !slices.Equal(sorted(broken), sorted(excused)) {
				t.Errorf("it breaks %v; examples/receivers/known.yaml excuses %v", broken, excused)
			}
		})
	}
}

// shell runs a line in a folder.
func shell(t *testing.T, dir, line string) {
	t.Helper()
	if line == "" {
		return
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s in %s: %v\n%s", line, dir, err, out)
	}
}

// judgePeer starts a command as a receiver and judges it, as the command line
// does.
func judgePeer(t *testing.T, dir, start, path string, run ...string) *report.Report {
	t.Helper()
	secret := func(fill string) string {
		return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(fill, 32)))
	}
	secrets := []string{secret("a"), secret("b")}
	var log bytes.Buffer
	r, err := drive.Exec(t.Context(), drive.ExecConfig{
		Command: strings.Fields(start), Dir: dir, Env: []string{"INBOX_DIR=" + t.TempDir()}, State: t.TempDir(), Log: &log,
		Target:  fakeprovider.Target{URL: "http://127.0.0.1:{port}" + path},
		Secrets: drive.Secrets{Current: secrets[0], Previous: secrets[1]},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	bounds := receiver.DefaultBounds()
	// A golden file must not depend on how busy the machine is: these are the
	// only rows that compare real time with a bound below ten seconds.
	bounds.Fast, bounds.Burst = 8*time.Second, 12*time.Second
	result, err := conformance.Run(t.Context(), conformance.Config{
		Receiver: r, Target: start, Secrets: secrets, Run: run, Bounds: bounds, Clock: clock.New(), Seed: 1,
	})
	if err != nil {
		t.Fatalf("judging %s: %v\nits output:\n%s", start, err, log.String())
	}
	return result
}

// outcomes is the golden form of a report: what was found, without times.
func outcomes(r *report.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "verdict: %s\n", r.Verdict)
	if r.Diagnosis != nil {
		fmt.Fprintf(&b, "diagnosis: %s\n", r.Diagnosis.Cause)
	}
	for _, row := range r.Results {
		switch row.Outcome {
		case evidence.Fail, evidence.Warn, evidence.Error:
			fmt.Fprintf(&b, "%s %s %s\n", row.Outcome, row.ID, row.Detail)
			cause := ""
			for _, f := range row.Findings {
				fmt.Fprintf(&b, "  sent  %s\n  got   %s\n", f.Sent, f.Got)
				if f.Cause != cause {
					fmt.Fprintf(&b, "  cause %s\n", f.Cause)
				}
				cause = f.Cause
			}
		case evidence.Skipped:
			if slices.Contains([]evidence.SkipReason{evidence.NotReached, evidence.Throttled, evidence.NotObservable}, row.SkipReason) {
				fmt.Fprintf(&b, "skip %s %s\n", row.ID, row.SkipReason)
			}
		}
	}
	text := ports.ReplaceAllString(b.String(), "127.0.0.1:PORT")
	return times.ReplaceAllString(text, "$1 TIME")
}

// What differs from run to run.
var (
	ports = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	times = regexp.MustCompile(`(within|slowest|after) [\d.]+(ms|s)\b`)
)

// golden compares with a file, or writes it under -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (write it anew with -update if that is right):\n%s", name, got)
	}
}
