package fakeendpoint_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

func TestARequestIsRecordedAsItsBytesCame(t *testing.T) {
	r := newRig(t)
	p := r.path("raw", "200")
	conn := dial(t, p)
	head := "POST /raw/below?a=%20b HTTP/1.1\r\nhOst: x\r\nX-Twice:  a\t\r\nx-twice: \r\nX-Bytes: caf\xe9\r\nContent-LENGTH: 3\r\n\r\n"
	conn.send(head + "\x00\xff{")
	conn.answer()
	a := attempts(t, p, 1)[0]
	want := wire.Request{
		Method: "POST", Target: "/raw/below?a=%20b", Body: []byte("\x00\xff{"), Size: 3,
		Headers: []wire.Header{{Name: "hOst", Value: "x"}, {Name: "X-Twice", Value: "a"}, {Name: "x-twice", Value: ""}, {Name: "X-Bytes", Value: "caf\xe9"}, {Name: "Content-LENGTH", Value: "3"}},
	}
	if !reflect.DeepEqual(a.Request, want) {
		t.Errorf("it is recorded as\n%+v\nwant\n%+v", a.Request, want)
	}
	if a.Head != head || a.BodyRead != 3 || a.Sent != 3 || a.Nth != 1 || a.Connection == 0 || a.Took <= 0 {
		t.Errorf("the record is %+v", a)
	}
	if !a.Began.Equal(now) || !a.BodyEnd.Equal(now) || !a.Answered.Equal(now) || !a.Ended.Equal(now) || !a.Closed.IsZero() {
		t.Errorf("the times are %v, %v, %v, %v, %v", a.Began, a.BodyEnd, a.Answered, a.Ended, a.Closed)
	}
	r.clock.Add(time.Minute)
	_ = conn.Close()
	r.until("the end of the connection is noted", func() bool { return p.Attempts()[0].Closed.Equal(now.Add(time.Minute)) })
}

func TestARequestMayComeByteByByte(t *testing.T) {
	r := newRig(t)
	p := r.path("bytes", "200", r.key)
	conn := dial(t, p)
	body := strings.Repeat(`{"a":1}`, 10)
	plain := r.signed(p, "msg_1", body)
	chunked := strings.Replace(plain, "Content-Length: 70", "Transfer-Encoding: chunked", 1)
	chunked = strings.Replace(chunked, body, "7;x=\"y\"\r\n"+body[:7]+"\r\n3F\r\n"+body[7:]+"\r\n000\r\nX-Trailer: t\r\n\r\n", 1)
	for _, text := range []string{plain, chunked} {
		for i := range len(text) {
			conn.send(text[i : i+1])
		}
		conn.answer()
	}
	for _, a := range attempts(t, p, 2) {
		if string(a.Request.Body) != body || !a.Verification.OK() {
			t.Errorf("the record is %+v", a)
		}
	}
	if a := p.Attempts()[1]; !reflect.DeepEqual(a.Trailers, []wire.Header{{Name: "X-Trailer", Value: "t"}}) {
		t.Errorf("the trailers are %v", a.Trailers)
	}
}

func TestAPeerThatWaitsForContinueIsToldToGoOn(t *testing.T) {
	r := newRig(t)
	p := r.path("expect", "200")
	conn := dial(t, p)
	conn.send("POST /expect HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	if got := conn.head(); got != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("it said %q", got)
	}
	conn.send("{}")
	conn.answer()
	if a := attempts(t, p, 1)[0]; a.Sent != 2 || a.Written != int64(len("HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nContent-Length: 0\r\n\r\n")) {
		t.Errorf("the record is %+v", a)
	}
}

