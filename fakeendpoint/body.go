package fakeendpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"strconv"
	"strings"
	"time"
)

// sink takes a body piece by piece: it keeps as much as it may, and counts all.
type sink struct {
	c      *conn
	r      *record
	limit  int64 // of what is kept
	digest hash.Hash
}

func (c *conn) newSink(r *record) sink {
	limit := c.s.limits.Body
	if len(r.path.check.Load().keys) > 0 {
		limit = c.s.limits.Verify
	}
	return sink{c: c, r: r, limit: limit}
}

func (k *sink) add(p []byte) {
	r, s := k.r, k.c.s
	if k.digest == nil && r.BodyRead+int64(len(p)) > s.limits.Body {
		// All of it is still at hand, unless there was no room.
		k.digest = sha256.New()
		k.digest.Write(r.Request.Body)
	}
	r.BodyRead += int64(len(p))
	if k.digest != nil {
		k.digest.Write(p)
	}
	room := k.limit - int64(len(r.Request.Body))
	if r.Uncaught || room <= 0 {
		return
	}
	p = p[:min(int64(len(p)), room)]
	if !s.reserve(int64(len(p))) {
		k.uncaught()
		return
	}
	k.c.reserved += int64(len(p))
	if r.Request.Body == nil {
		r.Request.Body = make([]byte, 0, len(p)) // most bodies come in one piece
	}
	r.Request.Body = append(r.Request.Body, p...)
}

// uncaught gives up keeping the body: there is no room.
func (k *sink) uncaught() {
	k.r.Uncaught, k.r.Request.Body = true, nil
	k.digest = nil
	k.c.unreserve()
	k.c.s.mu.Lock()
	k.c.s.stats.Uncaught++
	k.c.s.mu.Unlock()
}

// end is called when the body is whole.
func (k *sink) end() {
	k.r.Request.Size = k.r.BodyRead
	if k.digest != nil && !k.r.Uncaught {
		k.r.Digest = hex.EncodeToString(k.digest.Sum(nil))
	}
}

// unreserve gives back what the connection's body took of Limits.InFlight.
func (c *conn) unreserve() {
	if c.reserved > 0 {
		c.s.inFlight.Add(-c.reserved)
		c.reserved = 0
	}
}

// readBody reads the body of r. The error is a *badRequest or the connection's.
func (c *conn) readBody(r *record, h *head) error {
	k := c.newSink(r)
	if h.length > 0 && int64(c.w-c.r) >= h.length { // the usual case
		k.add(c.buf[c.r : c.r+int(h.length)])
		c.r += int(h.length)
		k.end()
		return nil
	}
	c.readWithin(c.s.limits.BodyTime, true)
	if h.expect && c.r == c.w {
		if err := c.write(r, []byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
			return err
		}
		r.Answered, r.Written = time.Time{}, 0 // the answer itself is still to come
	}
	var err error
	if h.chunked {
		err = c.readChunks(r, &k)
	} else {
		err = c.readLength(&k, h.length)
	}
	if err == nil {
		k.end()
	}
	return err
}

// readLength reads n bytes of a body.
func (c *conn) readLength(k *sink, n int64) error {
	for n > 0 {
		if c.r == c.w {
			if err := c.fillIdle(); err != nil {
				return err
			}
		}
		p := c.buf[c.r:c.w]
		p = p[:min(int64(len(p)), n)]
		k.add(p)
		c.r += len(p)
		n -= int64(len(p))
	}
	return nil
}

// readChunks reads a chunked body with its trailers (RFC 9112 §7.1), by the
// letter: a bare line feed, a sign or a blank is read in two ways by two
// programs.
func (c *conn) readChunks(r *record, k *sink) error {
	extensions := 0
	for {
		line, err := c.line(chunkLine)
		if err != nil {
			return err
		}
		size, extension, _ := bytes.Cut(line, []byte{';'})
		if extensions += len(extension); extensions > chunkExtensions {
			return bad(400, "the chunks have more than %d bytes of extensions", chunkExtensions)
		}
		n, refusal := chunkSize(size)
		if refusal != nil {
			return refusal
		}
		if n == 0 {
			return c.readTrailers(r)
		}
		if err := c.readLength(k, n); err != nil {
			return err
		}
		if end, err := c.line(0); err != nil || len(end) > 0 {
			var b *badRequest
			if err == nil || errors.As(err, &b) {
				return bad(400, "a chunk is longer than it says")
			}
			return err
		}
	}
}

func chunkSize(digits []byte) (int64, *badRequest) {
	const most = 15 // hexadecimal digits, so that it fits
	if len(digits) == 0 || len(digits) > most {
		return 0, bad(400, "a chunk's size is no number of 1 to %d hexadecimal digits", most)
	}
	for _, d := range digits { // ParseInt takes signs and underscores
		if !strings.ContainsRune("0123456789abcdefABCDEF", rune(d)) {
			return 0, bad(400, "a chunk's size is no hexadecimal number")
		}
	}
	n, err := strconv.ParseInt(string(digits), 16, 64)
	if err != nil {
		return 0, bad(400, "a chunk's size is no number: %v", errors.Unwrap(err))
	}
	return n, nil
}

func (c *conn) readTrailers(r *record) error {
	size := 0
	for {
		line, err := c.line(c.s.limits.Head - size)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return nil
		}
		size += len(line) + 2
		if len(r.Trailers) >= c.s.limits.HeaderLines {
			return bad(431, "the trailer has more than %d lines", c.s.limits.HeaderLines)
		}
		header, refusal := parseHeaderLine(string(line))
		if refusal != nil {
			return refusal
		}
		r.Trailers = append(r.Trailers, header)
	}
}

// line reads a line of most bytes, its end not counted, and returns it without
// its end; it is good until the next read.
func (c *conn) line(most int) ([]byte, error) {
	scanned := 0
	for {
		b := c.buf[c.r:c.w]
		if i := bytes.IndexByte(b[scanned:], '\n'); i >= 0 {
			i += scanned
			if i == 0 || b[i-1] != '\r' {
				return nil, bad(400, "a line of the chunked body ends with a line feed alone")
			}
			c.r += i + 1
			if i-1 > most {
				return nil, bad(400, "a line of the chunked body is longer than %d bytes", most)
			}
			return b[:i-1], nil
		}
		if scanned = len(b); scanned > most+1 {
			return nil, bad(400, "a line of the chunked body is longer than %d bytes", most)
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

// takeBuffered puts into r what of its body came with the head, and tells
// whether that is all. Size is what the request says of itself.
func (c *conn) takeBuffered(r *record, h *head) (whole bool) {
	if h.chunked {
		return c.peekChunks(r)
	}
	k := c.newSink(r)
	p := c.buf[c.r:c.w]
	p = p[:min(int64(len(p)), h.length)]
	k.add(p)
	c.r += len(p)
	r.Request.Size = h.length
	return r.BodyRead == h.length
}

// peekChunks keeps the raw bytes of a chunked body that is not to be read: they
// are not decoded, and the size is unknown.
func (c *conn) peekChunks(r *record) bool {
	r.Request.Size = int64(c.w-c.r) + 1 // more than is at hand, so that nothing is verified
	r.Remarks = append(r.Remarks, strconv.Itoa(c.w-c.r)+" bytes of a chunked body came with the head and were not decoded; its size is unknown")
	return false
}
