package fakeendpoint

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// Path is one address with a script: one scenario. Requests to its URL, or to
// anything below it, are its attempts. It is safe for use by several goroutines
// at a time.
type Path struct {
	s    *Server
	name string
	door *door // of its own, or nil
	err  error // why it can take no request

	check atomic.Pointer[verifier] // of its keys; see SetKeys

	// Guarded by s.mu.
	script    Script
	handlers  []Handler
	cursor    cursor
	claimed   int // attempts that have begun
	arrived   int // whose request had come, or never will
	concluded int
	forgotten int
	records   []*record // of attempts that have begun and are not forgotten, by number
	waiters   []*waiter
	trap      *Path
}

// newPath makes a path with its check.
func (s *Server) newPath(name string, script Script, check verifier) *Path {
	p := &Path{s: s, name: name, script: script}
	p.check.Store(&check)
	p.cursor.rewind(script)
	return p
}

// cursor is where a path stands in its script.
type cursor struct {
	round int // counts rewinds
	steps []Step
	at    int
	used  int       // attempts that the step at hand has taken
	since time.Time // of its first
	until time.Time // when its Retry-After passes
}

// rewind goes to the first step of a script.
func (c *cursor) rewind(s Script) { *c = cursor{round: c.round + 1, steps: s.list()} }

// advance leaves the step at hand if it is over at now. Outages are not: they
// are about time only, and end when their timer says so.
func (c *cursor) advance(now time.Time) {
	for c.at < len(c.steps)-1 && c.used > 0 {
		switch r := c.steps[c.at].Repeat; {
		case r.For > 0:
			if now.Before(c.since.Add(r.For)) {
				return
			}
		case r.Until:
			if now.Before(c.until) {
				return
			}
		case c.used < max(r.Times, 1):
			return
		}
		c.skip()
	}
}

func (c *cursor) skip() {
	c.at++
	c.used = 0
}

// take uses the step at hand for one attempt.
func (c *cursor) take(now time.Time) *Step {
	c.advance(now)
	step := &c.steps[c.at]
	if step.Kind.isOutage() {
		return step
	}
	c.used++
	if c.used == 1 {
		c.since = now
		if step.Repeat.Until {
			c.until, _ = step.answer().RetryAfter.passes(now)
		}
	}
	return step
}

// answer is the step whose Retry-After the peer sees.
func (s *Step) answer() *Step {
	if s.Then != nil {
		return s.Then
	}
	return s
}

// waiter waits for one of a path's counters.
type waiter struct {
	n       int
	arrived bool // it is about requests that have come, not about those that are over
	ready   chan struct{}
}

// Name is the path's name.
func (p *Path) Name() string { return p.name }

// Err tells why the path can take no request: it needed a port of its own and
// there was none, or there are too many paths. Wait returns it too.
func (p *Path) Err() error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.err
}

// URL is where the path's requests go.
func (p *Path) URL() string {
	d := p.door
	if d == nil {
		d = p.s.door
	}
	return d.base() + "/" + p.name
}

// Script is the script in force.
func (p *Path) Script() Script {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.script
}

// SetScript puts another script in force, from its first step on. Attempts are
// counted on. It fails for a script that needs a port of its own where the path
// has none: whether it has one was settled by its first script.
func (p *Path) SetScript(s Script) error {
	if s.OwnPort() && p.door == nil {
		return fmt.Errorf("changing the script of path %q: %s is about connections, and the path shares its port. Begin with a script that has such a step, or make another path", p.name, s)
	}
	if s.usesTLS() && !p.door.secure {
		return fmt.Errorf("changing the script of path %q: %s is about certificates, and the path's port does not speak TLS", p.name, s)
	}
	p.s.mu.Lock()
	p.script = s
	p.cursor.rewind(s)
	p.s.mu.Unlock()
	if p.door != nil {
		return p.door.settle()
	}
	return nil
}

// SetKeys has the keys check the signatures of the path's requests from now on,
// in place of those before: an endpoint's secret is mostly known only when its
// URL is, and it changes with a rotation. What was checked already stays as it
// was found.
func (p *Path) SetKeys(keys ...signature.Key) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	check := newVerifier(p.check.Load().scheme, keys)
	p.check.Store(&check)
	if p.trap != nil {
		p.trap.check.Store(&check)
	}
	p.s.know(keys)
}

