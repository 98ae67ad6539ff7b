package receiver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// The scenarios of receiver.signature that are more than a list of probes, and
// the checks that look at more than one answer.

const nulLabel = "a NUL byte"

// recordOddSignatures sends signature headers of odd forms, then asks whether
// the receiver still serves.
func recordOddSignatures(s *session) {
	if !s.control() {
		return
	}
	s.deliver("an empty signature header", fp.TokenText(""))
	s.deliver("a signature header of 3 characters", fp.TokenText("abc"))
	s.deliver("a signature header of 500 characters", fp.TokenText(strings.Repeat("v1", 250)))
	s.deliver("a signature header that is not ASCII", fp.TokenText("v1,\xe9\xff\xfe"))
	// As many characters as the right one, but more bytes: a length check in
	// characters passes and the byte-wise comparison then throws.
	s.deliver("multi-byte characters, as many as the right signature has", fp.EditTokenText("multi-byte", func(t string) string {
		return strings.Repeat("é", len(t))
	}))
	s.deliver("a signature header of commas", fp.TokenText(strings.Repeat(",", 40)))
	s.deliver(nulLabel+" in the signature header", fp.TokenText("v1,\x00AAAA"))
	s.afterwards()
}

// judgeNUL: a server may close the connection on a NUL, which HTTP forbids in
// a header; an answer must still be a rejection.
func judgeNUL(t *evidence.Transcript) []evidence.Finding {
	return each("a rejection, or a closed connection", func(t *evidence.Transcript, x *wire.Exchange) (string, string) {
		if x.Fault == wire.FaultClosed || x.Fault == wire.FaultReset {
			return "", ""
		}
		// 400 is HTTP's own answer to it, whatever the profile rejects with.
		if x.Response != nil && (x.Response.Status == http.StatusBadRequest || isRejection(t, x.Response.Status)) {
			return "", ""
		}
		if x.OK() {
			return fmt.Sprintf("it was accepted (%d)", x.Response.Status), "The signature is not compared."
		}
		return suite.Came(x), notAnAnswer(x)
	})(t)
}

func recordUnsetSecret(s *session) {
	if !s.control() {
		return
	}
	s.variant("started with no secret", drive.Secrets{Unset: true})
	s.variant("started with an empty secret", drive.Secrets{})
}

// variant starts a second receiver without a usable secret and sends it what
// such a receiver may take for authentic.
func (s *session) variant(label string, secrets drive.Secrets) {
	if s.over() {
		return
	}
	other, err := s.Subject.Variant(s.ctx, secrets)
	if errors.Is(err, drive.ErrRefusedToStart) || errors.Is(err, drive.ErrNeverListened) {
		s.rec.Fact(label, "it does not start")
		return
	}
	if err != nil {
		s.fail(fmt.Errorf("starting a receiver %s: %w", label, err))
		return
	}
	defer func() { s.fail(other.Close(context.WithoutCancel(s.ctx))) }()
	for _, p := range []probe{
		one("unsigned", fp.DropSignatureHeaders()),
		one("signed with an empty key", fp.WithKeys(signature.RawKey("an empty key", nil))),
		one("signed with another secret", fp.WithKeys(s.Keys.Wrong)),
	} {
		if draft, ok := s.draft(s.event(), p.changes...); ok {
			s.sendTo(s.targetOf(other.Target(0)), label+": "+p.label, draft)
		}
	}
}

// judgeUnsetSecret: not to start is right, and to refuse in any way is; what
// must not happen is a 2xx.
func judgeUnsetSecret(t *evidence.Transcript) []evidence.Finding {
	return each("a receiver that does not start, or refuses", func(_ *evidence.Transcript, x *wire.Exchange) (string, string) {
		if x.OK() {
			return fmt.Sprintf("it was accepted (%d)", x.Response.Status), "A missing secret switches the check off, or an empty key stands in for it. One forgotten variable opens the endpoint to everybody."
		}
		return "", ""
	})(t)
}

func judgeBeforeParsing(t *evidence.Transcript) []evidence.Finding {
	const well, malformed = "well-formed JSON under a wrong signature", "malformed JSON under a wrong signature"
	a, b := t.Find(well), t.Find(malformed)
	if a == nil || b == nil || evidence.Throttles(a) || evidence.Throttles(b) {
		return nil
	}
	if a.Response != nil && b.Response != nil && a.Response.Status == b.Response.Status {
		return nil
	}
	return []evidence.Finding{{
		Sent: malformed, Expected: "the same answer as to " + well + " (" + suite.Came(a) + ")", Got: suite.Came(b),
		Cause:     "The body is parsed before the signature is checked, so anybody can reach the parser.",
		Exchanges: []string{well, malformed},
	}}
}

