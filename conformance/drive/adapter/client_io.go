package adapter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// write is the goroutine that writes: a peer that does not read holds up this
// one and nobody else.
func (c *Client) write() {
	for {
		var s sending
		select {
		case s = <-c.out:
		case s.line = <-c.notices:
		case <-c.dead:
			return
		}
		c.setWriting(s.id)
		_, err := c.conn.Write(s.line)
		c.setWriting(0)
		if err != nil {
			c.inputClosed(err)
			return
		}
	}
}

func (c *Client) setWriting(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = id
}

// inputGrace is how long the reader has to see the peer's end after the writer
// met it. Both come at once where the peer has died.
const inputGrace = 500 * time.Millisecond

// inputClosed ends the connection after a failed write. Most often the peer has
// died, and the reader can say more about that.
func (c *Client) inputClosed(err error) {
	grace := time.NewTimer(inputGrace)
	defer grace.Stop()
	select {
	case <-c.dead:
		return
	case <-grace.C:
	}
	c.fail(&Fault{Kind: Died, Detail: "its input was closed", Advice: "read stdin until it ends", Last: c.obituary(), Err: err})
}

// read is the goroutine that reads answers until one is none.
func (c *Client) read() {
	lines := newLineReader(c.conn, c.options.MaxAnswer)
	blank, messages := 0, 0
	for n := 1; ; n++ {
		line, err := lines.next()
		if err != nil {
			c.fail(c.streamFault(line, n, err))
			return
		}
		if len(bytes.TrimSpace(line)) == 0 {
			if blank++; blank > maxBlank {
				c.fail(&Fault{Kind: Garbage, Line: n, Detail: fmt.Sprintf("%d empty lines in a row", blank), Advice: "print everything but messages to stderr"})
				return
			}
			continue
		}
		blank = 0
		if f := c.deliver(line, n, messages == 0); f != nil {
			f.Quote = c.redact.quote(line)
			c.fail(f)
			return
		}
		messages++
	}
}

// streamFault explains the end of the peer's output.
func (c *Client) streamFault(line []byte, n int, err error) *Fault {
	switch {
	case errors.Is(err, errLongLine):
		return &Fault{Kind: LongLine, Line: n, Quote: c.redact.quote(line), Err: err,
			Detail: fmt.Sprintf("it is longer than %d bytes, or has no end", c.options.MaxAnswer),
			Advice: "end each message with a line feed, and answer with less"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Fault{Kind: CutLine, Line: n, Quote: c.redact.quote(line), Err: err,
			Detail: "the output ended inside it", Last: c.obituary(),
			Advice: "write a message and its line feed at once, and flush"}
	case errors.Is(err, io.EOF):
		return &Fault{Kind: Died, Err: err,
			Detail: "its output ended " + afterLines(n-1), Last: c.obituary(),
			Advice: "serve requests until stdin ends"}
	}
	return &Fault{Kind: Died, Err: err, Detail: "reading its output: " + err.Error(), Last: c.obituary()}
}

func afterLines(n int) string {
	switch n {
	case 0:
		return "before the first line"
	case 1:
		return "after one line"
	}
	return fmt.Sprintf("after %d lines", n)
}

// obituary is what is known of the peer's end.
func (c *Client) obituary() string {
	if c.options.Obituary == nil {
		return ""
	}
	select {
	case <-c.dead: // it was ended, and everybody knows
		return ""
	default:
	}
	return c.options.Obituary()
}

// deliver hands an answer to the call that waits for it.
func (c *Client) deliver(line []byte, n int, first bool) *Fault {
	r, err := parseReply(line)
	if err != nil {
		return badLine(line, n, first, err)
	}
	id, err := strconv.ParseInt(string(r.id), 10, 64)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || string(rawID(id)) != string(r.id) || id < 1 || id > c.asked {
		return wrongID(r, n, c.redact)
	}
	if _, late := c.abandoned[id]; late {
		delete(c.abandoned, id)
		return nil
	}
	answer, open := c.waiting[id]
	if !open {
		return &Fault{Kind: DoubledID, Line: n, Detail: fmt.Sprintf("request %d was answered before", id), Advice: "answer each request once"}
	}
	delete(c.waiting, id)
	r.line = n
	answer <- r // has room for one, and gets one
	return nil
}

// wrongID explains an answer to what was never asked.
func wrongID(r reply, n int, redact *redactor) *Fault {
	f := &Fault{Kind: WrongID, Line: n, Advice: "copy the id of the request as it stands: a whole number"}
	id := string(r.id)
	switch {
	case id == "null" && r.err != nil:
		f.Detail = "it could not read a request: " + redact.clean(cut(r.err.Error()))
		f.Advice = "a request is one line of UTF-8 with a JSON object"
	case len(id) > 40:
		f.Detail = "it answers an id that nothing was asked with"
	default:
		f.Detail = fmt.Sprintf("it answers the id %s, which nothing was asked with", redact.clean(id))
	}
	return f
}
