package signature

import (
	"crypto/ed25519"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"
	"sync/atomic"
)

// macTextMax is the length of the longest MAC as text: HMAC-SHA256 in hex.
const macTextMax = 2 * sha256.Size

// state is a keyed hash and the memory one signature needs. Reusing it is what
// makes signing as cheap as the hash itself: a fresh HMAC hashes two more
// blocks and allocates. Its memory lives here because what goes through an
// interface escapes from the stack.
type state struct {
	hash keyedHash
	buf  []byte           // content before the body, and a short body with it
	text [macTextMax]byte // the MAC, encoded
}

// equalText compares a token's text with the text of the MAC, in a time that
// depends on their lengths alone: no branch and no address depends on a byte.
// It does what subtle.ConstantTimeCompare does, eight bytes at a time, in less
// than half of the time.
func equalText(token string, want []byte) bool {
	if len(token) != len(want) {
		return false
	}
	got := []byte(token) // not copied: nobody writes to it
	var diff uint64
	for len(got) >= 8 && len(want) >= 8 {
		diff |= binary.LittleEndian.Uint64(got) ^ binary.LittleEndian.Uint64(want)
		got, want = got[8:], want[8:]
	}
	for i := range min(len(got), len(want)) {
		diff |= uint64(got[i] ^ want[i])
	}
	return diff == 0
}

// statePool keeps the states of one key and one hash.
//
// One waits in a slot, which costs half of what the pool does. Two goroutines
// seldom meet there: an HTTP request, of many times the cost, lies between two
// signatures. Those that do take another from the pool.
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

	// bufMax bounds what a state keeps of an unusually long id.
	bufMax = 4 << 10
)

func (p *statePool) get() *state {
	if s := p.slot.Swap(nil); s != nil {
		return s
	}
	return p.pool.Get().(*state)
}

func (p *statePool) put(s *state) {
	if cap(s.buf) > bufMax {
		s.buf = make([]byte, 0, bufSize)
	}
	if !p.slot.CompareAndSwap(nil, s) {
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

// macSize is how many bytes a signature has, 0 where it varies.
func macSize(mac string) int {
	switch mac {
	case HMACSHA256:
		return sha256.Size
	case HMACSHA1:
		return sha1.Size
	case Ed25519:
		return ed25519.SignatureSize
	}
	return 0
}

// isHMAC tells whether mac is a keyed hash.
func isHMAC(mac string) bool { return mac == HMACSHA256 || mac == HMACSHA1 }
