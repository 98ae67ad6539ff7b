package mutant

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// duplicateMutants break receiver.duplicate.*, as far as the wire shows it.
func duplicateMutants() []Mutant {
	const (
		duplicate  = "receiver.duplicate.acks-duplicate"
		retry      = "receiver.duplicate.acks-retry"
		concurrent = "receiver.duplicate.concurrent-copies"
	)
	// again changes the answer to an event that was accepted before; same tells
	// whether it came under the same signature.
	again := func(status int, when func(same bool) bool) maker {
		return answering(func(Config) func(*http.Request, []byte, int) int {
			var seen sync.Map // id to its first signature
			return func(req *http.Request, _ []byte, right int) int {
				if right != http.StatusOK {
					return right
				}
				sig := req.Header.Get("webhook-signature")
				first, known := seen.LoadOrStore(req.Header.Get("webhook-id"), sig)
				if known && when(first == sig) {
					return status
				}
				return right
			}
		})
	}
	return []Mutant{
		{
			Name: "conflicts-on-a-copy", Doc: "It answers 409 to an event that it has already.",
			Fails: []string{duplicate, retry, concurrent},
			New:   again(http.StatusConflict, func(bool) bool { return true }),
		},
		{
			Name: "refuses-a-second-use", Doc: "It takes a signature that it has seen before for an attack.",
			Fails: []string{duplicate, concurrent},
			New:   again(http.StatusForbidden, func(same bool) bool { return same }),
		},
		{
			Name: "refuses-a-retry", Doc: "It answers 422 to an event that it has already, if it is signed anew.",
			Fails: []string{retry},
			New:   again(http.StatusUnprocessableEntity, func(same bool) bool { return !same }),
		},
		{
			Name: "races-with-itself", Doc: "It looks for the id and inserts it in two steps, and the error of the second becomes a 500.",
			Fails: []string{concurrent},
			New: around(func(_ Config, next http.Handler) http.HandlerFunc {
				var inserting sync.Map
				return func(w http.ResponseWriter, req *http.Request) {
					id := req.Header.Get("webhook-id")
					if _, taken := inserting.LoadOrStore(id, true); taken && id != "" {
						w.WriteHeader(http.StatusInternalServerError)
						return
					}
					defer inserting.Delete(id)
					pause(req, 20*time.Millisecond) // long enough for copies to meet
					next.ServeHTTP(w, req)
				}
			}),
		},
		{
			Name: "remembers-before-it-verifies", Doc: "It refuses an id that it has seen before, also where that was a forgery.",
			Fails: []string{"receiver.duplicate.forgery-does-not-claim-id"},
			New: func(c Config) (http.Handler, error) {
				var claimed sync.Map
				return reference(verifying(func(v check) error {
					err := v.right()
					if err != nil {
						claimed.Store(v.id(), true)
						return err
					}
					if _, taken := claimed.Load(v.id()); taken {
						return errors.New("this id was used before")
					}
					return nil
				}))(c)
			},
		},
	}
}
