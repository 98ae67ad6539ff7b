package fakeprovider

import (
	"bytes"
	"slices"
)

// explainThreshold is the fit below which [Explain] names nobody: of the bodies
// that were refused or should have been, three in four. A serializer that a
// receiver's other habits hide by a body or two is still found; one that has a
// single escape in common is not.
const explainThreshold = 0.75

// Fit is how well a serializer explains which bodies a receiver refused.
type Fit struct {
	Serializer Serializer

	// Score is 1 when the serializer changes exactly the bodies that were
	// refused, 0 when it changes none of them: the bodies in both sets over
	// those in either.
	Score float64

	Unexplained []string // refused, though the serializer leaves them as they are
	Unexpected  []string // taken, though the serializer changes them
}

// Explain names the serializer between the wire and a receiver's signature
// check, from the names of the bodies that it refused and those that it took,
// all of them authentic; corpus holds their bytes. A name without bytes is left
// out. ok is false when no serializer fits well enough.
func Explain(failing, passing []string, corpus map[string][]byte) (s Serializer, ok bool) {
	fits := Fits(failing, passing, corpus)
	if len(fits) == 0 || fits[0].Score < explainThreshold {
		return Serializer{}, false
	}
	return fits[0].Serializer, true
}

// Fits ranks the serializers by how well they explain which bodies were
// refused, the best first; equals in the order of [Serializers]. Those that
// explain nothing are left out.
func Fits(failing, passing []string, corpus map[string][]byte) []Fit {
	var out []Fit
	for _, s := range Serializers() {
		fit, both := Fit{Serializer: s}, 0
		for _, name := range failing {
			body, known := corpus[name]
			switch {
			case !known:
			case s.Changes(body):
				both++
			default:
				fit.Unexplained = append(fit.Unexplained, name)
			}
		}
		for _, name := range passing {
			if body, known := corpus[name]; known && s.Changes(body) {
				fit.Unexpected = append(fit.Unexpected, name)
			}
		}
		if both == 0 {
			continue
		}
		fit.Score = float64(both) / float64(both+len(fit.Unexplained)+len(fit.Unexpected))
		out = append(out, fit)
	}
	slices.SortStableFunc(out, func(a, b Fit) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	return out
}

// Changes tells whether a signature over body no longer verifies once the
// serializer has been at it: it writes other bytes, or cannot read it.
func (s Serializer) Changes(body []byte) bool {
	out, err := s.respell(body)
	return err != nil || !bytes.Equal(out, body)
}
