package wire

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestNothingActsOnATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"/hooks?a=b \"q\" \\n":            "/hooks?a=b \"q\" \\n",
		"größe 日本 …":                      "größe 日本 …",
		"a\x1b[2Jb":                       `a\x1b[2Jb`,
		"\r\n\t\x00\a\x7f":                `\r\n\t\x00\a\x7f`,
		"\u202eevil\u2066":                `\u202eevil\u2066`,
		"\u0085\u00a0":                    `\u0085\u00a0`,
		"caf\xe9":                         `caf\xe9`,
		"\x9b31m":                         `\x9b31m`,
		"\ufffd":                          `\ufffd`,
		"\U000e0001":                      `\U000e0001`,
		strings.Repeat("\x1b", LineLimit): strings.Repeat(`\x1b`, LineLimit),
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
		if got := Line(text); got != want {
			t.Errorf("%q in a line is %q, want %q", text, got, want)
		}
	}
}

func TestALineIsCutAtACharactersEnd(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", LineLimit+1), strings.Repeat("é", LineLimit), "x" + strings.Repeat("日", LineLimit), strings.Repeat("\x80", 1000)} {
		got := Line(text)
		body, cut := strings.CutSuffix(got, "…")
		if !cut || !utf8.ValidString(got) || strings.Contains(got, "\ufffd") || len(body) > 4*LineLimit {
			t.Errorf("%q", got)
		}
		if text[0] != 0x80 && !strings.HasPrefix(text, body) {
			t.Errorf("%q is no beginning of the text", body)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("a\x1b[2J\xff\u202e日")
	f.Fuzz(func(t *testing.T, text string) {
		for _, got := range []string{Printable(text), Line(text)} {
			if !utf8.ValidString(got) {
				t.Fatalf("%q is no UTF-8", got)
			}
			for _, r := range got {
				if !unicode.IsPrint(r) {
					t.Fatalf("%q lets %q through", got, r)
				}
			}
		}
	})
}
