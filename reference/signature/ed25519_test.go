package signature_test

import (
	"crypto/ed25519"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// random is a source of bytes that repeats from run to run.
type random struct{ *rand.ChaCha8 }

func newRandom(seed byte) random { return random{rand.NewChaCha8([32]byte{seed})} }

func TestEd25519AndHMACAreNotConfused(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	private, err := signature.NewEd25519Key("ours", newRandom(1))
	if err != nil {
		t.Fatal(err)
	}
	public, _ := private.PublicKey()
	hmacOfPublic := signature.RawKey("the public key's bytes", private.Public())
	hmacOfText := signature.RawKey("the public key's text", []byte(private.PublicText()))
	relabel := func(r *wire.Request, label string) *wire.Request {
		value, _ := wire.Get(r.Headers, "webhook-signature")
		_, text, _ := strings.Cut(value, ",")
		set("webhook-signature", label+","+text)(r)
		return r
	}
	for _, c := range []struct {
		name string
		r    *wire.Request
		rule string
	}{
		{"signed by the private key", example(t, s, private), ""},
		{"an HMAC keyed with the public key, as v1", example(t, s, hmacOfPublic), signature.RuleUnknownVersion},
		{"an HMAC keyed with the public key, as v1a", relabel(example(t, s, hmacOfPublic), "v1a"), signature.RuleNoMatch},
		{"an HMAC keyed with the public key's text, as v1a", relabel(example(t, s, hmacOfText), "v1a"), signature.RuleNoMatch},
		{"an Ed25519 signature, as v1", relabel(example(t, s, private), "v1"), signature.RuleUnknownVersion},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.Verify(c.r, exampleTime, public)
			wantRule(t, err, c.rule)
		})
	}
	both := []signature.Key{key(t, s, exampleSecret), public}
	got, err := s.Verify(relabel(example(t, s, private), "v1"), exampleTime, both...)
	wantRule(t, err, signature.RuleNoMatch)
	if !got.IsZero() {
		t.Error("a key came with the refusal")
	}
	if _, err := s.Sign(signature.Input{}, public); err == nil {
		t.Error("a public key signed")
	}
}

func TestOnlyTheCanonicalEd25519SignatureVerifies(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	private, _ := signature.NewEd25519Key("ours", newRandom(2))
	in := signature.Input{ID: exampleID, Time: exampleTime, Body: []byte(exampleBody)}
	mac, err := s.MAC(in, private)
	if err != nil {
		t.Fatal(err)
	}
	// The group's order, little-endian: S and S+order are one number to a
	// verifier that does not look (RFC 8032 §5.1.7).
	order := []byte{0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10}
	malleated := append([]byte(nil), mac...)
	carry := 0
	for i, b := range order {
		sum := int(malleated[32+i]) + int(b) + carry
		malleated[32+i], carry = byte(sum), sum>>8
	}
	identity := make([]byte, ed25519.SignatureSize)
	identity[0] = 1
	for name, c := range map[string]struct {
		sig  []byte
		rule string
	}{
		"as it was made":                {mac, ""},
		"S plus the order of the group": {malleated, signature.RuleNoMatch},
		"the identity and zero":         {identity, signature.RuleNoMatch},
		"63 bytes":                      {mac[:63], signature.RuleNoMatch},
	} {
		t.Run(name, func(t *testing.T) {
			r := &wire.Request{Body: in.Body, Headers: s.Headers(in, signature.Token{Version: "v1a", Text: std(c.sig)})}
			_, err := s.Verify(r, exampleTime, private)
			wantRule(t, err, c.rule)
		})
	}
}

func TestFewEd25519TokensAreChecked(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	private, _ := signature.NewEd25519Key("ours", newRandom(3))
	r := example(t, s, private)
	good, _ := wire.Get(r.Headers, "webhook-signature")
	foreign := "v1a," + std(make([]byte, 64)) + " "
	set("webhook-signature", strings.Repeat(foreign, signature.MaxEd25519Tokens-1)+good)(r)
	_, err := s.Verify(r, exampleTime, private)
	wantRule(t, err, "")
	set("webhook-signature", strings.Repeat(foreign, signature.MaxEd25519Tokens)+good)(r)
	_, err = s.Verify(r, exampleTime, private)
	wantRule(t, err, signature.RuleNoMatch)
}
