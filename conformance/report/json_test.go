package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/whconform/whconform/conformance/evidence"
)

func encode(t testing.TB, r *Report) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WriteJSON(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestTheJSONOfEachKindOfRun(t *testing.T) {
	for name, r := range samples() {
		t.Run(name, func(t *testing.T) { golden(t, name+".json", encode(t, r)) })
	}
}

func TestAReportThatIsReadIsTheOneThatWasWritten(t *testing.T) {
	for name, r := range samples() {
		written := encode(t, r)
		read, err := ReadJSON(bytes.NewReader(written))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if again := encode(t, read); !bytes.Equal(written, again) {
			t.Errorf("%s: written again it is\n%s\nwant\n%s", name, again, written)
		}
		if render(t, read, TextOptions{Verbose: true}) != render(t, r, TextOptions{Verbose: true}) {
			t.Errorf("%s: its text differs after reading", name)
		}
		if read.ExitCode() != r.ExitCode() {
			t.Errorf("%s: exit code %d after reading, want %d", name, read.ExitCode(), r.ExitCode())
		}
	}
}

func TestWritingChangesNothingInTheReport(t *testing.T) {
	r := &Report{Results: []Result{{ID: "a"}}, Transcripts: []evidence.Transcript{{}}}
	encode(t, r)
	if r.Results[0].Findings != nil || r.Transcripts[0].Exchanges != nil || r.Reasons != nil {
		t.Errorf("the report was changed: %+v", r)
	}
}

func TestTheFooterIsTheLastThingWritten(t *testing.T) {
	text := string(encode(t, samples()["failing"]))
	if !strings.HasSuffix(text, "  \"end\": {\n    \"complete\": true,\n    \"results\": 6\n  }\n}\n") {
		t.Errorf("it ends %q", text[len(text)-80:])
	}
}

func TestADocumentCutAnywhereIsRefused(t *testing.T) {
	whole := bytes.TrimSpace(encode(t, samples()["conformant"]))
	for n := 0; n < len(whole); n += 7 {
		_, err := ReadJSON(bytes.NewReader(whole[:n]))
		var cut *CutShortError
		if !errors.As(err, &cut) {
			t.Fatalf("cut after %d of %d bytes: %v, want a CutShortError", n, len(whole), err)
		}
	}
}

func TestReadingRefuses(t *testing.T) {
	whole := string(encode(t, samples()["failing"]))
	edit := func(old, new string) string {
		if !strings.Contains(whole, old) {
			t.Fatalf("the sample does not hold %q", old)
		}
		return strings.Replace(whole, old, new, 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"another form":                    {edit("whconform-report/1", "whconform-report/2"), `its schema is "whconform-report/2", this version reads "whconform-report/1"`},
		"another kind of document":        {`{"name": "package"}`, `its schema is ""`},
		"a document without its footer":   {edit(`"end": {`, `"ende": {`), "cut short: it has no footer"},
		"a footer that counts more":       {edit(`"results": 6`, `"results": 7`), "cut short: its footer counts 7 results, it holds 6"},
		"a footer that contradicts":       {edit(`"complete": true`, `"complete": false`), "its footer says complete: false"},
		"a summary that contradicts":      {edit(`"pass": 1`, `"pass": 2`), "its summary says 2 passed"},
		"an unknown verdict":              {edit(`"verdict": "not-conformant"`, `"verdict": "fine"`), `there is no verdict "fine"`},
		"an unknown gate":                 {edit(`"gate": "closed"`, `"gate": "ajar"`), `there is no gate "ajar"`},
		"an unknown outcome":              {edit(`"outcome": "warn"`, `"outcome": "hmm"`), `there is no outcome "hmm"`},
		"two results for one requirement": {edit(`"id": "receiver.limits.slow-body"`, `"id": "receiver.replay.tolerance"`), "two results for"},
		"a result without an id":          {edit(`"id": "receiver.limits.slow-body"`, `"id": ""`), "result 6 has no id"},
		"a value of another kind":         {edit(`"durationMs": 1900`, `"durationMs": "long"`), "line 17, column 22: the value of durationMs cannot be a string"},
		"text":                            {"not conformant", "no JSON at line 1, column"},
		"a second document behind it":     {whole + whole, "something follows the document at byte"},
	} {
		_, err := ReadJSON(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "reading a report: ") {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
}

func TestReadingPassesOverFieldsOfALaterVersion(t *testing.T) {
	later := strings.Replace(string(encode(t, samples()["failing"])), `"seed"`, `"moon": {"phase": 1}, "seed"`, 1)
	if _, err := ReadJSON(strings.NewReader(later)); err != nil {
		t.Error(err)
	}
}

func TestReadingIsBounded(t *testing.T) {
	whole := encode(t, samples()["conformant"])
	if _, err := readJSON(bytes.NewReader(whole), len(whole)); err != nil {
		t.Errorf("at its bound: %v", err)
	}
	_, err := readJSON(bytes.NewReader(whole), len(whole)-1)
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("above its bound: %v", err)
	}
}

func TestErrorsOfTheReaderAreReturned(t *testing.T) {
	broken := errors.New("the disk is gone")
	if _, err := ReadJSON(io.MultiReader(strings.NewReader("{"), readFailing{broken})); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
}

type readFailing struct{ err error }

func (r readFailing) Read([]byte) (int, error) { return 0, r.err }

// compiled compiles the schema; with closed, objects may hold nothing that it
// does not name.
func compiled(t *testing.T, closed bool) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	if closed {
		closeObjects(doc)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource("report.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := compiler.Compile("report.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeObjects(node any) {
	switch n := node.(type) {
	case map[string]any:
		if _, named := n["properties"]; named && n["type"] == "object" {
			n["additionalProperties"] = false
		}
		for _, child := range n {
			closeObjects(child)
		}
	case []any:
		for _, child := range n {
			closeObjects(child)
		}
	}
}

func validate(s *jsonschema.Schema, text []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

func TestReportsAreValidAndHoldNothingThatTheSchemaDoesNotName(t *testing.T) {
	open, closed := compiled(t, false), compiled(t, true)
	for name, r := range samples() {
		if err := validate(open, encode(t, r)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := validate(closed, encode(t, r)); err != nil {
			t.Errorf("%s, with nothing else allowed: %v", name, err)
		}
	}
}

func TestTheSchemaRefusesWhatIsNoReport(t *testing.T) {
	s := compiled(t, false)
	whole := string(encode(t, samples()["failing"]))
	for _, edit := range [][2]string{
		{"whconform-report/1", "whconform-report/2"}, {`"end": {`, `"ende": {`}, {`"verdict": "not-conformant"`, `"verdict": "fine"`},
		{`"outcome": "warn"`, `"outcome": "hmm"`}, {`"outcome": "warn"`, `"outcome": "skip"`}, {`"began": "2026`, `"began": "soon`},
		{`"pass": 1`, `"pass": -1`}, {`"level": "MUST"`, `"level": "PROFILE"`}, {`"skipReason": "not-declared"`, `"skipReason": "lazy"`},
	} {
		if err := validate(s, []byte(strings.Replace(whole, edit[0], edit[1], 1))); err == nil {
			t.Errorf("with %s for %s it is still valid", edit[1], edit[0])
		}
	}
}

// TestTheSchemaAndTheStructsAgree walks both side by side: every field is named
// in the schema, every property is a field, and required is what is always
// written. Exchanges have a form of their own and are covered by the samples.
func TestTheSchemaAndTheStructsAgree(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	defs := root["$defs"].(map[string]any)
	for _, c := range []struct {
		of   any
		node map[string]any
	}{
		{Report{}, root}, {Result{}, defs["result"].(map[string]any)}, {evidence.Finding{}, defs["finding"].(map[string]any)},
		{evidence.Transcript{}, defs["transcript"].(map[string]any)}, {evidence.Skip{}, defs["skip"].(map[string]any)},
		{Summary{}, property(root, "summary")}, {Suite{}, property(root, "suite")}, {Subject{}, property(root, "subject")}, {End{}, property(root, "end")},
	} {
		var names, required []string
		kind := reflect.TypeOf(c.of)
		for i := range kind.NumField() {
			name, options, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			names = append(names, name)
			if options != "omitempty" {
				required = append(required, name)
			}
		}
		var properties, needed []string
		for name := range c.node["properties"].(map[string]any) {
			properties = append(properties, name)
		}
		for _, name := range c.node["required"].([]any) {
			needed = append(needed, name.(string))
		}
		for _, l := range [][]string{names, required, properties, needed} {
			slices.Sort(l)
		}
		if !slices.Equal(names, properties) {
			t.Errorf("%v: its fields are %v, the schema names %v", kind, names, properties)
		}
		if !slices.Equal(required, needed) {
			t.Errorf("%v: always written are %v, the schema requires %v", kind, required, needed)
		}
	}
}

func property(node map[string]any, name string) map[string]any {
	return node["properties"].(map[string]any)[name].(map[string]any)
}

func FuzzReadJSON(f *testing.F) {
	for _, r := range samples() {
		f.Add(encode(f, r))
	}
	f.Add([]byte(`{"schema":"whconform-report/1","end":{}}`))
	f.Add([]byte(`{"schema":"whconform-report/1","verdict":"partial","gate":"open","end":{"complete":true}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ReadJSON(bytes.NewReader(data))
		if err != nil {
			return
		}
		// What was read can be shown, judged and written, and read once more.
		render(t, r, TextOptions{Verbose: true})
		r.ExitCode()
		again, err := ReadJSON(bytes.NewReader(encode(t, r)))
		if err != nil {
			t.Fatalf("what was read and written cannot be read: %v", err)
		}
		if !bytes.Equal(encode(t, r), encode(t, again)) {
			t.Fatal("reading twice gives two reports")
		}
	})
}
