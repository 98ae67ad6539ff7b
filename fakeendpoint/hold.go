package fakeendpoint

import (
	"errors"
	"os"
	"time"
)

// What a script holds is held by the connection's own goroutine: it reads, so
// that it sees the peer leave, and the timer on the server's clock ends the
// reading. It keeps neither a buffer nor a goroutine more.

// hold waits for d on the server's clock, for ever if d is negative. left tells
// that the connection has ended: the peer has closed or reset it, or its own
// side of it, which looks the same; or the server was closed.
func (c *conn) hold(r *record, d time.Duration) (left bool) {
	c.release()
	c.mu.Lock()
	c.round++
	c.holding, c.fired = true, false
	round := c.round
	c.mu.Unlock()
	c.readBy = time.Time{}
	_ = c.nc.SetReadDeadline(time.Time{})
	var at time.Time
	if d >= 0 {
		// The due time is known before the timer runs: who reads it and moves the
		// clock there must find the timer.
		at = c.s.clock.Now().Add(d)
		timer := c.s.clock.AfterFunc(d, func() { c.wake(round) })
		defer timer.Stop()
	}
	c.s.hold(c, at)
	left = c.watch(r)
	c.mu.Lock()
	c.holding = false
	c.mu.Unlock()
	if !left {
		_ = c.nc.SetReadDeadline(time.Time{})
	}
	c.s.unhold(c)
	return left
}

// wake ends the hold of a round.
func (c *conn) wake(round int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holding && c.round == round {
		c.fired = true
		_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// watch reads until the timer fires or the connection ends. What comes is the
// beginning of the next request and is kept, up to a buffer of it.
func (c *conn) watch(r *record) (left bool) {
	for {
		n, err := c.nc.Read(c.one[:])
		switch {
		case n > 0:
			if !c.stash() {
				r.Peer = "closed"
				r.Remarks = append(r.Remarks, "the peer sent more than a buffer of further requests without waiting for the answer, and was cut off")
				return true
			}
		case errors.Is(err, os.ErrDeadlineExceeded) && c.isFired():
			return false
		default:
			r.Peer = peerEnd(nonNil(err))
			return true
		}
	}
}

func (c *conn) isFired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fired
}

// stash keeps the byte that a held connection has read.
func (c *conn) stash() bool {
	c.acquire()
	if c.w == len(c.buf) {
		if c.r == 0 {
			return false
		}
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	c.buf[c.w] = c.one[0]
	c.w++
	return true
}

// hold counts a connection as held until at; zero: with no end that is known.
func (s *Server) hold(c *conn, at time.Time) {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	if old, is := s.held[c]; !is || !old.Equal(at) {
		s.held[c] = at
		s.tellHeld()
	}
}

// unhold counts it no longer.
func (s *Server) unhold(c *conn) {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	if _, is := s.held[c]; is {
		delete(s.held, c)
		s.tellHeld()
	}
}

// setDue notes when an outage of a door ends; zero: there is none.
func (s *Server) setDue(d *door, at time.Time) {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	if at.IsZero() {
		delete(s.due, d)
	} else {
		s.due[d] = at
	}
	s.tellHeld()
}

// tellHeld wakes who waits for a change. s.heldMu is held.
func (s *Server) tellHeld() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}
