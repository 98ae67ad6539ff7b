package fakeendpoint

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// The sizes that steps have where the script gives none.
const (
	dripSize     = 64 << 10 // at a byte a second, longer than any attempt
	truncateSize = 1 << 10  // of which half is sent
)

// large does the steps whose answers are streams, in constant memory.
func (a *answering) large(s *Step) (again bool) {
	status := s.Status
	if status == 0 {
		status = http.StatusOK
	}
	switch s.Kind {
	case KindDrip:
		return a.drip(s, status)
	case KindHuge:
		return a.stream(s, status, nil, func(w *writer) error { return w.filler(s.Size) }, s.Size)
	case KindEndless:
		return a.endless(status)
	case KindBomb:
		b := newBomb(s.Size)
		encoding := []wire.Header{{Name: "Content-Encoding", Value: "gzip"}}
		return a.stream(s, status, encoding, b.write, b.length())
	case KindTruncate:
		return a.truncate(s, status)
	case KindHeaders:
		return a.headers(s, status)
	}
	a.fault(wire.FaultClosed, "there is no way to do "+string(s.Kind))
	return false
}

// head writes the head of a large answer. length is the body's; -1: it comes in
// chunks, or until the connection ends where the peer knows no chunks. more
// tells whether a body is to follow.
func (a *answering) head(status int, extra []wire.Header, length int64) (w *writer, more bool) {
	headers := []wire.Header{{Name: "Date", Value: a.c.s.dateText(a.c.s.clock.Now())}, {Name: "Content-Type", Value: "text/plain; charset=utf-8"}}
	headers = append(headers, extra...)
	w = &writer{a: a}
	switch {
	case length >= 0:
		headers = append(headers, wire.Header{Name: "Content-Length", Value: strconv.FormatInt(length, 10)})
	case a.h.minor > 0:
		headers = append(headers, wire.Header{Name: "Transfer-Encoding", Value: "chunked"})
		w.chunked = true
	default:
		a.h.close = true
	}
	if a.h.close || a.c.door.path != nil {
		a.h.close = true
		headers = append(headers, wire.Header{Name: "Connection", Value: "close"})
	}
	a.c.release()
	if a.c.tcp != nil {
		_ = a.c.tcp.SetWriteBuffer(sendBuffer)
	}
	err := a.c.write(a.r, appendHead(nil, status, headers))
	a.r.Took = time.Since(a.real)
	if err != nil {
		a.lost("the head")
		return w, false
	}
	a.r.Response = kept(status, headers, "")
	return w, a.r.Request.Method != http.MethodHead
}

// stream writes a body of a length that is known.
func (a *answering) stream(s *Step, status int, extra []wire.Header, body func(*writer) error, length int64) bool {
	if s.Chunked {
		length = -1
	}
	w, more := a.head(status, extra, length)
	if !more {
		return a.r.Peer == ""
	}
	w.begin()
	err := body(w)
	if err == nil {
		err = w.end()
	}
	w.stop()
	a.r.Response.Size = w.body
	return err == nil
}

// endless writes until the peer stops.
func (a *answering) endless(status int) bool {
	w, more := a.head(status, nil, -1)
	if !more {
		return a.r.Peer == ""
	}
	w.begin()
	for w.filler(pieceSize) == nil {
		if w.body == endlessFree {
			w.heldFromNow()
		}
	}
	w.stop()
	a.r.Response.Size = w.body
	return false
}

// truncate ends the connection within the body.
func (a *answering) truncate(s *Step, status int) bool {
	size := s.Size
	if size == 0 {
		size = truncateSize
	}
	length := size
	if s.Chunked {
		length = -1
	}
	w, more := a.head(status, nil, length)
	if !more {
		return a.r.Peer == ""
	}
	w.begin()
	if w.chunked { // the chunk says more than there is
		w.chunked = false
		_ = w.raw([]byte(strconv.FormatInt(size, 16) + "\r\n"))
	}
	err := w.filler(size / 2)
	w.stop()
	if err != nil {
		a.lost("the body")
		return false
	}
	a.fault(wire.FaultClosed, fmt.Sprintf("the script closed the connection after %d of the %d bytes of the body of a %d", size/2, size, status))
	return false
}

