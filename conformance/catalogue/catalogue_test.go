package catalogue_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/whconform/whconform/conformance/catalogue"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

func load(t *testing.T) []catalogue.Requirement {
	t.Helper()
	rows, err := catalogue.Load()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestTheCatalogueHoldsExactlyTheseRows pins id, level, needs and labels of every
// row: reports, mutants and lists of known failures name them, so a row that is
// dropped, renamed or weakened must be seen in review.
func TestTheCatalogueHoldsExactlyTheseRows(t *testing.T) {
	var out strings.Builder
	for _, r := range load(t) {
		level := r.Level
		if r.Default != "" {
			level += ":" + r.Default
		}
		for _, name := range slices.Sorted(maps.Keys(r.Profiles)) {
			level += fmt.Sprintf(",%s:%s", name, r.Profiles[name])
		}
		fmt.Fprintf(&out, "%s %s", r.ID, level)
		if len(r.Needs) > 0 {
			fmt.Fprintf(&out, " needs=%s", strings.Join(r.Needs, ","))
		}
		if len(r.Labels) > 0 {
			fmt.Fprintf(&out, " labels=%s", strings.Join(r.Labels, ","))
		}
		out.WriteByte('\n')
	}
	golden(t, "testdata/rows.txt", out.String())
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	wantLines, gotLines := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for _, line := range wantLines {
		if !slices.Contains(gotLines, line) {
			t.Errorf("%s: missing %q", path, line)
		}
	}
	for _, line := range gotLines {
		if !slices.Contains(wantLines, line) {
			t.Errorf("%s: not expected %q", path, line)
		}
	}
	if !t.Failed() {
		t.Errorf("%s: the order of the lines differs", path)
	}
}

// TestCountsByGroupAndLevel repeats the golden file as numbers, which are harder
// to wave through than a regenerated file.
func TestCountsByGroupAndLevel(t *testing.T) {
	type counts struct{ must, should, may, profile int }
	want := map[string]counts{
		"receiver.signature":   {21, 3, 5, 0},
		"receiver.rawbody":     {2, 2, 2, 0},
		"receiver.replay":      {4, 1, 3, 1},
		"receiver.duplicate":   {10, 1, 2, 0},
		"receiver.acknowledge": {6, 5, 1, 2},
		"receiver.order":       {1, 2, 0, 0},
		"receiver.durability":  {3, 2, 0, 0},
		"receiver.limits":      {10, 12, 3, 0},
		"receiver.rotation":    {1, 1, 0, 0},
		"receiver.transport":   {1, 1, 0, 0},
		"sender.request":       {3, 7, 2, 0},
		"sender.signature":     {8, 0, 1, 0},
		"sender.retry":         {15, 3, 2, 0},
		"sender.retry-after":   {3, 1, 0, 0},
		"sender.timeout":       {6, 3, 1, 0},
		"sender.response":      {3, 0, 1, 0},
		"sender.redirect":      {3, 0, 0, 0},
		"sender.disable":       {5, 3, 0, 1},
		"sender.rotation":      {2, 1, 0, 0},
		"sender.resend":        {1, 1, 1, 0},
		"sender.log":           {3, 0, 0, 0},
		"sender.ssrf":          {3, 0, 0, 0},
		"sender.outbox":        {6, 0, 0, 0},
		"library.sign":         {5, 0, 1, 0},
		"library.verify":       {5, 0, 1, 0},
		"library.secret":       {0, 1, 0, 0},
		"library":              {2, 0, 1, 0},
	}
	got := map[string]counts{}
	for _, r := range load(t) {
		c := got[r.Group()]
		switch r.Level {
		case catalogue.Must:
			c.must++
		case catalogue.Should:
			c.should++
		case catalogue.May:
			c.may++
		case catalogue.ByProfile:
			c.profile++
		}
		got[r.Group()] = c
	}
	for group, c := range want {
		if got[group] != c {
			t.Errorf("%s has %+v, want %+v", group, got[group], c)
		}
	}
	for group := range got {
		if _, ok := want[group]; !ok {
			t.Errorf("group %s is not expected", group)
		}
	}
}

func TestEveryIDCanBeALabelOfATestRunner(t *testing.T) {
	pattern := regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9-]+)+$`)
	seen := map[string]bool{}
	for _, r := range load(t) {
		if !pattern.MatchString(r.ID) {
			t.Errorf("id %q does not match %s", r.ID, pattern)
		}
		if seen[r.ID] {
			t.Errorf("id %q stands twice", r.ID)
		}
		seen[r.ID] = true
	}
}

func TestEveryTextIsASentenceOfItsOwn(t *testing.T) {
	seen := map[string]string{}
	for _, r := range load(t) {
		if n := utf8.RuneCountInString(r.Statement); n > catalogue.MaxStatement {
			t.Errorf("%s: the statement has %d characters", r.ID, n)
		}
		for name, text := range map[string]string{"statement": r.Statement, "why": r.Why, "fix": r.Fix} {
			if len(text) < 20 || !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s %q is no sentence", r.ID, name, text)
			}
			if strings.Contains(text, "  ") || strings.Contains(text, "\n") {
				t.Errorf("%s: %s has doubled blanks or line ends", r.ID, name)
			}
			// Two fixes may agree ("nothing needs mending"), statements and
			// reasons may not: each row must say why it exists.
			if other, ok := seen[name+text]; ok && name != "fix" {
				t.Errorf("%s: %s is that of %s", r.ID, name, other)
			}
			seen[name+text] = r.ID
		}
		if reported := strings.HasPrefix(r.Statement, "Reported: "); reported != (r.Level == catalogue.May) {
			t.Errorf("%s: level %s, and the statement is %q: what is only reported must say so", r.ID, r.Level, r.Statement)
		}
	}
}

func TestEveryWordOfARowIsExplained(t *testing.T) {
	for _, r := range load(t) {
		for _, code := range r.Sources {
			if catalogue.SourceText(code) == "" {
				t.Errorf("%s: no text for source %q", r.ID, code)
			}
		}
		for _, need := range r.Needs {
			if catalogue.NeedText(need) == "" {
				t.Errorf("%s: no text for need %q", r.ID, need)
			}
		}
		for _, label := range r.Labels {
			if catalogue.LabelText(label) == "" {
				t.Errorf("%s: no text for label %q", r.ID, label)
			}
		}
	}
	if catalogue.NeedText("magic")+catalogue.SourceText("09")+catalogue.LabelText("quick") != "" {
		t.Error("unknown words have a text")
	}
}

func TestEveryCapabilityIsOneSentence(t *testing.T) {
	for _, need := range catalogue.Needs("") {
		text := catalogue.NeedText(need)
		if !strings.HasSuffix(text, ".") || strings.Count(text, ". ") > 0 {
			t.Errorf("need %s: %q is not one sentence", need, text)
		}
	}
}

// The capability schedule is offered instead of a clock, for the same rows; no
// row needs it by itself.
func TestEveryCapabilityIsNeededByARow(t *testing.T) {
	for _, part := range []string{catalogue.Receiver, catalogue.Sender, catalogue.Library} {
		var used []string
		for _, r := range catalogue.OfPart(part) {
			used = append(used, r.Needs...)
		}
		for _, need := range catalogue.Needs(part) {
			if need != catalogue.NeedSchedule && !slices.Contains(used, need) {
				t.Errorf("no row of the part %s needs %s", part, need)
			}
		}
	}
}

// TestAPartOfARuleIsMilderThanTheRule: the stricter part keeps the id, so that a
// list of ids never names the milder one by accident.
func TestAPartOfARuleIsMilderThanTheRule(t *testing.T) {
	rank := map[string]int{catalogue.Must: 3, catalogue.Should: 2, catalogue.May: 1}
	for _, r := range load(t) {
		segments := strings.Split(r.ID, ".")
		if len(segments) < 4 {
			continue
		}
		parent, ok := catalogue.Find(strings.Join(segments[:3], "."))
		if !ok {
			t.Errorf("%s is a part of a row that does not exist", r.ID)
			continue
		}
		lower := rank[r.LevelIn("")] < rank[parent.LevelIn("")]
		sameLevel := rank[r.LevelIn("")] == rank[parent.LevelIn("")]
		if !lower && (!sameLevel || len(r.Needs) <= len(parent.Needs)) {
			t.Errorf("%s (%s, needs %v) is not milder than %s (%s, needs %v)",
				r.ID, r.Level, r.Needs, parent.ID, parent.Level, parent.Needs)
		}
	}
}

func TestLevelIn(t *testing.T) {
	tests := []struct {
		name, id, profile, want string
	}{
		{"a plain level holds in every profile", "receiver.signature.rejects-unsigned", "delivery-envelope", catalogue.Must},
		{"a profile named by the row has its own level", "receiver.signature.accepts-any-in-list", "delivery-envelope", catalogue.Should},
		{"other profiles keep the row's level", "receiver.signature.accepts-any-in-list", "standard-webhooks", catalogue.Must},
		{"a stricter level is possible too", "sender.request.payload-shape", "delivery-envelope", catalogue.Must},
		{"where the profile decides, the default holds", "receiver.replay.rejects-future", "standard-webhooks", catalogue.Must},
		{"a default may be mild", "receiver.acknowledge.answer", "", catalogue.May},
		{"the row's profiles go before its default", "sender.disable.notifies.early", "delivery-envelope", catalogue.Should},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, ok := catalogue.Find(tt.id)
			if !ok {
				t.Fatalf("no row %s", tt.id)
			}
			if got := r.LevelIn(tt.profile); got != tt.want {
				t.Errorf("LevelIn(%q) = %s, want %s", tt.profile, got, tt.want)
			}
		})
	}
}

func TestCore(t *testing.T) {
	tests := []struct {
		name, id string
		want     bool
	}{
		{"a MUST without needs", "receiver.signature.accepts-valid", true},
		{"a MUST that runs alone", "receiver.limits.alive-after-abuse", true},
		{"a row whose default is MUST", "receiver.replay.rejects-future", true},
		{"a MUST with a need", "receiver.replay.exact-replay", false},
		{"a SHOULD", "receiver.replay.accepts-skew", false},
		{"a fact", "receiver.replay.clock", false},
		{"a MUST of a library that signs", "library.sign.exact-headers", true},
		{"a MUST of a library that knows another scheme beside", "library.sign.exact-headers.ed25519", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, ok := catalogue.Find(tt.id)
			if !ok {
				t.Fatalf("no row %s", tt.id)
			}
			if got := r.Core(); got != tt.want {
				t.Errorf("Core() of %s = %v, want %v", tt.id, got, tt.want)
			}
		})
	}
	r, _ := catalogue.Find("receiver.replay.rejects-future")
	if r.CoreAt(catalogue.Should) {
		t.Error("a row that the profile makes a SHOULD is in the core set")
	}
}

// TestNoRowOfTheCoreSetIsLeftOutByDefault: a plain run could never be conformant
// otherwise, only partial.
func TestNoRowOfTheCoreSetIsLeftOutByDefault(t *testing.T) {
	for _, r := range load(t) {
		if r.Core() && (r.Has(catalogue.LabelSlow) || r.Has(catalogue.LabelOnRequest)) {
			t.Errorf("%s is in the core set and has the labels %v", r.ID, r.Labels)
		}
	}
}

func TestFindKnowsWholeIDsOnly(t *testing.T) {
	for _, id := range []string{"", "receiver.replay", "replay.rejects-stale", "receiver.replay.*", "RECEIVER.REPLAY.CLOCK"} {
		if r, ok := catalogue.Find(id); ok {
			t.Errorf("Find(%q) = %s", id, r.ID)
		}
	}
}

func TestCallersCannotChangeTheCatalogueOfOthers(t *testing.T) {
	first := load(t)
	r, _ := catalogue.Find("receiver.signature.accepts-any-in-list")
	r.Profiles["delivery-envelope"] = "changed"
	r.Sources[0] = "changed"
	for i := range first {
		first[i].Sources[0] = "changed"
		first[i].ID = "changed"
	}
	for _, again := range load(t) {
		if again.ID == "changed" || again.Sources[0] == "changed" || again.Profiles["delivery-envelope"] == "changed" {
			t.Fatalf("row %s was changed from outside", again.ID)
		}
	}
}

func TestGroupsHaveTitlesAndAllTheRows(t *testing.T) {
	rows := map[string]int{}
	for _, r := range load(t) {
		rows[r.Group()]++
	}
	for _, group := range catalogue.Groups() {
		if group.Title == "" || rows[group.Name] == 0 {
			t.Errorf("group %q has the title %q and %d rows", group.Name, group.Title, rows[group.Name])
		}
		delete(rows, group.Name)
	}
	if len(rows) > 0 {
		t.Errorf("groups without a heading: %v", rows)
	}
}

func TestOfPartDividesTheCatalogue(t *testing.T) {
	total := 0
	for _, part := range []string{catalogue.Receiver, catalogue.Sender, catalogue.Library} {
		rows := catalogue.OfPart(part)
		total += len(rows)
		for _, r := range rows {
			if r.Part() != part {
				t.Errorf("OfPart(%s) holds %s", part, r.ID)
			}
		}
	}
	if all := catalogue.All(); total != len(all) {
		t.Errorf("the parts have %d rows, the catalogue %d", total, len(all))
	}
}
