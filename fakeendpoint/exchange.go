package fakeendpoint

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// exchange takes one request and answers it. It tells whether another one may
// follow.
func (c *conn) exchange() bool {
	if c.r == c.w {
		c.readWithin(c.s.limits.Idle, false)
		if err := c.fillIdle(); err != nil {
			return false
		}
	}
	real := time.Now()
	r := c.newRecord(c.s.clock.Now())
	if old := c.claimed; old != nil {
		r.Began = old.Began
	}
	var s scanner
	end, err := c.readHead(&s)
	if err != nil {
		c.refuse(r, err)
		return false
	}
	r.Head = string(c.buf[c.r : c.r+end])
	c.r += end
	var h head
	refusal := parseHead(r.Head, s.lines, &r.Request, &h)
	if refusal == nil {
		refusal = c.s.begin(c, r, c.claimed)
	}
	if refusal != nil {
		c.refuse(r, refusal)
		return false
	}
	c.nth++
	r.Nth = c.nth
	c.rec, c.claimed = r, nil
	return c.serveRequest(r, &h, real)
}

// readHead reads until the head is whole, and returns its length. The error is
// a *badRequest or the connection's.
func (c *conn) readHead(s *scanner) (int, error) {
	bounded := false
	skipped := false
	for {
		b := c.buf[c.r:c.w]
		// Clients of old send an empty line behind a body (RFC 9112 §2.2).
		if !skipped && len(b) >= 2 {
			if skipped = true; b[0] == '\r' && b[1] == '\n' {
				c.r += 2
				continue
			}
		}
		if len(b) >= 2 || len(b) == 1 && b[0] != '\r' {
			end, err := s.scan(b, &c.s.limits)
			if err != nil {
				return 0, err
			}
			if end > 0 {
				return end, nil
			}
		}
		if !bounded {
			bounded = true
			c.readWithin(c.s.limits.HeadTime, true)
		}
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
}

// refuse answers what is no request that can be taken, as far as there is
// somebody to answer.
func (c *conn) refuse(r *record, err error) {
	sample := append([]byte(r.Head), c.buf[c.r:c.w]...)
	var b *badRequest
	switch {
	case errors.As(err, &b):
	case errors.Is(err, os.ErrDeadlineExceeded):
		b = bad(408, "the head did not end within %v", c.s.limits.HeadTime)
	case errors.Is(err, io.EOF) && len(sample) == 0:
		return
	default:
		c.stray("the connection ended within a head: "+err.Error(), 0, sample)
		return
	}
	text := "whconform's fake endpoint: " + b.reason + "\n"
	answer := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		b.status, http.StatusText(b.status), len(text), text)
	// Told before it is answered: who has the answer can read the record.
	c.stray(b.reason, b.status, sample)
	c.dropClaim(wire.FaultNotHTTP, b.reason)
	if c.write(r, []byte(answer)) == nil {
		c.linger()
	}
}

// dropClaim ends the attempt that a handshake has used, when no request that
// can be taken follows it.
func (c *conn) dropClaim(fault, detail string) {
	old := c.claimed
	if old == nil {
		return
	}
	c.claimed, c.rec = nil, old
	old.Fault, old.FaultDetail, old.Ended = fault, detail, c.s.clock.Now()
	c.s.arrive(old)
	c.s.conclude(old)
}

// serveRequest reads the body of the request whose head is r.Head, and does
// what the script says.
func (c *conn) serveRequest(r *record, h *head, real time.Time) (again bool) {
	if h.length > 0 || h.chunked {
		if r.step.Kind == KindEarly {
			return c.serveEarly(r, h, real)
		}
		if err := c.readBody(r, h); err != nil {
			c.bodyFailed(r, h, err, real)
			return false
		}
	}
	r.BodyEnd = c.s.clock.Now()
	c.s.verify(r)
	step := r.step
	if handlers := c.s.arrive(r); len(handlers) > 0 {
		step = c.s.handle(r, handlers)
	}
	a := answering{c: c, r: r, h: h, real: real}
	again = a.perform(step) && !h.close
	c.conclude(r, real)
	return again
}

// conclude ends an attempt.
func (c *conn) conclude(r *record, real time.Time) {
	if r.Ended = r.LastWrite; r.Ended.IsZero() || r.Peer != "" {
		r.Ended = c.s.clock.Now()
	}
	if r.Took == 0 {
		r.Took = time.Since(real)
	}
	c.unreserve()
	c.s.conclude(r)
}

// serveEarly answers before the body is read: what came with the head is all
// that is looked at.
func (c *conn) serveEarly(r *record, h *head, real time.Time) bool {
	whole := c.takeBuffered(r, h)
	if whole {
		r.BodyEnd = c.s.clock.Now()
		c.s.verify(r)
	}
	c.s.arrive(r)
	a := answering{c: c, r: r, h: h, real: real}
	h.close = true
	again := a.perform(r.step)
	c.conclude(r, real)
	if whole || r.Peer != "" {
		return again
	}
	if !c.s.pause(earlyPause) {
		return false
	}
	more := c.linger()
	c.s.mu.Lock()
	r.BodyRead += more
	c.s.mu.Unlock()
	return false
}

// bodyFailed ends an attempt whose body did not come whole or is framed wrongly.
func (c *conn) bodyFailed(r *record, h *head, err error, real time.Time) {
	if r.Request.Size = r.BodyRead; h.length > 0 {
		r.Request.Size = h.length
	}
	var b *badRequest
	switch {
	case errors.As(err, &b):
	case errors.Is(err, os.ErrDeadlineExceeded):
		b = bad(408, "the body did not end within %v", c.s.limits.BodyTime)
	default:
		r.Peer = peerEnd(err)
		r.Fault = wire.FaultClosed
		if r.Peer == "reset" {
			r.Fault = wire.FaultReset
		}
		r.FaultDetail = "the connection ended within the request's body, after " + strconv.FormatInt(r.BodyRead, 10) + " bytes of it"
		c.s.arrive(r)
		c.conclude(r, real)
		return
	}
	r.Remarks = append(r.Remarks, b.reason)
	c.s.arrive(r)
	a := answering{c: c, r: r, h: h, real: real}
	h.close = true
	a.perform(&Step{Kind: KindStatus, Status: b.status, Body: "whconform's fake endpoint: " + b.reason + "\n"})
	c.conclude(r, real)
	if r.Peer == "" {
		c.linger()
	}
}

// verify checks the signature of a request that has come whole, and cuts its
// body to what is kept.
func (s *Server) verify(r *record) {
	v := r.path.check.Load()
	v.verify(&r.Request, r.BodyEnd, &r.Verification)
	if keep := s.limits.Body; int64(len(r.Request.Body)) > keep {
		v.leaked(r.Request.Body, &r.Verification)
		r.Request.Body = append(make([]byte, 0, keep), r.Request.Body[:keep]...)
	}
}
