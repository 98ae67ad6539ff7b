package fakeendpoint

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// Handler looks at an attempt whose request has been read, and may change how
// it is answered. Handlers are small and composed: [All] runs several, [InTurn]
// takes one for each attempt, [Path.Handle] gives them to a path.
//
// A handler runs in the goroutine of its connection. One that panics is noted
// in the attempt's remarks, and the attempt is answered 500.
type Handler func(*Call)

// Call is an attempt on its way.
type Call struct {
	// Attempt is what is known so far: the request, its number, its verification.
	// Handlers read it.
	Attempt *Attempt

	step    *Step
	remarks []string
}

// Answer sets how the attempt is answered, in place of the path's script. The
// last answer counts. A step that [NewScript] would not take, or that is about
// connections, is noted and the attempt is answered 500; an early answer comes
// too late to be early.
func (c *Call) Answer(s Step) {
	err := s.check(true)
	if err == nil && s.Kind.OnConnection() {
		err = fmt.Errorf("%s is about connections", s.Kind)
	}
	if err != nil {
		c.Remark("a handler's answer cannot be given: %v", err)
		s = Step{Kind: KindStatus, Status: http.StatusInternalServerError}
	}
	c.step = &cloneSteps([]Step{s})[0]
}

// Remark notes something about the attempt, for whoever reads it.
func (c *Call) Remark(format string, args ...any) {
	c.remarks = append(c.remarks, fmt.Sprintf(format, args...))
}

// All runs handlers one after another.
func All(handlers ...Handler) Handler {
	return func(c *Call) {
		for _, h := range handlers {
			h(c)
		}
	}
}

// InTurn runs the first handler on a path's first attempt, the second on its
// second; the last one repeats.
func InTurn(handlers ...Handler) Handler {
	return func(c *Call) {
		if n := len(handlers); n > 0 {
			handlers[min(max(c.Attempt.Number, 1), n)-1](c)
		}
	}
}

// Status answers with a status.
func Status(status int) Handler { return Do(Step{Kind: KindStatus, Status: status}) }

// Do answers with a step.
func Do(s Step) Handler { return func(c *Call) { c.Answer(s) } }

// Play answers by a script of its own, by the number of the attempt on the path
// and whatever time it is. A text that cannot be read is noted, and answered
// 500.
func Play(script string) Handler {
	s, err := ParseScript(script)
	var turns []Handler
	for _, step := range s.list() {
		again := max(step.Repeat.Times, 1)
		step.Repeat = Repeat{}
		for range min(again, MaxSteps) {
			turns = append(turns, Do(step))
		}
	}
	play := InTurn(turns...)
	return func(c *Call) {
		if err != nil {
			c.Remark("%v", err)
			c.Answer(Step{Kind: KindStatus, Status: http.StatusInternalServerError})
			return
		}
		play(c)
	}
}

// WantVerified remarks on a request that is not signed by one of the path's
// keys, and answers it 401.
func WantVerified() Handler {
	return func(c *Call) {
		if v := &c.Attempt.Verification; !v.OK() {
			why := "the path has no key to check it by"
			if v.Checked {
				why = (&signature.Refusal{Rule: v.Rule, Detail: v.Detail}).Error()
			}
			c.Remark("the request does not verify: %s", why)
			c.Answer(Step{Kind: KindStatus, Status: http.StatusUnauthorized})
		}
	}
}

// WantMethod remarks on a request by another method.
func WantMethod(method string) Handler {
	return func(c *Call) {
		if got := c.Attempt.Request.Method; got != method {
			c.Remark("the method is %s, want %s", got, method)
		}
	}
}

// WantHeader remarks on a request that does not have exactly one header of this
// name, or with another value.
func WantHeader(name, value string) Handler {
	return func(c *Call) {
		headers := c.Attempt.Request.Headers
		got, _ := wire.Get(headers, name)
		if n := wire.Count(headers, name); n != 1 {
			c.Remark("the header %s stands in %d lines, want one", name, n)
		} else if got != value {
			c.Remark("the header %s is %q, want %q", name, got, value)
		}
	}
}

// WantBody remarks on a request with another body, byte by byte.
func WantBody(body []byte) Handler {
	want := bytes.Clone(body)
	return func(c *Call) {
		if got := c.Attempt.Request.Body; !bytes.Equal(got, want) {
			c.Remark("the body is %d bytes, not the %d that are wanted or not equal to them", len(got), len(want))
		}
	}
}

// handle runs a path's handlers and returns the step to carry out.
func (s *Server) handle(r *record, handlers []Handler) (step *Step) {
	c := &Call{Attempt: &r.Attempt, step: r.step}
	defer func() {
		if p := recover(); p != nil {
			c.Remark("a handler panicked: %v", p)
			step = &Step{Kind: KindStatus, Status: http.StatusInternalServerError}
		}
		r.Remarks = append(r.Remarks, c.remarks...)
	}()
	for _, h := range handlers {
		h(c)
	}
	return c.step
}