// recordOracle sends forgeries and looks for the signature that was expected of
// them in what comes back.
func recordOracle(s *session) {
	if !s.control() {
		return
	}
	for _, p := range []probe{
		one("signed with another secret", fp.WithKeys(s.Keys.Wrong)),
		one("a tampered body", fp.ChangeDigit()),
		one("a truncated signature", fp.TruncateMAC(16)),
		one("no signature headers", fp.DropSignatureHeaders()),
		one("an unknown version label", fp.WithKeys(s.Keys.Wrong), fp.Relabel("v9")),
		one("a malformed signature", fp.TokenText("???")),
		one("another content type", fp.WithKeys(s.Keys.Wrong), fp.ContentType("text/plain")),
		one("malformed JSON", fp.WithKeys(s.Keys.Wrong), fp.BodyBytes([]byte(`{"type":`))),
		one("a stale timestamp", fp.Age(2*max(s.tolerance(), time.Minute)), fp.WithKeys(s.Keys.Wrong)),
	} {
		draft, ok := s.draft(s.event(), p.changes...)
		if !ok {
			return
		}
		in := draft.Input
		in.Body = draft.Request.Body
		expected, err := s.Provider.Scheme().MAC(in, s.Keys.Current)
		if err != nil {
			s.fail(fmt.Errorf("computing the signature that the receiver expects: %w", err))
			return
		}
		x := s.sendDraft(p.label, draft)
		if where := leak(&x, expected, s.Keys); where != "" {
			s.rec.Fact("oracle: "+p.label, where)
		}
	}
}

// spelling is one way to print bytes.
type spelling struct {
	name string
	text []byte
}

// spellings lists the ways in which languages and frameworks print a MAC.
func spellings(mac []byte) []spelling {
	std, hexed := base64.RawStdEncoding.EncodeToString(mac), hex.EncodeToString(mac)
	pairs := make([]string, len(mac))
	numbers := make([]string, len(mac))
	for i, b := range mac {
		pairs[i], numbers[i] = hexed[2*i:2*i+2], strconv.Itoa(int(b))
	}
	all := []spelling{{"raw bytes", mac}}
	for _, s := range []struct{ name, text string }{
		{"base64", std}, {"url-safe base64", base64.RawURLEncoding.EncodeToString(mac)},
		{"base64 in a URL", url.QueryEscape(std)}, {"base64 in JSON", strings.ReplaceAll(std, "/", `\/`)},
		{"base64 in HTML", strings.ReplaceAll(std, "+", "&#43;")},
		{"hex", hexed}, {"hex", strings.ToUpper(hexed)}, {"hex", strings.Join(pairs, " ")}, {"hex", strings.Join(pairs, ":")},
		{"a list of numbers", strings.Join(numbers, " ")}, {"a list of numbers", strings.Join(numbers, ",")}, {"a list of numbers", strings.Join(numbers, ", ")},
	} {
		all = append(all, spelling{s.name, []byte(s.text)})
	}
	return all
}

// leak tells in which part of an answer, and how encoded, the expected
// signature or the secret stands; "" if nowhere.
func leak(x *wire.Exchange, mac []byte, keys Keys) string {
	if x.Response == nil {
		return ""
	}
	parts := []struct {
		where string
		text  []byte
	}{{"the status line", []byte(x.Response.Reason)}, {"the body", x.Response.Body}}
	for _, h := range x.Response.Headers {
		parts = append(parts, struct {
			where string
			text  []byte
		}{"the header " + h.Name, []byte(h.Value)})
	}
	forms := spellings(mac)
	for _, p := range parts {
		for _, f := range forms {
			if bytes.Contains(p.text, f.text) {
				return fmt.Sprintf("%s holds the expected signature in %s", p.where, f.name)
			}
		}
		if form, found := keys.Current.In(p.text); found {
			return fmt.Sprintf("%s holds the secret itself (%s)", p.where, form)
		}
	}
	return ""
}

func judgeOracle(t *evidence.Transcript) []evidence.Finding {
	return each("an answer that says nothing of the expected signature", func(t *evidence.Transcript, x *wire.Exchange) (string, string) {
		where := t.Facts["oracle: "+x.Label]
		if where == "" {
			return "", ""
		}
		return where, "An error message or debug output shows the values that were compared. Whoever forges a delivery is told the signature to send."
	})(t)
}

