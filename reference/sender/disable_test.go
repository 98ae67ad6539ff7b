package sender

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

const aDay = 24 * time.Hour

// publishEvery publishes an event at once and then every so often, for a while.
func (g *stage) publishEvery(every, while time.Duration, eventType string) {
	for t := time.Duration(0); t <= while; t += every {
		g.publish(eventType)
		g.passTime(every)
	}
}

func (g *stage) status(e Endpoint) string {
	g.t.Helper()
	got, err := g.Endpoint(context.Background(), e.ID)
	if err != nil {
		g.t.Fatal(err)
	}
	return got.Status
}

func TestA410EndsAttemptsForThatEndpointAlone(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	gone := g.endpoint("/gone", nil, 500, 410)
	other := g.endpoint("/other", nil, 500, 200)
	first, err := g.Publish(context.Background(), Event{Type: "a.b", Data: []byte(`{}`)})
	if err != nil || len(first) != 2 {
		t.Fatal(first, err)
	}
	g.settle()
	g.passTime(time.Second)
	if _, err := g.Publish(context.Background(), Event{Type: "a.b", Data: []byte(`{}`)}); err != nil { // the 410
		t.Fatal(err)
	}
	g.passTime(time.Minute)
	if _, err := g.Publish(context.Background(), Event{Type: "a.b", Data: []byte(`{}`)}); err != nil { // a later one
		t.Fatal(err)
	}
	g.passTime(200 * time.Hour)
	if n := len(g.peer.at("/gone")); n != 2 {
		t.Errorf("the endpoint got %d requests, want none after the 410", n)
	}
	if n := len(g.peer.at("/other")); n != 4 {
		t.Errorf("the other endpoint got %d requests, want 4", n)
	}
	if g.status(gone) != EndpointDisabled || g.status(other) != EndpointEnabled {
		t.Errorf("they are %s and %s", g.status(gone), g.status(other))
	}
	if told := g.told(gone.ID); !slices.Equal(told, []string{NotifyDisabled}) {
		t.Errorf("its owner was told %v", told)
	}
}

func TestOtherStatusesDoNotDisable(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	for path, status := range map[string]int{"/400": 400, "/401": 401, "/404": 404, "/500": 500, "/301": 301} {
		e := g.endpoint(path, []string{"t." + path[1:]}, status, 200)
		g.publish("t." + path[1:])
		g.passTime(10 * time.Second)
		if n := len(g.peer.at(path)); n != 2 || g.status(e) != EndpointEnabled {
			t.Errorf("%s: %d requests, it is %s", path, n, g.status(e))
		}
	}
}

func TestAnEndpointIsDisabledAtTheFirstFailureAfterDaysWithoutASuccess(t *testing.T) {
	for _, c := range []struct {
		contract string
		after    time.Duration
	}{{"standard-webhooks", 5 * aDay}, {"delivery-envelope", 7 * aDay}} {
		g := newStage(t, c.contract, func(o *Options) { o.Policy.Schedule = []time.Duration{0} })
		e := g.endpoint("/down", nil, 500)
		began := g.mock.Now()
		g.publishEvery(6*time.Hour, c.after+aDay, "a.b")
		calls := g.peer.at("/down")
		if last := calls[len(calls)-1].at.Sub(began); last != c.after {
			t.Errorf("%s: the last attempt came after %v, want %v", c.contract, last, c.after)
		}
		if g.status(e) != EndpointDisabled {
			t.Errorf("%s: it is %s", c.contract, g.status(e))
		}
	}
}

func TestASuccessStartsTheCountAnew(t *testing.T) {
	g := newStage(t, "standard-webhooks", func(o *Options) { o.Policy.Schedule = []time.Duration{0} })
	e := g.endpoint("/down", nil, 500)
	g.publishEvery(6*time.Hour, 4*aDay, "a.b")
	g.peer.script("/down", 200, 500)
	g.publishEvery(6*time.Hour, 4*aDay, "a.b")
	if g.status(e) != EndpointEnabled {
		t.Errorf("it is %s four days after a success", g.status(e))
	}
	g.publishEvery(6*time.Hour, 2*aDay, "a.b")
	if g.status(e) != EndpointDisabled {
		t.Errorf("it is %s six days after a success", g.status(e))
	}
}

func TestSilenceIsNoFailure(t *testing.T) {
	g := newStage(t, "standard-webhooks", func(o *Options) { o.Policy.Schedule = []time.Duration{0} })
	e := g.endpoint("/e", nil, 200, 500)
	g.publish("a.b")
	g.passTime(10 * aDay)
	g.publish("a.b") // the first failure, ten days after the last success
	g.passTime(time.Hour)
	if g.status(e) != EndpointEnabled {
		t.Errorf("it is %s", g.status(e))
	}
}

