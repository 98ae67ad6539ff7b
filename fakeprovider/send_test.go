package fakeprovider_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/wire"
)

const noContent = "HTTP/1.1 204 No Content\r\n\r\n"

// drop makes the connection end in a reset.
func drop(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// readHead reads a request up to the end of its head.
func readHead(c net.Conn) {
	r := bufio.NewReaderSize(oneByte{c}, 16)
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == "\r\n" {
			return
		}
	}
}

// oneByte reads byte by byte, so that nothing beyond the head is taken.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:1]) }

// await reads until the peer ends the connection.
func await(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func say(text string) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		readHead(c)
		_, _ = io.WriteString(c, text)
		_ = c.CloseWrite()
		await(c)
	}
}

func TestSendNamesTheFault(t *testing.T) {
	cases := []struct {
		name   string
		handle func(*net.TCPConn)
		fault  string
		detail string
	}{
		{"a connection that is closed at once", func(c *net.TCPConn) { readHead(c); await1(c); _ = c.CloseWrite(); await(c) }, wire.FaultClosed, "the connection was closed"},
		{"a connection that is closed inside the status line", say("HTTP/1.1 20"), wire.FaultClosed, "closed inside it"},
		{"a connection that is closed inside the headers", say("HTTP/1.1 200 OK\r\nContent-Le"), wire.FaultClosed, "closed inside it"},
		{"a connection that is closed after an interim answer", say("HTTP/1.1 103 Early Hints\r\n\r\n"), wire.FaultClosed, "the connection was closed"},
		{"a connection that is reset", func(c *net.TCPConn) { readHead(c); drop(c) }, wire.FaultReset, "reset"},
		{"a receiver that never answers", func(c *net.TCPConn) { await(c) }, wire.FaultTimeout, "none within 150ms"},
		{"a head that never ends in time", func(c *net.TCPConn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nA: "); await(c) }, wire.FaultTimeout, "none within 150ms"},
		{"words that are no HTTP", say("SSH-2.0-OpenSSH_9.2\r\n"), wire.FaultNotHTTP, "does not begin with HTTP/1.x"},
		{"HTTP/0.9", say("<html>hello</html>"), wire.FaultNotHTTP, `"<html>hello</html>"`},
		{"HTTP/2", say("HTTP/2 200\r\n\r\n"), wire.FaultNotHTTP, "HTTP/2 200"},
		{"a TLS alert", say("\x15\x03\x01\x00\x02\x02\x46"), wire.FaultNotHTTP, "TLS record"},
		{"a status of four digits", say("HTTP/1.1 2000 OK\r\n\r\n"), wire.FaultNotHTTP, "no status line"},
		{"a status that is no number", say("HTTP/1.1 2x0 OK\r\n\r\n"), wire.FaultNotHTTP, "no status line"},
		{"a header line without a colon", say("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"), wire.FaultNotHTTP, `"nonsense"`},
		{"a blank before the first header", say("HTTP/1.1 200 OK\r\n A: b\r\n\r\n"), wire.FaultNotHTTP, "no header"},
		{"an endless head", endlessHead, wire.FaultNotHTTP, "longer than 1048576 B"},
		{"a header line without an end", endlessLine, wire.FaultNotHTTP, "longer than 1048576 B"},
		{"endless interim answers", say(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 20)), wire.FaultNotHTTP, "more than 16 interim"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "standard-webhooks")
			answer := 20 * time.Second
			if c.fault == wire.FaultTimeout {
				answer = 150 * time.Millisecond
			}
			x := f.Send(t.Context(), fakeprovider.Target{URL: serve(t, c.handle), Answer: answer}, f.draft(t), "probe")
			if x.Fault != c.fault || !strings.Contains(x.FaultDetail, c.detail) || x.Response != nil {
				t.Errorf("got %q: %q, response %v; want %q with %q", x.Fault, x.FaultDetail, x.Response, c.fault, c.detail)
			}
			if x.Took <= 0 || x.Label != "probe" || !x.Began.Equal(now) || !x.Ended.Equal(now) {
				t.Errorf("took %v, label %q, began %v, ended %v", x.Took, x.Label, x.Began, x.Ended)
			}
		})
	}
}

// await1 reads the rest of a small request.
func await1(c *net.TCPConn) {
	_, _ = c.Read(make([]byte, 64<<10))
}

