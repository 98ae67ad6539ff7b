package sender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// explain finds out what was signed, or by what, where an attempt does not
// verify: the usual mistakes are tried one by one. "" where none fits. It is
// found here and not by the judges, as they know no secret.
func (s *session) explain(e *endpoint, a *fakeendpoint.Attempt) string {
	scheme, err := s.Profile.Scheme()
	if err != nil || a.Request.Size > int64(len(a.Request.Body)) {
		return ""
	}
	signs := func(scheme signature.Scheme, body []byte, keys ...signature.Key) bool {
		r := a.Request
		r.Body, r.Size = body, int64(len(body))
		_, err := scheme.Verify(&r, a.BodyEnd, keys...)
		return err == nil
	}
	keys := e.keysOf()
	if hint := s.otherKey(e, func(k signature.Key) bool { return signs(scheme, a.Request.Body, k) }); hint != "" {
		return hint
	}
	if hint := otherBody(&a.Request, func(body []byte) bool { return signs(scheme, body, keys...) }); hint != "" {
		return hint
	}
	spec := s.Profile.Signature
	for _, content := range otherContents(spec) {
		changed := spec
		changed.Content, changed.ID.Signed = content, slices.Contains(content, "{id}")
		if other, err := signature.New(changed); err == nil && signs(other, a.Request.Body, keys...) {
			return fmt.Sprintf("the signature covers %s instead of %s", strings.Join(content, ""), strings.Join(spec.Content, ""))
		}
	}
	return ""
}

// untimely are the labels of the secrets that sign an attempt whose timestamp is
// too old or ahead: that is for the rows about timestamps to tell, and what was
// signed for the others.
func (s *session) untimely(e *endpoint, a *fakeendpoint.Attempt) []string {
	if a.Verification.Rule != signature.RuleStale && a.Verification.Rule != signature.RuleFuture {
		return nil
	}
	spec := s.Profile.Signature
	spec.Timestamp.Past, spec.Timestamp.Future = 0, 0 // not checked
	scheme, err := signature.New(spec)
	if err != nil || a.Request.Size > int64(len(a.Request.Body)) {
		return nil
	}
	var by []string
	for _, k := range e.keysOf() {
		if _, err := scheme.Verify(&a.Request, a.BodyEnd, k); err == nil {
			by = append(by, k.Label)
		}
	}
	return by
}

// otherKey looks for another key than the endpoint's own.
func (s *session) otherKey(e *endpoint, signs func(signature.Key) bool) string {
	form := s.Profile.Signature.Key
	for _, text := range e.textsOf() {
		if signs(signature.RawKey("", []byte(text))) {
			return "it is signed with the text of the secret as it stands, not with the bytes that it encodes"
		}
		for _, prefix := range form.Strip {
			if rest, ok := strings.CutPrefix(text, prefix); ok && signs(signature.RawKey("", []byte(rest))) {
				return "it is signed with the text behind " + prefix + ", not with the bytes that it encodes"
			}
		}
	}
	s.mu.Lock()
	others := slices.Clone(s.endpoints)
	s.mu.Unlock()
	for _, other := range others {
		if other != e && slices.ContainsFunc(other.keysOf(), signs) {
			return fmt.Sprintf("it is signed with the secret of another endpoint, %q", other.name)
		}
	}
	if signs(signature.RawKey("", nil)) {
		return "it is signed with an empty secret"
	}
	return ""
}

// otherBody looks for another spelling of the body, or none at all.
func otherBody(r *wire.Request, signs func([]byte) bool) string {
	if signs(nil) {
		return "the signature covers an empty body"
	}
	if plain := bytes.TrimSpace(r.Body); len(plain) < len(r.Body) && signs(plain) {
		return "the signature covers the body without the blanks or line ends around it"
	}
	var compact bytes.Buffer
	if json.Compact(&compact, r.Body) != nil {
		return ""
	}
	if signs(compact.Bytes()) {
		return "the signature covers the JSON without its insignificant blanks, and they are sent"
	}
	for _, lib := range fakeprovider.Serializers() {
		body, err := fakeprovider.Respell(lib.Name, r.Body)
		if err == nil && signs(body) {
			language, _, _ := strings.Cut(lib.Runtime, ":")
			return fmt.Sprintf("the signature covers the JSON as %s writes it (%s), and other bytes are sent", language, lib.Library)
		}
	}
	return ""
}

// otherContents are what senders sign by mistake.
func otherContents(spec signature.Spec) [][]string {
	candidates := [][]string{
		{"{raw}"}, {"{ts}", ".", "{raw}"}, {"{id}", ".", "{raw}"}, {"{ts}", ".", "{id}", ".", "{raw}"},
		{"{id}", ".", "{ts}", ".", "{raw}"}, {"{id}", "{ts}", "{raw}"}, {"{ts}", "{raw}"},
	}
	return slices.DeleteFunc(candidates, func(c []string) bool {
		return slices.Equal(c, spec.Content) || spec.ID.In == "body" && slices.Contains(c, "{id}")
	})
}
