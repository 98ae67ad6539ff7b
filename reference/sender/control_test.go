package sender

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
)

// remote is a control as a conformance run sees it: names and JSON.
type remote struct {
	t       testing.TB
	control *Control
	peer    *peer
	clock   *clock.Mock // the suite's own, which the peer keeps to
}

// newRemote initializes a control on a virtual clock.
func newRemote(t testing.TB, name, dir string) (*remote, map[string]any) {
	t.Helper()
	scheme, err := contract(t, name).Scheme()
	if err != nil {
		t.Fatal(err)
	}
	r := &remote{t: t, control: NewControl(ControlOptions{}), clock: clock.NewMock()}
	r.clock.Set(startTime())
	r.peer = newPeer(t, scheme, r.clock.Now)
	t.Cleanup(func() {
		if err := r.control.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, r.call("initialize", fmt.Sprintf(`{"protocolVersion":1,"profile":%q,"stateDir":%q,"clock":"virtual","now":%q,"allowHosts":["127.0.0.1"]}`,
		name, dir, startTime().Format(time.RFC3339Nano)))
}

// try calls a method.
func (r *remote) try(method, params string) (map[string]any, error) {
	r.t.Helper()
	m, ok := r.control.Methods()[method]
	if !ok {
		r.t.Fatalf("there is no method %s", method)
	}
	result, err := m(context.Background(), json.RawMessage(params))
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(result)
	if err != nil {
		r.t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		r.t.Fatal(err)
	}
	return got, nil
}

// call calls a method that must succeed.
func (r *remote) call(method, params string) map[string]any {
	r.t.Helper()
	got, err := r.try(method, params)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, params, err)
	}
	return got
}

// passTime advances the sender's clock step by step, as a timeline does.
func (r *remote) passTime(d time.Duration) {
	r.t.Helper()
	until := r.clock.Now().Add(d)
	for {
		var next time.Time
		await(r.t, "all is quiet", func() bool {
			state := r.call("clock.advance", fmt.Sprintf(`{"to":%q}`, r.clock.Now().Format(time.RFC3339Nano)))
			next = time.Time{}
			if text, ok := state["next"].(string); ok {
				var err error
				if next, err = time.Parse(time.RFC3339Nano, text); err != nil {
					r.t.Fatal(err)
				}
			}
			return int(state["inFlight"].(float64)) == r.peer.holding() && (next.IsZero() || next.After(r.clock.Now()))
		})
		switch {
		case r.clock.Now().Equal(until):
			return
		case next.IsZero() || next.After(until):
			next = until
		}
		r.clock.Set(next)
	}
}

func (r *remote) endpoint(path, params string, steps ...int) string {
	r.t.Helper()
	r.peer.script(path, steps...)
	e := r.call("endpoint.create", fmt.Sprintf(`{"url":%q%s}`, r.peer.server.URL+path, params))
	r.peer.learn(path, "first", e["secret"].(string))
	return e["endpointId"].(string)
}

func (r *remote) publish(params string) string {
	r.t.Helper()
	ids := r.call("event.publish", `{"timestamp":"2026-01-02T15:04:05Z",`+params+`}`)["messageIds"].([]any)
	if len(ids) != 1 {
		r.t.Fatalf("published %v, want one message", ids)
	}
	return ids[0].(string)
}

func TestAControlDeclaresWhatItIsHeldTo(t *testing.T) {
	_, about := newRemote(t, "delivery-envelope", t.TempDir())
	var capabilities []string
	for _, c := range about["capabilities"].([]any) {
		capabilities = append(capabilities, c.(string))
	}
	for _, want := range []string{"clock.advance", "endpoint.rotateSecret", "event.mutate", "message.resend", "messages.list", "notifications.list", "transaction", "instances", "versions"} {
		if !slices.Contains(capabilities, want) {
			t.Errorf("%s is not declared: %v", want, capabilities)
		}
	}
	if slices.Contains(capabilities, "initialize") || slices.Contains(capabilities, "shutdown") {
		t.Errorf("%v names what every adapter has", capabilities)
	}
	if schedule := about["retrySchedule"].([]any); len(schedule) != 6 || schedule[1] != 60.0 || about["timeout"] != 10.0 || about["disableAfter"] != 7*86400.0 {
		t.Errorf("it declares %v", about)
	}
}

