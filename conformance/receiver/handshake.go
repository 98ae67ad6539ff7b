package receiver

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	fp "github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/wire"
)

// The request by which a provider validates an endpoint before it delivers to
// it. A profile names at most one.

const (
	handshakeID    = "receiver.acknowledge.handshake"
	handshakeLabel = "the provider's validation request"
	forgedPing     = "a validation request under a wrong signature"
	factHandshake  = "handshake" // what is wrong with the answer, "" if nothing
)

func recordHandshake(s *session) {
	if !s.control() {
		return
	}
	token := fmt.Sprintf("whconform%016x", s.random.Uint64())
	switch kind := s.Profile.Handshake; kind {
	case "slack_challenge":
		x := s.validate(map[string]any{"type": "url_verification", "token": "unused", "challenge": token})
		s.handshakeFact(&x, echoes(&x, token), "the challenge is not in the answer")
	case "zoom_crc":
		x := s.validate(map[string]any{"event": "endpoint.url_validation", "event_ts": s.Clock.Now().UnixMilli(), "payload": map[string]any{"plainToken": token}})
		s.handshakeFact(&x, s.answersCRC(&x, token), "the answer is not {plainToken, encryptedToken} with encryptedToken = HMAC-SHA256(secret, plainToken) in hex")
	case "discord_ping":
		x := s.validate(map[string]any{"type": 1})
		var pong struct{ Type int }
		ok := x.Response != nil && json.Unmarshal(x.Response.Body, &pong) == nil && pong.Type == 1
		s.handshakeFact(&x, ok, `the answer is not {"type":1}`)
	case "xero_itr":
		x := s.deliver(handshakeLabel)
		s.handshakeFact(&x, x.Response != nil && x.Response.Status == http.StatusOK, "an authentic validation request wants exactly 200")
		s.deliver(forgedPing, fp.WithKeys(s.Keys.Wrong))
	case "head", "get":
		x := s.deliver(handshakeLabel, fp.Method(strings.ToUpper(kind)), fp.DropSignatureHeaders(), fp.BodyBytes(nil))
		s.handshakeFact(&x, x.OK(), "the validation request is not answered 2xx")
	case "meta_hub":
		s.skip(handshakeID, evidence.NotObservable, "the verify token that the endpoint expects is not known to the suite")
	default:
		s.skip(handshakeID, evidence.NotApplicable, "the profile asks for no handshake")
	}
}

// validate sends a signed validation request.
func (s *session) validate(body map[string]any) wire.Exchange {
	text, err := json.Marshal(body)
	s.fail(err)
	return s.deliver(handshakeLabel, fp.BodyBytes(text))
}

func (s *session) handshakeFact(x *wire.Exchange, ok bool, wrong string) {
	switch {
	case !x.OK():
		s.rec.Fact(factHandshake, suite.Came(x))
	case !ok:
		s.rec.Fact(factHandshake, wrong)
	}
}

func echoes(x *wire.Exchange, token string) bool {
	return x.Response != nil && bytes.Contains(x.Response.Body, []byte(token))
}

// answersCRC compares with the expected value here, while the secret is at
// hand: the transcript keeps only whether it was right.
func (s *session) answersCRC(x *wire.Exchange, token string) bool {
	var answer struct{ PlainToken, EncryptedToken string }
	if x.Response == nil || json.Unmarshal(x.Response.Body, &answer) != nil {
		return false
	}
	mac := hmac.New(sha256.New, []byte(s.Keys.Texts.Current))
	mac.Write([]byte(token))
	return answer.PlainToken == token && answer.EncryptedToken == hex.EncodeToString(mac.Sum(nil))
}

func judgeHandshake(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	if wrong := t.Facts[factHandshake]; wrong != "" {
		findings = append(findings, evidence.Finding{
			Sent: handshakeLabel, Expected: "the answer that the profile describes", Got: wrong,
			Cause: "The endpoint treats the validation request as an event. The provider will not save the URL.", Exchanges: []string{handshakeLabel},
		})
	}
	if x := t.Find(forgedPing); x != nil && !(x.Response != nil && isRejection(t, x.Response.Status)) {
		findings = append(findings, evidence.Finding{
			Sent: forgedPing, Expected: "exactly " + t.Facts[evidence.FactRejections], Got: suite.Came(x),
			Cause: "The provider sends forged requests on purpose before it trusts the endpoint.", Exchanges: []string{forgedPing},
		})
	}
	return findings
}
