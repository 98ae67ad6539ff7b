package vectors_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/whconform/whconform/vectors"
)

// This file is a second opinion on the vectors: the schemes written down once
// more, strict, slow and with Go's own cryptography, and nothing of the
// generator or of the packages that the vectors are for.

// model is one configured key: HMAC bytes, or an Ed25519 key.
type model struct {
	mac     []byte
	public  ed25519.PublicKey
	private ed25519.PrivateKey
}

// readKey reads the text of a key by the rules of the profile.
func readKey(profile, text string) (model, error) {
	if profile == "delivery-envelope" {
		if text == "" {
			return model{}, errors.New("key-empty")
		}
		return model{mac: []byte(text)}, nil
	}
	kind, encoded, _ := strings.Cut(text, "_")
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	switch {
	case err != nil || strings.ContainsAny(encoded, "\r\n"):
		return model{}, errors.New("key-encoding")
	case kind == "whsec" && len(raw) >= 24 && len(raw) <= 64:
		return model{mac: raw}, nil
	case kind == "whpk" && len(raw) == ed25519.PublicKeySize:
		return model{public: raw}, nil
	case kind == "whsk" && len(raw) == ed25519.SeedSize:
		return private(ed25519.NewKeyFromSeed(raw)), nil
	case kind == "whsk" && len(raw) == ed25519.PrivateKeySize:
		if k := ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize]); k.Equal(ed25519.PrivateKey(raw)) {
			return private(k), nil
		}
		return model{}, errors.New("key-mismatch")
	}
	return model{}, errors.New("key-length or key-prefix")
}

func private(k ed25519.PrivateKey) model {
	return model{private: k, public: k.Public().(ed25519.PublicKey)}
}

func readKeys(t *testing.T, profile string, keys []vectors.Key) []model {
	t.Helper()
	var out []model
	for _, k := range keys {
		m, err := readKey(profile, k.Secret)
		if err != nil {
			t.Fatalf("key %s: %v", k.ID, err)
		}
		out = append(out, m)
	}
	return out
}

// sum is the symmetric MAC over content.
func (m model) sum(content []byte) []byte {
	h := hmac.New(sha256.New, m.mac)
	h.Write(content)
	return h.Sum(nil)
}

// token is the signature over content as it stands in the header.
func (m model) token(profile string, content []byte) string {
	switch {
	case profile == "delivery-envelope":
		return "v1=" + hex.EncodeToString(m.sum(content))
	case m.private != nil:
		return "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(m.private, content))
	}
	return "v1," + base64.StdEncoding.EncodeToString(m.sum(content))
}

// matches tells whether a token is this key's signature over content.
func (m model) matches(profile, token string, content []byte) bool {
	if m.public == nil {
		return token == m.token(profile, content)
	}
	encoded, labelled := strings.CutPrefix(token, "v1a,")
	sig, err := base64.StdEncoding.Strict().DecodeString(encoded)
	return labelled && err == nil && ed25519.Verify(m.public, content, sig)
}

// delivery is what a request's headers say.
type delivery struct {
	id, ts string
	tokens []string
}

// one is the value of a header that stands exactly once and is not empty.
func one(headers []vectors.Header, name string) (string, error) {
	var values []string
	for _, h := range headers {
		if strings.EqualFold(h.Name(), name) {
			values = append(values, h.Value())
		}
	}
	if len(values) != 1 || values[0] == "" {
		return "", fmt.Errorf("%d lines of %s", len(values), name)
	}
	return values[0], nil
}

// read takes the headers of a request apart.
func read(profile string, headers []vectors.Header) (d delivery, err error) {
	sig, err := one(headers, "webhook-signature")
	if err != nil {
		return d, err
	}
	if profile != "delivery-envelope" {
		id, err1 := one(headers, "webhook-id")
		ts, err2 := one(headers, "webhook-timestamp")
		return delivery{id, ts, strings.Split(sig, " ")}, errors.Join(err1, err2)
	}
	parts := strings.Split(sig, ",")
	ts, ok := strings.CutPrefix(parts[0], "t=")
	if !ok || slices.ContainsFunc(parts[1:], func(p string) bool { return strings.HasPrefix(p, "t=") }) {
		return d, errors.New("want one t=, in front")
	}
	return delivery{ts: ts, tokens: parts[1:]}, nil
}

// verify is the whole of a receiver's signature check.
func verify(f *vectors.File, keys []model, v vectors.Test) error {
	d, err := read(f.Profile, v.Headers)
	if err != nil {
		return err
	}
	ts, err := strconv.ParseInt(d.ts, 10, 64)
	if err != nil || strconv.FormatInt(ts, 10) != d.ts {
		return errors.New("malformed timestamp")
	}
	if age := v.Now - ts; age > f.Tolerance || age < -f.Tolerance {
		return errors.New("outside the tolerance")
	}
	content := []byte(d.ts + "." + string(v.Inputs.Body))
	if f.Profile != "delivery-envelope" {
		content = append([]byte(d.id+"."), content...)
	}
	for _, token := range d.tokens {
		if slices.ContainsFunc(keys, func(m model) bool { return m.matches(f.Profile, token, content) }) {
			return nil
		}
	}
	return errors.New("no signature matches")
}

