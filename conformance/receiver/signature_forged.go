package receiver

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"

	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/signature"
)

// nearMisses are signatures that are almost right.
func nearMisses(s *session) []probe {
	probes := []probe{
		one("one bit of the first byte of the signature changed", flipByte(0)),
		one("one bit of a byte in the middle changed", flipByte(15)),
		one("one bit of the last byte changed", flipByte(-1)),
		one("the same bit changed in two bytes", flipByte(3), flipByte(11)),
		one("two bytes of the signature exchanged", mapMAC("exchanged", func(mac []byte) {
			for i := 1; i < len(mac); i++ {
				if mac[i] != mac[0] {
					mac[0], mac[i] = mac[i], mac[0]
					return
				}
			}
		})),
	}
	spec := s.Profile.Signature
	if spec.Encoding == "base64" {
		// In hex the case of a letter means nothing; here it is another byte.
		probes = append(probes, one("the letters of the signature in the other case", fp.EditTokenText("other case", func(text string) string {
			return string(bytes.Map(otherCase, []byte(text)))
		})))
	}
	for _, content := range []struct {
		what  string
		atoms []string
	}{{"the body alone", []string{"{raw}"}}, {"the timestamp and the body", []string{"{ts}", ".", "{raw}"}}, {"the id and the body", []string{"{id}", ".", "{raw}"}}} {
		if change, ok := s.signedOver(content.atoms); ok {
			probes = append(probes, one("signed with the right secret over "+content.what, change))
		}
	}
	if spec.MAC == signature.HMACSHA256 {
		if change, ok := s.signedBy(func(spec *signature.Spec) { spec.MAC, spec.Versions = signature.HMACSHA1, nil }); ok {
			probes = append(probes, one("HMAC-SHA1 with the right secret, under the right label", change))
		}
	}
	return probes
}

func otherCase(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z':
		return r - 'a' + 'A'
	case 'A' <= r && r <= 'Z':
		return r - 'A' + 'a'
	}
	return r
}

// mapMAC changes the bytes of each token's signature, hex or base64.
func mapMAC(name string, change func(mac []byte)) fp.Alteration {
	return fp.EditTokenText(name, func(text string) string {
		if mac, err := hex.DecodeString(text); err == nil && len(mac) > 0 {
			change(mac)
			return hex.EncodeToString(mac)
		}
		if mac, err := base64.StdEncoding.DecodeString(text); err == nil && len(mac) > 0 {
			change(mac)
			return base64.StdEncoding.EncodeToString(mac)
		}
		return text
	})
}

// recordShapes forges a delivery in every shape that authentic ones have in
// other scenarios.
func recordShapes(s *session) {
	if !s.control() {
		return
	}
	forged := fp.WithKeys(s.Keys.Wrong)
	shapes := []probe{
		one("in chunks", fp.Chunked()),
		one("with Expect: 100-continue", fp.Expect100()),
		one("compressed", fp.GzipSignedPacked()),
		one("as application/octet-stream", fp.ContentType("application/octet-stream")),
		one("as a form", fp.ContentType("application/x-www-form-urlencoded"), fp.BodyBytes([]byte("type=invoice.paid"))),
		one("as text/plain", fp.ContentType("text/plain")),
		one("without a Content-Type", fp.NoContentType()),
		one("without a User-Agent", fp.NoUserAgent()),
		one("an event of 20 KiB", fp.FillTo(recommendedSize)),
		one("an event of 60 KiB", fp.FillTo(3*recommendedSize)),
		one("a ping", fp.BodyBytes([]byte(`{"type":"ping"}`))),
		one("a challenge", fp.BodyBytes([]byte(`{"type":"url_verification","challenge":"whconform"}`))),
		one("an empty object", fp.BodyBytes([]byte("{}"))),
		one("an empty body", fp.BodyBytes(nil)),
		one("X-Forwarded-For: ::1", fp.AddHeader("X-Forwarded-For", "::1")),
		one("Forwarded: for=127.0.0.1", fp.AddHeader("Forwarded", "for=127.0.0.1")),
		one("X-Real-IP: 127.0.0.1", fp.AddHeader("X-Real-IP", "127.0.0.1")),
		one("an Authorization header", fp.AddHeader("Authorization", "Bearer whconform")),
	}
	for _, shape := range shapes {
		s.deliver("forged: "+shape.label, append([]fp.Alteration{forged}, shape.changes...)...)
	}
	s.send("forged: an event of an unknown type", s.eventOf("whconform.unknown.type"), forged)
}
