package receiver

import (
	"errors"
	"io"
	"sync/atomic"
)

// chunk is how much of a body is read at a time, 8 KiB: most events fit into
// one, and a peer that announces much and sends little makes the receiver hold
// little.
const chunk = 8 << 10

// Why a body could not be read. Other errors are the connection's.
var (
	errTooLarge = errors.New("the body is larger than the bound")
	errNoMemory = errors.New("too many bytes of other bodies are in memory")
)

// budget counts the bytes of all bodies that are in memory at one time, so that
// many peers, each within its own bound, cannot exhaust it together.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take reserves n bytes, or none and returns false.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// readBody reads all of r, up to bound bytes. It allocates for what has
// arrived, never for what was announced: declared (negative when unknown) only
// saves memory when it is small.
//
// The memory stays reserved in b until release is called, also after an error.
func readBody(r io.Reader, declared, bound int64, b *budget) (body []byte, release func(), err error) {
	var reserved int64
	release = func() { b.give(reserved) }
	grow := func(to int64) bool {
		if !b.take(to - reserved) {
			return false
		}
		reserved = to
		grown := make([]byte, len(body), to)
		copy(grown, body)
		body = grown
		return true
	}

	// One byte more than declared or allowed, so that the read that finds the
	// end, or the first byte too many, needs no more room.
	size := int64(chunk)
	if declared >= 0 {
		size = min(size, declared+1)
	}
	if !grow(min(size, bound+1)) {
		return nil, release, errNoMemory
	}
	for {
		n, err := r.Read(body[len(body):min(cap(body), len(body)+chunk)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > bound:
			return nil, release, errTooLarge
		case err == io.EOF:
			return body, release, nil
		case err != nil:
			return nil, release, err
		}
		if len(body) == cap(body) && !grow(min(2*int64(cap(body))+chunk, bound+1)) {
			return nil, release, errNoMemory
		}
	}
}
