package profile

import (
	"fmt"
	"strings"
)

// Nearest is the word of a list that somebody may have meant, as the list has
// it, or empty where none is near: one slip in three letters, at least one. Of
// equals the first counts. A word in the wrong case is as near as can be.
func Nearest(word string, known []string) string {
	best, distance := "", len(word)/3+1
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), strings.ToLower(k)); d <= distance && d < max(len(k), 1) {
			if best == "" || d < distance {
				best, distance = k, d
			}
		}
	}
	return best
}

// didYouMean is `, did you mean "stripe"?` where a known word is near, else
// empty.
func didYouMean(word string, known []string) string {
	best := Nearest(word, known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// editMax bounds the words that are compared: longer ones are no slip of the
// pen, and the comparison is quadratic.
const editMax = 64

// editDistance counts the letters to change, add, drop or swap with their
// neighbour to make b from a.
func editDistance(a, b string) int {
	if len(a) > editMax || len(b) > editMax {
		return editMax
	}
	older, old := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old = old, row
	}
	return old[len(b)]
}
