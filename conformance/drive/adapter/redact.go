package adapter

import (
	"fmt"
	"strconv"
	"strings"
)

// redactor takes secrets out of what a peer wrote, before it is shown.
type redactor struct {
	known func(string) string // the caller's, for the secrets that it gave; may be nil
}

func newRedactor(known func(string) string) *redactor { return &redactor{known} }

// clean returns the text without secrets. Applied again it changes nothing.
func (r *redactor) clean(text string) string {
	if r.known != nil {
		// "+" and "/" of a secret in base64 are spelt \u002B and \/ by some JSON
		// libraries. The text is shown as it was written unless that matters.
		text = r.known(text)
		if plain := unescape(text); plain != text {
			if known := r.known(plain); known != plain {
				text = known
			}
		}
	}
	return maskShapes(text)
}

// mark stands in the place of a secret.
const mark = "[secret]"

// maskShapes takes out what looks like a secret, since one that the peer made is
// known to nobody yet: the text behind whsec_ and whsk_, and the value of a JSON
// member secret or secrets, also of one that is cut off. Written by hand because
// a flood on stderr passes through it, and a regular expression takes a hundred
// times as long.
func maskShapes(text string) string {
	signs := [...]string{"whsec_", "whsk_", `"secret`}
	var at [len(signs)]int // where each stands next; len(text) for nowhere
	for i, sign := range signs {
		at[i] = indexFrom(text, sign, 0)
	}
	var out strings.Builder
	done := 0
	for {
		which := 0
		for i := range at {
			if at[i] < at[which] {
				which = i
			}
		}
		if at[which] == len(text) {
			return out.String() + text[done:]
		}
		begin := at[which] + len(signs[which])
		end := begin
		if signs[which] == `"secret` {
			begin, end = secretMember(text, begin)
		} else {
			end = begin + spanOf(text[begin:], isSecretByte)
		}
		out.WriteString(text[done:begin])
		if end > begin {
			out.WriteString(mark)
		}
		done = end
		for i, sign := range signs {
			if at[i] < done {
				at[i] = indexFrom(text, sign, done)
			}
		}
	}
}

// secretMember is where the value begins and ends whose member's name goes on
// at i; both are i if none follows.
func secretMember(text string, i int) (begin, end int) {
	rest := text[i:]
	list := strings.HasPrefix(rest, "s")
	rest = strings.TrimPrefix(rest, "s")
	for _, c := range [...]string{`"`, ":"} {
		if !strings.HasPrefix(rest, c) {
			return i, i
		}
		rest = strings.TrimLeft(rest[1:], " \t\r\n")
	}
	open := `"`
	if list {
		open = "["
	}
	if !strings.HasPrefix(rest, open) {
		return i, i
	}
	begin = len(text) - len(rest) + 1
	if !list {
		return begin, begin + stringLen(text[begin:])
	}
	for end = begin; ; {
		end += spanOf(text[end:], func(c byte) bool { return strings.IndexByte(", \t\r\n", c) >= 0 })
		if end == len(text) || text[end] != '"' {
			return begin, end
		}
		end++
		if end += stringLen(text[end:]); end < len(text) {
			end++
		}
	}
}

// stringLen is how far a JSON string goes, up to its closing quote or the end.
func stringLen(text string) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return len(text)
}

func indexFrom(text, sign string, from int) int {
	if i := strings.Index(text[from:], sign); i >= 0 {
		return from + i
	}
	return len(text)
}

// spanOf is how many bytes at the beginning are of a kind.
func spanOf(text string, is func(byte) bool) int {
	for i := range len(text) {
		if !is(text[i]) {
			return i
		}
	}
	return len(text)
}

// isSecretByte tells the alphabet of base64, in both forms and as JSON may
// escape it.
func isSecretByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(`+/=_-\`, c) >= 0
}

// unescape writes the JSON escapes of visible ASCII as what they stand for.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, `\/`):
			out.WriteByte('/')
			i++
		case strings.HasPrefix(rest, `\u00`) && len(rest) >= 6:
			if c, err := strconv.ParseUint(rest[4:6], 16, 8); err == nil && c > ' ' && c < 0x7f {
				out.WriteByte(byte(c))
				i += 5
				continue
			}
			out.WriteByte('\\')
		default:
			out.WriteByte(text[i])
		}
	}
	return out.String()
}

// quoteKept is how much of a line at fault is shown: enough to recognise it by,
// and it fits two lines of a terminal.
const quoteKept = 160

// quote shows a line at fault, without secrets, cut.
func (r *redactor) quote(line []byte) string {
	text := r.clean(string(line))
	if len(text) <= quoteKept {
		return strconv.Quote(text)
	}
	// Cut after the redaction: half a secret would not be known for one.
	return fmt.Sprintf("%q… (%d bytes)", strings.ToValidUTF8(text[:quoteKept], ""), len(line))
}
