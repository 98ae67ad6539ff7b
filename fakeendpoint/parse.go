package fakeendpoint

import (
	"fmt"
	"strconv"
	"strings"
)

// ScriptError says what is wrong with a script, and where.
type ScriptError struct {
	Script  string // as it was given
	Column  int    // of the first byte that is wrong, from 1
	Problem string // a sentence without its full stop
	Meant   string // what may have been meant, or empty
}

// Error names the column, the problem and what may have been meant.
func (e *ScriptError) Error() string {
	out := fmt.Sprintf("script, column %d: %s", e.Column, e.Problem)
	if e.Meant != "" {
		out += fmt.Sprintf("; did you mean %q?", e.Meant)
	}
	return out
}

// Caret is the script with a mark under the column, two lines, for a terminal.
// What comes before is cut where the script is long.
func (e *ScriptError) Caret() string {
	const before, after = 40, 30
	at := min(e.Column-1, len(e.Script))
	from, to := max(at-before, 0), min(at+after, len(e.Script))
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' { // one column each, and nothing a terminal obeys
			return '?'
		}
		return r
	}, strings.ToValidUTF8(e.Script[from:to], "?"))
	return text + "\n" + strings.Repeat(" ", min(at-from, len(text))) + "^"
}

// ParseScript reads a script: steps with commas between them, such as
// "500*2,slow(20s,503(retry-after=600)),200". Blanks around steps and arguments
// mean nothing. The error is a *[ScriptError].
//
// The language is described in docs/fake-endpoint.md.
func ParseScript(text string) (Script, error) {
	p := &parser{text: text}
	if len(text) > MaxScript {
		return Script{}, p.errorf(MaxScript, "the script is %d bytes long, at most %d are read", len(text), MaxScript)
	}
	steps, err := p.steps()
	if err != nil {
		return Script{}, err
	}
	return Script{steps}, nil
}

// untilWord is the repetition that ends when Retry-After has passed.
const untilWord = "until"

// parser reads a script, or a part of it that begins at offset base.
type parser struct {
	text string
	at   int
}

func (p *parser) errorf(at int, format string, args ...any) *ScriptError {
	return &ScriptError{Script: p.text, Column: at + 1, Problem: fmt.Sprintf(format, args...)}
}

// call is a word with arguments and a repetition, not yet understood.
type call struct {
	word     string
	at       int
	args     []arg
	repeat   string
	repeatAt int
}

// arg is an argument: a value, or name=value.
type arg struct {
	name   string
	nameAt int
	value  string
	at     int
	quoted bool
}

// steps reads to the end.
func (p *parser) steps() ([]Step, error) {
	var steps []Step
	var interim []Interim
	begun := 0
	for {
		c, err := p.call()
		if err != nil {
			return nil, err
		}
		if len(interim) == 0 {
			begun = c.at
		}
		more := p.at < len(p.text)
		if isInterim(c.word) {
			i, err := p.interim(c)
			if err != nil {
				return nil, err
			}
			if !more {
				return nil, p.errorf(c.at, "%s is an interim answer and the script ends with it; add the answer, such as %s,200", c.word, c.word)
			}
			interim = append(interim, i)
		} else {
			step, err := p.step(c, interim, begun, !more)
			if err != nil {
				return nil, err
			}
			steps, interim = append(steps, step), nil
		}
		if len(steps) > MaxSteps || len(interim) > MaxInterim {
			return nil, p.errorf(c.at, "the script has more than %d steps", MaxSteps)
		}
		if !more {
			return steps, nil
		}
		p.at++ // the comma
	}
}

// call reads up to the next comma or the end.
func (p *parser) call() (call, error) {
	p.blanks()
	c := call{at: p.at}
	for p.at < len(p.text) && (isAlnum(p.text[p.at]) || p.text[p.at] == '-') {
		p.at++
	}
	c.word = p.text[c.at:p.at]
	if c.word == "" {
		if p.at == len(p.text) || p.text[p.at] == ',' {
			return c, p.errorf(p.at, "a step is missing")
		}
		return c, p.errorf(p.at, "a step cannot begin with %q", p.text[p.at:p.at+1])
	}
	p.blanks()
	if p.next('(') {
		if err := p.args(&c); err != nil {
			return c, err
		}
		p.blanks()
	}
	if p.next('*') {
		p.blanks()
		c.repeatAt = p.at
		for p.at < len(p.text) && (isAlnum(p.text[p.at]) || p.text[p.at] == '.') {
			p.at++
		}
		if c.repeat = p.text[c.repeatAt:p.at]; c.repeat == "" {
			return c, p.errorf(c.repeatAt, "how often is missing; write *3, *30s or *%s", untilWord)
		}
		p.blanks()
	}
	if p.at < len(p.text) && p.text[p.at] != ',' {
		return c, p.errorf(p.at, "a comma is missing before %q", p.text[p.at:p.at+1])
	}
	return c, nil
}