func TestAControlOnTheRealClockDeclaresASchedulesOfSeconds(t *testing.T) {
	c := NewControl(ControlOptions{Name: "mine"})
	defer c.Close()
	result, err := c.Methods()["initialize"](context.Background(), json.RawMessage(`{"protocolVersion":1,"profile":"standard-webhooks"}`))
	if err != nil {
		t.Fatal(err)
	}
	about := result.(*initialized)
	if about.RetrySchedule[1] != 0.4 || len(about.DefaultSchedule) != 10 || about.Name != "mine" || slices.Contains(about.Capabilities, "clock.advance") {
		t.Errorf("it declares %+v", about)
	}
	if _, err := c.Methods()["clock.advance"](context.Background(), json.RawMessage(`{"to":"2026-01-02T15:04:05Z"}`)); err == nil {
		t.Error("the real clock was moved")
	}
}

func TestAControlDoesAllThatARunAsksFor(t *testing.T) {
	r, _ := newRemote(t, "standard-webhooks", t.TempDir())
	e := r.endpoint("/e", `,"eventTypes":["a.b"]`, 500, 200)
	id := r.publish(`"type":"a.b","payload":{"n":1}`)
	r.call("event.mutate", `{"messageId":"`+id+`"}`)
	r.passTime(time.Minute)
	log := r.call("message.attempts", `{"messageId":"`+id+`"}`)["attempts"].([]any)
	if len(log) != 2 || log[0].(map[string]any)["status"] != 500.0 || log[1].(map[string]any)["status"] != 200.0 {
		t.Errorf("the log is %v", log)
	}
	raw := "\xff not JSON\n"
	r.publish(`"type":"a.b","payloadBase64":"` + base64.StdEncoding.EncodeToString([]byte(raw)) + `"`)
	r.call("message.resend", `{"messageId":"`+id+`"}`)
	r.call("endpoint.rotateSecret", `{"endpointId":"`+e+`"}`)
	r.passTime(time.Minute)
	if calls := r.peer.at("/e"); len(calls) != 4 || !slices.ContainsFunc(calls, func(c call) bool { return c.body == raw }) {
		t.Errorf("got %+v", calls)
	}
	if list := r.call("messages.list", `{"status":"delivered","endpointId":"`+e+`"}`)["messages"].([]any); len(list) != 2 {
		t.Errorf("listed %v", list)
	}
	if ids := r.call("event.publish", `{"type":"a.b","timestamp":"2026-01-02T15:04:05Z","payload":1,"transaction":"rollback"}`)["messageIds"].([]any); len(ids) != 0 {
		t.Errorf("after a rollback there are %v", ids)
	}
	r.publish(`"type":"a.b","payload":1,"transaction":"commit"`)
	r.call("endpoint.disable", `{"endpointId":"`+e+`"}`)
	if state := r.call("endpoint.get", `{"endpointId":"`+e+`"}`); state["status"] != "disabled" || state["reason"] == "" {
		t.Errorf("it is %v", state)
	}
	r.call("endpoint.enable", `{"endpointId":"`+e+`"}`)
	r.peer.script("/e", 410)
	r.publish(`"type":"a.b","payload":1`)
	r.passTime(time.Minute)
	if told := r.call("notifications.list", `{"endpointId":"`+e+`"}`)["notifications"].([]any); len(told) != 1 {
		t.Errorf("told %v", told)
	}
	r.call("endpoint.delete", `{"endpointId":"`+e+`"}`)
	r.call("message.resend", `{"since":"2026-01-02T15:04:05Z"}`)
	r.call("shutdown", "")
}

