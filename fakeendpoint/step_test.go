package fakeendpoint_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/wire"
)

// These tests watch each step of the language from a raw socket.

func TestAStatusIsAnsweredAsItStands(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct{ script, head, body string }{
		{"200", "HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nContent-Length: 0\r\n", ""},
		{"204", "HTTP/1.1 204 No Content\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\n", ""},
		{"299", "HTTP/1.1 299 \r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nContent-Length: 0\r\n", ""},
		{"410", "HTTP/1.1 410 Gone\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nContent-Length: 0\r\n", ""},
		{"999", "HTTP/1.1 999 \r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nContent-Length: 0\r\n", ""},
		{"503(retry-after=600)", "HTTP/1.1 503 Service Unavailable\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nRetry-After: 600\r\nContent-Length: 0\r\n", ""},
		{"503(retry-after=10m)", "HTTP/1.1 503 Service Unavailable\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nRetry-After: 600\r\nContent-Length: 0\r\n", ""},
		{"503(retry-after=date+30s)", "HTTP/1.1 503 Service Unavailable\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nRetry-After: Mon, 30 Nov 2026 12:00:30 GMT\r\nContent-Length: 0\r\n", ""},
		{"503(retry-after=date-1h)", "HTTP/1.1 503 Service Unavailable\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nRetry-After: Mon, 30 Nov 2026 11:00:00 GMT\r\nContent-Length: 0\r\n", ""},
		{"503(retry-after=soon)", "HTTP/1.1 503 Service Unavailable\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nRetry-After: soon\r\nContent-Length: 0\r\n", ""},
		{"301(location=http://127.0.0.1:1/x)", "HTTP/1.1 301 Moved Permanently\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 0\r\n", ""},
		{`400(body="what?",header="X-A: 1",close)`, "HTTP/1.1 400 Bad Request\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nX-A: 1\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\nConnection: close\r\n", "what?"},
	} {
		t.Run(c.script, func(t *testing.T) {
			p := r.path("status", c.script)
			conn := dial(t, p)
			conn.send(post(p, "{}"))
			if got := conn.head(); got != c.head {
				t.Errorf("the head is\n%s\nwant\n%s", got, c.head)
			}
			body := make([]byte, len(c.body))
			if _, err := io.ReadFull(conn.in, body); err != nil || string(body) != c.body {
				t.Errorf("the body is %q, %v", body, err)
			}
			if strings.Contains(c.script, "close") {
				if rest, how := conn.end(); rest != "" || how != "closed" {
					t.Errorf("then came %q and it was %s", rest, how)
				}
			} else if status := conn.status(post(p, "{}")); status == 0 {
				t.Error("the connection takes no second request")
			}
		})
	}
}

func TestStepsAreTakenOneAnAttemptAndTheLastRepeats(t *testing.T) {
	r := newRig(t)
	p := r.path("steps", "500*2,503,200")
	conn := dial(t, p)
	for i, want := range []int{500, 500, 503, 200, 200, 200} {
		if got := conn.status(post(p, "{}")); got != want {
			t.Errorf("attempt %d is answered %d, want %d", i+1, got, want)
		}
	}
	all := attempts(t, p, 6)
	if all[1].Step != "500" || all[1].Number != 2 || all[1].Label != "steps/2" || all[5].Step != "200" {
		t.Errorf("the record is %+v", all[1])
	}
	if err := p.SetScript(script(t, "410")); err != nil {
		t.Fatal(err)
	}
	if got := conn.status(post(p, "{}")); got != 410 {
		t.Errorf("another script answers %d", got)
	}
	if err := p.Reset(); err != nil {
		t.Fatal(err)
	}
	if arrived, concluded := p.Count(); arrived+concluded+len(p.Attempts()) != 0 {
		t.Error("a reset path remembers attempts")
	}
}

func TestAStepLastsATime(t *testing.T) {
	r := newRig(t)
	p := r.path("for", "503*30s,200")
	conn := dial(t, p)
	r.clock.Add(time.Hour) // the step begins with its first attempt
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 503}, {10 * time.Second, 503}, {20*time.Second - 1, 503}, {1, 200}, {0, 200}} {
		r.clock.Add(c.after)
		if got := conn.status(post(p, "{}")); got != c.want {
			t.Errorf("%v later it answers %d, want %d", c.after, got, c.want)
		}
	}
}

