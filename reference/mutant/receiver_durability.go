package mutant

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/whconform/whconform/reference/receiver"
)

// later is how long the mutants of this file put off what they should have done
// before they answered: longer than a suite takes to kill them.
const later = 500 * time.Millisecond

// durabilityMutants break receiver.durability.*: a 2xx of theirs is no promise.
// They are run as processes, since only a process can be killed.
func durabilityMutants() []Mutant {
	const (
		afterAck  = "receiver.durability.kill-after-ack"
		underLoad = "receiver.durability.kill-under-load"
		remembers = "receiver.durability.remembers-across-restart"
	)
	needs := []string{Managed}
	return []Mutant{
		{
			Name: "acknowledges-before-it-stores", Doc: "It answers first and stores later.",
			Fails: []string{afterAck, underLoad}, Needs: needs,
			New: storing(func(c Config) receiver.Store {
				j := c.journal
				return adding(func(m receiver.Message) (bool, error) {
					time.AfterFunc(later, func() {
						if added, err := j.take(m.ID); added && err == nil {
							_ = j.effect(m.ID)
						}
					})
					return true, nil
				})
			}),
		},
		{
			Name: "does-not-queue-again", Doc: "What it had stored and not worked on when it was killed it never looks at again.",
			Fails: []string{afterAck, underLoad}, Needs: needs,
			New: storing(func(c Config) receiver.Store {
				j := c.journal
				return adding(func(m receiver.Message) (bool, error) {
					added, err := j.take(m.ID)
					if added && err == nil {
						time.AfterFunc(later, func() { _ = j.effect(m.ID) })
					}
					return added, err
				})
			}),
		},
		{
			Name: "repeats-after-a-crash", Doc: "It marks an event as done some time after its effect, and an end in between repeats the effect.",
			Fails: []string{afterAck + ".once", underLoad + ".once", remembers}, Needs: needs,
			New: storing(func(c Config) receiver.Store {
				j := c.journal
				for _, id := range j.unmarked() {
					_ = j.effect(id)
					_ = j.mark(id)
				}
				return adding(func(m receiver.Message) (bool, error) {
					added, err := j.take(m.ID)
					if added && err == nil {
						err = j.effect(m.ID)
						time.AfterFunc(later, func() { _ = j.mark(m.ID) })
					}
					return added, err
				})
			}),
		},
		{
			Name: "forgets-ids", Doc: "It remembers ids in memory, so a restart forgets them.",
			Fails: []string{remembers, underLoad + ".once"}, Needs: needs,
			New: storing(func(c Config) receiver.Store {
				j := c.journal
				var known sync.Map
				var turn atomic.Int64
				return adding(func(m receiver.Message) (bool, error) {
					if _, seen := known.LoadOrStore(m.ID, true); seen {
						return false, nil
					}
					err := j.effect(m.ID)
					// The answer takes a while, and not the same while each time, so
					// that a kill finds some with their effect and without an answer.
					time.Sleep(time.Duration(30+20*(turn.Add(1)%8)) * time.Millisecond)
					return true, err
				})
			}),
		},
	}
}
