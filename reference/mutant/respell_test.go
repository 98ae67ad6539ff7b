package mutant

import (
	"strings"
	"testing"
)

func TestRespelledAsALibraryWould(t *testing.T) {
	javascript := speller{never, `\u%04x`, false, asDouble}
	python := speller{notASCII, `\u%04x`, false, asWritten}
	php := speller{notASCII, `\u%04x`, true, asWritten}
	golang := speller{among("<>&\u2028\u2029"), `\u%04x`, false, asWritten}
	cases := []struct {
		name     string
		by       speller
		in, want string
	}{
		{"blanks go, the order stays", python, "{ \"b\" : 1,\n\"a\":[ true , null,{}] }", `{"b":1,"a":[true,null,{}]}`},
		{"letters beyond ASCII are escaped in Python", python, `{"a":"é😀"}`, `{"a":"\u00e9\ud83d\ude00"}`},
		{"and kept in JavaScript", javascript, `{"a":"\u00e9"}`, `{"a":"é"}`},
		{"numbers are doubles in JavaScript", javascript, `[1.0,1e2,12345678901234567890,4200]`, `[1,100,12345678901234567000,4200]`},
		{"and kept in Python", python, `[1.0,1e2]`, `[1.0,1e2]`},
		{"slashes are escaped in PHP", php, `"a/b"`, `"a\/b"`},
		{"and not in Python", python, `"a\/b"`, `"a/b"`},
		{"Go escapes what HTML might mistake", golang, `"<&>"`, `"\u003c\u0026\u003e"`},
		{"the short escapes of JSON are used", python, `"\u0022\u005c\u000a\u0009\u0001"`, `"\"\\\n\t\u0001"`},
		{"what is no JSON stays", python, `{"a":`, `{"a":`},
		{"what follows the JSON makes it none", python, `{} x`, `{} x`},
		{"an empty body stays", python, ``, ``},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := string(c.by.respelled([]byte(c.in))); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestNoDepthOfNestingBreaksTheSpeller(t *testing.T) {
	deep := strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000)
	s := speller{never, `\u%04x`, false, asWritten}
	if got := string(s.respelled([]byte(deep))); got != deep {
		t.Errorf("%d bytes became %d", len(deep), len(got))
	}
}

func TestSortedMembers(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":{"d":1,"c":"<"},"a":1.0}`: `{"a":1.0,"b":{"c":"<","d":1}}`,
		`{"b":`:                         `{"b":`,
	} {
		if got := string(sortedMembers([]byte(in))); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}
