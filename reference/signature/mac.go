package signature

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"hash"
	"sync"
)

// macMax is the size of the largest signature: Ed25519's, in bytes.
const macMax = 64

// state is a keyed hash and the memory one signature needs. Reusing it is what
// makes signing as cheap as the hash itself: a fresh HMAC hashes two more
// blocks and allocates.
type state struct {
	hash hash.Hash
	buf  []byte       // content before the body, and a short body with it
	sum  [macMax]byte // lives here because what goes through hash.Hash escapes
	scratch
}

// statePool keeps the states of one key and one hash.
type statePool struct{ pool sync.Pool }

func (p *statePool) get(newHash func() hash.Hash, key []byte) *state {
	if s, ok := p.pool.Get().(*state); ok {
		s.hash.Reset()
		return s
	}
	return &state{hash: hmac.New(newHash, key), buf: make([]byte, 0, 1024)}
}

// scratchMax bounds what a pooled state keeps of an unusually long id.
const scratchMax = 4 << 10

func (p *statePool) put(s *state) {
	if cap(s.buf) <= scratchMax {
		p.pool.Put(s)
	}
}

// hmacState takes a ready state for k; the caller gives it back with release.
func (k Key) hmacState(mac string) *state {
	m := k.m.open()
	if mac == HMACSHA1 {
		return m.sha1s.get(sha1.New, m.raw)
	}
	return m.sha256s.get(sha256.New, m.raw)
}

func (k Key) release(mac string, s *state) {
	if mac == HMACSHA1 {
		k.m.open().sha1s.put(s)
		return
	}
	k.m.open().sha256s.put(s)
}

// macSize is how many bytes a signature has, 0 where it varies.
func macSize(mac string) int {
	switch mac {
	case HMACSHA256:
		return sha256.Size
	case HMACSHA1:
		return sha1.Size
	case Ed25519:
		return macMax
	}
	return 0
}

// isHMAC tells whether mac is a keyed hash.
func isHMAC(mac string) bool { return mac == HMACSHA256 || mac == HMACSHA1 }
