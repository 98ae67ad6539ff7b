package signature_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/whconform/whconform/reference/signature"
)

func TestHMACPathsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop what it holds")
	}
	for _, spec := range []signature.Spec{signature.StandardWebhooks(), signature.DeliveryEnvelope()} {
		s := scheme(t, spec)
		other, ours := signature.RawKey("other", []byte("other")), key(t, s, exampleSecret)
		usual := signature.Input{ID: exampleID, Time: exampleTime, Body: []byte(exampleBody)}
		long := usual
		long.ID, long.Body = strings.Repeat("m", signature.MaxID), bytes.Repeat([]byte("x"), 512)
		large := usual
		large.Body = bytes.Repeat([]byte("x"), 10_000)
		for _, c := range []struct {
			name    string
			in      signature.Input
			signers []signature.Key
			keys    []signature.Key
		}{
			{"the usual delivery", usual, []signature.Key{ours}, []signature.Key{ours}},
			{"the second key signed", usual, []signature.Key{ours}, []signature.Key{other, ours}},
			{"the second token matches", usual, []signature.Key{other, ours}, []signature.Key{ours}},
			{"a long id", long, []signature.Key{ours}, []signature.Key{ours}},
			{"a large body", large, []signature.Key{ours}, []signature.Key{ours}},
		} {
			t.Run(spec.Name+" "+c.name, func(t *testing.T) {
				r := signed(t, s, c.in, c.signers...)
				if n := testing.AllocsPerRun(200, func() {
					if _, err := s.Verify(r, exampleTime, c.keys...); err != nil {
						t.Fatal(err)
					}
				}); n != 0 {
					t.Errorf("verifying allocates %v times", n)
				}
				dst := make([]byte, 0, 128)
				if n := testing.AllocsPerRun(200, func() {
					if _, err := s.AppendToken(dst, c.in, ours); err != nil {
						t.Fatal(err)
					}
				}); n != 0 {
					t.Errorf("signing allocates %v times", n)
				}
			})
		}
	}
}

func TestAKeyIsUsedByManyAtATime(t *testing.T) {
	s := scheme(t, signature.StandardWebhooks())
	k := key(t, s, exampleSecret)
	done := make(chan error)
	for range 8 {
		go func() {
			var err error
			for i := 0; i < 200 && err == nil; i++ {
				_, err = s.Verify(example(t, s, k), exampleTime, k)
			}
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
