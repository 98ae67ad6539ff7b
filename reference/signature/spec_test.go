package signature_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

func TestASpecIsCheckedFieldByField(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *signature.Spec)
		field  string
	}{
		{"no algorithm", func(s *signature.Spec) { s.MAC = "" }, "mac"},
		{"an unknown encoding", func(s *signature.Spec) { s.Encoding = "base32" }, "encoding"},
		{"nothing signed", func(s *signature.Spec) { s.Content = nil }, "content"},
		{"an unknown atom", func(s *signature.Spec) { s.Content[0] = "{body}" }, "content[0]"},
		{"an empty literal", func(s *signature.Spec) { s.Content[1] = "" }, "content[1]"},
		{"two atoms in one piece", func(s *signature.Spec) { s.Content[0] = "{id}.{ts}" }, "content[0]"},
		{"a signature nowhere", func(s *signature.Spec) { s.Signature.In = "query" }, "signature.in"},
		{"a header name with a blank", func(s *signature.Spec) { s.Signature.Name = "x y" }, "signature.name"},
		{"no header name", func(s *signature.Spec) { s.ID.Name = "" }, "id.name"},
		{"a grammar without the signature", func(s *signature.Spec) { s.Signature.Grammar = "v1" }, "signature.grammar"},
		{"a grammar with two signatures", func(s *signature.Spec) { s.Signature.Grammar = "v1,{sig} v1,{sig}" }, "signature.grammar"},
		{"a label without a separator", func(s *signature.Spec) { s.Signature.Grammar, s.Signature.Repeat = "v1{sig}", "" }, "signature.grammar"},
		{"text after the signature", func(s *signature.Spec) { s.Signature.Grammar = "v1,{sig};" }, "signature.grammar"},
		{"a timestamp in the grammar and in a header", func(s *signature.Spec) { s.Signature.Grammar = "t={ts} v1,{sig}" }, "signature.grammar"},
		{"a list that repeats something else", func(s *signature.Spec) { s.Signature.Repeat = "v2,{sig}" }, "signature.grammar"},
		{"a list without a join", func(s *signature.Spec) { s.Signature.Join = "" }, "signature.grammar"},
		{"versions without the grammar's own", func(s *signature.Spec) { s.Versions = s.Versions[1:] }, "signature.versions"},
		{"two labels for one kind of key", func(s *signature.Spec) {
			s.Versions = append(s.Versions, signature.Version{Label: "v2", MAC: signature.HMACSHA1})
		}, "signature.versions"},
		{"a label with the separator in it", func(s *signature.Spec) { s.Versions[1].Label = "v,1" }, "signature.versions"},
		{"an unknown unit", func(s *signature.Spec) { s.Timestamp.Unit = "min" }, "timestamp.unit"},
		{"a negative tolerance", func(s *signature.Spec) { s.Timestamp.Past = -time.Second }, "timestamp.past"},
		{"a tolerance without a timestamp", func(s *signature.Spec) {
			s.Timestamp = signature.Timestamp{In: "none", Past: time.Second}
			s.Content = []string{"{id}", "{raw}"}
		}, "timestamp"},
		{"a signed timestamp that is nowhere", func(s *signature.Spec) { s.Timestamp = signature.Timestamp{In: "none"} }, "content"},
		{"a signed id that is in the body", func(s *signature.Spec) { s.ID = signature.ID{In: "body", Name: "/id", Signed: true} }, "content"},
		{"an id said not to be signed", func(s *signature.Spec) { s.ID.Signed = false }, "id.signed"},
		{"a pointer without its slash", func(s *signature.Spec) {
			s.ID = signature.ID{In: "body", Name: "id", Signed: true}
			s.Content = s.Content[2:]
		}, "id.name"},
		{"a pointer with a bad escape", func(s *signature.Spec) {
			s.ID = signature.ID{In: "body", Name: "/a~2", Signed: true}
			s.Content = s.Content[2:]
		}, "id.name"},
		{"an unknown form of the key", func(s *signature.Spec) { s.Key.Decode = "base58" }, "key.decode"},
		{"bounds the wrong way round", func(s *signature.Spec) { s.Key.MinBytes = 65 }, "key.min_bytes"},
		{"one Ed25519 prefix", func(s *signature.Spec) { s.Key.Public = "" }, "key.private"},
		{"a token that signs", func(s *signature.Spec) { s.MAC = signature.PlainToken }, "content"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := signature.StandardWebhooks()
			c.change(&spec)
			faults := spec.Faults()
			var fields []string
			for _, f := range faults {
				fields = append(fields, f.Field)
			}
			if !contains(fields, c.field) {
				t.Errorf("want a fault of %s, got %v", c.field, faults)
			}
			_, err := signature.New(spec)
			var fault *signature.SpecError
			if !errors.As(err, &fault) {
				t.Errorf("New: %v", err)
			}
		})
	}
	for _, spec := range []signature.Spec{signature.StandardWebhooks(), signature.DeliveryEnvelope()} {
		if faults := spec.Faults(); len(faults) > 0 {
			t.Errorf("%s: %v", spec.Name, faults)
		}
	}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func TestWhatIsOnlyDescribedIsSaidSo(t *testing.T) {
	base := func() signature.Spec { return custom(signature.HMACSHA256, "s", []string{"{ts}", "{raw}"}) }
	for _, c := range []struct {
		name, field, value string
		change             func(s *signature.Spec)
	}{
		{"a signature in the body", "signature.in", "body", func(s *signature.Spec) {
			s.Signature = signature.Carrier{In: "body", Name: "/sig"}
		}},
		{"RSA", "mac", "rsa-sha256", func(s *signature.Spec) { s.MAC = signature.RSASHA256 }},
		{"ECDSA", "mac", "ecdsa-p256-sha256", func(s *signature.Spec) { s.MAC = signature.ECDSAP256 }},
		{"a signed URL", "content", "{url}", func(s *signature.Spec) { s.Content = []string{"{url}", "{raw}"} }},
		{"a signed method", "content", "{method}", func(s *signature.Spec) { s.Content = []string{"{method}"} }},
		{"a sorted form", "content", "{form_sorted}", func(s *signature.Spec) { s.Content = []string{"{form_sorted}"} }},
		{"a value of the body", "content", "{json:/a/b}", func(s *signature.Spec) { s.Content = []string{"{json:/a/b}"} }},
		{"a value of the setup", "content", "{setup:hook}", func(s *signature.Spec) { s.Content = []string{"{setup:hook}"} }},
		{"a PEM key", "key.decode", "pem", func(s *signature.Spec) { s.Key.Decode = "pem" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := base()
			c.change(&spec)
			if faults := spec.Faults(); len(faults) > 0 {
				t.Fatalf("does not validate: %v", faults)
			}
			_, err := signature.New(spec)
			var no *signature.UnsupportedError
			if !errors.As(err, &no) || no.Field != c.field || no.Value != c.value || no.Scheme != "custom" {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), "is described but cannot be signed by this version") {
				t.Errorf("says: %v", err)
			}
		})
	}
}

