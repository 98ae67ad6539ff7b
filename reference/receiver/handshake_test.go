package receiver

import (
	"strings"
	"testing"

	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
)

// zoom signs v0:ts:raw in hex, as its profile does.
func zoom() *profile.Profile {
	return &profile.Profile{Name: "zoom", Handshake: zoomCRC, Signature: signature.Spec{
		Name:      "zoom",
		Signature: signature.Carrier{In: "header", Name: "x-zm-signature", Grammar: "v0={sig}"},
		Content:   []string{"v0:", "{ts}", ":", "{raw}"},
		MAC:       signature.HMACSHA256,
		Encoding:  "hex",
		Key:       signature.KeyForm{Decode: "utf8"},
		Timestamp: signature.Timestamp{In: "header", Name: "x-zm-request-timestamp", Unit: "s"},
		ID:        signature.ID{In: "none"},
	}}
}

func with(handshake string) *profile.Profile {
	p := standard()
	p.Handshake = handshake
	return p
}

func TestUnsignedHandshakes(t *testing.T) {
	const hub = "?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=letmein"
	cases := []struct {
		name, handshake, method, query, token string
		status                                int
		body, allow                           string
	}{
		{"HEAD where the provider probes with it", headProbe, "HEAD", "", "", 200, "", ""},
		{"HEAD elsewhere", "none", "HEAD", "", "", 405, "", "POST"},
		{"GET where the provider probes with it", getProbe, "GET", "", "", 200, "", ""},
		{"PUT there", getProbe, "PUT", "", "", 405, "", "GET, POST"},
		{"a hub challenge is echoed", metaHub, "GET", hub, "", 200, "1158201444", ""},
		{"a hub challenge under the right token", metaHub, "GET", hub, "letmein", 200, "1158201444", ""},
		{"a hub challenge under another token", metaHub, "GET", hub, "other", 403, "", ""},
		{"a GET that is no challenge", metaHub, "GET", "", "", 400, "", ""},
		{"a hub challenge elsewhere", "none", "GET", hub, "", 405, "", "POST"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, with(c.handshake), func(config *Config) { config.VerifyToken = c.token })
			k := g.dial()
			k.send(strings.Replace(head(c.method, nil), "/hooks", "/hooks"+c.query, 1) + "Connection: close\r\n\r\n")
			answer := make([]byte, 1024)
			n, _ := k.r.Read(answer) // a HEAD has a Content-Length without a body, so the text is looked at
			text := string(answer[:n])
			if !strings.HasPrefix(text, "HTTP/1.1 "+map[int]string{200: "200", 400: "400", 403: "403", 405: "405"}[c.status]) {
				t.Fatalf("answered %q, want %d", text, c.status)
			}
			if _, body, _ := strings.Cut(text, "\r\n\r\n"); body != c.body {
				t.Errorf("the body is %q, want %q", body, c.body)
			}
			if c.allow != "" && !strings.Contains(text, "Allow: "+c.allow+"\r\n") {
				t.Errorf("want Allow: %s in %q", c.allow, text)
			}
		})
	}
}

func TestSignedHandshakes(t *testing.T) {
	cases := []struct {
		name    string
		profile *profile.Profile
		body    string
		forged  bool
		status  int
		answer  string // "" with stored: taken as an event
		stored  int
	}{
		{"Slack's challenge is echoed", with(slackChallenge), `{"type":"url_verification","challenge":"3eZbrw1a"}`, false, 200, "3eZbrw1a", 0},
		{"a forged challenge is not", with(slackChallenge), `{"type":"url_verification","challenge":"3eZbrw1a"}`, true, 401, "", 0},
		{"Slack's events are events", with(slackChallenge), `{"type":"event_callback","challenge":"x"}`, false, 200, "", 1},
		{"a body that is no JSON is an event", with(slackChallenge), `{"type":`, false, 200, "", 1},
		{"the challenge of another provider is an event", standard(), `{"type":"url_verification","challenge":"x"}`, false, 200, "", 1},
		{"a ping of Discord is answered", with(discordPing), `{"type":1}`, false, 200, `{"type":1}`, 0},
		{"an interaction of Discord is an event", with(discordPing), `{"type":2}`, false, 200, "", 1},
		{"a forged validation of Zoom proves nothing", zoom(), `{"event":"endpoint.url_validation","payload":{"plainToken":"q"}}`, true, 401, "", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, c.profile, nil)
			headers := g.headers("msg_1", c.body)
			body := c.body
			if c.forged {
				body = " " + body
			}
			k := g.dial()
			k.send(whole("POST", headers, body))
			resp, answer := k.answer()
			if resp.StatusCode != c.status || answer != c.answer || g.store.Len() != c.stored {
				t.Errorf("answered %d %q with %d stored, want %d %q with %d", resp.StatusCode, answer, g.store.Len(), c.status, c.answer, c.stored)
			}
		})
	}
}

func TestZoomsValidationIsAnsweredWithTheHMACOfItsToken(t *testing.T) {
	g := newRig(t, zoom(), func(c *Config) {
		key, err := mustScheme(t, zoom()).Key("current", "zoom-secret-token")
		if err != nil {
			t.Fatal(err)
		}
		c.Keys = []signature.Key{key}
	})
	const body = `{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"}}`
	k := g.dial()
	k.send(whole("POST", g.headers("", body, g.receiver.keys[0]), body))
	resp, answer := k.answer()
	// printf qgg8vlvZRS6UYooatFL8Aw | openssl dgst -sha256 -hmac zoom-secret-token
	const want = `{"encryptedToken":"d9e0d764a78494688ba3f2d5c0ed4ca311394b4834d959759213424d2df961e3","plainToken":"qgg8vlvZRS6UYooatFL8Aw"}` + "\n"
	if resp.StatusCode != 200 || answer != want || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("answered %d %s, want %s", resp.StatusCode, answer, want)
	}
}

func mustScheme(t *testing.T, p *profile.Profile) signature.Scheme {
	t.Helper()
	s, err := signature.New(p.Signature)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
