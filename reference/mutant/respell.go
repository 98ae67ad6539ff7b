package mutant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
)

// speller writes JSON anew, compact and in the order of its members, as some
// library would.
type speller struct {
	escaped func(r rune) bool   // which characters become \u escapes, beside control characters
	escape  string              // how one is written: `\u%04x`
	slash   bool                // whether a slash becomes \/
	number  func(string) string // how a number is written
}

// respelled is body as the speller writes it, or body itself where it is no
// JSON: a receiver of this kind then falls back to the raw bytes.
func (s speller) respelled(body []byte) []byte {
	var out bytes.Buffer
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := s.value(&out, d); err != nil {
		return body
	}
	if _, err := d.Token(); err != io.EOF {
		return body
	}
	return out.Bytes()
}

// value copies one value. It does not recurse, so that no depth of nesting
// breaks it.
func (s speller) value(out *bytes.Buffer, d *json.Decoder) error {
	var open []level
	for {
		token, err := d.Token()
		if err != nil {
			return err
		}
		end := token == json.Delim('}') || token == json.Delim(']')
		if end {
			open = open[:len(open)-1]
		} else if len(open) > 0 {
			out.WriteString(open[len(open)-1].separator())
		}
		out.WriteString(s.token(token))
		if token == json.Delim('{') || token == json.Delim('[') {
			open = append(open, level{object: token == json.Delim('{')})
		}
		if len(open) == 0 {
			return nil
		}
	}
}

// level is an object or array that is being written.
type level struct {
	object bool
	n      int // names and values so far
}

// separator is what stands before the next name or value.
func (l *level) separator() string {
	l.n++
	switch {
	case l.n == 1:
		return ""
	case l.object && l.n%2 == 0:
		return ":"
	}
	return ","
}

func (s speller) token(token json.Token) string {
	switch t := token.(type) {
	case string:
		return s.text(t)
	case json.Number:
		return s.number(t.String())
	case nil:
		return "null"
	}
	return fmt.Sprint(token) // a delimiter or a boolean
}

func (s speller) text(content string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range content {
		short := shortEscape(r)
		switch {
		case s.escaped(r), r < ' ' && short == "":
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&out, s.escape, unit)
			}
		case short != "" && (r != '/' || s.slash):
			out.WriteString(short)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// shortEscape is the two-character escape of r, "" where JSON has none.
func shortEscape(r rune) string {
	const plain, letters = "\"\\/\n\r\t\b\f", `"\/nrtbf`
	if i := strings.IndexRune(plain, r); i >= 0 {
		return `\` + letters[i:i+1]
	}
	return ""
}

func never(rune) bool      { return false }
func notASCII(r rune) bool { return r > '~' }

// among makes a condition that holds for these characters.
func among(characters string) func(rune) bool {
	return func(r rune) bool { return strings.ContainsRune(characters, r) }
}

// asWritten keeps a number's spelling.
func asWritten(n string) string { return n }

// asDouble writes a number as a 64-bit float, as languages do that know no
// other: 1.0 becomes 1, and 20 digits lose their last ones.
func asDouble(n string) string {
	f, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return n
	}
	out, err := json.Marshal(f)
	if err != nil {
		return n // beyond the range
	}
	return string(out)
}

// sortedMembers is body with the members of each object sorted by name, or body
// itself where it is no JSON.
func sortedMembers(body []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return body
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return body
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
