package catalogue_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/whconform/whconform/conformance/catalogue"
)

// selection is a small catalogue, in an order that is not that of the alphabet.
func selection() []catalogue.Requirement {
	var rows []catalogue.Requirement
	for _, id := range []string{
		"receiver.replay.rejects-stale", "receiver.replay.clock", "receiver.rotation.drops-retired",
		"receiver.acknowledge.burst", "receiver.acknowledge.burst.fast",
		"sender.rotation.twice", "library.no-json",
	} {
		rows = append(rows, catalogue.Requirement{ID: id})
	}
	return rows
}

func TestSelect(t *testing.T) {
	tests := []struct {
		name     string
		patterns []string
		want     string
	}{
		{"no pattern selects nothing", nil, ""},
		{"an id selects itself", []string{"receiver.replay.clock"}, "receiver.replay.clock"},
		{"an id does not select its milder part", []string{"receiver.acknowledge.burst"}, "receiver.acknowledge.burst"},
		{"a star stands for nothing too", []string{"receiver.acknowledge.burst*"}, "receiver.acknowledge.burst receiver.acknowledge.burst.fast"},
		{"a star crosses dots", []string{"receiver*fast"}, "receiver.acknowledge.burst.fast"},
		{"a star in front", []string{"*.clock"}, "receiver.replay.clock"},
		{"several stars", []string{"*e*.r*e*"}, "receiver.replay.rejects-stale receiver.replay.clock receiver.rotation.drops-retired sender.rotation.twice"},
		{"a question mark stands for one character", []string{"receiver.replay.cl?ck"}, "receiver.replay.clock"},
		{"a question mark stands for a dot", []string{"library?no-json"}, "library.no-json"},
		{"a group", []string{"receiver.replay"}, "receiver.replay.rejects-stale receiver.replay.clock"},
		{"a group without its part", []string{"replay"}, "receiver.replay.rejects-stale receiver.replay.clock"},
		{"a group that two parts have", []string{"rotation"}, "receiver.rotation.drops-retired sender.rotation.twice"},
		{"a part", []string{"sender"}, "sender.rotation.twice"},
		{"a part that is its own group", []string{"library"}, "library.no-json"},
		{"commas and repetition mean the same", []string{"sender.*,library.*", "replay"}, "receiver.replay.rejects-stale receiver.replay.clock sender.rotation.twice library.no-json"},
		{"each id once, in the order of the catalogue", []string{"library", "replay", "*.clock", "*.clock"}, "receiver.replay.rejects-stale receiver.replay.clock library.no-json"},
		{"blanks around commas do not count", []string{" sender ,\tlibrary "}, "sender.rotation.twice library.no-json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ids, err := catalogue.Select(selection(), tt.patterns)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(ids, " "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSelectRefusesWhatSelectsNothing(t *testing.T) {
	tests := []struct {
		name     string
		patterns []string
		want     string
	}{
		{"an empty value", []string{""}, "pattern 1, column 1: the pattern is empty"},
		{"an empty piece", []string{"replay", "sender,,library"}, "pattern 2, column 8: the pattern is empty"},
		{"a comma at the end", []string{"replay,"}, "pattern 1, column 8: the pattern is empty"},
		{"a character that stands in no id", []string{"library, receiver.[a-z]*"}, `pattern 1, column 19: '[' in "receiver.[a-z]*" stands in no id`},
		{"a character outside ASCII, counted as one", []string{"é,replay/x"}, `pattern 1, column 9: '/' in "replay/x" stands in no id`},
		{"upper case", []string{"Replay"}, `pattern 1, column 1: 'R' in "Replay": ids are in lower case; did you mean "replay"?`},
		{"nothing matches", []string{"payment"}, `pattern 1, column 1: "payment" matches no requirement`},
		{"a slip in a group", []string{"replya"}, `"replya" matches no requirement; did you mean "receiver.replay"`},
		{"a slip in a glob", []string{"receiver.rotatoin.*"}, `matches no requirement; did you mean "receiver.rotation"`},
		{"a slip in an id", []string{"receiver.replay.reject-stale"}, `did you mean "receiver.replay.rejects-stale"?`},
		{"a slip in an id without its part", []string{"replay.clok"}, `did you mean "receiver.replay.clock"?`},
		{"a prefix is not enough", []string{"receiver.rep"}, "matches no requirement"},
		{"too long", []string{strings.Repeat("a", 201)}, "the pattern has 201 bytes, at most 200 are allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ids, err := catalogue.Select(selection(), tt.patterns)
			if err == nil {
				t.Fatalf("selected %v", ids)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error does not contain %q:\n%v", tt.want, err)
			}
			var place *catalogue.PatternError
			if !errors.As(err, &place) {
				t.Errorf("the error is no PatternError: %T", err)
			}
		})
	}
}

func TestSelectReportsAllFaultsAtOnce(t *testing.T) {
	_, err := catalogue.Select(selection(), []string{"a b", "payment,", "replay"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"pattern 1, column 2", "pattern 2, column 1", "pattern 2, column 9"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not contain %q:\n%v", want, err)
		}
	}
}

func TestMatchSelectsFromTheWholeCatalogue(t *testing.T) {
	all, err := catalogue.Match([]string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	rows := load(t)
	if len(all) != len(rows) {
		t.Errorf("* selects %d of %d", len(all), len(rows))
	}
	for _, group := range catalogue.Groups() {
		ids, err := catalogue.Match([]string{group.Name})
		if err != nil {
			t.Error(err)
			continue
		}
		for _, r := range rows {
			in := r.Group() == group.Name || r.Part() == group.Name
			if in != slices.Contains(ids, r.ID) {
				t.Errorf("the group %s: %s selected is %v", group.Name, r.ID, !in)
			}
		}
	}
}

// FuzzMatch compares with a regular expression, and with the promise that there
// is either an id or an error.
func FuzzMatch(f *testing.F) {
	for _, seed := range []string{"*", "receiver.*", "re?eiver.*.burst*", "replay", "a,b", ",", "*a*a*a*a*b", "É", "\xff", "receiver.signature.accepts-valid"} {
		f.Add(seed)
	}
	rows := catalogue.All()
	f.Fuzz(func(t *testing.T, pattern string) {
		ids, err := catalogue.Match([]string{pattern})
		if err != nil {
			if err.Error() == "" || len(ids) > 0 {
				t.Fatalf("error %q with ids %v", err, ids)
			}
			return
		}
		if len(ids) == 0 {
			t.Fatalf("%q selects nothing without an error", pattern)
		}
		if strings.Contains(pattern, ",") || !strings.ContainsAny(pattern, "*?") {
			return
		}
		quoted := regexp.QuoteMeta(strings.Trim(pattern, " \t"))
		quoted = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(quoted)
		expression := regexp.MustCompile("^" + quoted + "$")
		var want []string
		for _, r := range rows {
			if expression.MatchString(r.ID) {
				want = append(want, r.ID)
			}
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%q selects %v, want %v", pattern, ids, want)
		}
	})
}

func TestSuggest(t *testing.T) {
	tests := []struct {
		name, id, want string // want: the first suggestion
	}{
		{"a missing letter", "receiver.replay.reject-stale", "receiver.replay.rejects-stale"},
		{"swapped letters", "reciever.signature.accepts-vaild", "receiver.signature.accepts-valid"},
		{"another case", "Receiver.Replay.Clock", "receiver.replay.clock"},
		{"without its part", "duplicate.two-instances", "receiver.duplicate.two-instances"},
		{"without its group", "two-dispatchers", "sender.outbox.two-dispatchers"},
		{"a piece of it", "redirect", "receiver.acknowledge.no-redirect"},
		{"blanks around it", "  sender.retry.jitter ", "sender.retry.jitter"},
		{"nothing like it", "coffee-and-cake", ""},
		{"nothing at all", "", ""},
		{"one letter", "x", ""},
		{"far too long", strings.Repeat("receiver.", 1000), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := catalogue.Suggest(tt.id)
			if len(got) > 3 {
				t.Errorf("%d suggestions", len(got))
			}
			first := ""
			if len(got) > 0 {
				first = got[0]
			}
			if first != tt.want {
				t.Errorf("Suggest(%q) = %v, want %q first", tt.id, got, tt.want)
			}
		})
	}
}

func TestSuggestFindsEveryIDFromASlip(t *testing.T) {
	for _, r := range load(t) {
		slip := r.ID[:len(r.ID)/2] + r.ID[len(r.ID)/2+1:]
		if got := catalogue.Suggest(slip); !slices.Contains(got, r.ID) {
			t.Errorf("Suggest(%q) = %v, want %s among them", slip, got, r.ID)
		}
	}
}

func ExampleMatch() {
	ids, err := catalogue.Match([]string{"receiver.transport, receiver.acknowledge.burst*"})
	if err != nil {
		fmt.Println(err)
	}
	for _, id := range ids {
		fmt.Println(id)
	}
	// Output:
	// receiver.acknowledge.burst
	// receiver.acknowledge.burst.fast
	// receiver.transport.https
	// receiver.transport.https.public
}