func TestAControlTellsWhatItCannotDo(t *testing.T) {
	r, _ := newRemote(t, "standard-webhooks", t.TempDir())
	for _, c := range []struct {
		method, params, want string
		code                 int
	}{
		{"initialize", `{"protocolVersion":2}`, "version 1", CodeInvalidParams},
		{"initialize", `{"protocolVersion":1,"profile":"nobody"}`, "nobody", CodeInvalidParams},
		{"initialize", `{"protocolVersion":1,"profile":"standard-webhooks","clock":"sun"}`, "sun", CodeInvalidParams},
		{"endpoint.create", `{"url":"https://10.0.0.1/"}`, "10.0.0.1", CodeCannot},
		{"endpoint.get", `{"endpointId":"ep_no"}`, "not found", CodeCannot},
		{"message.resend", `{"messageId":"msg_no"}`, "not found", CodeCannot},
		{"messages.list", `{"status":"lost"}`, "lost", CodeCannot},
		{"event.publish", `{"type":"a.b","timestamp":"2026-01-02T15:04:05Z"}`, "no payload", CodeCannot},
		{"event.publish", `{"type":"a.b","timestamp":"2026-01-02T15:04:05Z","payload":1,"transaction":"maybe"}`, "maybe", CodeInvalidParams},
		{"event.publish", `{"type":7}`, "params", CodeInvalidParams},
		{"clock.advance", `{"to":"2020-01-01T00:00:00Z"}`, "does not go back", CodeCannot},
	} {
		_, err := r.try(c.method, c.params)
		e, ok := errors.AsType[*ControlError](err)
		if !ok || e.Code != c.code || !strings.Contains(e.Message, c.want) {
			t.Errorf("%s %s: %v, want code %d and %q", c.method, c.params, err, c.code, c.want)
		}
	}
	if _, err := NewControl(ControlOptions{}).Methods()["endpoint.get"](context.Background(), nil); err == nil {
		t.Error("a control that was not initialized reads an endpoint")
	}
}

func TestAControlThatIsStartedAgainGoesOn(t *testing.T) {
	dir := t.TempDir()
	r, _ := newRemote(t, "standard-webhooks", dir)
	r.endpoint("/e", "", 500, 200)
	id := r.publish(`"type":"a.b","payload":1`)
	r.passTime(time.Second)
	if err := r.control.Close(); err != nil {
		t.Fatal(err)
	}
	r.control = NewControl(ControlOptions{})
	r.call("initialize", fmt.Sprintf(`{"protocolVersion":1,"profile":"standard-webhooks","stateDir":%q,"now":%q,"allowHosts":["127.0.0.1"]}`, dir, r.clock.Now().Format(time.RFC3339Nano)))
	r.passTime(time.Minute)
	if calls := r.peer.at("/e"); len(calls) != 2 || calls[1].id != id {
		t.Errorf("got %+v", calls)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "sender.db")); err != nil || len(files) != 1 {
		t.Errorf("the outbox is at %v, %v", files, err)
	}
	if err := r.control.Close(); err != nil {
		t.Error(err)
	}
}

func TestAControlKeepsToTheScheduleExactlyForManyAtATime(t *testing.T) {
	r, _ := newRemote(t, "standard-webhooks", t.TempDir())
	const n = 12
	for i := range n {
		step := 500
		if i%3 == 0 {
			step = hangs
		}
		r.endpoint(fmt.Sprintf("/%d", i), fmt.Sprintf(`,"eventTypes":["t.e%d"]`, i), step)
		r.publish(fmt.Sprintf(`"type":"t.e%d","payload":1`, i))
	}
	r.passTime(90 * time.Hour)
	schedule := contract(t, "standard-webhooks").Schedule
	for i := range n {
		last := 0.0
		if i%3 == 0 {
			last = 15
		}
		calls := r.peer.at(fmt.Sprintf("/%d", i))
		if len(calls) != len(schedule) || !same(calls) {
			t.Errorf("/%d got %d requests", i, len(calls))
			continue
		}
		for j, gap := range gaps(calls) {
			if waited, d := gap.Seconds()-last, schedule[j+1].Seconds(); waited < d || waited > d*1.1 {
				t.Errorf("/%d: attempt %d came after %v, want %v s and a tenth at most", i, j+2, waited, d)
			}
		}
	}
}
