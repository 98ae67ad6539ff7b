package mutant

import (
	"net/http"
	"slices"
	"sync"

	"github.com/whconform/whconform/reference/receiver"
	"github.com/whconform/whconform/reference/signature"
)

// rotationMutants break receiver.rotation.*.
func rotationMutants() []Mutant {
	const both = "receiver.rotation.accepts-old-and-new"
	isHMAC := func(k signature.Key) bool { return k.Kind() == signature.HMAC }
	return []Mutant{
		{
			Name: "knows-one-secret", Doc: "It is configured with the current secret alone while the old one still signs.",
			Fails: []string{both}, Needs: []string{TwoSecrets},
			New: reference(func(r *receiver.Config) {
				current := slices.IndexFunc(r.Keys, isHMAC)
				r.Keys = slices.Clone(r.Keys)
				for i := len(r.Keys) - 1; i > current; i-- {
					if isHMAC(r.Keys[i]) {
						r.Keys = slices.Delete(r.Keys, i, i+1)
					}
				}
			}),
		},
		{
			Name: "keeps-retired-secrets", Doc: "It never forgets a secret that it was once configured with.",
			Fails: []string{"receiver.rotation.drops-retired"}, Needs: []string{TwoSecrets, SecondConfiguration},
			New: remembering(),
		},
	}
}

// remembering makes receivers that know the secrets of those made before.
func remembering() maker {
	var mu sync.Mutex
	var known []signature.Key
	return func(c Config) (http.Handler, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(c.Keys) > 0 {
			known = append(known, c.Keys...)
			c.Keys = slices.Concat(c.Keys, known)
		}
		return reference()(c)
	}
}
