package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// markdownLimit bounds the Markdown form, in bytes. GitHub takes comments of
// up to 65536 characters and refuses longer ones whole; a comment that cannot
// be posted tells nothing.
const markdownLimit = 60_000

// WriteMarkdown writes the report as GitHub's Markdown, for the comment on a
// pull request: the verdict, the counts, failures and errors with their
// findings, then warnings, facts worth a look and what was not judged, folded.
//
// What came from the subject stands in code blocks and code spans whose fences
// are longer than any in it: there nothing is a link, a mention, an image or
// HTML. Sentences outside of them are escaped. The whole keeps below the 65536
// characters that a comment may have; what found no room is counted. The error
// is the writer's.
func WriteMarkdown(w io.Writer, r *Report) error {
	m := &markdown{report: r, text: text{page: page{width: DefaultWidth}, report: r, options: TextOptions{Verbose: true}}}
	m.write()
	if _, err := w.Write(m.out.Bytes()); err != nil {
		return fmt.Errorf("writing the report as Markdown: %w", err)
	}
	return nil
}

// markdown is a report on its way to a comment.
type markdown struct {
	report *Report
	text   text // makes what stands in code blocks
	out    bytes.Buffer
	left   int // blocks that found no room
}

func (m *markdown) write() {
	m.verdict()
	m.counts()
	if d := m.report.Diagnosis; d != nil {
		m.block("**Before anything else: the control, a valid delivery**", func(t *text) { t.finding(*d) })
	}
	m.findings("Broken", evidence.Fail)
	m.errors()
	m.unexpected()
	m.fold("Known to fail", evidence.XFail)
	m.fold("Warnings", evidence.Warn)
	m.folded("Passed with a remark", len(m.remarked()), (*text).remarks)
	m.folded("Not judged", m.report.Summary.Skip, (*text).skipped)
	if m.left > 0 {
		fmt.Fprintf(&m.out, "\n%s found no room here; the JSON form of the report has everything.\n", count(m.left, "part"))
	}
}

func (m *markdown) verdict() {
	r := m.report
	words := map[Verdict]string{Conformant: "conformant", Partial: "partial", NotConformant: "not conformant", Broken: "error"}
	word, ok := words[r.Verdict]
	if !ok {
		word = prose(string(r.Verdict))
	}
	fmt.Fprintf(&m.out, "### whconform: %s\n\n", word)
	fmt.Fprintf(&m.out, "%s %s · profile %s · gate %s · %s · seed %d\n", prose(r.Subject.Kind), code(r.Subject.Target), code(r.Profile), prose(string(r.Gate)), duration(r.DurationMS), r.Seed)
	for i, reason := range r.Reasons {
		if i == 0 {
			m.out.WriteByte('\n')
		}
		fmt.Fprintf(&m.out, "- %s\n", prose(shorter(reason)))
	}
}

// counts is a table of what occurred; its first column is always there.
func (m *markdown) counts() {
	s := m.report.Summary
	head, rule, row := "\n| passed |", "|---:|", fmt.Sprintf("| %d |", s.Pass)
	for _, c := range []struct {
		name string
		n    int
	}{{"failed", s.Fail}, {"known to fail", s.XFail}, {"passed against expectation", s.XPass}, {"errors", s.Error}, {"warnings", s.Warn}, {"facts", s.Info}, {"not judged", s.Skip}} {
		if c.n > 0 {
			head, rule, row = head+" "+c.name+" |", rule+"---:|", row+fmt.Sprintf(" %d |", c.n)
		}
	}
	fmt.Fprintf(&m.out, "%s\n%s\n%s\n", head, rule, row)
}

// findings writes the requirements of an outcome, each with all that speaks
// against it.
func (m *markdown) findings(title string, outcome evidence.Outcome) {
	for _, row := range m.text.with(outcome) {
		m.block(heading(title, row), func(t *text) { t.all(row.Findings) })
	}
}

func heading(title string, row Result) string {
	return fmt.Sprintf("**%s:** %s %s<br>%s", title, code(row.ID), prose(row.Level), prose(shorter(row.Statement)))
}

