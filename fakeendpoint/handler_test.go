package fakeendpoint_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/fakeendpoint"
)

func TestHandlersAreComposed(t *testing.T) {
	r := newRig(t)
	p := r.path("handle", "204", r.key).Handle(
		fakeendpoint.WantMethod("POST"),
		fakeendpoint.InTurn(
			fakeendpoint.Status(500),
			fakeendpoint.All(fakeendpoint.WantVerified(), fakeendpoint.WantHeader("Content-Type", "application/json"), fakeendpoint.WantBody([]byte("{}"))),
		),
	)
	conn := dial(t, p)
	for i, c := range []struct {
		request string
		status  int
		remarks []string
	}{
		{r.signed(p, "msg_1", "{}"), 500, nil},
		{strings.Replace(r.signed(p, "msg_1", "{}"), "Host", "Content-Type: application/json\r\nHost", 1), 204, nil},
		{r.signed(p, "msg_1", "{}"), 204, []string{"the header Content-Type stands in 0 lines, want one"}},
		{strings.Replace(post(p, "[]"), "Host", "content-type: x\r\nHost", 1), 401, []string{"the request does not verify: missing-id: no header webhook-id", `the header Content-Type is "x", want "application/json"`, "the body is 2 bytes, not the 2 that are wanted or not equal to them"}},
		{strings.Replace(strings.Replace(r.signed(p, "msg_1", "{}"), "Host", "Content-Type: application/json\r\nHost", 1), "POST", "PUT", 1), 204, []string{"the method is PUT, want POST"}},
	} {
		if got := conn.status(c.request); got != c.status {
			t.Errorf("request %d is answered %d, want %d", i+1, got, c.status)
		}
		if a := attempts(t, p, i+1)[i]; !reflect.DeepEqual(a.Remarks, c.remarks) {
			t.Errorf("request %d: %q, want %q", i+1, a.Remarks, c.remarks)
		}
	}
}

func TestAHandlerMayAnswerByAnyStep(t *testing.T) {
	r := newRig(t)
	p := r.path("do", "200").Handle(fakeendpoint.InTurn(
		fakeendpoint.Do(fakeendpoint.Step{Kind: fakeendpoint.KindSlow, Wait: time.Second, Then: &fakeendpoint.Step{Kind: fakeendpoint.KindStatus, Status: 503}}),
		fakeendpoint.Do(fakeendpoint.Step{Kind: fakeendpoint.KindExpired}),
		fakeendpoint.Do(fakeendpoint.Step{Kind: fakeendpoint.KindStatus, Status: 42}),
		func(*fakeendpoint.Call) { panic("oh") },
		fakeendpoint.Do(fakeendpoint.Step{Kind: fakeendpoint.KindClose}),
	))
	conn := dial(t, p)
	conn.send(post(p, "{}"))
	r.held(1)
	r.clock.Add(time.Second)
	if answer, _ := conn.answer(); answer.StatusCode != 503 {
		t.Errorf("it answered %d", answer.StatusCode)
	}
	for i, says := range []string{"about connections", "42 is no status", "a handler panicked: oh"} {
		if got := conn.status(post(p, "{}")); got != 500 {
			t.Errorf("it answered %d", got)
		}
		if a := attempts(t, p, i+2)[i+1]; len(a.Remarks) != 1 || !strings.Contains(a.Remarks[0], says) {
			t.Errorf("%q is remarked, want %q", a.Remarks, says)
		}
	}
	conn.send(post(p, "{}"))
	if _, how := conn.end(); how != "closed" {
		t.Errorf("the connection was %s", how)
	}
}

func TestPlayAnswersByAScript(t *testing.T) {
	r := newRig(t)
	p := r.path("play", "410").Handle(fakeendpoint.Play("500*2,200"))
	conn := dial(t, p)
	for _, want := range []int{500, 500, 200, 200} {
		if got := conn.status(post(p, "{}")); got != want {
			t.Errorf("it answered %d, want %d", got, want)
		}
	}
	p.Handle(fakeendpoint.Play("hagn"))
	if got := conn.status(post(p, "{}")); got != 500 {
		t.Errorf("a script that cannot be read answers %d", got)
	}
	p.Handle()
	if got := conn.status(post(p, "{}")); got != 410 {
		t.Errorf("without handlers it answers %d", got)
	}
}
