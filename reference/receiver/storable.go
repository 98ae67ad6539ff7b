package receiver

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// maxIDBytes is the length of the longest id that is stored as it is, 255 bytes.
// Real ids have some thirty; PostgreSQL cannot index more than 2,700.
const maxIDBytes = 255

// hashedID begins the stored form of ids that cannot be stored as they are.
const hashedID = "hashed:"

// storable puts m into a form that every database takes. An authentic message
// must never be refused for its spelling: the provider would send it again, in
// the same spelling, until it gives up on the endpoint.
func storable(m Message) Message {
	m.ID = storedID(m.ID)
	m.Type = plainText(m.Type)
	m.Key = plainText(m.Key)
	if m.Body == nil {
		m.Body = []byte{}
	}
	return m
}

// storedID is the key under which a message is stored: its id, or a digest of
// it where that is longer than an index takes, or no text. An id that looks like
// such a digest is hashed as well, so that no two ids share a key.
func storedID(id string) string {
	if len(id) <= maxIDBytes && utf8.ValidString(id) && !strings.ContainsRune(id, 0) && !strings.HasPrefix(id, hashedID) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hashedID + hex.EncodeToString(sum[:])
}

// plainText is s as a text column takes it.
func plainText(s string) string { return clip(s, maxIDBytes) }

// clip is s as a text column takes it, cut to a number of bytes.
func clip(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}
