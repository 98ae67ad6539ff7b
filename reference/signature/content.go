package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
)

// atom is one kind of piece of the signed content.
type atom int

const (
	atomLiteral atom = iota
	atomID
	atomTimestamp
	atomRaw
	atomSHA256
	atomCRC32
	atomDescribed // known, but only described
)

// piece is one piece of the signed content.
type piece struct {
	atom atom
	text string // of a literal
}

// parsePiece reads one element of Spec.Content. ok is false for text in braces
// that is no atom.
func parsePiece(s string) (p piece, ok bool) {
	if !strings.HasPrefix(s, "{") || !strings.HasSuffix(s, "}") {
		return piece{atomLiteral, s}, s != "" && !strings.ContainsAny(s, "{}")
	}
	switch s {
	case "{id}":
		return piece{atom: atomID}, true
	case "{ts}":
		return piece{atom: atomTimestamp}, true
	case "{raw}":
		return piece{atom: atomRaw}, true
	case "{sha256(raw)}":
		return piece{atom: atomSHA256}, true
	case "{crc32(raw)}":
		return piece{atom: atomCRC32}, true
	case "{method}", "{url}", "{url_decoded}", "{form_sorted}":
		return piece{atom: atomDescribed}, true
	}
	if name, found := strings.CutPrefix(s, "{json:/"); found && len(name) > 1 {
		return piece{atom: atomDescribed}, true
	}
	if name, found := strings.CutPrefix(s, "{setup:"); found && len(name) > 1 {
		return piece{atom: atomDescribed}, true
	}
	return piece{}, false
}

// Atoms lists the atoms that may stand in [Spec.Content] under one fixed name.
func Atoms() []string {
	return []string{"{id}", "{ts}", "{raw}", "{sha256(raw)}", "{crc32(raw)}", "{method}", "{url}", "{url_decoded}", "{form_sorted}"}
}

// message is what is about to be signed or verified.
type message struct {
	id   string
	ts   string    // as it stands in the request; empty: time, written in the scheme's unit
	time time.Time // only read without ts
	body []byte
}

// appendPiece appends one piece that is not the body.
func (s *scheme) appendPiece(dst []byte, p *piece, m *message) []byte {
	switch p.atom {
	case atomLiteral:
		return append(dst, p.text...)
	case atomID:
		return append(dst, m.id...)
	case atomTimestamp:
		return s.appendTimestamp(dst, m)
	case atomSHA256:
		sum := sha256.Sum256(m.body)
		return hex.AppendEncode(dst, sum[:])
	case atomCRC32:
		return strconv.AppendUint(dst, uint64(crc32.ChecksumIEEE(m.body)), 10)
	}
	return dst
}

// joinMax is the size of the largest body that is copied behind what stands
// before it: one write to the hash costs less than two up to about there.
const joinMax = 512

// write feeds the content to the keyed hash and returns the MAC, which lives in
// st until it is released.
func (s *scheme) write(st *state, m *message) []byte {
	st.buf = st.buf[:0]
	for i := range s.pieces {
		p := &s.pieces[i]
		switch {
		case p.atom == atomLiteral:
			st.buf = append(st.buf, p.text...)
		case p.atom != atomRaw:
			st.buf = s.appendPiece(st.buf, p, m)
		case len(m.body) <= joinMax:
			st.buf = append(st.buf, m.body...)
		default:
			st.hash.Write(st.buf)
			st.buf = st.buf[:0]
			st.hash.Write(m.body)
		}
	}
	st.hash.Write(st.buf)
	return st.hash.Sum(st.sum[:0])
}

// content is the signed content in one piece, for the algorithms that need it so.
func (s *scheme) content(m *message) []byte {
	out := make([]byte, 0, len(m.body)+len(m.id)+64)
	for i := range s.pieces {
		p := &s.pieces[i]
		if p.atom == atomRaw {
			out = append(out, m.body...)
			continue
		}
		out = s.appendPiece(out, p, m)
	}
	return out
}
