package vectors_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/whconform/whconform/vectors"
)

// counts pins how many tests of each result a file holds. A test that
// disappears must be taken out here too.
var counts = map[string]map[vectors.Result]int{
	"delivery-envelope-keys":       {vectors.Valid: 9, vectors.Invalid: 1, vectors.Open: 3},
	"delivery-envelope-sign":       {vectors.Valid: 72},
	"delivery-envelope-verify":     {vectors.Valid: 94, vectors.Invalid: 154, vectors.Open: 34},
	"standard-webhooks-keys":       {vectors.Valid: 14, vectors.Invalid: 44, vectors.Open: 8},
	"standard-webhooks-v1-sign":    {vectors.Valid: 85, vectors.Open: 4},
	"standard-webhooks-v1-verify":  {vectors.Valid: 105, vectors.Invalid: 165, vectors.Open: 46},
	"standard-webhooks-v1a-sign":   {vectors.Valid: 82, vectors.Open: 4},
	"standard-webhooks-v1a-verify": {vectors.Valid: 109, vectors.Invalid: 171, vectors.Open: 48},
}

func all(t *testing.T) []*vectors.File {
	t.Helper()
	files, err := vectors.All()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("there are no vectors")
	}
	return files
}

func TestEveryFileHoldsAsManyTestsOfEachResultAsCounted(t *testing.T) {
	for _, f := range all(t) {
		got := map[vectors.Result]int{}
		f.Each(func(_ vectors.Group, v vectors.Test) { got[v.Result]++ })
		want, known := counts[f.Name]
		if !known {
			t.Errorf("%s: no count for this file", f.Name)
		}
		for _, r := range []vectors.Result{vectors.Valid, vectors.Invalid, vectors.Open} {
			if got[r] != want[r] {
				t.Errorf("%s: %d %s tests, want %d", f.Name, got[r], r, want[r])
			}
		}
		delete(got, vectors.Valid)
		delete(got, vectors.Invalid)
		delete(got, vectors.Open)
		if len(got) > 0 {
			t.Errorf("%s: unknown results %v", f.Name, got)
		}
	}
	if got := len(vectors.Names()); got != len(counts) {
		t.Errorf("%d files, want %d", got, len(counts))
	}
}

