package signature

import "strings"

// unmatched says why no token matched any of the keys. It reads the tokens
// again: whoever is accepted does not pay for it, and whoever is refused has to
// know whether he signed wrongly or wrote no signature at all.
func (s *scheme) unmatched(signatures string, keys []Key) *Refusal {
	checked, foreign := s.survey(signatures, s.usable(keys))
	switch {
	case checked:
		return refuse(RuleNoMatch, "no token in %s is the signature of this request", s.spec.Signature.Name)
	case foreign:
		return refuse(RuleUnknownVersion, "no token of a version that the keys can check in %s", quote(signatures))
	}
	return refuse(RuleMalformedSignature, "no %s in %s", s.spec.Signature.Grammar, quote(signatures))
}

// usable are the versions that the keys can check.
func (s *scheme) usable(keys []Key) []*version {
	var out []*version
	for _, v := range []*version{s.secret, s.ed25519} {
		for _, key := range keys {
			if v != nil && s.versionFor(key.Kind()) == v {
				out = append(out, v)
				break
			}
		}
	}
	return out
}

// survey tells whether there is a well-formed token of a version that could be
// checked, and whether there is a token of another version.
func (s *scheme) survey(signatures string, usable []*version) (checked, foreign bool) {
	for more, n := true, 0; more && n < MaxTokens; n++ {
		var elem string
		elem, signatures, more = s.grammar.next(signatures)
		if text, ok := cutVersion(elem, usable); ok {
			if _, ok := decodeStrict(s.spec.Encoding, text); ok {
				return true, foreign
			}
			continue
		}
		if _, ok := s.grammar.token(elem); ok && !s.grammar.isTimestamp(elem) {
			foreign = true
		}
	}
	return false, foreign
}

// cutVersion is the text of a token of one of the versions.
func cutVersion(elem string, versions []*version) (text string, ok bool) {
	for _, v := range versions {
		if text, ok := strings.CutPrefix(elem, v.prefix); ok && text != "" {
			return text, true
		}
	}
	return "", false
}
