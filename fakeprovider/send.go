package fakeprovider

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// The bounds of sending. The times are in Target.
const (
	// ExpectWait is how long the body is held back for a 100 (Continue).
	// RFC 9110 §10.1.1 has the client send it anyway after a while: receivers
	// that never heard of Expect would wait for the body for ever.
	ExpectWait = time.Second

	// BodyWait is how long the body of an answer is read after its head: what
	// a receiver says stands in the head, and a body that drips would hold the
	// sender for the whole bound on the answer.
	BodyWait = 2 * time.Second

	// chunkSize is how much of a body is written at a time. Exchange.Sent is
	// exact to within one, so it is small; larger pieces save nothing on
	// loopback.
	chunkSize = 16 << 10

	// sendBuffer is the kernel's send buffer for large bodies, and largeBody
	// is where they begin. What lies in that buffer counts as sent though
	// the receiver never read it; left to itself it grows to megabytes.
	sendBuffer = 64 << 10
	largeBody  = 256 << 10
)

// Send sends a draft on a connection of its own and returns the exchange.
// Faults are evidence, not errors: see wire.Exchange. A draft may be sent again,
// also at the same time.
//
// The head is written as the draft has it, line by line in order and case: Host
// first if the draft has none, then to.Headers, the draft's lines, and the
// body's framing. Send reads while it writes, so an answer that comes before
// the body is out is seen; unless it is a 2xx, the rest of the body is then not
// sent. Exchange.Sent tells how much was: what was handed to the connection, of which
// the last ~100 KB may not have reached the receiver and its kernel may hold
// more.
//
// An answer whose head came whole counts as a Response even if its body did
// not: FaultDetail then says what was wrong with it. Of the body no more than
// ReadLimit bytes are read.
//
// The exchange ends at the latest after to.Connect and to.Answer, real time,
// or when ctx is done, which is a timeout with "cancelled" in its detail.
// Neither panics nor secrets leave Send: values of to.Headers, and header
// values in which one of the draft's keys stands, are recorded as [Redacted].
func (p *Provider) Send(ctx context.Context, to Target, d Draft, label string) wire.Exchange {
	x := wire.Exchange{Label: label, Began: p.clock.Now()}
	began := time.Now()
	finish := func() wire.Exchange {
		x.Ended = p.clock.Now()
		for _, key := range d.Keys { // a receiver may answer with the secret it knows
			x.FaultDetail = string(key.Redact([]byte(x.FaultDetail)))
		}
		if x.Took == 0 {
			x.Took = time.Since(began)
		}
		return x
	}

	addr, err := parseTarget(to)
	if err != nil {
		x.Request = record(d, nil)
		x.Fault, x.FaultDetail = wire.FaultDNS, err.Error()
		return finish()
	}
	req := assemble(addr, to, d)
	x.Request = req.recorded

	conn, f := connect(ctx, addr, to)
	if f != nil {
		x.Fault, x.FaultDetail = f.kind, f.detail
		return finish()
	}
	began = time.Now()
	answer := to.Answer
	if answer <= 0 {
		answer = AnswerTimeout
	}
	e := exchange{conn: conn, req: req, x: &x, answer: answer, began: began}
	orderly := e.run(ctx)
	// Nothing is left to lose by an error in closing.
	if secure, ok := conn.(*tls.Conn); ok && !orderly {
		// TLS would first try to say goodbye, for seconds, to a peer that
		// does not read.
		conn = secure.NetConn()
	}
	_ = conn.Close()
	return finish()
}

// exchange is one request on its connection.
type exchange struct {
	conn   net.Conn
	req    *request
	x      *wire.Exchange
	answer time.Duration
	began  time.Time
}

// errBound is the cause of an exchange that was cut at the bound on the answer.
var errBound = errors.New("the answer took too long")

// run writes and reads side by side until the answer, a fault or a bound ends
// it. It returns when both sides have ended, and tells whether the request went
// out whole and small enough that the peer must have read it.
func (e *exchange) run(ctx context.Context) (orderly bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.answer, errBound)
	defer cancel()
	// One deadline in the past ends reads and writes, however they wait.
	unwatch := context.AfterFunc(ctx, func() { _ = e.conn.SetDeadline(time.Unix(1, 0)) })
	defer unwatch()

	w := newWriter(e.conn, e.req)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(ctx)
	}()
	r := newResponseReader(e.conn)
	r.begins = func() { e.x.Sent = w.sent.Load() }
	r.goAhead = w.goAhead
	response, err := r.head(e.req.method)
	if err == nil {
		e.x.Took = time.Since(e.began)
		if response.Status >= 300 {
			// Refused: the rest is not wanted (RFC 9112 §9.5). After an early
			// 2xx it is.
			w.stop()
		}
		e.x.Response = response
		slow := time.AfterFunc(BodyWait, func() { _ = e.conn.SetReadDeadline(time.Unix(1, 0)) })
		defer slow.Stop()
		if err := r.body(response, e.req.method); err != nil {
			e.x.FaultDetail = e.bodyDetail(ctx, response, err)
		}
	}
	w.stop()
	_ = e.conn.SetWriteDeadline(time.Unix(1, 0))
	<-done
	if err != nil {
		e.x.Sent = w.sent.Load()
		f := e.classify(ctx, err, w.err)
		e.x.Fault, e.x.FaultDetail = f.kind, f.detail
	}
	w.keep(&e.x.Request)
	return w.err == nil && e.req.size <= largeBody
}

// bodyDetail says why the body of an answer did not come whole.
func (e *exchange) bodyDetail(ctx context.Context, r *wire.Response, err error) string {
	what := fmt.Sprintf("reading the body of the %d answer, %d B so far", r.Status, r.Size)
	switch {
	case errors.Is(err, errReadLimit):
		return fmt.Sprintf("%s: stopped, the rest was not read", what)
	case errors.Is(context.Cause(ctx), errBound):
		return fmt.Sprintf("%s: it did not end within %v", what, e.answer)
	case ctx.Err() != nil:
		return what + ": cancelled"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("%s: it did not end within %v", what, BodyWait)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return what + ": the connection was closed before its end"
	case isReset(err):
		return what + ": the connection was reset before its end"
	}
	return fmt.Sprintf("%s: %v", what, err)
}
