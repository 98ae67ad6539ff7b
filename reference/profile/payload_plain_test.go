package profile

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAPlainTemplateIsWrittenAsTheTemplateWould(t *testing.T) {
	templates := map[string]bool{ // plain or not
		`{"id": {{json .ID}}, "type": {{json .Type}}, "at": "{{.Now}}"}`:                true,
		`{{.ID}} {{.Type}} {{.Random}} {{.Seq}} {{.Unix}} {{.UnixMilli}} {{json .Now}}`: true,
		`a={{urlquery .Type}}&b={{urlquery .Random}}{{/* nothing */}}`:                  true,
		`  {{- .ID -}}  x`:                     true,
		``:                                     true,
		`only text`:                            true,
		`{{json .Seq}}`:                        false,
		`{{.Time}}`:                            false,
		`{{.ID | json}}`:                       false,
		`{{if eq .Type "a"}}1{{else}}2{{end}}`: false,
		`{{print .ID .Type}}`:                  false,
		`{{.ID}}{{if .Seq}}{{.Seq}}{{end}}`:    false,
		`{{"text"}}`:                           false,
		`{{len .ID}}`:                          false,
		`{{json .Time}}`:                       false,
		`{{urlquery .Seq}}`:                    false,
	}
	for text, plain := range templates {
		p, err := ParsePayload("t", []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if (p.plain != nil) != plain && text != "" {
			t.Errorf("%s: taken for plain: %t, want %t", text, p.plain != nil, plain)
		}
		rapid.Check(t, func(t *rapid.T) {
			d := PayloadData{
				ID: rapid.String().Draw(t, "id"), Type: rapid.OneOf(rapid.String(), rapid.Just("a<b>&\u2028\xff")).Draw(t, "type"), Random: rapid.StringMatching(`[a-z0-9 +%]*`).Draw(t, "random"),
				Seq: rapid.Int().Draw(t, "seq"), Time: time.UnixMilli(rapid.Int64Range(-1<<40, 1<<45).Draw(t, "time")),
			}
			got, err := p.Render(d)
			if err != nil {
				t.Fatal(err)
			}
			var want bytes.Buffer
			if err := p.tmpl.Execute(&want, d); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want.Bytes()) {
				t.Fatalf("%s is written %q, want %q", text, got, want.Bytes())
			}
		})
	}
}

func TestAllPayloadsThatAreBuiltInArePlain(t *testing.T) {
	for _, name := range Names() {
		p, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.payload != nil && p.payload.plain == nil {
			t.Errorf("%s: it goes through the template", name)
		}
	}
}
