package fakeprovider

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

const (
	// idleMost is how long a connection may lie before it is not used again.
	// Node closes after five seconds, others later; a request that meets the
	// close is lost.
	idleMost = 4 * time.Second

	// answerBuffer is what a connection reads into, and the longest header line
	// of an answer that is read under load.
	answerBuffer = 8 << 10
)

// conns are the connections of a load. The one that was used last is used next:
// at a low rate one is enough, and none lies until the receiver closes it.
type conns struct {
	addr *address
	to   Target
	now  func() time.Time // when an answer came

	dialed, resent atomic.Int64

	mu          sync.Mutex
	idle        []*conn
	open        map[*conn]bool
	interrupted bool
}

// conn is one of them.
type conn struct {
	net.Conn
	reader responseReader
	used   bool      // it has carried a delivery
	since  time.Time // it has been idle
}

func newConns(addr *address, to Target, now func() time.Time) *conns {
	return &conns{addr: addr, to: to, now: now, open: map[*conn]bool{}}
}

// warm opens the first connection, or tells why there can be none.
func (s *conns) warm(ctx context.Context) error {
	c, f := s.dial(ctx)
	if f != nil {
		return errors.New(f.detail)
	}
	s.put(c)
	return nil
}

func (s *conns) dial(ctx context.Context) (*conn, *fault) {
	raw, f := connect(ctx, s.addr, s.to)
	if f != nil {
		return nil, f
	}
	s.dialed.Add(1)
	c := &conn{Conn: raw, reader: responseReader{r: bufio.NewReaderSize(raw, answerBuffer)}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = true
	if s.interrupted {
		_ = c.SetDeadline(time.Unix(1, 0))
	}
	return c, nil
}

// take is the connection used last, or nil where none is fit to be used.
func (s *conns) take() *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) == 0 {
		return nil
	}
	c := s.idle[len(s.idle)-1]
	if time.Since(c.since) <= idleMost {
		s.idle = s.idle[:len(s.idle)-1]
		return c
	}
	// The others lie there even longer.
	for _, old := range s.idle {
		delete(s.open, old)
		_ = old.hardClose()
	}
	s.idle = s.idle[:0]
	return nil
}

func (s *conns) put(c *conn) {
	c.since = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, c)
}

func (s *conns) drop(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	_ = c.hardClose()
}

// hardClose does without TLS's farewell, which waits for who does not read.
func (c *conn) hardClose() error {
	if outer, ok := c.Conn.(interface{ NetConn() net.Conn }); ok {
		return outer.NetConn().Close()
	}
	return c.Close()
}

// interrupt ends everything that is in flight.
func (s *conns) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupted = true
	for c := range s.open {
		_ = c.SetDeadline(time.Unix(1, 0))
	}
}

// limit bounds the next exchange, unless all have been interrupted.
func (s *conns) limit(c *conn, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.interrupted {
		_ = c.SetDeadline(until)
	}
}

func (s *conns) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.hardClose()
	}
	s.open, s.idle = map[*conn]bool{}, nil
}

// send sends a request and reads the answer. A connection that was used before
// may have been closed by the receiver while the request was under way: then it
// is sent once more, on a new one.
func (s *conns) send(ctx context.Context, request []byte) answer {
	c := s.take()
	if c != nil {
		a, stale := s.exchange(c, request)
		if !stale {
			return a
		}
		s.resent.Add(1)
	}
	c, f := s.dial(ctx)
	if f != nil {
		return answer{fault: f.kind, detail: f.detail}
	}
	a, _ := s.exchange(c, request)
	return a
}

// exchange is one request on a connection, which is kept or dropped after it.
// stale tells that a used connection ended before a byte of the answer.
func (s *conns) exchange(c *conn, request []byte) (a answer, stale bool) {
	s.limit(c, time.Now().Add(s.to.Answer))
	_, writeErr := c.Write(request)
	// Also after a failure: a receiver may refuse what it did not read.
	_, err := c.reader.r.Peek(1)
	if err != nil {
		stale = c.used && isGone(err, writeErr)
		s.drop(c)
		return loadFault(err, writeErr), stale
	}
	c.used = true
	h, err := c.reader.loadHead()
	if err != nil {
		s.drop(c)
		return loadFault(unexpected(err), writeErr), false
	}
	a = answer{status: h.status, at: s.now()}
	if writeErr == nil && h.keep && c.skipBody(h) && c.reader.r.Buffered() == 0 {
		s.put(c)
	} else {
		s.drop(c)
	}
	return a, false
}

