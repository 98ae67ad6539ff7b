package signature

import (
	"crypto/ed25519"
	"crypto/hmac"
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

func lookup(headers []wire.Header, name string) (f found) {
	for i := range headers {
		h := &headers[i]
		if h.Name == name || len(h.Name) == len(name) && strings.EqualFold(h.Name, name) {
			if f.count++; f.count == 1 {
				f.value = h.Value
			}
		}
	}
	return f
}

// Verify returns the key that signed r.
func (s *scheme) Verify(r *wire.Request, now time.Time, keys ...Key) (Key, error) {
	m, signatures, refusal := s.read(r)
	if refusal != nil {
		return Key{}, refusal
	}
	if t := s.spec.Timestamp.In; t == inHeader || t == inSignature {
		if refusal := s.checkTimestamp(m.ts, now); refusal != nil {
			return Key{}, refusal
		}
	}
	key, refusal := s.match(&m, signatures, keys)
	if refusal != nil {
		return Key{}, refusal
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
	return key, nil
}

// read collects what r says, without believing it.
func (s *scheme) read(r *wire.Request) (m message, signatures string, refusal *Refusal) {
	if r.Size > int64(len(r.Body)) {
		return m, "", refuse(RuleIncompleteBody, "%d of %d bytes are at hand", len(r.Body), r.Size)
	}
	var id, ts found
	if s.signsID {
		id = lookup(r.Headers, s.spec.ID.Name)
	}
	if s.spec.Timestamp.In == inHeader {
		ts = lookup(r.Headers, s.spec.Timestamp.Name)
	}
	sig := lookup(r.Headers, s.spec.Signature.Name)
	if refusal := s.checkPresence(id, ts, sig); refusal != nil {
		return m, "", refusal
	}
	if s.signsID {
		if refusal := checkID(id.value); refusal != nil {
			return m, "", refusal
		}
	}
	if s.grammar.hasTS {
		if ts.value, refusal = s.grammar.timestamp(sig.value); refusal != nil {
			return m, "", refusal
		}
	}
	return message{id: id.value, ts: ts.value, body: r.Body}, sig.value, nil
}

// checkPresence wants each header the scheme needs exactly once, with a value.
func (s *scheme) checkPresence(id, ts, sig found) *Refusal {
	if (id.value != "" || !s.signsID) && (ts.value != "" || s.spec.Timestamp.In != inHeader) && sig.value != "" &&
		id.count <= 1 && ts.count <= 1 && sig.count == 1 {
		return nil // the usual case, without the table
	}
	type want struct {
		found
		needed     bool
		name, rule string
	}
	wants := [...]want{
		{id, s.signsID, s.spec.ID.Name, RuleMissingID},
		{ts, s.spec.Timestamp.In == inHeader, s.spec.Timestamp.Name, RuleMissingTimestamp},
		{sig, true, s.spec.Signature.Name, RuleMissingSignature},
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
	for i := 0; i < len(id); i++ {
		if id[i] < ' ' || id[i] == 0x7f {
			return refuse(RuleMalformedID, "a control character in %s", quote(id))
		}
	}
	return nil
}

// tally is what was seen among the tokens while none matched.
type tally struct {
	checked bool // a well-formed token of a version some key can check
	foreign bool // a token of another version
}

// match looks for a token that is the signature of m by one of the keys. Each
// key computes its MAC once, however many tokens there are.
func (s *scheme) match(m *message, signatures string, keys []Key) (Key, *Refusal) {
	var seen tally
	usable := false
	for _, key := range keys {
		v := s.versionFor(key)
		if v == nil {
			continue
		}
		usable = true
		var matched bool
		switch v.MAC {
		case Ed25519:
			matched = s.matchEd25519(m, signatures, v, key, &seen)
		case PlainToken:
			matched = s.matchToken(signatures, key, &seen)
		default:
			matched = s.matchHMAC(m, signatures, v, key, &seen)
		}
		if matched {
			return key, nil
		}
	}
	if !usable {
		s.survey(signatures, &seen)
	}
	return Key{}, s.unmatched(signatures, seen)
}

// unmatched says why nothing matched.
func (s *scheme) unmatched(signatures string, seen tally) *Refusal {
	switch {
	case seen.checked:
		return refuse(RuleNoMatch, "no token in %s is the signature of this request", s.spec.Signature.Name)
	case seen.foreign:
		return refuse(RuleUnknownVersion, "no token of a version that the keys can check in %s", quote(signatures))
	}
	return refuse(RuleMalformedSignature, "no %s in %s", s.spec.Signature.Grammar, quote(signatures))
}

// survey takes stock of the tokens where no key can check any version.
func (s *scheme) survey(signatures string, seen *tally) {
	for more, n := true, 0; more && n < MaxTokens; n++ {
		var elem string
		elem, signatures, more = s.grammar.next(signatures)
		if _, ok := s.grammar.token(elem); ok && !s.grammar.isTimestamp(elem) {
			seen.foreign = true
		}
	}
}

// matchHMAC compares the MAC by key with each token of version v.
func (s *scheme) matchHMAC(m *message, signatures string, v *Version, key Key, seen *tally) bool {
	st := key.hmacState(v.MAC)
	defer key.release(v.MAC, st)
	want := s.write(st, m)
	for more, n := true, 0; more && n < MaxTokens; n++ {
		var elem string
		elem, signatures, more = s.grammar.next(signatures)
		got, ok := s.decode(&st.scratch, elem, v, seen)
		if ok && hmac.Equal(got, want) {
			return true
		}
	}
	return false
}

// decode decodes the text of a token of version v, and keeps the tally. ok is
// true for what has the size of a signature. The result lives until the next
// call.
func (s *scheme) decode(mem *scratch, elem string, v *Version, seen *tally) (sig []byte, ok bool) {
	t, ok := s.grammar.token(elem)
	if !ok {
		return nil, false
	}
	if t.Version != v.Label {
		if !s.grammar.isTimestamp(elem) {
			seen.foreign = true
		}
		return nil, false
	}
	size := macSize(v.MAC)
	if len(t.Text) != encodedLen(s.spec.Encoding, size) {
		if !seen.checked {
			seen.checked = wellFormed(s.spec.Encoding, t.Text)
		}
		return nil, false
	}
	sig, ok = mem.decode(s.spec.Encoding, t.Text)
	if ok {
		seen.checked = true
	}
	return sig, ok && len(sig) == size
}

// isTimestamp tells whether an element is the timestamp, which looks like a
// token of a version of its own.
func (g *grammar) isTimestamp(elem string) bool {
	return g.hasTS && strings.HasPrefix(elem, g.ts)
}

// matchEd25519 checks the tokens of version v with key's public half.
func (s *scheme) matchEd25519(m *message, signatures string, v *Version, key Key, seen *tally) bool {
	public := ed25519.PublicKey(key.Public())
	content := s.content(m)
	var mem scratch
	checks := 0
	for more, n := true, 0; more && n < MaxTokens && checks < MaxEd25519Tokens; n++ {
		var elem string
		elem, signatures, more = s.grammar.next(signatures)
		got, ok := s.decode(&mem, elem, v, seen)
		if !ok {
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
func (s *scheme) matchToken(value string, key Key, seen *tally) bool {
	t, ok := s.grammar.token(value)
	if !ok {
		return false
	}
	if t.Version != s.grammar.label {
		seen.foreign = true
		return false
	}
	seen.checked = true
	return len(key.m.open().raw) > 0 && hmac.Equal([]byte(t.Text), key.m.open().raw)
}
