package signature_test

import (
	"errors"
	"testing"

	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// FuzzHeaders verifies any headers: nothing panics, whatever is refused is
// refused by a known rule, and only the documented delivery is accepted.
func FuzzHeaders(f *testing.F) {
	for _, c := range standardChanges() {
		s := scheme(f, signature.StandardWebhooks())
		r := example(f, s, key(f, s, exampleSecret))
		c.make(r)
		id, _ := wire.Get(r.Headers, "webhook-id")
		ts, _ := wire.Get(r.Headers, "webhook-timestamp")
		sig, _ := wire.Get(r.Headers, "webhook-signature")
		f.Add(id, ts, sig)
	}
	f.Add("", "", "t=1614265330,v1=00")
	f.Add("", "", "t=,t=,v1=,,=")
	rules := map[string]bool{}
	for _, r := range signature.Rules() {
		rules[r.Rule] = true
	}
	standard, envelope := scheme(f, signature.StandardWebhooks()), scheme(f, signature.DeliveryEnvelope())
	k := key(f, standard, exampleSecret)
	ed, _ := signature.NewEd25519Key("ours", newRandom(1))
	f.Fuzz(func(t *testing.T, id, ts, sig string) {
		r := &wire.Request{Body: []byte(exampleBody), Headers: []wire.Header{
			{Name: "webhook-id", Value: id}, {Name: "webhook-timestamp", Value: ts}, {Name: "webhook-signature", Value: sig},
		}}
		for _, s := range []signature.Scheme{standard, envelope} {
			_, err := s.Verify(r, exampleTime, k, ed)
			var refusal *signature.Refusal
			switch {
			case err == nil && (s == envelope || id != exampleID || ts != "1614265330"):
				t.Fatalf("verified: %q %q %q", id, ts, sig)
			case err != nil && (!errors.As(err, &refusal) || !rules[refusal.Rule]):
				t.Fatalf("refused by %v", err)
			}
		}
	})
}

// FuzzKey reads any text as a key: nothing panics, and no error holds the text.
func FuzzKey(f *testing.F) {
	for _, text := range []string{
		"", "whsec_", exampleSecret, "whsk_", "whpk_AAAA", "whsec_\n", "v1,whsec_AAAA", "changeme", "whsec_%%%",
		"whsk_" + std(make([]byte, 32)), "whsk_" + std(make([]byte, 64)), "whpk_" + std(make([]byte, 32)),
	} {
		f.Add(text)
	}
	standard, envelope := scheme(f, signature.StandardWebhooks()), scheme(f, signature.DeliveryEnvelope())
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range []signature.Scheme{standard, envelope} {
			k, err := s.Key("fuzzed", text)
			var bad *signature.KeyError
			if err != nil {
				if !errors.As(err, &bad) || !k.IsZero() {
					t.Fatalf("got %v, %v", k, err)
				}
				continue
			}
			k.In([]byte(text))
			k.Redact([]byte(text))
			if k.Kind() == signature.Ed25519Public {
				continue
			}
			if _, err := s.Verify(example(t, s, k), exampleTime, k); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzBodyID reads an id from any body, by any pointer that a spec may hold.
func FuzzBodyID(f *testing.F) {
	f.Add([]byte(`{"delivery_id":"whd_1"}`), "/delivery_id")
	f.Add([]byte(`{"a":[{"b":1}]}`), "/a/0/b")
	f.Add([]byte(`[[[[[[`), "/0/0")
	f.Add([]byte(`{"~":"x","/":"y"}`), "/~0")
	f.Fuzz(func(t *testing.T, body []byte, pointer string) {
		spec := signature.DeliveryEnvelope()
		spec.ID.Name = pointer
		s, err := signature.New(spec)
		if err != nil {
			return
		}
		id, err := s.ID(&wire.Request{Body: body})
		if (err == nil) != (id != "") {
			t.Fatalf("got %q, %v", id, err)
		}
	})
}
