package receiver

import (
	"errors"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
)

func TestAFailedEventIsProcessedLaterOrListedAndItsCopyIsNotSwallowed(t *testing.T) {
	lost := func(s *shop) {
		s.answer = func(id string, known bool) int {
			if s.failing[id] {
				delete(s.failing, id)
				s.taken[id] = time.Now()
				return 200
			}
			return 0
		}
	}
	for _, tt := range []ruling{
		{"a 500, and the copy is processed", nil, nil, evidence.Pass, ""},
		{"acknowledged, tried again by itself", func(s *shop) {
			s.answer = func(id string, _ bool) int {
				if s.failing[id] {
					delete(s.failing, id)
					time.AfterFunc(20*time.Millisecond, func() {
						s.mu.Lock()
						defer s.mu.Unlock()
						s.taken[id] = time.Now()
						s.do(id, shopEvent{})
					})
					return 202
				}
				return 0
			}
		}, nil, evidence.Pass, ""},
		{"acknowledged and listed, and the copy is processed", func(s *shop) {
			listed := map[string]bool{}
			s.answer = func(id string, _ bool) int {
				if s.failing[id] {
					delete(s.failing, id)
					listed[id] = true
					return 200
				}
				delete(listed, id)
				return 0
			}
			s.count = func(id string, n int) (drive.Count, error) { return drive.Count{N: n, Failed: listed[id]}, nil }
		}, nil, evidence.Pass, ""},
		{"acknowledged and forgotten", lost, nil, evidence.Fail, "The error is swallowed"},
		{"the copy of it swallowed", lost, nil, evidence.Fail, "The id is remembered although"},
		{"listed, and the copy swallowed", func(s *shop) {
			lost(s)
			s.count = func(id string, n int) (drive.Count, error) {
				_, taken := s.taken[id]
				return drive.Count{N: n, Failed: n == 0 && taken}, nil
			}
		}, nil, evidence.Fail, "still on the list of failed ones after 400ms"},
		{"refused, and the copy too", func(s *shop) {
			s.answer = func(id string, _ bool) int {
				if s.failing[id] {
					return 500
				}
				return 0
			}
		}, nil, evidence.Fail, "a copy, signed anew: answered 500"},
		{"an adapter that fails", func(s *shop) { s.hookErr = errHook }, nil, evidence.Error, "making the processing of an event fail: the adapter at"},
		{"an observer that fails", func(s *shop) { s.observeErr = errors.New("the observer lies"); lost(s) }, nil, evidence.Error, ": the observer lies"},
		{"an observer that is known to lie", nil, func(e *Env) { e.ObserverFault = errors.New("it lies") }, evidence.Error, "trying the observer before the run: it lies"},
	} {
		tt.check(t, failedIsNotLost)
	}
}

func TestIDsAreRememberedForAsLongAsCopiesMayCome(t *testing.T) {
	for _, tt := range []ruling{
		{"for good", nil, nil, evidence.Pass, ""},
		{"for as long as the schedule lasts", func(s *shop) { s.forgets = 75*time.Hour + 36*time.Minute }, nil, evidence.Pass, ""},
		{"for exactly a day, under a schedule of some hours", func(s *shop) { s.forgets = 24 * time.Hour }, func(e *Env) {
			p := *e.Profile
			p.Schedule = []time.Duration{0, time.Hour}
			e.Profile = &p
		}, evidence.Pass, ""},
		{"for an hour", func(s *shop) { s.forgets = time.Hour }, nil, evidence.Warn, dayCopy + ": processed again"},
		{"for a day, under a schedule of three", func(s *shop) { s.forgets = 24 * time.Hour }, nil, evidence.Warn, endCopy + ": processed again"},
		{"a copy refused", func(s *shop) {
			s.answer = func(_ string, known bool) int {
				if known {
					return 409
				}
				return 0
			}
		}, nil, evidence.Warn, "the copy, 24h0m0s later: answered 409"},
		{"effects that are forgotten together with their ids, and come again", func(s *shop) {
			s.forgets = time.Hour
			s.count = func(id string, n int) (drive.Count, error) {
				if time.Now().Add(s.ahead).Sub(s.taken[id]) > s.forgets {
					return drive.Count{}, nil
				}
				return drive.Count{N: min(n, 1)}, nil
			}
		}, nil, evidence.Warn, endCopy + ": processed again"},
		{"a signature check by another clock", func(s *shop) { s.stuck = true }, nil, evidence.Error, "does its signature check go by the clock that clock.advance moves?"},
		{"an adapter that fails", func(s *shop) { s.hookErr = errHook }, nil, evidence.Error, "moving the receiver's clock: the adapter at"},
		{"no receiver of its own", func(s *shop) { s.lacks = drive.SecondConfiguration }, nil, evidence.Skipped, "needs a receiver of its own"},
		{"one that does not start", func(s *shop) {
			s.variant = func(*shop) (drive.Receiver, error) { return nil, drive.ErrNeverListened }
		}, nil, evidence.Error, "starting a receiver whose clock is moved"},
		{"one whose clock cannot be moved", func(s *shop) {
			s.variant = func(s *shop) (drive.Receiver, error) { return &shop{lacks: drive.Clock, server: s.server}, nil }
		}, nil, evidence.Skipped, "let the adapter's address hold {port}"},
		{"one that shares its store with the first", func(s *shop) {
			s.variant = func(s *shop) (drive.Receiver, error) { return s, nil }
		}, nil, evidence.Skipped, "WHCONFORM_STATE_DIR"},
		{"never processed", func(s *shop) { s.work = func(*shop, string, shopEvent) {} }, nil, evidence.Skipped, "not processed in the first place"},
	} {
		tt.check(t, remembersIDs)
	}
}

