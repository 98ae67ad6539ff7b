package mutant

import (
	"bytes"
	"crypto/hmac"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/whconform/whconform/reference/receiver"
	"github.com/whconform/whconform/reference/signature"
)

// signatureMutants break receiver.signature.*.
func signatureMutants() []Mutant {
	return slices.Concat(presenceMutants(), secretMutants(), formMutants(), nearMutants(), listMutants(), parsingMutants(), oracleMutants(), ed25519Mutants())
}

// presenceMutants trust what is not signed, or not compared.
func presenceMutants() []Mutant {
	return []Mutant{
		{
			Name: "trusts-the-unsigned", Doc: "It verifies only if there are signature headers.",
			Fails: []string{"receiver.signature.rejects-unsigned"},
			New: reference(verifying(func(v check) error {
				if v.id() == "" && v.timestamp() == "" && v.signatures()[0] == "" {
					return nil
				}
				return v.right()
			})),
		},
		{
			Name: "trusts-internal-addresses", Doc: "It verifies nothing that seems to come from a private address by X-Forwarded-For.",
			Fails: []string{"receiver.signature.rejects-unsigned", "receiver.signature.rejects-in-any-shape"},
			New: reference(verifying(func(v check) error {
				if from := net.ParseIP(v.header("X-Forwarded-For")); from.IsPrivate() || from.IsLoopback() {
					return nil
				}
				return v.right()
			})),
		},
		{
			Name: "trusts-known-ids", Doc: "It looks for copies before it verifies, and acknowledges whatever bears a known id.",
			Fails: []string{"receiver.signature.rejects-wrong-secret"},
			New: answering(func(Config) func(*http.Request, []byte, int) int {
				var known sync.Map
				return func(req *http.Request, _ []byte, right int) int {
					id := req.Header.Get("webhook-id")
					if right == http.StatusOK {
						known.Store(id, true)
					}
					if _, seen := known.Load(id); seen {
						return http.StatusOK
					}
					return right
				}
			}),
		},
		{
			Name: "skips-a-missing-signature", Doc: "It verifies only if there is a signature header.",
			Fails: []string{"receiver.signature.rejects-missing-header"},
			New: reference(verifying(func(v check) error {
				if v.id() != "" && v.timestamp() != "" && !v.has("webhook-signature") {
					return nil
				}
				return v.right()
			})),
		},
		{
			Name: "skips-a-missing-timestamp", Doc: "It verifies only if there is a timestamp header.",
			Fails: []string{"receiver.signature.rejects-missing-header"},
			New: reference(verifying(func(v check) error {
				if v.id() != "" && !v.has("webhook-timestamp") {
					return nil
				}
				return v.right()
			})),
		},
		{
			Name: "ignores-the-comparison", Doc: "It compares the signatures and does not use the result.",
			Fails: []string{
				"receiver.signature.rejects-tampered-body",
				"receiver.signature.rejects-tampered-id",
				"receiver.signature.rejects-tampered-timestamp",
				"receiver.signature.rejects-wrong-secret",
				"receiver.signature.rejects-near-misses",
				"receiver.signature.rejects-in-any-shape",
				"receiver.signature.rejects-empty-key",
				"receiver.signature.rejects-truncated-signature",
				"receiver.signature.rejects-none-in-list",
				"receiver.signature.survives-unverified-body",
				"receiver.signature.scheme-confusion",
				"receiver.rawbody.rejects-reserialized",
				"receiver.limits.many-signatures",
				"receiver.limits.lying-length",
				"receiver.rotation.accepts-old-and-new",
				"receiver.rotation.drops-retired",
			},
			New: reference(verifying(func(v check) error {
				if strings.HasPrefix(v.signatures()[0], "v1,") && v.rule() == signature.RuleNoMatch {
					return nil
				}
				return v.right()
			})),
		},
		{
			Name: "allows-for-drift", Doc: "It tries the signature with the timestamps one second before and after as well.",
			Fails: []string{"receiver.signature.rejects-tampered-timestamp"},
			New: reference(verifying(func(v check) error {
				for _, second := range []int64{-1, 1} {
					if v.withTimestamp(shifted(v.timestamp(), second)).right() == nil {
						return nil
					}
				}
				return v.right()
			})),
		},
		{
			Name: "trims-the-end", Doc: "It accepts a signature over the body without the blanks at its end.",
			Fails: []string{"receiver.signature.rejects-tampered-body"},
			New: reference(verifying(func(v check) error {
				return either(v, v.withBody(bytes.TrimRight(v.request.Body, " \r\n\t")))
			})),
		},
	}
}

