package signature

import (
	"encoding/base64"
	"encoding/hex"
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

// tokenTextMax is the length of the longest text that decodes to macMax bytes:
// hex, two digits a byte.
const tokenTextMax = 2 * macMax

// decodeToken decodes text into dst, strictly: one spelling for each value. A
// signature with a second spelling is another request with the same meaning,
// which defeats whoever remembers signatures to spot replays. long is true
// where the text is well formed as far as one looks but cannot be a signature
// for its length.
func decodeToken(dst *[macMax]byte, encoding, text string) (n int, long, ok bool) {
	if len(text) > tokenTextMax {
		return 0, true, wellFormed(encoding, text)
	}
	if !wellFormed(encoding, text) {
		return 0, false, false
	}
	var src [tokenTextMax]byte
	s := src[:copy(src[:], text)]
	var out [tokenTextMax]byte // base64 may decode 128 characters to 96 bytes
	var err error
	switch encoding {
	case encHex:
		n, err = hex.Decode(out[:], s)
	case encBase64:
		n, err = strictBase64.Decode(out[:], s)
	case encBase64U:
		n, err = strictBase64URL.Decode(out[:], s)
	}
	if err != nil {
		return 0, false, false
	}
	if n > macMax {
		return 0, true, true
	}
	copy(dst[:], out[:n])
	return n, false, true
}

// Strict decoders refuse non-zero trailing bits. They still skip CR and LF,
// which wellFormed refuses.
var (
	strictBase64    = base64.StdEncoding.Strict()
	strictBase64URL = base64.URLEncoding.Strict()
)

// wellFormed tells whether text holds only the characters of its encoding.
// Lower-case hex only: receivers that compare texts know no other.
func wellFormed(encoding, text string) bool {
	if text == "" {
		return false
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		digit := c >= '0' && c <= '9'
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		switch {
		case encoding == encHex && (digit || c >= 'a' && c <= 'f'):
		case encoding == encBase64 && (digit || letter || c == '+' || c == '/' || c == '='):
		case encoding == encBase64U && (digit || letter || c == '-' || c == '_' || c == '='):
		default:
			return false
		}
	}
	return true
}
