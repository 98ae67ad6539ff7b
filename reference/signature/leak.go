package signature

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
)

// leakMin is the length of the shortest secret that [Key.In] looks for as raw
// bytes, and of the shortest text: "test" stands in many an innocent request.
const leakMin = 8

// leakHead is how much of the beginning of a spelling gives it away: a text that
// was cut in the middle of a secret still tells most of it. Twelve bytes are six
// beyond "whsec_", too many to stand there by chance.
const leakHead = 12

// needle is one spelling of a secret.
type needle struct {
	form  string
	bytes []byte
}

func (n needle) head() []byte { return n.bytes[:min(len(n.bytes), leakHead)] }

// mask replaces the needle in b, whole or as far as it stands there from its
// beginning on.
func (n needle) mask(b, mask []byte) []byte {
	var out []byte
	for {
		i := bytes.Index(b, n.head())
		if i < 0 {
			return append(out, b...)
		}
		end := i + len(n.head())
		for end < len(b) && end-i < len(n.bytes) && b[end] == n.bytes[end-i] {
			end++
		}
		out = append(append(out, b[:i]...), mask...)
		b = b[end:]
	}
}

// In tells whether the secret stands in b, and in which form: "text" as it was
// given, "raw", "hex", "base64" or "percent-encoded". Base64 is found at every
// alignment, so also inside a longer encoded text, and a spelling that was cut is
// known by its first 12 bytes. Secrets under 8 bytes are not looked for, and
// public keys are none.
func (k Key) In(b []byte) (form string, found bool) {
	if k.m == nil || k.Kind() == Ed25519Public {
		return "", false
	}
	var lower []byte
	for _, n := range k.needles() {
		hay := b
		if n.form == "hex" { // either case
			if lower == nil {
				lower = bytes.ToLower(b)
			}
			hay = lower
		}
		if len(n.bytes) >= leakMin && bytes.Contains(hay, n.head()) {
			return n.form, true
		}
	}
	return "", false
}

// Redact returns b with every form of the secret that [Key.In] finds replaced
// by "[secret LABEL]". b itself is not changed; without a secret in it, it is
// returned as it is.
func (k Key) Redact(b []byte) []byte {
	if _, found := k.In(b); !found {
		return b
	}
	mask := []byte("[secret " + k.Label + "]")
	for _, n := range k.needles() {
		if len(n.bytes) < leakMin {
			continue
		}
		b = n.mask(b, mask)
		if n.form == "hex" {
			b = replaceFold(b, n.bytes, mask)
		}
	}
	return b
}

// replaceFold replaces needle, which is in lower case, in whatever case it
// stands.
func replaceFold(b, needle, mask []byte) []byte {
	var out []byte
	for {
		i := bytes.Index(bytes.ToLower(b), needle)
		if i < 0 {
			return append(out, b...)
		}
		out = append(append(out, b[:i]...), mask...)
		b = b[i+len(needle):]
	}
}

// needles lists the spellings, the longest ones of each secret first, so that
// redacting leaves no rest.
func (k Key) needles() []needle {
	m := k.m.open()
	m.spelled.Do(func() { m.spellings = m.spell() })
	return m.spellings
}

func (m *material) spell() []needle {
	var out []needle
	if m.text != "" {
		out = append(out, needle{"text", []byte(m.text)})
		if escaped := url.QueryEscape(m.text); escaped != m.text {
			out = append(out, needle{"percent-encoded", []byte(escaped)})
		}
	}
	secrets := [][]byte{m.raw}
	if m.kind == Ed25519Private {
		// The seed alone is the secret; the public half is not.
		secrets = [][]byte{m.raw, m.raw[:ed25519.SeedSize]}
	}
	for _, raw := range secrets {
		if len(raw) < leakMin {
			continue
		}
		std := base64.StdEncoding.EncodeToString(raw)
		out = append(out,
			needle{"raw", raw},
			needle{"hex", []byte(hex.EncodeToString(raw))},
			needle{"base64", []byte(std)},
			needle{"base64", []byte(base64.URLEncoding.EncodeToString(raw))},
		)
		if escaped := url.QueryEscape(std); escaped != std {
			out = append(out, needle{"percent-encoded", []byte(escaped)})
		}
		for shift := range 3 {
			inner := innerBase64(raw, shift)
			out = append(out, needle{"base64", []byte(inner)},
				needle{"base64", []byte(strings.NewReplacer("+", "-", "/", "_").Replace(inner))})
		}
	}
	return out
}

// innerBase64 is what raw looks like inside the base64 of a longer text that
// has shift (0 to 2) bytes of a group before it: the characters that depend on
// raw alone.
func innerBase64(raw []byte, shift int) string {
	padded := append(make([]byte, shift), raw...)
	encoded := base64.RawStdEncoding.EncodeToString(padded)
	// Of the first group, the characters with bits of what stands before; of
	// the last, the one that is not filled.
	start := (shift*8 + 5) / 6
	end := len(padded) * 8 / 6
	return encoded[start:end]
}
