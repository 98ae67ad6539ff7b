package signature_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/whconform/whconform/reference/signature"
)

func TestKeysAreReadStrictly(t *testing.T) {
	standard := scheme(t, signature.StandardWebhooks())
	plain := scheme(t, signature.DeliveryEnvelope())
	seed := []byte("a seed of exactly thirty-two by.")
	private := ed25519.NewKeyFromSeed(seed)
	mixed := append(bytes.Clone(seed), make([]byte, 32)...)
	bytesOf := func(n int) string { return std(bytes.Repeat([]byte{0xfb}, n)) }
	for _, c := range []struct {
		name    string
		s       signature.Scheme
		text    string
		problem string // empty: the key is good
		kind    signature.Kind
	}{
		{"the prefix and 24 bytes", standard, "whsec_" + bytesOf(24), "", signature.HMAC},
		{"the prefix and 64 bytes", standard, "whsec_" + bytesOf(64), "", signature.HMAC},
		{"no prefix, as the official libraries read it", standard, bytesOf(32), "", signature.HMAC},
		{"nothing", standard, "", signature.KeyEmpty, ""},
		{"the prefix alone", standard, "whsec_", signature.KeyEmpty, ""},
		{"23 bytes", standard, "whsec_" + bytesOf(23), signature.KeyTooShort, ""},
		{"65 bytes", standard, "whsec_" + bytesOf(65), signature.KeyTooLong, ""},
		{"words", standard, "changeme", signature.KeyTooShort, ""},
		{"words that are no base64", standard, "not a secret", signature.KeyEncoding, ""},
		{"base64 without padding", standard, "whsec_" + strings.TrimRight(bytesOf(25), "="), signature.KeyEncoding, ""},
		{"url-safe base64", standard, "whsec_" + strings.ReplaceAll(bytesOf(24), "+", "-"), signature.KeyEncoding, ""},
		{"a line break at the end", standard, "whsec_" + bytesOf(24) + "\n", signature.KeyEncoding, ""},
		{"a line break inside", standard, "whsec_" + bytesOf(24)[:8] + "\r\n" + bytesOf(24)[8:], signature.KeyEncoding, ""},
		{"trailing bits", standard, "whsec_" + strings.Repeat("A", 33) + "B==", signature.KeyEncoding, ""},
		{"a blank before", standard, " whsec_" + bytesOf(24), signature.KeyEncoding, ""},
		{"the prefix twice", standard, "whsec_whsec_" + bytesOf(24), signature.KeyEncoding, ""},
		{"an Ed25519 seed", standard, "whsk_" + std(seed), "", signature.Ed25519Private},
		{"an Ed25519 private key of 64 bytes", standard, "whsk_" + std(private), "", signature.Ed25519Private},
		{"halves that do not belong together", standard, "whsk_" + std(mixed), signature.KeyMismatch, ""},
		{"an Ed25519 private key of 63 bytes", standard, "whsk_" + std(private[:63]), signature.KeyTooLong, ""},
		{"an Ed25519 private key of 31 bytes", standard, "whsk_" + std(private[:31]), signature.KeyTooShort, ""},
		{"an Ed25519 private key of none", standard, "whsk_", signature.KeyEmpty, ""},
		{"an Ed25519 private key that is no base64", standard, "whsk_%%%", signature.KeyEncoding, ""},
		{"an Ed25519 public key", standard, "whpk_" + std(private[32:]), "", signature.Ed25519Public},
		{"an Ed25519 public key of 64 bytes", standard, "whpk_" + std(private), signature.KeyTooLong, ""},
		{"an Ed25519 public key of 16 bytes", standard, "whpk_" + std(private[:16]), signature.KeyTooShort, ""},
		{"any text", plain, "whsec_x", "", signature.HMAC},
		{"no text", plain, "", signature.KeyEmpty, ""},
		{"a file given by mistake", plain, strings.Repeat("x", 4097), signature.KeyTooLong, ""},
		{"hex of a public key", discord(t), hex.EncodeToString(private[32:]), "", signature.Ed25519Public},
		{"hex of a private key", discord(t), hex.EncodeToString(private), "", signature.Ed25519Private},
		{"hex that is none", discord(t), "xyz", signature.KeyEncoding, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, err := c.s.Key("billing", c.text)
			if c.problem == "" {
				if err != nil || k.Kind() != c.kind || k.Label != "billing" || k.IsZero() {
					t.Fatalf("got %v (%s), %v", k, k.Kind(), err)
				}
				return
			}
			var bad *signature.KeyError
			if !errors.As(err, &bad) || bad.Problem != c.problem || bad.Label != "billing" || bad.Want == "" {
				t.Fatalf("got %v, want a KeyError: %s", err, c.problem)
			}
			if !k.IsZero() {
				t.Error("a key came with the error")
			}
			if secret := strings.TrimSpace(c.text); len(secret) > 8 && strings.Contains(err.Error(), secret) {
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
}

func discord(t *testing.T) signature.Scheme {
	spec := custom(signature.Ed25519, "s", []string{"{ts}", "{raw}"})
	spec.Key.Decode = "hex"
	return scheme(t, spec)
}

func TestBothFormsOfAPrivateKeyAreOneKey(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	seed := []byte("a seed of exactly thirty-two by.")
	short := key(t, s, "whsk_"+std(seed))
	long := key(t, s, "whsk_"+std(ed25519.NewKeyFromSeed(seed)))
	if !bytes.Equal(short.Public(), long.Public()) || short.PublicText() != long.PublicText() {
		t.Error("two public halves")
	}
	if _, err := s.Verify(example(t, s, short), exampleTime, long); err != nil {
		t.Error(err)
	}
	public, ok := short.PublicKey()
	if !ok || public.Kind() != signature.Ed25519Public || public.Label != short.Label {
		t.Errorf("public half: %v, %v", public, ok)
	}
	again := key(t, s, short.PublicText())
	if !bytes.Equal(again.Public(), short.Public()) {
		t.Error("the public half's text reads as another key")
	}
	for _, other := range []signature.Key{key(t, s, exampleSecret), {}} {
		if _, ok := other.PublicKey(); ok || other.Public() != nil || other.PublicText() != "" {
			t.Errorf("%v has a public half", other)
		}
	}
}

func TestNoFormatterShowsASecret(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	k := key(t, s, exampleSecret)
	type hidden struct {
		Shown signature.Key
		inner signature.Key
		ptr   *signature.Key
		list  []signature.Key
	}
	h := hidden{k, k, &k, []signature.Key{k}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%p", "%08.3f"} {
		fmt.Fprintf(&out, verb+"\n", k)
		fmt.Fprintf(&out, verb+"\n", &k)
		fmt.Fprintf(&out, verb+"\n", h)
		fmt.Fprintf(&out, verb+"\n", &h)
		fmt.Fprintf(&out, verb+"\n", []any{k, map[string]signature.Key{"k": k}})
	}
	fmt.Fprintln(&out, k, k.String())
	for _, v := range []any{k, &k, h, map[string]any{"k": k}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("signing", "key", k, "keys", []signature.Key{k}, "pointer", &k)
	}
	if form, found := k.In(out.Bytes()); found {
		t.Errorf("the secret stands in the output as %s:\n%s", form, out.String())
	}
	if !strings.Contains(out.String(), "example") {
		t.Errorf("the label is not shown:\n%s", out.String())
	}
	if got := fmt.Sprintf("%v %v", k.Zero(), signature.Key{}); !strings.Contains(got, "example") {
		t.Errorf("got %s", got)
	}
}

func TestASecretIsFoundInEveryForm(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	raw := []byte("\xfb\xff\xfe secret of thirty bytes \x00")
	k := key(t, s, "whsec_"+std(raw))
	url64 := base64.URLEncoding.EncodeToString(raw)
	for _, c := range []struct {
		name, text, form string
	}{
		{"as it was given", "secret=whsec_" + std(raw), "text"},
		{"without its prefix", "secret=" + std(raw) + "&", "base64"},
		{"the raw bytes", "x" + string(raw) + "x", "raw"},
		{"hex", "<" + hex.EncodeToString(raw) + ">", "hex"},
		{"upper-case hex", strings.ToUpper(hex.EncodeToString(raw)), "hex"},
		{"url-safe base64", url64, "base64"},
		{"base64 without padding", strings.TrimRight(std(raw), "="), "base64"},
		{"inside longer base64", std([]byte("a" + string(raw) + "bc")), "base64"},
		{"inside longer base64, shifted", std([]byte("ab" + string(raw) + "c")), "base64"},
		{"in a URL", "?k=" + url.QueryEscape("whsec_"+std(raw)), "percent-encoded"},
		{"cut off in the middle", "answer: whsec_" + std(raw)[:20], "text"},
		{"the first half of its bytes", string(raw[:15]), "raw"},
		{"eleven bytes of it", string(raw[:11]), ""},
		{"another secret", exampleSecret, ""},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			form, found := k.In([]byte(c.text))
			if found != (c.form != "") || form != c.form {
				t.Errorf("got %q, %v; want %q", form, found, c.form)
			}
			redacted := k.Redact([]byte(c.text))
			if form, found := k.In(redacted); found {
				t.Errorf("still there as %s: %q", form, redacted)
			}
			if c.form == "" && string(redacted) != c.text {
				t.Errorf("changed to %q", redacted)
			}
		})
	}
}

func TestWhatIsNoSecretIsNotFound(t *testing.T) {
	private, _ := signature.NewEd25519Key("ours", newRandom(4))
	public, _ := private.PublicKey()
	text := []byte("key: " + private.PublicText() + " test undefined")
	for name, k := range map[string]signature.Key{
		"a public key":                     public,
		"a private key by its public half": private,
		"an empty key":                     signature.RawKey("empty", nil),
		"a short word":                     signature.RawKey("weak", []byte("test")),
		"no key":                           {},
	} {
		if form, found := k.In(text); found {
			t.Errorf("%s: found as %s", name, form)
		}
	}
	if _, found := private.In([]byte(hex.EncodeToString(private.Public()))); found {
		t.Error("the public half counts as the secret")
	}
}

func TestRawKeysSignWithAnyBytes(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	for _, raw := range []string{"", "undefined", "whsec_", strings.Repeat("k", 200)} {
		k := signature.RawKey("weak", []byte(raw))
		if k.IsZero() {
			t.Errorf("%q: the zero key", raw)
		}
		if _, err := s.Verify(example(t, s, k), exampleTime, k); err != nil {
			t.Errorf("%q: %v", raw, err)
		}
	}
	bytes := []byte("a key that its maker changes later")
	k := signature.RawKey("mine", bytes)
	r := example(t, s, k)
	bytes[0]++
	if _, err := s.Verify(r, exampleTime, signature.RawKey("same", []byte("a key that its maker changes later"))); err != nil {
		t.Error("the key follows the caller's slice")
	}
	if _, err := s.Sign(signature.Input{}, signature.Key{Label: "nothing"}); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("the zero key: %v", err)
	}
}

