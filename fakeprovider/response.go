package fakeprovider

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/whconform/whconform/reference/wire"
)

// The bounds of an answer.
const (
	// HeadLimit bounds the heads of an answer, interim ones included: eight
	// times what net/http's server sends at most and a thousand times what
	// receivers do send; an endless one ends here.
	HeadLimit = 1 << 20

	// ReadLimit bounds how much of an answer's body is read. No provider
	// reads more than a few KiB; at 8 MiB it is plain that the receiver does
	// not stop by itself.
	ReadLimit = 8 << 20

	// interimLimit bounds the 1xx answers before the final one. RFC 9110
	// §15.2 sets no bound, but one or two are what occurs.
	interimLimit = 16

	// chunkLineLimit bounds the line before a chunk, trailerLimit what comes
	// after the last: sizes have at most 16 digits, the rest is filling.
	chunkLineLimit = 4 << 10
	trailerLimit   = 64 << 10
)

// notHTTP is an answer that is not HTTP/1.x.
type notHTTP struct{ detail string }

func (e *notHTTP) Error() string { return e.detail }

func notHTTPf(format string, args ...any) error { return &notHTTP{fmt.Sprintf(format, args...)} }

// errReadLimit ends the reading of a body at ReadLimit.
var errReadLimit = errors.New("the bound on what is read of a body")

// errLongLine is a line that exceeds what is left of its bound.
var errLongLine = errors.New("the line is too long")

// responseReader reads one answer.
type responseReader struct {
	r       *bufio.Reader
	budget  int    // bytes of heads left
	begins  func() // called at the first byte of each head
	goAhead func() // called at a 100 (Continue)
}

func newResponseReader(conn io.Reader) *responseReader {
	return &responseReader{r: bufio.NewReaderSize(conn, 16<<10), budget: HeadLimit, begins: func() {}, goAhead: func() {}}
}

// head reads heads up to the final one. io.EOF is an end before its first byte,
// io.ErrUnexpectedEOF one inside it.
func (r *responseReader) head(method string) (*wire.Response, error) {
	for range interimLimit + 1 {
		if _, err := r.r.Peek(1); err != nil {
			return nil, err
		}
		r.begins()
		response, err := r.oneHead()
		if err != nil {
			return nil, unexpected(err)
		}
		if response.Status == 100 {
			r.goAhead()
		}
		// 101 is final: what follows it is no HTTP.
		if response.Status >= 200 || response.Status == 101 {
			return response, nil
		}
	}
	return nil, notHTTPf("more than %d interim (1xx) answers before the final one", interimLimit)
}

// unexpected makes an end inside something what it is.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *responseReader) oneHead() (*wire.Response, error) {
	if err := r.checkStart(); err != nil {
		return nil, err
	}
	line, err := r.headLine()
	if err != nil {
		return nil, err
	}
	status, err := parseStatus(line)
	if err != nil {
		return nil, err
	}
	response := &wire.Response{Status: status}
	if behind := len("HTTP/1.1 200 "); len(line) > behind {
		response.Reason = line[behind:min(len(line), behind+reasonKept)]
	}
	for {
		line, err := r.headLine()
		if err != nil {
			return nil, err
		}
		if line == "" {
			return response, nil
		}
		if err := addLine(response, line); err != nil {
			return nil, err
		}
	}
}

// checkStart looks at the first bytes, so that a peer which speaks something
// else is known at once and not at the end of its first line.
func (r *responseReader) checkStart() error {
	const want = "HTTP/1."
	for n := 1; n <= len(want); n++ {
		got, err := r.r.Peek(n)
		if err != nil {
			return err
		}
		if got[n-1] == want[n-1] {
			continue
		}
		all, _ := r.r.Peek(min(r.r.Buffered(), 32))
		if all[0] == 0x15 || all[0] == 0x16 {
			return notHTTPf("it begins as a TLS record (%q): is the URL https, not http?", all)
		}
		return notHTTPf("it does not begin with HTTP/1.x but with %q", all)
	}
	return nil
}

// headLine reads a line of the head without its end. A bare LF ends it too
// (RFC 9112 §2.2).
func (r *responseReader) headLine() (string, error) {
	line, err := readLine(r.r, r.budget)
	r.budget -= len(line)
	if errors.Is(err, errLongLine) {
		return "", notHTTPf("its head is longer than %d B", HeadLimit)
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), nil
}

// readLine reads up to and with LF, limit bytes at most.
func readLine(r *bufio.Reader, limit int) (string, error) {
	var out []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(out)+len(piece) > limit {
			return "", errLongLine
		}
		out = append(out, piece...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return string(out), err
	}
}

// reasonKept is how much of a reason phrase is kept: some servers put an error
// message there.
const reasonKept = 1 << 10

// parseStatus reads "HTTP/1.1 204 No Content"; the reason may be missing.
func parseStatus(line string) (int, error) {
	rest := strings.TrimPrefix(line, "HTTP/1.")
	if len(rest) < 5 || (rest[0] != '0' && rest[0] != '1') || rest[1] != ' ' || len(rest) > 5 && rest[5] != ' ' {
		return 0, notStatus(line)
	}
	for _, c := range rest[2:5] {
		if c < '0' || c > '9' {
			return 0, notStatus(line)
		}
	}
	status, err := strconv.Atoi(rest[2:5])
	if err != nil || status < 100 {
		return 0, notStatus(line)
	}
	return status, nil
}

