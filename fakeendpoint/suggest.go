package fakeendpoint

import "strings"

// nearest is the word of a list that somebody may have meant, or empty.
func nearest(word string, list []string) string {
	best, distance := "", len(word)/3+2 // one slip in three letters, and one more must not be enough
	for _, w := range list {
		if d := editDistance(strings.ToLower(word), w); d < distance && d < len(w) {
			best, distance = w, d
		}
	}
	return best
}

// editMax bounds the words that are compared: longer ones are no slip of the
// pen, and the comparison is quadratic.
const editMax = 40

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
