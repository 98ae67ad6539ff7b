package signature

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// appendEncoded appends sum in the spec's encoding.
func appendEncoded(dst []byte, encoding string, sum []byte) []byte {
	switch encoding {
	case encHex:
		return hex.AppendEncode(dst, sum)
	case encBase64:
		return base64.StdEncoding.AppendEncode(dst, sum)
	case encBase64U:
		return base64.URLEncoding.AppendEncode(dst, sum)
	}
	return append(dst, sum...)
}

// encodedLen is the length of n bytes in an encoding.
func encodedLen(encoding string, n int) int {
	switch encoding {
	case encHex:
		return hex.EncodedLen(n)
	case encBase64, encBase64U:
		return base64.StdEncoding.EncodedLen(n)
	}
	return n
}

// tokenTextMax is the length of the longest token: Ed25519 in hex.
const tokenTextMax = 2 * macMax

// scratch is the memory that decoding needs. It is kept from token to token:
// clearing it for each of a thousand would cost more than the decoding.
type scratch struct {
	text [tokenTextMax]byte
	out  [tokenTextMax]byte // base64 may decode 128 characters to 96 bytes
}

// decode decodes text strictly: one spelling for each value. A signature with a
// second spelling is another request with the same meaning, which defeats
// whoever remembers signatures to spot replays. The result lives until the next
// call. The text must not be longer than tokenTextMax.
func (s *scratch) decode(encoding, text string) ([]byte, bool) {
	src := s.text[:copy(s.text[:], text)]
	if encoding == encHex {
		return s.decodeHex(src)
	}
	// The decoders skip CR and LF, wherever they stand.
	if strings.IndexByte(text, '\n') >= 0 || strings.IndexByte(text, '\r') >= 0 {
		return nil, false
	}
	decoder := strictBase64
	if encoding == encBase64U {
		decoder = strictBase64URL
	}
	n, err := decoder.Decode(s.out[:], src)
	return s.out[:n], err == nil
}

// decodeHex takes lower-case digits only: receivers that compare texts know no
// others.
func (s *scratch) decodeHex(src []byte) ([]byte, bool) {
	for _, c := range src {
		if c >= 'A' && c <= 'F' {
			return nil, false
		}
	}
	n, err := hex.Decode(s.out[:], src)
	return s.out[:n], err == nil
}

// Strict decoders refuse non-zero trailing bits.
var (
	strictBase64    = base64.StdEncoding.Strict()
	strictBase64URL = base64.URLEncoding.Strict()
)

// wellFormed tells whether a text of any length decodes, at a price that does
// not matter: it is asked for once, to say why a request was refused.
func wellFormed(encoding, text string) bool {
	switch encoding {
	case encHex:
		_, err := hex.DecodeString(text)
		return err == nil && !strings.ContainsAny(text, "ABCDEF")
	case encBase64:
		_, err := strictBase64.DecodeString(text)
		return err == nil && !strings.ContainsAny(text, "\r\n")
	case encBase64U:
		_, err := strictBase64URL.DecodeString(text)
		return err == nil && !strings.ContainsAny(text, "\r\n")
	}
	return true
}
