package signature

import (
	"fmt"
	"slices"
	"strings"
)

// SpecError is one fault of a Spec.
type SpecError struct {
	Field string // the field in the words of a profile: "signature.grammar"
	Fault string // what is wrong and what was expected
}

// Error is the field and its fault.
func (e *SpecError) Error() string { return e.Field + ": " + e.Fault }

// MACs lists the values of [Spec.MAC].
func MACs() []string {
	return []string{HMACSHA256, HMACSHA1, Ed25519, ECDSAP256, RSASHA256, PlainToken}
}

// Encodings lists the values of [Spec.Encoding].
func Encodings() []string { return []string{encHex, encBase64, encBase64U} }

// KeyDecodes lists the values of [KeyForm.Decode].
func KeyDecodes() []string { return []string{"utf8", encBase64, encHex, "pem", "jwk"} }

// Units lists the values of [Timestamp.Unit].
func Units() []string { return []string{"s", "ms", "iso8601", "rfc3339"} }

// IsHeaderName tells whether name can be the name of a header (RFC 9110
// §5.6.2: a token).
func IsHeaderName(name string) bool { return isHeaderName(name) }

// Faults lists everything that is wrong with s, each with its field; nil for a
// valid spec.
func (s *Spec) Faults() []*SpecError {
	c := &checker{}
	c.oneOf("mac", s.MAC, MACs())
	if s.MAC == PlainToken {
		c.that(s.Encoding == "", "encoding", "must be absent: a token stands in the header as it is")
		c.that(len(s.Content) == 0, "content", "must be absent: a token signs nothing")
	} else {
		c.oneOf("encoding", s.Encoding, Encodings())
		c.that(len(s.Content) > 0, "content", "must say what is signed")
	}
	c.oneOf("signature.in", s.Signature.In, []string{inHeader, inBody})
	c.oneOf("timestamp.in", s.Timestamp.In, []string{inSignature, inHeader, inBody, inNone})
	c.oneOf("id.in", s.ID.In, []string{inHeader, inBody, inNone})
	c.oneOf("key.decode", s.Key.Decode, KeyDecodes())
	s.checkContent(c)
	s.checkPlaces(c)
	s.checkGrammar(c)
	s.checkKey(c)
	return c.faults
}

// checker collects faults.
type checker struct{ faults []*SpecError }

func (c *checker) that(ok bool, field, format string, args ...any) {
	if !ok {
		c.faults = append(c.faults, &SpecError{field, fmt.Sprintf(format, args...)})
	}
}

func (c *checker) oneOf(field, value string, allowed []string) {
	c.that(slices.Contains(allowed, value), field, "want one of %s, got %q", strings.Join(allowed, ", "), value)
}

// checkContent looks at the atoms, and whether what is signed can be read.
func (s *Spec) checkContent(c *checker) {
	for i, text := range s.Content {
		field := fmt.Sprintf("content[%d]", i)
		_, ok := parsePiece(text)
		c.that(ok, field, "want a literal or one of %s, {json:/pointer}, {setup:name}, got %q", strings.Join(Atoms(), ", "), text)
	}
	signsID, signsTS := slices.Contains(s.Content, "{id}"), slices.Contains(s.Content, "{ts}")
	c.that(!signsID || s.ID.In == inHeader, "content", "signs {id}, so id.in must be header")
	c.that(!signsTS || s.Timestamp.In == inHeader || s.Timestamp.In == inSignature,
		"content", "signs {ts}, so timestamp.in must be header or signature")
	if s.ID.In == inHeader {
		c.that(signsID == s.ID.Signed, "id.signed", "is %v, but content says %v", s.ID.Signed, signsID)
	}
	c.that(s.ID.In != inNone || !s.ID.Signed, "id.signed", "is true, but there is no id")
}

// checkPlaces looks at names, pointers, units and tolerances.
func (s *Spec) checkPlaces(c *checker) {
	c.place("signature.name", s.Signature.In, s.Signature.Name)
	c.place("timestamp.name", s.Timestamp.In, s.Timestamp.Name)
	c.place("id.name", s.ID.In, s.ID.Name)
	if s.Timestamp.In == inNone {
		c.that(s.Timestamp.Unit == "", "timestamp.unit", "must be absent without a timestamp")
		c.that(s.Timestamp.Past == 0 && s.Timestamp.Future == 0, "timestamp", "a tolerance needs a timestamp")
	} else {
		c.oneOf("timestamp.unit", s.Timestamp.Unit, Units())
	}
	c.that(s.Timestamp.Past >= 0, "timestamp.past", "must not be negative")
	c.that(s.Timestamp.Future >= 0, "timestamp.future", "must not be negative")
}

