package catalogue

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of the search for a likeness.
const (
	// maxSuggestions keeps an error on a line or two.
	maxSuggestions = 3
	// maxQuery bounds the work on hostile input: no id is half as long, and the
	// distance costs the product of both lengths.
	maxQuery = 120
	// minFragment is the shortest part of an id that is looked up as a part:
	// shorter ones ("id", "by") stand in too many.
	minFragment = 4
)

// Suggest returns up to three ids that the given one may have meant, the
// likeliest first: with a typing error, without its part ("replay.rejects-stale")
// or group, or a piece of it ("stale"). None where nothing is near.
func Suggest(id string) []string {
	return nearest(id, idCandidates(All()))
}

// candidate is a name that may be suggested, with the forms in which people
// write it.
type candidate struct {
	name  string
	forms []string
}

func idCandidates(rows []Requirement) []candidate {
	candidates := make([]candidate, 0, len(rows))
	for _, row := range rows {
		candidates = append(candidates, candidate{row.ID, []string{
			row.ID,
			strings.TrimPrefix(row.ID, row.Part()+"."),
			strings.TrimPrefix(row.ID, row.Group()+"."),
		}})
	}
	return candidates
}

// nearest orders the candidates that are near enough by their distance; equals
// keep their order.
func nearest(query string, candidates []candidate) []string {
	query = strings.ToLower(strings.TrimSpace(query))
	if query == "" || len(query) > maxQuery {
		return nil
	}
	type hit struct {
		name  string
		score int
	}
	var hits []hit
	for _, c := range candidates {
		if score, ok := likeness(query, c.forms); ok {
			hits = append(hits, hit{c.name, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return a.score - b.score })
	var names []string
	for _, h := range hits[:min(len(hits), maxSuggestions)] {
		names = append(names, h.name)
	}
	return names
}

// likeness returns the smallest distance between the query and one of the forms,
// and whether it is small enough to be a slip: a quarter of what was written,
// at least 2 and at most 6 edits.
func likeness(query string, forms []string) (score int, ok bool) {
	limit := min(max(2, len(query)/4), 6)
	best := limit + 1
	for _, form := range forms {
		// Every character too many or too few is an edit: most forms are out
		// before the costly comparison.
		if max(len(form)-len(query), len(query)-len(form)) <= limit {
			best = min(best, distance(query, form))
		}
		if len(query) >= minFragment && strings.Contains(form, query) {
			// Less likely than the whole name with one slip, likelier than two.
			best = min(best, 2)
		}
	}
	// A name changed in as many places as it has letters is another name.
	return best, best <= limit && best < len(query)
}

// distance counts the edits between two texts, byte by byte: insertions,
// deletions, replacements and swaps of neighbours.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// didYouMean is the end of an error about a word that is not one of the known;
// empty where none is near.
func didYouMean(word string, known []string) string {
	candidates := make([]candidate, 0, len(known))
	for _, name := range known {
		candidates = append(candidates, candidate{name, []string{strings.ToLower(name)}})
	}
	return askMeant(nearest(word, candidates))
}

func askMeant(names []string) string {
	if len(names) == 0 {
		return ""
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return "; did you mean " + strings.Join(quoted, " or ") + "?"
}
