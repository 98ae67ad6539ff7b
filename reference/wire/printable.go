package wire

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LineLimit is how many bytes of a value [Line] shows: what stands in one line
// with others.
const LineLimit = 200

// Printable escapes what a terminal would act on: control characters, escape
// sequences, characters that turn the direction of writing, and bytes that are
// no text. Everything that a peer sent passes through it before it is shown.
func Printable(s string) string {
	if isPrintable(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r) && r != utf8.RuneError:
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

func isPrintable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// Line is Printable for a value that stands in one line with others: of a longer
// one the first LineLimit bytes, to the end of a character, and an ellipsis.
func Line(s string) string {
	if len(s) <= LineLimit {
		return Printable(s)
	}
	end := LineLimit
	for end > LineLimit-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return Printable(s[:end]) + "…"
}
