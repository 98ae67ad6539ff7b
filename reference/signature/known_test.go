package signature_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

func TestTheDocumentedExampleGetsItsDocumentedSignature(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	r := example(t, s, key(t, s, exampleSecret))
	want := []wire.Header{
		{Name: "webhook-id", Value: exampleID},
		{Name: "webhook-timestamp", Value: "1614265330"},
		{Name: "webhook-signature", Value: exampleSig},
	}
	if fmt.Sprint(r.Headers) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", r.Headers, want)
	}
}

func TestTheEnvelopeSignsTimestampAndBody(t *testing.T) {
	s := scheme(t, signature.DeliveryEnvelope())
	secret := "a secret with its own letters: é"
	r := example(t, s, key(t, s, secret))
	h := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(h, "%d.%s", exampleTime.Unix(), exampleBody)
	want := fmt.Sprintf("t=%d,v1=%x", exampleTime.Unix(), h.Sum(nil))
	if got, _ := wire.Get(r.Headers, "webhook-signature"); got != want || len(r.Headers) != 1 {
		t.Errorf("got  %v\nwant %q alone", r.Headers, want)
	}
}

// peerBodies are bodies that tempt a library to read or to change them.
func peerBodies() map[string][]byte {
	return map[string][]byte{
		"JSON":        []byte(exampleBody),
		"empty":       {},
		"binary":      {0, 0xff, 0xfe, '.', '\n'},
		"with dots":   []byte("1.2.3"),
		"large":       make([]byte, 100_000),
		"percent":     []byte("%d %s %!"),
		"U+2028":      []byte("\u2028\u00e9\U0001f600"),
		"with a BOM":  []byte("\ufeff{}"),
		"CRLF at end": []byte("{}\r\n"),
	}
}

func TestTheOfficialLibraryAgrees(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	k := key(t, s, exampleSecret)
	peer, err := standardwebhooks.NewWebhook(exampleSecret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now() // the peer knows no other clock
	for name, body := range peerBodies() {
		t.Run("it verifies what we sign: "+name, func(t *testing.T) {
			r := signed(t, s, signature.Input{ID: exampleID, Time: now, Body: body}, signature.RawKey("foreign", []byte("x")), k)
			header := http.Header{}
			for _, h := range r.Headers {
				header.Set(h.Name, h.Value)
			}
			if err := peer.Verify(body, header); err != nil {
				t.Error(err)
			}
		})
		t.Run("we verify what it signs: "+name, func(t *testing.T) {
			sig, err := peer.Sign(exampleID, now, body)
			if err != nil {
				t.Fatal(err)
			}
			r := &wire.Request{Body: body, Headers: []wire.Header{
				{Name: "Webhook-Id", Value: exampleID},
				{Name: "Webhook-Timestamp", Value: fmt.Sprint(now.Unix())},
				{Name: "Webhook-Signature", Value: "v1,AAAA " + sig},
			}}
			got, err := s.Verify(r, now, k)
			if err != nil || got != k {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestEd25519IsThatOfTheStandardLibrary(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	seed := sha256.Sum256([]byte("a public seed"))
	private := ed25519.NewKeyFromSeed(seed[:])
	r := example(t, s, key(t, s, "whsk_"+base64.StdEncoding.EncodeToString(seed[:])))
	sig := ed25519.Sign(private, []byte(exampleID+".1614265330."+exampleBody))
	want := "v1a," + base64.StdEncoding.EncodeToString(sig)
	if got, _ := wire.Get(r.Headers, "webhook-signature"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	public := key(t, s, "whpk_"+base64.StdEncoding.EncodeToString(private.Public().(ed25519.PublicKey)))
	if _, err := s.Verify(r, exampleTime, public); err != nil {
		t.Error(err)
	}
}

func TestContentIsPutTogetherAsTheSpecSays(t *testing.T) {
	body := []byte(`{"a":1}`)
	in := signature.Input{ID: "evt_1", Time: exampleTime, Body: body}
	sum := sha256.Sum256(body)
	for name, c := range map[string]struct {
		content []string
		unit    string
		want    string
	}{
		"the raw body":               {[]string{"{raw}"}, "s", `{"a":1}`},
		"the body twice":             {[]string{"{raw}", "{raw}"}, "s", `{"a":1}{"a":1}`},
		"literals around the body":   {[]string{"v0:", "{ts}", ":", "{raw}", ":end"}, "s", `v0:1614265330:{"a":1}:end`},
		"the body's hash":            {[]string{"{id}", ".", "{sha256(raw)}"}, "s", "evt_1." + hex.EncodeToString(sum[:])},
		"the body's CRC-32":          {[]string{"{crc32(raw)}", "|", "{ts}"}, "s", "1444654255|1614265330"},
		"milliseconds":               {[]string{"{ts}", "{raw}"}, "ms", `1614265330000{"a":1}`},
		"a date":                     {[]string{"{ts}"}, "rfc3339", "2021-02-25T15:02:10Z"},
		"a date by its other name":   {[]string{"{ts}"}, "iso8601", "2021-02-25T15:02:10Z"},
		"id and time without a body": {[]string{"{id}", "{ts}"}, "s", "evt_11614265330"},
	} {
		t.Run(name, func(t *testing.T) {
			for mac, sum := range map[string]func(key, content string) []byte{
				signature.HMACSHA256: func(k, c string) []byte {
					h := hmac.New(sha256.New, []byte(k))
					h.Write([]byte(c))
					return h.Sum(nil)
				},
				signature.HMACSHA1: func(k, c string) []byte {
					h := hmac.New(sha1.New, []byte(k))
					h.Write([]byte(c))
					return h.Sum(nil)
				},
			} {
				s := scheme(t, custom(mac, c.unit, c.content))
				got, err := s.MAC(in, key(t, s, "secret"))
				if err != nil {
					t.Fatal(err)
				}
				if want := sum("secret", c.want); !hmac.Equal(got, want) {
					t.Errorf("%s: want the MAC of %q", mac, c.want)
				}
			}
		})
	}
}

// custom is a scheme with id and timestamp in headers.
func custom(mac, unit string, content []string) signature.Spec {
	signsID := false
	for _, c := range content {
		signsID = signsID || c == "{id}"
	}
	return signature.Spec{
		Name:      "custom",
		Signature: signature.Carrier{In: "header", Name: "x-signature", Grammar: "{sig}"},
		Content:   content,
		MAC:       mac,
		Encoding:  "hex",
		Key:       signature.KeyForm{Decode: "utf8"},
		Timestamp: signature.Timestamp{In: "header", Name: "x-time", Unit: unit, Past: 5 * time.Minute, Future: 5 * time.Minute},
		ID:        signature.ID{In: "header", Name: "x-id", Signed: signsID},
	}
}
