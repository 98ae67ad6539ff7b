package signature

import (
	"crypto/ed25519"
	"crypto/hmac"
	"encoding/binary"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

const (
	// MaxTokens is how many elements of a signature header are looked at: far
	// more than any rotation needs. A thousand comparisons cost some tenths of a
	// millisecond, so there is nothing to gain by a header full of tokens.
	MaxTokens = 1024

	// MaxEd25519Tokens is how many tokens are checked against each Ed25519 key:
	// such a check costs as much as a hundred HMACs, and two keys sign during a
	// rotation.
	MaxEd25519Tokens = 8

	// MaxID is the length of the longest id that is accepted, in bytes.
	MaxID = 1 << 10
)

// found is a header's value and how often the header stands in a request.
type found struct {
	value string
	count int
}

func (f *found) add(value string) {
	if f.count++; f.count == 1 {
		f.value = value
	}
}

func lookup(headers []wire.Header, name string) (f found) {
	for i := range headers {
		if sameName(headers[i].Name, name) {
			f.add(headers[i].Value)
		}
	}
	return f
}

// sameName compares header names whatever their case.
func sameName(a, b string) bool { return a == b || strings.EqualFold(a, b) }

// alike rules out most names that differ from name, which is not empty, by
// length and last byte: webhook-timestamp from webhook-signature among them.
func alike(got, name string) bool {
	const fold = 'a' - 'A' // other bytes than letters may meet by it too
	return len(got) == len(name) && got[len(got)-1]|fold == name[len(name)-1]|fold
}

// carried are the headers of a request that a scheme reads.
type carried struct{ id, ts, sig found }

// collect finds them in one pass.
func (s *scheme) collect(headers []wire.Header, c *carried) {
	for i := range headers {
		h := &headers[i]
		if s.signsID && alike(h.Name, s.spec.ID.Name) && sameName(h.Name, s.spec.ID.Name) {
			c.id.add(h.Value)
		}
		if s.headerTS && alike(h.Name, s.spec.Timestamp.Name) && sameName(h.Name, s.spec.Timestamp.Name) {
			c.ts.add(h.Value)
		}
		if alike(h.Name, s.spec.Signature.Name) && sameName(h.Name, s.spec.Signature.Name) {
			c.sig.add(h.Value)
		}
	}
}

// Verify returns the key that signed r.
func (s *scheme) Verify(r *wire.Request, now time.Time, keys ...Key) (Key, error) {
	var in Input
	signatures, refusal := s.read(r, &in)
	if refusal != nil {
		return Key{}, refusal
	}
	if s.headerTS || s.grammar.hasTS {
		if refusal := s.checkTimestamp(in.Timestamp, now); refusal != nil {
			return Key{}, refusal
		}
	}
	i := s.match(&in, signatures, keys)
	if i < 0 {
		return Key{}, s.unmatched(signatures, keys)
	}
	if s.spec.Timestamp.In == inBody {
		text, refusal := s.bodyTimestamp(r.Body)
		if refusal == nil {
			refusal = s.checkTimestamp(text, now)
		}
		if refusal != nil {
			return Key{}, refusal
		}
	}
	return keys[i], nil
}

// read puts into in what r says, without believing it, and returns the value of
// the signature header.
func (s *scheme) read(r *wire.Request, in *Input) (signatures string, refusal *Refusal) {
	if r.Size > int64(len(r.Body)) {
		return "", refuse(RuleIncompleteBody, "%d of %d bytes are at hand", len(r.Body), r.Size)
	}
	var c carried
	s.collect(r.Headers, &c)
	if refusal := s.checkPresence(&c); refusal != nil {
		return "", refusal
	}
	if s.signsID {
		if refusal := checkID(c.id.value); refusal != nil {
			return "", refusal
		}
	}
	if s.grammar.hasTS {
		if c.ts.value, refusal = s.grammar.timestamp(c.sig.value); refusal != nil {
			return "", refusal
		}
	}
	in.ID, in.Timestamp, in.Body = c.id.value, c.ts.value, r.Body
	return c.sig.value, nil
}

// checkPresence wants each header the scheme needs exactly once, with a value.
func (s *scheme) checkPresence(c *carried) *Refusal {
	if (c.id.value != "" || !s.signsID) && (c.ts.value != "" || !s.headerTS) && c.sig.value != "" &&
		c.id.count <= 1 && c.ts.count <= 1 && c.sig.count == 1 {
		return nil // the usual case, without the table
	}
	type want struct {
		found
		needed     bool
		name, rule string
	}
	wants := [...]want{
		{c.id, s.signsID, s.spec.ID.Name, RuleMissingID},
		{c.ts, s.headerTS, s.spec.Timestamp.Name, RuleMissingTimestamp},
		{c.sig, true, s.spec.Signature.Name, RuleMissingSignature},
	}
	for i := range wants {
		if wants[i].count > 1 {
			return refuse(RuleRepeatedHeader, "%s stands in %d lines", wants[i].name, wants[i].count)
		}
	}
	for i := range wants {
		switch w := &wants[i]; {
		case !w.needed || w.value != "":
		case w.count == 0:
			return refuse(w.rule, "no header %s", w.name)
		default:
			return refuse(w.rule, "the header %s is empty", w.name)
		}
	}
	return nil
}

// checkID refuses ids that no header should carry into a log or a database.
func checkID(id string) *Refusal {
	if len(id) > MaxID {
		return refuse(RuleMalformedID, "%d bytes, at most %d are accepted", len(id), MaxID)
	}
	if hasControl(id) {
		return refuse(RuleMalformedID, "a control character in %s", quote(id))
	}
	return nil
}

// hasControl tells whether an ASCII control character stands in s. It looks at
// eight bytes at a time: byte by byte, an id would cost as much as the whole
// search for the headers.
func hasControl(s string) bool {
	const (
		ones = 0x0101010101010101 // in each byte
		tops = 0x80 * ones
	)
	b := []byte(s) // not copied: nobody writes to it
	for ; len(b) >= 8; b = b[8:] {
		w := binary.LittleEndian.Uint64(b)
		// Subtracting n sets the top bit of a byte that is below n and had it not
		// set; a borrow can only come out of such a byte, so there is no false
		// alarm. DEL is what is below 1 once its bits are flipped.
		low, del := w-' '*ones, w^0x7f*ones
		if (low&^w|(del-ones)&^del)&tops != 0 {
			return true
		}
	}
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			return true
		}
	}
	return false
}

