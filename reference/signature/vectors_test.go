package signature_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
	"github.com/whconform/whconform/vectors"
)

// The vectors were signed by another implementation, so that agreement with
// them is more than agreement with oneself.

// eachVector runs a test for every vector of a topic.
func eachVector(t *testing.T, topic string, run func(*testing.T, signature.Scheme, vectors.Group, vectors.Test)) {
	t.Helper()
	files, err := vectors.All()
	if err != nil {
		t.Fatal(err)
	}
	specs := map[string]signature.Spec{
		"standard-webhooks": signature.StandardWebhooks(),
		"delivery-envelope": signature.DeliveryEnvelope(),
	}
	for _, f := range files {
		if f.Topic != topic {
			continue
		}
		scheme, err := signature.New(specs[f.Profile])
		if err != nil {
			t.Fatal(err)
		}
		f.Each(func(g vectors.Group, v vectors.Test) {
			t.Run(v.ID, func(t *testing.T) { run(t, scheme, g, v) })
		})
	}
}

// keysOf reads the keys of a group.
func keysOf(t *testing.T, s signature.Scheme, g vectors.Group) []signature.Key {
	t.Helper()
	var keys []signature.Key
	for _, k := range g.Keys {
		key, err := s.Key(k.ID, k.Secret)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	return keys
}

// requestOf is the request that a vector describes.
func requestOf(v vectors.Test) *wire.Request {
	r := &wire.Request{Method: "POST", Target: "/", Body: v.Inputs.Body, Size: int64(len(v.Inputs.Body))}
	for _, h := range v.Headers {
		r.Headers = append(r.Headers, wire.Header{Name: h.Name(), Value: h.Value()})
	}
	return r
}

// judge compares the outcome with the vector's result. want is the rule by
// which an invalid one must be refused.
func judge(t *testing.T, v vectors.Test, err error, want string) {
	t.Helper()
	var refusal *signature.Refusal
	if err != nil && !errors.As(err, &refusal) {
		t.Fatalf("the error is no refusal: %v", err)
	}
	switch {
	case v.Result == vectors.Valid && err != nil:
		t.Errorf("%s: valid, refused: %v", v.Comment, err)
	case v.Result == vectors.Invalid && err == nil:
		t.Errorf("%s: invalid (%s), accepted", v.Comment, v.Reason)
	case v.Result == vectors.Invalid && refusal.Rule != want:
		t.Errorf("%s: refused by the rule %s, want %s: %v", v.Comment, refusal.Rule, want, err)
	}
}

func TestVectorsVerifyAsTheirResultSays(t *testing.T) {
	eachVector(t, vectors.TopicVerify, func(t *testing.T, s signature.Scheme, g vectors.Group, v vectors.Test) {
		_, err := s.Verify(requestOf(v), time.Unix(v.Now, 0), keysOf(t, s, g)...)
		judge(t, v, err, v.Rule)
	})
}

func TestVectorsAreSignedToTheByte(t *testing.T) {
	eachVector(t, vectors.TopicSign, func(t *testing.T, s signature.Scheme, g vectors.Group, v vectors.Test) {
		seconds, err := strconv.ParseInt(v.Inputs.Timestamp, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		keys := keysOf(t, s, g)
		in := signature.Input{ID: v.Inputs.ID, Time: time.Unix(seconds, 0), Body: v.Inputs.Body}
		got, err := s.Sign(in, keys...)
		if err != nil {
			t.Fatal(err)
		}
		if want := requestOf(v).Headers; !slices.Equal(got, want) {
			t.Errorf("headers %q, want %q", got, want)
		}
		_, err = s.Verify(requestOf(v), time.Unix(v.Now, 0), keys...)
		judge(t, v, err, "")
	})
}

func TestVectorsOfKeysAreReadOrRefused(t *testing.T) {
	eachVector(t, vectors.TopicKeys, func(t *testing.T, s signature.Scheme, _ vectors.Group, v vectors.Test) {
		key, err := s.Key("vector", v.Inputs.Secret)
		// The error says which prefixes there are: a prefix alone is no secret.
		if s := v.Inputs.Secret; err != nil && len(s) > len("whsec_") && strings.Contains(err.Error(), s) {
			t.Error("the error shows the secret")
		}
		var keyError *signature.KeyError
		switch {
		case err != nil && !errors.As(err, &keyError):
			t.Fatalf("the error is no KeyError: %v", err)
		case v.Result == vectors.Invalid && err == nil:
			t.Errorf("%s: invalid (%s), read", v.Comment, v.Reason)
		case v.Result == vectors.Valid && err != nil:
			t.Errorf("%s: valid, refused: %v", v.Comment, err)
		case err == nil && v.Headers != nil:
			_, err := s.Verify(requestOf(v), time.Unix(v.Now, 0), key)
			judge(t, v, err, "")
		}
	})
}
