// Package signature signs and verifies webhook deliveries by the schemes of
// many providers, each described as data.
//
// Read [Scheme] first: it is what senders and receivers use. [New] makes one
// from a [Spec], [StandardWebhooks] and [DeliveryEnvelope] are the two that
// this project documents itself. A [Key] holds a secret and shows nothing of it
// but its label. [Refusal] says why a request does not verify, one rule for
// each reason, all of them in [Rules].
//
// What a scheme signs and reads is bytes: the body is never parsed before its
// signature has been verified, and never at all where id and timestamp travel
// in headers.
//
// What stays as it is: the names of the rules, the meaning of a Spec's fields,
// the Scheme interface but for added methods.
package signature

import (
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// Input is what a signature covers.
//
// Nothing in it is checked: the suite signs empty ids and timestamps that are
// no numbers, to see what a receiver makes of them.
type Input struct {
	ID          string
	Method, URL string    // only some schemes sign these
	Time        time.Time // when the attempt is made
	Timestamp   string    // when not empty, stands in place of Time as it is, well formed or not
	Body        []byte
}

// Token is one signature as it stands in a header: its version label ("v1",
// "v1a", "sha256"; empty where the scheme has none) and its encoded text,
// without the label.
type Token struct{ Version, Text string }

// Scheme signs and verifies by one provider's rules. A Scheme is safe for use
// by several goroutines at a time, and so is a [Key].
type Scheme interface {
	// Key reads the secret text of a key. The error is a *[KeyError], which
	// never holds the text.
	Key(label, text string) (Key, error)

	// MAC is the signature over in as raw bytes, before it is encoded.
	MAC(in Input, key Key) ([]byte, error)

	// Token makes one signature over in. The key's kind decides the version.
	Token(in Input, key Key) (Token, error)

	// AppendToken appends to dst the token that Token makes, label and text, as
	// it stands in the header. With an HMAC key and room in dst it allocates
	// nothing.
	AppendToken(dst []byte, in Input, key Key) ([]byte, error)

	// Headers writes the headers for in with the tokens given, right or wrong:
	// the id (where a header carries it), the timestamp (likewise), the
	// signature. A token without a version is written as its bare text. Several
	// tokens in a scheme that knows one signature only become several lines.
	Headers(in Input, tokens ...Token) []wire.Header

	// Sign is Token for each key, then Headers.
	Sign(in Input, keys ...Key) ([]wire.Header, error)

	// Verify returns the key that signed r; the error is a *[Refusal]. Any
	// token may match any key. A timestamp exactly as old as the tolerance is
	// accepted, one unit older is refused; now is cut to the timestamp's unit.
	// Header values are taken as they stand: the blanks around them are the
	// HTTP parser's to remove.
	//
	// With HMAC keys and a request that verifies it allocates nothing, if the
	// keys are passed as a slice that lives on: Verify(r, now, keys...). Keys
	// listed one by one cost 24 bytes each, the slice that the compiler makes of
	// them for a method it cannot see through the interface.
	Verify(r *wire.Request, now time.Time, keys ...Key) (Key, error)

	// ID reads the message id of r, from its header or its body. Call it after
	// Verify: before, the id is only what somebody claims. The error is a
	// *[Refusal] with [RuleMissingID], [RuleMalformedID], [RuleRepeatedHeader]
	// or [RuleMalformedBody].
	ID(r *wire.Request) (string, error)

	// Spec is what the scheme was made from.
	Spec() Spec
}