// headers writes a head of a size.
func (a *answering) headers(s *Step, status int) bool {
	const value = 1000 // bytes of filler in a line, where there are many
	a.c.release()
	if a.c.tcp != nil {
		_ = a.c.tcp.SetWriteBuffer(sendBuffer)
	}
	headers := []wire.Header{{Name: "Date", Value: a.c.s.dateText(a.c.s.clock.Now())}, {Name: "Content-Length", Value: "0"}}
	start := appendHead(nil, status, headers)
	start = start[:len(start)-2] // without the empty line
	w := &writer{a: a}
	w.begin()
	defer w.stop()
	err := w.raw(start)
	x := bytes.Repeat([]byte{'x'}, pieceSize)
	if err == nil && s.OneLine {
		err = w.raw([]byte("X-Filler: "))
	}
	line := make([]byte, 0, value+64)
	for n := 1; err == nil && a.r.Written < s.Size; n++ {
		left := s.Size - a.r.Written
		if s.OneLine {
			err = w.raw(x[:min(left, pieceSize)])
			continue
		}
		line = fmt.Appendf(line[:0], "X-Filler-%07d: ", n)
		line = append(append(line, x[:value]...), "\r\n"...)
		err = w.raw(line)
	}
	if err == nil && s.OneLine {
		err = w.raw([]byte("\r\n"))
	}
	if err == nil {
		err = w.raw([]byte("\r\n"))
	}
	a.r.Took = time.Since(a.real)
	if err != nil {
		a.lost("the head")
		return false
	}
	a.r.Response = kept(status, headers, "")
	a.r.Remarks = append(a.r.Remarks, fmt.Sprintf("the answer's head had %d bytes; the lines of filler are not recorded", a.r.Written))
	return a.c.door.path == nil
}

// drip writes an answer in pieces with waits between them.
func (a *answering) drip(s *Step, status int) bool {
	size := s.Size
	if size == 0 {
		size = dripSize
	}
	d := dripping{a: a, piece: s.Piece, wait: s.Wait}
	if !s.Head {
		if _, more := a.head(status, nil, size); !more {
			return a.r.Peer == ""
		}
	} else if !d.head(status, size) {
		return false
	}
	for d.body < size {
		if !d.step(nil, size) {
			break
		}
	}
	a.r.Response.Size = d.body
	return a.r.Peer == "" && !a.h.close
}

// dripping is the state of a drip: how far the body and the piece are.
type dripping struct {
	a     *answering
	piece int64
	wait  time.Duration
	begun bool  // a piece was written, so the next one waits
	body  int64 // bytes of it
}

// head drips the head.
func (d *dripping) head(status int, size int64) bool {
	a := d.a
	headers := []wire.Header{{Name: "Date", Value: a.c.s.dateText(a.c.s.clock.Now())}, {Name: "Content-Length", Value: strconv.FormatInt(size, 10)}}
	if a.h.close || a.c.door.path != nil {
		a.h.close = true
		headers = append(headers, wire.Header{Name: "Connection", Value: "close"})
	}
	for text := appendHead(nil, status, headers); len(text) > 0; {
		n := min(int64(len(text)), d.piece)
		if !d.step(text[:n], 0) {
			if a.r.Peer == "closed" {
				a.fault(wire.FaultTimeout, fmt.Sprintf("the peer left after %d bytes of the head", a.r.Written))
			} else {
				a.lost("the head")
			}
			return false
		}
		text = text[n:]
	}
	a.r.Took = time.Since(a.real)
	a.r.Response = kept(status, headers, "")
	return true
}

// step waits, unless nothing was written yet, and writes a piece: of the head,
// or of the body up to its size.
func (d *dripping) step(head []byte, size int64) bool {
	c := d.a.c
	if d.begun && c.hold(d.a.r, d.wait) {
		return false
	}
	d.begun = true
	if head != nil {
		return c.write(d.a.r, head) == nil
	}
	for left := min(d.piece, size-d.body); left > 0; {
		at := d.body % pieceSize
		n := min(left, pieceSize-at)
		if c.write(d.a.r, c.s.filler[at:at+n]) != nil {
			return false
		}
		d.body += n
		left -= n
	}
	return true
}

