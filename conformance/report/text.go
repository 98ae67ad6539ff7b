package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// TextOptions say how a report is shown on a terminal.
type TextOptions struct {
	Color bool // ANSI colours
	Width int  // columns to wrap at; 0: DefaultWidth; at least 40
	// Repeat gives the command that tries one requirement again; nil: no such
	// line is shown.
	Repeat func(id string) string
	// Verbose lists passes, facts and all skipped ids too.
	Verbose bool
}

// WriteText writes the report for a reader: the verdict with its reasons, what
// the preflight found out, then failures, errors, warnings and what was not
// judged. Whatever came from the subject is escaped, so that it cannot act on
// the terminal. The error is the writer's.
func WriteText(w io.Writer, r *Report, o TextOptions) error {
	if o.Width == 0 {
		o.Width = DefaultWidth
	}
	t := &text{page: page{width: max(o.Width, minWidth), color: o.Color}, report: r, options: o}
	t.write()
	if _, err := w.Write(t.Bytes()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// text is a report on its way to a page.
type text struct {
	page
	report  *Report
	options TextOptions
}

func (t *text) write() {
	t.verdict()
	t.diagnosis()
	t.findings("FAIL", red, evidence.Fail)
	t.findings("KNOWN", yellow, evidence.XFail)
	t.unexpected()
	t.errors()
	t.findings("WARN", yellow, evidence.Warn)
	t.remarks()
	t.skipped()
	if t.options.Verbose {
		t.facts()
		t.passes()
	}
}

// with returns the results of an outcome.
func (t *text) with(outcome evidence.Outcome) []Result {
	var rows []Result
	for _, row := range t.report.Results {
		if row.Outcome == outcome {
			rows = append(rows, row)
		}
	}
	return rows
}

func (t *text) verdict() {
	r := t.report
	words := map[Verdict]piece{
		Conformant:    {"conformant", []string{bold, green}},
		Partial:       {"partial", []string{bold, yellow}},
		NotConformant: {"not conformant", []string{bold, red}},
		Broken:        {"error", []string{bold, red}},
	}
	word, ok := words[r.Verdict]
	if !ok {
		word = piece{text: wire.Printable(string(r.Verdict))}
	}
	kind := r.Subject.Kind
	if kind == "" {
		kind = "subject"
	}
	t.flow([]piece{
		word,
		{text: r.Summary.String()},
		{text: wire.Printable(shorter(kind + " " + r.Subject.Target))},
		{text: wire.Printable("profile " + r.Profile)},
		{text: duration(r.DurationMS)},
		{text: fmt.Sprintf("seed %d", r.Seed)},
	})
	for _, reason := range r.Reasons {
		t.hang("  - ", 4, reason)
	}
	if r.Verdict == Partial && r.Gate == Open {
		t.text(2, "What was asked for holds; a verdict on the whole needs the whole.")
	}
}

func (t *text) diagnosis() {
	if t.report.Diagnosis == nil {
		return
	}
	t.blank()
	t.line("%s", t.paint("Before anything else: the control, a valid delivery", bold))
	t.finding(*t.report.Diagnosis)
}

// heading begins the block of one requirement.
func (t *text) heading(word, color string, row Result) {
	t.blank()
	t.line("%s %s  %s", t.paint(fmt.Sprintf("%-*s", blockIndent-1, word), bold, color), t.paint(wire.Printable(row.ID), bold), t.paint(wire.Printable(row.Level), faint))
	t.text(blockIndent, row.Statement)
}

// findings writes the requirements of an outcome with all that speaks against
// each.
func (t *text) findings(word, color string, outcome evidence.Outcome) {
	for _, row := range t.with(outcome) {
		t.heading(word, color, row)
		t.known(row)
		t.all(row.Findings)
		t.repeat(row.ID)
	}
}

// known says why a requirement is on the list of those known to fail.
func (t *text) known(row Result) {
	if row.Known != "" {
		t.blank()
		t.term("listed for", row.Known)
	}
}

// repeat shows how to try a requirement again. The command is not wrapped: it
// is there to be copied.
func (t *text) repeat(id string) {
	if t.options.Repeat == nil {
		return
	}
	t.blank()
	t.line("%*s%-*s%s", blockIndent, "", termColumn, "repeat", wire.Printable(t.options.Repeat(id)))
}

// unexpectedPass is what to do about an xpass.
const unexpectedPass = "It holds, but is listed as known to fail: take it off the list."

func (t *text) unexpected() {
	for _, row := range t.with(evidence.XPass) {
		t.heading("XPASS", red, row)
		t.text(blockIndent, unexpectedPass)
		t.known(row)
	}
}

// errors writes what could not be judged. One breakdown mostly concerns many
// requirements: it is told once.
func (t *text) errors() {
	rows := t.with(evidence.Error)
	if d := t.report.Diagnosis; d != nil {
		// It was told already, and concerns them all.
		rows = slices.DeleteFunc(rows, func(r Result) bool { return r.Detail == d.Got })
	}
	for _, detail := range distinct(rows, func(r Result) string { return r.Detail }) {
		ids := idsOf(rows, func(r Result) bool { return r.Detail == detail })
		t.blank()
		t.line("%s %s", t.paint(fmt.Sprintf("%-*s", blockIndent-1, "ERROR"), bold, red), t.paint("could not be judged: "+count(len(ids), "requirement"), bold))
		t.quoted(blockIndent, detail)
		t.ids(blockIndent, ids)
		if len(ids) == 1 {
			t.repeat(ids[0])
		}
	}
}

// remarks writes the caveats on passes. They are shown even when passes are
// not: "accepts anything" is no comfort.
func (t *text) remarks() {
	var rows []Result
	for _, row := range t.with(evidence.Pass) {
		if row.Remark != "" {
			rows = append(rows, row)
		}
	}
	for _, remark := range distinct(rows, func(r Result) string { return r.Remark }) {
		ids := idsOf(rows, func(r Result) bool { return r.Remark == remark })
		t.blank()
		t.hang(t.paint(fmt.Sprintf("%-*s", blockIndent, "NOTE"), bold, yellow), blockIndent, fmt.Sprintf("%s passed with a remark: %s", count(len(ids), "requirement"), remark))
		t.ids(blockIndent, ids)
	}
}

// blocked tells whether the preflight failed: the control, a valid delivery, was
// not accepted, and so nothing could be judged but that.
func (t *text) blocked() bool {
	s := t.report.Summary
	return t.report.Diagnosis != nil && s.Pass+s.XPass+s.Warn+s.Info == 0
}

// skipped writes what was not judged, by reason and by what would change it. Of
// a run that did not get beyond its control only the reasons are told: the one
// thing to do stands above, and what else may be missing is for the next run.
func (t *text) skipped() {
	rows := t.with(evidence.Skipped)
	if len(rows) == 0 {
		return
	}
	t.blank()
	t.line("%s", t.paint(fmt.Sprintf("Not judged: %s", count(len(rows), "requirement")), bold))
	short := t.blocked() && !t.options.Verbose
	for _, reason := range distinct(rows, func(r Result) string { return string(r.SkipReason) }) {
		of := slices.DeleteFunc(slices.Clone(rows), func(r Result) bool { return string(r.SkipReason) != reason })
		t.hang("  ", 2, fmt.Sprintf("%s (%d): %s", strings.ReplaceAll(reason, "-", " "), len(of), skipText(evidence.SkipReason(reason))))
		if short {
			continue
		}
		for _, detail := range distinct(of, func(r Result) string { return r.SkipDetail }) {
			ids := idsOf(of, func(r Result) bool { return r.SkipDetail == detail })
			t.hang("    - ", blockIndent, detail)
			t.ids(blockIndent, ids)
		}
	}
}

// skipText says what a reason means, and what to do about it.
func skipText(reason evidence.SkipReason) string {
	switch reason {
	case evidence.NotSelected:
		return "the selection leaves them out"
	case evidence.NotReached:
		return "what they depend on did not work; mend that first"
	case evidence.Throttled:
		return "the subject limits the rate; lower --rate, or lift its limit for the run"
	case evidence.NotDeclared:
		return "they need more than a URL and a secret"
	case evidence.NotObservable:
		return "what came back does not show it either way"
	case evidence.NotApplicable:
		return "the profile or the subject has no such thing"
	case evidence.NoCheck:
		return "known, but this version cannot try them"
	}
	return "for another reason"
}

// facts writes what was reported of MAY rows.
func (t *text) facts() {
	for _, row := range t.with(evidence.Info) {
		if len(row.Findings) == 0 {
			continue
		}
		t.heading("FACT", cyan, row)
		t.factsOf(row, blockIndent)
	}
}

// factsOf lists what was reported of one requirement.
func (t *text) factsOf(row Result, indent int) {
	for _, f := range row.Findings {
		t.hang(strings.Repeat(" ", indent)+"- ", indent+2, fact(f))
	}
}

func fact(f evidence.Finding) string {
	text := f.Got
	if f.Sent != "" {
		text = f.Sent + ": " + f.Got
	}
	if f.Cause != "" {
		text += ". " + f.Cause
	}
	return text
}

func (t *text) passes() {
	rows := t.with(evidence.Pass)
	if len(rows) == 0 {
		return
	}
	t.blank()
	for _, row := range rows {
		text := fmt.Sprintf("%s  %s  %s", row.ID, row.Level, duration(row.DurationMS))
		if row.Remark != "" {
			text += "  (" + row.Remark + ")"
		}
		t.line("%s %s", t.paint(fmt.Sprintf("%-*s", blockIndent-1, "ok"), green), wire.Printable(shorter(text)))
	}
}

// ids writes a list of ids: some of them, all when verbose.
func (t *text) ids(indent int, ids []string) {
	// A group's worth: two or three lines.
	const some = 6
	text := strings.Join(ids, ", ")
	if !t.options.Verbose && len(ids) > some {
		text = fmt.Sprintf("%s and %d more", strings.Join(ids[:some], ", "), len(ids)-some)
	}
	t.wrap(strings.Repeat(" ", indent), indent, text)
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// String is the summary in words; what did not occur is left out.
func (s Summary) String() string {
	parts := []string{fmt.Sprintf("%d passed", s.Pass)}
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, text)
		}
	}
	add(s.Fail, fmt.Sprintf("%d failed", s.Fail))
	add(s.XFail, fmt.Sprintf("%d known to fail", s.XFail))
	add(s.XPass, fmt.Sprintf("%d passed against expectation", s.XPass))
	add(s.Error, count(s.Error, "error"))
	add(s.Warn, count(s.Warn, "warning"))
	add(s.Info, count(s.Info, "fact"))
	add(s.Skip, fmt.Sprintf("%d not judged", s.Skip))
	return strings.Join(parts, ", ")
}

// duration is a time in milliseconds for people.
func duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// distinct returns the values of a column in the order of their appearance.
func distinct(rows []Result, value func(Result) string) []string {
	var values []string
	for _, row := range rows {
		if v := value(row); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}
