package receiver

import (
	"slices"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
)

// AcceptsAnything is the remark on rows that a receiver passes only because it
// accepts whatever it is sent.
const AcceptsAnything = "accepts anything: this receiver refuses neither an unsigned delivery nor a wrong secret, so an acceptance says nothing"

// Remark marks the passes of a receiver that accepts anything.
func Remark(rulings []evidence.Ruling) []evidence.Ruling {
	failed := func(id string) bool {
		i := slices.IndexFunc(rulings, func(r evidence.Ruling) bool { return r.Requirement == id })
		return i >= 0 && rulings[i].Outcome == evidence.Fail
	}
	if !failed("receiver.signature.rejects-unsigned") || !failed("receiver.signature.rejects-wrong-secret") {
		return rulings
	}
	out := slices.Clone(rulings)
	for i := range out {
		if out[i].Outcome == evidence.Pass {
			out[i].Remark = AcceptsAnything
		}
	}
	return out
}

// Offers tells whether the subject and the run offer a capability.
func (e *Env) Offers(need string) bool {
	switch need {
	case "two-secrets":
		return e.Keys.Previous != nil
	case "ed25519":
		return e.Keys.Ed25519 != nil
	case "load":
		return e.Bounds.Load
	}
	return e.Subject.Has(need)
}

// Capabilities lists what the subject and the run offer beside a URL.
func (e *Env) Capabilities() []string {
	offered := []string{}
	for _, need := range catalogue.Needs(catalogue.Receiver) {
		if e.Offers(need) {
			offered = append(offered, need)
		}
	}
	return offered
}
