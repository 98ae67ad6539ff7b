package drive

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRedactTakesOutASecretWithAndWithoutItsPrefix(t *testing.T) {
	const bare = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	for _, tt := range []struct {
		name, text string
		secrets    []string
		want       string
	}{
		{"whole", "key=whsec_" + bare + ";", []string{"whsec_" + bare}, "key=[secret];"},
		{"without its prefix", "key=" + bare + ";", []string{"whsec_" + bare}, "key=[secret];"},
		{"several times", bare + " " + bare, []string{"whsec_" + bare}, "[secret] [secret]"},
		{"one that has no prefix", "key=plainsecret;", []string{"plainsecret"}, "key=[secret];"},
		{"two of them", "a plainsecret and another_one.", []string{"plainsecret", "another_one"}, "a [secret] and [secret]."},
		{"an empty one is none", "nothing", []string{"", ""}, "nothing"},
		{"a prefix alone is none", "whsec_ is a prefix", []string{"whsec_" + bare}, "whsec_ is a prefix"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Redact(tt.text, tt.secrets); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// However a command's output comes, in lines, in pieces or without an end, no
// secret gets through, and nothing else is lost.
func TestNoSecretGetsThroughHoweverTheOutputComes(t *testing.T) {
	const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(1, 6).Draw(t, "parts") {
			text.WriteString(strings.Repeat("x", rapid.IntRange(0, lineKept/2).Draw(t, "filling")))
			if rapid.Bool().Draw(t, "a new line") {
				text.WriteByte('\n')
			}
			text.WriteString(rapid.SampledFrom([]string{secret, strings.TrimPrefix(secret, "whsec_"), "innocent"}).Draw(t, "word"))
		}
		var out bytes.Buffer
		o := &tail{log: &out, secrets: []string{secret, ""}}
		for rest := text.String(); rest != ""; {
			n := min(rapid.IntRange(1, lineKept+100).Draw(t, "piece"), len(rest))
			if written, err := o.Write([]byte(rest[:n])); written != n || err != nil {
				t.Fatalf("wrote %d of %d: %v", written, n, err)
			}
			rest = rest[n:]
		}
		o.end()
		if want := Redact(text.String(), o.secrets); out.String() != want {
			t.Fatalf("%d bytes were passed on, want %d", out.Len(), len(want))
		}
		if len(o.kept) > outputKept || !strings.HasSuffix(out.String(), string(o.kept)) {
			t.Fatalf("%d bytes are kept, or others than the last", len(o.kept))
		}
	})
}

func TestALineIsPassedOnWhenItEnds(t *testing.T) {
	var out bytes.Buffer
	o := &tail{log: &out}
	for _, step := range []struct{ write, passed string }{
		{"half a", ""}, {" line\nand", "half a line\n"}, {" more\n\n", "half a line\nand more\n\n"},
	} {
		_, _ = o.Write([]byte(step.write))
		if out.String() != step.passed {
			t.Errorf("after %q: %q", step.write, out.String())
		}
	}
	_, _ = o.Write([]byte("no end"))
	if got := o.String(); !strings.HasSuffix(got, "\n    no end") {
		t.Errorf("the end of the output is %q", got)
	}
}

func TestAnErrorShowsTheEndOfLongOutput(t *testing.T) {
	o := &tail{}
	for range 10_000 {
		_, _ = o.Write([]byte("a line of output\n"))
	}
	_, _ = o.Write([]byte("the last line"))
	got := o.String()
	if len(got) > 2*outputKept || !strings.HasSuffix(got, "    the last line") {
		t.Errorf("%d bytes, ending in %q", len(got), got[max(0, len(got)-40):])
	}
}
