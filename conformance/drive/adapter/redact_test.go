package adapter

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSecretsAreTakenOutOfWhatIsShown(t *testing.T) {
	const odd = "aB+/cD+/eF"
	r := newRedactor(func(s string) string { return strings.ReplaceAll(s, odd, "[known]") })
	for _, tt := range []struct{ name, text, want string }{
		{"one that the caller knows", "key " + odd + ".", "key [known]."},
		{"one that is spelt with JSON escapes", `{"key":"aB\u002B\/cD\u002b\/eF","x":"\u0041"}`, `{"key":"[known]","x":"A"}`},
		{"escapes without a secret stay", `{"x":"\u0041\/\n"}`, `{"x":"\u0041\/\n"}`},
		{"one of unknown value by its prefix", "made whsec_QUJD+/=, whsk_abc_-d and whpk_public", "made whsec_[secret], whsk_[secret] and whpk_public"},
		{"one of unknown value by its member's name", `{"secret": "a \"quoted\" one","id":1}`, `{"secret": "[secret]","id":1}`},
		{"one that is cut off", `{"secret":"half of o`, `{"secret":"[secret]`},
		{"one that is cut off behind a backslash", `{"secret":"half\`, `{"secret":"[secret]`},
		{"a list of them", `{"secrets":["one", "t\"w]o"],"id":1}`, `{"secrets":[[secret]],"id":1}`},
		{"an escape that is none", `\u00`, `\u00`},
		{"an escape of no digits", `\u00zz`, `\u00zz`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := r.clean(tt.text)
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if again := r.clean(got); again != got {
				t.Errorf("cleaned again it is %s", again)
			}
		})
	}
}

// A quote is cut after the redaction: half a secret would pass it.
func TestAQuoteIsCutBehindTheRedaction(t *testing.T) {
	r := newRedactor(nil)
	line := strings.Repeat("x", quoteKept-10) + secret
	if got := r.quote([]byte(line)); strings.Contains(got, "MDEy") || !strings.HasSuffix(got, "whsec_[sec\"… (200 bytes)") {
		t.Errorf("got %s", got)
	}
}

// However an adapter's log comes, no secret gets through and nothing else is
// lost.
func TestNoSecretGetsThroughHoweverTheLogComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(1, 5).Draw(t, "parts") {
			text.WriteString(strings.Repeat("x", rapid.SampledFrom([]int{0, 30, logLine - 60, logLine - secretMax, logLine}).Draw(t, "filling")))
			if rapid.Bool().Draw(t, "a new line") {
				text.WriteByte('\n')
			}
			text.WriteString(rapid.SampledFrom([]string{secret, "hunter22", "innocent"}).Draw(t, "word") + ".")
		}
		var out bytes.Buffer
		o := &output{to: &out, redact: newRedactor(func(s string) string { return strings.ReplaceAll(s, "hunter22", "[password]") })}
		for rest := text.String(); rest != ""; {
			n := min(rapid.IntRange(1, logLine+100).Draw(t, "piece"), len(rest))
			if written, err := o.Write([]byte(rest[:n])); written != n || err != nil {
				t.Fatalf("wrote %d of %d: %v", written, n, err)
			}
			rest = rest[n:]
		}
		o.end()
		if want := o.redact.clean(text.String()); out.String() != want {
			t.Fatalf("%d bytes were passed on, want %d", out.Len(), len(want))
		}
		if len(o.kept) > 2*outputKept || !strings.HasSuffix(out.String(), string(o.kept)) {
			t.Fatalf("%d bytes are kept, or others than the last", len(o.kept))
		}
	})
}

// A secret that is cut by the bound on a line, at any place, is not shown in
// part.
func TestASecretAtTheBoundOfALineIsNotShown(t *testing.T) {
	r := newRedactor(nil)
	for cut := range len(secret) + 1 {
		var out bytes.Buffer
		o := &output{to: &out, redact: r}
		begin := strings.Repeat(".", logLine-cut) + secret[:cut]
		_, _ = o.Write([]byte(begin))
		_, _ = o.Write([]byte(secret[cut:] + ".\n"))
		if want := strings.Repeat(".", logLine-cut) + "whsec_[secret].\n"; out.String() != want {
			t.Fatalf("cut at %d: %q", cut, strings.TrimLeft(out.String(), "."))
		}
	}
}

func TestASecretWithoutAnEndIsLeftOut(t *testing.T) {
	var out bytes.Buffer
	o := &output{to: &out, redact: newRedactor(nil)}
	for range 5 {
		_, _ = o.Write([]byte("whsec_" + strings.Repeat("A", logLine)))
	}
	_, _ = o.Write([]byte("A\nthe next line\n"))
	if want := "whsec_[secret]… the rest of the line is left out\nthe next line\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
}

// Whatever stands in a text, cleaned twice it is as cleaned once, and no longer
// than it was but for the marks.
func FuzzRedact(f *testing.F) {
	for _, seed := range []string{"whsec_abc", `{"secret":"a\"b"`, `{"secrets" : [ "a" , "b\\" ] }`, `"secret"secret":"x`, "whsk_whsec_", `\u002b\/`, `"secrets":["`} {
		f.Add(seed)
	}
	r := newRedactor(nil)
	f.Fuzz(func(t *testing.T, text string) {
		once := r.clean(text)
		if twice := r.clean(once); twice != once {
			t.Fatalf("%q becomes %q and then %q", text, once, twice)
		}
	})
}
