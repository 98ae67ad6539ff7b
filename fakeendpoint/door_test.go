package fakeendpoint_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/wire"
)

// request asks a URL once, on a connection of its own, and returns the status
// or the error.
func request(t *testing.T, url string, config *tls.Config) (int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	_ = answer.Body.Close()
	return answer.StatusCode, nil
}

func TestCertificatesAreWhatTheyAreCalled(t *testing.T) {
	for _, c := range []struct {
		certificate fakeendpoint.Certificate
		says        string
	}{
		{fakeendpoint.Good, ""},
		{fakeendpoint.Expired, "expired"},
		{fakeendpoint.WrongHost, "127.0.0.1"},
		{fakeendpoint.SelfSigned, "unknown authority"},
	} {
		t.Run(string(c.certificate), func(t *testing.T) {
			r := newRig(t, func(config *fakeendpoint.Config) { config.Certificate = c.certificate })
			p := r.path("tls", "200")
			status, err := request(t, p.URL(), r.ClientTLS())
			if c.says == "" {
				if err != nil || status != 200 || !strings.HasPrefix(p.URL(), "https://") {
					t.Fatalf("%d, %v", status, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("the error is %v", err)
			}
			r.until("the handshake is noted", func() bool { return r.Stats().Strays == 1 })
			// Who does not look is answered.
			if status, err := request(t, p.URL(), &tls.Config{InsecureSkipVerify: true}); err != nil || status != 200 {
				t.Errorf("%d, %v", status, err)
			}
		})
	}
}

func TestHTTP2IsNotOffered(t *testing.T) {
	r := newRig(t, func(c *fakeendpoint.Config) { c.Certificate = fakeendpoint.Good })
	config := r.ClientTLS()
	config.NextProtos = []string{"h2", "http/1.1"}
	c, err := tls.Dial("tcp", hostPort(r.URL()), config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("%q was chosen", got)
	}
}

func TestStepsAboutCertificatesAreTakenOneAHandshake(t *testing.T) {
	r := newRig(t)
	p := r.path("certs", "expired*2,wrong-host,self-signed,500,200")
	if !strings.HasPrefix(p.URL(), "https://") || hostPort(p.URL()) == hostPort(r.URL()) {
		t.Fatalf("its URL is %s", p.URL())
	}
	for i, says := range []string{"expired", "expired", "127.0.0.1", "unknown authority"} {
		if status, err := request(t, p.URL(), r.ClientTLS()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("attempt %d: %d, %v", i+1, status, err)
		}
		attempts(t, p, i+1)
	}
	for _, want := range []int{500, 200, 200} {
		if status, err := request(t, p.URL(), r.ClientTLS()); err != nil || status != want {
			t.Errorf("%d, %v; want %d", status, err, want)
		}
	}
	all := attempts(t, p, 7)
	if a := all[0]; a.Fault != wire.FaultTLS || a.Step != "expired" || a.Number != 1 || a.Request.Method != "" || a.Remote == "" {
		t.Errorf("the record is %+v", a)
	}
	if a := all[4]; a.Response.Status != 500 || a.Number != 5 {
		t.Errorf("the record is %+v", a)
	}
}

func TestWhoAcceptsABadCertificateIsAnswered(t *testing.T) {
	r := newRig(t)
	p := r.path("certs", "expired,200", r.key)
	if status, err := request(t, p.URL(), &tls.Config{InsecureSkipVerify: true}); err != nil || status != 200 {
		t.Fatalf("%d, %v", status, err)
	}
	a := attempts(t, p, 1)[0]
	if a.Fault != "" || a.Number != 1 || a.Step != "expired" || len(a.Remarks) != 1 || !strings.Contains(a.Remarks[0], "accepted the certificate") {
		t.Errorf("the record is %+v", a)
	}
	// One that shakes hands and looks at the certificate only then, as curl does
	// for the name in it, has used its attempt too.
	if err := p.Reset(); err != nil {
		t.Fatal(err)
	}
	c, err := tls.Dial("tcp", hostPort(p.URL()), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if a := attempts(t, p, 1)[0]; a.Fault != wire.FaultTLS || !strings.Contains(a.FaultDetail, "without a request") {
		t.Errorf("the record is %+v", a)
	}
}

func TestPlainHTTPSpokenToTLSIsAStray(t *testing.T) {
	r := newRig(t, func(c *fakeendpoint.Config) { c.Certificate = fakeendpoint.Good })
	c := dialURL(t, r.URL())
	c.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	_, _ = c.end()
	r.until("it is noted", func() bool { return len(r.Strays()) == 1 })
	if s := r.Strays()[0]; !strings.Contains(s.Reason, "TLS handshake failed") {
		t.Errorf("the stray is %+v", s)
	}
}

func TestNobodyListensWhileConnectionsAreRefused(t *testing.T) {
	r := newRig(t)
	p := r.path("refuse", "500,refuse(30s),200")
	if status, err := request(t, p.URL(), nil); err != nil || status != 500 {
		t.Fatalf("%d, %v", status, err)
	}
	attempts(t, p, 1)
	r.until("the port is closed", func() bool {
		_, err := request(t, p.URL(), nil)
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	if n, next := r.Held(); n != 0 || !next.Equal(now.Add(30*time.Second)) {
		t.Errorf("%d are held, the next at %v", n, next)
	}
	r.clock.Add(30 * time.Second)
	r.held(0)
	if status, err := request(t, p.URL(), nil); err != nil || status != 200 {
		t.Errorf("afterwards: %d, %v", status, err)
	}
	if got := attempts(t, p, 2); len(got) != 2 || got[1].Number != 2 {
		t.Errorf("%d attempts are recorded", len(got))
	}
}

func TestAnOutageWithoutDurationLastsUntilTheScriptChanges(t *testing.T) {
	r := newRig(t)
	p := r.path("refuse", "refuse,200")
	if _, err := request(t, p.URL(), nil); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("the error is %v", err)
	}
	r.clock.Add(100 * time.Hour)
	if _, err := request(t, p.URL(), nil); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("later the error is %v", err)
	}
	if err := p.SetScript(script(t, "204")); err != nil {
		t.Fatal(err)
	}
	if status, err := request(t, p.URL(), nil); err != nil || status != 204 {
		t.Errorf("%d, %v", status, err)
	}
	if err := p.SetScript(script(t, "refuse(5s),refuse(5s),200")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := request(t, p.URL(), nil); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("the error is %v", err)
		}
		_, due := r.Held()
		r.clock.Add(5 * time.Second)
		r.until("the outage is over", func() bool { _, next := r.Held(); return !next.Equal(due) })
	}
	r.held(0)
	if status, err := request(t, p.URL(), nil); err != nil || status != 200 {
		t.Errorf("%d, %v", status, err)
	}
}

func TestConnectingNeverCompletesWhileTheQueueIsFull(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("how other kernels treat a full accept queue differs")
	}
	r := newRig(t)
	p := r.path("full", "full-queue(30s),200")
	if c, err := net.DialTimeout("tcp", hostPort(p.URL()), 300*time.Millisecond); err == nil {
		_ = c.Close()
		t.Fatal("the connection was made")
	} else if timeout, ok := err.(net.Error); !ok || !timeout.Timeout() {
		t.Fatalf("the error is %v", err)
	}
	r.clock.Add(30 * time.Second)
	r.held(0)
	if status, err := request(t, p.URL(), nil); err != nil || status != 200 {
		t.Errorf("afterwards: %d, %v", status, err)
	}
	if got := attempts(t, p, 1); len(got) != 1 {
		t.Errorf("%d attempts are recorded", len(got))
	}
}

func TestAPathOfItsOwnTakesARequestAConnection(t *testing.T) {
	r := newRig(t)
	p := r.path("own", "500,refuse(1s),huge(10KiB),200")
	conn := dial(t, p)
	conn.send(post(p, "{}") + post(p, "{}"))
	if got, how := conn.end(); strings.Count(got, "HTTP/1.1 ") != 1 || !strings.Contains(got, "Connection: close") {
		t.Errorf("it sent %q and was %s", got, how)
	}
}

func TestAScriptAboutConnectionsNeedsAPathMadeForIt(t *testing.T) {
	r := newRig(t)
	p := r.path("shared", "200")
	if err := p.SetScript(script(t, "refuse(5s),200")); err == nil || !strings.Contains(err.Error(), "shares its port") {
		t.Errorf("the error is %v", err)
	}
	p = r.path("own", "refuse(5s),200")
	if err := p.SetScript(script(t, "expired,200")); err == nil || !strings.Contains(err.Error(), "does not speak TLS") {
		t.Errorf("the error is %v", err)
	}
	fallback := script(t, "expired,200")
	if _, err := fakeendpoint.Start(fakeendpoint.Config{Clock: r.clock, Fallback: &fallback}); err == nil {
		t.Error("a fallback about connections was taken")
	}
}

func TestOthersThanThisMachineReachNothingUnasked(t *testing.T) {
	r := newRig(t)
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:0"} {
		if _, err := fakeendpoint.Start(fakeendpoint.Config{Clock: r.clock, Addr: addr}); err == nil || !strings.Contains(err.Error(), "set Remote") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	s, err := fakeendpoint.Start(fakeendpoint.Config{Clock: r.clock, Addr: "0.0.0.0:0", Remote: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestAPathThatCannotBeSaysWhy(t *testing.T) {
	r := newRig(t, func(c *fakeendpoint.Config) { c.Limits.Paths = 2 })
	for name, says := range map[string]string{"": "no name", "s/200": "meaning of their own", "trap/x": "meaning of their own", "a b": "stands in no URL", "a?b": "stands in no URL"} {
		if err := r.Path(name, fakeendpoint.Script{}).Err(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", name, err)
		}
	}
	r.path("one", "200")
	r.path("two", "200")
	r.path("two", "500") // in the place of the first
	three := r.Path("three", fakeendpoint.Script{})
	if _, err := three.Wait(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "Limits.Paths") {
		t.Errorf("a path too many: %v", err)
	}
	conn := dialURL(t, r.URL())
	if got := conn.status("POST /s/200/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); got != 503 {
		t.Errorf("a script in the URL too many is answered %d", got)
	}
	if s := r.Stats(); s.NoPath != 1 || s.Paths != 2 {
		t.Errorf("the counts are %+v", s)
	}
}

func TestClosingEndsWhatIsHeldAndWhoWaits(t *testing.T) {
	r := newRig(t)
	p := r.path("hang", "hang")
	conn := dial(t, p)
	conn.send(post(p, "{}"))
	r.held(1)
	waited := make(chan error, 1)
	go func() {
		_, err := p.Wait(context.Background(), 2)
		waited <- err
	}()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := <-waited; !errors.Is(err, fakeendpoint.ErrClosed) {
		t.Errorf("the waiter is told %v", err)
	}
	if n, _ := r.Held(); n != 0 {
		t.Errorf("%d are held", n)
	}
	if got := p.Attempts(); len(got) != 1 {
		t.Errorf("%d attempts can be read", len(got))
	}
	if err := r.Path("late", fakeendpoint.Script{}).Err(); !errors.Is(err, fakeendpoint.ErrClosed) {
		t.Errorf("a late path: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestScriptsHoldAndResetOverTLSToo(t *testing.T) {
	r := newRig(t, func(c *fakeendpoint.Config) { c.Certificate = fakeendpoint.Good })
	p := r.path("tls", "slow(5s,503),drip(1B,1s,size=2),huge(1MiB,chunked),early(413),reset", r.key)
	connect := func() *peer {
		c, err := tls.Dial("tcp", hostPort(p.URL()), r.ClientTLS())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(patience))
		return &peer{t, c, bufio.NewReader(c)}
	}
	conn := connect()
	conn.send(r.signed(p, "msg_1", "{}") + post(p, "{}"))
	r.held(1)
	r.clock.Add(5 * time.Second)
	if answer, _ := conn.answer(); answer.StatusCode != 503 {
		t.Errorf("it answered %d", answer.StatusCode)
	}
	r.held(1) // the second request had come with the first
	r.clock.Add(time.Second)
	if answer, body := conn.answer(); answer.StatusCode != 200 || len(body) != 2 {
		t.Errorf("it answered %d %q", answer.StatusCode, body)
	}
	conn.send(post(p, "{}"))
	if _, body := conn.answer(); len(body) != 1<<20 {
		t.Errorf("%d bytes came", len(body))
	}
	conn.send("POST /tls HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
	if answer, _ := conn.answer(); answer.StatusCode != 413 {
		t.Errorf("it answered %d", answer.StatusCode)
	}
	conn = connect()
	conn.send(post(p, "{}"))
	if _, err := conn.in.ReadByte(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the error is %v", err)
	}
	if all := attempts(t, p, 5); !all[0].Verification.OK() || all[4].Fault != wire.FaultReset {
		t.Errorf("the records are %+v", all)
	}
}
