package conformance_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/profile"
)

// Ginkgo keeps its specs in globals, so a suite of the caller's own is this
// test binary, started again with the name of a suite.
const suiteVariable = "WHCONFORM_TEST_SUITE"

// The suites.
const (
	suiteRight    = "right"
	suiteWrong    = "wrong"
	suiteWarned   = "warned"
	suiteStrict   = "strict"
	suiteNobody   = "nobody"
	suiteMistaken = "mistaken"
)

// specSeen is one spec as the caller's suite saw it.
type specSeen struct {
	Text, State, Failure string
	Outcome              evidence.Outcome
}

// failing is what Ginkgo tells of a failure.
type failing struct{}

func (failing) Fail() {}

// runOwnSuite is a caller's own suite: specs of its own beside those of
// Describe. It prints what it saw and returns the exit code.
func runOwnSuite(name string) int {
	flag.Parse() // Ginkgo's flags are among them
	gomega.RegisterFailHandler(ginkgo.Fail)
	server := httptest.NewServer(small{takesUnsigned: name == suiteWrong})
	defer server.Close()
	p, err := profile.Load("standard-webhooks")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	c := conformance.Config{
		Receiver: at(server.URL), Profile: p, Secrets: []string{current}, Bounds: little(), Rate: 1e6,
		Run: []string{"receiver.signature.rejects-unsigned", "receiver.replay", "receiver.rotation"},
	}
	switch name {
	case suiteWarned, suiteStrict:
		c.Run, c.Strict = []string{"receiver.signature.accepts-valid", "receiver.acknowledge.poison-event.acknowledged"}, name == suiteStrict
		server.Config.Handler = pickyHandler{}
	case suiteNobody:
		c.Receiver = at("http://127.0.0.1:1/")
	case suiteMistaken:
		c.Secrets = nil
	}

	ginkgo.Describe("our webhook", func() {
		ginkgo.It("has a test of its own", func() { gomega.Expect(server.URL).NotTo(gomega.BeEmpty()) })
		conformance.Describe(c)
	})
	ginkgo.ReportAfterSuite("what was seen", func(r ginkgo.Report) {
		for _, spec := range r.SpecReports.WithLeafNodeType(types.NodeTypeIt) {
			seen := specSeen{Text: spec.LeafNodeText, State: spec.State.String(), Failure: spec.Failure.Message}
			for _, entry := range spec.ReportEntries {
				ruling, ok := entry.GetRawValue().(evidence.Ruling)
				gomega.Expect(ok).To(gomega.BeTrue(), "the report entry is no ruling")
				gomega.Expect(spec.LeafNodeText).To(gomega.HavePrefix(ruling.Requirement + " "))
				gomega.Expect(spec.Labels()).To(gomega.ContainElement(ruling.Requirement))
				seen.Outcome = ruling.Outcome
			}
			line, err := json.Marshal(seen)
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			fmt.Printf("\nseen %s\n", line) // Ginkgo prints a dot a spec
		}
	})
	if ginkgo.RunSpecs(failing{}, "a suite of the caller's own") {
		return 0
	}
	return 1
}

// ownSuite runs a suite and returns its exit code and what it saw.
func ownSuite(t *testing.T, name string) (int, []specSeen) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), suiteVariable+"="+name, "GORACE=atexit_sleep_ms=0")
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var specs []specSeen
	for line := range strings.Lines(string(out)) {
		text, ok := strings.CutPrefix(line, "seen ")
		if !ok {
			continue
		}
		var s specSeen
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		specs = append(specs, s)
	}
	if len(specs) == 0 {
		t.Fatalf("no specs were seen\n%s", out)
	}
	return cmd.ProcessState.ExitCode(), specs
}

// spec finds the spec of a requirement.
func spec(t *testing.T, specs []specSeen, begin string) specSeen {
	t.Helper()
	for _, s := range specs {
		if strings.HasPrefix(s.Text, begin) {
			return s
		}
	}
	t.Fatalf("there is no spec %q", begin)
	return specSeen{}
}