func recordEd25519(s *session) {
	if !s.control() {
		return
	}
	key := *s.Keys.Ed25519
	other, err := signature.NewEd25519Key("another Ed25519 key", s.random)
	s.fail(err)
	s.deliver("signed with Ed25519", fp.WithKeys(key))
	s.deliver("a tampered body under an Ed25519 signature", fp.WithKeys(key), fp.ChangeDigit())
	s.deliver("an Ed25519 signature by another key", fp.WithKeys(other))
	public := other.PublicText()
	s.deliver("an Ed25519 signature by another key, its public key offered in the request", fp.WithKeys(other),
		fp.AddHeader("webhook-public-key", public), fp.AddHeader("x-public-key", public))
}

func recordConfusion(s *session) {
	if !s.control() {
		return
	}
	public := signature.RawKey("the public key as an HMAC secret", s.Keys.Ed25519.Public())
	s.deliver("an HMAC keyed with the public key, labelled v1a", fp.WithKeys(public), fp.Relabel("v1a"))
	s.deliver("an HMAC keyed with the public key, labelled v1", fp.WithKeys(public))
	text := signature.RawKey("the public key's text as an HMAC secret", []byte(s.Keys.Ed25519.PublicText()))
	s.deliver("an HMAC keyed with the public key's text, labelled v1", fp.WithKeys(text))
	s.deliver("an Ed25519 signature labelled v1", fp.WithKeys(*s.Keys.Ed25519), fp.Relabel("v1"))
}

// recordImplementationDefined sends spellings on which right receivers differ.
func recordImplementationDefined(s *session) {
	if !s.control() {
		return
	}
	for _, e := range []struct {
		label  string
		encode func([]byte) string
	}{
		{"the signature in url-safe base64", base64.URLEncoding.EncodeToString},
		{"the signature in base64 without padding", base64.RawStdEncoding.EncodeToString},
		{"the signature in hex", hex.EncodeToString},
		{"the signature in upper-case hex", func(mac []byte) string { return strings.ToUpper(hex.EncodeToString(mac)) }},
	} {
		s.deliver(e.label, reencoded(e.label, e.encode))
	}
	if spec := s.Profile.Signature; spec.ID.In == "header" && spec.ID.Signed && spec.Timestamp.In == "header" {
		s.deliver("an id with a full stop", fp.ID(s.Provider.NewID()+".1"))
		s.deliverDotShifted()
	}
	for _, name := range s.Provider.SignatureHeaders() {
		s.deliver("the line "+name+" twice, with equal values", fp.Alteration{Name: "twice", Stage: fp.AfterSigning, Apply: func(d *fp.Draft) {
			if value, ok := wire.Get(d.Request.Headers, name); ok {
				d.Request.Headers = append(d.Request.Headers, wire.Header{Name: name, Value: value})
			}
		}})
	}
}

// reencoded writes the tokens' bytes in another encoding.
func reencoded(name string, encode func([]byte) string) fp.Alteration {
	return fp.EditTokenText(name, func(text string) string {
		mac, err := hex.DecodeString(text)
		if err != nil {
			mac, err = base64.StdEncoding.DecodeString(text)
		}
		if err != nil {
			return text
		}
		return encode(mac)
	})
}

// deliverDotShifted sends what a signature over "id.timestamp.body" cannot tell
// from another delivery: the id x.T with the body b and the id x with the body
// T.b are signed alike.
func (s *session) deliverDotShifted() {
	d := s.event()
	short := d.ID
	stamp := strconv.FormatInt(s.Clock.Now().Unix(), 10)
	d.ID += "." + stamp
	s.send("a part moved from the id into the body under the same signature", d, fp.Timestamp(stamp), fp.SwapID(short),
		fp.EditSentBody("shifted", func(b []byte) ([]byte, error) { return append([]byte(stamp+"."), b...), nil }))
}

// coveredHeaders lists the scheme's headers that the signature or its check
// rests on: all but an id that is not signed.
func (s *session) coveredHeaders() []string {
	id := s.Profile.Signature.ID
	return slices.DeleteFunc(s.Provider.SignatureHeaders(), func(name string) bool {
		return id.In == "header" && !id.Signed && strings.EqualFold(name, id.Name)
	})
}

// foreignVersions lists labels that the scheme gives no meaning, or another
// one, for the key at hand.
func (s *session) foreignVersions() []string {
	own := "v1"
	if token, err := s.Provider.Scheme().Token(signature.Input{ID: "x", Time: s.Clock.Now()}, s.Keys.Current); err == nil {
		own = token.Version
	}
	return slices.DeleteFunc([]string{"v0", "v2", "V1", "v1a"}, func(v string) bool { return v == own })
}
