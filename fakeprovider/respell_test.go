package fakeprovider_test

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/whconform/whconform/fakeprovider"
)

func TestRespellRefusesWhatTheLibraryRefuses(t *testing.T) {
	cases := []struct {
		name    string
		body    string
		refused string // the serializers that fail; "all"
	}{
		{"no JSON", `{"a":`, "all"},
		{"nothing", ``, "all"},
		{"text after the end", `{} {}`, "all"},
		{"a single quote", `{'a':1}`, "all"},
		{"a trailing comma", `[1,]`, "all"},
		{"a leading zero", `01`, "all"},
		{"a bare point", `1.`, "all"},
		{"a plus sign", `+1`, "all"},
		{"NaN", `NaN`, "all"},
		{"a raw control character", "\"a\x01\"", "all"},
		{"an unknown escape", `"\x41"`, "all"},
		{"a broken \\u escape", `"\u00g0"`, "all"},
		{"a word cut short", `tru`, "all"},
		{"bytes that are not UTF-8", "\"a\xff\"", "python python-compact php ruby rails jackson dotnet"},
		{"half a surrogate pair", `"\ud800x"`, "python-compact php ruby rails dotnet"},
		{"a number out of range", `1e400`, "python-compact go php ruby"},
		{"seventy levels", strings.Repeat("[", 70) + strings.Repeat("]", 70), "dotnet newtonsoft"},
		{"two hundred levels", strings.Repeat("[", 200) + strings.Repeat("]", 200), "dotnet newtonsoft ruby rails"},
	}
	for _, c := range cases {
		var refused []string
		for _, s := range fakeprovider.Serializers() {
			if out, err := fakeprovider.Respell(s.Name, []byte(c.body)); err != nil {
				refused = append(refused, s.Name)
			} else if !json.Valid(out) && string(out) != "Infinity" { // as Python has it
				t.Errorf("%s: %s wrote %q", c.name, s.Name, out)
			}
			if !s.Changes([]byte("not JSON")) {
				t.Errorf("%s changes nothing in what it cannot read", s.Name)
			}
		}
		want := strings.Fields(c.refused)
		if c.refused == "all" {
			want = nil
			for _, s := range fakeprovider.Serializers() {
				want = append(want, s.Name)
			}
		}
		slices.Sort(refused)
		slices.Sort(want)
		if !slices.Equal(refused, want) {
			t.Errorf("%s: refused by %q, want %q", c.name, refused, want)
		}
	}
}

func TestRespellNamesWhatItKnowsWhenAskedForAnother(t *testing.T) {
	_, err := fakeprovider.Respell("cobol", []byte("{}"))
	if !errors.Is(err, fakeprovider.ErrUnknownSerializer) || !strings.Contains(err.Error(), "jackson") {
		t.Errorf("got %v", err)
	}
}

func TestRespellRefusesDepthWithoutExhaustingTheStack(t *testing.T) {
	body := []byte(strings.Repeat(`{"a":[`, 500_000))
	for _, s := range fakeprovider.Serializers() {
		if _, err := fakeprovider.Respell(s.Name, body); err == nil {
			t.Errorf("%s read it", s.Name)
		}
	}
}

func TestEverySerializerSaysWhereItIsAtHome(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range fakeprovider.Serializers() {
		if s.Name == "" || s.Library == "" || s.Runtime == "" || s.RawBody == "" || seen[s.Name] {
			t.Errorf("%+v", s)
		}
		seen[s.Name] = true
	}
	if len(seen) != 11 {
		t.Errorf("%d serializers", len(seen))
	}
}

// corpus are the spellings of an event, by name.
func corpus(t testing.TB, event string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, s := range fakeprovider.Spellings() {
		body, err := s.Spell([]byte(event))
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if out[s.Name] != nil {
			t.Errorf("%q comes twice", s.Name)
		}
		out[s.Name] = body
	}
	return out
}

const event = `{"data":{"amount":4200},"timestamp":"2026-01-02T03:04:05Z","type":"invoice.paid"}`

func TestSpellingsAddAMemberAndLeaveTheEventAlone(t *testing.T) {
	for _, e := range []string{event, `{}`, "{\n}", ` {"a":1} `, `{"a":{"b":"}"}}`} {
		bodies := corpus(t, e)
		if len(bodies) != 26 {
			t.Errorf("%d spellings", len(bodies))
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(e), &want); err != nil {
			t.Fatal(err)
		}
		for name, body := range bodies {
			var got map[string]any
			if err := json.Unmarshal(body, &got); err != nil {
				t.Errorf("%s of %s: %v", name, e, err)
				continue
			}
			if _, ok := got[fakeprovider.SpellingMember]; !ok {
				t.Errorf("%s of %s has no %q: %s", name, e, fakeprovider.SpellingMember, body)
			}
			delete(got, fakeprovider.SpellingMember)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s of %s is another event: %s", name, e, body)
			}
		}
	}
	for _, s := range fakeprovider.Spellings() {
		for _, e := range []string{`[]`, `"x"`, `{`, ``} {
			if _, err := s.Spell([]byte(e)); err == nil {
				t.Errorf("%s took %q", s.Name, e)
			}
		}
		if s.What == "" {
			t.Errorf("%s says nothing", s.Name)
		}
	}
}

