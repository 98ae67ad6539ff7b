package fakeendpoint

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whconform/whconform/reference/wire"
)

// String is the script as [ParseScript] reads it.
func (s Script) String() string {
	var out strings.Builder
	for i, step := range s.list() {
		if i > 0 {
			out.WriteByte(',')
		}
		step.print(&out)
	}
	return out.String()
}

// String is the step as it stands in a script, with its repetition.
func (s Step) String() string {
	var out strings.Builder
	s.print(&out)
	return out.String()
}

func (s *Step) print(out *strings.Builder) {
	for _, i := range s.Interim {
		call := printer{out: out}
		call.word(strconv.Itoa(i.Status))
		call.headers(i.Headers)
		call.end()
		if i.Times > 1 {
			fmt.Fprintf(out, "*%d", i.Times)
		}
		out.WriteByte(',')
	}
	call := printer{out: out}
	if s.Kind == KindStatus {
		call.word(strconv.Itoa(s.Status))
	} else {
		call.word(string(s.Kind))
	}
	s.arguments(&call)
	call.end()
	switch r := s.Repeat; {
	case r.Times > 1:
		fmt.Fprintf(out, "*%d", r.Times)
	case r.For > 0:
		out.WriteString("*" + durationText(r.For))
	case r.Until:
		out.WriteString("*" + untilWord)
	}
}

func (s *Step) arguments(call *printer) {
	if s.Kind == KindDrip {
		call.bare(sizeText(s.Piece))
	}
	if s.Wait > 0 {
		call.bare(durationText(s.Wait))
	}
	if s.Then != nil && s.Kind == KindEarly || s.Then != nil && !s.Then.isOK() {
		call.bare(s.Then.String())
	}
	if s.Size > 0 && s.Kind != KindDrip {
		call.bare(sizeText(s.Size))
	}
	for _, flag := range []struct {
		set  bool
		word string
	}{{s.Head, "head"}, {s.Chunked, "chunked"}, {s.OneLine, "one-line"}, {s.Close, "close"}} {
		if flag.set {
			call.bare(flag.word)
		}
	}
	if s.Size > 0 && s.Kind == KindDrip {
		call.bare("size=" + sizeText(s.Size))
	}
	if s.Kind.answers() && s.Status != 0 {
		call.bare("status=" + strconv.Itoa(s.Status))
	}
	if !s.RetryAfter.IsZero() {
		call.bare("retry-after=" + s.RetryAfter.print())
	}
	if s.Location != "" {
		call.bare("location=" + quoteValue(s.Location))
	}
	call.headers(s.Headers)
	if s.Body != "" {
		call.bare("body=" + quoteValue(s.Body))
	}
}

// isOK tells whether the step is a plain 200, which slow need not say.
func (s *Step) isOK() bool { return s.String() == "200" }

func (r RetryAfter) print() string {
	switch {
	case r.Date && r.Delay < 0:
		return "date-" + durationText(-r.Delay)
	case r.Date:
		return "date+" + durationText(r.Delay)
	case r.Text == "":
		return durationText(r.Delay)
	}
	// Quotes say that a text is a text.
	if plainValue(r.Text) && parseRetryAfter(r.Text) == r {
		return r.Text
	}
	return forceQuote(r.Text)
}

// printer writes a word with arguments.
type printer struct {
	out   *strings.Builder
	begun bool
}

func (p *printer) word(w string) { p.out.WriteString(w) }

func (p *printer) bare(arg string) {
	if p.begun {
		p.out.WriteByte(',')
	} else {
		p.out.WriteByte('(')
		p.begun = true
	}
	p.out.WriteString(arg)
}

func (p *printer) headers(headers []wire.Header) {
	for _, h := range headers {
		p.bare("header=" + quoteValue(h.Name+": "+h.Value))
	}
}

func (p *printer) end() {
	if p.begun {
		p.out.WriteByte(')')
	}
}

// plainValue tells whether a value needs no quotes.
func plainValue(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && strings.IndexByte("-_.:/?&%#@~!+;$=", s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

func quoteValue(s string) string {
	if plainValue(s) {
		return s
	}
	return forceQuote(s)
}

// forceQuote quotes a value. Bytes that are not printable ASCII are \xNN.
func forceQuote(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c == '\n':
			out.WriteString(`\n`)
		case c == '\r':
			out.WriteString(`\r`)
		case c == '\t':
			out.WriteString(`\t`)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&out, `\x%02x`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}
