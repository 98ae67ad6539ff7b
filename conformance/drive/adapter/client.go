package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options are the bounds of a peer, and how it is spoken of. The zero value is
// ready to use.
type Options struct {
	// Name is what errors call the peer; "" for "adapter".
	Name string
	// CallTimeout bounds each call; 0: DefaultCallTimeout. A context that ends
	// sooner ends it sooner.
	CallTimeout time.Duration
	// MaxAnswer bounds an answer in bytes; 0: MaxAnswer.
	MaxAnswer int
	// Redact takes the secrets that the caller gave to the peer out of what is
	// quoted. What looks like a secret is always taken out. May be nil.
	Redact func(string) string
	// Obituary says why the peer's output ended, for the error about it: an exit
	// code, the last words. It must return soon. May be nil.
	Obituary func() string
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "adapter"
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = DefaultCallTimeout
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = MaxAnswer
	}
	return o
}

// errOverdue is the cause of a context that a call's own bound ended.
var errOverdue = errors.New("the time for the call is over")

// errClosed is the cause of a fault that is none of the peer's.
var errClosed = errors.New("the connection was closed")

// Client is the suite's side of a connection of lines. Make one with
// [NewClient]; Close it.
type Client struct {
	options Options
	redact  *redactor
	conn    io.ReadWriteCloser
	slots   chan struct{} // a token for each open call
	out     chan sending
	notices chan []byte   // told in passing, dropped when there is no room
	dead    chan struct{} // closed once fault is set
	ended   chan struct{} // closed when both goroutines are over

	mu        sync.Mutex
	asked     int64                // the last id
	waiting   map[int64]chan reply // open calls
	abandoned map[int64]struct{}   // given up by this side: an answer may still come
	writing   int64                // the id whose line is being written; 0 for none
	fault     *Fault

	closing sync.Once
}

// sending is a line on its way out.
type sending struct {
	id   int64
	line []byte
}

// NewClient speaks the protocol over a connection whose Close ends a Read and a
// Write that are under way, as those of pipes and sockets do. The client owns
// the connection.
func NewClient(conn io.ReadWriteCloser, o Options) *Client {
	c := &Client{
		options: o.withDefaults(), redact: newRedactor(o.Redact), conn: conn,
		slots: make(chan struct{}, maxCalls), out: make(chan sending), notices: make(chan []byte, maxCalls),
		dead: make(chan struct{}), ended: make(chan struct{}),
		waiting: map[int64]chan reply{}, abandoned: map[int64]struct{}{},
	}
	var both sync.WaitGroup
	both.Go(c.write)
	both.Go(c.read)
	go func() {
		both.Wait()
		close(c.ended)
	}()
	return c
}

// Call implements [Peer].
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.CallTimeout, errOverdue)
	defer cancel()
	began := time.Now()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-c.dead:
		return c.failed(method)
	case <-ctx.Done():
		return c.overdue(ctx, method, began, Silent)
	}
	id, answer := c.open()
	line, err := outgoing{ID: rawID(id), Method: method, Params: params}.encode()
	if err = c.options.writable(method, line, err); err != nil {
		c.forget(id)
		return err
	}
	select {
	case c.out <- sending{id, line}:
	case <-c.dead:
		return c.failed(method)
	case <-ctx.Done():
		c.forget(id)
		return c.overdue(ctx, method, began, Unread)
	}
	select {
	case r := <-answer:
		return c.take(method, r, result)
	case <-c.dead:
		select {
		case r := <-answer: // the peer answered and then ended
			return c.take(method, r, result)
		default:
			return c.failed(method)
		}
	case <-ctx.Done():
	}
	kind, late := c.abandon(id, answer)
	if late != nil {
		return c.take(method, *late, result)
	}
	return c.overdue(ctx, method, began, kind)
}

// open gives a call its id and a place for the answer.
func (c *Client) open() (int64, chan reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	answer := make(chan reply, 1)
	c.waiting[c.asked] = answer
	return c.asked, answer
}

// forget takes back a call that was never sent.
func (c *Client) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// abandon gives a call up whose request was handed to the writer. It returns the
// answer if that came at the last moment, and otherwise what the peer did not
// do.
func (c *Client) abandon(id int64, answer chan reply) (Kind, *reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.waiting[id]; !open {
		select {
		case r := <-answer:
			return "", &r
		default: // the connection ended
			return Silent, nil
		}
	}
	delete(c.waiting, id)
	c.abandoned[id] = struct{}{}
	if len(c.abandoned) > maxAbandoned {
		c.failLocked(&Fault{Kind: GaveUp, Detail: fmt.Sprintf("%d requests were never answered", len(c.abandoned)), Advice: "answer every request, if only with an error"})
	}
	if c.writing == id {
		return Unread, nil
	}
	// A courtesy: the adapter may stop what nobody waits for any more.
	if notice, err := (outgoing{Method: MethodCancel, Params: CancelParams{ID: id}}).encode(); err == nil {
		select {
		case c.notices <- notice:
		default:
		}
	}
	return Silent, nil
}