// match looks for a token that is the signature of in by one of the keys, and
// returns the key's index, -1 where none matches. Each key computes its MAC
// once, however many tokens there are.
func (s *scheme) match(in *Input, signatures string, keys []Key) int {
	for i := range keys {
		key := &keys[i]
		v := s.versionFor(key.Kind())
		if v == nil {
			continue
		}
		var matched bool
		switch {
		case isHMAC(v.MAC):
			matched = s.matchHMAC(in, signatures, v, key)
		case v.MAC == Ed25519:
			matched = s.matchEd25519(in, signatures, v, key)
		default:
			matched = s.matchToken(signatures, v, key)
		}
		if matched {
			return i
		}
	}
	return -1
}

// matchHMAC compares the MAC by key with each token of version v, as text: one
// MAC is encoded where each token would have to be decoded, and no other text
// than its own stands for it (decodeStrict).
func (s *scheme) matchHMAC(in *Input, signatures string, v *version, key *Key) bool {
	states := key.states(v.MAC)
	st := states.get()
	want := st.text[:v.textLen]
	encode(want, s.spec.Encoding, s.mac(st, in))
	matched := false
	for more, n := true, 0; more && n < MaxTokens && !matched; n++ {
		var elem string
		elem, signatures, more = s.grammar.next(signatures)
		text, ok := strings.CutPrefix(elem, v.prefix)
		matched = ok && equalText(text, want)
	}
	states.put(st)
	return matched
}

// matchEd25519 checks the tokens of version v with key's public half.
func (s *scheme) matchEd25519(in *Input, signatures string, v *version, key *Key) bool {
	public := ed25519.PublicKey(key.Public())
	content := s.content(in)
	checks := 0
	for more, n := true, 0; more && n < MaxTokens && checks < MaxEd25519Tokens; n++ {
		var elem string
		elem, signatures, more = s.grammar.next(signatures)
		text, ok := strings.CutPrefix(elem, v.prefix)
		if !ok || len(text) != v.textLen {
			continue
		}
		got, ok := decodeStrict(s.spec.Encoding, text)
		if !ok || len(got) != ed25519.SignatureSize {
			continue
		}
		checks++
		if ed25519.Verify(public, content, got) {
			return true
		}
	}
	return false
}

// matchToken compares the header's value with a token that is itself the
// secret.
func (s *scheme) matchToken(value string, v *version, key *Key) bool {
	text, ok := strings.CutPrefix(value, v.prefix)
	secret := key.m.open().raw
	return ok && len(secret) > 0 && hmac.Equal([]byte(text), secret)
}