func TestASchemeDoesNotFollowTheSpecItWasMadeFrom(t *testing.T) {
	spec := signature.StandardWebhooks()
	s := scheme(t, spec)
	spec.Content[0], spec.Versions[0].Label = "x", "x"
	s.Spec().Content[0] = "y"
	if got := s.Spec(); got.Content[0] != "{id}" || got.Versions[0].Label != "v1" {
		t.Errorf("got %v", got)
	}
	r := example(t, s, key(t, s, exampleSecret))
	if got, _ := wire.Get(r.Headers, "webhook-signature"); got != exampleSig {
		t.Errorf("got %s", got)
	}
}

func TestHeadersWriteWhatTheyAreGiven(t *testing.T) {
	standard := scheme(t, signature.StandardWebhooks())
	envelope := scheme(t, signature.DeliveryEnvelope())
	single := scheme(t, custom(signature.HMACSHA256, "s", []string{"{id}", "{ts}", "{raw}"}))
	tok := func(version, text string) signature.Token { return signature.Token{Version: version, Text: text} }
	for _, c := range []struct {
		name   string
		s      signature.Scheme
		tokens []signature.Token
		want   []string // values of the signature header
	}{
		{"a list", standard, []signature.Token{tok("v1", "A"), tok("v9", "B"), tok("v1a", "C")}, []string{"v1,A v9,B v1a,C"}},
		{"a token without its version", standard, []signature.Token{tok("", "A")}, []string{"A"}},
		{"no token", standard, nil, []string{""}},
		{"a list after the timestamp", envelope, []signature.Token{tok("v1", "A"), tok("v0", "B")}, []string{"t=1614265330,v1=A,v0=B"}},
		{"the timestamp alone", envelope, nil, []string{"t=1614265330"}},
		{"one signature where there is no list", single, []signature.Token{tok("", "A")}, []string{"A"}},
		{"two signatures where there is no list", single, []signature.Token{tok("", "A"), tok("", "B")}, []string{"A", "B"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, h := range c.s.Headers(signature.Input{ID: "a", Time: exampleTime}, c.tokens...) {
				if h.Name == c.s.Spec().Signature.Name {
					got = append(got, h.Value)
				}
			}
			if strings.Join(got, "|") != strings.Join(c.want, "|") || len(got) != len(c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	k := key(t, single, "secret")
	if _, err := single.Sign(signature.Input{}, k, k); err == nil {
		t.Error("two signatures in a scheme of one")
	}
	if _, err := standard.Sign(signature.Input{}); err == nil {
		t.Error("signed without a key")
	}
}

func TestATokenIsComparedAsItIs(t *testing.T) {
	spec := signature.Spec{
		Name:      "token",
		Signature: signature.Carrier{In: "header", Name: "X-Token", Grammar: "{sig}"},
		MAC:       signature.PlainToken,
		Key:       signature.KeyForm{Decode: "utf8"},
		Timestamp: signature.Timestamp{In: "none"},
		ID:        signature.ID{In: "header", Name: "X-Id"},
	}
	s := scheme(t, spec)
	k := key(t, s, "opensesame")
	r := example(t, s, k)
	if got, _ := wire.Get(r.Headers, "x-token"); got != "opensesame" || k.Kind() != signature.SharedToken {
		t.Errorf("got %q of a key of kind %s", got, k.Kind())
	}
	got, err := s.Verify(r, exampleTime, k)
	if err != nil || got != k {
		t.Errorf("got %v, %v", got, err)
	}
	for _, c := range []struct{ name, value, rule string }{
		{"half of it", "opens", signature.RuleNoMatch},
		{"more than it", "opensesame ", signature.RuleNoMatch},
		{"another case", "OpenSesame", signature.RuleNoMatch},
		{"nothing", "", signature.RuleMissingSignature},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := example(t, s, k)
			set("X-Token", c.value)(r)
			_, err := s.Verify(r, exampleTime, k)
			wantRule(t, err, c.rule)
		})
	}
	_, err = s.Verify(r, exampleTime, signature.RawKey("empty", nil))
	wantRule(t, err, signature.RuleNoMatch)
}

func TestAppendedTokensAreThoseOfToken(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	in := signature.Input{ID: exampleID, Time: exampleTime, Body: []byte(exampleBody)}
	private, _ := signature.NewEd25519Key("ours", newRandom(9))
	for _, k := range []signature.Key{key(t, s, exampleSecret), private} {
		want, err := s.Token(in, k)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.AppendToken([]byte("before "), in, k)
		if err != nil || string(got) != "before "+want.Version+","+want.Text {
			t.Errorf("got %q, %v", got, err)
		}
	}
	public, _ := private.PublicKey()
	if got, err := s.AppendToken([]byte("before"), in, public); err == nil || string(got) != "before" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestUnsignedIDsAreCarriedAndNotChecked(t *testing.T) {
	s := scheme(t, custom(signature.HMACSHA256, "s", []string{"{ts}", "{raw}"}))
	k := key(t, s, "secret")
	r := example(t, s, k)
	if got, _ := wire.Get(r.Headers, "x-id"); got != exampleID {
		t.Errorf("got the id %q", got)
	}
	for _, change := range []func(*wire.Request){set("x-id", "other"), drop("x-id"), repeat("x-id", "more")} {
		r := example(t, s, k)
		change(r)
		if _, err := s.Verify(r, exampleTime, k); err != nil {
			t.Error(err)
		}
	}
}

func TestLabelledAndKnowsTellWhatTheSchemeCanSay(t *testing.T) {
	standard, envelope := signature.StandardWebhooks(), signature.DeliveryEnvelope()
	bare := custom(signature.HMACSHA1, "s", []string{"{raw}"})
	if !standard.Labelled() || !envelope.Labelled() || bare.Labelled() {
		t.Error("labels")
	}
	if !standard.Knows(signature.Ed25519) || envelope.Knows(signature.Ed25519) || !bare.Knows(signature.HMACSHA1) {
		t.Error("algorithms")
	}
}
