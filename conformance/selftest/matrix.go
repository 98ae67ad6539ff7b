package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/conformance/sender"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/reference/mutant"
)

// Options of a self-test.
type Options struct {
	// Part is catalogue.Receiver or catalogue.Sender; "" for both.
	Part string
	// Mutants selects by name; nil: all, and the references.
	Mutants func(name string) bool
	// Seed of every run.
	Seed uint64
	// Command starts a mutant as a process. Nil: this program, which then has to
	// be whconform.
	Command func(mutant string) []string
	// SenderCommand does the same for a mutant sender.
	SenderCommand func(mutant string) []string
	// AtOnce is how many are judged side by side; 0: six for each core, as
	// most of a run's time is spent waiting.
	AtOnce int
	// Progress is told of each subject's end. May be nil.
	Progress func(done, total int, row Row)
}

// Matrix is what the suite found in each mutant, beside what it should find.
type Matrix struct {
	Rows []Row `json:"mutants"`
	// Uncovered are the requirements of level MUST or SHOULD that have a check
	// and that no mutant breaks: a check that may never fail. Empty unless all
	// mutants were run.
	Uncovered []string      `json:"uncovered"`
	Took      time.Duration `json:"-"`
}

// Row is one mutant, or the reference.
type Row struct {
	Kind    string         `json:"kind"` // catalogue.Receiver or catalogue.Sender
	Mutant  string         `json:"mutant"`
	Doc     string         `json:"doc"`
	Verdict report.Verdict `json:"verdict"`
	// Missed were declared and not found; Blamed were found and not declared.
	Missed []string `json:"missed"`
	Blamed []string `json:"blamed"`
	Caught []string `json:"caught"` // found, as declared
	// Wrong says what else is not as it should be: the verdict, or a run that
	// broke down.
	Wrong  string         `json:"wrong,omitempty"`
	Report *report.Report `json:"-"`
}

// OK tells whether the suite found exactly what the mutant declares.
func (r Row) OK() bool { return len(r.Missed) == 0 && len(r.Blamed) == 0 && r.Wrong == "" }

// OK tells whether every mutant was caught for what it does, the reference was
// not blamed, and no requirement is without a mutant.
func (m *Matrix) OK() bool {
	return len(m.Uncovered) == 0 && !slices.ContainsFunc(m.Rows, func(r Row) bool { return !r.OK() })
}

// gcPercent is how much garbage there may be beside what is in use, 400 %: some
// hundred megabytes at the most.
const gcPercent = 400

// ErrNoMutant is returned when the selection leaves none.
var ErrNoMutant = errors.New("no mutant of that name")

// Run judges the reference and the mutants side by side.
func Run(ctx context.Context, o Options) (*Matrix, error) {
	began := time.Now()
	// Bodies of many megabytes come and go in each of a hundred runs: collecting
	// them less often saves a quarter of the time.
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	trials := o.trials()
	whole := o.Mutants == nil
	if !whole {
		trials = slices.DeleteFunc(trials, func(t trial) bool { return !o.Mutants(t.name) })
	}
	if len(trials) == 0 {
		return nil, ErrNoMutant
	}
	matrix := &Matrix{Rows: make([]Row, len(trials)), Uncovered: []string{}}
	judgeAll(ctx, o, trials, matrix.Rows)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("running the self-test: %w", context.Cause(ctx))
	}
	if whole {
		matrix.Uncovered = o.uncovered(trials)
	}
	matrix.Took = time.Since(began)
	return matrix, nil
}

// trial is one mutant to be judged, of either kind.
type trial struct {
	name  string
	fails []string
	judge func(context.Context) Row
}

// trials are the references and the mutants of the options' part.
func (o Options) trials() []trial {
	var all []trial
	if o.Part != catalogue.Sender {
		receivers := []mutant.Mutant{mutant.Reference(mutant.StandardWebhooks), mutant.Reference(mutant.DeliveryEnvelope)}
		for _, m := range append(receivers, mutant.Receivers()...) {
			all = append(all, trial{m.Name, m.Fails, func(ctx context.Context) Row { return o.judge(ctx, m) }})
		}
	}
	if o.Part != catalogue.Receiver {
		senders := []mutant.SenderMutant{mutant.SenderReference(mutant.StandardWebhooks), mutant.SenderReference(mutant.DeliveryEnvelope)}
		for _, m := range append(senders, mutant.Senders()...) {
			all = append(all, trial{m.Name, m.Fails, func(ctx context.Context) Row { return o.judgeSender(ctx, m) }})
		}
	}
	return all
}

