package mutant

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/whconform/whconform/reference/receiver"
)

// duplicateMutants break receiver.duplicate.*, as far as the wire shows it.
func duplicateMutants() []Mutant {
	const (
		duplicate  = "receiver.duplicate.acks-duplicate"
		retry      = "receiver.duplicate.acks-retry"
		concurrent = "receiver.duplicate.concurrent-copies"
		once       = "receiver.duplicate.processes-once"
		distinct   = "receiver.duplicate.distinct-events"
		forged     = "receiver.duplicate.forgery-does-not-claim-id"
		replay     = "receiver.replay.exact-replay"
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
			Name: "works-on-every-copy", Doc: "It remembers no ids, so every copy has its effect.",
			Fails: []string{once, concurrent + ".once", replay},
			New: storing(func(j *journal) receiver.Store {
				return adding(func(m receiver.Message) (bool, error) { return true, j.effect(m.ID) })
			}),
		},
		{
			Name: "looks-then-inserts", Doc: "It looks for the id and inserts it in two steps, and copies that meet in between all have their effect.",
			Fails: []string{concurrent + ".once"},
			New: storing(func(j *journal) receiver.Store {
				var known sync.Map
				return adding(func(m receiver.Message) (bool, error) {
					if _, seen := known.Load(m.ID); seen {
						return false, nil
					}
					time.Sleep(20 * time.Millisecond) // a query's time: long enough for copies to meet
					known.Store(m.ID, true)
					return true, j.effect(m.ID)
				})
			}),
		},
		{
			Name: "tells-copies-by-the-body", Doc: "It takes an event with the same body as an earlier one for its copy.",
			Fails: []string{distinct},
			New: storing(func(j *journal) receiver.Store {
				var known sync.Map
				return adding(func(m receiver.Message) (bool, error) {
					if _, seen := known.LoadOrStore(string(m.Body), true); seen {
						return false, nil
					}
					return true, j.effect(m.ID)
				})
			}),
		},
		{
			Name: "tells-copies-by-the-signature", Doc: "It takes an event under a new signature for a new event, as every retry bears one.",
			Fails: []string{once},
			New: func(c Config) (http.Handler, error) {
				var known sync.Map
				h, err := storing(func(*journal) receiver.Store {
					return adding(func(receiver.Message) (bool, error) { return true, nil })
				})(c)
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					id, signed := req.Header.Get("webhook-id"), req.Header.Get("webhook-signature")
					h.ServeHTTP(&answer{ResponseWriter: w, change: func(status int) int {
						if _, seen := known.LoadOrStore(signed, true); status == http.StatusOK && !seen {
							_ = c.journal.effect(id)
						}
						return status
					}}, req)
				}), err
			},
		},
		{
			Name: "never-works", Doc: "It acknowledges and never comes to work on what it took in.",
			Fails: []string{once, concurrent + ".once", distinct, forged + ".processed", replay},
			New: storing(func(*journal) receiver.Store {
				return adding(func(receiver.Message) (bool, error) { return true, nil })
			}),
		},
		{
			Name: "drops-what-was-forged-first", Doc: "It remembers the ids of forgeries too, and takes the true event for a copy.",
			Fails: []string{forged + ".processed"},
			New: func(c Config) (http.Handler, error) {
				var claimed sync.Map
				store := func(r *receiver.Config) {
					r.Store = adding(func(m receiver.Message) (bool, error) {
						if _, taken := claimed.Load(m.ID); taken {
							return false, nil
						}
						added, err := c.journal.take(m.ID)
						if added && err == nil {
							err = c.journal.effect(m.ID)
						}
						return added, err
					})
				}
				return reference(store, verifying(func(v check) error {
					err := v.right()
					if err != nil {
						claimed.Store(v.id(), true)
					}
					return err
				}))(c)
			},
		},
		{
			Name: "conflicts-on-a-copy", Doc: "It answers 409 to an event that it has already.",
			Fails: []string{duplicate, retry, concurrent, replay},
			New:   again(http.StatusConflict, func(bool) bool { return true }),
		},
		{
			Name: "refuses-a-second-use", Doc: "It takes a signature that it has seen before for an attack.",
			Fails: []string{duplicate, concurrent, replay},
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
			Fails: []string{forged, forged + ".processed"},
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
