package signature

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"github.com/whconform/whconform/reference/wire"
)

// scheme is the Scheme that a Spec describes.
type scheme struct {
	spec     Spec
	pieces   []piece
	grammar  grammar
	secret   *version // by which shared secrets sign; nil: none
	ed25519  *version // by which Ed25519 keys sign; nil: none
	signsID  bool
	headerTS bool // the timestamp stands in a header of its own
	window   window
}

// version is a Version with what its tokens begin with, "v1,", and the length of
// the text that follows; 0 where it varies.
type version struct {
	Version
	prefix  string
	textLen int
}

// UnsupportedError tells that a scheme is described, so that its profile can be
// read and shown, but that nothing here can sign by it.
type UnsupportedError struct {
	Scheme string // its name
	Field  string // the field of the Spec that asks for it: "mac"
	Value  string // what the field says: "rsa-sha256"
}

// Error names the scheme and the field.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("signature scheme %q: %s: %s is described but cannot be signed by this version", e.Scheme, e.Field, e.Value)
}

// New makes the scheme that s describes. It builds HMAC (SHA-256, SHA-1),
// Ed25519 and plain-token schemes with the signature in a header and a content
// of id, timestamp, body and literals. For a valid spec that asks for more the
// error is an *[UnsupportedError]; for an invalid one it joins a *[SpecError]
// for each fault.
func New(s Spec) (Scheme, error) {
	if faults := s.Faults(); len(faults) > 0 {
		errs := make([]error, len(faults))
		for i, f := range faults {
			errs[i] = f
		}
		return nil, fmt.Errorf("signature scheme %q: %w", s.Name, errors.Join(errs...))
	}
	if err := s.unsupported(); err != nil {
		return nil, err
	}
	g, err := parseGrammar(s.Signature)
	if err != nil {
		return nil, fmt.Errorf("signature scheme %q: signature.grammar %w", s.Name, err)
	}
	made := &scheme{spec: s.clone(), grammar: g, headerTS: s.Timestamp.In == inHeader, window: s.Timestamp.window()}
	for _, text := range s.Content {
		p, _ := parsePiece(text)
		made.pieces = append(made.pieces, p)
		made.signsID = made.signsID || p.atom == atomID
	}
	versions := s.Versions
	if len(versions) == 0 {
		versions = []Version{{g.label, s.MAC}}
	}
	for _, v := range versions {
		ready := &version{Version: v, textLen: encodedLen(s.Encoding, macSize(v.MAC))}
		if g.sep != "" {
			ready.prefix = v.Label + g.sep
		}
		if v.MAC == Ed25519 {
			made.ed25519 = ready
		} else {
			made.secret = ready
		}
	}
	return made, nil
}

// Spec is a copy of what the scheme was made from.
func (s *scheme) Spec() Spec { return s.spec.clone() }

// versionFor is the version by which keys of a kind sign or verify, nil where
// the scheme has none. HMAC keys and tokens are both plain shared secrets.
func (s *scheme) versionFor(kind Kind) *version {
	switch kind {
	case HMAC, SharedToken:
		return s.secret
	case Ed25519Private, Ed25519Public:
		return s.ed25519
	}
	return nil
}

// signer is the version by which key signs, or an error that says why not.
func (s *scheme) signer(key Key) (*version, error) {
	kind := key.Kind()
	v := s.versionFor(kind)
	if v == nil || kind == Ed25519Public {
		return nil, fmt.Errorf("signing by scheme %q: %v cannot sign", s.spec.Name, key)
	}
	return v, nil
}

// MAC is the signature over in as raw bytes.
func (s *scheme) MAC(in Input, key Key) ([]byte, error) {
	v, err := s.signer(key)
	if err != nil {
		return nil, err
	}
	switch v.MAC {
	case PlainToken:
		return slices.Clone(key.m.open().raw), nil
	case Ed25519:
		return ed25519.Sign(key.m.open().raw, s.content(&in)), nil
	}
	states := key.states(v.MAC)
	st := states.get()
	defer states.put(st)
	return slices.Clone(s.mac(st, &in)), nil
}

// Token makes one signature over in.
func (s *scheme) Token(in Input, key Key) (Token, error) {
	v, err := s.signer(key)
	if err != nil {
		return Token{}, err
	}
	mac, err := s.MAC(in, key)
	if err != nil {
		return Token{}, err
	}
	return Token{v.Label, string(appendEncoded(nil, s.spec.Encoding, mac, encodedLen(s.spec.Encoding, len(mac))))}, nil
}

// AppendToken appends label and text of one signature over in.
func (s *scheme) AppendToken(dst []byte, in Input, key Key) ([]byte, error) {
	v, err := s.signer(key)
	if err != nil {
		return dst, err
	}
	if !isHMAC(v.MAC) {
		t, err := s.Token(in, key)
		return s.grammar.appendToken(dst, t), err
	}
	states := key.states(v.MAC)
	st := states.get()
	dst = append(dst, v.prefix...)
	dst = appendEncoded(dst, s.spec.Encoding, s.mac(st, &in), v.textLen)
	states.put(st)
	return dst, nil
}

// Headers writes the headers for in with the tokens given.
func (s *scheme) Headers(in Input, tokens ...Token) []wire.Header {
	ts := ""
	if s.spec.Timestamp.In != inNone {
		ts = string(s.appendTimestamp(nil, &in))
	}
	out := make([]wire.Header, 0, 3)
	if s.spec.ID.In == inHeader {
		out = append(out, wire.Header{Name: s.spec.ID.Name, Value: in.ID})
	}
	if s.spec.Timestamp.In == inHeader {
		out = append(out, wire.Header{Name: s.spec.Timestamp.Name, Value: ts})
	}
	name := s.spec.Signature.Name
	if s.grammar.join != "" || len(tokens) == 0 {
		return append(out, wire.Header{Name: name, Value: s.grammar.value(ts, tokens)})
	}
	for i := range tokens {
		out = append(out, wire.Header{Name: name, Value: s.grammar.value(ts, tokens[i:i+1])})
	}
	return out
}

// Sign is Token for each key, then Headers.
func (s *scheme) Sign(in Input, keys ...Key) ([]wire.Header, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("signing by scheme %q: no key", s.spec.Name)
	}
	if len(keys) > 1 && s.spec.Signature.Repeat == "" {
		return nil, fmt.Errorf("signing by scheme %q: %d keys, but it carries one signature only", s.spec.Name, len(keys))
	}
	tokens := make([]Token, len(keys))
	for i, key := range keys {
		t, err := s.Token(in, key)
		if err != nil {
			return nil, err
		}
		tokens[i] = t
	}
	return s.Headers(in, tokens...), nil
}
