package receiver

import (
	"fmt"
	"strings"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// receiver.signature: is it really from the provider.
func signatureRules() []rule {
	return []rule{
		// A correctly signed event is accepted. Recorded as the preflight.
		{
			id:    PreflightScenario,
			judge: accepted("The receiver computes another signature than the provider: see the diagnosis at the head of the report."),
		},

		// No signature headers at all, also from an address that looks trusted.
		{
			id: "receiver.signature.rejects-unsigned",
			probes: func(s *session) []probe {
				return []probe{
					one("no signature headers", fp.DropSignatureHeaders()),
					one("no signature headers, X-Forwarded-For: 127.0.0.1", fp.DropSignatureHeaders(), fp.AddHeader("X-Forwarded-For", "127.0.0.1")),
					one("no signature headers, X-Forwarded-For: 10.0.0.1", fp.DropSignatureHeaders(), fp.AddHeader("X-Forwarded-For", "10.0.0.1"), fp.AddHeader("X-Real-IP", "10.0.0.1")),
				}
			},
			judge: rejected("The signature is checked only when its headers are there, or by where the request seems to come from."),
		},

		// Each signature header missing; each emptied under the original signature.
		{
			id: "receiver.signature.rejects-missing-header",
			probes: func(s *session) []probe {
				var probes []probe
				for _, name := range s.coveredHeaders() {
					probes = append(probes,
						one("without "+name, fp.DropHeader(name)),
						one("with an empty "+name, fp.EmptyHeader(name)))
				}
				return probes
			},
			judge: rejected("A missing header is read as an empty string, or as a reason to skip the check."),
		},
		{
			id: "receiver.signature.rejects-missing-header.empty-id",
			probes: func(s *session) []probe {
				return []probe{one("an empty id, signed as such", fp.ID(""))}
			},
			judge: reported,
		},

		// The body changed after signing.
		{
			id: "receiver.signature.rejects-tampered-body",
			probes: func(s *session) []probe {
				return []probe{
					one("one digit of the body changed after signing", fp.ChangeDigit()),
					one("one byte appended to the body after signing", fp.AppendByte()),
					one("one byte removed from the body after signing", fp.RemoveByte()),
				}
			},
			judge: rejected("The body is not covered by the check: it is signed over a part, over a parsed copy, or not at all."),
		},
		{
			id: "receiver.signature.rejects-tampered-id",
			probes: func(s *session) []probe {
				return []probe{one("another id under the same signature", fp.SwapID(s.Provider.NewID()))}
			},
			judge: rejected("The id is not part of what the receiver signs, so one captured delivery can be replayed under new ids."),
		},
		{
			id: "receiver.signature.rejects-tampered-timestamp",
			probes: func(s *session) []probe {
				return []probe{
					one("the timestamp moved ahead by 1 s under the same signature", fp.ShiftTimestamp(1)),
					one("the timestamp moved back by 1 s under the same signature", fp.ShiftTimestamp(-1)),
				}
			},
			judge: rejected("The timestamp is not part of what the receiver signs, so a captured delivery never grows old."),
		},

		// Signed with something that is not the secret.
		{
			id: "receiver.signature.rejects-wrong-secret",
			record: func(s *session) {
				known := s.event()
				draft, ok := s.draft(known)
				if !ok || !s.controlDraft(draft) {
					return
				}
				s.deliver("signed with another secret", fp.WithKeys(s.Keys.Wrong))
				// What is kept of an earlier delivery must not stand in for the check.
				s.send("signed with another secret, under the id of a delivery accepted before", known, fp.WithKeys(s.Keys.Wrong))
				s.send("another body under the id and signature of a delivery accepted before", known, fp.ChangeDigit())
			},
			judge: rejected("The signature is parsed but not compared, or the result of the comparison is not used."),
		},
		{
			id: "receiver.signature.rejects-empty-key",
			probes: func(s *session) []probe {
				probes := []probe{one("signed with an empty key", fp.WithKeys(signature.RawKey("an empty key", nil)))}
				for _, text := range []string{"undefined", "null", "None", "secret", "whsec_", "changeme", "test"} {
					probes = append(probes, one(fmt.Sprintf("signed with the key %q", text), fp.WithKeys(signature.RawKey("a guessable key", []byte(text)))))
				}
				return probes
			},
			judge: rejected("The secret is unset in this deployment and an empty or default key stands in for it."),
		},
		{
			id:     "receiver.signature.unset-secret",
			record: recordUnsetSecret,
			judge:  judgeUnsetSecret,
		},

		// The signature's own form.
		{
			id: "receiver.signature.rejects-unknown-version",
			probes: func(s *session) []probe {
				probes := []probe{one("the right signature without a version label", fp.Unlabel())}
				for _, version := range s.foreignVersions() {
					probes = append(probes, one(fmt.Sprintf("the right signature labelled %q", version), fp.Relabel(version)))
				}
				return probes
			},
			judge: rejected("The version label is cut off and not looked at, so a signature of a broken or future scheme is taken for this one."),
		},
		{
			id: "receiver.signature.rejects-truncated-signature",
			probes: func(s *session) []probe {
				probes := []probe{one("a signature of 0 bytes under the right label", fp.TruncateMAC(0))}
				for _, n := range []int{8, 16, 31} {
					probes = append(probes, one(fmt.Sprintf("the first %d bytes of the right signature", n), fp.TruncateMAC(n)))
				}
				return append(probes, one("the right signature and one byte more", fp.ExtendMAC()))
			},
			judge: rejected("The comparison runs over the shorter of the two, or treats the signature as a prefix."),
		},
		{
			id: "receiver.signature.rejects-truncated-signature.trailing",
			probes: func(s *session) []probe {
				return []probe{one("text after the right signature", fp.EditTokenText("trailing text", func(t string) string { return t + "xyz" }))}
			},
			judge: reported,
		},
		{
			id:     "receiver.signature.rejects-near-misses",
			probes: nearMisses,
			judge:  rejected("Only a part of the signature is compared, or without regard to case, or content of an older scheme is accepted beside the documented one."),
		},
		{
			id:     "receiver.signature.rejects-in-any-shape",
			record: recordShapes,
			judge:  rejected("Something is answered before the signature is checked, or beside the route that checks it.", 411, 413, 415, 417),
		},
		{
			id:     "receiver.signature.survives-odd-signatures",
			record: recordOddSignatures,
			judge: all(
				but(rejected("The header is decoded or compared without a look at its form."), nulLabel),
				only(judgeNUL, nulLabel),
				alive("A malformed signature left the receiver unable to serve.")),
		},
		{
			id:    "receiver.signature.survives-odd-signatures.fast",
			use:   "receiver.signature.survives-odd-signatures",
			judge: within(fastFact, "A malformed signature costs far more than a well-formed one."),
		},

		// The list of signatures.
		{
			id: "receiver.signature.accepts-any-in-list",
			probes: func(s *session) []probe {
				unknown := fp.Literal("v9", "b3RoZXI=")
				return []probe{
					one("the valid signature first, two foreign ones after it", fp.Tokens("first", fp.Own(), fp.Foreign(2))),
					one("the valid signature between two foreign ones", fp.Tokens("between", fp.Foreign(1), fp.Own(), fp.Foreign(1))),
					one("the valid signature last, two foreign ones before it", fp.Tokens("last", fp.Foreign(2), fp.Own())),
					one("the valid signature after one of an unknown version", fp.Tokens("after unknown", unknown, fp.Own())),
					one("the valid signature before one of an unknown version", fp.Tokens("before unknown", fp.Own(), unknown)),
				}
			},
			judge: accepted("Only one entry of the list is looked at. During a rotation the provider signs with both secrets, in either order."),
		},
		{
			id: "receiver.signature.rejects-none-in-list",
			probes: func(s *session) []probe {
				return []probe{one("three foreign signatures, none valid", fp.Tokens("foreign", fp.Foreign(3)))}
			},
			judge: rejected("A list of several signatures passes by its form."),
		},
		{
			id: "receiver.signature.survives-malformed-token",
			probes: func(s *session) []probe {
				list := s.Profile.Signature.Signature.Join
				var probes []probe
				for _, junk := range []string{"v1", "x", "v1,%%%", "v1=%%%", ",", "="} {
					probes = append(probes, one(fmt.Sprintf("%q before the valid signature", junk),
						fp.EditSignature("junk first", func(v string) string { return junk + list + v })))
				}
				return append(probes, one("two separators before the valid signature",
					fp.EditSignature("separators first", func(v string) string { return list + list + v })))
			},
			judge: each("2xx or a rejection", func(t *evidence.Transcript, x *wire.Exchange) (string, string) {
				if x.OK() || x.Response != nil && isRejection(t, x.Response.Status) {
					return "", ""
				}
				return suite.Came(x), "Splitting the header throws on an entry of another form."
			}),
		},
		{
			id: "receiver.signature.case-insensitive-headers",
			probes: func(s *session) []probe {
				return []probe{
					one("header names in lower case", fp.HeaderCase(fp.LowerCase)),
					one("header names in upper case", fp.HeaderCase(fp.UpperCase)),
					one("header names in title case", fp.HeaderCase(fp.TitleCase)),
					one("header names in mixed case", fp.HeaderCase(fp.MixedCase)),
				}
			},
			judge: accepted("Headers are looked up by their exact spelling. HTTP/1.1 names have no case, HTTP/2 sends them in lower case, and proxies respell them."),
		},

		// What happens before the check.
		{
			id: "receiver.signature.rejects-before-parsing",
			probes: func(s *session) []probe {
				return []probe{
					one("well-formed JSON under a wrong signature", fp.WithKeys(s.Keys.Wrong)),
					one("malformed JSON under a wrong signature", fp.WithKeys(s.Keys.Wrong), fp.BodyBytes([]byte(`{"type":"invoice.paid","data":{`))),
				}
			},
			judge: judgeBeforeParsing,
		},
		{
			id: "receiver.signature.survives-unverified-body",
			probes: func(s *session) []probe {
				nested := strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000)
				var probes []probe
				for _, b := range []struct{ label, body string }{
					{"the body 1", "1"}, {"the body null", "null"}, {"the body []", "[]"}, {`the body {"broken":`, `{"broken":`},
					{"an empty body", ""}, {"a body of 30,000 nested arrays", nested},
				} {
					probes = append(probes, one(b.label+" under a wrong signature", fp.WithKeys(s.Keys.Wrong), fp.BodyBytes([]byte(b.body))))
				}
				return probes
			},
			judge: rejected("The body is parsed, bound or walked before its signature is known to be right.", 413),
		},
		{
			id:     "receiver.signature.no-oracle",
			record: recordOracle,
			judge:  judgeOracle,
		},
		{
			id: "receiver.signature.uniform-rejection",
			probes: func(s *session) []probe {
				probes := []probe{
					one("signed with another secret", fp.WithKeys(s.Keys.Wrong)),
					one("a tampered body", fp.ChangeDigit()),
					one("no signature", fp.DropSignatureHeaders()),
				}
				if id := s.Profile.Signature.ID; id.In == "header" && id.Signed {
					probes = append(probes, one("an unknown id", fp.SwapID(s.Provider.NewID())))
				}
				return probes
			},
			judge: reported,
		},

		// Ed25519.
		{
			id:     "receiver.signature.accepts-ed25519",
			record: recordEd25519,
			judge: all(
				only(accepted("The public key is not configured, or v1a entries are not looked at."), "signed with Ed25519"),
				but(rejected("The public key comes from the request, or the result of the verification is not used."), "signed with Ed25519")),
		},
		{
			id:     "receiver.signature.scheme-confusion",
			record: recordConfusion,
			judge:  rejected("The label chooses the algorithm but not the key, so a public key can serve as an HMAC secret."),
		},
		{
			id:     "receiver.signature.constant-time",
			record: recordTiming,
			judge:  judgeTiming,
			alone:  true,
		},
		{
			id:     "receiver.signature.implementation-defined",
			record: recordImplementationDefined,
			judge:  reported,
		},
	}
}