func TestA429IsAnsweredUntilItsRetryAfterHasPassed(t *testing.T) {
	for _, c := range []struct{ script, first, second string }{
		{"429(retry-after=30)*until,200", "30", "18"},
		{"429(retry-after=30s)*until,200", "30", "18"},
		{"429(retry-after=date+30s)*until,200", "Mon, 30 Nov 2026 12:00:30 GMT", "Mon, 30 Nov 2026 12:00:30 GMT"},
	} {
		t.Run(c.script, func(t *testing.T) {
			r := newRig(t)
			p := r.path("until", c.script)
			conn := dial(t, p)
			for _, want := range []struct {
				after  time.Duration
				status int
				header string
			}{{0, 429, c.first}, {12 * time.Second, 429, c.second}, {18*time.Second - time.Millisecond, 429, ""}, {time.Millisecond, 200, ""}} {
				r.clock.Add(want.after)
				conn.send(post(p, "{}"))
				answer, _ := conn.answer()
				if got := answer.Header.Get("Retry-After"); answer.StatusCode != want.status || want.header != "" && got != want.header {
					t.Errorf("%v later it answers %d, Retry-After %q; want %d, %q", want.after, answer.StatusCode, got, want.status, want.header)
				}
			}
		})
	}
}

func TestARedirectWithoutLocationLeadsToATrap(t *testing.T) {
	r := newRig(t)
	p := r.path("moved", "307")
	conn := dial(t, p)
	conn.send(post(p, "{}"))
	answer, _ := conn.answer()
	if got := len(p.Trap().Attempts()); got != 0 {
		t.Fatalf("%d requests are in the trap", got)
	}
	request, err := http.NewRequestWithContext(t.Context(), "GET", answer.Header.Get("Location"), nil)
	if err != nil {
		t.Fatal(err)
	}
	followed, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = followed.Body.Close()
	if got := attempts(t, p.Trap(), 1); got[0].Request.Method != "GET" {
		t.Errorf("the trap holds %+v", got)
	}
	if got := len(attempts(t, p, 1)); got != 1 {
		t.Errorf("the path counts %d attempts", got)
	}
}

func TestInterimAnswersComeBeforeTheAnswer(t *testing.T) {
	r := newRig(t)
	p := r.path("interim", `103(header="Link: </a>")*2,100,503`)
	conn := dial(t, p)
	conn.send(post(p, "{}"))
	want := []string{"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n", "HTTP/1.1 100 Continue\r\n"}
	for i, w := range want {
		if got := conn.head(); got != w {
			t.Errorf("interim answer %d is %q", i+1, got)
		}
	}
	if got := conn.head(); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
		t.Errorf("the answer is %q", got)
	}
}

func TestSlowAnswersWhenItsTimeHasCome(t *testing.T) {
	r := newRig(t)
	p := r.path("slow", "slow(20s,503(retry-after=5)),200")
	conn := dial(t, p)
	conn.send(post(p, "{}"))
	if next := r.held(1); !next.Equal(now.Add(20 * time.Second)) {
		t.Errorf("the next is due at %v", next)
	}
	r.clock.Add(20*time.Second - 1)
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	if _, err := conn.in.ReadByte(); err == nil {
		t.Fatal("it answered early")
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	r.clock.Add(1)
	if answer, _ := conn.answer(); answer.StatusCode != 503 || answer.Header.Get("Retry-After") != "5" {
		t.Errorf("it answered %d", answer.StatusCode)
	}
	r.held(0)
	if got := conn.status(post(p, "{}")); got != 200 {
		t.Errorf("the next request on the connection is answered %d", got)
	}
	a := attempts(t, p, 2)[0]
	if a.Ended.Sub(a.Began) != 20*time.Second || a.Step != "slow(20s,503(retry-after=5))" {
		t.Errorf("the record is %+v", a)
	}
}

func TestARequestSentIntoAHeldConnectionIsTheNextOne(t *testing.T) {
	r := newRig(t)
	p := r.path("pipelined", "slow(20s,503),200")
	conn := dial(t, p)
	conn.send(post(p, "{}") + post(p, "[]"))
	r.held(1)
	r.clock.Add(20 * time.Second)
	for _, want := range []int{503, 200} {
		if answer, _ := conn.answer(); answer.StatusCode != want {
			t.Errorf("it answered %d, want %d", answer.StatusCode, want)
		}
	}
	if got := attempts(t, p, 2)[1]; string(got.Request.Body) != "[]" || got.Nth != 2 {
		t.Errorf("the second is %+v", got)
	}
}

func TestHangLastsUntilThePeerLeaves(t *testing.T) {
	for how, leave := range map[string]func(*net.TCPConn) error{
		"closed": func(c *net.TCPConn) error { return c.Close() },
		"reset": func(c *net.TCPConn) error {
			_ = c.SetLinger(0)
			return c.Close()
		},
	} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t)
			p := r.path("hang", "hang,200")
			conn := dial(t, p)
			conn.send(post(p, "{}"))
			if next := r.held(1); !next.IsZero() {
				t.Errorf("something is due at %v", next)
			}
			r.clock.Add(15 * time.Second)
			if err := leave(conn.Conn.(*net.TCPConn)); err != nil {
				t.Fatal(err)
			}
			a := attempts(t, p, 1)[0]
			r.held(0)
			if a.Peer != how || a.Response != nil || a.Ended.Sub(a.Began) != 15*time.Second || a.BodyEnd.IsZero() || !a.Answered.IsZero() {
				t.Errorf("the record is %+v", a)
			}
			if want := map[string]string{"closed": wire.FaultTimeout, "reset": wire.FaultReset}[how]; a.Fault != want {
				t.Errorf("the fault is %s: %s", a.Fault, a.FaultDetail)
			}
		})
	}
}

