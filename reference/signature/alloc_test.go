package signature_test

import (
	"testing"

	"github.com/whconform/whconform/reference/signature"
)

func TestHMACPathsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop what it holds")
	}
	for _, spec := range []signature.Spec{signature.StandardWebhooks(), signature.DeliveryEnvelope()} {
		t.Run(spec.Name, func(t *testing.T) {
			s := scheme(t, spec)
			keys := []signature.Key{signature.RawKey("other", []byte("other")), key(t, s, exampleSecret)}
			r := example(t, s, keys[1])
			if n := testing.AllocsPerRun(200, func() {
				if _, err := s.Verify(r, exampleTime, keys...); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("verifying allocates %v times", n)
			}
			dst := make([]byte, 0, 128)
			in := signature.Input{ID: exampleID, Time: exampleTime, Body: r.Body}
			if n := testing.AllocsPerRun(200, func() {
				if _, err := s.AppendToken(dst, in, keys[1]); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("signing allocates %v times", n)
			}
		})
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