func notStatus(line string) error {
	return notHTTPf("its first line is no status line: %q", clip(line))
}

// clip cuts what a receiver sent for a sentence about it.
func clip(s string) string { return s[:min(len(s), 64)] }

// addLine adds a header line. A line that begins with a blank continues the one
// before (RFC 9112 §5.2).
func addLine(response *wire.Response, line string) error {
	if last := len(response.Headers) - 1; last >= 0 && (line[0] == ' ' || line[0] == '\t') {
		response.Headers[last].Value += " " + strings.Trim(line, " \t")
		return nil
	}
	name, value, ok := strings.Cut(line, ":")
	if !ok || name == "" || strings.ContainsAny(name, " \t\x00") {
		return notHTTPf("its head has a line that is no header: %q", clip(line))
	}
	response.Headers = append(response.Headers, wire.Header{Name: name, Value: strings.Trim(value, " \t")})
	return nil
}

// body reads the body of response: wire.BodyLimit bytes are kept, ReadLimit
// are read, Size counts what was read. An error is about the body alone.
func (r *responseReader) body(response *wire.Response, method string) error {
	status := response.Status
	if method == "HEAD" || status == 101 || status == 204 || status == 304 {
		return nil
	}
	source, err := r.framing(response)
	if err != nil {
		return err
	}
	kept := keeper{response: response}
	_, err = io.CopyBuffer(&kept, io.LimitReader(source, ReadLimit+1), make([]byte, 16<<10))
	return err
}

// keeper keeps the start of a body and counts it.
type keeper struct{ response *wire.Response }

func (k *keeper) Write(p []byte) (int, error) {
	response := k.response
	over := response.Size+int64(len(p)) > ReadLimit
	if over {
		p = p[:ReadLimit-response.Size]
	}
	response.Size += int64(len(p))
	if room := wire.BodyLimit - len(response.Body); room > 0 {
		response.Body = append(response.Body, p[:min(len(p), room)]...)
	}
	if over {
		return len(p), errReadLimit
	}
	return len(p), nil
}

// framing is the body's reader (RFC 9112 §6.3): chunks, a length, or up to the
// connection's end.
func (r *responseReader) framing(response *wire.Response) (io.Reader, error) {
	var length []string
	chunked, coded := false, false
	for _, h := range response.Headers {
		switch {
		case strings.EqualFold(h.Name, "Content-Length"):
			length = append(length, h.Value)
		case strings.EqualFold(h.Name, "Transfer-Encoding"):
			coded = true
			codings := strings.Split(h.Value, ",")
			chunked = strings.EqualFold(strings.Trim(codings[len(codings)-1], " \t"), "chunked")
		}
	}
	switch {
	case chunked:
		return &chunkReader{r: r.r}, nil
	case coded || len(length) == 0:
		return r.r, nil
	}
	for _, other := range length[1:] {
		if other != length[0] {
			return nil, fmt.Errorf("two different lengths: %q and %q", clip(length[0]), clip(other))
		}
	}
	n, err := strconv.ParseUint(length[0], 10, 63)
	if err != nil {
		return nil, fmt.Errorf("its Content-Length is %q", clip(length[0]))
	}
	return &exactReader{r.r, int64(n)}, nil
}

// exactReader reads n bytes; an end before them is an error.
type exactReader struct {
	r io.Reader
	n int64
}

func (e *exactReader) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(p[:min(int64(len(p)), e.n)])
	e.n -= int64(n)
	if e.n > 0 {
		err = unexpected(err)
	}
	if e.n == 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// chunkReader reads a chunked body (RFC 9112 §7.1).
type chunkReader struct {
	r     *bufio.Reader
	left  int64 // of the chunk
	begun bool
	done  bool
}

func (c *chunkReader) Read(p []byte) (int, error) {
	if c.done {
		return 0, io.EOF
	}
	if c.left == 0 {
		if err := c.next(); err != nil {
			return 0, unexpected(err)
		}
		if c.left == 0 {
			c.done = true
			if err := c.trailer(); err != nil {
				return 0, unexpected(err)
			}
			return 0, io.EOF
		}
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, unexpected(err)
}

// next reads the line before a chunk, and the end of the chunk before it.
func (c *chunkReader) next() error {
	if c.begun {
		line, err := readLine(c.r, 2)
		if err != nil || line != "\r\n" && line != "\n" {
			return chunkError(err, "a chunk is longer than its size says")
		}
	}
	c.begun = true
	line, err := readLine(c.r, chunkLineLimit)
	if err != nil {
		return chunkError(err, "the line before a chunk is too long")
	}
	size, _, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ";")
	n, err := strconv.ParseUint(strings.Trim(size, " \t"), 16, 63)
	if err != nil {
		return fmt.Errorf("a chunk's size is %q", clip(size))
	}
	c.left = int64(n)
	return nil
}

// chunkError is err, or what, when the line itself is at fault.
func chunkError(err error, what string) error {
	if err != nil && !errors.Is(err, errLongLine) {
		return err
	}
	return errors.New(what)
}

// trailer reads what follows the last chunk.
func (c *chunkReader) trailer() error {
	for left := trailerLimit; ; {
		line, err := readLine(c.r, left)
		if err != nil {
			return chunkError(err, "the trailer is too long")
		}
		if len(bytes.TrimRight([]byte(line), "\r\n")) == 0 {
			return nil
		}
		left -= len(line)
	}
}