func TestDripSendsAPieceAtATime(t *testing.T) {
	for _, c := range []struct{ script, first string }{
		{"drip(1B,1s,size=4)", ""},
		{"drip(1B,1s,size=4,head,status=500)", "H"},
	} {
		t.Run(c.script, func(t *testing.T) {
			r := newRig(t)
			p := r.path("drip", c.script)
			conn := dial(t, p)
			conn.send(post(p, "{}"))
			total := 4
			if c.first == "" {
				if head := conn.head(); !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\n") || !strings.Contains(head, "Content-Length: 4\r\n") {
					t.Errorf("the head is %q", head)
				}
			} else {
				total += len("HTTP/1.1 500 Internal Server Error\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nContent-Length: 4\r\n\r\n")
			}
			var got strings.Builder
			for i := range total {
				b, err := conn.in.ReadByte()
				if err != nil {
					t.Fatal(err)
				}
				got.WriteByte(b)
				if conn.in.Buffered() > 0 {
					t.Fatalf("more than a byte came at once after %q", got.String())
				}
				if i < total-1 {
					if next := r.held(1); !next.Equal(r.clock.Now().Add(time.Second)) {
						t.Fatalf("the next is due at %v", next)
					}
					r.clock.Add(time.Second)
				}
			}
			if a := attempts(t, p, 1)[0]; a.Response.Size != 4 || a.Ended.Sub(a.Began) != time.Duration(total-1)*time.Second {
				t.Errorf("the record is %+v", a)
			}
			if !strings.HasPrefix(got.String(), c.first) {
				t.Errorf("it sent %q", got.String())
			}
		})
	}
}

func TestADripThatThePeerLeavesIsRecordedAsFarAsItCame(t *testing.T) {
	r := newRig(t)
	p := r.path("drip", "drip(10B,1s),drip(10B,1s,head)")
	for n := range 2 {
		conn := dial(t, p)
		conn.send(post(p, "{}"))
		r.held(1)
		r.clock.Add(time.Second)
		if n == 0 {
			conn.head()
		}
		if _, err := io.ReadFull(conn.in, make([]byte, 20)); err != nil { // else closing is a reset
			t.Fatal(err)
		}
		_ = conn.Close()
		a := attempts(t, p, n+1)[n]
		switch {
		case a.Peer != "closed":
			t.Errorf("the peer is %q", a.Peer)
		case n == 0 && (a.Response == nil || a.Response.Size != 20):
			t.Errorf("the answer is %+v", a.Response)
		case n == 1 && (a.Response != nil || a.Written != 20 || a.Fault != wire.FaultTimeout):
			t.Errorf("the record is %+v", a)
		}
	}
}

func TestEarlyAnswersWithoutReadingTheBody(t *testing.T) {
	r := newRig(t)
	p := r.path("early", "early(413)")
	conn := dial(t, p)
	conn.send("POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nbegin")
	answer, _ := conn.answer()
	if answer.StatusCode != 413 || !answer.Close {
		t.Errorf("it answered %d, close %v", answer.StatusCode, answer.Close)
	}
	a := attempts(t, p, 1)[0]
	if a.Request.Size != 1_000_000 || a.Sent != 5 || string(a.Request.Body) != "begin" || !a.BodyEnd.IsZero() {
		t.Errorf("the record is %+v", a)
	}
	// What is sent after it is counted, as late as it is read.
	conn.send(strings.Repeat("x", 1000))
	_ = conn.Conn.(*net.TCPConn).CloseWrite()
	if _, how := conn.end(); how != "closed" {
		t.Errorf("the connection was %s", how)
	}
	r.until("the rest is counted", func() bool { return p.Attempts()[0].BodyRead == 1005 })
}

