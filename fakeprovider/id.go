package fakeprovider

import (
	"crypto/rand"
	"encoding/hex"
	"io"
)

// idStamp is the time-ordered part of an id.
type idStamp struct {
	ms  int64 // since 1970
	seq int   // within the millisecond, 12 bits
}

// idSequence is how many ids fit a millisecond: the 12 bits of rand_a in a
// UUID version 7 (RFC 9562 §5.7).
const idSequence = 1 << 12

// NewID makes a message id: the profile's prefix and a UUID of version 7. Ids
// of one provider sort in the order in which they were made, also on a clock
// that stands still.
func (p *Provider) NewID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now().UnixMilli()
	switch {
	case now > p.last.ms:
		p.last = idStamp{ms: now}
	case p.last.seq+1 < idSequence:
		p.last.seq++
	default:
		p.last = idStamp{ms: p.last.ms + 1}
	}
	return p.profile.IDPrefix + p.last.uuid(p.rand)
}

// uuid writes the stamp as a UUID of version 7 with random rest.
func (s idStamp) uuid(random io.Reader) string {
	var b [16]byte
	if _, err := io.ReadFull(random, b[8:]); err != nil {
		// A source that runs dry must not make two ids equal; crypto/rand
		// never fails.
		_, _ = rand.Read(b[8:])
	}
	for i := range 6 {
		b[i] = byte(s.ms >> (8 * (5 - i)))
	}
	b[6] = 0x70 | byte(s.seq>>8)
	b[7] = byte(s.seq)
	b[8] = 0x80 | b[8]&0x3f
	text := hex.EncodeToString(b[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