// place checks a header's name or a JSON Pointer.
func (c *checker) place(field, in, name string) {
	switch in {
	case inHeader:
		c.that(isHeaderName(name), field, "want a header name, got %q", name)
	case inBody:
		c.that(isPointer(name), field, "want a JSON Pointer such as /data/id, got %q", name)
	case inSignature, inNone:
		c.that(name == "", field, "must be absent, got %q", name)
	}
}

func isHeaderName(name string) bool {
	for i := 0; i < len(name); i++ {
		b := name[i]
		alnum := b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(b)) {
			return false
		}
	}
	return name != ""
}

// isPointer follows RFC 6901: steps behind slashes, ~ only as ~0 or ~1.
func isPointer(pointer string) bool {
	if !strings.HasPrefix(pointer, "/") {
		return false
	}
	for i := 0; i < len(pointer); i++ {
		if pointer[i] == '~' && (i+1 == len(pointer) || pointer[i+1] != '0' && pointer[i+1] != '1') {
			return false
		}
	}
	return true
}

// checkGrammar looks at the signature header and its versions.
func (s *Spec) checkGrammar(c *checker) {
	if s.Signature.In != inHeader {
		return
	}
	g, err := parseGrammar(s.Signature)
	if err != nil {
		c.that(false, "signature.grammar", "%v", err)
		return
	}
	c.that(g.hasTS == (s.Timestamp.In == inSignature), "signature.grammar",
		"must hold {ts} if, and only if, timestamp.in is signature")
	c.that(s.MAC != PlainToken || g.join == "", "signature.list.join", "a token stands alone")
	if len(s.Versions) == 0 {
		return
	}
	own := slices.Index(s.Versions, Version{g.label, s.MAC})
	c.that(own >= 0, "signature.versions", "must hold the grammar's own label: %q with %s", g.label, s.MAC)
	seen := map[string]bool{}
	for _, v := range s.Versions {
		c.oneOf("signature.versions", v.MAC, MACs())
		kind := v.MAC
		if isHMAC(kind) {
			kind = "hmac"
		}
		c.that(!seen[kind], "signature.versions", "two labels for keys of one kind: which one would be written?")
		seen[kind] = true
		c.that(v.Label != "" && !strings.ContainsAny(v.Label, g.sep+g.join), "signature.versions",
			"label %q must not be empty nor hold a separator", v.Label)
	}
}

// checkKey looks at the key's form.
func (s *Spec) checkKey(c *checker) {
	k := &s.Key
	c.that(k.MinBytes >= 0, "key.min_bytes", "must not be negative")
	c.that(k.MaxBytes >= 0 && k.MaxBytes <= keyBytesMax, "key.max_bytes", "want 0 to %d", keyBytesMax)
	c.that(k.MaxBytes == 0 || k.MinBytes <= k.MaxBytes, "key.min_bytes", "is larger than key.max_bytes")
	c.that((k.Private == "") == (k.Public == ""), "key.private", "private and public come together")
	c.that(k.Private == "" || k.Private != k.Public, "key.private", "private and public must differ")
}

// unsupported finds the first thing in a valid spec that nothing here can do.
func (s *Spec) unsupported() error {
	no := func(field, value string) error { return &UnsupportedError{s.Name, field, value} }
	if s.Signature.In == inBody {
		return no("signature.in", inBody)
	}
	if s.MAC == ECDSAP256 || s.MAC == RSASHA256 {
		return no("mac", s.MAC)
	}
	for _, v := range s.Versions {
		if v.MAC != Ed25519 && !isHMAC(v.MAC) {
			return no("signature.versions", v.MAC)
		}
	}
	if s.Key.Decode == "pem" || s.Key.Decode == "jwk" {
		return no("key.decode", s.Key.Decode)
	}
	for _, text := range s.Content {
		if p, _ := parsePiece(text); p.atom == atomDescribed {
			return no("content", text)
		}
	}
	return nil
}

// clone copies what a caller could change.
func (s *Spec) clone() Spec {
	out := *s
	out.Content = slices.Clone(s.Content)
	out.Versions = slices.Clone(s.Versions)
	out.Key.Strip = slices.Clone(s.Key.Strip)
	return out
}
