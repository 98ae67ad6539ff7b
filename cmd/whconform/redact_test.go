package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestASecretIsReplacedInEveryForm(t *testing.T) {
	const text = `whsec_a/b+c"d<e&fghijklmnop==`
	kept := &secrets{}
	kept.add(text)
	asJSON, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]string{
		"as it is":           text,
		"without its prefix": strings.TrimPrefix(text, "whsec_"),
		"as JSON":            string(asJSON),
		"as JSON, < kept":    `whsec_a/b+c\"d<e&fghijklmnop==`,
		"in a query":         url.QueryEscape(text),
		"in a path":          url.PathEscape(text),
		"in hex":             "77687365635f612f622b6322643c652666676869" + "6a6b6c6d6e6f703d3d",
	} {
		var out bytes.Buffer
		w := newRedactor(&out, kept)
		_, _ = io.WriteString(w, "before "+form+" after")
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := strings.NewReplacer(`"`, "").Replace(out.String()); !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, "[secret] after") || strings.Contains(got, "ghijkl") {
			t.Errorf("%s: %q", name, out.String())
		}
	}
}

func TestASecretThatComesInPiecesIsReplaced(t *testing.T) {
	const secret = "whsec_abcabcabd"
	rapid.Check(t, func(t *rapid.T) {
		kept := &secrets{}
		kept.add(secret)
		// Beginnings of the secret, whole ones, and other text.
		words := rapid.SliceOfN(rapid.SampledFrom([]string{secret, "whsec_abcabc", "w", "abc", "abcabcabd", " ", "\n", "x"}), 0, 12).Draw(t, "words")
		text := strings.Join(words, "")
		var out bytes.Buffer
		w := newRedactor(&out, kept)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			if written, err := io.WriteString(w, rest[:n]); err != nil || written != n {
				t.Fatalf("wrote %d of %d: %v", written, n, err)
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "abcabcabd") {
			t.Fatalf("%q let the secret through: %q", text, out.String())
		}
		if !strings.Contains(text, "abcabcabd") && out.String() != text {
			t.Fatalf("%q without a secret became %q", text, out.String())
		}
	})
}

func TestWhatIsTooShortToBeASecretIsLeftAlone(t *testing.T) {
	kept := &secrets{}
	kept.add("secret")
	kept.add("")
	var out bytes.Buffer
	w := newRedactor(&out, kept)
	_, _ = io.WriteString(w, "a wrong secret")
	if err := w.Flush(); err != nil || out.String() != "a wrong secret" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestAWriterThatFailsIsNotWrittenToAgain(t *testing.T) {
	full := errors.New("no space left")
	to := &failingWriter{err: full}
	w := newRedactor(to, &secrets{})
	for range 3 {
		if _, err := io.WriteString(w, "x"); !errors.Is(err, full) {
			t.Errorf("%v, want %v", err, full)
		}
	}
	if err := w.Flush(); !errors.Is(err, full) || to.calls != 1 {
		t.Errorf("flushing: %v after %d writes, want %v after 1", err, to.calls, full)
	}
}

type failingWriter struct {
	err   error
	calls int
}

func (f *failingWriter) Write([]byte) (int, error) {
	f.calls++
	return 0, f.err
}

// A command that panics is the suite's own fault: no stack and no secret.
func TestAPanicIsOneErrorWithoutSecrets(t *testing.T) {
	const secret = "whsec_0123456789abcdef"
	var out, err bytes.Buffer
	reader := panicking{"configured with " + secret}
	code := run(context.Background(), []string{"receiver", "http://127.0.0.1:1/", "--secret", secret, "--payload", "-"}, reader, &out, &err, noEnvironment)
	if code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	want := "whconform: the program itself failed: configured with [secret]. Please report this with the command that was run\n"
	if out.String() != "" || err.String() != want {
		t.Errorf("stdout %q, stderr %q; want %q", out.String(), err.String(), want)
	}
}

type panicking struct{ message string }

func (p panicking) Read([]byte) (int, error) { panic(p.message) }

func noEnvironment(string) (string, bool) { return "", false }
