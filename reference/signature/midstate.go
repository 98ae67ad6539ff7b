package signature

import (
	"bytes"
	"crypto/hmac"
	"encoding"
	"encoding/binary"
	"hash"
)

// keyedHash is an HMAC by one key, used again and again.
type keyedHash interface {
	begin()
	write(p []byte)

	// end hashes the last piece of the content and returns the MAC, which lives
	// until the next begin. It may write into the capacity behind tail, up to
	// padMax bytes.
	end(tail []byte) []byte
}

// newKeyedHash makes the fastest HMAC that is right: see [midstate].
func newKeyedHash(newHash func() hash.Hash, key []byte) keyedHash {
	plain := &plainHMAC{hash: hmac.New(newHash, key)}
	fast, ok := newMidstate(newHash, key)
	if !ok {
		return plain
	}
	probe := []byte("any text will do, this one goes past the end of a block of the hash")
	plain.begin()
	fast.begin()
	if !bytes.Equal(plain.end(probe), fast.end(probe)) {
		return plain
	}
	return fast
}

// plainHMAC is the standard library's HMAC.
type plainHMAC struct {
	hash hash.Hash
	sum  []byte
}

func (h *plainHMAC) begin()         { h.hash.Reset() }
func (h *plainHMAC) write(p []byte) { h.hash.Write(p) }

func (h *plainHMAC) end(tail []byte) []byte {
	h.hash.Write(tail)
	h.sum = h.hash.Sum(h.sum[:0])
	return h.sum
}

const (
	blockSize  = 64 // of SHA-1 and SHA-256 alike, in bytes
	lengthSize = 8  // of the message length that ends the padding

	// padMax is the longest padding: the length no longer fits into the block.
	padMax = blockSize + lengthSize

	// magicSize is what stands before the chaining value in a saved state.
	magicSize = 4
)

// midstate is HMAC (RFC 2104) from the two hash states after the padded key,
// which the RFC's section 4 proposes to keep. The standard library keeps them
// too, but a short message costs it nearly as much in copies as in hashing: Sum
// copies the hash and the padding through the hash's own block, twice. Here the
// content is padded where it was put together and written in one piece, and the
// result is read from the saved state, the chaining value of the last block.
//
// Where the value stands in a saved state is not documented, only that old
// states remain readable: newKeyedHash compares with the plain HMAC before it
// relies on it.
type midstate struct {
	hash  resumable
	inner []byte // saved state after the inner padded key
	outer []byte // likewise
	saved []byte // memory for a saved state
	size  int    // of the MAC, in bytes
	n     uint64 // bytes hashed so far, the key's block among them

	pad  [padMax]byte    // the padding's first bytes: 0x80 and zeros
	last [blockSize]byte // the outer message behind the key: inner hash, padding
}

// resumable is a hash whose state can be saved without an allocation.
type resumable interface {
	hash.Hash
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

func newMidstate(newHash func() hash.Hash, key []byte) (*midstate, bool) {
	h, ok := newHash().(resumable)
	if !ok || h.BlockSize() != blockSize {
		return nil, false
	}
	if len(key) > blockSize {
		h.Write(key)
		key = h.Sum(nil)
	}
	m := &midstate{hash: h, size: h.Size()}
	var err error
	if m.inner, err = m.keyed(key, 0x36); err != nil {
		return nil, false
	}
	if m.outer, err = m.keyed(key, 0x5c); err != nil {
		return nil, false
	}
	if len(m.outer) < magicSize+m.size {
		return nil, false
	}
	m.saved = make([]byte, 0, len(m.outer))
	m.pad[0], m.last[m.size] = 0x80, 0x80
	binary.BigEndian.PutUint64(m.last[blockSize-lengthSize:], uint64(blockSize+m.size)*8)
	return m, true
}

// keyed is the saved state after the key, padded to a block, under a mask.
func (m *midstate) keyed(key []byte, mask byte) ([]byte, error) {
	var block [blockSize]byte
	copy(block[:], key)
	for i := range block {
		block[i] ^= mask
	}
	m.hash.Reset()
	m.hash.Write(block[:])
	return m.hash.AppendBinary(nil)
}

func (m *midstate) begin() {
	_ = m.hash.UnmarshalBinary(m.inner) // its own state: newKeyedHash has seen that it can
	m.n = blockSize
}

func (m *midstate) write(p []byte) {
	m.hash.Write(p)
	m.n += uint64(len(p))
}

func (m *midstate) end(tail []byte) []byte {
	n := m.n + uint64(len(tail))
	// Padding: 0x80, zeros up to the last 8 bytes of a block, the length in bits.
	zeros := (2*blockSize - lengthSize - 1 - n%blockSize) % blockSize
	tail = append(tail, m.pad[:1+zeros]...)
	tail = binary.BigEndian.AppendUint64(tail, n*8)
	m.hash.Write(tail)
	copy(m.last[:], m.chain())
	_ = m.hash.UnmarshalBinary(m.outer)
	m.hash.Write(m.last[:])
	return m.chain()
}

// chain is the chaining value, which after the padding is the hash.
func (m *midstate) chain() []byte {
	m.saved, _ = m.hash.AppendBinary(m.saved[:0])
	return m.saved[magicSize:][:m.size]
}
