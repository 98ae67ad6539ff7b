package catalogue

import (
	"fmt"
	"strings"
	"testing"
)

// file wraps the lines of one requirement, which begins on line 6, into a file.
func file(lines ...string) string {
	return "part: receiver\ngroups:\n  - name: replay\n    title: a title\n    requirements:\n" +
		"      - id: rejects-stale\n        " + strings.Join(lines, "\n        ") + "\n"
}

const texts = `{level: MUST, statement: One., why: Two., fix: Three., sources: ["08"]}`

func TestParseNamesEveryFaultWithItsLine(t *testing.T) {
	good := []string{"level: MUST", "statement: One.", "why: Two.", "fix: Three.", `sources: ["08"]`}
	with := func(more ...string) string { return file(append(append([]string{}, good...), more...)...) }
	without := func(i int, instead ...string) string {
		lines := append(append([]string{}, good[:i]...), instead...)
		return file(append(lines, good[i+1:]...)...)
	}
	tests := []struct {
		name, file string
		want       []string
	}{
		{"an unknown key, with what was meant", with("lables: [slow]"),
			[]string{`receiver.yaml:12: unknown key "lables" in a requirement; did you mean "labels"?`}},
		{"a key that stands twice", with("why: Again."),
			[]string{"receiver.yaml:12"}},
		{"an unknown level", without(0, "level: MUSTN'T"),
			[]string{`receiver.yaml:7: level "MUSTN'T": want one of MUST, SHOULD, MAY, PROFILE`}},
		{"a level in lower case", without(0, "level: must"),
			[]string{`receiver.yaml:7: level "must"`, `did you mean "MUST"?`}},
		{"a missing level", without(0),
			[]string{"receiver.yaml:6: level is missing"}},
		{"PROFILE without a default", without(0, "level: PROFILE"),
			[]string{"receiver.yaml:6: default is missing"}},
		{"PROFILE as its own default", without(0, "level: PROFILE", "default: PROFILE"),
			[]string{`receiver.yaml:8: default "PROFILE": want one of MUST, SHOULD, MAY`}},
		{"a default beside a fixed level", with("default: MAY"),
			[]string{"receiver.yaml:12: default goes with level PROFILE only"}},
		{"an unknown source", without(4, `sources: ["08", "80"]`),
			[]string{`receiver.yaml:11: sources "80": want one of 07, 08, P, SW, RFC, F`}},
		{"no sources", without(4),
			[]string{"receiver.yaml:6: sources is missing"}},
		{"an empty list of sources", without(4, "sources: []"),
			[]string{"receiver.yaml:11: sources must be a list that is not empty"}},
		{"an unknown need", with("needs: [observer]"),
			[]string{`receiver.yaml:12: needs "observer"`, `did you mean "observe"?`}},
		{"a need of the other part", with("needs: [rotate]"),
			[]string{`receiver.yaml:12: needs "rotate"`}},
		{"a need that stands twice", with("needs: [observe, observe]"),
			[]string{`receiver.yaml:12: needs "observe" stands twice`}},
		{"a label that is derived", with("labels: [core]"),
			[]string{`receiver.yaml:12: labels "core": want one of slow, alone, on-request, load`}},
		{"an unknown level for a profile", with("profiles: {stripe: NEVER}"),
			[]string{`receiver.yaml:12: level "NEVER" for profile "stripe"`}},
		{"profiles that are a list", with("profiles: [stripe]"),
			[]string{"receiver.yaml:12: profiles must be a mapping"}},
		{"a text that is empty", without(1, `statement: " "`),
			[]string{"receiver.yaml:8: statement must be a text that is not empty"}},
		{"a text that is a list", without(1, "statement: [One.]"),
			[]string{"receiver.yaml:8: statement must be a text that is not empty"}},
		{"a text without a full stop", without(2, "why: Two"),
			[]string{"receiver.yaml:9: why must end with a full stop"}},
		{"a statement that is too long", without(1, "statement: "+strings.Repeat("x", MaxStatement)+"."),
			[]string{"receiver.yaml:8: the statement has 221 characters, at most 220 are allowed"}},
		{"an id that stands twice", file(append(good, "#")...) + "      - {id: rejects-stale, " + texts[1:],
			[]string{`receiver.yaml:13: id "receiver.replay.rejects-stale" stands on line 6 already`}},
		{"an id with forbidden characters", file(good...) + "      - {id: a/b, " + texts[1:],
			[]string{`receiver.yaml:12: id "receiver.replay.a/b": want lower-case letters`}},
		{"a part of a row that is not there", file(good...) + "      - {id: other.part, " + texts[1:],
			[]string{`receiver.yaml:12: id "receiver.replay.other.part": "receiver.replay.other", of which it is a part, must stand before it`}},
		{"several faults at once", without(0, "level: NO", "labels: [quick]"),
			[]string{`receiver.yaml:7: level "NO"`, `receiver.yaml:8: labels "quick"`}},
		{"a row that is a text", "part: receiver\ngroups:\n  - name: x\n    title: y\n    requirements: [z]\n",
			[]string{"receiver.yaml:5: a requirement must be a mapping"}},
		{"a group without rows", "part: receiver\ngroups:\n  - name: x\n    title: y\n",
			[]string{"receiver.yaml:3: requirements is missing"}},
		{"another part than the file's", "part: sender\ngroups: [{title: y, requirements: [" + strings.Replace(texts, "{", "{id: x, ", 1) + "]}]\n",
			[]string{`receiver.yaml:1: part is "sender", want "receiver"`}},
		{"a file that is a list", "- a\n", []string{"receiver.yaml:1: the file must be a mapping"}},
		{"an empty file", "", []string{"receiver.yaml"}},
		{"an alias", "part: receiver\ngroups: &g [*g]\n", []string{"receiver.yaml"}},
		{"what is no YAML", "part: [\n", []string{"receiver.yaml:2: did not find expected node content"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parse(Receiver, "receiver.yaml", []byte(tt.file))
			if err == nil {
				t.Fatalf("parsed without an error:\n%s", tt.file)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not contain %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestParseReadsAWholeRow(t *testing.T) {
	read, err := parse(Receiver, "receiver.yaml", []byte(file(
		"level: PROFILE", "default: MUST", "profiles: {stripe: SHOULD}", "statement: >-", "  One", "  line.",
		"why: Two.", "fix: Three.", `sources: ["08", SW]`, "needs: [observe, clock]", "labels: [slow]")))
	if err != nil {
		t.Fatal(err)
	}
	want := `[{receiver.replay.rejects-stale PROFILE MUST map[stripe:SHOULD] One line. Two. Three. [08 SW] [observe clock] [slow]}]`
	if got := fmt.Sprint(read.rows); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// FuzzParse: a file that somebody is editing may be anything; it must lead to an
// error or to rows that keep the rules.
func FuzzParse(f *testing.F) {
	f.Add([]byte(file("level: MUST", "statement: One.", "why: Two.", "fix: Three.", `sources: ["08"]`)))
	f.Add([]byte("part: receiver\ngroups: &g [*g]\n"))
	f.Add([]byte("- \n? {a: b}\n: c"))
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := parse(Receiver, "receiver.yaml", data)
		if err != nil {
			return
		}
		for _, r := range read.rows {
			if !idPattern.MatchString(r.ID) || r.Statement == "" || len(r.Sources) == 0 {
				t.Errorf("an invalid row passed: %+v", r)
			}
		}
	})
}
