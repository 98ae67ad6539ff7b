package vectors_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/whconform/whconform/vectors"
)

// peer is the official Go library with the first key of a group.
func peer(t *testing.T, g vectors.Group) *standardwebhooks.Webhook {
	t.Helper()
	w, err := standardwebhooks.NewWebhook(g.Keys[0].Secret)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestTheOfficialGoLibrarySignsTheSame(t *testing.T) {
	f, err := vectors.Load("standard-webhooks-v1-sign")
	if err != nil {
		t.Fatal(err)
	}
	f.Each(func(g vectors.Group, v vectors.Test) {
		if len(g.Keys) != 1 {
			return // it signs with one key
		}
		seconds, err := strconv.ParseInt(v.Inputs.Timestamp, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		got, err := peer(t, g).Sign(v.Inputs.ID, time.Unix(seconds, 0), v.Inputs.Body)
		want, _ := first(v.Headers, standardwebhooks.HeaderWebhookSignature)
		if err != nil || got != want {
			t.Errorf("%s: signed %s, want %s: %v", v.ID, got, want, err)
		}
	})
}

// The library reads the real clock, so that it can judge all but the age. What
// it accepts against a vector's word is a fault of the one or the other.
func TestTheOfficialGoLibraryVerifiesTheValidAndRefusesTheInvalid(t *testing.T) {
	f, err := vectors.Load("standard-webhooks-v1-verify")
	if err != nil {
		t.Fatal(err)
	}
	f.Each(func(g vectors.Group, v vectors.Test) {
		seconds, err := strconv.ParseInt(v.Inputs.Timestamp, 10, 64)
		aged := err == nil && (v.Now-seconds > f.Tolerance || seconds-v.Now > f.Tolerance)
		if len(g.Keys) != 1 || aged {
			return
		}
		header := http.Header{}
		for _, h := range v.Headers {
			header.Add(h.Name(), h.Value())
		}
		err = peer(t, g).VerifyIgnoringTimestamp(v.Inputs.Body, header)
		if v.Result == vectors.Valid && err != nil {
			t.Errorf("%s is valid, refused: %v", v.ID, err)
		}
		if v.Result == vectors.Invalid && err == nil {
			t.Errorf("%s is invalid, accepted: %s", v.ID, v.Comment)
		}
	})
}
