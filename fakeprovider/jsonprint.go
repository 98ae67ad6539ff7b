package fakeprovider

import (
	"fmt"
	"strconv"
)

// printer writes JSON as one library does.
type printer struct {
	out []byte

	comma, colon string // what stands between members and after names
	hex          string // the format of an escape: lowerEscape or upperEscape
	special      func(r rune) string
	number       func(text string) (string, error)
	// text changes a string value before it is printed; nil: it stays. ok
	// says that the text returned is already the JSON to write.
	text func(s string) (string, bool)
	// object changes an object before it is printed; nil: duplicate names
	// are merged, the last value at the first place.
	object func(members []member) []member
	list   func(members []member) bool // objects that are written as arrays
	// lone says what becomes of half a surrogate pair; nil: it is escaped.
	lone func() (string, error)
	err  error
}

const (
	lowerEscape = `\u%04x`
	upperEscape = `\u%04X`
)

func (p *printer) value(v *node) {
	switch v.kind {
	case kindNull:
		p.out = append(p.out, "null"...)
	case kindFalse:
		p.out = append(p.out, "false"...)
	case kindTrue:
		p.out = append(p.out, "true"...)
	case kindNumber:
		text, err := p.number(v.text)
		p.fail(err)
		p.out = append(p.out, text...)
	case kindString:
		p.stringValue(v.text)
	case kindArray:
		p.array(v.items)
	case kindObject:
		p.objectValue(v.members)
	}
}

func (p *printer) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *printer) stringValue(s string) {
	if p.text != nil {
		changed, done := p.text(s)
		if done {
			p.out = append(p.out, changed...)
			return
		}
		s = changed
	}
	p.str(s, p.special)
}

func (p *printer) array(items []node) {
	p.out = append(p.out, '[')
	for i := range items {
		if i > 0 {
			p.out = append(p.out, p.comma...)
		}
		p.value(&items[i])
	}
	p.out = append(p.out, ']')
}

func (p *printer) objectValue(members []member) {
	if p.object != nil {
		members = p.object(members)
	} else {
		members = lastWins(members)
	}
	if p.list != nil && p.list(members) {
		items := make([]node, len(members))
		for i := range members {
			items[i] = members[i].value
		}
		p.array(items)
		return
	}
	p.out = append(p.out, '{')
	for i := range members {
		if i > 0 {
			p.out = append(p.out, p.comma...)
		}
		p.str(members[i].name, p.special)
		p.out = append(p.out, p.colon...)
		p.value(&members[i].value)
	}
	p.out = append(p.out, '}')
}

// str writes a string. special gives the text for a character that the library
// escapes beyond what JSON demands, "" for one that stays.
func (p *printer) str(s string, special func(rune) string) {
	p.out = append(p.out, '"')
	for len(s) > 0 {
		r, n := nextWTF8(s)
		p.char(r, s[:n], special)
		s = s[n:]
	}
	p.out = append(p.out, '"')
}

func (p *printer) char(r rune, raw string, special func(rune) string) {
	if text := special(r); text != "" {
		p.out = append(p.out, text...)
		return
	}
	switch r {
	case '"', '\\':
		p.out = append(p.out, '\\', byte(r))
	case '\b':
		p.out = append(p.out, `\b`...)
	case '\t':
		p.out = append(p.out, `\t`...)
	case '\n':
		p.out = append(p.out, `\n`...)
	case '\f':
		p.out = append(p.out, `\f`...)
	case '\r':
		p.out = append(p.out, `\r`...)
	default:
		switch {
		case r < 0x20:
			p.out = append(p.out, p.escaped(r)...)
		case isHighSurrogate(r) || isLowSurrogate(r):
			p.loneSurrogate(r)
		default:
			p.out = append(p.out, raw...)
		}
	}
}

func (p *printer) loneSurrogate(r rune) {
	if p.lone == nil {
		p.out = append(p.out, p.escaped(r)...)
		return
	}
	text, err := p.lone()
	p.fail(err)
	p.out = append(p.out, text...)
}

// escaped writes r as one or two \u escapes.
func (p *printer) escaped(r rune) string {
	format := p.hex
	if format == "" {
		format = lowerEscape
	}
	return escapeRune(format, r)
}

// escapeRune writes r as \u escapes of UTF-16.
func escapeRune(format string, r rune) string {
	if r < 0x10000 {
		return fmt.Sprintf(format, r)
	}
	r -= 0x10000
	return fmt.Sprintf(format, 0xd800+r>>10) + fmt.Sprintf(format, 0xdc00+r&0x3ff)
}

// noSpecial escapes nothing beyond what JSON demands.
func noSpecial(rune) string { return "" }

// lastWins keeps the last value of each name at the place of the first, as hash
// maps that remember their order do.
func lastWins(members []member) []member {
	place := make(map[string]int, len(members))
	out := make([]member, 0, len(members))
	for _, m := range members {
		if i, twice := place[m.name]; twice {
			out[i].value = m.value
			continue
		}
		place[m.name] = len(out)
		out = append(out, m)
	}
	return out
}

// asWritten leaves numbers alone.
func asWritten(text string) (string, error) { return text, nil }

// isInteger tells whether a JSON number is written without point and exponent.
func isInteger(text string) bool {
	for _, c := range text {
		if c == '.' || c == 'e' || c == 'E' {
			return false
		}
	}
	return true
}

// parseFloat reads a JSON number; one too large is infinite, as every library
// here has it.
func parseFloat(text string) float64 {
	// The syntax was checked by the reader; what remains is a range error,
	// which comes with the infinity.
	f, _ := strconv.ParseFloat(text, 64)
	return f
}
