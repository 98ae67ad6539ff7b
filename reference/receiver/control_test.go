package receiver

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"
)

// call asks by a method of the adapter's and returns the answer as JSON, or its
// error.
func call(t *testing.T, methods map[string]Method, name, params string) string {
	t.Helper()
	m, ok := methods[name]
	if !ok {
		t.Fatalf("there is no method %s", name)
	}
	v, err := m(context.Background(), json.RawMessage(params))
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestATestAsksForWhatBecameOfEventsAndPayments(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		inbox := open(Options{Clock: mockClock(), TestHooks: true})
		methods := Methods(inbox, nil)
		run(t, inbox)
		addBody(t, inbox, "msg_1", paymentEvent("succeeded", 1))
		awaitState(t, inbox, "msg_1", StatusProcessed)
		addBody(t, inbox, "msg_2", `{"type":`)
		awaitState(t, inbox, "msg_2", StatusFailed)
		for _, c := range []struct{ name, method, params, want string }{
			{"an event that took effect", "receiver.processed", `{"id":"msg_1","later":true}`, `{"processed":1,"failed":false}`},
			{"a failed one", "receiver.processed", `{"id":"msg_2"}`, `{"processed":0,"failed":true}`},
			{"one that never came", "receiver.processed", `{"id":"msg_3"}`, `{"processed":0,"failed":false}`},
			{"a payment by its name", "receiver.state", `{"id":"msg_9","reference":"ch_1"}`, `{"state":"succeeded"}`},
			{"a payment by its event", "receiver.state", `{"id":"msg_1"}`, `{"state":"succeeded"}`},
			{"the payment of an event that never came", "receiver.state", `{"id":"msg_3"}`, `{"state":""}`},
			{"a payment that is not known", "receiver.state", `{"id":"msg_1","reference":"ch_2"}`, `{"state":""}`},
			{"parameters of another kind", "receiver.state", `{"id":1}`, "reading the params: "},
			{"making an event fail", "receiver.failOnce", `{"id":"msg_4"}`, `null`},
			{"making no event fail", "receiver.failOnce", `{}`, "making a message fail: its id is missing"},
		} {
			if got := call(t, methods, c.method, c.params); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s: got %s, want %s", c.name, got, c.want)
			}
		}
		if !inbox.hooks.failing["msg_4"] {
			t.Error("msg_4 is not going to fail")
		}
		if _, ok := methods["clock.advance"]; ok {
			t.Error("a clock that cannot be moved is offered")
		}
		if _, ok := Methods(open(Options{Clock: mockClock()}), nil)["receiver.failOnce"]; ok {
			t.Error("without test hooks a failure is offered")
		}
	})
}

func TestWhatIsDueWhenTheClockIsMovedIsDone(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		movable := NewMovableClock(mockClock())
		inbox := open(Options{Clock: movable, TestHooks: true})
		methods := Methods(inbox, movable)
		run(t, inbox)
		add(t, inbox, "old")
		awaitState(t, inbox, "old", StatusProcessed)
		call(t, methods, "receiver.failOnce", `{"id":"failing"}`)
		add(t, inbox, "failing")
		await(t, "it fails", func() bool { return became(t, inbox, "failing").Attempts == 1 })

		if got := call(t, methods, "clock.advance", `{"to":"2026-01-02T16:04:05Z"}`); got != `{"now":"2026-01-02T16:04:05Z"}` {
			t.Errorf("moving the clock: %s", got)
		}
		if e := awaitState(t, inbox, "failing", StatusProcessed); e.Attempts != 2 {
			t.Errorf("the one that failed is %+v", e)
		}
		if e := became(t, inbox, "old"); e.State != StatusProcessed {
			t.Errorf("an hour later the old one is %+v", e)
		}
		call(t, methods, "clock.advance", `{"to":"2026-01-03T15:04:06Z"}`)
		if e := became(t, inbox, "old"); e.State != StatusUnknown || e.Processed != 1 {
			t.Errorf("a day later the old one is %+v, want its id forgotten", e)
		}
	})
}

func TestAClockIsMovedAheadAndRunsOn(t *testing.T) {
	below := mockClock()
	c := NewMovableClock(below)
	if !c.Now().Equal(start()) {
		t.Errorf("at first it shows %v", c.Now())
	}
	if now, err := c.Advance(start().Add(time.Hour)); err != nil || !now.Equal(start().Add(time.Hour)) {
		t.Errorf("moved by an hour it shows %v, %v", now, err)
	}
	below.Add(time.Minute)
	if want := start().Add(time.Hour + time.Minute); !c.Now().Equal(want) {
		t.Errorf("a minute later it shows %v, want %v", c.Now(), want)
	}
	if since, until := c.Since(start()), c.Until(start().Add(2*time.Hour)); since != 61*time.Minute || until != 59*time.Minute {
		t.Errorf("since the start %v have passed, until two hours after it %v", since, until)
	}
	for _, x := range []struct {
		name string
		to   time.Time
		want string
	}{
		{"back", start(), "does not go back"},
		{"to no time at all", time.Time{}, "no time"},
		{"beyond what fits", start().AddDate(400, 0, 0), "further ahead"},
	} {
		if _, err := c.Advance(x.to); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("moved %s: %v, want %q", x.name, err, x.want)
		}
	}
	if want := start().Add(time.Hour + time.Minute); !c.Now().Equal(want) {
		t.Errorf("after what was refused it shows %v, want %v", c.Now(), want)
	}
	if now, err := c.Advance(c.Now()); err != nil || !now.Equal(c.Now()) {
		t.Errorf("moved to where it stands: %v, %v", now, err)
	}
}

// A delivery is old or new by the clock that was moved.
func TestToleranceFollowsAClockThatIsMoved(t *testing.T) {
	var movable *MovableClock
	g := newRig(t, standard(), func(c *Config) {
		movable = NewMovableClock(c.Clock)
		c.Clock = movable
	})
	before := g.headers("msg_1", event)
	if status := g.post(before, event); status != 200 {
		t.Fatalf("before: %d", status)
	}
	if _, err := movable.Advance(start().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if status := g.post(before, event); status != 401 {
		t.Errorf("the same an hour later: %d, want 401", status)
	}
	g.clock.Add(time.Hour) // the provider's
	if _, err := movable.Advance(start().Add(time.Hour)); err == nil {
		t.Error("it was moved back")
	}
}

// Copies at one moment behind a load balancer: both are told that the event is
// here, and it is done once.
func TestOneDeliveryAtTwoInstancesIsAcknowledgedByBothAndTakesEffectOnce(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		rigs := make([]*rig, 2)
		inboxes := make([]*Inbox, 2)
		for i := range rigs {
			inboxes[i] = open(Options{Clock: mockClock()})
			rigs[i] = newRig(t, standard(), func(c *Config) { c.Store = inboxes[i] })
			run(t, inboxes[i])
		}
		const events, copies = 20, 4
		for n := range events {
			headers := rigs[0].headers(randomID(n), event)
			release := make(chan struct{})
			var all sync.WaitGroup
			for i := range 2 * copies {
				all.Go(func() {
					<-release
					if status := rigs[i%2].post(headers, event); status != 200 {
						t.Errorf("a copy at instance %d: %d", i%2, status)
					}
				})
			}
			close(release)
			all.Wait()
		}
		for n := range events {
			if e := awaitState(t, inboxes[n%2], randomID(n), StatusProcessed); e.Processed != 1 || e.Attempts != 1 {
				t.Errorf("it came out as %+v", e)
			}
		}
	})
}
