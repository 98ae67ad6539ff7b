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
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/fakeprovider"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Subjects in other languages need their tools and packages: they run where
// WHCONFORM_PEERS is set, as in CI, which also fails if one cannot be installed.
func needPeers(t *testing.T) {
	t.Helper()
	if os.Getenv("WHCONFORM_PEERS") == "" {
		t.Skip("SKIPPED LOUDLY: real receivers in Node, Python, Java and Go are not judged; set WHCONFORM_PEERS=1 (needs node, npm, python3, javac and package registries)")
	}
}

type fieldSubject struct {
	Name    string
	Dir     string
	Right   bool
	Install string
	Start   string
	Path    string
}

func fieldSubjects(t *testing.T) []fieldSubject {
	t.Helper()
	data, err := os.ReadFile("field/subjects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Subjects []fieldSubject }
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for i := range file.Subjects {
		file.Subjects[i].Dir = filepath.Join("field", file.Subjects[i].Dir)
	}
	return file.Subjects
}

func install(t *testing.T, dir, command string) {
	t.Helper()
	if command == "" {
		return
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("installing %s: %v\n%s", dir, err, out)
	}
}

// judgeProcess starts a command as a receiver and judges it as the command line
// does.
func judgeProcess(t *testing.T, dir, start, path string) *report.Report {
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
	rep, err := conformance.Run(t.Context(), conformance.Config{Receiver: r, Target: start, Secrets: secrets})
	if err != nil {
		t.Fatalf("judging %s: %v", start, err)
	}
	return rep
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
			for _, f := range row.Findings {
				fmt.Fprintf(&b, "    %s\n        %s\n        %s\n", f.Sent, f.Got, f.Cause)
			}
		case evidence.Skipped:
			if slices.Contains([]evidence.SkipReason{evidence.NotReached, evidence.Throttled, evidence.NotObservable}, row.SkipReason) {
				fmt.Fprintf(&b, "skip %s %s\n", row.ID, row.SkipReason)
			}
		}
	}
	return b.String()
}

// The ten wrong receivers were written from the source documents alone; the
// three right ones in frameworks that the suite was not tried on before.
func TestReceiversFromTheFieldAreJudgedRightly(t *testing.T) {
	needPeers(t)
	for _, s := range fieldSubjects(t) {
		t.Run(s.Name, func(t *testing.T) {
			install(t, s.Dir, s.Install)
			r := judgeProcess(t, s.Dir, s.Start, s.Path)
			t.Logf("%d ms\n%s", r.DurationMS, outcomes(r))
			if s.Right && r.Verdict != report.Conformant {
				t.Errorf("a right receiver is %s: %v", r.Verdict, r.Reasons)
			}
			if !s.Right && r.Verdict != report.NotConformant {
				t.Errorf("a wrong receiver is %s: %v", r.Verdict, r.Reasons)
			}
		})
	}
}
