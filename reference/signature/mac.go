package signature

import (
	"crypto/sha256"
	"crypto/subtle"
	"hash"
	"sync"
	"sync/atomic"
)

const (
	// macMax is the size of the largest MAC, HMAC-SHA256's, in bytes.
	macMax = sha256.Size

	// macTextMax is the length of the longest MAC as text: hex.
	macTextMax = 2 * macMax
)

// state is a keyed hash and the memory one signature needs. Reusing it is what
// makes signing as cheap as the hash itself: a fresh HMAC hashes two more
// blocks and allocates. The arrays live here because what goes through an
// interface escapes from the stack.
type state struct {
	hash keyedHash
	buf  []byte // content before the body, and a short body with it
	sum  [macMax]byte
	text [macTextMax]byte // sum, encoded
	got  [macTextMax]byte // a token's text, for comparing it with text
}

// equal compares a token's text with the text of the MAC, in a time that says
// nothing about where they differ.
func (st *state) equal(got string, want []byte) bool {
	if len(got) != len(want) {
		return false
	}
	n := copy(st.got[:], got)
	return subtle.ConstantTimeCompare(st.got[:n], want) == 1
}

// statePool keeps the states of one key and one hash.
//
// The one that was given back last waits in a slot, which costs half of what
// the pool does. Two goroutines seldom meet there: an HTTP request, of many
// times the cost, lies between two signatures. Those that do use the pool.
type statePool struct {
	slot atomic.Pointer[state]
	pool sync.Pool
}

func (p *statePool) init(newHash func() hash.Hash, key []byte) {
	p.pool.New = func() any {
		return &state{hash: newKeyedHash(newHash, key), buf: make([]byte, 0, bufSize)}
	}
}

const (
	// bufSize has room for a joined body (joinMax) behind a usual id and
	// timestamp.
	bufSize = 1 << 10

	// bufMax bounds what a pooled state keeps of an unusually long id.
	bufMax = 4 << 10
)

func (p *statePool) get() *state {
	if s := p.slot.Swap(nil); s != nil {
		return s
	}
	return p.pool.Get().(*state)
}

func (p *statePool) put(s *state) {
	if cap(s.buf) <= bufMax && !p.slot.CompareAndSwap(nil, s) {
		p.pool.Put(s)
	}
}

// states are the ready states of k for an HMAC.
func (k *Key) states(mac string) *statePool {
	m := k.m.open()
	if mac == HMACSHA1 {
		return &m.sha1s
	}
	return &m.sha256s
}

// isHMAC tells whether mac is a keyed hash.
func isHMAC(mac string) bool { return mac == HMACSHA256 || mac == HMACSHA1 }
