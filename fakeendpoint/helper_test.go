package fakeendpoint_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// patience bounds a wait that only a fault makes long.
const patience = 20 * time.Second

// now is the virtual time of the tests.
var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// secret is public: it is good for nothing.
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// rig is a server with a virtual clock and a key.
type rig struct {
	*fakeendpoint.Server
	t     testing.TB
	clock *clock.Mock
	key   signature.Key
}

func newRig(t testing.TB, change ...func(*fakeendpoint.Config)) *rig {
	t.Helper()
	r := &rig{t: t, clock: clock.NewMock()}
	r.clock.Set(now)
	scheme := standard(t)
	var err error
	if r.key, err = scheme.Key("current", secret); err != nil {
		t.Fatal(err)
	}
	c := fakeendpoint.Config{Clock: r.clock}
	for _, f := range change {
		f(&c)
	}
	if r.Server, err = fakeendpoint.Start(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return r
}

func standard(t testing.TB) signature.Scheme {
	t.Helper()
	scheme, err := signature.New(signature.StandardWebhooks())
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

func script(t testing.TB, text string) fakeendpoint.Script {
	t.Helper()
	s, err := fakeendpoint.ParseScript(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// path makes a path that is fit to use.
func (r *rig) path(name, text string, keys ...signature.Key) *fakeendpoint.Path {
	r.t.Helper()
	p := r.Path(name, script(r.t, text), keys...)
	if err := p.Err(); err != nil {
		r.t.Fatal(err)
	}
	return p
}

// signed is the bytes of a request that verifies.
func (r *rig) signed(p *fakeendpoint.Path, id, body string) string {
	r.t.Helper()
	headers, err := standard(r.t).Sign(signature.Input{ID: id, Time: r.clock.Now(), Body: []byte(body)}, r.key)
	if err != nil {
		r.t.Fatal(err)
	}
	return post(p, body, headers...)
}

// post is the bytes of a request to a path.
func post(p *fakeendpoint.Path, body string, headers ...wire.Header) string {
	var out strings.Builder
	fmt.Fprintf(&out, "POST /%s HTTP/1.1\r\nHost: x\r\n", p.Name())
	for _, h := range headers {
		fmt.Fprintf(&out, "%s: %s\r\n", h.Name, h.Value)
	}
	fmt.Fprintf(&out, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return out.String()
}

// peer is a raw connection to a path.
type peer struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

// dial connects to the port of a path.
func dial(t testing.TB, p *fakeendpoint.Path) *peer {
	t.Helper()
	return dialURL(t, p.URL())
}

func dialURL(t testing.TB, url string) *peer {
	t.Helper()
	c, err := net.Dial("tcp", hostPort(url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &peer{t, c, bufio.NewReader(c)}
}

func hostPort(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

func (c *peer) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatalf("sending: %v", err)
	}
}

// head reads an answer's head as it stands, the empty line left out.
func (c *peer) head() string {
	c.t.Helper()
	var out strings.Builder
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			c.t.Fatalf("reading a head after %q: %v", out.String(), err)
		}
		if line == "\r\n" {
			return out.String()
		}
		out.WriteString(line)
	}
}

// answer reads an answer with its body, as net/http understands it.
func (c *peer) answer() (*http.Response, string) {
	c.t.Helper()
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatalf("reading the answer: %v", err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatalf("reading the body: %v", err)
	}
	return r, string(body)
}

// status sends a request and reads the status of the answer.
func (c *peer) status(request string) int {
	c.t.Helper()
	c.send(request)
	r, _ := c.answer()
	return r.StatusCode
}

// end tells how the server ended the connection, and what came before.
func (c *peer) end() (got string, how string) {
	c.t.Helper()
	var out bytes.Buffer
	_, err := io.Copy(&out, c.in)
	switch {
	case err == nil:
		return out.String(), "closed"
	case errors.Is(err, syscall.ECONNRESET):
		return out.String(), "reset"
	}
	c.t.Fatalf("reading to the end: %v", err)
	return "", ""
}

// attempts waits for n of them.
func attempts(t testing.TB, p *fakeendpoint.Path, n int) []fakeendpoint.Attempt {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := p.Wait(ctx, n); err != nil {
		t.Fatal(err)
	}
	return p.Attempts()
}

// held waits until n requests are held, and returns when the next is due.
func (r *rig) held(n int) time.Time {
	r.t.Helper()
	deadline := time.After(patience)
	for {
		changed := r.HeldChanged()
		got, next := r.Held()
		if got == n && (next.IsZero() || next.After(r.clock.Now())) {
			return next
		}
		select {
		case <-changed:
		case <-deadline:
			r.t.Fatalf("%d requests are held, not %d", got, n)
		}
	}
}

// until waits for what no channel tells.
func (r *rig) until(what string, is func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(patience)
	for !is() {
		if time.Now().After(deadline) {
			r.t.Fatalf("it never came that %s", what)
		}
		time.Sleep(200 * time.Microsecond)
	}
}

func mustKey(t testing.TB) signature.Key {
	t.Helper()
	key, err := standard(t).Key("current", secret)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// memory is what the Go program uses: heap and stacks, once what is garbage is
// collected and what shrinks has shrunk.
func memory() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
