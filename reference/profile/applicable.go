package profile

import (
	"slices"

	"github.com/whconform/whconform/reference/signature"
)

// inapplicable is a reason for which requirements make no sense, and those
// requirements. An id stands for itself and for all that is split off it.
type inapplicable struct {
	reason string
	ids    []string
}

// inapplicable derives from the scheme what cannot be asked of a receiver or a
// sender: the catalogue's rule that a row about a field which the profile lacks
// or does not sign is not applicable.
func (p *Profile) inapplicable() []inapplicable {
	s := &p.Signature
	var out []inapplicable
	add := func(when bool, reason string, ids ...string) {
		if when {
			out = append(out, inapplicable{reason, ids})
		}
	}
	sealed := s.MAC != signature.PlainToken
	signedTime := s.Timestamp.In == "header" || s.Timestamp.In == "signature"
	labelled := s.Labelled()

	add(s.Timestamp.In == "none", "the scheme carries no timestamp",
		"receiver.replay.rejects-stale", "receiver.replay.rejects-future", "receiver.replay.accepts-small-skew",
		"receiver.replay.accepts-skew", "receiver.replay.tolerance", "receiver.replay.rejects-malformed-timestamp",
		"receiver.replay.lenient-timestamp", "receiver.signature.rejects-tampered-timestamp",
		"sender.signature.timestamp-now", "sender.retry.fresh-timestamp")
	add(s.Timestamp.In == "body", "the timestamp is part of the body, so it changes only with the body",
		"receiver.replay.rejects-malformed-timestamp", "receiver.replay.lenient-timestamp",
		"receiver.signature.rejects-tampered-timestamp")
	add(signedTime && !slices.Contains(s.Content, "{ts}"), "the signature does not cover the timestamp",
		"receiver.signature.rejects-tampered-timestamp")
	add(s.Timestamp.In != "none" && s.Timestamp.Past == 0, "the provider states no tolerance for old timestamps",
		"receiver.replay.rejects-stale", "receiver.replay.accepts-skew", "receiver.replay.tolerance")
	add(s.Timestamp.In != "none" && s.Timestamp.Past == 0 && s.Timestamp.Future == 0,
		"the provider states no tolerance", "receiver.replay.rejects-future")
	add(!signedTime || !slices.Contains(s.Content, "{ts}"), "nothing in the signed content changes from attempt to attempt",
		"sender.retry.fresh-signature")

	add(s.ID.In == "none", "the scheme carries no id",
		"receiver.signature.rejects-tampered-id", "receiver.signature.rejects-missing-header.empty-id",
		"receiver.duplicate.id-reuse", "receiver.duplicate.unsigned-id", "sender.signature.id-unique", "sender.retry.same-id")
	add(s.ID.In == "body", "the id is part of the body, so it changes only with the body",
		"receiver.signature.rejects-tampered-id", "receiver.signature.rejects-missing-header.empty-id",
		"receiver.duplicate.id-reuse", "receiver.duplicate.unsigned-id")
	add(s.ID.In == "header" && !s.ID.Signed, "the signature does not cover the id",
		"receiver.signature.rejects-tampered-id", "receiver.signature.rejects-missing-header.empty-id",
		"receiver.duplicate.forgery-does-not-claim-id")
	add(s.ID.In == "header" && s.ID.Signed, "the signature covers the id", "receiver.duplicate.unsigned-id")

	add(s.Signature.Repeat == "", "the provider sends one signature only",
		"receiver.signature.accepts-any-in-list", "receiver.signature.rejects-none-in-list",
		"receiver.signature.survives-malformed-token", "receiver.limits.many-signatures", "sender.rotation.both-sign",
		"sender.rotation.twice")
	add(!labelled, "signatures carry no version label", "receiver.signature.rejects-unknown-version")
	add(!s.Knows(signature.Ed25519), "the scheme knows no Ed25519 signatures",
		"receiver.signature.accepts-ed25519", "receiver.signature.scheme-confusion", "sender.signature.ed25519")
	add(s.MAC == signature.Ed25519, "the receiver holds a public key, and no shared secret",
		"receiver.signature.rejects-empty-key", "receiver.signature.scheme-confusion", "sender.signature.secret-per-endpoint")

	add(!sealed, "the provider sends a token, which signs nothing",
		"receiver.signature.rejects-tampered-body", "receiver.signature.rejects-truncated-signature",
		"receiver.signature.rejects-near-misses", "receiver.signature.no-oracle", "receiver.rawbody", "receiver.duplicate.forgery-does-not-claim-id",
		"sender.request.no-secret", "sender.signature.any-content")
	add(p.Handshake == "none", "the provider asks for no handshake", "receiver.acknowledge.handshake")
	add(p.EventBytes == 0, "the provider states no size of its events", "receiver.limits.accepts-provider-size")
	return out
}
