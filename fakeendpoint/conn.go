package fakeendpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// conn is one connection. Its goroutine owns it, but for what mu guards.
//
// A connection that waits, for a request or because a script holds it, keeps no
// buffer: 10,000 of them must cost little.
type conn struct {
	s      *Server
	door   *door
	nc     net.Conn
	tcp    *net.TCPConn // below nc; nil where the connection is none
	raw    syscall.RawConn
	serial int64
	remote string
	nth    int // requests so far

	// What was read and not used yet is buf[r:w]. buf is the pool's array unless
	// a head needed more.
	pooled *[bufferSize]byte
	buf    []byte
	r, w   int
	try    func(uintptr) bool // tryRead, once
	rawErr error              // of tryRead

	readBy, writeBy time.Time // the deadlines that are set, in real time

	rec      *record // of the request being served, or the last one
	claimed  *record // the attempt that the handshake has used
	shown    bool    // a certificate was shown, on a path's own port
	reserved int64   // of Limits.InFlight

	one [1]byte // what a held connection reads into

	resetting bool // the connection ends with a RST

	mu      sync.Mutex
	round   int  // counts holds, so that a late timer ends no other one
	holding bool // and the timer of this round has not fired
	fired   bool
}

func newConn(s *Server, d *door, nc net.Conn) *conn {
	c := &conn{s: s, door: d, nc: nc}
	if tcp, ok := nc.(*net.TCPConn); ok {
		c.tcp = tcp
	}
	if d.tls == nil && c.tcp != nil && rawReads {
		if raw, err := c.tcp.SyscallConn(); err == nil {
			c.raw, c.try = raw, c.tryRead
		}
	}
	return c
}

// serve takes requests until one side ends the connection.
func (c *conn) serve() {
	defer c.finish()
	c.serial = c.s.serial.Add(1)
	c.remote = c.nc.RemoteAddr().String()
	if !c.shake() {
		return
	}
	for c.exchange() {
	}
}

// finish closes the connection and notes it in the last attempt.
func (c *conn) finish() {
	if c.resetting {
		c.reset()
	} else {
		_ = c.nc.Close()
	}
	c.r = c.w
	c.release()
	c.unreserve()
	if c.shown && c.rec == nil && c.claimed == nil { // some clients look at the certificate only then
		c.stray("the peer ended the connection when it had seen the certificate, without a request", 0, nil)
	}
	c.dropClaim(wire.FaultTLS, "the peer ended the connection after the handshake, without a request: some clients look at the certificate only then")
	now := c.s.clock.Now()
	c.s.mu.Lock()
	delete(c.s.open, c)
	if c.rec != nil {
		c.rec.Closed = now
	}
	c.s.mu.Unlock()
	c.s.conns.Done()
}

// abort ends the connection from another goroutine.
func (c *conn) abort() {
	if c.tcp != nil {
		_ = c.tcp.Close() // not with TLS's goodbye, which may wait
		return
	}
	_ = c.nc.Close()
}

// reset ends the connection with a RST.
func (c *conn) reset() {
	if c.tcp != nil {
		_ = c.tcp.SetLinger(0)
	}
	c.abort()
}

// shake does the TLS handshake, where there is one. On a path's own port it
// uses an attempt of the path if the step at hand is about certificates.
func (c *conn) shake() bool {
	if c.door.tls == nil {
		return true
	}
	config := c.door.tls
	if c.door.path != nil {
		config = c.s.certs.serverTLS(c.claim)
	}
	began := c.s.clock.Now()
	secure := tls.Server(c.nc, config)
	ctx, cancel := context.WithTimeout(context.Background(), c.s.limits.Handshake)
	defer cancel()
	err := secure.HandshakeContext(ctx)
	if err == nil {
		c.nc = secure
		return true
	}
	if r := c.claimed; r != nil {
		c.rec, c.claimed = r, nil
		r.Began, r.Fault, r.FaultDetail = began, wire.FaultTLS, "the handshake failed: "+err.Error()
		r.Ended = c.s.clock.Now()
		c.s.arrive(r)
		c.s.conclude(r)
		return false
	}
	if !c.shown && !errors.Is(err, io.EOF) { // a look whether the port is open
		c.stray("the TLS handshake failed: "+err.Error(), 0, nil)
	}
	return false
}