func TestALongBodyIsCutInTheRecordAndVerifiedWhole(t *testing.T) {
	r := newRig(t)
	p := r.path("long", "200", r.key)
	conn := dial(t, p)
	body := strings.Repeat("0123456789", 100_000)
	conn.send(r.signed(p, "msg_1", body))
	conn.answer()
	sum := sha256.Sum256([]byte(body))
	a := attempts(t, p, 1)[0]
	if !a.Verification.OK() || a.Request.Size != 1_000_000 || len(a.Request.Body) != wire.BodyLimit || a.Digest != hex.EncodeToString(sum[:]) {
		t.Errorf("%+v, %d bytes, %d kept, digest %s", a.Verification, a.Request.Size, len(a.Request.Body), a.Digest)
	}
	// Beyond what is verified it is counted and summed all the same.
	body = strings.Repeat(body, 3)
	conn.send(r.signed(p, "msg_2", body))
	conn.answer()
	sum = sha256.Sum256([]byte(body))
	a = attempts(t, p, 2)[1]
	if a.Verification.Rule != signature.RuleIncompleteBody || a.Request.Size != 3_000_000 || a.Digest != hex.EncodeToString(sum[:]) {
		t.Errorf("%+v, %d bytes, digest %s", a.Verification, a.Request.Size, a.Digest)
	}
}

