package signature

import (
	"crypto/ed25519"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
)

// Kind is what a key can do.
type Kind string

// The kinds of keys.
const (
	HMAC           Kind = "hmac"
	Ed25519Private Kind = "ed25519-private"
	Ed25519Public  Kind = "ed25519-public"
	SharedToken    Kind = "token" // the secret itself is what the header carries
)

// Key is a secret that was read by a scheme. Label is all that reports, logs
// and formatted values show of it, by whatever verb or encoder.
//
// A Key is small: copies share the secret and its prepared hash states. The
// zero Key signs nothing and matches nothing. Two keys are == when one is a
// copy of the other.
type Key struct {
	Label string
	m     *sealed
}

// sealed keeps the secret behind a function. A Key in an unexported field of
// somebody's struct is printed by reflection, its methods unheard, and with a
// verb that does not fit (%s) fmt follows pointers; of a function it prints the
// address.
type sealed struct{ open func() *material }

// material is what the copies of a key share.
type material struct {
	kind    Kind
	raw     []byte // HMAC key, token; the 64 bytes of an Ed25519 private key; the 32 of a public one
	text    string // as it was given; empty for a key made of bytes
	sha256s statePool
	sha1s   statePool

	// spellings are made when a text is first searched for the secret: a run
	// searches some thousand texts.
	spelled   sync.Once
	spellings []needle
}

// RawKey makes an HMAC key of any bytes, also of none. Schemes read keys by
// their Key method, which refuses what is too short; this is for tests that
// sign with an empty key or with the word "undefined".
func RawKey(label string, raw []byte) Key {
	return newKey(label, HMAC, slices.Clone(raw), "")
}

func newKey(label string, kind Kind, raw []byte, text string) Key {
	m := &material{kind: kind, raw: raw, text: text}
	m.sha256s.init(sha256.New, raw)
	m.sha1s.init(sha1.New, raw)
	return Key{Label: label, m: &sealed{func() *material { return m }}}
}

// IsZero tells whether k holds no secret at all. A key of zero bytes made by
// [RawKey] is not the zero Key.
func (k Key) IsZero() bool { return k.m == nil }

// Zero is the zero Key with k's label: to name a key where its secret must not
// go.
func (k Key) Zero() Key { return Key{Label: k.Label} }

// Kind is what k can do; empty for the zero Key.
func (k Key) Kind() Kind {
	if k.m == nil {
		return ""
	}
	return k.m.open().kind
}

// NewEd25519Key makes a private Ed25519 key of 32 bytes read from random.
func NewEd25519Key(label string, random io.Reader) (Key, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return Key{}, fmt.Errorf("making Ed25519 key %q: %w", label, err)
	}
	return newKey(label, Ed25519Private, ed25519.NewKeyFromSeed(seed), ""), nil
}

// PublicKey is the public half of an Ed25519 key, private or public, under the
// same label; ok is false for any other key.
func (k Key) PublicKey() (public Key, ok bool) {
	switch k.Kind() {
	case Ed25519Public:
		return k, true
	case Ed25519Private:
		return newKey(k.Label, Ed25519Public, k.Public(), ""), true
	}
	return Key{}, false
}

// Public are the 32 bytes of an Ed25519 key's public half, nil for any other
// key. They are no secret.
func (k Key) Public() []byte {
	switch k.Kind() {
	case Ed25519Public:
		return slices.Clone(k.m.open().raw)
	case Ed25519Private:
		return slices.Clone(k.m.open().raw[ed25519.PrivateKeySize-ed25519.PublicKeySize:])
	}
	return nil
}

// PublicText is the public half of an Ed25519 key as Standard Webhooks writes
// it, whpk_ and base64; empty for any other key.
func (k Key) PublicText() string {
	public := k.Public()
	if public == nil {
		return ""
	}
	return publicPrefix + base64.StdEncoding.EncodeToString(public)
}

// The prefixes of Ed25519 keys in Standard Webhooks.
const (
	privatePrefix = "whsk_"
	publicPrefix  = "whpk_"
)

// shown is all that anybody sees of a key.
func (k Key) shown() string {
	if k.m == nil {
		return fmt.Sprintf("Key(%s, empty)", k.Label)
	}
	return fmt.Sprintf("Key(%s, %s)", k.Label, k.Kind())
}

// String shows label and kind.
func (k Key) String() string { return k.shown() }

// Format shows label and kind for every verb, %#v and %x among them.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.shown())) }

// MarshalJSON gives the label.
func (k Key) MarshalJSON() ([]byte, error) { return json.Marshal(k.Label) }

// MarshalText gives the label.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.Label), nil }

// LogValue gives the label.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.Label) }