// failed is the end of a call on a dead connection.
func (c *Client) failed(method string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault.during(method)
}

// overdue is the end of a call whose context ended.
func (c *Client) overdue(ctx context.Context, method string, began time.Time, k Kind) error {
	return giveUp(ctx, c.options, method, began, k)
}

// giveUp tells a peer that is late from a caller that lost interest.
func giveUp(ctx context.Context, o Options, method string, began time.Time, k Kind) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, errOverdue) && !errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%s: calling %s: %w", o.Name, method, cause)
	}
	within := o.CallTimeout
	if !errors.Is(cause, errOverdue) {
		within = time.Since(began).Round(time.Millisecond)
	}
	f := &Fault{Kind: k, Peer: o.Name, Method: method, Err: context.DeadlineExceeded}
	if k == Unread {
		f.Detail = fmt.Sprintf("it did not read the request within %v", within)
		f.Advice = "read stdin until it ends, also while a request is being worked on"
	} else {
		f.Detail = fmt.Sprintf("no answer within %v", within)
		f.Advice = "answer every request, if only with an error, and flush the output after each message"
	}
	return f
}

// take decodes an answer.
func (c *Client) take(method string, r reply, result any) error {
	return takeReply(c.options.Name, c.redact, method, r, result)
}

// takeReply decodes an answer into result and checks it.
func takeReply(name string, redact *redactor, method string, r reply, result any) error {
	if r.err != nil {
		shown := *r.err
		shown.Message = redact.clean(cut(shown.Message))
		shown.Data = nil // free of form, so it is not known what stands in it
		return fmt.Errorf("%s: calling %s: it answered with an error: %w", name, method, &shown)
	}
	if result == nil {
		return nil
	}
	err := json.Unmarshal(r.result, result)
	if checked, ok := result.(interface{ check() error }); ok && err == nil {
		err = checked.check()
	}
	if err == nil {
		return nil
	}
	bad := &Fault{Kind: BadResult, Peer: name, Method: method, Quote: redact.quote(r.result), Err: err}
	bad.Detail, bad.Advice = "the result is not what the protocol says", resultAdvice(result, err)
	if detail, ok := memberFault(err); ok {
		bad.Line, bad.Detail = r.line, redact.clean(detail)
	}
	return bad
}

// resultAdvice is the form that a result has, or else what is wrong.
func resultAdvice(result any, err error) string {
	if formed, ok := result.(interface{ form() string }); ok {
		return "expected " + formed.form()
	}
	return err.Error()
}

// errorKept is how much of an error's message is shown, in bytes.
const errorKept = 2 << 10

// cut shortens a text to what an error shows of it.
func cut(text string) string {
	if len(text) <= errorKept {
		return text
	}
	return strings.ToValidUTF8(text[:errorKept], "") + "…"
}

// fail ends the connection; the first reason stays.
func (c *Client) fail(f *Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(f)
}

func (c *Client) failLocked(f *Fault) {
	if c.fault != nil {
		return
	}
	f.Peer = c.options.Name
	c.fault = f
	clear(c.waiting)
	close(c.dead)
}

// Fault returns what ended the connection; nil while it lives, or when Close did.
func (c *Client) Fault() *Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault == nil || c.fault.Kind == Closed {
		return nil
	}
	return c.fault
}

// Done is closed when the connection is over: nothing is read from it, or written
// to it, any more. [Client.Fault] says why.
func (c *Client) Done() <-chan struct{} { return c.dead }

// Close implements [Peer]: it closes the connection and waits for its ends.
func (c *Client) Close(context.Context) error {
	var err error
	c.closing.Do(func() {
		c.fail(&Fault{Kind: Closed, Detail: errClosed.Error(), Err: errClosed})
		err = c.conn.Close()
	})
	bound := time.NewTimer(closeTimeout)
	defer bound.Stop()
	select {
	case <-c.ended:
	case <-bound.C:
		return fmt.Errorf("closing the connection to the %s: it was still held after %v", c.options.Name, closeTimeout)
	}
	if err != nil {
		return fmt.Errorf("closing the connection to the %s: %w", c.options.Name, err)
	}
	return nil
}

// writable tells whether a request was encoded and has a length that the other
// side takes.
func (o Options) writable(method string, line []byte, err error) error {
	if err != nil {
		return fmt.Errorf("%s: calling %s: writing the request: %w", o.Name, method, err)
	}
	if len(line) > MaxRequest {
		return &Fault{Kind: TooLarge, Peer: o.Name, Method: method, Detail: fmt.Sprintf("the request has %d bytes, more than the %d of the protocol", len(line), MaxRequest)}
	}
	return nil
}

func rawID(id int64) json.RawMessage { return strconv.AppendInt(nil, id, 10) }
