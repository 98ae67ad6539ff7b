package mutant

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/whconform/whconform/reference/receiver"
)

// duplicateMutants break receiver.duplicate.*.
func duplicateMutants() []Mutant {
	const (
		duplicate  = "receiver.duplicate.acks-duplicate"
		retry      = "receiver.duplicate.acks-retry"
		concurrent = "receiver.duplicate.concurrent-copies"
		once       = "receiver.duplicate.processes-once"
		distinct   = "receiver.duplicate.distinct-events"
		forged     = "receiver.duplicate.forgery-does-not-claim-id"
		replay     = "receiver.replay.exact-replay"
		instances  = "receiver.duplicate.two-instances"
		long       = "receiver.duplicate.remembers"
		failed     = "receiver.duplicate.failed-is-not-lost"
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
	return slices.Concat(failureMutants(), retentionMutants(), []Mutant{
		{
			Name: "works-on-every-copy", Doc: "It remembers no ids, so every copy has its effect.",
			Fails: []string{once, concurrent + ".once", replay, long, instances},
			New: storing(func(c Config) receiver.Store {
				return adding(func(m receiver.Message) (bool, error) { return true, business{}.work(c, m) })
			}),
		},
		{
			Name: "looks-then-inserts", Doc: "It looks for the id and inserts it in two steps, and copies that meet in between all have their effect.",
			Fails: []string{concurrent + ".once", instances},
			New: storing(func(c Config) receiver.Store {
				var known sync.Map
				return adding(func(m receiver.Message) (bool, error) {
					if _, seen := known.Load(m.ID); seen {
						return false, nil
					}
					time.Sleep(20 * time.Millisecond) // a query's time: long enough for copies to meet
					known.Store(m.ID, true)
					return true, business{}.work(c, m)
				})
			}),
		},
		{
			Name: "tells-copies-by-the-body", Doc: "It takes an event with the same body as an earlier one for its copy.",
			Fails: []string{distinct, instances}, // it has the bodies in memory
			New: storing(func(c Config) receiver.Store {
				var known sync.Map
				return adding(func(m receiver.Message) (bool, error) {
					if _, seen := known.LoadOrStore(string(m.Body), true); seen {
						return false, nil
					}
					return true, business{}.work(c, m)
				})
			}),
		},
		{
			Name: "tells-copies-by-the-signature", Doc: "It takes an event under a new signature for a new event, as every retry bears one.",
			Fails: []string{once, long, instances},
			New: func(c Config) (http.Handler, error) {
				var known sync.Map
				h, err := storing(func(Config) receiver.Store {
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
			Fails: []string{once, concurrent + ".once", distinct, forged + ".processed", replay, failed, instances},
			New: storing(func(Config) receiver.Store {
				return adding(func(receiver.Message) (bool, error) { return true, nil })
			}),
		},
		{
			Name: "drops-what-was-forged-first", Doc: "It remembers the ids of forgeries too, and takes the true event for a copy.",
			Fails: []string{forged + ".processed"},
			New: func(c Config) (http.Handler, error) {
				var claimed sync.Map
				right := business{}.store(c)
				store := func(r *receiver.Config) {
					r.Store = adding(func(m receiver.Message) (bool, error) {
						if _, taken := claimed.Load(m.ID); taken {
							return false, nil
						}
						return right.Add(context.Background(), m)
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
			Name: "remembers-ids-in-each-instance", Doc: "It remembers ids in the memory of each process, so two instances both work on an event.",
			Fails: []string{instances},
			New: storing(func(c Config) receiver.Store {
				var known sync.Map
				return adding(func(m receiver.Message) (bool, error) {
					if _, seen := known.LoadOrStore(m.ID, true); seen {
						return false, nil
					}
					return true, business{}.work(c, m)
				})
			}),
		},
		{
			Name: "races-between-instances", Doc: "It looks for the id and inserts it in two steps, under a lock that only its own process knows.",
			Fails: []string{instances},
			New: storing(func(c Config) receiver.Store {
				return lockedByID(c, func(m receiver.Message, added bool) (bool, error) { return true, business{}.work(c, m) })
			}),
		},
		{
			Name: "conflicts-between-instances", Doc: "An id that another instance inserts after it has looked becomes an error that it does not catch.",
			Fails: []string{instances},
			New: storing(func(c Config) receiver.Store {
				return lockedByID(c, func(m receiver.Message, added bool) (bool, error) {
					if !added {
						panic("duplicate key value violates unique constraint")
					}
					return true, business{}.work(c, m)
				})
			}),
		},
		{
			Name: "conflicts-on-a-copy", Doc: "It answers 409 to an event that it has already.",
			Fails: []string{duplicate, retry, concurrent, replay, long, instances},
			New:   again(http.StatusConflict, func(bool) bool { return true }),
		},
		{
			Name: "refuses-a-second-use", Doc: "It takes a signature that it has seen before for an attack.",
			Fails: []string{duplicate, concurrent, replay, instances},
			New:   again(http.StatusForbidden, func(same bool) bool { return same }),
		},
		{
			Name: "refuses-a-retry", Doc: "It answers 422 to an event that it has already, if it is signed anew.",
			Fails: []string{retry, long},
			New:   again(http.StatusUnprocessableEntity, func(same bool) bool { return !same }),
		},
		{
			Name: "races-with-itself", Doc: "It looks for the id and inserts it in two steps, and the error of the second becomes a 500.",
			Fails: []string{concurrent, instances},
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
	})
}

// lockedByID looks for the id and inserts it in two steps, one message of an id
// at a time in this instance. then is told whether the insertion added it.
func lockedByID(c Config, then func(m receiver.Message, added bool) (bool, error)) receiver.Store {
	var locks sync.Map
	return adding(func(m receiver.Message) (bool, error) {
		lock, _ := locks.LoadOrStore(m.ID, new(sync.Mutex))
		lock.(*sync.Mutex).Lock()
		defer lock.(*sync.Mutex).Unlock()
		if c.journal.knows(m.ID) {
			return false, nil
		}
		time.Sleep(20 * time.Millisecond) // a query's time: long enough for instances to meet
		added, err := c.journal.take(m.ID)
		if err != nil {
			return false, err
		}
		return then(m, added)
	})
}

// failureMutants lose an event whose work fails once.
func failureMutants() []Mutant {
	fails := []string{"receiver.duplicate.failed-is-not-lost"}
	failing := func(failed func(j *journal, m receiver.Message, again func()) error) maker {
		return storing(business{failed: failed}.store)
	}
	return []Mutant{
		{
			Name: "drops-what-failed", Doc: "It logs an error of its work and takes the event for done.", Fails: fails,
			New: failing(func(*journal, receiver.Message, func()) error { return nil }),
		},
		{
			Name: "gives-up-what-failed", Doc: "It lets go of an event whose work failed, and would do it if a copy came.", Fails: fails,
			New: failing(func(j *journal, m receiver.Message, _ func()) error { j.drop(m.ID); return nil }),
		},
		{
			Name: "swallows-the-copy-of-what-failed", Doc: "It lists an event whose work failed, and takes a copy for one of an event that is done.", Fails: fails,
			New: failing(func(j *journal, m receiver.Message, _ func()) error { j.list(m.ID); return nil }),
		},
		{
			Name: "remembers-what-it-could-not-do", Doc: "An error of its work becomes a 500, and the id is remembered all the same.", Fails: fails,
			New: failing(func(*journal, receiver.Message, func()) error { panic("connection reset by peer") }),
		},
	}
}

// retentionMutants forget ids too early.
func retentionMutants() []Mutant {
	fails := []string{"receiver.duplicate.remembers"}
	return []Mutant{
		{
			Name: "forgets-ids-after-an-hour", Doc: "It remembers ids for an hour.", Fails: fails,
			New: storing(business{remember: time.Hour}.store),
		},
		{
			Name: "forgets-ids-after-a-day", Doc: "It remembers ids for a day, though the provider tries for three.", Fails: fails,
			New: storing(business{remember: 24 * time.Hour}.store),
		},
	}
}
