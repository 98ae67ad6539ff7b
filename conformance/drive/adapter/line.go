package adapter

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// errLongLine says that a line is longer than its bound.
var errLongLine = errors.New("the line is longer than its bound")

// lineReader cuts a stream into lines of a bounded length.
type lineReader struct {
	r    *bufio.Reader
	max  int // bytes, the end of the line not counted
	line []byte
}

// readBuffer is how much is read at a time. Larger than nearly every message, so
// that one costs one read.
const readBuffer = 16 << 10

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, readBuffer), max: limit}
}

// next returns the next line without its end, valid until the call after. The
// error is errLongLine with the beginning of the line, io.EOF at the end of the
// stream, io.ErrUnexpectedEOF when the stream ends inside a line, with what
// there is of it, or the stream's own.
func (l *lineReader) next() ([]byte, error) {
	l.line = l.line[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		content := bytes.TrimSuffix(part, []byte{'\n'})
		if len(l.line)+len(content) > l.max {
			l.line = append(l.line, content[:l.max-len(l.line)]...)
			return l.line, errLongLine
		}
		l.line = append(l.line, content...)
		switch {
		case err == nil:
			return l.line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(l.line) > 0:
			return l.line, io.ErrUnexpectedEOF
		default:
			return l.line, err
		}
	}
}