// secretMutants know secrets that they should not.
func secretMutants() []Mutant {
	also := func(label, secret string) maker {
		return reference(verifying(func(v check) error {
			return v.withKeys(signature.RawKey(label, []byte(secret))).right()
		}))
	}
	return []Mutant{
		{
			Name: "accepts-an-empty-key", Doc: "A second secret is read from a variable that is not set, and the empty key verifies.",
			Fails: []string{"receiver.signature.rejects-empty-key"},
			New:   also("unset", ""),
		},
		{
			Name: "accepts-undefined", Doc: "A secret that is not set is turned into the word undefined.",
			Fails: []string{"receiver.signature.rejects-empty-key"},
			New:   also("unset", "undefined"),
		},
		{
			Name: "accepts-a-default", Doc: "The secret of the example configuration still verifies.",
			Fails: []string{"receiver.signature.rejects-empty-key"},
			New:   also("default", "changeme"),
		},
		{
			Name: "opens-without-a-secret", Doc: "Without a secret it starts, and verifies nothing.",
			Fails: []string{"receiver.signature.unset-secret"},
			Needs: []string{SecondConfiguration},
			New: func(c Config) (http.Handler, error) {
				if len(c.Keys) > 0 {
					return reference()(c)
				}
				c.Keys = []signature.Key{signature.RawKey("unset", nil)}
				return reference(verifying(func(check) error { return nil }))(c)
			},
		},
		{
			Name: "signs-with-nothing", Doc: "Without a secret it starts, with an empty one in its place.",
			Fails: []string{"receiver.signature.unset-secret"},
			Needs: []string{SecondConfiguration},
			New: func(c Config) (http.Handler, error) {
				if len(c.Keys) == 0 {
					c.Keys = []signature.Key{signature.RawKey("unset", nil)}
				}
				return reference()(c)
			},
		},
	}
}

// formMutants mistake the form of a signature.
func formMutants() []Mutant {
	return []Mutant{
		{
			Name: "ignores-the-version", Doc: "It cuts the version label off and does not look at it.",
			Fails: []string{"receiver.signature.rejects-unknown-version"},
			New: reference(verifying(func(v check) error {
				return either(v, v.withSignatures(relabelled("v1", v.signatures())...))
			})),
		},
		{
			Name: "compares-the-shorter", Doc: "It compares as many bytes as the shorter of the two signatures has.",
			Fails: []string{"receiver.signature.rejects-truncated-signature"},
			New: reference(verifying(func(v check) error {
				text, labelled := strings.CutPrefix(v.signatures()[0], "v1,")
				got, err := base64.StdEncoding.DecodeString(text)
				want := v.expected()
				n := min(len(got), len(want))
				if labelled && err == nil && hmac.Equal(got[:n], want[:n]) && v.onlySignatureWrong() {
					return nil
				}
				return v.right()
			})),
		},
		{
			Name: "accepts-an-empty-signature", Doc: "A token without a signature compares as equal.",
			Fails: []string{"receiver.signature.rejects-truncated-signature"},
			New: reference(verifying(func(v check) error {
				if v.signatures()[0] == "v1," && v.onlySignatureWrong() {
					return nil
				}
				return v.right()
			})),
		},
		{
			Name: "throws-on-another-length", Doc: "Its comparison throws when the two signatures differ in length.",
			Fails: []string{
				"receiver.signature.rejects-truncated-signature",
				"receiver.signature.rejects-near-misses",
				"receiver.signature.survives-odd-signatures",
				"receiver.signature.survives-malformed-token",
				"receiver.signature.scheme-confusion",
			},
			New: reference(verifying(func(v check) error {
				for _, token := range v.signatures() {
					if text, labelled := strings.CutPrefix(token, "v1,"); labelled && len(text) != base64.StdEncoding.EncodedLen(32) {
						panic("input buffers must have the same byte length")
					}
				}
				return v.right()
			})),
		},
		{
			Name: "throws-beyond-ascii", Doc: "A signature header that is not ASCII meets an error that it does not catch.",
			Fails: []string{"receiver.signature.survives-odd-signatures"},
			New: reference(verifying(func(v check) error {
				if strings.ContainsFunc(v.header("webhook-signature"), func(r rune) bool { return r > 127 }) {
					panic("string argument should contain only ASCII characters")
				}
				return v.right()
			})),
		},
		{
			Name: "backtracks", Doc: "Its pattern for the signature takes more than a second over a long word.",
			Fails: []string{"receiver.signature.survives-odd-signatures.fast"},
			New: delayed(Config.sluggish, func(req *http.Request) bool {
				value := req.Header.Get("webhook-signature")
				return len(value) > 400 && !strings.Contains(value, " ")
			}),
		},
		{
			Name: "wants-lower-case-headers", Doc: "It finds its headers only when their names are in lower case.",
			Fails: []string{"receiver.signature.case-insensitive-headers"},
			New:   reference(),
			Listener: func(l net.Listener) net.Listener {
				return caseListener{l}
			},
		},
	}
}

