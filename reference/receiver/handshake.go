package receiver

import (
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"

	"github.com/whconform/whconform/reference/signature"
)

// The handshakes by which providers validate an address before they deliver to
// it: the values of Profile.Handshake. Two kinds: a request that is not signed
// (GET, HEAD), and a signed delivery that asks for something back. Xero's
// (xero_itr) needs nothing here: it wants 200 for what verifies and 401 for what
// does not, as every delivery gets.
const (
	slackChallenge = "slack_challenge" // echo "challenge" of a url_verification
	zoomCRC        = "zoom_crc"        // return the HMAC of "plainToken"
	metaHub        = "meta_hub"        // echo hub.challenge of a GET
	discordPing    = "discord_ping"    // answer a ping with a pong
	headProbe      = "head"            // 200 to a HEAD
	getProbe       = "get"             // 200 to a GET
)

// handshake answers the validation requests of one profile.
type handshake struct {
	kind        string
	verifyToken string
	crc         signature.Scheme // MAC over the bare text, for zoom_crc
}

func newHandshake(c Config) (*handshake, error) {
	h := &handshake{kind: c.Profile.Handshake, verifyToken: c.VerifyToken}
	if h.kind != zoomCRC {
		return h, nil
	}
	var err error
	h.crc, err = signature.New(signature.Spec{
		Name:      "zoom-crc",
		Signature: signature.Carrier{In: "header", Name: "encryptedToken", Grammar: "{sig}"},
		Content:   []string{"{raw}"},
		MAC:       signature.HMACSHA256,
		Encoding:  "hex",
		Key:       signature.KeyForm{Decode: "utf8"},
		Timestamp: signature.Timestamp{In: "none"},
		ID:        signature.ID{In: "none"},
	})
	return h, err
}

// allow is the Allow header of a 405.
func (h *handshake) allow() string {
	switch h.kind {
	case metaHub, getProbe:
		return "GET, POST"
	case headProbe:
		return "HEAD, POST"
	}
	return http.MethodPost
}

// unsigned answers a validation request that carries no signature, and tells
// whether req was one.
func (h *handshake) unsigned(w http.ResponseWriter, req *http.Request) bool {
	switch {
	case h.kind == headProbe && req.Method == http.MethodHead,
		h.kind == getProbe && req.Method == http.MethodGet:
		w.WriteHeader(http.StatusOK)
	case h.kind == metaHub && req.Method == http.MethodGet:
		h.hub(w, req)
	default:
		return false
	}
	return true
}

// hub echoes the challenge of a Meta subscription.
func (h *handshake) hub(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	token := q.Get("hub.verify_token")
	if q.Get("hub.mode") != "subscribe" || q.Get("hub.challenge") == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if h.verifyToken != "" && subtle.ConstantTimeCompare([]byte(token), []byte(h.verifyToken)) != 1 {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	echo(w, q.Get("hub.challenge"))
}

// validation holds the fields of the signed handshakes. Type is text for Slack
// and a number for Discord.
type validation struct {
	Type      json.RawMessage `json:"type"`
	Challenge string          `json:"challenge"`
	Event     string          `json:"event"`
	Payload   struct {
		PlainToken string `json:"plainToken"`
	} `json:"payload"`
}

// signed answers a validation request that came as a signed delivery, and tells
// whether body was one. It is asked only about authentic bodies. Anything else,
// a body that is no JSON included, is an event.
func (h *handshake) signed(w http.ResponseWriter, key signature.Key, body []byte) bool {
	if h.kind != slackChallenge && h.kind != zoomCRC && h.kind != discordPing {
		return false
	}
	var v validation
	if json.Unmarshal(body, &v) != nil {
		return false
	}
	switch {
	case h.kind == slackChallenge && string(v.Type) == `"url_verification"`:
		echo(w, v.Challenge)
	case h.kind == zoomCRC && v.Event == "endpoint.url_validation":
		h.pledge(w, key, v.Payload.PlainToken)
	case h.kind == discordPing && string(v.Type) == "1":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":1}`)
	default:
		return false
	}
	return true
}

// pledge proves to Zoom that this endpoint knows the secret. A signature over a
// text that the other side chose is safe only because the request was verified
// first: nobody but Zoom can ask.
func (h *handshake) pledge(w http.ResponseWriter, key signature.Key, plain string) {
	mac, err := h.crc.MAC(signature.Input{Body: []byte(plain)}, key)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"plainToken": plain, "encryptedToken": hex.EncodeToString(mac)})
}

// echo answers with text that the other side chose: as plain text and nothing
// else, or a browser might run it.
func echo(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = io.WriteString(w, text)
}