// isGone tells whether the peer ended the connection, by whichever of both
// errors shows it.
func isGone(read, write error) bool {
	return errors.Is(read, io.EOF) || isReset(read) || isReset(write) || errors.Is(write, syscall.EPIPE)
}

// loadFault is why no answer came.
func loadFault(read, write error) answer {
	var garbage *notHTTP
	const what = "waiting for the answer: "
	switch {
	case errors.As(read, &garbage):
		return answer{fault: wire.FaultNotHTTP, detail: "reading the answer: " + garbage.detail}
	case isTimeout(read):
		return answer{fault: wire.FaultTimeout, detail: what + "none in time"}
	case isAlert(read):
		return answer{fault: wire.FaultTLS, detail: what + read.Error()}
	case isReset(read), isReset(write):
		return answer{fault: wire.FaultReset, detail: what + "the connection was reset"}
	}
	return answer{fault: wire.FaultClosed, detail: what + "the connection was closed"}
}

// head is what a load looks at in the head of an answer.
type head struct {
	status  int
	keep    bool // the connection may be used again
	begun   bool // it has a header line
	framing wire.Response
}

// loadHead reads the head of the final answer. It is what [responseReader.head]
// does, without keeping what a load has no use for.
func (r *responseReader) loadHead() (head, error) {
	for range interimLimit + 1 {
		if err := r.checkStart(); err != nil {
			return head{}, err
		}
		h, err := r.loadOneHead()
		if err != nil || h.status >= 200 || h.status == 101 {
			return h, err
		}
	}
	return head{}, notHTTPf("more than %d interim (1xx) answers before the final one", interimLimit)
}

func (r *responseReader) loadOneHead() (head, error) {
	line, err := r.r.ReadSlice('\n')
	if err != nil {
		return head{}, longLine(err)
	}
	text := string(bytes.TrimRight(line, "\r\n"))
	status, err := parseStatus(text)
	if err != nil {
		return head{}, err
	}
	h := head{status: status, keep: text[len("HTTP/1.")] == '1' && status != 101}
	h.framing.Status = status
	for left := HeadLimit; ; {
		line, err := r.r.ReadSlice('\n')
		if err != nil {
			return head{}, longLine(err)
		}
		if left -= len(line); left < 0 {
			return head{}, notHTTPf("its head is longer than %d B", HeadLimit)
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return h, nil
		}
		if err := h.look(line); err != nil {
			return head{}, err
		}
	}
}

func longLine(err error) error {
	if errors.Is(err, bufio.ErrBufferFull) {
		return notHTTPf("its head has a line of more than %d B", answerBuffer)
	}
	return err
}

// look keeps what says where the answer ends and whether another may follow.
func (h *head) look(line []byte) error {
	if (line[0] == ' ' || line[0] == '\t') && h.begun {
		// The line before goes on. Nobody writes that any more; where the answer
		// ends need not be known if none follows.
		h.keep = false
		return nil
	}
	h.begun = true
	name, value, ok := bytes.Cut(line, []byte(":"))
	switch {
	case !ok || len(name) == 0 || bytes.ContainsAny(name, " \t\x00"):
		return notHTTPf("its head has a line that is no header: %q", clip(string(line)))
	case equalFold(name, "Content-Length"), equalFold(name, "Transfer-Encoding"):
		return addLine(&h.framing, string(line))
	case equalFold(name, "Connection") && strings.Contains(strings.ToLower(string(value)), "close"):
		h.keep = false
	}
	return nil
}

func equalFold(name []byte, want string) bool {
	return len(name) == len(want) && strings.EqualFold(string(name), want)
}

// skipBody reads what belongs to the answer, and tells whether all of it came.
// It costs nothing where the body came with the head, as mostly.
func (c *conn) skipBody(h head) bool {
	if h.status == 204 || h.status == 304 {
		return true
	}
	source, err := c.reader.framing(&h.framing)
	if err != nil {
		return false
	}
	exact, ok := source.(*exactReader)
	if ok && exact.n <= int64(c.reader.r.Buffered()) {
		_, err := c.reader.r.Discard(int(exact.n))
		return err == nil
	}
	if _, endless := source.(*bufio.Reader); endless || ok && exact.n > ReadLimit {
		return false // it ends with the connection, or is not worth the wait
	}
	_ = c.SetReadDeadline(time.Now().Add(BodyWait))
	n, err := io.Copy(io.Discard, io.LimitReader(source, ReadLimit+1))
	return err == nil && n <= ReadLimit
}