func TestNewSecretsAreReadBack(t *testing.T) {
	for _, spec := range []signature.Spec{
		signature.StandardWebhooks(), signature.DeliveryEnvelope(),
		func() signature.Spec {
			s := custom(signature.Ed25519, "s", []string{"{raw}"})
			s.Key.Decode = "hex"
			return s
		}(),
	} {
		s := scheme(t, spec)
		a, err := signature.NewKey(s, "new", newRandom(5))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := signature.NewKey(s, "new", newRandom(6))
		r := example(t, s, a)
		if _, err := s.Verify(r, exampleTime, a); err != nil {
			t.Errorf("%s: %v", spec.Name, err)
		}
		_, err = s.Verify(r, exampleTime, b)
		wantRule(t, err, signature.RuleNoMatch)
	}
	spec := signature.StandardWebhooks()
	text, err := spec.NewSecret(newRandom(7))
	if err != nil || !strings.HasPrefix(text, "whsec_") || len(text) != len("whsec_")+44 {
		t.Errorf("got a text of %d characters, %v", len(text), err)
	}
	if _, err := spec.NewSecret(strings.NewReader("too few")); err == nil {
		t.Error("a secret from too few bytes")
	}
	spec.Key.Decode = "pem"
	if _, err := spec.NewSecret(newRandom(8)); err == nil {
		t.Error("a PEM key out of nothing")
	}
}