func TestOwnersAreToldBeforeAnEndpointIsDisabled(t *testing.T) {
	g := newStage(t, "delivery-envelope")
	e := g.endpoint("/down", nil, 500)
	began := g.mock.Now()
	g.publishEvery(6*time.Hour, 8*aDay, "a.b")
	all, err := g.Notifications(context.Background(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	var times []time.Duration
	for _, n := range all {
		times = append(times, n.At.Sub(began).Round(time.Minute))
		if !strings.Contains(n.Text, "/down") {
			t.Errorf("the text does not name the endpoint: %s", n.Text)
		}
	}
	if want := []string{NotifyFailing, NotifyFailing, NotifyDisabled}; !slices.Equal(g.told(e.ID), want) ||
		times[0] != 24*time.Hour || times[1] != 72*time.Hour || times[2] < 7*aDay {
		t.Errorf("told %v after %v", g.told(e.ID), times)
	}
}

func TestRefusedCredentialsAfterASuccessAreAlerted(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	never := g.endpoint("/never", []string{"never"}, 401)
	worked := g.endpoint("/worked", []string{"worked"}, 200, 403)
	g.publish("never")
	g.publish("worked")
	g.settle()
	g.publish("worked")
	g.passTime(40 * time.Minute)
	if told := g.told(never.ID); len(told) != 0 {
		t.Errorf("the owner of one that never worked was told %v", told)
	}
	if told := g.told(worked.ID); !slices.Equal(told, []string{NotifyCredentials}) {
		t.Errorf("the owner was told %v, want one alert", told)
	}
	if n := len(g.peer.at("/worked")); n != 5 { // 200, then now, 5 s, 5 min, 30 min
		t.Errorf("%d requests, want the schedule", n)
	}
}

func TestAnEndpointDisabledByItsOwnerGetsNothingUntilItIsEnabled(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	e := g.endpoint("/e", nil, 500, 500, 200)
	waiting := g.publish("a.b")
	g.settle()
	if err := g.DisableEndpoint(context.Background(), e.ID); err != nil {
		t.Fatal(err)
	}
	later := g.publish("a.b")
	g.passTime(20 * aDay)
	if n := len(g.peer.at("/e")); n != 1 {
		t.Fatalf("%d requests, want none after it was disabled", n)
	}
	if err := g.EnableEndpoint(context.Background(), e.ID); err != nil {
		t.Fatal(err)
	}
	g.passTime(time.Hour)
	for _, id := range []string{waiting, later} {
		if m := g.message(id); m.Status != MessageDelivered {
			t.Errorf("%s is %s after enabling", id, m.Status)
		}
	}
	if g.status(e) != EndpointEnabled {
		t.Errorf("one failure after enabling left it %s", g.status(e))
	}
}

func TestMessagesOfADeletedEndpointHaveFailed(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	e := g.endpoint("/e", nil, 500)
	waiting := g.publish("a.b")
	g.settle()
	for range 2 { // deleting again changes nothing
		if err := g.DeleteEndpoint(context.Background(), e.ID); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := g.Publish(context.Background(), Event{Type: "a.b", Data: []byte(`1`)}); len(ids) != 0 || err != nil {
		t.Errorf("published %v, %v", ids, err)
	}
	g.passTime(10 * aDay)
	if n := len(g.peer.at("/e")); n != 1 || g.message(waiting).Status != MessageFailed {
		t.Errorf("%d requests, the message is %s", n, g.message(waiting).Status)
	}
	for name, err := range map[string]error{
		"enabling":  g.EnableEndpoint(context.Background(), e.ID),
		"resending": g.Resend(context.Background(), waiting),
	} {
		if !errors.Is(err, ErrConflict) {
			t.Errorf("%s: %v, want ErrConflict", name, err)
		}
	}
}

func TestAnEndpointDeletedDuringAnAttemptGetsNoOther(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	e := g.endpoint("/e", nil, hangs)
	id := g.publish("a.b")
	g.settle()
	if err := g.DeleteEndpoint(context.Background(), e.ID); err != nil {
		t.Fatal(err)
	}
	g.passTime(10 * aDay)
	if n := len(g.peer.at("/e")); n != 1 || g.message(id).Status != MessageFailed {
		t.Errorf("%d requests, the message is %s", n, g.message(id).Status)
	}
}

func TestChangingAnEndpointThatIsNotKnownIsAnError(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	_, rotate := g.RotateSecret(context.Background(), "ep_no")
	_, read := g.Endpoint(context.Background(), "ep_no")
	for name, err := range map[string]error{
		"enabling": g.EnableEndpoint(context.Background(), "ep_no"), "disabling": g.DisableEndpoint(context.Background(), "ep_no"),
		"deleting": g.DeleteEndpoint(context.Background(), "ep_no"), "rotating": rotate, "reading": read,
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
}
