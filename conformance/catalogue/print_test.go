package catalogue_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/whconform/whconform/conformance/catalogue"
)

func explain(t *testing.T, id string) string {
	t.Helper()
	r, ok := catalogue.Find(id)
	if !ok {
		t.Fatalf("no row %s", id)
	}
	var out bytes.Buffer
	if err := catalogue.Explain(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestExplainReadsAsAPage(t *testing.T) {
	var out strings.Builder
	for _, id := range []string{
		"receiver.rawbody.accepts-exact-bytes", // plain, with a long fix
		"receiver.duplicate.two-instances",     // needs
		"receiver.acknowledge.burst.fast",      // labels
		"receiver.replay.rejects-future",       // the profile decides
		"sender.disable.notifies.early",        // and the row names one
	} {
		out.WriteString(explain(t, id) + "\n" + strings.Repeat("-", 80) + "\n")
	}
	golden(t, "testdata/explain.txt", out.String())
}

func TestExplainKeepsToEightyColumns(t *testing.T) {
	for _, r := range load(t) {
		for line := range strings.SplitSeq(explain(t, r.ID), "\n") {
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("%s: %d columns: %s", r.ID, n, line)
			}
			if strings.TrimRight(line, " ") != line {
				t.Errorf("%s: blanks at the end of %q", r.ID, line)
			}
		}
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken pipe")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestPrintingReportsTheWritersError(t *testing.T) {
	if err := catalogue.Explain(brokenWriter{}, catalogue.Requirement{ID: "x.y"}); !errors.Is(err, errBroken) {
		t.Errorf("Explain: %v", err)
	}
	if err := catalogue.WriteJSON(brokenWriter{}, nil); !errors.Is(err, errBroken) {
		t.Errorf("WriteJSON: %v", err)
	}
}

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(catalogue.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("catalogue.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("catalogue.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, data []byte) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(value)
}

func TestTheJSONIsValidUnderThePublishedSchema(t *testing.T) {
	schema := compile(t)
	var out bytes.Buffer
	if err := catalogue.WriteJSON(&out, load(t)); err != nil {
		t.Fatal(err)
	}
	if err := validate(t, schema, out.Bytes()); err != nil {
		t.Errorf("WriteJSON: %v", err)
	}
	plain, err := json.Marshal(load(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(t, schema, plain); err != nil {
		t.Errorf("json.Marshal: %v", err)
	}
}

func TestTheSchemaRefusesOtherThings(t *testing.T) {
	const row = `"statement":"One.","why":"Two.","fix":"Three.","sources":["08"],"needs":[],"labels":[]`
	tests := []struct {
		name, json string
		valid      bool
	}{
		{"a whole row", `[{"id":"receiver.a.b","level":"MUST",` + row + `}]`, true},
		{"an id that is no label", `[{"id":"receiver/a","level":"MUST",` + row + `}]`, false},
		{"an unknown level", `[{"id":"receiver.a.b","level":"NEVER",` + row + `}]`, false},
		{"PROFILE without a default", `[{"id":"receiver.a.b","level":"PROFILE",` + row + `}]`, false},
		{"a default beside a fixed level", `[{"id":"receiver.a.b","level":"MUST","default":"MAY",` + row + `}]`, false},
		{"an unknown key", `[{"id":"receiver.a.b","level":"MUST","note":"x",` + row + `}]`, false},
		{"a single row outside an array", `{"id":"receiver.a.b","level":"MUST",` + row + `}`, false},
	}
	schema := compile(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := validate(t, schema, []byte(tt.json)); (err == nil) != tt.valid {
				t.Errorf("valid = %v, want %v: %v", err == nil, tt.valid, err)
			}
		})
	}
}

// TestSchemaAndCodeKnowTheSameWords: a capability added to one only would make
// the output invalid on the day a row uses it.
func TestSchemaAndCodeKnowTheSameWords(t *testing.T) {
	var schema struct {
		Defs struct {
			Requirement struct {
				Properties map[string]struct {
					Items     struct{ Enum []string }
					MaxLength int
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(catalogue.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	properties := schema.Defs.Requirement.Properties
	for name, want := range map[string][]string{
		"sources": catalogue.Sources(),
		"needs":   catalogue.Needs(""),
		"labels":  catalogue.Labels(),
	} {
		if got := properties[name].Items.Enum; !slices.Equal(got, want) {
			t.Errorf("%s: the schema knows %v, the code %v", name, got, want)
		}
	}
	if got := properties["statement"].MaxLength; got != catalogue.MaxStatement {
		t.Errorf("the schema allows statements of %d characters, the code %d", got, catalogue.MaxStatement)
	}
}

func TestWriteJSONAddsGroupAndCoreSet(t *testing.T) {
	var out bytes.Buffer
	if err := catalogue.WriteJSON(&out, load(t)); err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		catalogue.Requirement
		Group string `json:"group"`
		Core  bool   `json:"core"`
	}
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	for i, r := range load(t) {
		got := rows[i]
		if got.ID != r.ID || got.Statement != r.Statement || got.Group != r.Group() || got.Core != r.Core() {
			t.Errorf("row %d: %s came back as %+v", i, r.ID, got)
		}
	}
	if strings.Contains(out.String(), `\u003c`) {
		t.Error("the JSON holds escaped angle brackets")
	}
}

func TestWriteJSONKnowsNoNull(t *testing.T) {
	for name, rows := range map[string][]catalogue.Requirement{
		"no rows":              nil,
		"a row made by a test": {{ID: "receiver.a.b", Level: catalogue.Must}},
	} {
		var out bytes.Buffer
		if err := catalogue.WriteJSON(&out, rows); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "null") {
			t.Errorf("%s: %s", name, out.String())
		}
	}
}
