package drive

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
)

// scripted is an observer that answers from a list; the last answer repeats.
type scripted struct {
	answers []answer
	asked   []time.Time
	clock   clock.Clock
}

type answer struct {
	count Count
	err   error
}

func (s *scripted) Processed(context.Context, string) (Count, error) {
	s.asked = append(s.asked, s.clock.Now())
	a := s.answers[min(len(s.asked), len(s.answers))-1]
	return a.count, a.err
}

func counts(ns ...int) []answer {
	var as []answer
	for _, n := range ns {
		as = append(as, answer{count: Count{N: n}})
	}
	return as
}

// inBubble is a subtest in which waiting takes no time.
func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestAwaitProcessed(t *testing.T) {
	const bound = 3 * time.Second
	gone := &ObserverError{Fault: ObserverUnreachable, Observer: "of the test", Got: "no answer"}
	nonsense := &ObserverError{Fault: ObserverNonsense, Observer: "of the test", Got: "hello"}
	for _, tt := range []struct {
		name    string
		answers []answer
		want    Count
		err     error
		asked   int // 0: not counted
	}{
		{"at once", counts(1), Count{N: 1}, nil, 1},
		{"more than that", counts(2), Count{N: 2}, nil, 1},
		{"after some questions", counts(0, 0, 0, 1), Count{N: 1}, nil, 4},
		{"never", counts(0), Count{}, nil, 0},
		{"failed, and later processed", []answer{{count: Count{Failed: true}}, {count: Count{N: 1}}}, Count{N: 1}, nil, 2},
		{"an observer that comes back", []answer{{err: gone}, {err: gone}, {count: Count{N: 1}}}, Count{N: 1}, nil, 3},
		{"an observer that stays away", []answer{{err: gone}}, Count{}, gone, 0},
		{"an observer that talks nonsense", []answer{{count: Count{}}, {err: nonsense}}, Count{}, nonsense, 2},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			c := clock.New()
			o := &scripted{answers: tt.answers, clock: c}
			began := c.Now()
			got, err := AwaitProcessed(t.Context(), c, o, "evt_1", 1, bound)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %+v, %v", got, err)
			}
			last := o.asked[len(o.asked)-1].Sub(began)
			if tt.asked > 0 && len(o.asked) != tt.asked || tt.asked == 0 && last != bound {
				t.Errorf("asked %d times, for the last time after %v", len(o.asked), last)
			}
		})
	}
}

// A quick receiver is asked soon, a slow one seldom.
func TestTheGapsBetweenQuestionsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New()
		o := &scripted{answers: counts(0), clock: c}
		began := c.Now()
		if _, err := AwaitProcessed(t.Context(), c, o, "evt_1", 1, 2*time.Second); err != nil {
			t.Fatal(err)
		}
		var at []time.Duration
		for _, asked := range o.asked {
			at = append(at, asked.Sub(began)/time.Millisecond)
		}
		if want := []time.Duration{0, 10, 30, 70, 150, 310, 630, 1130, 1630, 2000}; !slices.Equal(at, want) {
			t.Errorf("asked after %d ms, want %d", at, want)
		}
	})
}

// The waiting is done on the clock that is given, not on the machine's.
func TestWaitingIsDoneOnTheGivenClock(t *testing.T) {
	c := clock.NewMock()
	o := &scripted{answers: counts(0), clock: c}
	done := make(chan error, 1)
	go func() {
		_, err := AwaitProcessed(context.Background(), c, o, "evt_1", 1, AwaitBound)
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil || c.Now().Sub(o.asked[0]) < AwaitBound {
				t.Errorf("it ended after %v: %v", c.Now().Sub(o.asked[0]), err)
			}
			return
		default:
			c.Add(AwaitBound / 3)
		}
	}
}

func TestSettled(t *testing.T) {
	gone := &ObserverError{Fault: ObserverUnreachable, Observer: "of the test", Got: "no answer"}
	for _, tt := range []struct {
		name    string
		answers []answer
		want    Count
		err     error
		whole   bool // it is watched to the end
	}{
		{"it stays", counts(1), Count{N: 1}, nil, true},
		{"it comes late", counts(0, 0, 1), Count{N: 1}, nil, true},
		{"a second effect", counts(1, 1, 2), Count{N: 2}, nil, false},
		{"an observer that goes away", []answer{{count: Count{N: 1}}, {err: gone}}, Count{N: 1}, gone, false},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			c := clock.New()
			o := &scripted{answers: tt.answers, clock: c}
			began := c.Now()
			got, err := Settled(t.Context(), c, o, "evt_1", 1, SettleTime)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %+v, %v", got, err)
			}
			if last := o.asked[len(o.asked)-1].Sub(began); (last == SettleTime) != tt.whole {
				t.Errorf("asked for the last time after %v", last)
			}
		})
	}
}

func TestACountThatGoesDownIsALie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New()
		o := &scripted{answers: counts(1, 0), clock: c}
		_, err := Settled(t.Context(), c, o, "evt_1", 1, SettleTime)
		isFault(t, err, ObserverLies, "the observer of the receiver, asked for evt_1: it told processed 0 times after processed once; expected a count that does not go down while the receiver runs")
	})
}

func TestWaitingEndsWithTheRun(t *testing.T) {
	over := errors.New("the run is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	c := clock.NewMock()
	o := &scripted{answers: counts(0), clock: c}
	cancel(over)
	if _, err := AwaitProcessed(ctx, c, o, "evt_1", 1, AwaitBound); !errors.Is(err, over) || err.Error() != "waiting for the event evt_1 to be processed: the run is over" {
		t.Errorf("got %v", err)
	}
}

func TestAnObserverThatDoesNotLookAtTheIDIsFoundOut(t *testing.T) {
	c := clock.NewMock()
	for _, tt := range []struct {
		name string
		told Count
		want string
	}{
		{"it knows nothing", Count{Unknown: true}, ""},
		{"it tells none", Count{}, ""},
		{"it tells the sum", Count{N: 7}, "the observer of the receiver, asked for evt_0: it tells processed 7 times of an event that was never sent; expected 0; does it look at the id?"},
		{"it tells a failure", Count{Failed: true}, "the observer of the receiver, asked for evt_0: it tells processed 0 times and failed of an event that was never sent; expected 0; does it look at the id?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckObserver(t.Context(), &scripted{answers: []answer{{count: tt.told}}, clock: c}, "evt_0")
			if tt.want == "" && err != nil {
				t.Error(err)
			}
			if tt.want != "" {
				isFault(t, err, ObserverLies, tt.want)
			}
		})
	}
}

func TestAnObserverIsCalledByItsName(t *testing.T) {
	url, err := ObserveURL(ObserveURLConfig{Template: "http://u:hunter22@shop.example/{id}"})
	if err != nil {
		t.Fatal(err)
	}
	command, err := ObserveExec(ObserveExecConfig{Command: []string{"count"}})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Observer{
		"--observe http://shop.example/{id}": &observed{observer: url},
		"--observe-exec count {id}":          command,
		`--observe-log "done {id}"`:          tap(t, "done {id}"),
		"of the adapter":                     controlObserver{},
	} {
		if got := nameOf(o); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
