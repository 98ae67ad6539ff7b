package signature

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// appendEncoded appends sum, whose encoded length is n, in the spec's encoding.
func appendEncoded(dst []byte, encoding string, sum []byte, n int) []byte {
	dst = slices.Grow(dst, n)
	end := len(dst) + n
	encode(dst[len(dst):end], encoding, sum)
	return dst[:end]
}

// encode fills dst with sum in the spec's encoding.
func encode(dst []byte, encoding string, sum []byte) {
	switch encoding {
	case encHex:
		hex.Encode(dst, sum)
	case encBase64:
		base64.StdEncoding.Encode(dst, sum)
	case encBase64U:
		base64.URLEncoding.Encode(dst, sum)
	default:
		copy(dst, sum)
	}
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

// decodeStrict decodes text strictly: there is one spelling for each value. A
// signature with a second spelling is another request with the same meaning,
// which defeats whoever remembers signatures to spot replays.
//
// So two texts that decode are equal exactly when what they decode to is equal,
// and the text of a MAC can be compared without decoding it.
func decodeStrict(encoding, text string) ([]byte, bool) {
	var out []byte
	var err error
	switch encoding {
	case encHex:
		// Lower-case digits only: receivers that compare texts know no others.
		if strings.ContainsAny(text, "ABCDEF") {
			return nil, false
		}
		out, err = hex.DecodeString(text)
	case encBase64, encBase64U:
		// The decoders skip CR and LF, wherever they stand.
		if strings.ContainsAny(text, "\r\n") {
			return nil, false
		}
		decoder := strictBase64
		if encoding == encBase64U {
			decoder = strictBase64URL
		}
		out, err = decoder.DecodeString(text)
	default:
		return []byte(text), true
	}
	return out, err == nil
}

// Strict decoders refuse non-zero trailing bits.
var (
	strictBase64    = base64.StdEncoding.Strict()
	strictBase64URL = base64.URLEncoding.Strict()
)
