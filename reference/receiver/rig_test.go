package receiver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// patience bounds a wait that only a fault makes long.
const patience = 20 * time.Second

// event is a body of the size that providers usually send.
const event = `{"type":"invoice.paid","timestamp":"2026-01-02T15:04:05Z","data":{"id":"in_1","amount":1250}}`

func standard() *profile.Profile {
	return &profile.Profile{Name: "standard-webhooks", Signature: signature.StandardWebhooks(), Handshake: "none"}
}

func envelope() *profile.Profile {
	return &profile.Profile{Name: "delivery-envelope", Signature: signature.DeliveryEnvelope(), Handshake: "none"}
}

// rig is a receiver behind a real port, with the provider's side of it.
type rig struct {
	t        testing.TB
	receiver *Receiver
	scheme   signature.Scheme
	key      signature.Key
	store    *Memory
	clock    *clock.Mock
	logs     *logBuffer
	addr     string
}

// newRig starts a receiver for p; change may alter its configuration.
func newRig(t testing.TB, p *profile.Profile, change func(*Config)) *rig {
	t.Helper()
	g := &rig{t: t, store: NewMemory(), clock: clock.NewMock(), logs: &logBuffer{}}
	g.clock.Set(time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC))
	var err error
	if g.scheme, err = signature.New(p.Signature); err != nil {
		t.Fatal(err)
	}
	g.key = keyOf(t, g.scheme, "current", 1)
	c := Config{
		Profile: p, Keys: []signature.Key{g.key}, Store: g.store, Clock: g.clock,
		Logger: slog.New(slog.NewTextHandler(g.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&c)
	}
	if g.receiver, err = New(c); err != nil {
		t.Fatal(err)
	}
	g.addr = serve(t, g.receiver)
	return g
}

// serve runs h behind the server of this package until the test ends.
func serve(t testing.TB, h http.Handler) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := HTTPServer(h)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return l.Addr().String()
}

// keyOf makes a key that differs for each n.
func keyOf(t testing.TB, s signature.Scheme, label string, n byte) signature.Key {
	t.Helper()
	raw := bytes.Repeat([]byte{n}, 32)
	k, err := s.Key(label, "whsec_"+base64.StdEncoding.EncodeToString(raw))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// headers signs a delivery as the provider would.
func (g *rig) headers(id, body string, keys ...signature.Key) []wire.Header {
	g.t.Helper()
	if len(keys) == 0 {
		keys = []signature.Key{g.key}
	}
	h, err := g.scheme.Sign(signature.Input{ID: id, Time: g.clock.Now(), Body: []byte(body)}, keys...)
	if err != nil {
		g.t.Fatal(err)
	}
	return h
}

// head is a request's head as it goes over the wire, but for the blank line.
func head(method string, headers []wire.Header, more ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s /hooks HTTP/1.1\r\nHost: receiver.test\r\n", method)
	for _, h := range headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h.Name, h.Value)
	}
	for _, line := range more {
		b.WriteString(line + "\r\n")
	}
	return b.String()
}

// whole is a complete request.
func whole(method string, headers []wire.Header, body string) string {
	return head(method, headers, "Content-Length: "+strconv.Itoa(len(body))) + "\r\n" + body
}

// conn is a raw connection to a receiver.
type conn struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func (g *rig) dial() *conn { return dial(g.t, g.addr) }

func dial(t testing.TB, addr string) *conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &conn{Conn: c, t: t, r: bufio.NewReader(c)}
}

func (c *conn) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatalf("sending: %v", err)
	}
}

// answer reads one response with its body.
func (c *conn) answer() (*http.Response, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatalf("reading the answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("reading the answer's body: %v", err)
	}
	return resp, string(body)
}

// ended tells that the peer closes the connection.
func (c *conn) ended() {
	c.t.Helper()
	if b, err := c.r.ReadByte(); err == nil {
		c.t.Fatalf("the connection goes on, with %q", b)
	} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
		c.t.Fatal("the connection stays open")
	}
}

// post delivers over a connection of its own and returns the status.
func (g *rig) post(headers []wire.Header, body string) int {
	g.t.Helper()
	c := g.dial()
	defer c.Close()
	c.send(whole("POST", headers, body))
	resp, _ := c.answer()
	return resp.StatusCode
}

// logBuffer keeps log lines written from several goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// storeFunc is a Store made of one function.
type storeFunc func(context.Context, Message) (bool, error)

func (f storeFunc) Add(ctx context.Context, m Message) (bool, error) { return f(ctx, m) }
