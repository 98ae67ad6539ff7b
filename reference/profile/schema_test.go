package profile

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("profile.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("profile.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance is a YAML text as the values that JSON has.
func instance(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Load(text, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryProfileFollowsTheSchema(t *testing.T) {
	s := compiled(t)
	for _, name := range Names() {
		p, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(instance(t, p.YAML())); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheSchemaRefusesWhatParsingRefuses(t *testing.T) {
	s := compiled(t)
	good, err := Load("stripe")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new string }{
		{"title:", "titel:"},
		{"in: header", "in: query"},
		{"mac: hmac-sha256", "mac: md5"},
		{"past: 5m", "past: soon"},
		{"ack_timeout: 10s", "ack_timeout: 10"},
		{"types: [invoice.paid, invoice.created, charge.refunded]", "types: []"},
		{"rejects-future: SHOULD", "rejects-future: should"},
		{"sender:\n", "sender:\n  disable_after: x\n"},
		{"ack_timeout: 10s", "ack_timeout: 10s\n  reject: [200]"},
		{"ack_timeout: 10s", "ack_timeout: 10s\n  max_body: 64"},
	} {
		text := []byte(strings.Replace(string(good.YAML()), c.old, c.new, 1))
		if bytes.Equal(text, good.YAML()) {
			t.Fatalf("%q changes nothing", c.old)
		}
		if err := s.Validate(instance(t, text)); err == nil {
			t.Errorf("the schema accepts %q", c.new)
		}
		if _, err := Parse("changed", text); err == nil {
			t.Errorf("Parse accepts %q", c.new)
		}
	}
}

// shape is a mapping of the format: its keys, and which of them are required.
type shape struct {
	keys     []string
	required []string
}

// TestSchemaAndCodeHaveTheSameFields compares the fields of the schema with
// those that the decoder knows, met in a profile that uses them all: the
// example of docs/profile-format.md.
func TestSchemaAndCodeHaveTheSameFields(t *testing.T) {
	text := documentedExample(t)
	code := map[string]shape{}
	if _, err := parseWith("docs/profile-format.md", text, func(path string, fields []field) {
		var s shape
		for _, f := range fields {
			s.keys = append(s.keys, f.name)
			if f.required {
				s.required = append(s.required, f.name)
			}
		}
		slices.Sort(s.keys)
		slices.Sort(s.required)
		code[path] = s
	}); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	published := map[string]shape{}
	shapes(doc, "", published)
	for _, path := range slices.Sorted(maps.Keys(published)) {
		a, _ := json.Marshal([]any{published[path].keys, published[path].required})
		b, _ := json.Marshal([]any{code[path].keys, code[path].required})
		if !bytes.Equal(a, b) {
			t.Errorf("%q:\nschema %s\ncode   %s", path, a, b)
		}
	}
	for path := range code {
		if _, ok := published[path]; !ok {
			t.Errorf("%q is not in the schema", path)
		}
	}
	if err := compiled(t).Validate(instance(t, text)); err != nil {
		t.Error(err)
	}
}

// shapes collects the mappings with fixed keys in a schema.
func shapes(node map[string]any, path string, into map[string]shape) {
	properties, ok := node["properties"].(map[string]any)
	if !ok {
		return
	}
	s := shape{keys: slices.Sorted(maps.Keys(properties))}
	required, _ := node["required"].([]any)
	for _, r := range required {
		s.required = append(s.required, r.(string))
	}
	slices.Sort(s.required)
	into[path] = s
	for name, p := range properties {
		shapes(p.(map[string]any), join(path, name), into)
	}
}

// documentedExample is the first YAML block of docs/profile-format.md.
func documentedExample(t *testing.T) []byte {
	t.Helper()
	doc, err := os.ReadFile("../../docs/profile-format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "```yaml\n")
	block, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("no YAML block in docs/profile-format.md")
	}
	return []byte(block)
}

func TestTheDocumentationNamesEveryField(t *testing.T) {
	doc, err := os.ReadFile("../../docs/profile-format.md")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	published := map[string]shape{}
	shapes(schema, "", published)
	for path, s := range published {
		for _, key := range s.keys {
			if _, section := published[join(path, key)]; !section && !strings.Contains(string(doc), "`"+join(path, key)+"`") {
				t.Errorf("docs/profile-format.md does not speak of `%s`", join(path, key))
			}
		}
	}
}