// caseListener makes header names that hold capitals unknown.
type caseListener struct{ net.Listener }

func (l caseListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return caseConn{c}, err
}

type caseConn struct{ net.Conn }

// Read replaces the first letter of each name that begins like "Webhook-" but
// for its case. A name that comes in two reads escapes it; a request's head
// comes in one.
func (c caseConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for i := 0; i+9 <= n; i++ {
		if line := b[i : i+9]; line[0] == '\n' && bytes.EqualFold(line[1:], []byte("webhook-")) && string(line[1:]) != "webhook-" {
			line[1] = 'x'
		}
	}
	return n, err
}

// nearMutants take what is almost a signature, or a shape for one.
func nearMutants() []Mutant {
	const near, shape = "receiver.signature.rejects-near-misses", "receiver.signature.rejects-in-any-shape"
	// by compares the texts of whole signatures in a way of its own.
	by := func(same func(given, expected string) bool) maker {
		return reference(verifying(func(v check) error {
			err := v.right()
			if err == nil || !v.onlySignatureWrong() {
				return err
			}
			for _, token := range v.signatures() {
				given, labelled := strings.CutPrefix(token, "v1,")
				expected := base64.StdEncoding.EncodeToString(v.expected())
				if labelled && len(given) == len(expected) && same(given, expected) {
					return nil
				}
			}
			return err
		}))
	}
	return []Mutant{
		{
			Name: "compares-the-beginning", Doc: "It compares the first eight characters of a signature of the right length.",
			Fails: []string{near},
			New: by(func(given, expected string) bool {
				// Of the same length in bytes too: 31 end in "==", 33 in no "=".
				return given[:8] == expected[:8] && strings.Count(given, "=") == strings.Count(expected, "=")
			}),
		},
		{
			Name: "compares-without-case", Doc: "It compares the encoded signatures without regard to case.",
			Fails: []string{near},
			New:   by(strings.EqualFold),
		},
		{
			Name: "keeps-the-old-scheme", Doc: "It accepts signatures over the body alone, too, as its first scheme had them.",
			Fails: []string{near},
			New: reference(verifying(func(v check) error {
				err := v.right()
				if err == nil || !v.onlySignatureWrong() {
					return err
				}
				old := v.scheme.Spec()
				old.Content, old.ID.Signed = []string{"{raw}"}, false
				if scheme, bad := signature.New(old); bad == nil {
					if _, refused := scheme.Verify(&v.request, v.now, v.keys...); refused == nil {
						return nil
					}
				}
				return err
			})),
		},
		{
			Name: "verifies-json-only", Doc: "Another content type than JSON goes to a route that verifies nothing.",
			Fails: []string{shape},
			New: before(http.StatusOK, func(_ Config, req *http.Request) bool {
				kind := req.Header.Get("Content-Type")
				return kind != "" && !strings.HasPrefix(kind, "application/json") && req.Method == http.MethodPost
			}),
		},
		{
			Name: "answers-pings-first", Doc: "It answers a ping before it verifies.",
			Fails: []string{shape},
			New:   refused(http.StatusOK, func(body []byte) bool { return bytes.Contains(body, []byte(`"type":"ping"`)) }),
		},
	}
}

// listMutants mistake the list of signatures.
func listMutants() []Mutant {
	return []Mutant{
		{
			Name: "looks-at-the-first-signature", Doc: "Of several signatures it looks at the first.",
			Fails: []string{"receiver.signature.accepts-any-in-list"},
			New: reference(verifying(func(v check) error {
				return v.withSignatures(v.signatures()[0]).right()
			})),
		},
		{
			Name: "looks-at-the-last-signature", Doc: "Of several signatures it looks at the last.",
			Fails: []string{"receiver.signature.accepts-any-in-list"},
			New: reference(verifying(func(v check) error {
				all := v.signatures()
				return v.withSignatures(all[len(all)-1]).right()
			})),
		},
		{
			Name: "accepts-any-list", Doc: "Its loop over several signatures ends with the result of the loop, not of the comparison.",
			Fails: []string{"receiver.signature.rejects-none-in-list", "receiver.limits.many-signatures"},
			New: reference(verifying(func(v check) error {
				if len(v.signatures()) > 1 && v.rule() == signature.RuleNoMatch {
					return nil
				}
				return v.right()
			})),
		},
		{
			Name: "splits-without-looking", Doc: "It takes what stands behind the comma of each token, and throws where there is none.",
			Fails: []string{"receiver.signature.survives-malformed-token"},
			New: reference(verifying(func(v check) error {
				all := v.signatures()
				if len(all) > 1 && slices.ContainsFunc(all, func(t string) bool { return !strings.Contains(t, ",") }) {
					panic("index out of range [1] with length 1")
				}
				return v.right()
			})),
		},
	}
}