// Reset forgets the path's attempts, and those in its trap, counts anew and
// begins the script again. What is being answered is concluded, and forgotten.
func (p *Path) Reset() error {
	p.s.mu.Lock()
	p.cursor.rewind(p.script)
	p.forget()
	if p.trap != nil {
		p.trap.forget()
	}
	p.s.mu.Unlock()
	if p.door != nil {
		return p.door.settle()
	}
	return nil
}

// forget is Reset under the lock.
func (p *Path) forget() {
	for _, r := range p.records {
		r.forgotten = true
		p.s.ledger.remove(r)
	}
	p.records, p.claimed, p.arrived, p.concluded, p.forgotten = nil, 0, 0, 0, 0
	p.s.messages.drop(p)
}

// Attempts is what has been concluded, by number. What the server's bounds made
// it forget is missing; see [Path.Forgotten].
func (p *Path) Attempts() []Attempt {
	p.s.mu.Lock()
	out := make([]Attempt, 0, len(p.records))
	for _, r := range p.records {
		if r.concluded {
			out = append(out, r.snapshot())
		}
	}
	p.s.mu.Unlock()
	for i := range out {
		p.check.Load().scrub(&out[i])
	}
	return out
}

// Exchanges is Attempts without what only this side knows.
func (p *Path) Exchanges() []wire.Exchange {
	attempts := p.Attempts()
	out := make([]wire.Exchange, len(attempts))
	for i := range attempts {
		out[i] = attempts[i].Exchange
	}
	return out
}

// Forgotten is how many concluded attempts were forgotten since the last Reset,
// because of Limits.Record.
func (p *Path) Forgotten() int {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.forgotten
}

// Count is how many requests have arrived since the last Reset, and how many of
// these attempts are concluded.
func (p *Path) Count() (arrived, concluded int) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.arrived, p.concluded
}

// Wait waits until n attempts are concluded and returns all that are, by
// number. The error is ctx's, the path's own ([Path.Err]), or that the server
// was closed; and a [*ForgottenError] where attempts are missing, which are
// returned no less.
func (p *Path) Wait(ctx context.Context, n int) ([]wire.Exchange, error) {
	err := p.wait(ctx, n, false)
	return p.Exchanges(), err
}

// WaitArrived waits until n requests have arrived, answered or not: for those
// that a script holds.
func (p *Path) WaitArrived(ctx context.Context, n int) error { return p.wait(ctx, n, true) }

// ForgottenError tells that attempts were forgotten because of Limits.Record.
type ForgottenError struct {
	Path  string
	Count int
}

// Error says how many, and what to do.
func (e *ForgottenError) Error() string {
	return fmt.Sprintf("path %q: %d attempts were forgotten to stay within Limits.Record; raise it", e.Path, e.Count)
}

func (p *Path) wait(ctx context.Context, n int, arrived bool) error {
	p.s.mu.Lock()
	if p.err != nil {
		defer p.s.mu.Unlock()
		return p.err
	}
	w := &waiter{n: n, arrived: arrived, ready: make(chan struct{})}
	p.waiters = append(p.waiters, w)
	p.wake()
	p.s.mu.Unlock()
	var err error
	select {
	case <-w.ready:
	case <-ctx.Done():
		err = fmt.Errorf("waiting for attempt %d of path %q: %w", n, p.name, context.Cause(ctx))
	case <-p.s.done:
		err = fmt.Errorf("waiting for attempt %d of path %q: %w", n, p.name, ErrClosed)
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.waiters = slices.DeleteFunc(p.waiters, func(o *waiter) bool { return o == w })
	if err == nil && !arrived && p.forgotten > 0 {
		err = &ForgottenError{p.name, p.forgotten}
	}
	return err
}

// wake lets those go whose count is reached. s.mu is held.
func (p *Path) wake() {
	p.waiters = slices.DeleteFunc(p.waiters, func(w *waiter) bool {
		count := p.concluded
		if w.arrived {
			count = p.arrived
		}
		if count < w.n {
			return false
		}
		close(w.ready)
		return true
	})
}

// Trap is where a redirect without a location leads: the path's own address
// that nobody should visit. Its attempts are the requests that followed.
func (p *Path) Trap() *Path {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.trapLocked()
}

func (p *Path) trapLocked() *Path {
	if p.trap == nil {
		p.trap = p.s.newPath(trapPrefix[1:]+p.name, Script{}, *p.check.Load())
	}
	return p.trap
}

// Handle has handlers run, top to bottom, on each attempt whose request has
// been read, before the script's step is carried out. It replaces those before
// and returns the path.
func (p *Path) Handle(h ...Handler) *Path {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.handlers = slices.Clone(h)
	return p
}
