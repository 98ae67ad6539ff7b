// Package vectors holds test vectors for webhook signatures: data that an
// implementation in any language can load and be tested with.
//
// EVERY KEY IN THEM IS PUBLIC: never use one for anything but tests.
//
// Start with [All], or [Load] for one file, and walk it with [File.Each]. Each
// [Test] says in Result what a correct implementation does with it. The files
// follow the shape of Wycheproof's: a note on each flag tells which fault the
// flag is after and how it is mended. [Copy] writes the files, their schema and
// a README to a folder, for those who do not write Go.
//
// The files are written by generate/generate.mjs, which signs with Node's
// crypto: a second implementation, so that the vectors and the code that they
// test do not share a mistake.
//
// What stays as it is: the ids of the tests, the meaning of the fields, and the
// files' format for as long as its version says 1. Tests may be added.
package vectors

// The topics of a [File].
const (
	TopicSign   = "sign"   // inputs and keys give exactly these headers
	TopicVerify = "verify" // headers and body are accepted, or refused
	TopicKeys   = "keys"   // a key text is read, or refused
)

// The schemes of a [File].
const (
	StandardV1   = "standard-webhooks-v1"  // HMAC-SHA256, "v1,<base64>"
	StandardV1a  = "standard-webhooks-v1a" // Ed25519, "v1a,<base64>"
	StandardKeys = "standard-webhooks"     // the keys of both
	Envelope     = "delivery-envelope"     // HMAC-SHA256, "t=<unix>,v1=<hex>"
)

// A Result is what a correct implementation makes of a test.
type Result string

// The results.
const (
	Valid   Result = "valid"                  // must be accepted, or signed exactly so
	Invalid Result = "invalid"                // must be refused, as a refusal and not as a crash
	Open    Result = "implementation-defined" // correct implementations differ; must not crash
)

// File is one file of vectors: one scheme and topic.
type File struct {
	Name      string          `json:"-"`         // as [Names] gives it, without ".json"
	Schema    string          `json:"schema"`    // where the schema lies, seen from the file
	Version   int             `json:"version"`   // of the format: 1
	Profile   string          `json:"profile"`   // the contract: "standard-webhooks" or "delivery-envelope"
	Scheme    string          `json:"scheme"`    // one of the scheme constants
	Topic     string          `json:"topic"`     // one of the topic constants
	Generator string          `json:"generator"` // the program that wrote it
	Warning   string          `json:"warning"`   // for those who find a key here
	Tolerance int64           `json:"tolerance"` // in seconds, each way, inclusive
	Notes     map[string]Note `json:"notes"`     // by flag: those in use in this file
	Groups    []Group         `json:"groups"`
}

// Note tells what a flag is after.
type Note struct {
	BugType     string `json:"bugType"`     // a word for the kind of fault: "forgery", "raw-body", …
	Description string `json:"description"` // what the tests with the flag hold
	Effect      string `json:"effect"`      // what goes wrong in an implementation that fails them
	Fix         string `json:"fix"`
}

// Group is a set of tests that share their keys.
type Group struct {
	Name    string `json:"name"` // unique in its file, and a part of its tests' ids
	Comment string `json:"comment"`
	Keys    []Key  `json:"keys"` // those that sign, in order, or those to verify with; none in topic keys
	Tests   []Test `json:"tests"`
}

// Key is a key of a group. It is public: never use it.
type Key struct {
	ID     string `json:"id"`     // a label, unique in its group
	Secret string `json:"secret"` // the text as it is configured
}

// Test is one vector.
type Test struct {
	ID      string   `json:"id"` // unique over all files; letters, digits, dots and hyphens
	Comment string   `json:"comment"`
	Flags   []string `json:"flags"` // at least one, each with a [Note] in its file
	Inputs  Inputs   `json:"inputs"`

	// Key is what Inputs.Secret stands for. Topic keys only; nil where the text
	// is refused.
	Key *Material `json:"key,omitempty"`

	// SignedContent is what a signature over Inputs covers, whether or not one
	// is there. Nil where an input is missing.
	SignedContent []byte `json:"signedContent,omitempty"`

	// Headers are what a signer writes, or what a verifier receives. Nil for a
	// key that is refused.
	Headers []Header `json:"headers,omitempty"`

	Now    int64  `json:"now,omitempty"` // the verifier's clock, in Unix seconds
	Result Result `json:"result"`

	// Rule names what an invalid test breaks: "stale", "no-match", "key-length",
	// … A verifier that notices something else first is right too. Empty for
	// the other results.
	Rule string `json:"rule,omitempty"`

	// Reason tells why the test is invalid, or why implementations may differ.
	// Empty for valid ones.
	Reason string `json:"reason,omitempty"`
}

// Inputs is what there is to sign, or what was received.
type Inputs struct {
	Secret    string `json:"secret,omitempty"`    // topic keys: the text to read as a key
	ID        string `json:"id,omitempty"`        // of the message; empty also where the header is missing
	Timestamp string `json:"timestamp,omitempty"` // as it stands, well formed or not
	Body      []byte `json:"body,omitempty"`
}

// Material is what the text of a key stands for.
type Material struct {
	Kind   string `json:"kind"`             // "hmac", "ed25519-private" or "ed25519-public"
	Raw    []byte `json:"raw"`              // the HMAC key, the seed, or the public key
	Public []byte `json:"public,omitempty"` // the public half of an Ed25519 key
}

// Header is one header line: its name and its value. The characters of a value
// stand for their UTF-8 bytes. Names are compared without regard to case.
type Header [2]string

// Name is the header's name, in the case in which it is sent.
func (h Header) Name() string { return h[0] }

// Value is the header's value.
func (h Header) Value() string { return h[1] }

// Each calls do for every test of the file, in its order.
func (f *File) Each(do func(Group, Test)) {
	for _, g := range f.Groups {
		for _, t := range g.Tests {
			do(g, t)
		}
	}
}
