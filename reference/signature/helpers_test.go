package signature_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// The example that the Standard Webhooks documentation and libraries share.
// Never use this secret for anything else: it is public.
const (
	exampleSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	exampleID     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	exampleBody   = `{"test": 2432232314}`
	exampleSig    = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

var exampleTime = time.Unix(1614265330, 0)

func scheme(t testing.TB, spec signature.Spec) signature.Scheme {
	t.Helper()
	s, err := signature.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func key(t testing.TB, s signature.Scheme, text string) signature.Key {
	t.Helper()
	k, err := s.Key("example", text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func signed(t testing.TB, s signature.Scheme, in signature.Input, keys ...signature.Key) *wire.Request {
	t.Helper()
	headers, err := s.Sign(in, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return &wire.Request{Method: "POST", Headers: headers, Body: in.Body, Size: int64(len(in.Body))}
}

// example is the documented delivery, signed.
func example(t testing.TB, s signature.Scheme, keys ...signature.Key) *wire.Request {
	t.Helper()
	return signed(t, s, signature.Input{ID: exampleID, Time: exampleTime, Body: []byte(exampleBody)}, keys...)
}

// wantRule checks that an error is a Refusal by that rule; empty: no error.
func wantRule(t testing.TB, err error, rule string) {
	t.Helper()
	if rule == "" {
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		return
	}
	var refusal *signature.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("want a refusal by %s, got %v", rule, err)
	}
	if refusal.Rule != rule {
		t.Fatalf("want a refusal by %s, got %v", rule, refusal)
	}
	if refusal.Detail == "" || strings.Contains(refusal.Detail, "%!") {
		t.Errorf("detail of %s: %q", rule, refusal.Detail)
	}
}
