package selftest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/reference/mutant"
	"github.com/whconform/whconform/reference/profile"
)

// mutantVariable makes the test binary a mutant: durability is judged on
// processes.
const mutantVariable = "WHCONFORM_TEST_MUTANT"

func TestMain(m *testing.M) {
	if name := os.Getenv(senderVariable); name != "" {
		if err := beSender(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if name := os.Getenv(mutantVariable); name != "" {
		if err := beMutant(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// mutantProcess starts the test binary as a mutant.
func mutantProcess(name string) []string {
	self, err := os.Executable()
	if err != nil {
		panic(err) // a test binary always has a name
	}
	return []string{"env", mutantVariable + "=" + name, self}
}

// beMutant serves a mutant until SIGTERM, configured as the suite configures a
// command.
func beMutant(name string) error {
	m, err := mutant.Find(name)
	if err != nil {
		return err
	}
	p, err := profile.Load(m.Profile)
	if err != nil {
		return err
	}
	scheme, err := p.Scheme()
	if err != nil {
		return err
	}
	keys, err := readKeys(scheme, drive.Secrets{Current: os.Getenv("WEBHOOK_SECRET"), Previous: os.Getenv("WEBHOOK_SECRET_PREVIOUS"), Public: os.Getenv("WEBHOOK_PUBLIC_KEY")})
	if err != nil {
		return err
	}
	server, err := m.HTTPServer(mutant.Config{Profile: p, Keys: keys, Clock: clock.New(), BodyTimeout: BodyTimeout, State: os.Getenv("WHCONFORM_STATE_DIR")})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		return err
	}
	return server.Serve(listener)
}

// The matrix: each mutant fails exactly the requirements that it declares, the
// reference fails none, and every requirement of level MUST or SHOULD that has
// a check has a mutant.
func TestEveryMutantIsCaughtForWhatItDoesAndTheReferenceIsNot(t *testing.T) {
	matrix, err := Run(t.Context(), Options{Part: catalogue.Receiver, Command: mutantProcess})
	if err != nil {
		t.Fatal(err)
	}
	if !matrix.OK() {
		var text bytes.Buffer
		if err := matrix.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		t.Error(text.String())
	}
	for _, general := range []string{"accepts-all", "rejects-all", "crashes", "hangs", "garbage"} {
		if !slices.ContainsFunc(matrix.Rows, func(r Row) bool { return r.Mutant == general }) {
			t.Errorf("the mutant %s is missing", general)
		}
	}
}

// What a run against the reference, observed but not killed, may leave unjudged,
// and why. A requirement that moves to another list has to be moved here by hand.
var allowedSkips = map[evidence.SkipReason][]string{
	// A handler in this process cannot be killed; the command line's --reference
	// is a process, and is.
	evidence.NotDeclared: {
		"receiver.durability.kill-after-ack", "receiver.durability.kill-after-ack.once", "receiver.durability.kill-under-load",
		"receiver.durability.kill-under-load.once", "receiver.durability.remembers-across-restart",
	},
	// Timing a comparison is done on request only.
	evidence.NotSelected: {"receiver.signature.constant-time"},
	// The profile has no such thing, or loopback has none.
	evidence.NotApplicable: {
		"receiver.duplicate.unsigned-id", "receiver.acknowledge.handshake", "receiver.acknowledge.other-version",
		"receiver.limits.accepts-provider-size", "receiver.transport.https", "receiver.transport.https.public",
	},
}

func TestTheReferenceIsConformantAndOnlyWhatIsListedIsSkipped(t *testing.T) {
	s, err := Options{Seed: 1}.prepare(t.Context(), mutant.Reference(mutant.StandardWebhooks), clock.New())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(s.receiver.Close(t.Context()), s.clean()) }()
	r, err := conformance.Run(t.Context(), s.config)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != report.Conformant || r.Gate != report.Open {
		t.Errorf("verdict %s, gate %s: %v", r.Verdict, r.Gate, r.Reasons)
	}
	skipped := map[evidence.SkipReason][]string{}
	for _, row := range r.Results {
		if row.Outcome == evidence.Skipped {
			skipped[row.SkipReason] = append(skipped[row.SkipReason], row.ID)
		}
	}
	reasons := slices.Sorted(maps.Keys(skipped))
	for reason := range allowedSkips {
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	for _, reason := range reasons {
		if got, want := sorted(skipped[reason]), sorted(allowedSkips[reason]); !slices.Equal(got, want) {
			t.Errorf("skipped as %s:\n%s\nwant:\n%s", reason, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// Whoever is right in another way than the reference is right.
func TestWhoIsRightInAnotherWayIsNotBlamed(t *testing.T) {
	// Where the state of a payment never changes, it cannot be held to anything.
	unseen := map[string][]string{"records-no-payments": {"receiver.order.asks-provider", "receiver.order.state-does-not-regress"}}
	for _, m := range mutant.Otherwise() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			row := Options{Seed: 1}.judge(t.Context(), m)
			if !row.OK() {
				t.Fatalf("blamed for %v, %s", row.Blamed, row.Wrong)
			}
			var skipped []string
			for _, r := range row.Report.Results {
				if r.SkipReason == evidence.NotObservable {
					skipped = append(skipped, r.ID)
				}
			}
			if !slices.Equal(sorted(skipped), unseen[m.Name]) {
				t.Errorf("not observable: %v, want %v", skipped, unseen[m.Name])
			}
		})
	}
}

// A provider that does not sign its ids lets a delivery be replayed under
// another one. That is told, and nobody is blamed for it.
func TestAReplayUnderAnUnsignedIDIsTold(t *testing.T) {
	s, err := Options{Seed: 1}.prepare(t.Context(), mutant.Reference("github"), clock.New())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(s.receiver.Close(t.Context()), s.clean()) }()
	const id = "receiver.duplicate.unsigned-id"
	s.config.Run = []string{id}
	r, err := conformance.Run(t.Context(), s.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Results {
		if row.ID != id {
			continue
		}
		if row.Outcome != evidence.Info || len(row.Findings) != 2 || row.Findings[0].Got != "answered 200, processed again" {
			t.Errorf("%s %s: %+v", row.Outcome, row.Detail, row.Findings)
		}
	}
}

func TestNoRequirementOfTheCoreSetLacksACheck(t *testing.T) {
	with := map[string]bool{}
	for _, c := range receiver.Checks() {
		with[c.Requirement] = true
	}
	for _, r := range catalogue.All() {
		if r.Part() == catalogue.Receiver && r.Core() && !with[r.ID] {
			t.Errorf("%s has no check: every run would be partial", r.ID)
		}
	}
}

func TestASelectionOfMutantsIsRunAndAnEmptyOneIsAnError(t *testing.T) {
	only := func(name string) func(string) bool { return func(n string) bool { return n == name } }
	matrix, err := Run(t.Context(), Options{Mutants: only("rejects-all")})
	if err != nil {
		t.Fatal(err)
	}
	if len(matrix.Rows) != 1 || !matrix.OK() {
		t.Errorf("the matrix is %+v", matrix)
	}
	if _, err := Run(t.Context(), Options{Mutants: only("nobody")}); !errors.Is(err, ErrNoMutant) {
		t.Errorf("no mutant at all: %v", err)
	}
}

// A matrix that could not be wrong would be worth nothing.
func TestAMutantThatDeclaresSomethingElseIsReported(t *testing.T) {
	lying := mutant.Reference(mutant.StandardWebhooks)
	lying.Name, lying.Fails = "declares a fault that it has not", []string{"receiver.replay.rejects-stale"}
	row := Options{}.judge(t.Context(), lying)
	if row.OK() || !slices.Equal(row.Missed, lying.Fails) {
		t.Errorf("the row is %+v", row)
	}
	silent, err := mutant.Find("accepts-all")
	if err != nil {
		t.Fatal(err)
	}
	declared := silent.Fails
	silent.Fails = nil
	if row := (Options{}).judge(t.Context(), silent); row.OK() || len(row.Blamed) != len(declared) {
		t.Errorf("a mutant that declares nothing: blamed for %v, want %v", row.Blamed, declared)
	}
}

func sorted(ids []string) []string {
	out := slices.Clone(ids)
	slices.Sort(out)
	return out
}
