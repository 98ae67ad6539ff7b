package fakeprovider

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The JSON reader of this file keeps what encoding/json throws away and what
// libraries differ in: the order of members, members that come twice, numbers
// as they were written, and where in the text each value stands.

type kind int

const (
	kindNull kind = iota
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindArray
	kindObject
)

// node is a JSON value. Strings are decoded: half surrogate pairs, which
// escapes can spell but UTF-8 cannot, stand in the three-byte form that UTF-8
// would give them (WTF-8).
type node struct {
	kind    kind
	text    string // of a number: as written; of a string: decoded
	items   []node
	members []member

	start, end int // the value's bytes in the text
}

type member struct {
	name  string // decoded
	value node
}

// jsonDepth bounds nesting, so that a hostile body cannot exhaust the stack.
// It is encoding/json's own bound; every library in [Serializers] stops at it
// or before.
const jsonDepth = 10_000

// errNotJSON is what every error of the reader is.
var errNotJSON = errors.New("the body is not well-formed JSON")

// parseJSON reads text as RFC 8259 has it, strictly. Invalid UTF-8 is an error.
func parseJSON(text []byte) (node, error) {
	if !utf8.Valid(text) {
		return node{}, fmt.Errorf("%w: it is not UTF-8", errNotJSON)
	}
	p := jsonReader{text: text}
	v, err := p.value(0)
	if err != nil {
		return node{}, err
	}
	p.blanks()
	if p.at < len(text) {
		return node{}, p.fail("more text after the value")
	}
	return v, nil
}

type jsonReader struct {
	text []byte
	at   int
}

func (p *jsonReader) fail(what string) error {
	return fmt.Errorf("%w: %s at byte %d", errNotJSON, what, p.at)
}

func (p *jsonReader) blanks() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// take steps over c if it stands next.
func (p *jsonReader) take(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *jsonReader) value(depth int) (node, error) {
	if depth > jsonDepth {
		return node{}, p.fail(fmt.Sprintf("more than %d levels", jsonDepth))
	}
	p.blanks()
	if p.at == len(p.text) {
		return node{}, p.fail("the text ends where a value should stand")
	}
	v, err := node{start: p.at}, error(nil)
	switch c := p.text[p.at]; {
	case c == '{':
		v.kind = kindObject
		v.members, err = p.object(depth)
	case c == '[':
		v.kind = kindArray
		v.items, err = p.array(depth)
	case c == '"':
		v.kind = kindString
		v.text, err = p.str()
	case c == '-' || c >= '0' && c <= '9':
		v.kind = kindNumber
		v.text, err = p.number()
	default:
		v.kind, err = p.word()
	}
	v.end = p.at
	return v, err
}

func (p *jsonReader) word() (kind, error) {
	for k, w := range map[kind]string{kindNull: "null", kindFalse: "false", kindTrue: "true"} {
		if strings.HasPrefix(string(p.text[p.at:min(len(p.text), p.at+len(w))]), w) {
			p.at += len(w)
			return k, nil
		}
	}
	return 0, p.fail("no value")
}

func (p *jsonReader) array(depth int) ([]node, error) {
	p.at++
	items := []node{}
	if p.blanks(); p.take(']') {
		return items, nil
	}
	for {
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if p.blanks(); p.take(']') {
			return items, nil
		}
		if !p.take(',') {
			return nil, p.fail("no comma in an array")
		}
	}
}

func (p *jsonReader) object(depth int) ([]member, error) {
	p.at++
	members := []member{}
	if p.blanks(); p.take('}') {
		return members, nil
	}
	for {
		if p.blanks(); p.at == len(p.text) || p.text[p.at] != '"' {
			return nil, p.fail("no name in an object")
		}
		name, err := p.str()
		if err != nil {
			return nil, err
		}
		if p.blanks(); !p.take(':') {
			return nil, p.fail("no colon after a name")
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		members = append(members, member{name, v})
		if p.blanks(); p.take('}') {
			return members, nil
		}
		if !p.take(',') {
			return nil, p.fail("no comma in an object")
		}
	}
}

func (p *jsonReader) number() (string, error) {
	start := p.at
	p.take('-')
	if !p.take('0') && !p.digits() {
		return "", p.fail("no digit in a number")
	}
	if p.take('.') && !p.digits() {
		return "", p.fail("no digit after the decimal point")
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		if !p.digits() {
			return "", p.fail("no digit in an exponent")
		}
	}
	return string(p.text[start:p.at]), nil
}

func (p *jsonReader) digits() bool {
	start := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	return p.at > start
}

func (p *jsonReader) str() (string, error) {
	p.at++
	var out []byte
	for p.at < len(p.text) {
		c := p.text[p.at]
		switch {
		case c == '"':
			p.at++
			return string(out), nil
		case c < 0x20:
			return "", p.fail("a control character in a string")
		case c != '\\':
			out = append(out, c)
			p.at++
		default:
			var err error
			if out, err = p.escape(out); err != nil {
				return "", err
			}
		}
	}
	return "", p.fail("the text ends inside a string")
}

func (p *jsonReader) escape(out []byte) ([]byte, error) {
	if p.at+1 == len(p.text) {
		return nil, p.fail("the text ends inside an escape")
	}
	c := p.text[p.at+1]
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		p.at += 2
		return append(out, "\"\\/\b\f\n\r\t"[i]), nil
	}
	unit, ok := p.unit()
	if !ok {
		return nil, p.fail("an escape that JSON does not know")
	}
	p.at += 6
	if isHighSurrogate(unit) {
		if low, ok := p.unit(); ok && isLowSurrogate(low) {
			p.at += 6
			return utf8.AppendRune(out, 0x10000+(unit-0xd800)<<10+(low-0xdc00)), nil
		}
	}
	return appendWTF8(out, unit), nil
}

// unit reads \uXXXX that stands next, without stepping over it.
func (p *jsonReader) unit() (rune, bool) {
	if p.at+6 > len(p.text) || p.text[p.at] != '\\' || p.text[p.at+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range p.text[p.at+2 : p.at+6] {
		d := strings.IndexByte("0123456789abcdef", c|0x20)
		if c < '0' || d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

func isHighSurrogate(r rune) bool { return r >= 0xd800 && r < 0xdc00 }
func isLowSurrogate(r rune) bool  { return r >= 0xdc00 && r < 0xe000 }

// appendWTF8 appends r, half a surrogate pair among them.
func appendWTF8(out []byte, r rune) []byte {
	if isHighSurrogate(r) || isLowSurrogate(r) {
		return append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
	}
	return utf8.AppendRune(out, r)
}

// nextWTF8 is the first code point of s and its length in bytes.
func nextWTF8(s string) (rune, int) {
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 && len(s) >= 3 && s[0] == 0xed && s[1] >= 0xa0 {
		return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), 3
	}
	return r, n
}
