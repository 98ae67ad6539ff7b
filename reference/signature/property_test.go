package signature_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// drawn is a delivery of any content, signed by a key of any bytes.
type drawn struct {
	s    signature.Scheme
	k    signature.Key
	in   signature.Input
	when time.Time
	r    *wire.Request
}

func draw(t *rapid.T, specs []signature.Spec) drawn {
	d := drawn{}
	s, err := signature.New(rapid.SampledFrom(specs).Draw(t, "spec"))
	if err != nil {
		t.Fatal(err)
	}
	d.s = s
	if rapid.Bool().Draw(t, "ed25519") && s.Spec().ID.In == "header" {
		d.k, _ = signature.NewEd25519Key("k", newRandom(rapid.Byte().Draw(t, "seed")))
	} else {
		d.k = signature.RawKey("k", rapid.SliceOf(rapid.Byte()).Draw(t, "key"))
	}
	d.when = time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "time"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds"))
	d.in = signature.Input{
		ID:   rapid.StringMatching(`[!-~]{1,40}`).Draw(t, "id"),
		Time: d.when,
		Body: rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
	}
	headers, err := s.Sign(d.in, d.k)
	if err != nil {
		t.Fatal(err)
	}
	d.r = &wire.Request{Headers: headers, Body: d.in.Body, Size: int64(len(d.in.Body))}
	return d
}

func documented() []signature.Spec {
	return []signature.Spec{signature.StandardWebhooks(), signature.DeliveryEnvelope()}
}

func TestWhatIsSignedVerifies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, documented())
		skew := time.Duration(rapid.Int64Range(-299, 299).Draw(t, "skew")) * time.Second
		got, err := d.s.Verify(d.r, d.when.Add(skew), d.k)
		if err != nil || got != d.k {
			t.Fatalf("got %v, %v", got, err)
		}
	})
}

func TestAFlippedByteNeverVerifies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, documented())
		flip := byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		switch what := rapid.SampledFrom([]string{"body", "id", "timestamp", "key"}).Draw(t, "what"); {
		case what == "body" && len(d.in.Body) > 0:
			d.r.Body = append([]byte(nil), d.in.Body...)
			d.r.Body[rapid.IntRange(0, len(d.r.Body)-1).Draw(t, "at")] ^= flip
		case what == "id" && d.s.Spec().ID.In == "header":
			id := []byte(d.in.ID)
			id[rapid.IntRange(0, len(id)-1).Draw(t, "at")] ^= flip
			d.r.Headers = wire.Set(d.r.Headers, "webhook-id", string(id))
			if string(id) == "" {
				return
			}
		case what == "timestamp":
			in := d.in
			in.Time = d.when.Add(time.Duration(rapid.Int64Range(1, 200).Draw(t, "seconds")) * time.Second)
			d.r.Headers = d.s.Headers(in, token(t, d))
		default:
			other := signature.RawKey("other", []byte("another key altogether"))
			_, err := d.s.Verify(d.r, d.when, other)
			if err == nil {
				t.Fatal("verified by another key")
			}
			return
		}
		if got, err := d.s.Verify(d.r, d.when, d.k); err == nil || !got.IsZero() {
			t.Fatal("verified")
		}
	})
}

func token(t *rapid.T, d drawn) signature.Token {
	tok, err := d.s.Token(d.in, d.k)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}
