package profile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whconform/whconform/reference/profile"
)

// valid is a profile that its cases change, line by line.
const valid = `name: mine
title: Mine
source: our wiki
signature:
  in: header
  name: X-Sig
  grammar: "t={ts},v1={sig}"
  list: {repeat: "v1={sig}", join: ","}
content: ["{ts}", ".", "{raw}"]
mac: hmac-sha256
encoding: hex
key: {decode: utf8}
timestamp: {in: signature, unit: s, past: 5m, future: none}
id: {in: body, name: /id, signed: true}
headers: {X-Event: "{type}"}
body:
  content_type: application/json
  template: '{"id":{{json .ID}}}'
  types: [a.b]
receiver:
  ack_timeout: 10s
retry:
  schedule: [0s, 5d]
`

func faults(t *testing.T, err error) []profile.Fault {
	t.Helper()
	var bad *profile.ParseError
	if !errors.As(err, &bad) {
		t.Fatalf("want a ParseError, got %v", err)
	}
	return bad.Faults
}

func TestFaultsSayWhereAndWhatWasExpected(t *testing.T) {
	if _, err := profile.Parse("mine.yaml", []byte(valid)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, old, new string
		want           string // stands in the error
	}{
		{"an unknown key", "title:", "titel:", `mine.yaml:2:1: titel: unknown key, did you mean "title"?`},
		{"a missing key", "title: Mine\n", "", "mine.yaml:1:1: title: missing"},
		{"an unknown key further in", "name: X-Sig", "nmae: X-Sig", `mine.yaml:6:3: signature.nmae: unknown key, did you mean "name"?`},
		{"a missing key further in", "key: {decode: utf8}", "key: {}", "mine.yaml:12:6: key.decode: missing"},
		{"an unknown word", "mac: hmac-sha256", "mac: hmac-sha265", `mine.yaml:10:6: mac: want one of hmac-sha256, hmac-sha1, ed25519, ecdsa-p256-sha256, rsa-sha256, token, got "hmac-sha265", did you mean "hmac-sha256"?`},
		{"a word far from any", "mac: hmac-sha256", "mac: xxxxxxxxxx", `got "xxxxxxxxxx"` + "\n"},
		{"a key twice", "mac: hmac-sha256\n", "mac: hmac-sha256\nmac: hmac-sha1\n", "mine.yaml:11:1: mac: stands here again, first in line 10"},
		{"a list in place of a text", "title: Mine", "title: [Mine]", "mine.yaml:2:8: title: want text, got a list"},
		{"a text in place of a list", "types: [a.b]", "types: a.b", `body.types: want a list, got "a.b"`},
		{"a text in place of a mapping", "key: {decode: utf8}", "key: utf8", `mine.yaml:12:6: key: want a mapping, got "utf8"`},
		{"nothing", "title: Mine", "title:", "title: want text, got nothing"},
		{"an empty text", "title: Mine", `title: ""`, "title: must not be empty"},
		{"an empty list", "types: [a.b]", "types: []", "body.types: must have at least one element"},
		{"a name with blanks", "name: mine", "name: Mine Own", `want lower-case words with hyphens`},
		{"a duration without a unit", "ack_timeout: 10s", "ack_timeout: 10", `receiver.ack_timeout: want a duration such as 30s, 5m, 24h or 5d, got "10"`},
		{"a negative duration", "ack_timeout: 10s", "ack_timeout: -10s", "receiver.ack_timeout: want a duration above 0"},
		{"a duration of nothing", "ack_timeout: 10s", "ack_timeout: 0s", "receiver.ack_timeout: want a duration above 0"},
		{"a duration of ages", "ack_timeout: 10s", "ack_timeout: 9999d", "want at most ten years"},
		{"a negative delay", "[0s, 5d]", "[0s, -5s]", "mine.yaml:23:18: retry.schedule[1]: want a duration above 0"},
		{"a second delay of nothing", "[0s, 5d]", "[0s, 0s]", "mine.yaml:23:18: retry.schedule: only the first attempt may come at once"},
		{"a tolerance of half a second", "past: 5m", "past: 500ms", "timestamp.past: want whole seconds"},
		{"a status that is none", "ack_timeout: 10s", "ack_timeout: 10s\n  reject: [200]", "receiver.reject[0]: want a whole number from 400 to 599"},
		{"a status twice", "ack_timeout: 10s", "ack_timeout: 10s\n  reject: [401, 401]", "receiver.reject[1]: 401 stands in the list twice"},
		{"a size without a unit", "ack_timeout: 10s", "ack_timeout: 10s\n  max_body: 64", "receiver.max_body: want a size above 0"},
		{"a size too large", "ack_timeout: 10s", "ack_timeout: 10s\n  max_body: 2GiB", "at most 1GiB"},
		{"yes for true", "signed: true", "signed: yes", `id.signed: want true or false, got "yes"`},
		{"jitter that goes back in time", "retry:\n", "retry:\n  jitter: {low: -1.5, high: 0}\n", "retry.jitter.low: want a number from -1 to 0"},
		{"jitter that is no number", "retry:\n", "retry:\n  jitter: {low: 0, high: NaN}\n", "retry.jitter.high: want a number from 0 to 10"},
		{"an unknown atom", `"{raw}"]`, `"{body}"]`, "mine.yaml:9:24: content[2]: want a literal or one of"},
		{"a grammar without a signature", `grammar: "t={ts},v1={sig}"`, `grammar: "t={ts}"`, "mine.yaml:7:12: signature.grammar: lacks {sig}"},
		{"a pointer without its slash", "name: /id", "name: id", "mine.yaml:14:22: id.name: want a JSON Pointer"},
		{"a header name with a blank", "X-Event:", "X Event:", "headers.X Event: want a header name"},
		{"an unknown placeholder", `"{type}"}`, `"{topic}"}`, "the only placeholders are {type} and {id}"},
		{"a header that breaks out", `"{type}"}`, `"a\r\nb"}`, "holds no control characters"},
		{"a template that does not parse", "{{json .ID}}", "{{json .ID", "mine.yaml:18:13: body.template: line 1, column 7 of the template"},
		{"a template with an unknown field", ".ID", ".Id", "can't evaluate field Id"},
		{"a requirement by half its id", "retry:\n", "levels: {rejects-stale: MUST}\nretry:\n", "want the full id of a requirement"},
		{"an unknown level", "retry:\n", "levels: {receiver.replay.rejects-stale: must}\nretry:\n", `got "must", did you mean "MUST"?`},
		{"a connect timeout above the attempt's", "retry:\n", "sender: {attempt_timeout: 1s, connect_timeout: 2s}\nretry:\n", "is longer than sender.attempt_timeout"},
		{"an anchor", "title: Mine", "title: &a Mine", "mine.yaml:2:8: anchors and aliases are not allowed"},
		{"a tag", "title: Mine", "title: !!str Mine", "tags are not allowed"},
		{"a key that is a list", "title: Mine", "? [a]\n: b\ntitle: Mine", "want a plain key, got a list"},
		{"a secret", "title: Mine", "title: Mine\nsecret: whsec_x", "secret: unknown key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(valid, c.old, c.new, 1)
			if text == valid {
				t.Fatal("the case changes nothing")
			}
			p, err := profile.Parse("mine.yaml", []byte(text))
			faults(t, err)
			if p != nil || !strings.Contains(err.Error()+"\n", c.want) {
				t.Errorf("want %s\ngot  %v", c.want, err)
			}
		})
	}
}