func TestEachSpellingIsFoundByTheLibrariesThatChangeIt(t *testing.T) {
	// What a parsed copy loses, by serializer. python alone changes the plain
	// event too, so it changes them all.
	want := map[string]string{
		"javascript":     "crlf emoji-escaped escape-ampersand escape-ascii escape-latin escaped-slashes exponent float-one integer-keys minus-zero space-after-colon space-after-comma tabs trailing-newline trailing-zero twenty-digits",
		"python-compact": "crlf emoji-escaped escape-ampersand escape-ascii escape-latin escaped-slashes exponent minus-zero space-after-colon space-after-comma tabs trailing-newline trailing-zero",
		"go":             "crlf emoji-escaped escape-ascii escape-latin escaped-slashes exponent float-one html-chars integer-keys line-separator space-after-colon space-after-comma tabs trailing-newline trailing-zero twenty-digits unsorted-keys",
		"php":            "crlf emoji-raw escape-ampersand escape-ascii exponent float-one line-separator minus-zero slashes html-chars space-after-colon space-after-comma tabs trailing-newline trailing-zero twenty-digits utf8-raw",
		"ruby":           "crlf emoji-escaped escape-ampersand escape-ascii escape-latin escaped-slashes exponent minus-zero space-after-colon space-after-comma tabs trailing-newline trailing-zero",
		"rails":          "crlf emoji-escaped escape-ascii escape-latin escaped-slashes exponent html-chars line-separator minus-zero space-after-colon space-after-comma tabs trailing-newline trailing-zero",
		"jackson":        "crlf emoji-escaped escape-ampersand escape-ascii escape-latin escaped-slashes exponent minus-zero space-after-colon space-after-comma tabs trailing-newline trailing-zero",
		"gson":           "crlf emoji-escaped escape-ascii escape-latin escaped-slashes html-chars line-separator null space-after-colon space-after-comma tabs trailing-newline",
		"dotnet":         "crlf emoji-escaped emoji-raw escape-ascii escape-latin escaped-slashes html-chars line-separator plus-offset space-after-colon space-after-comma tabs trailing-newline utf8-raw",
		"newtonsoft":     "crlf emoji-escaped escape-ampersand escape-ascii escape-latin escaped-slashes exponent line-separator minus-zero space-after-colon space-after-comma tabs trailing-newline trailing-zero",
	}
	bodies := corpus(t, event)
	for _, s := range fakeprovider.Serializers() {
		if s.Changes([]byte(event)) != (s.Name == "python") {
			t.Errorf("%s and the plain event", s.Name)
		}
		var changed []string
		for _, name := range slices.Sorted(maps.Keys(bodies)) {
			if s.Changes(bodies[name]) {
				changed = append(changed, name)
			}
		}
		expected := strings.Fields(want[s.Name])
		slices.Sort(expected)
		if s.Name == "python" {
			expected = slices.Sorted(maps.Keys(bodies))
		}
		if !slices.Equal(changed, expected) {
			t.Errorf("%s changes\n     %q\nwant %q", s.Name, changed, expected)
		}
	}
}

func TestExplainNamesTheSerializerFromWhatWasRefused(t *testing.T) {
	bodies := corpus(t, event)
	for _, s := range fakeprovider.Serializers() {
		var failing, passing []string
		for name, body := range bodies {
			if s.Changes(body) {
				failing = append(failing, name)
			} else {
				passing = append(passing, name)
			}
		}
		got, ok := fakeprovider.Explain(failing, passing, bodies)
		// What python-compact, ruby and jackson leave alone is the same.
		if twins := map[string]string{"ruby": "python-compact", "jackson": "python-compact"}; !ok || got.Name != s.Name && got.Name != twins[s.Name] {
			t.Errorf("%s is taken for %q, %v", s.Name, got.Name, ok)
		}
		fits := fakeprovider.Fits(failing, passing, bodies)
		if len(fits) == 0 || fits[0].Score != 1 || len(fits[0].Unexplained)+len(fits[0].Unexpected) != 0 {
			t.Errorf("%s: the best fit is %+v", s.Name, fits)
		}
	}
}

func TestExplainNamesNobodyWithoutGoodReason(t *testing.T) {
	bodies := corpus(t, event)
	all := slices.Sorted(maps.Keys(bodies))
	for name, c := range map[string]struct{ failing, passing []string }{
		"nothing was refused":       {nil, all},
		"one oddity that many have": {[]string{"exponent"}, slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "exponent" })},
		"what no library changes":   {[]string{"empty-string", "outer-blanks"}, []string{"exponent", "tabs"}},
		"bodies that are unknown":   {[]string{"a", "b"}, []string{"c"}},
	} {
		if s, ok := fakeprovider.Explain(c.failing, c.passing, bodies); ok {
			t.Errorf("%s: %q", name, s.Name)
		}
	}
}

func TestExplainBearsAReceiverWithAnotherHabitBesides(t *testing.T) {
	bodies := corpus(t, event)
	var failing, passing []string
	for _, s := range fakeprovider.Serializers() {
		if s.Name != "go" {
			continue
		}
		for name, body := range bodies {
			// It also trims strings.
			if s.Changes(body) || name == "outer-blanks" {
				failing = append(failing, name)
			} else {
				passing = append(passing, name)
			}
		}
	}
	if s, ok := fakeprovider.Explain(failing, passing, bodies); !ok || s.Name != "go" {
		t.Errorf("got %q, %v", s.Name, ok)
	}
}
