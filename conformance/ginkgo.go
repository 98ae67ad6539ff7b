package conformance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/extensions/globals"
	"github.com/onsi/ginkgo/v2/formatter"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/report"
)

// Ginkgo keeps its specs in globals of the process: one run at a time.
var oneRun sync.Mutex

const (
	// gracePeriod is how long Ginkgo waits for a spec that was told to stop.
	gracePeriod = 5 * time.Second
	// suiteMargin is what Ginkgo's own timeout lies above the run's, so that
	// the run's own, which still gives a report, comes first.
	suiteMargin = 30 * time.Second
)

// Run judges the subject and returns the report. The report is there also
// beside an *UnreachableError, and after ctx has ended. A *UsageError comes
// without one.
func Run(ctx context.Context, c Config) (*report.Report, error) {
	plan, err := Prepare(c)
	if err != nil {
		return nil, err
	}
	oneRun.Lock()
	defer oneRun.Unlock()
	specs := &specs{plan: plan, ctx: ctx}
	if err := specs.run(); err != nil {
		return nil, err
	}
	return specs.report(), specs.recordErr
}

// Describe registers one spec a requirement into the caller's Ginkgo suite.
// Call it where Describe may be called. A broken MUST fails its spec; a broken
// SHOULD does so under Strict; what was not judged is skipped with its reason.
func Describe(c Config) {
	plan, err := Prepare(c)
	if err != nil {
		ginkgo.It("is prepared", func() { ginkgo.Fail(err.Error()) })
		return
	}
	(&specs{plan: plan, ctx: context.Background()}).register()
}

// specs is one plan as Ginkgo specs.
type specs struct {
	plan      *Plan
	ctx       context.Context
	recordErr error
	rulings   map[string]evidence.Ruling // by requirement; written by specs, which run one after another
	broken    []string                   // what Ginkgo says of specs that did not end by themselves
}

// register makes one ordered container: everything is recorded before the first
// spec, then each spec judges. Judging is pure and instant; a spec that fails
// must not keep the others from running.
func (s *specs) register() {
	s.rulings = map[string]evidence.Ruling{}
	ginkgo.Describe("whconform", ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		ginkgo.BeforeAll(func(spec ginkgo.SpecContext) {
			ctx, cancel := context.WithCancelCause(spec)
			defer cancel(nil)
			stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
			defer stop()
			s.recordErr = s.plan.Record(ctx)
		}, ginkgo.NodeTimeout(s.plan.config.Timeout+suiteMargin))
		for i, q := range s.plan.questions {
			ginkgo.It(q.Requirement.ID+" "+q.Requirement.Statement, ginkgo.Label(q.Requirement.ID, q.Level), func() {
				ruling := s.plan.rule(s.plan.questions[i]) // what a sender offers is known since it was recorded
				s.rulings[q.Requirement.ID] = ruling
				ginkgo.AddReportEntry("ruling", ruling, ginkgo.ReportEntryVisibilityNever)
				s.conclude(ruling)
			})
		}
	})
}

// conclude ends a spec as its ruling says.
func (s *specs) conclude(r evidence.Ruling) {
	switch {
	case r.Outcome == evidence.Skipped:
		ginkgo.Skip(string(r.Skip.Reason) + ": " + r.Skip.Detail)
	case r.Outcome == evidence.Error:
		ginkgo.Fail("could not be judged: " + r.Detail)
	case r.Outcome == evidence.Fail, r.Outcome == evidence.Warn && s.plan.config.Strict:
		ginkgo.Fail(describe(r.Findings))
	}
}

func describe(findings []evidence.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "sent: %s\nexpected: %s\ngot: %s\n", f.Sent, f.Expected, f.Got)
		if f.Cause != "" {
			fmt.Fprintf(&b, "likely cause: %s\n", f.Cause)
		}
		if f.Fix != "" {
			fmt.Fprintf(&b, "fix: %s\n", f.Fix)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// run owns RunSpecs. The caller holds oneRun.
func (s *specs) run() error {
	globals.Reset()
	formatter.ColorableStdOut, formatter.ColorableStdErr = io.Discard, io.Discard
	suiteConfig, _ := ginkgo.GinkgoConfiguration()
	suiteConfig.GracePeriod = gracePeriod
	suiteConfig.Timeout = s.plan.config.Timeout + 2*suiteMargin
	// Selection is ours: whatever flags or environment say to Ginkgo must not
	// leave specs out.
	suiteConfig.LabelFilter, suiteConfig.FocusStrings, suiteConfig.SkipStrings = "", nil, nil
	suiteConfig.FocusFiles, suiteConfig.SkipFiles = nil, nil
	suiteConfig.ParallelProcess, suiteConfig.ParallelTotal = 1, 1
	suiteConfig.DryRun, suiteConfig.FailFast, suiteConfig.RandomizeAllSpecs = false, false, false
	suiteConfig.EmitSpecProgress = false
	reporter := types.ReporterConfig{NoColor: true, Succinct: true}

	defer onceOnly()()
	s.register()
	ginkgo.ReportAfterSuite("what did not end by itself", func(r ginkgo.Report) {
		for _, spec := range r.SpecReports {
			if spec.State.Is(types.SpecStatePanicked | types.SpecStateTimedout | types.SpecStateAborted) {
				s.broken = append(s.broken, fmt.Sprintf("%s: %s: %s", spec.FullText(), spec.State, spec.Failure.Message))
			}
		}
	})
	ginkgo.RunSpecs(&testing{}, "whconform", suiteConfig, reporter)
	// Ginkgo keeps its signal handler, which would swallow the next SIGINT.
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	if len(s.broken) > 0 {
		return errors.New("running the specs: " + strings.Join(s.broken, "; "))
	}
	return nil
}

// onceOnly hides -test.count from Ginkgo, which ends a test binary that was asked
// to run its tests more than once: it cannot repeat its suite, but this package
// makes a new one each time. The result puts the flag back.
func onceOnly() (restore func()) {
	count := flag.Lookup("test.count")
	if count == nil {
		return func() {}
	}
	was := count.Value.String()
	_ = count.Value.Set("1") // a number, which it takes
	return func() { _ = count.Value.Set(was) }
}

// report takes the rulings that the specs made. One that is missing, because
// the run was interrupted, is judged now: judging is pure.
func (s *specs) report() *report.Report {
	rulings := make([]evidence.Ruling, len(s.plan.questions))
	for i, q := range s.plan.questions {
		ruling, ok := s.rulings[q.Requirement.ID]
		if !ok {
			ruling = s.plan.rule(q)
		}
		rulings[i] = ruling
	}
	return s.plan.settle(s.plan.part.remark(rulings))
}

// testing is what Ginkgo tells of a failure; rulings say it better.
type testing struct{}

func (*testing) Fail() {}
