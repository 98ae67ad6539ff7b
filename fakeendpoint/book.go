package fakeendpoint

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// This file is the server's bookkeeping: to which path a request goes, and what
// is noted when an attempt begins, arrives and ends.

// route finds the path that a request is for. s.mu is held. The error is what
// the request is answered.
func (s *Server) route(d *door, target string) (*Path, *badRequest) {
	at := targetPath(target)
	if of, ok := strings.CutPrefix(at, trapPrefix); ok {
		p := s.find(of)
		if p == nil && of == "" {
			p = s.fallback
		}
		if p != nil {
			return p.trapLocked(), nil
		}
		return s.fallback, nil
	}
	if d.path != nil {
		return d.path, nil
	}
	if p := s.find(strings.TrimPrefix(at, "/")); p != nil {
		return p, nil
	}
	if text, ok := strings.CutPrefix(at, scriptPrefix); ok {
		return s.routeScript(at, text)
	}
	return s.fallback, nil
}

// routeScript makes the path for an address that holds its script. Each address
// is a scenario of its own, whatever follows the script.
func (s *Server) routeScript(at, text string) (*Path, *badRequest) {
	text, _, _ = strings.Cut(text, "/")
	plain, err := url.PathUnescape(text)
	if err != nil {
		return nil, bad(404, "the script in the URL is not percent-encoded as it should be: %v", err)
	}
	script, err := ParseScript(plain)
	if err != nil {
		return nil, bad(404, "the script in the URL cannot be read: %v", err)
	}
	if script.OwnPort() {
		return nil, bad(404, "the script in the URL is about connections, and this port is shared: give it a path of its own")
	}
	if s.count >= s.limits.Paths {
		s.stats.NoPath++
		return nil, bad(503, "there are %d paths already, the most there may be", s.count)
	}
	p := s.newPath(strings.TrimPrefix(at, "/"), script, newVerifier(s.scheme, s.config.Keys))
	s.count++
	s.paths[p.name] = p
	return p, nil
}

// targetPath is the path of a request target: without the query, and without
// scheme and host where a proxy's form was used.
func targetPath(target string) string {
	if i := strings.IndexAny(target, "?#"); i >= 0 {
		target = target[:i]
	}
	if target == "" || target[0] == '/' {
		return target
	}
	if _, rest, ok := strings.Cut(target, "://"); ok {
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			return rest[i:]
		}
		return "/"
	}
	return target
}

// begin counts an attempt on the path that target leads to, and takes its step.
// claimed is the attempt that the connection's handshake has used already, or
// nil.
func (s *Server) begin(c *conn, r *record, claimed *record) *badRequest {
	now := r.Began
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.route(c.door, r.Request.Target)
	if err != nil {
		return err
	}
	r.path = p
	if claimed != nil && claimed.path == p {
		r.Number, r.step = claimed.Number, claimed.step
		if i := slices.Index(p.records, claimed); i >= 0 {
			p.records[i] = r
		} else { // a Reset came between
			r.forgotten = true
		}
		return nil
	}
	s.take(p, r, now)
	return nil
}

// take gives r its number and step. s.mu is held.
func (s *Server) take(p *Path, r *record, now time.Time) {
	r.path, r.step = p, p.cursor.take(now)
	p.claimed++
	r.Number = p.claimed
	p.records = append(p.records, r)
}

// arrive notes that r's request has come as far as it will, and returns the
// handlers that the path has now.
func (s *Server) arrive(r *record) []Handler {
	id := strings.Clone(r.path.check.Load().message(&r.Request)) // remembered for longer than the head that it is a part of
	s.mu.Lock()
	defer s.mu.Unlock()
	r.arrived = true
	if id != "" {
		m := s.messages.of(messageKey{r.path, id})
		m.count++
		r.ID, r.OfMessage, r.message = id, m.count, m
		if !m.ended.IsZero() {
			r.Since = r.Began.Sub(m.ended)
		}
		r.before, m.last, m.ended = m.last, r, time.Time{}
	}
	if s.config.OnAttempt != nil {
		r.told = make(chan struct{})
	}
	if !r.forgotten {
		r.path.arrived++
		r.path.wake()
	}
	return r.path.handlers
}

// answering notes that r's answer is about to be written in one piece. Its
// sender may have it, and be back with the next attempt of the message, before
// this attempt is concluded.
func (s *Server) answering(r *record) {
	if r.ID == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.answering = true
	if r.message.last == r {
		r.message.ended = s.clock.Now()
	}
}

// conclude notes that r is over.
func (s *Server) conclude(r *record) {
	p := r.path
	if p.door != nil {
		p.door.settled() // before anybody learns that the attempt is over
	}
	s.mu.Lock()
	r.concluded = true
	if m := r.message; m != nil {
		if m.last == r { // and no later attempt is under way
			m.last, m.ended = nil, r.Ended
		}
		r.message = nil
	}
	before := r.before
	r.before = nil
	wait := before != nil && before.answering && !before.concluded
	if !r.forgotten {
		p.concluded++
		s.ledger.add(r)
		p.wake()
	}
	var attempt Attempt
	if s.config.OnAttempt != nil {
		attempt = r.snapshot()
	}
	s.mu.Unlock()
	if s.config.OnAttempt == nil {
		return
	}
	p.check.Load().scrub(&attempt)
	if wait {
		s.await(before.told)
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	s.config.OnAttempt(attempt)
	close(r.told)
}

// await waits until the attempt before was told of, so that a message's attempts
// are told of in their order. That one's answer is on its way, so it will not
// take long.
func (s *Server) await(told <-chan struct{}) {
	t := time.NewTimer(tellWait)
	defer t.Stop()
	select {
	case <-told:
	case <-t.C:
	case <-s.done:
	}
}