// errors tells each breakdown once, with what it concerns.
func (m *markdown) errors() {
	rows := m.text.with(evidence.Error)
	for _, detail := range distinct(rows, func(r Result) string { return r.Detail }) {
		ids := idsOf(rows, func(r Result) bool { return r.Detail == detail })
		m.block("**Error:** could not be judged: "+count(len(ids), "requirement"), func(t *text) {
			t.quoted(0, detail)
			t.blank()
			t.ids(0, ids)
		})
	}
}

func (m *markdown) unexpected() {
	for _, row := range m.text.with(evidence.XPass) {
		reason := ""
		if row.Known != "" {
			reason = " Listed for: " + prose(shorter(row.Known))
		}
		m.add(fmt.Sprintf("\n%s<br>%s%s\n", heading("Passed against expectation", row), unexpectedPass, reason))
	}
}

// fold writes the requirements of an outcome, folded.
func (m *markdown) fold(title string, outcome evidence.Outcome) {
	rows := m.text.with(outcome)
	m.folded(title, len(rows), func(t *text) {
		for _, row := range rows {
			t.blank()
			t.line("%s  %s", line(row.ID), line(row.Level))
			t.text(blockIndent, row.Statement)
			t.known(row)
			t.all(row.Findings)
		}
	})
}

// folded writes n of something behind a line to click at; nothing if there are
// none. GitHub needs the blank line before the code block.
func (m *markdown) folded(title string, n int, write func(*text)) {
	if n == 0 {
		return
	}
	m.add(fmt.Sprintf("\n<details>\n<summary>%s: %d</summary>\n\n%s\n</details>\n", title, n, m.fenced(write)))
}

// remarked are the passes with a caveat.
func (m *markdown) remarked() []Result {
	return slices.DeleteFunc(m.text.with(evidence.Pass), func(r Result) bool { return r.Remark == "" })
}

// block writes a title and a code block below.
func (m *markdown) block(title string, write func(*text)) {
	m.add("\n" + title + "\n\n" + m.fenced(write))
}

// add appends a part that stands by itself, if there is room.
func (m *markdown) add(part string) {
	if m.out.Len()+len(part) > markdownLimit {
		m.left++
		return
	}
	m.out.WriteString(part)
}

// fenced is a part of the text form as a code block.
func (m *markdown) fenced(write func(*text)) string {
	m.text.Reset()
	write(&m.text)
	lines := strings.Split(strings.Trim(m.text.String(), "\n"), "\n")
	// The text form leaves a column for the outcome, which is a title here.
	if !slices.ContainsFunc(lines, func(l string) bool { return l != "" && !strings.HasPrefix(l, strings.Repeat(" ", blockIndent)) }) {
		for i := range lines {
			lines[i] = strings.TrimPrefix(lines[i], strings.Repeat(" ", blockIndent))
		}
	}
	content := strings.Join(lines, "\n")
	fence := strings.Repeat("`", max(3, longestRun(content, '`')+1))
	return fence + "text\n" + content + "\n" + fence + "\n"
}

// code is a value as a code span, in which nothing is read as Markdown.
func code(s string) string {
	s = wire.Printable(shorter(s))
	if strings.TrimSpace(s) == "" {
		return "(none)"
	}
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || strings.HasPrefix(s, " ") && strings.HasSuffix(s, " ") {
		s = " " + s + " " // one blank on each side is taken off again
	}
	return fence + s + fence
}

// longestRun is the length of the longest row of c in s.
func longestRun(s string, c rune) int {
	longest, run := 0, 0
	for _, r := range s {
		if r != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// prose is a sentence in which no character has a meaning of its own; it must
// not begin a line. A backslash takes it from punctuation. GitHub finds mentions, issue numbers and
// addresses only after that, in what is shown: a space of no width parts them.
func prose(s string) string {
	const parting = "&#8203;"
	var b strings.Builder
	for _, c := range wire.Printable(s) {
		switch {
		case c == '@' || c == '#' || c == '/':
			b.WriteString(`\` + string(c) + parting)
		case strings.ContainsRune("\\`*_{}[]<>!|~&", c):
			b.WriteString(`\` + string(c))
		default:
			b.WriteRune(c)
		}
	}
	return strings.NewReplacer("www.", "www"+parting+".", "WWW.", "WWW"+parting+".").Replace(b.String())
}