func endlessHead(c *net.TCPConn) {
	_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n")
	line := []byte("X-Fill: " + strings.Repeat("x", 1000) + "\r\n")
	for err == nil {
		_, err = c.Write(line)
	}
}

func endlessLine(c *net.TCPConn) {
	_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nX-Fill: ")
	fill := bytes.Repeat([]byte("x"), 16<<10)
	for err == nil {
		_, err = c.Write(fill)
	}
}

func TestSendNamesFaultsBeforeTheFirstByte(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	_ = listener.Close()
	cases := []struct{ name, url, fault, detail string }{
		{"nobody listens", "http://" + closed, wire.FaultRefused, "connecting to " + closed + ": connection refused"},
		{"a name that cannot resolve", "http://no..such..host/", wire.FaultDNS, `resolving "no..such..host"`},
		{"no scheme", "127.0.0.1:80/hooks", wire.FaultDNS, "target's URL"},
		{"another scheme", "ftp://127.0.0.1/", wire.FaultDNS, `"ftp"`},
		{"no host", "http:///hooks", wire.FaultDNS, "no host"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, "standard-webhooks")
			x := f.send(t, c.url)
			if x.Fault != c.fault || !strings.Contains(x.FaultDetail, c.detail) {
				t.Errorf("got %q: %q; want %q with %q", x.Fault, x.FaultDetail, c.fault, c.detail)
			}
			if x.Request.Method != "POST" || len(x.Request.Body) == 0 {
				t.Errorf("the request is not recorded: %+v", x.Request)
			}
			if bad := c.fault == wire.FaultDNS && !strings.Contains(c.detail, "resolving"); bad != (fakeprovider.Target{URL: c.url}.Check() != nil) {
				t.Errorf("Check disagrees about %q", c.url)
			}
		})
	}
}

func TestSendDoesNotRepeatAPasswordOfTheURL(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	for _, url := range []string{"http://user:hunter2@127.0.0.1:notaport/", "ftp://user:hunter2@127.0.0.1/", "http://user:hunter2@[::1/"} {
		x := f.send(t, url)
		if x.Fault == "" || strings.Contains(x.FaultDetail, "hunter2") {
			t.Errorf("%q: %q", x.Fault, x.FaultDetail)
		}
	}
}

func TestSendEndsWhenItsContextIsCancelled(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	ctx, cancel := context.WithCancel(t.Context())
	url := serve(t, func(c *net.TCPConn) { readHead(c); cancel(); await(c) })
	x := f.Send(ctx, fakeprovider.Target{URL: url}, f.draft(t), "")
	if x.Fault != wire.FaultTimeout || !strings.Contains(x.FaultDetail, "cancelled") {
		t.Errorf("while waiting: %q: %q", x.Fault, x.FaultDetail)
	}
	x = f.Send(ctx, fakeprovider.Target{URL: url}, f.draft(t), "")
	if x.Fault != wire.FaultTimeout || !strings.Contains(x.FaultDetail, "cancelled") {
		t.Errorf("before connecting: %q: %q", x.Fault, x.FaultDetail)
	}
}

