package fakeendpoint

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// answering is the carrying out of a step.
type answering struct {
	c    *conn
	r    *record
	h    *head
	real time.Time // when the request's first byte came
}

// perform does what a step says, and tells whether the connection can go on.
func (a *answering) perform(s *Step) (again bool) {
	if len(s.Interim) > 0 && a.h.minor > 0 && !a.interim(s.Interim) {
		return false
	}
	switch s.Kind {
	case KindStatus:
		return a.status(s)
	case KindSlow:
		if !a.wait(s.Wait) {
			return false
		}
		return a.perform(s.Then)
	case KindEarly:
		return a.status(s.Then)
	case KindHang:
		a.wait(-1)
		return false
	case KindReset:
		a.fault(wire.FaultReset, "the script reset the connection")
		a.c.resetting = true // once the attempt is concluded: then its sender may be back
		return false
	case KindClose:
		a.fault(wire.FaultClosed, "the script closed the connection")
		return false
	case KindRefuse, KindFullQueue: // a connection that was made before the outage
		a.fault(wire.FaultClosed, "the script is at "+string(s.Kind)+"; this connection was made before")
		return false
	case KindGarbage:
		a.fault(wire.FaultNotHTTP, "the script answered with something else than HTTP")
		a.c.s.answering(a.r)
		_ = a.c.write(a.r, []byte(garbage))
		return false
	case KindExpired, KindWrongHost, KindSelfSigned:
		a.r.Remarks = append(a.r.Remarks, "the peer accepted the certificate: "+string(s.Kind))
		return a.status(&Step{Kind: KindStatus, Status: http.StatusOK})
	}
	return a.large(s)
}

// garbage is what no HTTP client takes for an answer: a greeting of another
// protocol, then bytes that are no text.
const garbage = "220 this is not HTTP\r\n\x00\x01\x02\xff\xfe\xfd\r\n\r\n"

// fault notes what the sender sees in place of an answer.
func (a *answering) fault(fault, detail string) {
	a.r.Fault, a.r.FaultDetail, a.r.Response = fault, detail, nil
}

// wait holds the request, and tells whether the peer has stayed.
func (a *answering) wait(d time.Duration) bool {
	if !a.c.hold(a.r, d) {
		return true
	}
	fault := wire.FaultTimeout
	if a.r.Peer == "reset" {
		fault = wire.FaultReset
	}
	waited := a.c.s.clock.Now().Sub(a.r.Began)
	a.fault(fault, fmt.Sprintf("the peer ended the connection %v after its request began, unanswered", waited))
	return false
}

// lost notes that writing the answer failed.
func (a *answering) lost(what string) {
	fault := wire.FaultClosed
	switch a.r.Peer {
	case "reset":
		fault = wire.FaultReset
	case "stalled":
		fault = wire.FaultTimeout
	}
	a.fault(fault, fmt.Sprintf("the peer %s while %s was written, after %d bytes", a.r.Peer, what, a.r.Written))
}

// interim writes 1xx answers.
func (a *answering) interim(list []Interim) bool {
	for _, i := range list {
		text := "HTTP/1.1 " + strconv.Itoa(i.Status) + " " + http.StatusText(i.Status) + "\r\n"
		for _, h := range i.Headers {
			text += h.Name + ": " + h.Value + "\r\n"
		}
		for range max(i.Times, 1) {
			if a.c.write(a.r, []byte(text+"\r\n")) != nil {
				a.lost("an interim answer")
				return false
			}
		}
	}
	return true
}

// plain is an ordinary answer in one piece of memory.
type plain struct {
	wire.Response
	lines [4]wire.Header
}

// status writes an ordinary answer.
func (a *answering) status(s *Step) bool {
	c, r := a.c, a.r
	now := c.s.clock.Now()
	p := &plain{}
	p.Status = s.Status
	headers := append(p.lines[:0], wire.Header{Name: "Date", Value: c.s.dateText(now)})
	headers = a.retryAfter(headers, s, now)
	switch {
	case s.Location != "":
		headers = append(headers, wire.Header{Name: "Location", Value: s.Location})
	case s.Status > 300 && s.Status < 309 && s.Status != 304:
		headers = append(headers, wire.Header{Name: "Location", Value: c.s.trapURL(r.path)})
	}
	headers = append(headers, s.Headers...)
	if bodied(s.Status) {
		if s.Body != "" && !named(s.Headers, "Content-Type") {
			headers = append(headers, wire.Header{Name: "Content-Type", Value: "text/plain; charset=utf-8"})
		}
		headers = append(headers, wire.Header{Name: "Content-Length", Value: strconv.Itoa(len(s.Body))})
	}
	end := s.Close || a.h.close || s.Status == http.StatusSwitchingProtocols || c.door.path != nil
	if end {
		headers = append(headers, wire.Header{Name: "Connection", Value: "close"})
	}
	p.Headers = headers
	c.release()
	buffer := c.s.buffers.Get().(*[bufferSize]byte)
	out := appendHead(buffer[:0], s.Status, headers)
	head := len(out)
	if r.Request.Method != http.MethodHead {
		out = append(out, s.Body...)
	}
	c.s.answering(r)
	err := c.write(r, out)
	c.s.buffers.Put(buffer)
	r.Took = time.Since(a.real)
	if err != nil {
		a.lost("the answer")
		return false
	}
	if body := len(out) - head; body > 0 {
		p.Body, p.Size = []byte(s.Body), int64(body)
	}
	r.Response = &p.Response
	return !end
}

// retryAfter adds the header if there is one. During a step that lasts until it
// has passed, later answers say what is left of it.
func (a *answering) retryAfter(headers []wire.Header, s *Step, now time.Time) []wire.Header {
	if s.RetryAfter.IsZero() {
		return headers
	}
	text := s.RetryAfter.Text
	passes, timed := s.RetryAfter.passes(now)
	if a.r.step.Repeat.Until && timed {
		if until := a.c.s.until(a.r); !until.IsZero() {
			passes = until
		}
		left := max(0, passes.Sub(now))
		text = strconv.FormatInt(int64((left+time.Second-1)/time.Second), 10)
	} else if text == "" {
		text = strconv.FormatInt(int64(s.RetryAfter.Delay/time.Second), 10)
	}
	if s.RetryAfter.Date {
		text = httpDate(passes)
	}
	return append(headers, wire.Header{Name: "Retry-After", Value: text})
}

// until is when the step of r's path ends, if that is the one in force.
func (s *Server) until(r *record) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := &r.path.cursor; &c.steps[c.at] == r.step {
		return c.until
	}
	return time.Time{}
}

// trapURL is where a redirect leads that names no place of its own.
func (s *Server) trapURL(p *Path) string { return s.door.base() + trapPrefix + p.name }

func named(headers []wire.Header, name string) bool {
	_, ok := wire.Get(headers, name)
	return ok
}

// appendHead writes an answer's head.
func appendHead(out []byte, status int, headers []wire.Header) []byte {
	out = append(out, "HTTP/1.1 "...)
	out = strconv.AppendInt(out, int64(status), 10)
	out = append(out, ' ')
	out = append(out, http.StatusText(status)...)
	out = append(out, "\r\n"...)
	for i := range headers {
		out = append(out, headers[i].Name...)
		out = append(out, ": "...)
		out = append(out, headers[i].Value...)
		out = append(out, "\r\n"...)
	}
	return append(out, "\r\n"...)
}