func judgeAll(ctx context.Context, o Options, trials []trial, rows []Row) {
	atOnce := o.AtOnce
	if atOnce <= 0 {
		atOnce = 6 * runtime.GOMAXPROCS(0)
	}
	var mu sync.Mutex
	done := 0
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(atOnce, len(trials)) {
		workers.Go(func() {
			for i := range next {
				row := trials[i].judge(ctx)
				mu.Lock()
				rows[i] = row
				done++
				if o.Progress != nil {
					o.Progress(done, len(trials), row)
				}
				mu.Unlock()
			}
		})
	}
	for i := range trials {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
}

// judge runs the suite against one mutant and compares.
func (o Options) judge(ctx context.Context, m mutant.Mutant) (row Row) {
	row = newRow(catalogue.Receiver, m.Name, m.Doc)
	s, err := o.prepare(ctx, m, clock.New())
	if err != nil {
		row.Wrong = err.Error()
		return row
	}
	defer func() {
		err := errors.Join(s.receiver.Close(context.WithoutCancel(ctx)), s.clean())
		if err != nil && row.Wrong == "" {
			row.Wrong = err.Error()
		}
	}()
	plan, err := conformance.Prepare(s.config)
	if err != nil {
		row.Wrong = err.Error()
		return row
	}
	recordErr := plan.Record(ctx)
	row.Report = plan.Report()
	row.Verdict = row.Report.Verdict
	row.compare(m.Fails, report.Verdict(m.Verdict), recordErr)
	return row
}

func newRow(kind, name, doc string) Row {
	return Row{Kind: kind, Mutant: name, Doc: doc, Missed: []string{}, Blamed: []string{}, Caught: []string{}}
}

// compare sets what was found beside what is declared: the requirements that
// fail, and the verdict, "" for the one that follows from them.
func (r *Row) compare(fails []string, verdict report.Verdict, recordErr error) {
	for _, result := range r.Report.Results {
		declared := slices.Contains(fails, result.ID)
		found := result.Outcome == evidence.Fail || result.Outcome == evidence.Warn
		switch {
		case found && declared:
			r.Caught = append(r.Caught, result.ID)
		case found:
			r.Blamed = append(r.Blamed, result.ID)
		case declared:
			r.Missed = append(r.Missed, result.ID)
		}
		if result.Outcome == evidence.Error && verdict != report.Broken {
			r.Wrong = result.ID + ": " + result.Detail
		}
	}
	var unreachable *conformance.UnreachableError
	if recordErr != nil && !(verdict == report.Broken && errors.As(recordErr, &unreachable)) {
		r.Wrong = recordErr.Error()
	}
	if verdict == "" {
		verdict = following(fails, r.Report.Results)
	}
	if r.Verdict != verdict && r.Wrong == "" {
		r.Wrong = fmt.Sprintf("the verdict is %s, want %s", r.Verdict, verdict)
	}
}

// following is the verdict that follows from the requirements that fail.
func following(fails []string, results []report.Result) report.Verdict {
	for _, r := range results {
		if r.Level == catalogue.Must && slices.Contains(fails, r.ID) {
			return report.NotConformant
		}
	}
	return report.Conformant
}

// uncovered lists the requirements with a check that no mutant breaks.
func (o Options) uncovered(trials []trial) []string {
	broken := map[string]bool{}
	for _, t := range trials {
		for _, id := range t.fails {
			broken[id] = true
		}
	}
	var checks []suite.Check
	if o.Part != catalogue.Sender {
		checks = receiver.Checks()
	}
	if o.Part != catalogue.Receiver {
		checks = append(checks, sender.Checks()...)
	}
	missing := []string{}
	for _, c := range checks {
		r, ok := catalogue.Find(c.Requirement)
		if ok && r.LevelIn("") != catalogue.May && !broken[c.Requirement] {
			missing = append(missing, c.Requirement)
		}
	}
	return missing
}

// WriteText prints a line a mutant, then what is not as it should be.
func (m *Matrix) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	right := 0
	for _, r := range m.Rows {
		state := "ok"
		if !r.OK() {
			state = "WRONG"
		} else {
			right++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", state, r.Kind, r.Mutant, r.Verdict, summary(r.Caught))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range m.Rows {
		if r.OK() {
			continue
		}
		fmt.Fprintf(&b, "\n%s %s: %s\n", r.Kind, r.Mutant, r.Doc)
		for _, part := range []struct {
			what string
			ids  []string
		}{{"not caught for", r.Missed}, {"blamed for", r.Blamed}} {
			if len(part.ids) > 0 {
				fmt.Fprintf(&b, "  %s: %s\n", part.what, strings.Join(part.ids, ", "))
			}
		}
		if r.Wrong != "" {
			fmt.Fprintf(&b, "  %s\n", r.Wrong)
		}
	}
	for _, id := range m.Uncovered {
		fmt.Fprintf(&b, "\nno mutant breaks %s\n", id)
	}
	fmt.Fprintf(&b, "\n%d of %d as declared, %.1f s\n", right, len(m.Rows), m.Took.Seconds())
	_, err := io.WriteString(w, b.String())
	return err
}

// summary shows what a mutant was caught for, cut to a line.
func summary(ids []string) string {
	short := make([]string, len(ids))
	for i, id := range ids {
		short[i] = id[strings.IndexByte(id, '.')+1:]
	}
	text := strings.Join(short, " ")
	const wide = 100
	if len(text) > wide {
		return text[:strings.LastIndex(text[:wide], " ")] + fmt.Sprintf(" … (%d)", len(ids))
	}
	return text
}
