package signature

import "time"

// The values of [Spec.MAC] and [Version.MAC].
const (
	HMACSHA256  = "hmac-sha256"
	HMACSHA1    = "hmac-sha1"
	Ed25519     = "ed25519"
	ECDSAP256   = "ecdsa-p256-sha256" // described only
	RSASHA256   = "rsa-sha256"        // described only
	PlainToken  = "token"             // the secret itself stands in the header
	encBase64   = "base64"
	encBase64U  = "base64url"
	encHex      = "hex"
	inHeader    = "header"
	inBody      = "body"
	inSignature = "signature"
	inNone      = "none"
)

// Spec is a scheme as data: all that [New] needs, and for the schemes that it
// cannot build, all that a reader needs.
type Spec struct {
	Name      string
	Signature Carrier

	// Content is what is signed, piece by piece: literals, and the atoms {id},
	// {ts}, {raw} (the body's bytes), {sha256(raw)} (lower-case hex) and
	// {crc32(raw)} (decimal). Described only: {method}, {url}, {url_decoded},
	// {form_sorted}, {json:/pointer} (a value of the JSON body) and
	// {setup:name} (a value known from the setup).
	Content []string

	MAC      string // hmac-sha256 | hmac-sha1 | ed25519 | token; described only: ecdsa-p256-sha256, rsa-sha256
	Encoding string // hex (lower case) | base64 (padded) | base64url (padded); empty with token

	// Versions lists the labels that may stand in the signature header and what
	// each means. Empty: the grammar's own label, with MAC.
	Versions []Version

	Key       KeyForm
	Timestamp Timestamp
	ID        ID
}

// Carrier tells where a scheme carries its signatures.
type Carrier struct {
	In   string // header; described only: body
	Name string // header name, or JSON Pointer

	// Grammar is the header's value with one signature: {sig} stands for the
	// encoded signature, {ts} for the timestamp. "t={ts},v1={sig}"
	Grammar string

	// Join stands between the elements of a list ("," or " "). Empty: the
	// header holds one signature and nothing else.
	Join string

	// Repeat is the element that comes once for each signature, "v1={sig}".
	// Empty with a Join: the grammar's elements each come once.
	Repeat string
}

// Version is a label of a token and the algorithm it stands for.
type Version struct{ Label, MAC string }

// KeyForm tells how the text of a key is read.
type KeyForm struct {
	Decode string   // utf8 | base64 | hex; described only: pem, jwk
	Strip  []string // prefixes that may stand before the encoded part; the first is the one to write

	MinBytes, MaxBytes int // of the decoded key; 0: 1 and 4096

	// Private and Public are the prefixes of Ed25519 keys, where a scheme knows
	// HMAC keys beside them: whsk_ and whpk_.
	Private, Public string
}

// Timestamp tells where a scheme carries the time and how far off it may be.
type Timestamp struct {
	In           string        // signature | header | body | none
	Name         string        // header name, or JSON Pointer
	Unit         string        // s | ms | iso8601 | rfc3339
	Past, Future time.Duration // the tolerance each way; 0: not checked
}

// ID tells where a scheme carries the message id.
type ID struct {
	In     string // header | body | none
	Name   string // header name, or JSON Pointer
	Signed bool   // whether the signature covers it
}

// StandardWebhooks is the scheme of the Standard Webhooks specification 1.0.0:
// "v1" HMAC-SHA256 and "v1a" Ed25519 over id.timestamp.body, five minutes of
// tolerance both ways.
func StandardWebhooks() Spec {
	return Spec{
		Name:      "standard-webhooks",
		Signature: Carrier{In: inHeader, Name: "webhook-signature", Grammar: "v1,{sig}", Repeat: "v1,{sig}", Join: " "},
		Content:   []string{"{id}", ".", "{ts}", ".", "{raw}"},
		MAC:       HMACSHA256,
		Encoding:  encBase64,
		Versions:  []Version{{"v1", HMACSHA256}, {"v1a", Ed25519}},
		Key: KeyForm{
			Decode: encBase64, Strip: []string{"whsec_"}, MinBytes: 24, MaxBytes: 64,
			Private: privatePrefix, Public: publicPrefix,
		},
		Timestamp: Timestamp{In: inHeader, Name: "webhook-timestamp", Unit: "s", Past: 5 * time.Minute, Future: 5 * time.Minute},
		ID:        ID{In: inHeader, Name: "webhook-id", Signed: true},
	}
}

// DeliveryEnvelope is the scheme with the timestamp in the signature header:
// "t=<unix>,v1=<hex>", HMAC-SHA256 over timestamp.body, the id inside the body.
func DeliveryEnvelope() Spec {
	return Spec{
		Name:      "delivery-envelope",
		Signature: Carrier{In: inHeader, Name: "Webhook-Signature", Grammar: "t={ts},v1={sig}", Repeat: "v1={sig}", Join: ","},
		Content:   []string{"{ts}", ".", "{raw}"},
		MAC:       HMACSHA256,
		Encoding:  encHex,
		Key:       KeyForm{Decode: "utf8"},
		Timestamp: Timestamp{In: inSignature, Unit: "s", Past: 5 * time.Minute, Future: 5 * time.Minute},
		ID:        ID{In: inBody, Name: "/delivery_id", Signed: true},
	}
}

// Labelled tells whether signatures carry a version label, as in "v1=…".
func (s *Spec) Labelled() bool {
	g, err := parseGrammar(s.Signature)
	return err == nil && s.Signature.In == inHeader && g.label != ""
}

// Knows tells whether some token of the scheme stands for the algorithm mac.
func (s *Spec) Knows(mac string) bool {
	if s.MAC == mac {
		return true
	}
	for _, v := range s.Versions {
		if v.MAC == mac {
			return true
		}
	}
	return false
}