func TestEachAttemptSaysWhetherItVerifiesAndWhyNot(t *testing.T) {
	r := newRig(t)
	other, err := standard(t).Key("previous", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	if err != nil {
		t.Fatal(err)
	}
	p := r.path("verify", "200", r.key, other)
	conn := dial(t, p)
	good := r.signed(p, "msg_1", "{}")
	both, err := standard(t).Sign(signature.Input{ID: "msg_2", Time: now, Body: []byte("{}")}, r.key, other)
	if err != nil {
		t.Fatal(err)
	}
	stale, err := standard(t).Sign(signature.Input{ID: "msg_3", Time: now.Add(-time.Hour), Body: []byte("{}")}, r.key)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, request string
		by            []string
		rule          string
	}{
		{"signed by one key", good, []string{"current"}, ""},
		{"signed by both", post(p, "{}", both...), []string{"current", "previous"}, ""},
		{"tampered with", good[:len(good)-1] + "]", nil, signature.RuleNoMatch},
		{"stale", post(p, "{}", stale...), nil, signature.RuleStale},
		{"unsigned", post(p, "{}"), nil, signature.RuleMissingID},
	} {
		before, _ := p.Count()
		conn.send(c.request)
		conn.answer()
		v := attempts(t, p, before+1)[before].Verification
		if !v.Checked || !reflect.DeepEqual(v.By, c.by) || v.Rule != c.rule || v.OK() != (c.rule == "") {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
	bare := r.path("bare", "200")
	conn.send(post(bare, "{}"))
	conn.answer()
	if v := attempts(t, bare, 1)[0].Verification; v.Checked || v.OK() {
		t.Errorf("without a key: %+v", v)
	}
}

func TestAnyProfileVerifies(t *testing.T) {
	for _, name := range []string{"delivery-envelope", "stripe", "github", "shopify", "slack"} {
		t.Run(name, func(t *testing.T) {
			contract, err := profile.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			scheme, err := contract.Scheme()
			if err != nil {
				t.Fatal(err)
			}
			key, err := scheme.Key("current", "public test secret of whconform, good for nothing")
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, func(c *fakeendpoint.Config) { c.Profile = contract })
			p := r.path("any", "200", key)
			body := `{"delivery_id":"whd_1","id":"whd_1"}`
			headers, err := scheme.Sign(signature.Input{ID: "whd_1", Time: now, Body: []byte(body)}, key)
			if err != nil {
				t.Fatal(err)
			}
			conn := dial(t, p)
			conn.send(post(p, body, headers...) + post(p, body))
			conn.answer()
			conn.answer()
			all := attempts(t, p, 2)
			if !all[0].Verification.OK() || all[1].Verification.OK() {
				t.Errorf("%+v, %+v", all[0].Verification, all[1].Verification)
			}
		})
	}
	paypal, err := profile.Load("paypal")
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	if _, err := fakeendpoint.Start(fakeendpoint.Config{Clock: r.clock, Profile: paypal}); err == nil {
		t.Error("a profile that cannot be verified was taken")
	}
}

func TestASecretInARequestIsNamedAndNotShown(t *testing.T) {
	r := newRig(t)
	p := r.path("leak", "200", r.key)
	conn := dial(t, p)
	bare := strings.TrimPrefix(secret, "whsec_")
	conn.send(post(p, "{}", wire.Header{Name: "X-Debug", Value: "key=" + secret}))
	conn.answer()
	conn.send(post(p, strings.Repeat("x", 100_000)+bare))
	conn.answer()
	for i, a := range attempts(t, p, 2) {
		if !reflect.DeepEqual(a.Verification.Leaks, []string{"current"}) {
			t.Errorf("request %d leaks %v", i, a.Verification.Leaks)
		}
		text, err := json.Marshal(a)
		if err != nil || strings.Contains(string(text)+fmt.Sprintf("%+v", a), bare) {
			t.Errorf("request %d is shown with the secret: %v", i, err)
		}
	}
}

func TestTheDelayOfARetryIsFromTheEndOfTheAttemptBefore(t *testing.T) {
	r := newRig(t)
	p := r.path("since", "500,slow(3s,500),200", r.key)
	conn := dial(t, p)
	conn.status(r.signed(p, "msg_1", "{}"))
	r.clock.Add(5 * time.Second)
	conn.send(r.signed(p, "msg_1", "{}"))
	r.held(1)
	r.clock.Add(3 * time.Second)
	conn.answer()
	r.clock.Add(300 * time.Second)
	conn.status(r.signed(p, "msg_1", "{}"))
	conn.status(r.signed(p, "msg_2", "{}"))
	all := attempts(t, p, 4)
	var got []string
	for _, a := range all {
		got = append(got, fmt.Sprintf("%s %d after %v", a.ID, a.OfMessage, a.Since))
	}
	if want := []string{"msg_1 1 after 0s", "msg_1 2 after 5s", "msg_1 3 after 5m0s", "msg_2 1 after 0s"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAttemptsOfAMessageAreToldOfInTheirOrder(t *testing.T) {
	const copies = 300
	told := make(chan fakeendpoint.Attempt, copies)
	r := newRig(t, func(c *fakeendpoint.Config) { c.OnAttempt = func(a fakeendpoint.Attempt) { told <- a } })
	p := r.path("order", "200", r.key)
	for range copies { // each at once when the one before is answered, by another connection
		r.clock.Set(r.clock.Now().Add(time.Second))
		conn := dial(t, p)
		conn.status(r.signed(p, "msg_1", "{}"))
		_ = conn.Close()
	}
	for i := range copies {
		a := <-told
		if a.OfMessage != i+1 || i > 0 && a.Since != time.Second {
			t.Fatalf("told of attempt %d as number %d, %v after the last", a.OfMessage, i+1, a.Since)
		}
	}
}

func TestWaitReturnsWhenAttemptsAreOver(t *testing.T) {
	r := newRig(t)
	p := r.path("wait", "200,hang")
	conn := dial(t, p)
	type result struct {
		exchanges []wire.Exchange
		err       error
	}
	done := make(chan result, 1)
	go func() {
		x, err := p.Wait(t.Context(), 1)
		done <- result{x, err}
	}()
	conn.status(post(p, "{}"))
	if got := <-done; got.err != nil || len(got.exchanges) != 1 || got.exchanges[0].Label != "wait/1" {
		t.Errorf("it returned %+v", got)
	}
	conn.send(post(p, "{}"))
	if err := p.WaitArrived(t.Context(), 2); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the test has seen enough")
	cancel(why)
	if x, err := p.Wait(ctx, 2); !errors.Is(err, why) || len(x) != 1 {
		t.Errorf("an attempt that hangs is over: %v, %v", x, err)
	}
}

func TestWhatBoundsMakeItForgetIsCounted(t *testing.T) {
	r := newRig(t, func(c *fakeendpoint.Config) { c.Limits.Record = 20 << 10 })
	p := r.path("many", "200")
	conn := dial(t, p)
	for range 100 {
		conn.status(post(p, strings.Repeat("x", 1000)))
	}
	exchanges, err := p.Wait(t.Context(), 100)
	var forgotten *fakeendpoint.ForgottenError
	if !errors.As(err, &forgotten) || forgotten.Count+len(exchanges) != 100 || len(exchanges) < 5 || p.Forgotten() != forgotten.Count {
		t.Errorf("%d are there, the error is %v", len(exchanges), err)
	}
	if last := exchanges[len(exchanges)-1]; last.Label != "many/100" {
		t.Errorf("the last is %s", last.Label)
	}
	if s := r.Stats(); s.Forgotten != int64(forgotten.Count) {
		t.Errorf("the counts are %+v", s)
	}
	if err := p.Reset(); err != nil || p.Forgotten() != 0 {
		t.Error("a reset path has forgotten something")
	}
	for range 100 {
		conn.status(post(p, "{}"))
	}
	if got := len(p.Attempts()); got < 5 {
		t.Errorf("after a reset %d are there", got)
	}
}

func TestBodiesInFlightAreBounded(t *testing.T) {
	r := newRig(t, func(c *fakeendpoint.Config) { c.Limits.InFlight = 100 })
	p := r.path("flight", "hang")
	one, two := dial(t, p), dial(t, p)
	one.send(post(p, strings.Repeat("x", 80)))
	if err := p.WaitArrived(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	two.send(post(p, strings.Repeat("y", 80)))
	r.held(2)
	_, _ = one.Close(), two.Close()
	all := attempts(t, p, 2)
	if a := all[1]; !a.Uncaught || a.Request.Body != nil || a.Request.Size != 80 || r.Stats().Uncaught != 1 {
		t.Errorf("the second is %+v", a)
	}
	// There is room again.
	if err := p.SetScript(script(t, "200")); err != nil {
		t.Fatal(err)
	}
	conn := dial(t, p)
	conn.status(post(p, strings.Repeat("z", 80)))
	if a := attempts(t, p, 3)[2]; a.Uncaught || a.Request.Size != 80 {
		t.Errorf("the third is %+v", a)
	}
}

func TestMoreConnectionsThanAllowedAreReset(t *testing.T) {
	r := newRig(t, func(c *fakeendpoint.Config) { c.Limits.Conns = 1 })
	p := r.path("conns", "200")
	first := dial(t, p)
	first.status(post(p, "{}"))
	c, err := net.Dial("tcp", hostPort(p.URL()))
	if err == nil { // the reset may come before or after connecting has ended
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the second got %v", err)
	}
	if s := r.Stats(); s.Refused != 1 || s.Open != 1 {
		t.Errorf("the counts are %+v", s)
	}
}

func TestAnAttemptSurvivesItsJSONForm(t *testing.T) {
	told := make(chan fakeendpoint.Attempt, 2)
	r := newRig(t, func(c *fakeendpoint.Config) { c.OnAttempt = func(a fakeendpoint.Attempt) { told <- a } })
	p := r.path("json", "503(retry-after=5,body=no),reset", r.key)
	conn := dial(t, p)
	conn.send(r.signed(p, "msg_1", "{}") + post(p, "\xff"))
	_, _ = conn.end()
	for range 2 {
		a := <-told
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var back fakeendpoint.Attempt
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		a.Head, a.Took = "", a.Took.Truncate(time.Microsecond)
		if !reflect.DeepEqual(a, back) {
			t.Errorf("it came back as\n%+v\nwas\n%+v", back, a)
		}
	}
}

func TestPathsAreKnownByTheirNames(t *testing.T) {
	r := newRig(t)
	a, b := r.path("a", "201"), r.path("a/b", "202")
	conn := dial(t, a)
	for target, want := range map[string]int{
		"/a": 201, "/a?x=1": 201, "/a/": 201, "/a/x/y": 201, "/a/b": 202, "/a/b/c": 202, "/ab": 404, "/": 404,
		"http://other/a": 201, "http://other": 404, "*": 404,
	} {
		if got := conn.status("POST " + target + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); got != want {
			t.Errorf("%s is answered %d, want %d", target, got, want)
		}
	}
	if r.Find("a/b") != b || r.Find("nothing") != nil || r.Find("") != r.Fallback() || len(r.Paths()) != 2 || r.Find("trap/a") != nil {
		t.Error("they are not found")
	}
	if trap := a.Trap(); r.Find("trap/a") != trap {
		t.Error("the trap is not found")
	}
	answer, err := http.Get(a.Trap().URL() + "/x")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	attempts(t, a.Trap(), 1)
}
