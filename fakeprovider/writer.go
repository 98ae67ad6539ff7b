package fakeprovider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// writer writes a request while the answer is awaited.
type writer struct {
	conn net.Conn
	req  *request
	sent atomic.Int64 // body bytes handed over, those of the write in progress included

	stopped   chan struct{} // closed when the rest of the body is not wanted
	stopOnce  sync.Once
	continued chan struct{} // closed at a 100 (Continue)
	contOnce  sync.Once

	// Of the writing goroutine, until it has ended:
	err   error
	start []byte // of a streamed body, for the record
	pace  []Pause
}

// sourceError is a failure to read the body that is to be sent.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }

// errStopped ends a writer whose request was answered early.
var errStopped = errors.New("stopped: the answer came first")

func newWriter(conn net.Conn, req *request) *writer {
	w := &writer{conn: conn, req: req, stopped: make(chan struct{}), continued: make(chan struct{})}
	w.pace = slices.Clone(req.wire.Pace)
	slices.SortStableFunc(w.pace, func(a, b Pause) int { return int(min(1, max(-1, a.Offset-b.Offset))) })
	return w
}

// stop ends the writing at the next piece, or in a wait.
func (w *writer) stop() { w.stopOnce.Do(func() { close(w.stopped) }) }

// goAhead tells the writer that a 100 (Continue) came.
func (w *writer) goAhead() { w.contOnce.Do(func() { close(w.continued) }) }

// run writes head and body. It leaves the connection open: the answer is still
// to come.
func (w *writer) run(ctx context.Context) {
	if w.req.size > largeBody {
		w.shrinkBuffer()
	}
	w.err = w.write(ctx)
	var source *sourceError
	if errors.As(w.err, &source) {
		// The receiver waits for bytes that will never come.
		_ = w.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// shrinkBuffer keeps what counts as sent close to what was received.
func (w *writer) shrinkBuffer() {
	conn := w.conn
	if outer, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = outer.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		// A wish: without it the count is only less sharp.
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
}

func (w *writer) write(ctx context.Context) error {
	o := w.req.wire
	if w.isPlain() {
		// Head and small body in one write: one segment on the wire, as most
		// clients send it.
		w.sent.Store(w.req.size)
		n, err := w.conn.Write(append(slices.Clip(w.req.head), w.req.body...))
		if err != nil {
			w.sent.Store(int64(max(0, n-len(w.req.head))))
			return fmt.Errorf("writing the request: %w", err)
		}
		return w.closeWrite()
	}
	if _, err := w.conn.Write(w.req.head); err != nil {
		return fmt.Errorf("writing the head: %w", err)
	}
	if o.Expect {
		if err := w.awaitLeave(ctx); err != nil {
			return err
		}
	}
	if err := w.writeBody(ctx); err != nil {
		return err
	}
	return w.closeWrite()
}

// isPlain tells whether the whole request is small and goes out in one piece.
func (w *writer) isPlain() bool {
	o := w.req.wire
	return !o.Chunked && !o.Expect && o.Body == nil && len(o.Pace) == 0 && o.Drip == 0 && o.StallAt == 0 &&
		w.req.size <= chunkSize && len(w.req.head) <= chunkSize
}

// awaitLeave waits for 100 (Continue), not for ever.
func (w *writer) awaitLeave(ctx context.Context) error {
	timer := time.NewTimer(ExpectWait)
	defer timer.Stop()
	select {
	case <-w.continued:
	case <-timer.C:
	case <-w.stopped:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (w *writer) writeBody(ctx context.Context) error {
	o := w.req.wire
	var source io.Reader = bytes.NewReader(w.req.body)
	if w.req.stream != nil {
		source = w.req.stream()
	}
	buf := make([]byte, chunkSize)
	for offset := int64(0); ; {
		if stall := max(0, o.StallAt); o.StallAt != 0 && offset == stall {
			return w.stall(ctx)
		}
		if err := w.pause(ctx, offset); err != nil {
			return err
		}
		n, readErr := source.Read(buf[:w.pieceSize(offset)])
		if n > 0 {
			w.remember(buf[:n])
			if err := w.writePiece(buf[:n]); err != nil {
				return err
			}
			offset += int64(n)
		}
		if readErr == io.EOF {
			break
		}
		if readErr != nil {
			return &sourceError{readErr}
		}
	}
	if o.Chunked {
		if _, err := w.conn.Write([]byte("0\r\n\r\n")); err != nil {
			return fmt.Errorf("ending the body: %w", err)
		}
	}
	return nil
}

// pieceSize is how many bytes may go out at once at offset.
func (w *writer) pieceSize(offset int64) int64 {
	o := w.req.wire
	size := int64(chunkSize)
	if o.Drip > 0 {
		size = 1
	}
	if o.StallAt > offset {
		size = min(size, o.StallAt-offset)
	}
	for _, p := range w.pace {
		if p.Offset > offset {
			size = min(size, p.Offset-offset)
			break
		}
	}
	return size
}

// pause waits as the draft wants it before the byte at offset.
func (w *writer) pause(ctx context.Context, offset int64) error {
	wait := time.Duration(0)
	if offset > 0 {
		wait = w.req.wire.Drip
	}
	for len(w.pace) > 0 && w.pace[0].Offset <= offset {
		wait += w.pace[0].Wait
		w.pace = w.pace[1:]
	}
	if wait <= 0 {
		select {
		case <-w.stopped:
			return errStopped
		default:
			return ctx.Err()
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.stopped:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stall writes nothing more until the exchange ends.
func (w *writer) stall(ctx context.Context) error {
	select {
	case <-w.stopped:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writePiece writes one piece of the body, as a chunk if the body is chunked.
// It is counted before it is written: the receiver may answer to its last byte
// before the write returns.
func (w *writer) writePiece(piece []byte) error {
	out, before, after := piece, 0, 0
	if w.req.wire.Chunked {
		frame := strconv.AppendInt(nil, int64(len(piece)), 16)
		frame = append(frame, "\r\n"...)
		before, after = len(frame), 2
		out = append(append(frame, piece...), "\r\n"...)
	}
	w.sent.Add(int64(len(piece)))
	n, err := w.conn.Write(out)
	if err != nil {
		written := min(max(0, n-before), len(out)-before-after)
		w.sent.Add(int64(written - len(piece)))
		return fmt.Errorf("writing the body: %w", err)
	}
	return nil
}

// remember keeps the start of a streamed body for the record.
func (w *writer) remember(piece []byte) {
	if room := wire.BodyLimit - len(w.start); w.req.stream != nil && room > 0 {
		w.start = append(w.start, piece[:min(len(piece), room)]...)
	}
}

// keep puts the start of a streamed body into the record.
func (w *writer) keep(r *wire.Request) {
	if w.req.stream != nil {
		r.Body = w.start
	}
}

// closeWrite shuts down the writing side where the draft wants it.
func (w *writer) closeWrite() error {
	if !w.req.wire.HalfClose {
		return nil
	}
	closer, ok := w.conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.New("shutting down the writing side: the connection has no sides")
	}
	if err := closer.CloseWrite(); err != nil {
		return fmt.Errorf("shutting down the writing side: %w", err)
	}
	return nil
}
