package fakeendpoint_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/wire"
)

// hostile are requests that two programs may read in two ways, or that are none.
func hostile() []struct {
	name, request string
	status        int
	says          string
} {
	head := func(lines ...string) string {
		return "POST /hostile HTTP/1.1\r\nHost: x\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
	}
	chunked := func(body string) string { return head("Transfer-Encoding: chunked") + body }
	return []struct {
		name, request string
		status        int
		says          string
	}{
		{"two lengths that differ", head("Content-Length: 2", "Content-Length: 3") + "{}", 400, "2 Content-Length lines"},
		{"two lengths that are equal", head("Content-Length: 2", "Content-Length: 2") + "{}", 400, "2 Content-Length lines"},
		{"a list of lengths", head("Content-Length: 2, 2") + "{}", 400, "no plain number"},
		{"a length with a sign", head("Content-Length: +2") + "{}", 400, "no plain number"},
		{"a negative length", head("Content-Length: -2") + "{}", 400, "no plain number"},
		{"a length with a leading zero", head("Content-Length: 02") + "{}", 400, "no plain number"},
		{"a hexadecimal length", head("Content-Length: 0x2") + "{}", 400, "no plain number"},
		{"an empty length", head("Content-Length: ") + "{}", 400, "no plain number"},
		{"a length beyond 64 bits", head("Content-Length: 99999999999999999999") + "{}", 413, "too large"},
		{"a length and an encoding", head("Content-Length: 2", "Transfer-Encoding: chunked") + "0\r\n\r\n", 400, "both"},
		{"an encoding and a length", head("Transfer-Encoding: chunked", "Content-Length: 2") + "0\r\n\r\n", 400, "both"},
		{"two encodings", head("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + "0\r\n\r\n", 400, "2 Transfer-Encoding lines"},
		{"an encoding that is another's name", head("Transfer-Encoding: xchunked") + "0\r\n\r\n", 501, "chunked alone is known"},
		{"a list of encodings", head("Transfer-Encoding: identity, chunked") + "0\r\n\r\n", 501, "chunked alone is known"},
		{"an encoding in HTTP/1.0", "POST /hostile HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "HTTP/1.0"},
		{"an encoding with a vertical tab", head("Transfer-Encoding: \x0bchunked") + "0\r\n\r\n", 400, "control character"},
		{"a blank before a colon", head("Content-Length : 2") + "{}", 400, "no token"},
		{"a folded line", head("X-A: a", " Content-Length: 2") + "{}", 400, "folded"},
		{"a header without colon", head("X-A") + "{}", 400, "no colon"},
		{"a header without name", head(": a") + "{}", 400, "no token"},
		{"a bare line feed", "POST /hostile HTTP/1.1\nHost: x\n\n", 400, "line feed alone"},
		{"a bare line feed among others", "POST /hostile HTTP/1.1\r\nHost: x\nX: y\r\n\r\n", 400, "line feed alone"},
		{"a carriage return in a value", head("X-A: a\rContent-Length: 2"), 400, "control character"},
		{"a NUL in a value", head("X-A: a\x00b"), 400, "control character"},
		{"no host", "POST /hostile HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400, "there is no Host"},
		{"two hosts", head("Host: y"), 400, "2 Host lines"},
		{"an expectation that is unknown", head("Expect: 200-ok"), 417, "Expect"},
		{"no version", "GET /hostile\r\n\r\n", 400, "not METHOD TARGET VERSION"},
		{"no target", "GET  HTTP/1.1\r\nHost: x\r\n\r\n", 400, "no target"},
		{"two blanks", "GET  /hostile HTTP/1.1\r\nHost: x\r\n\r\n", 400, "does not end with a version"},
		{"a method that is no token", "G(T /hostile HTTP/1.1\r\nHost: x\r\n\r\n", 400, "no token"},
		{"a control character in the target", "GET /hos\x01tile HTTP/1.1\r\nHost: x\r\n\r\n", 400, "control character"},
		{"HTTP/2 spoken at once", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "HTTP/1.1 and HTTP/1.0"},
		{"a version of the future", "GET /hostile HTTP/1.2\r\nHost: x\r\n\r\n", 505, "HTTP/1.1 and HTTP/1.0"},
		{"a version in small letters", "GET /hostile http/1.1\r\nHost: x\r\n\r\n", 400, "does not end with a version"},
		{"TLS spoken to plain HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", 400, "line feed alone"},
		{"an empty line and another", "\r\n\r\n\r\n", 400, "request line is empty"},
		{"a line without end", "GET /" + strings.Repeat("x", 1<<20), 431, "longer than 65536 bytes"},
		{"a million headers", "GET /hostile HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 1_000_000), 431, "more than 1000 lines"},
		{"a long header", head("X-A: "+strings.Repeat("x", 70_000)) + "{}", 431, "longer than 65536 bytes"},

		{"a chunk's size with a sign", chunked("+2\r\n{}\r\n0\r\n\r\n"), 400, "hexadecimal"},
		{"a chunk's size with 0x", chunked("0x2\r\n{}\r\n0\r\n\r\n"), 400, "hexadecimal"},
		{"a chunk's size with a blank", chunked("2 \r\n{}\r\n0\r\n\r\n"), 400, "hexadecimal"},
		{"a chunk's size with an underscore", chunked("1_0\r\n{}\r\n0\r\n\r\n"), 400, "hexadecimal"},
		{"an empty chunk's size", chunked("\r\n{}\r\n0\r\n\r\n"), 400, "hexadecimal"},
		{"a chunk's size beyond 64 bits", chunked("ffffffffffffffff2\r\n{}\r\n0\r\n\r\n"), 400, "hexadecimal"},
		{"a chunk line with a bare line feed", chunked("2\n{}\r\n0\r\n\r\n"), 400, "line feed alone"},
		{"a chunk that is longer than it says", chunked("2\r\n{}{}\r\n0\r\n\r\n"), 400, "longer than it says"},
		{"a chunk line without end", chunked("2;" + strings.Repeat("x", 10_000)), 400, "longer than 1024 bytes"},
		{"extensions without end", chunked(strings.Repeat("1;"+strings.Repeat("x", 1000)+"\r\nx\r\n", 20)), 400, "bytes of extensions"},
		{"a trailer without end", chunked("0\r\n" + strings.Repeat("A: b\r\n", 100_000)), 431, "more than 1000 lines"},
		{"a trailer that is no header", chunked("0\r\nPOST / HTTP/1.1\r\n\r\n"), 400, "no colon"},
	}
}

func TestWhatCanBeReadInTwoWaysIsRefusedAndTheConnectionEnds(t *testing.T) {
	for _, c := range hostile() {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			p := r.path("hostile", "200")
			conn := dial(t, p)
			// What is smuggled in behind it must not be answered.
			go func() { _, _ = io.WriteString(conn, c.request+"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n") }()
			answer, text := conn.answer()
			if answer.StatusCode != c.status || !strings.Contains(text, c.says) || !answer.Close {
				t.Errorf("it answered %d %q", answer.StatusCode, text)
			}
			_ = conn.Conn.(*net.TCPConn).CloseWrite()
			if rest, _ := conn.end(); rest != "" {
				t.Errorf("then came %q", rest)
			}
			if got := r.Fallback().Attempts(); len(got) != 0 {
				t.Errorf("the smuggled request was taken: %+v", got)
			}
			if strings.Contains(c.request, "Transfer-Encoding: chunked\r\n\r\n") && c.status != 501 && len(r.Strays()) == 0 {
				a := attempts(t, p, 1)[0] // its head was right, so it is an attempt
				if a.Response.Status != c.status || len(a.Remarks) != 1 || !strings.Contains(a.Remarks[0], c.says) || !a.BodyEnd.IsZero() {
					t.Errorf("the record is %+v", a)
				}
				return
			}
			strays := r.Strays()
			if len(strays) != 1 || !strings.Contains(strays[0].Reason, c.says) || strays[0].Status != c.status || len(strays[0].Sample) == 0 || len(strays[0].Sample) > 512 {
				t.Errorf("the strays are %+v", strays)
			}
		})
	}
}

func TestStraysAreCountedAndTheLastAreKept(t *testing.T) {
	told := make(chan fakeendpoint.Stray, 200)
	r := newRig(t, func(c *fakeendpoint.Config) { c.OnStray = func(s fakeendpoint.Stray) { told <- s } })
	for i := range 100 {
		c := dialURL(t, r.URL())
		c.send(fmt.Sprintf("BAD-%d\r\n\r\n", i))
		c.answer()
		_ = c.Close()
	}
	strays := r.Strays()
	if len(strays) != 64 || string(strays[63].Sample) != "BAD-99\r\n\r\n" || r.Stats().Strays != 100 || len(told) != 100 {
		t.Errorf("%d are kept, %d counted, %d told of", len(strays), r.Stats().Strays, len(told))
	}
	if got := (<-told).Reason; !strings.Contains(got, `"BAD-0"`) {
		t.Errorf("the first was told of as %q", got)
	}
}

func TestAStrayShowsNoSecret(t *testing.T) {
	r := newRig(t)
	p := r.path("stray", "200", r.key)
	bare := strings.TrimPrefix(secret, "whsec_")
	for _, text := range []string{
		"POST /stray HTTP/1.1\r\nHost: x\r\n" + secret + "\r\n\r\n",
		strings.Repeat("x", 490) + secret + " / HTTP/1.1\r\nHost: x\r\n\r\n", // the sample is cut within it
	} {
		dial(t, p).status(text)
	}
	strays := r.Strays()
	for _, s := range strays {
		if text := s.Reason + string(s.Sample); strings.Contains(text, bare[:8]) {
			t.Errorf("it shows %s", text)
		}
	}
	if len(strays) != 2 {
		t.Errorf("%d strays", len(strays))
	}
}

func TestAPeerThatHasClosedItsSideIsAnswered(t *testing.T) {
	r := newRig(t)
	p := r.path("half", "500")
	conn := dial(t, p)
	conn.send(post(p, "{}"))
	if err := conn.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, how := conn.end(); !strings.HasPrefix(got, "HTTP/1.1 500 ") || how != "closed" {
		t.Errorf("it sent %q and was %s", got, how)
	}
}

func TestABodyThatEndsEarlyIsAnAttempt(t *testing.T) {
	r := newRig(t)
	p := r.path("cut", "500,200")
	conn := dial(t, p)
	conn.send("POST /cut HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{}")
	_ = conn.Close()
	a := attempts(t, p, 1)[0]
	if a.Fault != wire.FaultClosed || a.Request.Size != 10 || string(a.Request.Body) != "{}" || a.Peer != "closed" || !strings.Contains(a.FaultDetail, "after 2 bytes") {
		t.Errorf("the record is %+v", a)
	}
}

func TestSlowPeersAreGivenUp(t *testing.T) {
	short := 150 * time.Millisecond
	r := newRig(t, func(c *fakeendpoint.Config) {
		c.Limits.HeadTime, c.Limits.BodyTime, c.Limits.Idle, c.Limits.Stall, c.Limits.Handshake = short, short, short, 3*short, short
	})
	p := r.path("slow", "200")
	t.Run("a head that does not end", func(t *testing.T) {
		conn := dial(t, p)
		conn.send("POST /slow HTTP/1.1\r\nHo")
		if answer, text := conn.answer(); answer.StatusCode != 408 || !strings.Contains(text, "head did not end") {
			t.Errorf("it answered %d %s", answer.StatusCode, text)
		}
		if got := r.Stats().Strays; got != 1 {
			t.Errorf("%d strays", got)
		}
	})
	t.Run("a body that does not end", func(t *testing.T) {
		conn := dial(t, p)
		conn.send("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{}")
		if answer, _ := conn.answer(); answer.StatusCode != 408 {
			t.Errorf("it answered %d", answer.StatusCode)
		}
		if a := attempts(t, p, 1)[0]; a.Response.Status != 408 || a.BodyRead != 2 || a.Request.Size != 9 {
			t.Errorf("the record is %+v", a)
		}
	})
	t.Run("a connection without a request", func(t *testing.T) {
		if got, how := dial(t, p).end(); got != "" || how != "closed" {
			t.Errorf("it got %q and was %s", got, how)
		}
		if got := r.Stats().Strays; got != 1 {
			t.Errorf("%d strays", got)
		}
	})
	t.Run("an answer that nobody reads", func(t *testing.T) {
		p := r.path("huge", "huge(1GiB)")
		conn := dial(t, p)
		conn.send(post(p, "{}"))
		a := attempts(t, p, 1)[0]
		if a.Peer != "stalled" || a.Written == 0 || a.Written > 64<<20 {
			t.Errorf("the record is %+v", a)
		}
	})
	t.Run("a handshake that does not end", func(t *testing.T) {
		p := r.path("tls", "expired,200")
		if got, _ := dial(t, p).end(); got != "" {
			t.Errorf("it got %q", got)
		}
	})
	t.Run("a request that a script holds", func(t *testing.T) {
		p := r.path("hang", "hang")
		conn := dial(t, p)
		conn.send(post(p, "{}"))
		r.held(1)
		_ = conn.SetReadDeadline(time.Now().Add(3 * short))
		if _, err := conn.in.ReadByte(); err == nil || err == io.EOF {
			t.Errorf("it was given up: %v", err)
		}
	})
}

func TestAThousandRequestsInOnePieceAreAnsweredInOrder(t *testing.T) {
	r := newRig(t)
	p := r.path("pipe", "500*500,200")
	conn := dial(t, p)
	go func() { _, _ = io.WriteString(conn, strings.Repeat("\r\n"+post(p, "{}"), 1000)) }()
	for i := range 1000 {
		want := 500
		if i >= 500 {
			want = 200
		}
		if answer, _ := conn.answer(); answer.StatusCode != want {
			t.Fatalf("request %d is answered %d", i, answer.StatusCode)
		}
	}
}

func TestAPeerThatPoursIntoAHeldConnectionIsCutOff(t *testing.T) {
	r := newRig(t)
	p := r.path("pour", "hang")
	conn := dial(t, p)
	conn.send(post(p, "{}"))
	r.held(1)
	go func() { _, _ = io.Copy(conn, zeros{}) }()
	a := attempts(t, p, 1)[0]
	if len(a.Remarks) != 1 || !strings.Contains(a.Remarks[0], "was cut off") {
		t.Errorf("the record is %+v", a)
	}
}

// memoryConn is a connection whose peer has sent everything at once and reads
// whatever comes.
type memoryConn struct {
	net.Conn
	in   io.Reader
	out  strings.Builder
	once sync.Once
	done chan struct{}
}

func (c *memoryConn) Read(p []byte) (int, error)       { return c.in.Read(p) }
func (c *memoryConn) Write(p []byte) (int, error)      { return c.out.Write(p) }
func (c *memoryConn) Close() error                     { c.once.Do(func() { close(c.done) }); return nil }
func (c *memoryConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *memoryConn) SetReadDeadline(time.Time) error  { return nil }
func (c *memoryConn) SetWriteDeadline(time.Time) error { return nil }

// pieces gives out bytes a few at a time.
type pieces struct {
	text string
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b, p.text[:min(p.size, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}

// Whatever a peer sends, the loop ends, and answers with HTTP; and what it takes
// for a request, net/http takes for the same one.
func FuzzConnection(f *testing.F) {
	f.Add([]byte("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"), 0)
	for _, c := range hostile() {
		if len(c.request) < 4096 {
			f.Add([]byte(c.request+"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 3)
		}
	}
	ok := script(f, "200")
	r := newRig(f, func(c *fakeendpoint.Config) {
		c.Fallback = &ok
		c.Limits.Record, c.Limits.Paths, c.Limits.Verify = 1<<20, 100, 1<<20
	})
	f.Fuzz(func(t *testing.T, sent []byte, size int) {
		if size = size % 100; size <= 0 {
			size = 1 << 20
		}
		if strings.Contains(string(sent), "/s/") {
			t.Skip("what a script does is another matter: it may wait")
		}
		_ = r.Fallback().Reset()
		c := &memoryConn{in: &pieces{string(sent), size}, done: make(chan struct{})}
		r.ServeConn(c)
		select {
		case <-c.done:
		case <-time.After(patience):
			t.Fatal("it does not end")
		}
		if out := c.out.String(); out != "" && !strings.HasPrefix(out, "HTTP/1.1 ") {
			t.Fatalf("it answered %q", out)
		}
		all := r.Fallback().Attempts()
		if len(all) == 0 || all[0].Response == nil || all[0].Response.Status != 200 {
			return
		}
		theirs, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(sent))))
		if err != nil {
			return // it is stricter in other places
		}
		body, err := io.ReadAll(theirs.Body)
		if first := all[0].Request; err != nil || theirs.Method != first.Method || theirs.RequestURI != first.Target || string(body) != string(first.Body) && first.Size <= wire.BodyLimit {
			t.Fatalf("it took\n%+v\nnet/http takes %s %s %q, %v", first, theirs.Method, theirs.RequestURI, body, err)
		}
	})
}
