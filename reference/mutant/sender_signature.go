package mutant

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/sender"
	"github.com/whconform/whconform/reference/signature"
)

// retriesDoNotVerify are the rows that look at the signature of an attempt that
// is not the first.
func retriesDoNotVerify() []string {
	return []string{"sender.signature.verifies", "sender.retry.fresh-signature", "sender.rotation.both-sign", "sender.resend.same-message"}
}

// signatureSenders break sender.signature.*.
func signatureSenders() []SenderMutant {
	return []SenderMutant{
		{
			Name: "signs-other-bytes", Doc: "A retry goes through another client, which ends the body with a line feed after it was signed.",
			Fails: []string{
				"sender.signature.verifies", "sender.retry.fresh-signature", "sender.rotation.both-sign",
				"sender.retry.same-bytes", "sender.retry.same-bytes-after-change",
			},
			Change: requesting(func(a sender.AttemptInfo, r sender.Request) sender.Request {
				if a.Number > 1 {
					r.Body = append(bytes.Clone(r.Body), '\n')
				}
				return r
			}),
		},
		{
			Name: "cuts-a-token", Doc: "A second token beside the right one is cut after 16 bytes.",
			Fails: []string{"sender.signature.tokens"},
			Change: requesting(func(_ sender.AttemptInfo, r sender.Request) sender.Request {
				return withHeader(r, "webhook-signature", header(r, "webhook-signature")+" v1,AAECAwQFBgcICQoLDA0ODw==")
			}),
		},
		{
			Name: "signs-compacted-json", Doc: "It signs the payload as its JSON library writes it, and sends it as it came.",
			Fails: []string{"sender.signature.any-content"},
			Change: signing(func(_ sender.AttemptInfo, in signature.Input) signature.Input {
				var compact bytes.Buffer
				if json.Compact(&compact, in.Body) == nil {
					in.Body = compact.Bytes()
				}
				return in
			}),
		},
		{
			Name: "bare-secrets", Doc: "It shows secrets without whsec_.",
			Fails: []string{"sender.signature.secret-form"},
			Change: func(o *sender.Options) {
				o.Faults.Secret = func(_, secret string) string { return strings.TrimPrefix(secret, "whsec_") }
			},
		},
		{
			Name: "one-secret-for-all", Doc: "All endpoints of an account have one secret.",
			Fails: []string{"sender.signature.secret-per-endpoint"},
			Change: func(o *sender.Options) {
				var seen, secrets memory[string]
				o.Faults.Secret = func(endpoint, secret string) string {
					if seen.keep(endpoint, secret) != secret {
						return secret // a rotation
					}
					return secrets.keep("account", secret)
				}
			},
		},
		{
			Name: "ids-with-full-stops", Doc: "Its ids have a full stop in them.",
			Fails:  []string{"sender.signature.id-unique"},
			Change: named(func(_ sender.AttemptInfo, id string) string { return strings.Replace(id, "_", ".", 1) }),
		},
		{
			Name: "clock-ten-seconds-behind", Doc: "Its clock is ten seconds behind.",
			Fails: []string{"sender.signature.timestamp-now"},
			Change: signing(func(_ sender.AttemptInfo, in signature.Input) signature.Input {
				in.Time = in.Time.Add(-10 * time.Second)
				return in
			}),
		},
	}
}