func TestDescribeGivesOneSpecARequirement(t *testing.T) {
	exit, specs := ownSuite(t, suiteRight)
	if exit != 0 {
		t.Errorf("the suite ended with %d", exit)
	}
	states := map[evidence.Outcome]string{
		evidence.Pass: "passed", evidence.Info: "passed", evidence.Skipped: "skipped", evidence.Warn: "passed", "": "passed",
	}
	for _, s := range specs {
		if want := states[s.Outcome]; s.State != want {
			t.Errorf("%s: outcome %q, state %s: %s", s.Text, s.Outcome, s.State, s.Failure)
		}
	}
	for begin, want := range map[string]evidence.Outcome{
		"has a test of its own": "", "receiver.signature.rejects-unsigned ": evidence.Pass, "receiver.replay.tolerance ": evidence.Info,
		"receiver.rotation.accepts-old-and-new ": evidence.Skipped, "receiver.limits.chunked ": evidence.Skipped,
	} {
		if got := spec(t, specs, begin).Outcome; got != want {
			t.Errorf("%s: %s, want %s", begin, got, want)
		}
	}
	if got := spec(t, specs, "receiver.limits.chunked ").Failure; !strings.HasPrefix(got, "not-selected: ") {
		t.Errorf("a skip says %q", got)
	}
}

func TestABrokenMUSTFailsItsSpecAndNoOther(t *testing.T) {
	exit, specs := ownSuite(t, suiteWrong)
	if exit != 1 {
		t.Errorf("the suite ended with %d", exit)
	}
	for _, s := range specs {
		if failed, wrong := s.State == "failed", strings.HasPrefix(s.Text, "receiver.signature.rejects-unsigned "); failed != wrong {
			t.Errorf("%s is %s: %s", s.Text, s.State, s.Failure)
		}
	}
	failure := spec(t, specs, "receiver.signature.rejects-unsigned ").Failure
	for _, want := range []string{"sent: no signature headers", "expected: a rejection", "got: it was accepted (204)", "likely cause: ", "fix: "} {
		if !strings.Contains(failure, want) {
			t.Errorf("the failure does not say %q:\n%s", want, failure)
		}
	}
}

func TestABrokenSHOULDFailsItsSpecOnlyWhenStrict(t *testing.T) {
	for name, want := range map[string]struct {
		exit  int
		state string
	}{suiteWarned: {0, "passed"}, suiteStrict: {1, "failed"}} {
		exit, specs := ownSuite(t, name)
		s := spec(t, specs, "receiver.acknowledge.poison-event.acknowledged ")
		if s.Outcome != evidence.Warn || s.State != want.state || exit != want.exit {
			t.Errorf("%s: %s, %s, exit %d", name, s.Outcome, s.State, exit)
		}
	}
}

func TestNobodyToSendToFailsEverySpecThatWasAskedFor(t *testing.T) {
	exit, specs := ownSuite(t, suiteNobody)
	if exit != 1 {
		t.Errorf("the suite ended with %d", exit)
	}
	s := spec(t, specs, "receiver.signature.rejects-unsigned ")
	if s.State != "failed" || s.Outcome != evidence.Error || !strings.Contains(s.Failure, "could not be judged") {
		t.Errorf("got %+v", s)
	}
	if s := spec(t, specs, "receiver.limits.chunked "); s.State != "skipped" {
		t.Errorf("what was not asked for is %s", s.State)
	}
	if s := spec(t, specs, "has a test of its own"); s.State != "passed" {
		t.Errorf("the caller's own spec is %s", s.State)
	}
}

func TestAMistakeInTheConfigurationIsASpecThatFails(t *testing.T) {
	exit, specs := ownSuite(t, suiteMistaken)
	s := spec(t, specs, "is prepared")
	if exit != 1 || s.State != "failed" || !strings.Contains(s.Failure, "no secret") || len(specs) != 2 {
		t.Errorf("exit %d, %d specs, %+v", exit, len(specs), s)
	}
}