// writer writes a body piece by piece. While the peer takes none, the request
// counts as held: a sender that reads no further is waiting for something else.
type writer struct {
	a       *answering
	chunked bool
	body    int64 // bytes of it, without the chunks' frames

	progress atomic.Int64
	mu       sync.Mutex // guards what follows
	seen     int64      // of progress
	always   bool       // held whether there is progress or not
	stopped  bool
	timer    *time.Timer
}

// begin watches for progress until stop.
func (w *writer) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = -1
	w.timer = time.AfterFunc(stallNotice, w.look)
}

func (w *writer) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	now := w.progress.Load()
	if w.always || now == w.seen {
		w.a.c.s.hold(w.a.c, time.Time{})
	} else {
		w.a.c.s.unhold(w.a.c)
	}
	w.seen = now
	w.timer.Reset(stallNotice)
}

func (w *writer) heldFromNow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.always = true
	w.a.c.s.hold(w.a.c, time.Time{})
}

func (w *writer) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
	w.a.c.s.unhold(w.a.c)
}

// raw writes what is no body.
func (w *writer) raw(p []byte) error {
	err := w.a.c.write(w.a.r, p)
	w.progress.Add(1)
	return err
}

// write writes a part of the body.
func (w *writer) write(p []byte) error {
	before := w.a.r.Written
	if !w.chunked {
		err := w.raw(p)
		w.body += w.a.r.Written - before
		return err
	}
	if s := w.a.c.s; len(p) == pieceSize && &p[0] == &s.filler[0] {
		err := w.raw(s.chunk)
		w.body += min(w.a.r.Written-before, pieceSize)
		return err
	}
	err := w.raw(strconv.AppendInt(make([]byte, 0, 20), int64(len(p)), 16))
	if err == nil {
		err = w.raw([]byte("\r\n"))
	}
	if err == nil {
		before = w.a.r.Written
		err = w.raw(p)
		w.body += w.a.r.Written - before
	}
	if err == nil {
		err = w.raw([]byte("\r\n"))
	}
	return err
}

// filler writes n bytes that mean nothing.
func (w *writer) filler(n int64) error {
	for n > 0 {
		p := w.a.c.s.filler[:min(n, pieceSize)]
		if err := w.write(p); err != nil {
			return err
		}
		n -= int64(len(p))
	}
	return nil
}

// end writes what ends the body.
func (w *writer) end() error {
	if !w.chunked {
		return nil
	}
	return w.raw([]byte("0\r\n\r\n"))
}

// bomb is a gzip stream of zeros. Its blocks are all alike and stand for
// themselves, so one is made and written again and again: a terabyte costs no
// more memory than a megabyte, and compressing it takes no time.
type bomb struct {
	blocks int64
	block  []byte // blockSize zeros, compressed
	rest   []byte // what is left over, compressed, with the end of the stream
	zeros  []byte
	left   int64
}

// blockSize is how many zeros a block of a bomb holds.
const blockSize = 1 << 20

func newBomb(size int64) *bomb {
	b := &bomb{blocks: size / blockSize, left: size % blockSize, zeros: make([]byte, blockSize)}
	b.block = deflate(b.zeros, false)
	b.rest = deflate(b.zeros[:b.left], true)
	return b
}

// deflate compresses p for itself: with a final block, or up to the end of a
// byte, so that another such stream may follow.
func deflate(p []byte, final bool) []byte {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil { // not for a level that exists
		return nil
	}
	_, _ = w.Write(p) // a buffer takes all
	if final {
		_ = w.Close()
	} else {
		_ = w.Flush()
	}
	return out.Bytes()
}

// gzipHead is the shortest there is (RFC 1952 §2.3).
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"

func (b *bomb) length() int64 {
	return int64(len(gzipHead)) + b.blocks*int64(len(b.block)) + int64(len(b.rest)) + 8
}

func (b *bomb) write(w *writer) error {
	if err := w.write([]byte(gzipHead)); err != nil {
		return err
	}
	sum := uint32(0)
	for range b.blocks {
		if err := w.write(b.block); err != nil {
			return err
		}
		sum = crc32.Update(sum, crc32.IEEETable, b.zeros)
	}
	if err := w.write(b.rest); err != nil {
		return err
	}
	sum = crc32.Update(sum, crc32.IEEETable, b.zeros[:b.left])
	end := binary.LittleEndian.AppendUint32(nil, sum)
	return w.write(binary.LittleEndian.AppendUint32(end, uint32(b.blocks*blockSize+b.left)))
}
