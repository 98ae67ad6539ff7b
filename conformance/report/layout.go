package report

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/whconform/whconform/reference/wire"
)

// Bounds of the text.
const (
	// DefaultWidth is what text is wrapped at where nothing else is asked for:
	// wide enough for an id and a sentence, and it fits half a screen.
	DefaultWidth = 100
	// minWidth leaves some words beside the column of names.
	minWidth = 40
	// shownRunes is how much of one value is printed. A subject chooses what
	// it answers, and a megabyte of it would bury the rest; the JSON form
	// holds everything that was recorded.
	shownRunes = 1000
)

// Columns of the text.
const (
	blockIndent = 6  // what stands under a requirement
	termColumn  = 14 // from there to the value: "likely cause" and two blanks
)

// page collects the text and knows how wide it may be.
type page struct {
	bytes.Buffer
	width int
	color bool
}

// The colours, as ANSI SGR parameters.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// paint colours text; the text itself must already be safe.
func (p *page) paint(text string, codes ...string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + strings.Join(codes, ";") + "m" + text + "\x1b[0m"
}

// line writes a line as it stands.
func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *page) blank() { p.WriteByte('\n') }

// text writes a paragraph behind an indent.
func (p *page) text(indent int, text string) {
	p.hang(strings.Repeat(" ", indent), indent, text)
}

// term writes a name and its value beside it, as one row of an aligned block.
func (p *page) term(name, value string) {
	if value == "" {
		return
	}
	head := strings.Repeat(" ", blockIndent) + name + strings.Repeat(" ", max(termColumn-len(name), 1))
	p.hang(head, blockIndent+termColumn, value)
}

// list is term for several values of one name, a dash before each.
func (p *page) list(name string, values []string) {
	if len(values) == 1 {
		p.term(name, values[0])
		return
	}
	for i, v := range values {
		if i > 0 {
			name = ""
		}
		head := strings.Repeat(" ", blockIndent) + name + strings.Repeat(" ", max(termColumn-len(name), 1)) + "- "
		p.hang(head, blockIndent+termColumn+2, v)
	}
}

// hang writes text behind head, with further lines indented, and cuts it at its
// bound.
func (p *page) hang(head string, indent int, text string) { p.wrap(head, indent, shorter(text)) }

// wrap is hang without a bound. What comes from outside is made safe here, so
// that nothing reaches the page without it.
func (p *page) wrap(head string, indent int, text string) {
	margin := strings.Repeat(" ", indent)
	p.WriteString(head)
	column, begun := indent, false
	for word := range strings.FieldsSeq(wire.Printable(text)) {
		length := utf8.RuneCountInString(word)
		switch {
		case !begun:
		case column+1+length > p.width:
			p.WriteString("\n" + margin)
			column = indent
		default:
			p.WriteByte(' ')
			column++
		}
		p.WriteString(word)
		column += length
		begun = true
	}
	p.WriteByte('\n')
}

// quoted writes lines that somebody else printed, each behind a bar, so that
// none can be taken for a line of the report.
func (p *page) quoted(indent int, text string) {
	text = strings.TrimRight(shorter(text), "\n")
	first, rest, more := strings.Cut(text, "\n")
	p.text(indent, first)
	if !more {
		return
	}
	for line := range strings.SplitSeq(rest, "\n") {
		p.line("%s| %s", strings.Repeat(" ", indent), wire.Printable(strings.TrimRight(line, " \r")))
	}
}

// flow writes pieces on as few lines as they fit on, two blanks between them.
// visible counts a piece's columns, which colour makes fewer than its bytes.
func (p *page) flow(pieces []piece) {
	column := 0
	for i, piece := range pieces {
		width := utf8.RuneCountInString(piece.text)
		switch {
		case i == 0:
		case column+2+width > p.width:
			p.WriteString("\n  ")
			column = 2
		default:
			p.WriteString("  ")
			column += 2
		}
		if piece.codes != nil {
			p.WriteString(p.paint(piece.text, piece.codes...))
		} else {
			p.WriteString(piece.text)
		}
		column += width
	}
	p.WriteByte('\n')
}

// piece is a part of a line that is not broken.
type piece struct {
	text  string
	codes []string
}

// shorter cuts a long value and says how much is missing.
func shorter(s string) string {
	if len(s) <= shownRunes {
		return s
	}
	total, kept := utf8.RuneCountInString(s), 0
	for i := range s {
		if kept == shownRunes {
			return fmt.Sprintf("%s … (%d characters more)", s[:i], total-shownRunes)
		}
		kept++
	}
	return s
}