// parsingMutants look into the body before its signature is known to be right.
func parsingMutants() []Mutant {
	return []Mutant{
		{
			Name: "parses-first", Doc: "It answers 400 to malformed JSON before it looks at the signature.",
			Fails: []string{"receiver.signature.rejects-before-parsing"},
			New:   refused(http.StatusBadRequest, func(body []byte) bool { return !json.Valid(body) }),
		},
		{
			Name: "assumes-an-object", Doc: "It takes fields out of any JSON before it looks at the signature.",
			Fails: []string{"receiver.signature.survives-unverified-body"},
			New: refused(http.StatusInternalServerError, func(body []byte) bool {
				return json.Valid(body) && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{"))
			}),
		},
		{
			Name: "walks-the-unverified", Doc: "It walks down nested JSON by recursion before it looks at the signature.",
			Fails: []string{"receiver.signature.survives-unverified-body"},
			New:   refused(http.StatusInternalServerError, func(body []byte) bool { return bytes.Count(body, []byte("[")) > 1000 }),
		},
	}
}

// oracleMutants tell the signature that they expected.
func oracleMutants() []Mutant {
	return []Mutant{
		{
			Name: "tells-the-signature", Doc: "Its error message holds the two signatures that it compared.",
			Fails: []string{"receiver.signature.no-oracle"},
			New: telling(func(_ http.Header, mac []byte) string {
				return "signature mismatch: expected " + hex.EncodeToString(mac)
			}),
		},
		{
			Name: "tells-the-signature-in-a-header", Doc: "A header for debugging holds the signature that it expected.",
			Fails: []string{"receiver.signature.no-oracle"},
			New: telling(func(h http.Header, mac []byte) string {
				h.Set("X-Debug-Expected", base64.StdEncoding.EncodeToString(mac))
				return ""
			}),
		},
	}
}

// telling adds to a refusal what tell makes of the signature of the request as
// it stands.
func telling(tell func(h http.Header, mac []byte) (body string)) maker {
	return around(func(c Config, next http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			var body bytes.Buffer
			seen := req.WithContext(req.Context())
			seen.Body = tee{io.TeeReader(req.Body, &body), req.Body}
			text := ""
			next.ServeHTTP(&answer{ResponseWriter: w, change: func(status int) int {
				if status == http.StatusUnauthorized {
					text = tell(w.Header(), claimed(c, req, body.Bytes()).expected())
				}
				return status
			}}, seen)
			_, _ = io.WriteString(w, text)
		}
	})
}

// ed25519Mutants mistake the second scheme of Standard Webhooks.
func ed25519Mutants() []Mutant {
	needs := []string{Ed25519}
	isPublic := func(k signature.Key) bool { return k.Kind() == signature.Ed25519Public }
	return []Mutant{
		{
			Name: "knows-no-ed25519", Doc: "It looks at v1 signatures only.",
			Fails: []string{"receiver.signature.accepts-ed25519"},
			Needs: needs,
			New:   reference(func(r *receiver.Config) { r.Keys = slices.DeleteFunc(slices.Clone(r.Keys), isPublic) }),
		},
		{
			Name: "takes-the-offered-key", Doc: "It verifies Ed25519 signatures with the public key that the request brings along.",
			Fails: []string{"receiver.signature.accepts-ed25519"},
			Needs: needs,
			New: reference(verifying(func(v check) error {
				if offered, err := v.scheme.Key("offered", v.header("x-public-key")); err == nil {
					return v.withKeys(offered).right()
				}
				return v.right()
			})),
		},
		{
			Name: "does-not-check-ed25519", Doc: "It takes a v1a signature for right once it is well formed.",
			Fails: []string{
				"receiver.signature.accepts-ed25519",
				"receiver.signature.scheme-confusion",
				"receiver.signature.rejects-unknown-version",
			},
			Needs: needs,
			New: reference(verifying(func(v check) error {
				if strings.HasPrefix(v.signatures()[0], "v1a,") && v.rule() == signature.RuleNoMatch {
					return nil
				}
				return v.right()
			})),
		},
		{
			Name: "takes-the-public-key-for-a-secret", Doc: "It tries every key it knows as an HMAC secret, the public one too.",
			Fails: []string{"receiver.signature.scheme-confusion"},
			Needs: needs,
			New: reference(verifying(func(v check) error {
				for _, k := range v.keys {
					if isPublic(k) {
						v = v.withKeys(signature.RawKey(k.Label, k.Public()))
					}
				}
				return v.right()
			})),
		},
		{
			Name: "chooses-the-scheme-by-length", Doc: "It takes a signature of 64 bytes for Ed25519, whatever its label.",
			Fails: []string{"receiver.signature.scheme-confusion"},
			Needs: needs,
			New: reference(verifying(func(v check) error {
				return either(v, v.withSignatures(relabelled("v1a", v.signatures())...))
			})),
		},
	}
}
