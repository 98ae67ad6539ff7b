package profile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/whconform/whconform/reference/profile"
)

func TestTemplatesKnowTheEvent(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"the fields", `{{.ID}} {{.Type}} {{.Seq}} {{.Random}}`, "msg_1 invoice.paid 7 r4nd0m"},
		{"the time", `{{.Now}} {{.Unix}} {{.UnixMilli}}`, "2026-01-01T00:00:00Z 1767225600 1767225600123"},
		{"JSON", `{{json "a\"<&>é"}}{{json .Seq}}`, `"a\"<&>é"7`},
		{"a condition", `{{if eq .Type "invoice.paid"}}paid{{else}}not{{end}}`, "paid"},
		{"nothing but text", `{"a":1}`, `{"a":1}`},
		{"nothing", ``, ``},
		{"a comment", `a{{/* no */}}b`, "ab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := profile.ParsePayload("payload.json", []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Render(data())
			if err != nil || string(got) != c.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestFaultyTemplatesAreRefusedWithTheirPlace(t *testing.T) {
	for _, c := range []struct {
		name, text   string
		line, column int
		want         string
	}{
		{"an unknown field", "{\n  \"a\": {{.Id}}\n}", 2, 10, "can't evaluate field Id"},
		{"an unknown function", "\n\n {{quote .ID}}", 3, 2, `function "quote" not defined`},
		{"an action that never ends", "{\n {{.ID", 2, 2, "unclosed action"},
		{"a loop", "x\n{{range 9999999999}}{{end}}", 2, 9, "range, with and template may not stand"},
		{"a variable", `{{$x := .ID}}`, 1, 3, "the variable $x may not stand"},
		{"with", `{{with .ID}}{{.}}{{end}}`, 1, 8, "range, with and template"},
		{"printf", `{{printf "%999999d" 1}}`, 1, 3, "the function printf may not stand"},
		{"printf in brackets", `{{json (printf "%999999d" 1)}}`, 1, 9, "the function printf may not stand"},
		{"printf in a condition", `{{if true}}{{else if printf "%9d" 1}}{{end}}`, 1, 22, "the function printf may not stand"},
		{"a template in a template", `{{define "x"}}{{end}}`, 1, 0, "without define or block"},
		{"a template that calls itself", `{{template "payload" .}}`, 1, 12, "range, with and template"},
		{"not UTF-8", "{\n\"\xff\"", 2, 2, "not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := profile.ParsePayload("payload.json", []byte(c.text))
			var bad *profile.PayloadError
			if !errors.As(err, &bad) {
				t.Fatalf("got %v", err)
			}
			if bad.Line != c.line || bad.Column != c.column || !strings.Contains(bad.Message, c.want) {
				t.Errorf("got %v; want %d:%d %s", err, c.line, c.column, c.want)
			}
			if !strings.HasPrefix(err.Error(), "payload.json:") {
				t.Errorf("does not name its file: %v", err)
			}
		})
	}
	_, err := profile.ParsePayload("large", make([]byte, 2<<20))
	if err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a large template: %v", err)
	}
}

// FuzzPayload reads any template: nothing panics, and what is accepted renders.
func FuzzPayload(f *testing.F) {
	for _, text := range []string{`{"id":{{json .ID}}}`, `{{if .Seq}}a{{else}}b{{end}}`, `{{`, `{{range .}}`, `{{.ID.X}}`, `{{/*`, `{{"\x00"}}`, `{{len .ID}}`, `{{- .ID -}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := profile.ParsePayload("fuzzed", []byte(text))
		if err != nil {
			var bad *profile.PayloadError
			if !errors.As(err, &bad) || bad.Line < 1 {
				t.Fatalf("got %v", err)
			}
			return
		}
		if _, err := p.Render(data()); err != nil && !strings.Contains(err.Error(), "error calling") {
			t.Fatal(err)
		}
	})
}
