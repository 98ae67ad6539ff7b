package sender

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/whconform/whconform/reference/signature"
)

// secretFact begins the name of a fact: "secret: NAME N" says what is wrong
// with the form of a secret, or secretWell. The secret itself is in no fact.
const (
	secretFact = "secret: "
	secretWell = "well formed"
)

// addSecret has the endpoint's requests checked with the secret as well, the
// newest last. A secret of another form than the profile's is read as its
// sender can only have meant it, so that the row about its form is the one that
// speaks of it. A public key may stand behind the secret, or in its place.
func (e *endpoint) addSecret(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range e.s.split(text) {
		n := len(e.keys) + 1
		key, problem := e.s.readSecret(fmt.Sprintf("secret %d", n), one)
		if slices.Contains(e.texts, one) {
			problem = "it is the one before"
		}
		e.s.ledger.know(key)
		e.keys = append(e.keys, key)
		e.texts = append(e.texts, one)
		e.s.rec.Fact(fmt.Sprintf("%s%s %d", secretFact, e.name, n), problem)
	}
	if e.path != nil {
		e.path.SetKeys(e.keys...)
	}
}

// split takes a secret and a public key apart. Nothing else is: some profiles'
// secrets hold blanks.
func (s *session) split(text string) []string {
	words := strings.Fields(text)
	public := s.Profile.Signature.Key.Public
	if public != "" && slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, public) }) {
		return words
	}
	return []string{text}
}

func (e *endpoint) keysOf() []signature.Key {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.keys)
}

func (e *endpoint) textsOf() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.texts)
}

// readSecret reads a secret, and says what is wrong with its form.
func (s *session) readSecret(label, text string) (signature.Key, string) {
	scheme, err := s.Profile.Scheme()
	if err != nil {
		s.fail(fmt.Errorf("making the profile's signature scheme: %w", err))
		return signature.Key{}, secretWell
	}
	key, err := scheme.Key(label, text)
	form := s.Profile.Signature.Key
	if err == nil {
		if len(form.Strip) > 0 && key.Kind() == signature.HMAC && !strings.HasPrefix(text, form.Strip[0]) {
			return key, fmt.Sprintf("it does not begin with %s", form.Strip[0])
		}
		return key, secretWell
	}
	var wrong *signature.KeyError
	if errors.As(err, &wrong) {
		return signature.RawKey(label, meant(form.Decode, form.Strip, text)), fmt.Sprintf("it is %s; expected is %s", wrong.Problem, wrong.Want)
	}
	return signature.RawKey(label, []byte(text)), "it cannot be read"
}

// meant are the bytes that a malformed secret most likely stands for.
func meant(decode string, strip []string, text string) []byte {
	for _, prefix := range strip {
		text = strings.TrimPrefix(text, prefix)
	}
	if decode == "base64" {
		plain := strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(text), "=")
		if raw, err := base64.RawStdEncoding.DecodeString(plain); err == nil && len(raw) > 0 {
			return raw
		}
	}
	return []byte(text)
}
