package sender

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/reference/signature"
)

func TestBothSecretsSignUntilTheOverlapEnds(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	e := g.endpoint("/e", nil, 200)
	g.publish("a.b") // it has delivered
	g.settle()
	g.peer.script("/e", 500, 200)
	g.publish("a.b") // and a retry waits
	g.settle()
	second, err := g.RotateSecret(context.Background(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	g.passTime(time.Minute) // the retry
	g.publish("a.b")
	g.passTime(24*time.Hour - time.Minute)
	g.peer.learn("/e", "second", second)
	g.publish("a.b") // the overlap is over
	g.settle()
	var tokens []int
	for _, c := range g.peer.at("/e") {
		tokens = append(tokens, len(strings.Fields(c.tokens)))
	}
	if want := []int{1, 1, 2, 2, 1}; !slices.Equal(tokens, want) {
		t.Errorf("requests had %v signatures, want %v", tokens, want)
	}
	if calls := g.peer.at("/e"); calls[4].key != "second" {
		t.Errorf("after the overlap it verifies by the %s secret", calls[4].key)
	}
}

func TestASecondRotationKeepsTheNewestTwo(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	e := g.endpoint("/e", nil, 200)
	for _, label := range []string{"second", "third"} {
		secret, err := g.RotateSecret(context.Background(), e.ID)
		if err != nil {
			t.Fatal(err)
		}
		g.peer.learn("/e", label, secret)
		g.passTime(time.Minute)
	}
	for drop, want := range map[string]string{"third": "second", "second": "third"} {
		g.peer.mu.Lock()
		known := g.peer.keys["/e"]
		g.peer.keys["/e"] = slices.DeleteFunc(slices.Clone(known), func(k signature.Key) bool { return k.Label == drop })
		g.peer.mu.Unlock()
		g.publish("a.b")
		g.settle()
		calls := g.peer.at("/e")
		if c := calls[len(calls)-1]; c.key != want || len(strings.Fields(c.tokens)) != 2 {
			t.Errorf("without the %s it verifies by %q, with the signatures %s", drop, c.key, c.tokens)
		}
		g.peer.mu.Lock()
		g.peer.keys["/e"] = known
		g.peer.mu.Unlock()
	}
}

func TestADeliveredMessageIsSentOnceMore(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, 200)
	id := g.publish("a.b")
	g.passTime(time.Minute)
	if err := g.Resend(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	g.passTime(100 * time.Hour)
	calls := g.peer.at("/e")
	if len(calls) != 2 || !same(calls) || calls[0].tokens == calls[1].tokens {
		t.Errorf("got %+v, want one more of the same, signed anew", calls)
	}
	if m, lines := g.message(id), g.lines(id); m.Status != MessageDelivered || m.Attempts != 1 || !lines[1].Manual || lines[1].Number != 0 {
		t.Errorf("it is %+v with the log %+v", m, lines)
	}
}

func TestAResendThatFailsLeavesADeliveredMessageDelivered(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, 200, 500)
	id := g.publish("a.b")
	g.settle()
	if err := g.Resend(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	g.passTime(100 * time.Hour)
	if n := len(g.peer.at("/e")); n != 2 || g.message(id).Status != MessageDelivered {
		t.Errorf("%d requests, it is %s", n, g.message(id).Status)
	}
}

func TestAFailedMessageIsDeliveredByAResend(t *testing.T) {
	g := newStage(t, "delivery-envelope")
	g.endpoint("/e", nil, 500)
	id := g.publish("a.b")
	g.passTime(40 * time.Hour)
	if m := g.message(id); m.Status != MessageFailed {
		t.Fatalf("it is %s", m.Status)
	}
	for _, want := range []string{MessageFailed, MessageDelivered} { // the first resend fails, too
		if err := g.Resend(context.Background(), id); err != nil {
			t.Fatal(err)
		}
		g.passTime(40 * time.Hour)
		if m := g.message(id); m.Status != want || m.Attempts != 6 {
			t.Errorf("it is %+v, want it %s", m, want)
		}
		g.peer.script("/e", 200)
	}
	if calls := g.peer.at("/e"); len(calls) != 8 || !same(calls) {
		t.Errorf("%d requests, want the schedule and one a resend", len(calls))
	}
}

func TestAResendLeavesTheScheduleAlone(t *testing.T) {
	g := newStage(t, "standard-webhooks", func(o *Options) { o.Policy.DisableAfter = -1 })
	g.endpoint("/e", nil, 500)
	id := g.publish("a.b")
	g.passTime(time.Minute) // the first two, the third is due in four minutes
	due := g.message(id).Next
	for range 3 {
		if err := g.Resend(context.Background(), id); err != nil {
			t.Fatal(err)
		}
		g.passTime(10 * time.Second)
	}
	if next := g.message(id).Next; !next.Equal(due) {
		t.Errorf("the next attempt moved from %v to %v", due, next)
	}
	g.passTime(100 * time.Hour)
	if n := len(g.peer.at("/e")); n != 13 {
		t.Errorf("%d requests, want ten of the schedule and three by hand", n)
	}
}

func TestAResendThatDeliversEndsTheSchedule(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, 500, 200)
	id := g.publish("a.b")
	g.settle()
	if err := g.Resend(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	g.passTime(100 * time.Hour)
	if n := len(g.peer.at("/e")); n != 2 || g.message(id).Status != MessageDelivered {
		t.Errorf("%d requests, it is %s", n, g.message(id).Status)
	}
}

func TestAResendDuringAnAttemptComesAfterIt(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, hangs, 200)
	id := g.publish("a.b")
	g.settle()
	if err := g.Resend(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	g.passTime(15 * time.Second) // the peer tells if two overlap
	if calls := g.peer.at("/e"); len(calls) != 2 || calls[1].at.Sub(calls[0].at) != 15*time.Second {
		t.Errorf("got %+v", calls)
	}
}

func TestAllThatFailedSinceATimeIsSentAgain(t *testing.T) {
	g := newStage(t, "standard-webhooks", func(o *Options) { o.Policy.Schedule = []time.Duration{0} })
	e := g.endpoint("/e", nil, 500)
	old := g.publish("a.b")
	g.passTime(time.Hour)
	since := g.mock.Now()
	var ids []string
	for range 5 {
		ids = append(ids, g.publish("a.b"))
	}
	g.passTime(time.Hour)
	g.peer.script("/e", 200)
	if n, err := g.ResendFailed(context.Background(), e.ID, since); n != 5 || err != nil {
		t.Errorf("resending %d, %v; want 5", n, err)
	}
	g.passTime(time.Hour)
	for _, id := range ids {
		if m := g.message(id); m.Status != MessageDelivered {
			t.Errorf("%s is %s", id, m.Status)
		}
	}
	if m := g.message(old); m.Status != MessageFailed {
		t.Errorf("the one before is %s", m.Status)
	}
}

func TestResendingWhatIsNotThereIsAnError(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	if err := g.Resend(context.Background(), "msg_no"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
	if _, err := g.Attempts(context.Background(), "msg_no"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the log: %v, want ErrNotFound", err)
	}
}

func TestTheLogHasTheStartOfAnErrorsBody(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, 503, 200)
	id := g.publish("a.b")
	g.passTime(time.Minute)
	lines := g.lines(id)
	if len(lines) != 2 || lines[0].Status != 503 || lines[0].Number != 1 || string(lines[0].Body) != "status 503 because of the script" ||
		!lines[0].At.Equal(startTime()) || lines[1].Status != 200 || lines[1].Number != 2 || lines[1].Error != "" || lines[1].Body != nil {
		t.Errorf("the log is %+v", lines)
	}
}

func TestMessagesAreListedByStatusEndpointAndTime(t *testing.T) {
	g := newStage(t, "standard-webhooks", func(o *Options) { o.Policy.Schedule = []time.Duration{0, time.Hour} })
	good, bad := g.endpoint("/good", []string{"good"}, 200), g.endpoint("/bad", []string{"bad"}, 500)
	failed := g.publish("bad")
	delivered := g.publish("good")
	g.passTime(2 * time.Hour)
	since := g.mock.Now()
	pending := g.publish("bad")
	g.settle()
	for _, c := range []struct {
		name   string
		filter MessageFilter
		want   []string
	}{
		{"all", MessageFilter{}, []string{failed, delivered, pending}},
		{"failed", MessageFilter{Status: MessageFailed}, []string{failed}},
		{"delivered", MessageFilter{Status: MessageDelivered}, []string{delivered}},
		{"pending", MessageFilter{Status: MessagePending}, []string{pending}},
		{"of an endpoint", MessageFilter{EndpointID: bad.ID}, []string{failed, pending}},
		{"failed of another", MessageFilter{Status: MessageFailed, EndpointID: good.ID}, nil},
		{"since a time", MessageFilter{Since: since}, []string{pending}},
		{"one", MessageFilter{Limit: 1}, []string{failed}},
		{"after one", MessageFilter{After: max(failed, delivered)}, []string{pending}},
	} {
		all, err := g.Messages(context.Background(), c.filter)
		var ids []string
		for _, m := range all {
			ids = append(ids, m.ID)
		}
		slices.Sort(c.want)
		if c.name == "one" {
			c.want = []string{min(failed, delivered)}
		}
		if err != nil || !slices.Equal(ids, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, ids, err, c.want)
		}
	}
	if _, err := g.Messages(context.Background(), MessageFilter{Status: "lost"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a status that does not exist: %v", err)
	}
}

func TestOldMessagesAreDeletedAndWorkIsNot(t *testing.T) {
	g := newStage(t, "standard-webhooks", func(o *Options) { o.Policy.Schedule = []time.Duration{0} })
	g.endpoint("/good", []string{"good"}, 200)
	g.endpoint("/bad", []string{"bad"}, 500)
	off := g.endpoint("/off", []string{"off"}, 200)
	if err := g.DisableEndpoint(context.Background(), off.ID); err != nil {
		t.Fatal(err)
	}
	good, bad := g.publish("good"), g.publish("bad")
	g.passTime(20 * aDay)
	held := g.publish("off")
	g.passTime(10*aDay - time.Minute)
	g.message(good)
	g.message(bad)
	g.passTime(2 * time.Hour)
	for _, id := range []string{good, bad} {
		if _, err := g.Message(context.Background(), id); !errors.Is(err, ErrNotFound) {
			t.Errorf("after 30 days: %v, want ErrNotFound", err)
		}
	}
	for _, table := range []string{"attempts", "payloads", "events", "messages"} {
		n, err := column[int](g.store.query(context.Background(), "SELECT count(*) FROM "+table))
		want := 1 // of the one that is held
		if table == "attempts" {
			want = 0
		}
		if err != nil || n[0] != want {
			t.Errorf("%d rows of %s are left, %v; want %d", n[0], table, err, want)
		}
	}
	if m := g.message(held); m.Status != MessagePending {
		t.Errorf("the one that is held is %s", m.Status)
	}
	g.passTime(20 * aDay)
	if m := g.message(held); m.Status != MessageFailed {
		t.Errorf("the one that was held for 30 days is %s", m.Status)
	}
}