func (p *parser) blanks() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *parser) next(b byte) bool {
	if p.at < len(p.text) && p.text[p.at] == b {
		p.at++
		return true
	}
	return false
}

// args reads the arguments behind an open parenthesis.
func (p *parser) args(c *call) error {
	open := p.at - 1
	for {
		a, err := p.arg(open)
		if err != nil {
			return err
		}
		c.args = append(c.args, a)
		if len(c.args) > MaxSteps {
			return p.errorf(a.at, "there are more than %d arguments", MaxSteps)
		}
		if p.next(')') {
			return nil
		}
		p.at++ // the comma
	}
}

// arg reads one argument and stops at the comma or parenthesis behind it.
func (p *parser) arg(open int) (arg, error) {
	p.blanks()
	a := arg{at: p.at, nameAt: p.at}
	end := p.at
	for end < len(p.text) && (p.text[end] >= 'a' && p.text[end] <= 'z' || p.text[end] == '-') {
		end++
	}
	if end > p.at && end < len(p.text) && p.text[end] == '=' {
		a.name = p.text[p.at:end]
		p.at = end + 1
		p.blanks()
		a.at = p.at
	}
	var err error
	if p.next('"') {
		a.quoted = true
		a.value, err = p.quoted(a.at)
	} else {
		a.value, err = p.bareValue(open)
	}
	if err != nil {
		return a, err
	}
	p.blanks()
	switch {
	case p.at == len(p.text):
		return a, p.errorf(open, "the parenthesis is not closed")
	case p.text[p.at] != ',' && p.text[p.at] != ')':
		return a, p.errorf(p.at, "a comma or a closing parenthesis is missing before %q", p.text[p.at:p.at+1])
	case a.value == "" && !a.quoted:
		return a, p.errorf(a.at, "an argument is missing")
	}
	return a, nil
}

// bareValue reads a value without quotes. Parentheses in it are closed in it:
// it may be a step.
func (p *parser) bareValue(open int) (string, error) {
	from, depth := p.at, 0
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case '"':
			at := p.at
			p.at++
			if _, err := p.quoted(at); err != nil {
				return "", err
			}
			continue
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return strings.TrimRight(p.text[from:p.at], " \t\r\n"), nil
			}
			depth--
		case ',':
			if depth == 0 {
				return strings.TrimRight(p.text[from:p.at], " \t\r\n"), nil
			}
		}
		p.at++
	}
	return "", p.errorf(open, "the parenthesis is not closed")
}

// quoted reads the rest of a quoted value, which began at the offset open.
func (p *parser) quoted(open int) (string, error) {
	var out strings.Builder
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch c {
		case '"':
			return out.String(), nil
		case '\\':
			b, err := p.escape()
			if err != nil {
				return "", err
			}
			out.WriteByte(b)
		default:
			out.WriteByte(c)
		}
	}
	return "", p.errorf(open, "the quote is not closed")
}

// escape reads what follows a backslash.
func (p *parser) escape() (byte, error) {
	at := p.at - 1
	if p.at == len(p.text) {
		return 0, p.errorf(at, "nothing follows the backslash")
	}
	c := p.text[p.at]
	p.at++
	switch c {
	case '"', '\\':
		return c, nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'x':
		if p.at+2 <= len(p.text) {
			if b, err := strconv.ParseUint(p.text[p.at:p.at+2], 16, 8); err == nil {
				p.at += 2
				return byte(b), nil
			}
		}
		return 0, p.errorf(at, `two hexadecimal digits must follow \x`)
	}
	return 0, p.errorf(at, `\%c is no escape; \" \\ \n \r \t and \xNN are`, c)
}
