package sender

import (
	"context"
	"slices"
	"testing"
	"time"
)

func TestAMessageIsDeliveredOnceAfterA2xx(t *testing.T) {
	for _, status := range []int{200, 201, 202, 204, 206, 299} {
		g := newStage(t, "standard-webhooks")
		g.endpoint("/ok", nil, status)
		id := g.publish("order.shipped")
		g.passTime(100 * time.Hour)
		calls := g.peer.at("/ok")
		if len(calls) != 1 || calls[0].id != id || calls[0].key != "first" {
			t.Fatalf("%d: got %+v, want one verified request with the id %s", status, calls, id)
		}
		if m := g.message(id); m.Status != MessageDelivered || m.Attempts != 1 || m.FinishedAt.IsZero() || !m.Next.IsZero() {
			t.Errorf("%d: it is %+v", status, m)
		}
	}
}

func TestRetriesFollowTheScheduleAndThenFail(t *testing.T) {
	for _, c := range []struct {
		contract string
		status   int
		last     time.Duration // of the attempt
	}{
		{"standard-webhooks", 500, 0},
		{"standard-webhooks", hangs, 15 * time.Second},
		{"delivery-envelope", 404, 0},
		{"delivery-envelope", hangs, 10 * time.Second},
	} {
		g := newStage(t, c.contract, func(o *Options) { o.Policy.DisableAfter = -1 })
		g.endpoint("/down", nil, c.status)
		id := g.publish("order.shipped")
		g.passTime(120 * time.Hour)
		calls, schedule := g.peer.at("/down"), g.policy.Schedule
		if len(calls) != len(schedule) || !same(calls) {
			t.Fatalf("%s %d: %d requests, want %d of one message", c.contract, c.status, len(calls), len(schedule))
		}
		for i, gap := range gaps(calls) {
			d := schedule[i+1].Seconds()
			least, most := d*(1+g.policy.JitterLow), d*(1+g.policy.JitterHigh)
			if waited := (gap - c.last).Seconds(); waited < least || waited > most {
				t.Errorf("%s %d: attempt %d came after %v, want between %v and %v s after the end of the one before", c.contract, c.status, i+2, gap, least, most)
			}
		}
		if m := g.message(id); m.Status != MessageFailed || m.Attempts != len(schedule) {
			t.Errorf("%s %d: it is %+v", c.contract, c.status, m)
		}
		if lines := g.lines(id); len(lines) != len(schedule) || lines[0].Duration != c.last || lines[0].Error == "" {
			t.Errorf("%s %d: the log is %+v", c.contract, c.status, lines)
		}
	}
}

func TestEachAttemptIsSignedAnew(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/flaky", nil, 500, 503, 200)
	g.publish("order.shipped")
	g.passTime(time.Hour)
	calls := g.peer.at("/flaky") // the peer verifies each at the time at which it comes
	if len(calls) != 3 || !same(calls) || calls[0].tokens == calls[1].tokens || calls[1].tokens == calls[2].tokens {
		t.Errorf("got %+v", calls)
	}
}

func TestAnEndpointThatHangsHoldsNobodyUp(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	for _, path := range []string{"/a", "/b", "/c", "/d"} {
		g.endpoint(path, []string{"hang." + path[1:]}, hangs)
		for range 100 {
			g.publish("hang." + path[1:])
		}
	}
	g.endpoint("/ok", []string{"ok"}, 200)
	at := g.mock.Now()
	g.publish("ok")
	g.settle()
	if calls := g.peer.at("/ok"); len(calls) != 1 || !calls[0].at.Equal(at) {
		t.Errorf("the healthy one got %+v, want one request at once", calls)
	}
	if n := g.peer.holding(); n != 4 {
		t.Errorf("%d requests hang, want one an endpoint", n)
	}
	g.passTime(time.Minute)
	if n := g.peer.holding(); n != 4 {
		t.Errorf("%d requests hang after a minute, want one an endpoint", n)
	}
}

func TestSilentEndpointsTogetherLeaveHalfOfTheSlots(t *testing.T) {
	g := newStage(t, "standard-webhooks", func(o *Options) { o.Policy.AtOnce = 8 })
	for i := range 12 {
		name := "hang." + string(rune('a'+i))
		g.endpoint("/"+name, []string{name}, hangs)
		g.publish(name)
		g.publish(name)
	}
	g.passTime(40 * time.Second) // each has met its timeout
	if n := g.peer.holding(); n != 4 {
		t.Errorf("%d of 8 slots are held by endpoints known to be silent, want 4", n)
	}
	g.endpoint("/ok", []string{"ok"}, 200)
	g.publish("ok")
	g.settle()
	if calls := g.peer.at("/ok"); len(calls) != 1 {
		t.Errorf("the healthy one got %d requests", len(calls))
	}
}

func TestABacklogStandsBehindAFreshMessage(t *testing.T) {
	g := newStage(t, "standard-webhooks", func(o *Options) { o.Policy.AtOnce, o.Policy.PerEndpoint = 1, 1 })
	g.endpoint("/gate", []string{"gate"}, hangs)
	g.publish("gate") // the only slot is taken
	g.settle()
	for _, name := range []string{"a", "b"} {
		g.endpoint("/"+name, []string{name}, 200)
		for range 5 {
			g.publish(name)
		}
	}
	g.mock.Set(g.mock.Now().Add(time.Second))
	g.endpoint("/fresh", []string{"fresh"}, 200)
	g.publish("fresh")
	g.passTime(15 * time.Second) // the slot is free
	var order []string
	for _, c := range g.peer.calls[1:] {
		order = append(order, c.path)
	}
	if i := slices.Index(order, "/fresh"); i < 0 || i > 2 {
		t.Errorf("the order was %v, want the fresh one after one message of each other endpoint", order)
	}
}

func TestAtMostAsManyAreUnderWayAtOneEndpointAsThePolicySays(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, 200, hangs)
	g.publish("a.first")
	g.settle() // now it is known to answer
	for range 5 {
		g.publish("a.later")
	}
	if state := g.settle(); state.InFlight != 2 {
		t.Errorf("%d are under way, want 2", state.InFlight)
	}
}

func TestStateTellsWhenSomethingHappensNext(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	if state := g.state(); !state.Next.IsZero() || state.InFlight != 0 {
		t.Errorf("an idle sender says %+v", state)
	}
	g.endpoint("/h", []string{"h"}, hangs)
	g.publish("h")
	if state := g.settle(); !state.Next.Equal(startTime().Add(15*time.Second)) || state.InFlight != 1 {
		t.Errorf("with an attempt that hangs it says %+v, want its timeout", state)
	}
	g.mock.Set(startTime().Add(15 * time.Second))
	state := g.settle()
	if wait := state.Next.Sub(state.Now).Seconds(); state.InFlight != 0 || wait < 5 || wait > 5.5 {
		t.Errorf("after the timeout it says %+v, want the retry", state)
	}
}

func TestASenderThatIsNotRunSendsNothing(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.stop()
	s, err := Open(context.Background(), g.path, Options{Profile: g.profile, Clock: g.mock, Guard: g.guard, Poll: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	g.Sender = s
	g.endpoint("/e", nil, 200)
	g.publish("a.b")
	if state := g.state(); state.InFlight != 0 || len(g.peer.at("/e")) != 0 {
		t.Errorf("it sends: %+v", state)
	}
}