func TestAnEarlyAnswerReadsNothing(t *testing.T) {
	r := newRig(t)
	p := r.path("early", "early(413)")
	conn := dial(t, p)
	conn.send("POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n")
	conn.head()
	_ = conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	n, err := io.CopyN(conn, zeros{}, 1_000_000_000)
	if err == nil || n > 16<<20 {
		t.Errorf("it took %d bytes", n)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestASmallBodyBehindAnEarlyAnswerIsVerified(t *testing.T) {
	r := newRig(t)
	p := r.path("early", "early(503(retry-after=9))", r.key)
	conn := dial(t, p)
	conn.send(r.signed(p, "msg_1", "{}"))
	if answer, _ := conn.answer(); answer.StatusCode != 503 || answer.Header.Get("Retry-After") != "9" {
		t.Errorf("it answered %d", answer.StatusCode)
	}
	if a := attempts(t, p, 1)[0]; !a.Verification.OK() || a.BodyEnd.IsZero() {
		t.Errorf("the record is %+v", a)
	}
}

func TestHEADGetsNoBody(t *testing.T) {
	r := newRig(t)
	p := r.path("head", `200(body=hello),huge(1MiB),truncate,gzip-bomb(1MiB),drip(1B,1s)`)
	conn := dial(t, p)
	for range 5 {
		conn.send("HEAD /head HTTP/1.1\r\nHost: x\r\n\r\n")
		if head := conn.head(); !strings.HasPrefix(head, "HTTP/1.1 200 ") || strings.Contains(head, "Content-Length: 0") {
			t.Errorf("the head is %q", head)
		}
	}
	attempts(t, p, 5)
}

func TestAnHTTP10ClientGetsNoChunks(t *testing.T) {
	r := newRig(t)
	p := r.path("old", "huge(100KiB,chunked)")
	conn := dial(t, p)
	conn.send("POST /old HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}")
	got, how := conn.end()
	_, body, _ := strings.Cut(got, "\r\n\r\n")
	if len(body) != 100<<10 || how != "closed" || strings.Contains(got, "chunked") {
		t.Errorf("%d bytes, %s", len(body), how)
	}
}

func TestAScriptInTheURLIsAScenarioOfItsOwn(t *testing.T) {
	r := newRig(t)
	s := script(t, `500*2,503(retry-after="a/b"),200`)
	conn := dialURL(t, r.URL())
	get := func(at string) int {
		return conn.status("POST " + at + " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	}
	for i, want := range []int{500, 500, 503, 200, 200} {
		if got := get(s.Path() + "/any/path?query=1"); got != want {
			t.Errorf("attempt %d is answered %d, want %d", i+1, got, want)
		}
	}
	if got := get(s.Path() + "/another"); got != 500 {
		t.Errorf("another path's first attempt is answered %d", got)
	}
	if got := get("/s/500*2,200"); got != 500 {
		t.Errorf("a path without more behind the script is answered %d", got)
	}
	p := r.Find(s.Path()[1:] + "/any/path")
	if p == nil || len(attempts(t, p, 5)) != 5 {
		t.Fatal("the path is not found")
	}
	if got := get("/s/hagn/x"); got != 404 {
		t.Errorf("a script that cannot be read is answered %d", got)
	}
	if strays := r.Strays(); len(strays) != 1 || !strings.Contains(strays[0].Reason, `did you mean "hang"`) {
		t.Errorf("the strays are %+v", strays)
	}
}

func TestAScriptInTheURLCannotBeAboutConnections(t *testing.T) {
	r := newRig(t)
	conn := dialURL(t, r.URL())
	conn.send("POST /s/expired/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
	if answer, body := conn.answer(); answer.StatusCode != 404 || !strings.Contains(body, "about connections") {
		t.Errorf("it answered %d %s", answer.StatusCode, body)
	}
}

func TestWhatIsSentToNoPathIsRecorded(t *testing.T) {
	r := newRig(t)
	if got := dialURL(t, r.URL()).status("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"); got != 404 {
		t.Errorf("it answered %d", got)
	}
	if got := attempts(t, r.Fallback(), 1); got[0].Request.Target != "/nowhere" {
		t.Errorf("the record is %+v", got)
	}
	ok := script(t, "500,200")
	r = newRig(t, func(c *fakeendpoint.Config) { c.Fallback = &ok })
	conn := dialURL(t, r.URL())
	for _, want := range []int{500, 200} {
		if got := conn.status("POST /anything HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); got != want {
			t.Errorf("the fallback script answers %d, want %d", got, want)
		}
	}
}
