package receiver

import (
	"slices"
	"strings"
	"testing"

	"github.com/whconform/whconform/conformance/evidence"
	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/wire"
)

const plainEvent = `{"type":"invoice.paid","timestamp":"2026-01-02T03:04:05Z","data":{"id":"in_1","amount":1250}}`

// spelled is the transcript of a receiver that refuses the spellings that
// refuses tells.
func spelled(t *testing.T, refuses func(body []byte) bool) *evidence.Transcript {
	t.Helper()
	tr := recorded(labelled(controlLabel, answer(200)))
	for _, s := range fp.Spellings() {
		body, err := s.Spell([]byte(plainEvent))
		if err != nil {
			t.Fatal(err)
		}
		x := answer(200)
		if refuses(body) {
			x = answer(401)
		}
		x.Label, x.Request.Body = spelledLabel+s.What, body
		tr.Exchanges = append(tr.Exchanges, x)
	}
	return tr
}

// The library is named from the bodies that were refused, for each library that
// writes some of them otherwise. Where two write the same bodies otherwise, the
// more common one is named.
func TestTheLibraryBetweenIsNamedFromWhatItChanges(t *testing.T) {
	for _, lib := range fp.Serializers() {
		t.Run(lib.Name, func(t *testing.T) {
			tr := spelled(t, lib.Changes)
			findings := judgeExactBytes(tr)
			if len(findings) == 0 {
				t.Fatal("nothing was found")
			}
			refused := 0
			for _, x := range tr.Exchanges {
				if !x.OK() {
					refused++
				}
			}
			if len(findings) != refused {
				t.Errorf("%d findings for %d refused bodies", len(findings), refused)
			}
			named, ok := between(tr)
			if !ok {
				t.Fatalf("no library is named for what %s changes", lib.Name)
			}
			for _, x := range tr.Exchanges[1:] {
				if named.Changes(x.Request.Body) != lib.Changes(x.Request.Body) {
					t.Errorf("%s is named, which differs on %q", named.Name, x.Label)
				}
			}
			for _, f := range findings {
				if !strings.Contains(f.Cause, named.Library) || f.Fix != named.RawBody {
					t.Errorf("the finding names another: %+v", f)
				}
			}
		})
	}
}

func TestNoLibraryIsNamedWithoutGoodReason(t *testing.T) {
	for _, tt := range []struct {
		name    string
		refuses func([]byte) bool
	}{
		{"one body in an unlikely place", func(b []byte) bool {
			return strings.Contains(string(b), `"null"`) || strings.Contains(string(b), ":null}")
		}},
		{"what is not ASCII and what holds a digit", func(b []byte) bool { return strings.Contains(string(b), "e2") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			findings := judgeExactBytes(spelled(t, tt.refuses))
			if len(findings) == 0 {
				t.Fatal("nothing was found")
			}
			for _, f := range findings {
				if !strings.Contains(f.Cause, "Something between the wire and the check") || f.Fix != "" {
					t.Errorf("got %+v", f)
				}
			}
		})
	}
}

func TestExactBytesAreRightWhenAllAreAccepted(t *testing.T) {
	if findings := judgeExactBytes(spelled(t, func([]byte) bool { return false })); len(findings) > 0 {
		t.Errorf("got %+v", findings)
	}
}

func TestAThrottledSpellingIsNoEvidence(t *testing.T) {
	tr := spelled(t, func([]byte) bool { return false })
	tr.Exchanges[3].Response = &wire.Response{Status: 429}
	if findings := judgeExactBytes(tr); len(findings) > 0 {
		t.Errorf("got %+v", findings)
	}
	if _, ok := between(tr); ok {
		t.Error("a library is named")
	}
}

func TestSpellingsHaveLabelsOfTheirOwn(t *testing.T) {
	var labels []string
	for _, s := range fp.Spellings() {
		labels = append(labels, s.What)
	}
	slices.Sort(labels)
	if len(slices.Compact(labels)) != len(fp.Spellings()) {
		t.Error("two spellings have one label")
	}
}
