package fakeprovider

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whconform/whconform/reference/signature"
)

// The alterations of this file change the signature itself. They work on
// tokens, so they hold for every scheme; the scheme writes its header from
// them.

// A TokenSource makes tokens for a draft whose own tokens are made. See
// [Tokens].
type TokenSource func(d *Draft) ([]signature.Token, error)

// Own are the delivery's own tokens, one for each of its keys.
func Own() TokenSource {
	return func(d *Draft) ([]signature.Token, error) { return slices.Clone(d.Tokens), nil }
}

// Foreign are n tokens of valid shape, over the right content, by keys that
// nobody configured. They are the same in every run.
func Foreign(n int) TokenSource {
	return func(d *Draft) ([]signature.Token, error) {
		out := make([]signature.Token, 0, n)
		for i := range n {
			out = append(out, d.foreign(i))
		}
		return out, nil
	}
}

// foreign is the i-th foreign token. Where the scheme knows no HMAC, it is the
// encoded form of 64 bytes, the length of an Ed25519 signature.
func (d *Draft) foreign(i int) signature.Token {
	key := signature.RawKey("foreign", fmt.Appendf(nil, "whconform foreign key no. %09d", i))
	if token, err := d.signer().Token(d.Input, key); err == nil {
		return token
	}
	sum := sha512.Sum512(fmt.Appendf(nil, "whconform foreign signature no. %09d", i))
	token := signature.Token{Text: encodeMAC(d.scheme.Spec().Encoding, sum[:])}
	if len(d.Tokens) > 0 {
		token.Version = d.Tokens[0].Version
	}
	return token
}

// By are tokens by other keys, one each.
func By(keys ...signature.Key) TokenSource {
	return func(d *Draft) ([]signature.Token, error) {
		var out []signature.Token
		for _, key := range keys {
			token, err := d.signer().Token(d.Input, key)
			if err != nil {
				return nil, fmt.Errorf("signing with key %q: %w", key.Label, err)
			}
			out = append(out, token)
		}
		return out, nil
	}
}

// Literal is a token as it stands.
func Literal(version, text string) TokenSource {
	return func(*Draft) ([]signature.Token, error) {
		return []signature.Token{{Version: version, Text: text}}, nil
	}
}

// Labelled are the tokens of another source under another version label.
func Labelled(version string, of TokenSource) TokenSource {
	return func(d *Draft) ([]signature.Token, error) {
		out, err := of(d)
		for i := range out {
			out[i].Version = version
		}
		return out, err
	}
}

// Tokens writes the signature header from the tokens of all sources in their
// order:
//
//	Tokens("middle", Foreign(1), Own(), Literal("v9", "AAAA"))
func Tokens(name string, sources ...TokenSource) Alteration {
	return Alteration{name, OnTokens, func(d *Draft) {
		var out []signature.Token
		for _, source := range sources {
			tokens, err := source(d)
			if err != nil {
				d.Fail(err)
				return
			}
			out = append(out, tokens...)
		}
		d.Tokens = out
	}}
}

// ExtraTokens adds tokens after the delivery's own.
func ExtraTokens(tokens ...signature.Token) Alteration {
	return Alteration{"extra-tokens", OnTokens, func(d *Draft) { d.Tokens = append(slices.Clone(d.Tokens), tokens...) }}
}

// ReplaceTokens puts tokens in place of the delivery's own. With none, the
// header stands without any signature.
func ReplaceTokens(tokens ...signature.Token) Alteration {
	return Alteration{"replace-tokens", OnTokens, func(d *Draft) { d.Tokens = slices.Clone(tokens) }}
}

// Relabel gives the right tokens another version label: "v0", "v2", "V1".
func Relabel(version string) Alteration {
	return Tokens("label-"+label(version), Labelled(version, Own()))
}

// Unlabel takes the label from the right tokens: the bare encoded MAC.
func Unlabel() Alteration {
	return Tokens("no-label", Labelled("", Own()))
}

// TruncateMAC cuts the MAC in each token to its first n bytes and encodes it
// anew. n = 0 leaves the label alone.
func TruncateMAC(n int) Alteration {
	return editMAC("mac-"+strconv.Itoa(n)+"-bytes", func(mac []byte) []byte { return mac[:min(n, len(mac))] })
}

// ExtendMAC appends a zero byte to the MAC in each token and encodes it anew.
func ExtendMAC() Alteration {
	return editMAC("mac-one-byte-more", func(mac []byte) []byte { return append(mac, 0) })
}

// FlipMAC changes the last bit of the MAC in each token: the forgery nearest
// to the true one.
func FlipMAC() Alteration {
	return editMAC("mac-last-bit", func(mac []byte) []byte {
		if len(mac) > 0 {
			mac[len(mac)-1] ^= 1
		}
		return mac
	})
}

// EditTokenText changes the encoded text of each token.
func EditTokenText(name string, edit func(text string) string) Alteration {
	return Alteration{name, OnTokens, func(d *Draft) {
		for i := range d.Tokens {
			d.Tokens[i].Text = edit(d.Tokens[i].Text)
		}
	}}
}

// editMAC changes the bytes of each token's MAC.
func editMAC(name string, edit func(mac []byte) []byte) Alteration {
	return Alteration{name, OnTokens, func(d *Draft) {
		encoding := d.scheme.Spec().Encoding
		for i, token := range d.Tokens {
			mac, err := decodeMAC(encoding, token.Text)
			if err != nil {
				d.Fail(fmt.Errorf("decoding the token by %q: %w", encoding, err))
				return
			}
			d.Tokens[i].Text = encodeMAC(encoding, edit(mac))
		}
	}}
}

// decodeMAC reads a token's text. The text itself stays out of the error.
func decodeMAC(encoding, text string) ([]byte, error) {
	switch encoding {
	case "hex":
		return hex.DecodeString(text)
	case "base64":
		return base64.StdEncoding.DecodeString(text)
	case "base64url":
		return base64.URLEncoding.DecodeString(text)
	}
	return []byte(text), nil // a plain token
}

func encodeMAC(encoding string, mac []byte) string {
	switch encoding {
	case "hex":
		return hex.EncodeToString(mac)
	case "base64":
		return base64.StdEncoding.EncodeToString(mac)
	case "base64url":
		return base64.URLEncoding.EncodeToString(mac)
	}
	return string(mac)
}

// TokenText puts text in place of the signature header's whole value, as it
// stands. A timestamp that stands in the same header goes with it; where it
// shall stay, use [EditSignature].
func TokenText(text string) Alteration {
	return EditSignature("signature-"+label(text), func(string) string { return text })
}

// EditSignature changes the value of the signature header after it was
// written.
func EditSignature(name string, edit func(value string) string) Alteration {
	return Alteration{name, AfterSigning, func(d *Draft) {
		header := d.parts().Signature
		done := false
		for i, h := range d.Request.Headers {
			if header != "" && strings.EqualFold(h.Name, header) {
				d.Request.Headers[i].Value = edit(h.Value)
				done = true
			}
		}
		if !done {
			d.Fail(errors.New("the delivery has no signature header to change"))
		}
	}}
}
