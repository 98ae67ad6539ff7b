// Package profile holds contracts between webhook providers and receivers as
// data: how deliveries are signed, what they look like, how long anybody waits,
// when a failed delivery is tried again.
//
// Read [Profile] first. [Load] gives one by name or from a file, [Names] lists
// those that are built in, [Parse] reads one from YAML. The format is described
// in docs/profile-format.md and, for editors, by the JSON Schema that [Schema]
// returns.
//
// A profile never holds a secret.
package profile

import (
	"slices"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/signature"
)

// The levels that a profile may give a requirement.
const (
	LevelMust          = "MUST"
	LevelShould        = "SHOULD"
	LevelMay           = "MAY"
	NotApplicableLevel = "n/a"
)

// Profile is a documented contract between a provider and its receivers. One
// that [Load] or [Parse] returned is valid and must not be changed.
type Profile struct {
	Name, Title, Source string

	// Unverified lists the facts of this profile that were not checked against
	// the provider's own documentation, a sentence each.
	Unverified []string

	Signature signature.Spec

	// Delivery: what a provider sends.
	IDPrefix    string            // "msg_"; ids are prefix + unique part
	UserAgent   string            // e.g. "whconform/1 (+standard-webhooks)"
	ContentType string            // "application/json"
	Headers     map[string]string // fixed or templated extras; values may hold {type}, {id}
	Payload     string            // text/template over PayloadData
	EventTypes  []string          // the first is the default
	EventBytes  int64             // size of the largest event the provider sends, 0: not stated

	// Receiver's side of the contract.
	AckTimeout               time.Duration // how long the provider waits for an answer
	RejectWith               []int         // what counts as a rejection; empty: 400, 401, 403, 422
	MaxBody                  int64         // what a receiver is asked to accept at most, 64 KiB by default
	Remember                 time.Duration // how long ids are remembered, 24 h by default
	EmptyAnswer, NoSetCookie bool
	Handshake                string // none | slack_challenge | zoom_crc | meta_hub | xero_itr | discord_ping | head | get

	// Sender's side of the contract. An empty Schedule says that the provider
	// documents none; its first delay is that of the first attempt, mostly 0,
	// each further one counts from the end of the attempt before.
	Schedule              []time.Duration
	JitterLow, JitterHigh float64       // a delay d may last from d×(1+JitterLow) to d×(1+JitterHigh); JitterLow ≤ 0
	AttemptTimeout        time.Duration // AckTimeout by default
	ConnectTimeout        time.Duration
	RetryAfterCap         time.Duration
	DisableAfter          time.Duration // without a success; 0: never
	NotifyAfter           []time.Duration
	RotationOverlap       time.Duration
	RetainDelivered       time.Duration // 0: not stated
	RetainFailed          time.Duration // 0: not stated

	// Levels overrides the catalogue: requirement id -> MUST|SHOULD|MAY|n/a.
	Levels map[string]string

	yaml    []byte
	payload *Payload
}

// The values that Profile.Handshake may have.
func handshakes() []string {
	return []string{"none", "slack_challenge", "zoom_crc", "meta_hub", "xero_itr", "discord_ping", "head", "get"}
}

// levels lists the values of Profile.Levels.
func levels() []string { return []string{LevelMust, LevelShould, LevelMay, NotApplicableLevel} }

// Scheme makes the signature scheme. The error is a
// *[signature.UnsupportedError] where the scheme is only described.
func (p *Profile) Scheme() (signature.Scheme, error) { return signature.New(p.Signature) }

// YAML is the text that the profile was read from.
func (p *Profile) YAML() []byte { return slices.Clone(p.yaml) }

// Rejections lists the statuses by which a receiver may refuse a delivery:
// 400, 401, 403 and 422 unless the provider is stricter.
func (p *Profile) Rejections() []int {
	if len(p.RejectWith) > 0 {
		return slices.Clone(p.RejectWith)
	}
	return []int{400, 401, 403, 422}
}

// Level is the level of a requirement under this profile: what the profile
// says, "n/a" where [Profile.NotApplicable] says so, else the fallback, which is
// the catalogue's.
func (p *Profile) Level(id, fallback string) string {
	if level, ok := p.Levels[id]; ok {
		return level
	}
	if _, no := p.NotApplicable(id); no {
		return NotApplicableLevel
	}
	return fallback
}

// NotApplicable tells whether a requirement, by its full id
// ("receiver.signature.rejects-tampered-id"), makes no sense under this profile,
// and why: it speaks of a field that the provider does not send or does not
// sign. An explicit level in the profile decides before anything derived.
func (p *Profile) NotApplicable(id string) (reason string, no bool) {
	if level, ok := p.Levels[id]; ok {
		if level == NotApplicableLevel {
			return "the profile " + p.Name + " says so", true
		}
		return "", false
	}
	for _, rule := range p.inapplicable() {
		for _, pattern := range rule.ids {
			if id == pattern || strings.HasPrefix(id, pattern+".") {
				return rule.reason, true
			}
		}
	}
	return "", false
}