func TestASecondImplementationVerifiesTheValidAndRefusesTheInvalid(t *testing.T) {
	for _, f := range all(t) {
		if f.Topic != vectors.TopicVerify {
			continue
		}
		f.Each(func(g vectors.Group, v vectors.Test) {
			err := verify(f, readKeys(t, f.Profile, g.Keys), v)
			if v.Result == vectors.Valid && err != nil {
				t.Errorf("%s is valid, refused: %v", v.ID, err)
			}
			if v.Result == vectors.Invalid && err == nil {
				t.Errorf("%s is invalid, accepted", v.ID)
			}
		})
	}
}

// A stale or malformed timestamp under a wrong signature would prove nothing: a
// verifier that never looks at the time must accept these.
func TestBadTimestampsStandUnderRightSignatures(t *testing.T) {
	for _, f := range all(t) {
		f.Each(func(g vectors.Group, v vectors.Test) {
			timed := v.Rule == "stale" || v.Rule == "future" || v.Rule == "malformed-timestamp"
			if !timed || g.Name == "repeated-header" {
				return
			}
			d, err := read(f.Profile, v.Headers)
			if err != nil {
				t.Errorf("%s: %v", v.ID, err)
				return
			}
			key := readKeys(t, f.Profile, g.Keys)[0]
			if len(d.tokens) != 1 || !key.matches(f.Profile, d.tokens[0], v.SignedContent) {
				t.Errorf("%s: its signature is not right either", v.ID)
			}
		})
	}
}

func TestASecondImplementationWritesTheSameSignatures(t *testing.T) {
	for _, f := range all(t) {
		if f.Topic != vectors.TopicSign {
			continue
		}
		f.Each(func(g vectors.Group, v vectors.Test) {
			var tokens []string
			for _, m := range readKeys(t, f.Profile, g.Keys) {
				tokens = append(tokens, m.token(f.Profile, v.SignedContent))
			}
			want := []vectors.Header{
				{"webhook-id", v.Inputs.ID},
				{"webhook-timestamp", v.Inputs.Timestamp},
				{"webhook-signature", strings.Join(tokens, " ")},
			}
			if f.Profile == "delivery-envelope" {
				want = []vectors.Header{{"Webhook-Signature", "t=" + v.Inputs.Timestamp + "," + strings.Join(tokens, ",")}}
			}
			if !slices.Equal(v.Headers, want) {
				t.Errorf("%s: headers %q, want %q", v.ID, v.Headers, want)
			}
		})
	}
}

func TestASecondImplementationReadsTheValidKeysAndRefusesTheInvalid(t *testing.T) {
	for _, f := range all(t) {
		if f.Topic != vectors.TopicKeys {
			continue
		}
		f.Each(func(_ vectors.Group, v vectors.Test) {
			m, err := readKey(f.Profile, v.Inputs.Secret)
			switch {
			case v.Result == vectors.Invalid && err == nil:
				t.Errorf("%s is invalid, read", v.ID)
			case v.Result == vectors.Valid && err != nil:
				t.Errorf("%s is valid, refused: %v", v.ID, err)
			case v.Result == vectors.Valid:
				checkMaterial(t, v, m)
				if err := verify(f, []model{m}, v); err != nil {
					t.Errorf("%s: its delivery does not verify: %v", v.ID, err)
				}
			}
		})
	}
}

// checkMaterial compares what the vector says of a key with what was read.
func checkMaterial(t *testing.T, v vectors.Test, m model) {
	t.Helper()
	var want vectors.Material
	switch {
	case m.private != nil:
		want = vectors.Material{Kind: "ed25519-private", Raw: m.private.Seed(), Public: m.public}
	case m.public != nil:
		want = vectors.Material{Kind: "ed25519-public", Raw: m.public, Public: m.public}
	default:
		want = vectors.Material{Kind: "hmac", Raw: m.mac}
	}
	got := v.Key
	if got.Kind != want.Kind || string(got.Raw) != string(want.Raw) || string(got.Public) != string(want.Public) {
		t.Errorf("%s: key %+v, want %+v", v.ID, *got, want)
	}
}

// The open class must hold true signatures, else it would prove nothing: with
// the key as the vector reads it, the MAC over the signed content stands in the
// headers, in one of the spellings that the class is about.
func TestOpenKeyFormsCarryADeliveryByTheKeyTheyStandFor(t *testing.T) {
	for _, f := range all(t) {
		f.Each(func(_ vectors.Group, v vectors.Test) {
			if f.Topic != vectors.TopicKeys || v.Result != vectors.Open || v.Key == nil {
				return
			}
			if err := verify(f, []model{{mac: v.Key.Raw}}, v); err != nil {
				t.Errorf("%s: %v", v.ID, err)
			}
		})
	}
}