func TestSendReadsAnswers(t *testing.T) {
	big := strings.Repeat("b", wire.BodyLimit+10)
	cases := []struct {
		name, answer string
		alter        []fakeprovider.Alteration
		status       int
		body         string
		size         int64
		detail       string
	}{
		{"a body by its length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore", nil, 200, "ok", 2, ""},
		{"a body up to the end", "HTTP/1.1 200 OK\r\n\r\nok", nil, 200, "ok", 2, ""},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nok", nil, 200, "ok", 2, ""},
		{"no reason", "HTTP/1.1 202\r\nContent-Length: 0\r\n\r\n", nil, 202, "", 0, ""},
		{"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", nil, 200, "ok", 2, ""},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\nTrailer: x\r\n\r\n", nil, 200, "ok", 2, ""},
		{"interim answers", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", nil, 200, "", 0, ""},
		{"switching protocols is final", "HTTP/1.1 101 Switching Protocols\r\n\r\nxyz", nil, 101, "", 0, ""},
		{"204 has no body", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", nil, 204, "", 0, ""},
		{"304 has no body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", nil, 304, "", 0, ""},
		{"HEAD has no body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", []fakeprovider.Alteration{fakeprovider.Method("HEAD")}, 200, "", 0, ""},
		{"a large body is kept in part", "HTTP/1.1 200 OK\r\n\r\n" + big, nil, 200, big[:wire.BodyLimit], wire.BodyLimit + 10, ""},
		{"a body cut short", "HTTP/1.1 500 Oops\r\nContent-Length: 5\r\n\r\nok", nil, 500, "ok", 2, "closed before its end"},
		{"chunks cut short", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok", nil, 200, "ok", 2, "closed before its end"},
		{"a chunk's size that is none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok", nil, 200, "", 0, `a chunk's size is "zz"`},
		{"a chunk longer than its size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nokay\r\n0\r\n\r\n", nil, 200, "o", 1, "longer than its size"},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", nil, 200, "", 0, "two different lengths"},
		{"the same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", nil, 200, "ok", 2, ""},
		{"a length that is no number", "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", nil, 200, "", 0, `Content-Length is "-2"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newFixture(t, "standard-webhooks").send(t, serve(t, say(c.answer)), c.alter...)
			if x.Response == nil {
				t.Fatalf("no response: %s: %s", x.Fault, x.FaultDetail)
			}
			if x.Fault != "" || x.Response.Status != c.status || string(x.Response.Body) != c.body || x.Response.Size != c.size {
				t.Errorf("fault %q, status %d, %d B of %d: %.20q", x.Fault, x.Response.Status, len(x.Response.Body), x.Response.Size, x.Response.Body)
			}
			if (c.detail == "") != (x.FaultDetail == "") || !strings.Contains(x.FaultDetail, c.detail) {
				t.Errorf("detail %q, want %q", x.FaultDetail, c.detail)
			}
		})
	}
}

func TestSendKeepsTheAnswersHeadersInOrderAndCase(t *testing.T) {
	x := newFixture(t, "standard-webhooks").send(t, serve(t, say("HTTP/1.1 200 OK\r\nx-B:  two \r\nX-a: one\r\n\tmore\r\nx-b:\r\nContent-Length: 0\r\n\r\n")))
	want := []wire.Header{{Name: "x-B", Value: "two"}, {Name: "X-a", Value: "one more"}, {Name: "x-b", Value: ""}, {Name: "Content-Length", Value: "0"}}
	if x.Response == nil || len(x.Response.Headers) != len(want) {
		t.Fatalf("got %+v", x.Response)
	}
	for i, h := range x.Response.Headers {
		if h != want[i] {
			t.Errorf("line %d: %q, want %q", i, h, want[i])
		}
	}
}

func TestSendSeesAnEarlyAnswerThatIsFollowedByAReset(t *testing.T) {
	const size = 64 << 20
	for range 5 {
		f := newFixture(t, "standard-webhooks")
		x := f.send(t, serve(t, func(c *net.TCPConn) {
			readHead(c)
			_, _ = io.CopyN(io.Discard, c, 100_000)
			_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
			drop(c)
		}), fakeprovider.Oversize(size))
		if x.Response == nil || x.Response.Status != 413 {
			t.Fatalf("got %q: %q", x.Fault, x.FaultDetail)
		}
		if x.Sent < 90_000 || x.Sent >= size {
			t.Errorf("%d B were sent", x.Sent)
		}
		if x.Request.Size != size || len(x.Request.Body) != wire.BodyLimit || !bytes.HasPrefix(x.Request.Body, []byte(`{"whconform":"xxx`)) {
			t.Errorf("recorded: %d B of %d, %.20q", len(x.Request.Body), x.Request.Size, x.Request.Body)
		}
	}
}

func TestSendCountsNoBodyByteWhenTheHeadAloneWasTooMuch(t *testing.T) {
	x := newFixture(t, "standard-webhooks").send(t, serve(t, func(c *net.TCPConn) {
		_, _ = io.CopyN(io.Discard, c, 64<<10)
		_, _ = io.WriteString(c, "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n\r\n")
		drop(c)
	}), fakeprovider.HugeHeader(32<<20))
	if x.Response == nil || x.Response.Status != 431 || x.Sent != 0 {
		t.Errorf("got %+v, %q: %q, %d B sent", x.Response, x.Fault, x.FaultDetail, x.Sent)
	}
}

func TestSendReportsAResetInTheMiddleOfALargeBody(t *testing.T) {
	x := newFixture(t, "standard-webhooks").send(t, serve(t, func(c *net.TCPConn) {
		readHead(c)
		_, _ = io.CopyN(io.Discard, c, 100_000)
		drop(c)
	}), fakeprovider.Oversize(64<<20))
	if x.Fault != wire.FaultReset || x.Sent <= 0 || x.Sent >= 64<<20 {
		t.Errorf("got %q: %q, %d B sent", x.Fault, x.FaultDetail, x.Sent)
	}
}

func TestSendStreamsALargeBodyFromConstantMemory(t *testing.T) {
	const size = 64 << 20
	for _, chunked := range []bool{false, true} {
		alter := []fakeprovider.Alteration{fakeprovider.Oversize(size)}
		if chunked {
			alter = append(alter, fakeprovider.Chunked())
		}
		var got int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got, _ = io.Copy(io.Discard, r.Body)
		}))
		f := newFixture(t, "standard-webhooks")
		draft := f.draft(t, alter...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		x := f.Send(t.Context(), fakeprovider.Target{URL: server.URL}, draft, "")
		runtime.ReadMemStats(&after)
		server.Close()
		if !x.OK() || got != size || x.Sent != size {
			t.Errorf("chunked %v: %+v; %d B came, %d B sent", chunked, x.Response, got, x.Sent)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; !chunked && grown > 8<<20 {
			t.Errorf("%d B were allocated", grown)
		}
	}
}

func TestSendReadsNoMoreThanItsLimitOfAnEndlessBody(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	var wrote int64
	done := make(chan struct{})
	url := serve(t, func(c *net.TCPConn) {
		defer close(done)
		readHead(c)
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
		for fill := make([]byte, 64<<10); err == nil && wrote < 1<<30; {
			var n int
			n, err = c.Write(fill)
			wrote += int64(n)
		}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	x := f.send(t, url)
	runtime.ReadMemStats(&after)
	<-done
	if !x.OK() || x.Response.Size != fakeprovider.ReadLimit || len(x.Response.Body) != wire.BodyLimit {
		t.Fatalf("got %+v", x.Response)
	}
	if !strings.Contains(x.FaultDetail, "the rest was not read") {
		t.Errorf("detail %q", x.FaultDetail)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 2<<20 {
		t.Errorf("%d B were allocated", grown)
	}
	if wrote >= 1<<30 {
		t.Error("the whole body was taken")
	}
}

func TestSendKeepsAnAnswerWhoseBodyNeverEnds(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	url := serve(t, func(c *net.TCPConn) {
		readHead(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
		await(c)
	})
	x := f.Send(t.Context(), fakeprovider.Target{URL: url, Answer: 150 * time.Millisecond}, f.draft(t), "")
	if !x.OK() || string(x.Response.Body) != "abc" || !strings.Contains(x.FaultDetail, "did not end within 150ms") || x.Took > 140*time.Millisecond {
		t.Errorf("got %+v, %q, took %v", x.Response, x.FaultDetail, x.Took)
	}
}

func TestSendReportsABodyThatCannotBeRead(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	d := f.draft(t)
	d.Request.Size = 100
	d.Wire.Body = func() io.Reader { return io.MultiReader(strings.NewReader("abc"), failing{}) }
	x := f.Send(t.Context(), fakeprovider.Target{URL: serve(t, func(c *net.TCPConn) { await(c) })}, d, "")
	if x.Fault != wire.FaultClosed || !strings.Contains(x.FaultDetail, "after 3 B of the body: the disk is gone") {
		t.Errorf("got %q: %q", x.Fault, x.FaultDetail)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

func TestSendWorksOnManyGoroutines(t *testing.T) {
	f := newFixture(t, "standard-webhooks")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }))
	defer server.Close()
	d := f.draft(t)
	results := make(chan wire.Exchange)
	for range 32 {
		go func() { results <- f.Send(t.Context(), fakeprovider.Target{URL: server.URL}, d, f.NewID()) }()
	}
	for range 32 {
		if x := <-results; !x.OK() {
			t.Errorf("got %q: %q", x.Fault, x.FaultDetail)
		}
	}
}
