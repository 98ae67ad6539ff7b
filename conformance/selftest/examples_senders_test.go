package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/report"
)

// The example senders, as their users run them: the built command, their adapter
// as a process, real time. What the suite finds in each is a golden file, and
// every row of it is explained in the example's README.

const senderExamples = "../../examples/senders"

// needSenderPeers is needPeers for the tools of the example senders.
func needSenderPeers(t *testing.T) {
	t.Helper()
	if os.Getenv("WHCONFORM_PEERS") == "" {
		t.Skip("NOT TESTED HERE: example senders in Node, Go and Python. Set WHCONFORM_PEERS=1 where node, go and python3 are at hand; it takes four minutes.")
	}
}

// exampleSender is a folder of examples/senders with the command of its adapter.
type exampleSender struct {
	name, build string
	adapter     []string
}

func exampleSenders() []exampleSender {
	return []exampleSender{
		{"node", "node --version", []string{"node", "adapter.mjs"}},
		{"go", "go build -o bin/sender .", []string{"bin/sender"}},
		{"http", "python3 --version", []string{"python3", "adapter.py"}},
	}
}

func TestExampleSendersAreJudgedAsTheirReadmeSays(t *testing.T) {
	needSenderPeers(t)
	t.Parallel() // beside the receivers of the field: both wait most of the time
	program := filepath.Join(t.TempDir(), "whconform")
	shell(t, "../..", "go build -o '"+program+"' ./cmd/whconform")
	for _, e := range exampleSenders() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			dir := filepath.Join(senderExamples, e.name)
			shell(t, dir, e.build)
			r := judgeSenderExample(t, program, dir, e.adapter)
			found := senderOutcomes(r)
			golden(t, "testdata/examples/sender-"+e.name+".txt", found)
			explained(t, filepath.Join(dir, "README.md"), found)
		})
	}
}

// unsteadyOnBusyMachines bounds calls to 100 ms of real time, which a machine
// that has other things to do exceeds by itself.
const unsteadyOnBusyMachines = "sender.timeout.publish-returns.absolute"

// judgeSenderExample runs the command line on an adapter, from its folder.
func judgeSenderExample(t *testing.T, program, dir string, command []string) *report.Report {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	args := append([]string{"sender", "--seed", "1", "--skip", unsteadyOnBusyMachines, "--timeout", "10m", "--report", "json=" + file, "--"}, command...)
	ctx, cancel := context.WithTimeout(t.Context(), 11*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Cancel = dir, func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && (!errors.As(err, &ended) || ended.ExitCode() != 1) { // 1: not conformant
		t.Fatalf("whconform %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.ReadJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("reading the report: %v\n%s", err, out)
	}
	return r
}

// senderOutcomes is the golden form of a sender's report: what did not pass, a
// row a line. Rows that the adapter does not offer are left out.
func senderOutcomes(r *report.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "verdict: %s\n", r.Verdict)
	for _, row := range r.Results {
		switch row.Outcome {
		case evidence.Fail, evidence.Warn, evidence.Error:
			fmt.Fprintf(&b, "%s %s\n", row.Outcome, row.ID)
		case evidence.Skipped:
			if slices.Contains([]evidence.SkipReason{evidence.NotReached, evidence.Throttled, evidence.NotObservable}, row.SkipReason) {
				fmt.Fprintf(&b, "skip %s %s\n", row.ID, row.SkipReason)
			}
		}
	}
	return b.String()
}

// explained wants each row that failed or warned named in a README, and no row
// named in it that did not.
func explained(t *testing.T, readme, found string) {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	var broken []string
	for line := range strings.Lines(found) {
		if outcome, id, ok := strings.Cut(strings.TrimSpace(line), " "); ok && (outcome == "fail" || outcome == "warn") {
			broken = append(broken, id)
		}
	}
	var told []string
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, word := range strings.Split(cells[1], "`") {
				if strings.HasPrefix(word, "sender.") {
					told = append(told, word)
				}
			}
		}
	}
	if !slices.Equal(sorted(broken), sorted(told)) {
		t.Errorf("it breaks\n%s\n%s explains\n%s", strings.Join(sorted(broken), "\n"), readme, strings.Join(sorted(told), "\n"))
	}
}
