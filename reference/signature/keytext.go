package signature

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// What can be wrong with the text of a key: the values of [KeyError.Problem].
const (
	KeyEmpty      = "empty"
	KeyTooShort   = "too short"
	KeyTooLong    = "too long"
	KeyEncoding   = "not well encoded"
	KeyMismatch   = "inconsistent: its public half does not belong to its seed"
	KeyWrongKind  = "of the wrong kind"
	keyBytesMax   = 4096 // longer than any secret in use; a file given by mistake is longer
	keySecretSize = 32   // of new HMAC secrets, in bytes
)

// KeyError tells why the text of a key was refused. It never holds the text.
type KeyError struct {
	Label   string // of the key
	Problem string // one of KeyEmpty …
	Want    string // what was expected
}

// Error names the key by its label.
func (e *KeyError) Error() string {
	return fmt.Sprintf("key %q is %s: want %s", e.Label, e.Problem, e.Want)
}

// Key reads the secret text of a key.
//
// A base64 key may come without its prefix, as the official Standard Webhooks
// libraries accept it too; with a prefix or without, the decoding is strict.
// Ed25519 private keys come as the 32-byte seed or as the 64 bytes of seed and
// public half, which must belong together.
func (s *scheme) Key(label, text string) (Key, error) {
	form := &s.spec.Key
	if text == "" {
		return Key{}, &KeyError{label, KeyEmpty, s.wantKey()}
	}
	if encoded, ok := cutPrefix(text, form.Private); ok {
		return s.ed25519Key(label, text, encoded, Ed25519Private)
	}
	if encoded, ok := cutPrefix(text, form.Public); ok {
		return s.ed25519Key(label, text, encoded, Ed25519Public)
	}
	if s.spec.MAC == Ed25519 {
		return s.ed25519Key(label, text, text, "")
	}
	raw, ok := decodeKey(form.Decode, stripPrefix(text, form.Strip))
	if !ok {
		return Key{}, &KeyError{label, KeyEncoding, s.wantKey()}
	}
	low, high := form.bounds()
	switch {
	case len(raw) == 0:
		return Key{}, &KeyError{label, KeyEmpty, s.wantKey()}
	case len(raw) < low:
		return Key{}, &KeyError{label, KeyTooShort, s.wantKey()}
	case len(raw) > high:
		return Key{}, &KeyError{label, KeyTooLong, s.wantKey()}
	}
	kind := HMAC
	if s.spec.MAC == PlainToken {
		kind = SharedToken
	}
	return newKey(label, kind, raw, text), nil
}

// ed25519Key reads an Ed25519 key. An empty kind means that the length decides.
func (s *scheme) ed25519Key(label, text, encoded string, kind Kind) (Key, error) {
	want := s.wantEd25519(kind)
	raw, ok := decodeKey(s.spec.Key.Decode, encoded)
	switch {
	case !ok:
		return Key{}, &KeyError{label, KeyEncoding, want}
	case len(raw) == 0:
		return Key{}, &KeyError{label, KeyEmpty, want}
	case len(raw) < ed25519.PublicKeySize:
		return Key{}, &KeyError{label, KeyTooShort, want}
	case len(raw) == ed25519.PublicKeySize && kind != Ed25519Private:
		return newKey(label, Ed25519Public, raw, text), nil
	case len(raw) == ed25519.SeedSize:
		return newKey(label, Ed25519Private, ed25519.NewKeyFromSeed(raw), text), nil
	case len(raw) != ed25519.PrivateKeySize || kind == Ed25519Public:
		return Key{}, &KeyError{label, KeyTooLong, want}
	case !bytes.Equal(ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize]), raw):
		return Key{}, &KeyError{label, KeyMismatch, want}
	}
	return newKey(label, Ed25519Private, raw, text), nil
}

// bounds of a decoded key, in bytes.
func (f *KeyForm) bounds() (low, high int) {
	low, high = max(f.MinBytes, 1), f.MaxBytes
	if high == 0 {
		high = keyBytesMax
	}
	return low, high
}

// wantKey describes the text that a key of this scheme has.
func (s *scheme) wantKey() string {
	f := &s.spec.Key
	if s.spec.MAC == Ed25519 {
		return s.wantEd25519("")
	}
	low, high := f.bounds()
	size := fmt.Sprintf("%d to %d bytes", low, high)
	text := "text of " + size
	if f.Decode != "utf8" {
		text = f.Decode + " of " + size
	}
	if len(f.Strip) > 0 {
		text = strings.Join(f.Strip, " or ") + " followed by " + text
	}
	if f.Private != "" {
		text += fmt.Sprintf(" (or an Ed25519 key, %s… or %s…)", f.Private, f.Public)
	}
	return text
}

func (s *scheme) wantEd25519(kind Kind) string {
	f := &s.spec.Key
	private := f.Private + f.Decode + " of a 32-byte seed, or of the 64 bytes of seed and public half"
	public := f.Public + f.Decode + " of the 32 bytes of a public key"
	switch {
	case kind == Ed25519Private:
		return private
	case kind == Ed25519Public:
		return public
	}
	return f.Decode + " of the 32 bytes of a public key, or of the 64 bytes of seed and public half"
}

// decodeKey decodes the text of a key, strictly.
func decodeKey(decode, text string) ([]byte, bool) {
	switch decode {
	case encBase64:
		if strings.ContainsAny(text, "\r\n") { // the decoder would skip them
			return nil, false
		}
		raw, err := strictBase64.DecodeString(text)
		return raw, err == nil
	case encHex:
		raw, err := hex.DecodeString(text)
		return raw, err == nil
	}
	return []byte(text), true
}

// cutPrefix is strings.CutPrefix where an empty prefix is none.
func cutPrefix(text, prefix string) (string, bool) {
	if prefix == "" {
		return text, false
	}
	return strings.CutPrefix(text, prefix)
}

// stripPrefix removes the first of the prefixes that text has.
func stripPrefix(text string, prefixes []string) string {
	for _, p := range prefixes {
		if rest, ok := cutPrefix(text, p); ok {
			return rest
		}
	}
	return text
}

// NewSecret makes the text of a new secret for the scheme, of 32 random bytes:
// whsec_… for Standard Webhooks, hex digits where the key is plain text. The
// result must be kept like any secret. It cannot make PEM keys.
func (s Spec) NewSecret(random io.Reader) (string, error) {
	raw := make([]byte, keySecretSize)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", fmt.Errorf("making a secret for scheme %q: %w", s.Name, err)
	}
	if s.MAC == Ed25519 {
		raw = ed25519.NewKeyFromSeed(raw)
	}
	prefix := ""
	if len(s.Key.Strip) > 0 {
		prefix = s.Key.Strip[0]
	}
	switch s.Key.Decode {
	case encBase64:
		return prefix + base64.StdEncoding.EncodeToString(raw), nil
	case encHex, "utf8":
		return prefix + hex.EncodeToString(raw), nil
	}
	return "", fmt.Errorf("making a secret for scheme %q: keys in %s are made by other tools", s.Name, s.Key.Decode)
}

// NewKey makes a key of the scheme's own form from bytes read from random, as
// [Spec.NewSecret] does, without anybody seeing its text.
func NewKey(s Scheme, label string, random io.Reader) (Key, error) {
	spec := s.Spec()
	secret, err := spec.NewSecret(random)
	if err != nil {
		return Key{}, err
	}
	return s.Key(label, secret)
}