func TestAnIDIsRememberedForADayAndForTheWholeSchedule(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    profile.Profile
		want []waiting
	}{
		{"no schedule", profile.Profile{}, []waiting{{dayCopy, 24 * time.Hour}}},
		{"a short one", profile.Profile{Schedule: []time.Duration{0, time.Hour, 20 * time.Hour}}, []waiting{{dayCopy, 24 * time.Hour}}},
		{"a long one, its jitter not counted", profile.Profile{Schedule: []time.Duration{0, 24 * time.Hour, 24 * time.Hour}, JitterHigh: 0.5}, []waiting{{dayCopy, 24 * time.Hour}, {endCopy, 48 * time.Hour}}},
		{"what the profile asks for", profile.Profile{Remember: 72 * time.Hour}, []waiting{{dayCopy, 24 * time.Hour}, {endCopy, 72 * time.Hour}}},
	} {
		got := remembered(&tt.p)
		if len(got) != len(tt.want) || got[0] != tt.want[0] || got[len(got)-1] != tt.want[len(tt.want)-1] {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// What nobody can tell of the receiver that was started for a row is not held
// against it.
func TestAReceiverOfTheRowsOwnThatNobodyObservesIsNotJudged(t *testing.T) {
	unseen := func(s *shop) {
		s.variant = func(s *shop) (drive.Receiver, error) { return drive.URL(s.Target(0)), nil }
	}
	for _, id := range []string{killAfterAck, killAfterAck + ".once", killUnderLoad, killUnderLoad + ".once", remembers, twoInstances, remembersIDs} {
		ruling{id, unseen, nil, evidence.Skipped, "the one that was started for this row has none"}.check(t, id)
	}
}

func TestTwoInstancesAcknowledgeAnEventAndProcessItOnce(t *testing.T) {
	apart := func(s *shop) {
		s.answer = func(id string, known bool) int {
			if known {
				s.done[id]++ // as if the other instance did it
			}
			return 0
		}
	}
	for _, tt := range []ruling{
		{"one store", nil, nil, evidence.Pass, ""},
		{"a memory each", apart, nil, evidence.Fail, "processed more than once: msg_"},
		{"the second one refused", func(s *shop) {
			s.answer = func(_ string, known bool) int {
				if known {
					return 500
				}
				return 0
			}
		}, nil, evidence.Fail, "answered 500. The instance that comes second"},
		{"neither works", func(s *shop) { s.work = func(*shop, string, shopEvent) {} }, nil, evidence.Fail, "never processed: msg_"},
		{"a second one that does not start", func(s *shop) {
			s.second = func(*shop) (fp.Target, error) {
				return fp.Target{}, errors.New("starting a second instance beside the first: the port is taken")
			}
		}, nil, evidence.Error, "the port is taken"},
		{"an observer that fails", func(s *shop) { s.observeErr = errors.New("the observer lies") }, nil, evidence.Error, "asking how often 8 events were processed"},
	} {
		tt.check(t, twoInstances)
	}
}