// claim chooses the certificate for a handshake on a path's own port.
func (c *conn) claim() Certificate {
	p, now := c.door.path, c.s.clock.Now()
	c.shown = true
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	p.cursor.advance(now)
	kind := p.cursor.steps[p.cursor.at].Kind
	if !kind.isTLS() {
		return Good
	}
	if c.claimed == nil {
		c.claimed = c.newRecord(now)
		c.s.take(p, c.claimed, now)
	}
	return kind.certificate()
}

func (c *conn) newRecord(now time.Time) *record {
	r := &record{}
	r.Began, r.Remote, r.Connection = now, c.remote, c.serial
	return r
}

// acquire makes sure that there is a buffer.
func (c *conn) acquire() {
	if c.buf == nil {
		c.pooled = c.s.buffers.Get().(*[bufferSize]byte)
		c.buf, c.r, c.w = c.pooled[:], 0, 0
	}
}

// release gives the buffer back if nothing unread is in it.
func (c *conn) release() {
	if c.buf == nil || c.r < c.w {
		return
	}
	c.s.buffers.Put(c.pooled)
	c.pooled, c.buf, c.r, c.w = nil, nil, 0, 0
}

// fill reads more. What is unread stays, and what has to grow for it grows.
func (c *conn) fill() error {
	if c.r == c.w {
		return c.fillIdle()
	}
	if c.r > 0 {
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	if c.w == len(c.buf) {
		bigger := make([]byte, 2*len(c.buf))
		copy(bigger, c.buf)
		c.buf = bigger // the array goes back to the pool with the rest
	}
	n, err := c.nc.Read(c.buf[c.w:])
	c.w += n
	if n > 0 {
		return nil
	}
	return nonNil(err)
}

// fillIdle reads where nothing is unread, and takes a buffer only when
// something comes.
func (c *conn) fillIdle() error {
	c.release()
	if c.raw == nil {
		c.acquire()
		n, err := c.nc.Read(c.buf)
		c.w = n
		if n > 0 {
			return nil
		}
		return nonNil(err)
	}
	c.rawErr = nil
	if err := c.raw.Read(c.try); err != nil {
		return err
	}
	return c.rawErr
}

// nonNil is the error of a read that returned nothing.
func nonNil(err error) error {
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// readWithin sets the bound on reading, from now on. Setting it costs, so one
// that is nearly right is left: for idle connections, which are many, nearly
// is enough.
func (c *conn) readWithin(d time.Duration, exact bool) {
	now := time.Now()
	if by := now.Add(d); exact || by.Sub(c.readBy).Abs() > d/4 {
		c.readBy = by
		_ = c.nc.SetReadDeadline(by)
	}
}

// write sends a part of r's answer.
func (c *conn) write(r *record, p []byte) error {
	real := time.Now()
	if c.writeBy.Sub(real) < c.s.limits.Stall*3/4 {
		c.writeBy = real.Add(c.s.limits.Stall)
		_ = c.nc.SetWriteDeadline(c.writeBy)
	}
	if r.Answered.IsZero() {
		if c.door.path != nil {
			// An outage that follows begins before the peer can know of this answer:
			// its next attempt must meet it.
			c.door.settled()
		}
		r.Answered = c.s.clock.Now()
		r.Sent = r.BodyRead
	}
	// The time is taken first: once the peer has the answer, a virtual clock may
	// have moved on. Only a write that had to wait ended later than it began.
	at := c.s.clock.Now()
	n, err := c.nc.Write(p)
	r.Written += int64(n)
	if n > 0 {
		if time.Since(real) > stallNotice {
			at = c.s.clock.Now()
		}
		r.LastWrite = at
	}
	if err != nil {
		r.Peer = peerEnd(err)
	}
	return err
}

// peerEnd says how the peer ended the connection, from what reading or writing
// then gives.
func peerEnd(err error) string {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "stalled"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	}
	return "closed"
}

// stray records what brought no request.
func (c *conn) stray(reason string, status int, sample []byte) {
	st := Stray{At: c.s.clock.Now(), Remote: c.remote, Reason: reason, Status: status}
	if c.door.path != nil {
		st.Path = c.door.path.name
	}
	c.s.stray(st, sample)
}

// linger reads what the peer still sends, within bounds, so that closing does
// not take from it the answer that it has not read yet. It counts what it reads.
func (c *conn) linger() (n int64) {
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	c.readWithin(lingerTime, true)
	n = int64(c.w - c.r)
	c.r = c.w
	for n < lingerBytes {
		if err := c.fillIdle(); err != nil {
			break
		}
		n += int64(c.w - c.r)
		c.r = c.w
	}
	return n
}