func TestAllFaultsComeAtOnceInTheOrderOfTheText(t *testing.T) {
	text := strings.NewReplacer("title:", "titel:", "in: header", "in: heder", "decode: utf8", "decode: utf9", "ack_timeout: 10s", "ack_timeout: soon").Replace(valid)
	_, err := profile.Parse("mine.yaml", []byte(text))
	var fields []string
	line := 0
	for _, f := range faults(t, err) {
		fields = append(fields, f.Field)
		if f.Line < line || f.Column < 1 || f.File != "mine.yaml" || f.Message == "" {
			t.Errorf("out of order or empty: %+v", f)
		}
		line = f.Line
	}
	if got := strings.Join(fields, " "); got != "title titel signature.in key.decode receiver.ack_timeout" {
		t.Errorf("got %s", got)
	}
	if got := strings.Count(err.Error(), "\n"); got != len(fields)-1 {
		t.Errorf("want a line for each fault, got %v", err)
	}
}

func TestHostileTextIsRefusedAsSuch(t *testing.T) {
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c]\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "empty"},
		{"a comment", "# nothing\n", "empty"},
		{"a list", "[a]", "want a mapping, got a list"},
		{"a word", "hello", "want a mapping"},
		{"two documents", valid + "---\n" + valid, "a second document"},
		{"more than a mebibyte", "# " + strings.Repeat("x", 1<<20), "larger than 1048576 bytes"},
		{"aliases of aliases", bomb, "anchors and aliases are not allowed"},
		{"deep lists", "title: " + deep, ""},
		{"deep mappings", "title: " + strings.Repeat("{a: ", 20) + "x" + strings.Repeat("}", 20), "nested deeper than 16 levels"},
		{"a merge key", "<<: *x\n", ""},
		{"not UTF-8", "name: mine\ntitle: \xff\n", "mine.yaml:2:8: not UTF-8"},
		{"a NUL", "name: \x00", ""},
		{"UTF-16", "\xff\xfen\x00", "not UTF-8"},
		{"a quote that never ends", "name: \"mine\ntitle: x", "not YAML"},
		{"a tab", "name:\n\t- x", "mine.yaml:2:1: not YAML"},
		{"a colon too many", "name: a: b\n", "mine.yaml:1:8: not YAML: mapping values are not allowed in this context"},
		{"a thousand unknown keys", func() string {
			var b strings.Builder
			for range 1000 {
				b.WriteString("k" + strings.Repeat("x", b.Len()%97) + ": 1\n")
			}
			return b.String()
		}(), "unknown key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := profile.Parse("mine.yaml", []byte(c.text))
			if found := faults(t, err); len(found) > 50 || p != nil {
				t.Errorf("%d faults", len(found))
			}
			if !strings.Contains(err.Error(), c.want) || len(err.Error()) > 50_000 {
				t.Errorf("want %s\ngot  %.2000v", c.want, err)
			}
		})
	}
}

func TestProfilesAreLoadedByNameOrByFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.yml")
	if err := os.WriteFile(file, []byte(valid), 0o600); err != nil {
		t.Fatal(err)
	}
	bare := filepath.Join(dir, "mine")
	if err := os.WriteFile(bare, []byte(valid), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, bare} {
		p, err := profile.Load(path)
		if err != nil || p.Name != "mine" || string(p.YAML()) != valid {
			t.Errorf("%s: %v", path, err)
		}
	}
	huge := filepath.Join(dir, "huge.yaml")
	if err := os.WriteFile(huge, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, want string }{
		{"strpie", `no profile is called "strpie", did you mean "stripe"?`},
		{"nothing-like-it", "there are adyen-platforms, adyen-standard"},
		{"", "no profile is called"},
		{filepath.Join(dir, "absent.yaml"), "reading a profile"},
		{dir + "/", "reading the profile"},
		{huge, "larger than"},
		{"../stripe", "reading a profile"},
	} {
		if _, err := profile.Load(c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %s, got %v", c.name, c.want, err)
		}
	}
}

// FuzzParse reads any text: nothing panics, what is refused is refused with a
// position inside the text, and what is accepted can be read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(valid))
	for _, name := range profile.Names() {
		f.Add(load(f, name).YAML())
	}
	for _, text := range []string{"", "a: *a", "- ", "? : ", "name: |\n  x", "{{", "name: [", "\xff", "a: &a {b: *a}", "%YAML 1.1\n---\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := profile.Parse("fuzzed", text)
		if err != nil {
			for _, fault := range faults(t, err) {
				if fault.Line < 1 || fault.Column < 1 || fault.Message == "" {
					t.Fatalf("%+v", fault)
				}
			}
			return
		}
		if _, err := p.NewPayload(data()); err != nil {
			t.Fatal(err)
		}
		_, _ = p.Scheme()
		p.NotApplicable("receiver.replay.tolerance")
		if _, err := profile.Parse("again", p.YAML()); err != nil {
			t.Fatal(err)
		}
	})
}