func TestEveryFileObeysTheSchema(t *testing.T) {
	schema := compile(t)
	for _, name := range vectors.Names() {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(source(t, name)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The schema is of use only when it refuses: each change breaks one of its rules.
func TestTheSchemaRefusesWhatBreaksAFile(t *testing.T) {
	schema := compile(t)
	cases := map[string]func(file, group, test map[string]any){
		"a member that nobody knows": func(f, _, _ map[string]any) { f["extra"] = 1 },
		"a file without its warning": func(f, _, _ map[string]any) { delete(f, "warning") },
		"a warning that hides that the keys are public": func(f, _, _ map[string]any) {
			f["warning"] = "beware"
		},
		"a group of a verify file without keys": func(_, g, _ map[string]any) { g["keys"] = []any{} },
		"an invalid test without a reason": func(_, _, v map[string]any) {
			v["result"], v["rule"] = "invalid", "stale"
		},
		"an invalid test without a rule": func(_, _, v map[string]any) {
			v["result"], v["reason"] = "invalid", "old"
		},
		"an open test without a reason":     func(_, _, v map[string]any) { v["result"] = "implementation-defined" },
		"a valid test with a reason":        func(_, _, v map[string]any) { v["reason"] = "none" },
		"a result of another name":          func(_, _, v map[string]any) { v["result"] = "acceptable" },
		"an id that a label could not hold": func(_, _, v map[string]any) { v["id"] = "a/b" },
		"base64 without its padding":        func(_, _, v map[string]any) { v["signedContent"] = "QQ" },
		"a header of three parts":           func(_, _, v map[string]any) { v["headers"] = []any{[]any{"a", "b", "c"}} },
		"a test without flags":              func(_, _, v map[string]any) { v["flags"] = []any{} },
		"a delivery with a secret in its inputs": func(_, _, v map[string]any) {
			v["inputs"].(map[string]any)["secret"] = "x"
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(source(t, "delivery-envelope-verify")))
			if err != nil {
				t.Fatal(err)
			}
			file := doc.(map[string]any)
			file["groups"] = file["groups"].([]any)[:1]
			group := file["groups"].([]any)[0].(map[string]any)
			group["tests"] = group["tests"].([]any)[:1]
			if err := schema.Validate(doc); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			change(file, group, group["tests"].([]any)[0].(map[string]any))
			if schema.Validate(doc) == nil {
				t.Error("the schema accepts it")
			}
		})
	}
}

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(vectors.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// source is a file as it is stored.
func source(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("data", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestIdsAreUniqueAndBeginWithSchemeTopicAndGroup(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range all(t) {
		groups := map[string]bool{}
		for _, g := range f.Groups {
			if groups[g.Name] {
				t.Errorf("%s: two groups are called %s", f.Name, g.Name)
			}
			groups[g.Name] = true
		}
		scheme := strings.Replace(f.Scheme, "-v1", ".v1", 1)
		f.Each(func(g vectors.Group, v vectors.Test) {
			if seen[v.ID] {
				t.Errorf("%s stands twice", v.ID)
			}
			seen[v.ID] = true
			if want := scheme + "." + f.Topic + "." + g.Name + "."; !strings.HasPrefix(v.ID, want) {
				t.Errorf("%s does not begin with %s", v.ID, want)
			}
		})
		if f.Name != f.Scheme+"-"+f.Topic {
			t.Errorf("%s holds the scheme %s and the topic %s", f.Name, f.Scheme, f.Topic)
		}
	}
}

func TestEveryFlagHasANoteAndEveryNoteIsUsed(t *testing.T) {
	for _, f := range all(t) {
		used := map[string]bool{}
		f.Each(func(_ vectors.Group, v vectors.Test) {
			for _, flag := range v.Flags {
				used[flag] = true
				if _, ok := f.Notes[flag]; !ok {
					t.Errorf("%s: the flag %s has no note", v.ID, flag)
				}
			}
		})
		for flag := range f.Notes {
			if !used[flag] {
				t.Errorf("%s: no test has the flag %s", f.Name, flag)
			}
		}
	}
}

func TestAFlagMeansTheSameInEveryFile(t *testing.T) {
	notes := map[string]vectors.Note{}
	for _, f := range all(t) {
		for flag, n := range f.Notes {
			if old, ok := notes[flag]; ok && old != n {
				t.Errorf("%s: another note on %s", f.Name, flag)
			}
			notes[flag] = n
		}
	}
}

func TestEveryInvalidTestHasARuleAndAReason(t *testing.T) {
	for _, f := range all(t) {
		f.Each(func(_ vectors.Group, v vectors.Test) {
			invalid, open := v.Result == vectors.Invalid, v.Result == vectors.Open
			if (v.Rule != "") != invalid || (v.Reason != "") != (invalid || open) {
				t.Errorf("%s is %s with rule %q and reason %q", v.ID, v.Result, v.Rule, v.Reason)
			}
		})
	}
}

func TestSignedContentIsMadeOfTheInputs(t *testing.T) {
	for _, f := range all(t) {
		f.Each(func(_ vectors.Group, v vectors.Test) {
			if v.SignedContent == nil {
				if v.Headers != nil && !strings.Contains(v.ID, ".missing-header.") {
					t.Errorf("%s: no signedContent", v.ID)
				}
				return
			}
			want := v.Inputs.Timestamp + "." + string(v.Inputs.Body)
			if f.Profile == "standard-webhooks" {
				want = v.Inputs.ID + "." + want
			}
			if string(v.SignedContent) != want {
				t.Errorf("%s: signedContent is %q, its inputs give %q", v.ID, v.SignedContent, want)
			}
		})
	}
}

// The inputs repeat what the headers say, so that a reader may use either.
func TestInputsAreWhatTheHeadersCarry(t *testing.T) {
	for _, f := range all(t) {
		if f.Profile != "standard-webhooks" {
			continue
		}
		f.Each(func(_ vectors.Group, v vectors.Test) {
			if v.Headers == nil {
				return
			}
			id, _ := first(v.Headers, "webhook-id")
			ts, _ := first(v.Headers, "webhook-timestamp")
			if id != v.Inputs.ID || ts != v.Inputs.Timestamp {
				t.Errorf("%s: headers carry id %q and timestamp %q, inputs %q and %q", v.ID, id, ts, v.Inputs.ID, v.Inputs.Timestamp)
			}
		})
	}
}

func TestEveryBase64IsPaddedAndCanonical(t *testing.T) {
	for _, name := range vectors.Names() {
		var doc any
		if err := json.Unmarshal(source(t, name), &doc); err != nil {
			t.Fatal(err)
		}
		walk(doc, func(key, text string) {
			if !slices.Contains([]string{"body", "signedContent", "raw", "public"}, key) {
				return
			}
			raw, err := base64.StdEncoding.Strict().DecodeString(text)
			if err != nil || base64.StdEncoding.EncodeToString(raw) != text {
				t.Errorf("%s: %s is not canonical base64: %.40s", name, key, text)
			}
		})
	}
}

// walk calls do for every text member in a JSON document.
func walk(doc any, do func(key, text string)) {
	switch d := doc.(type) {
	case []any:
		for _, v := range d {
			walk(v, do)
		}
	case map[string]any:
		for k, v := range d {
			if text, ok := v.(string); ok {
				do(k, text)
			}
			walk(v, do)
		}
	}
}

func TestFilesArePrintableASCIIWithALoudWarning(t *testing.T) {
	for _, f := range all(t) {
		data := source(t, f.Name)
		if i := bytes.IndexFunc(data, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }); i >= 0 {
			t.Errorf("%s: byte %d is not printable ASCII", f.Name, i)
		}
		if !strings.Contains(f.Warning, "EVERY KEY IN THIS FILE IS PUBLIC") {
			t.Errorf("%s: the warning is %q", f.Name, f.Warning)
		}
		if f.Version != 1 || f.Tolerance != 300 {
			t.Errorf("%s: version %d, tolerance %d", f.Name, f.Version, f.Tolerance)
		}
	}
}

func TestAnUnknownNameIsAnErrorThatListsTheFiles(t *testing.T) {
	for _, name := range []string{"", "none", "../schema", "data/delivery-envelope-sign"} {
		if _, err := vectors.Load(name); err == nil || !strings.Contains(err.Error(), "delivery-envelope-sign") {
			t.Errorf("Load(%q): %v", name, err)
		}
	}
	for _, name := range []string{"delivery-envelope-sign", "delivery-envelope-sign.json"} {
		if f, err := vectors.Load(name); err != nil || f.Name != "delivery-envelope-sign" {
			t.Errorf("Load(%q): %v", name, err)
		}
	}
}

// first is the value of the first header called name.
func first(headers []vectors.Header, name string) (string, bool) {
	for _, h := range headers {
		if strings.EqualFold(h.Name(), name) {
			return h.Value(), true
		}
	}
	return "", false
}
