package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
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

// appendPiece appends one piece that is not the body.
func (s *scheme) appendPiece(dst []byte, p *piece, in *Input) []byte {
	switch p.atom {
	case atomLiteral:
		return append(dst, p.text...)
	case atomID:
		return append(dst, in.ID...)
	case atomTimestamp:
		return s.appendTimestamp(dst, in)
	case atomSHA256:
		sum := sha256.Sum256(in.Body)
		return hex.AppendEncode(dst, sum[:])
	case atomCRC32:
		return strconv.AppendUint(dst, uint64(crc32.ChecksumIEEE(in.Body)), 10)
	}
	return dst
}

// joinMax is the size of the largest body that is copied behind what stands
// before it: one write to the hash costs less than two up to about there.
const joinMax = 512

// mac feeds the content to the keyed hash and returns the MAC, which lives in
// st until it is put back or used again.
func (s *scheme) mac(st *state, in *Input) []byte {
	st.hash.begin()
	buf := st.buf[:0]
	for i := range s.pieces {
		p := &s.pieces[i]
		switch p.atom {
		case atomID:
			buf = append(buf, in.ID...)
		case atomRaw:
			if len(in.Body) <= joinMax {
				buf = append(buf, in.Body...)
				continue
			}
			st.hash.write(buf)
			buf = buf[:0]
			st.hash.write(in.Body)
		case atomLiteral:
			if len(p.text) == 1 { // the usual dot, without the call that copies
				buf = append(buf, p.text[0])
				continue
			}
			buf = append(buf, p.text...)
		default:
			buf = s.appendPiece(buf, p, in)
		}
	}
	st.buf = slices.Grow(buf, padMax) // here, so that a longer buffer is kept
	return st.hash.end(st.buf)
}

// content is the signed content in one piece, for the algorithms that need it so.
func (s *scheme) content(in *Input) []byte {
	out := make([]byte, 0, len(in.Body)+len(in.ID)+64)
	for i := range s.pieces {
		p := &s.pieces[i]
		if p.atom == atomRaw {
			out = append(out, in.Body...)
			continue
		}
		out = s.appendPiece(out, p, in)
	}
	return out
}
