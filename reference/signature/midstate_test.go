package signature

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"testing"

	"pgregory.net/rapid"
)

// hashes are what schemes use.
func hashes() map[string]func() hash.Hash {
	return map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New}
}

// counting is n bytes that differ from their neighbours.
func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// standard is the standard library's HMAC of content.
func standard(newHash func() hash.Hash, key, content []byte) []byte {
	h := hmac.New(newHash, key)
	h.Write(content)
	return h.Sum(nil)
}

func TestTheKeptStatesGiveTheStandardHMAC(t *testing.T) {
	for name, newHash := range hashes() {
		for _, size := range []int{0, 1, 24, 63, 64, 65, 200} {
			t.Run(fmt.Sprintf("%s with a key of %d bytes", name, size), func(t *testing.T) {
				key := counting(size)
				h, ok := newMidstate(newHash, key)
				if !ok {
					t.Fatal("the hash cannot be resumed")
				}
				for n := range 4*blockSize + 2 {
					content := counting(n)
					for _, cut := range []int{0, n / 3, n} {
						h.begin()
						h.write(content[:cut])
						// A tail without capacity: it must not be written to.
						if got := h.end(content[cut:n:n]); !bytes.Equal(got, standard(newHash, key, content)) {
							t.Fatalf("%d bytes, the first %d by themselves: got %x", n, cut, got)
						}
						if !bytes.Equal(content, counting(n)) {
							t.Fatalf("%d bytes: the content was changed", n)
						}
					}
				}
			})
		}
	}
}

func TestAnyContentInAnyPiecesGivesTheStandardHMAC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newHash := hashes()[rapid.SampledFrom([]string{"sha1", "sha256"}).Draw(t, "hash")]
		key := rapid.SliceOf(rapid.Byte()).Draw(t, "key")
		pieces := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 150), 1, 5).Draw(t, "pieces")
		last := len(pieces) - 1
		want := standard(newHash, key, bytes.Join(pieces, nil))
		for _, h := range []keyedHash{newKeyedHash(newHash, key), &plainHMAC{hash: hmac.New(newHash, key)}} {
			for range 2 { // the second time from the kept states
				h.begin()
				for _, p := range pieces[:last] {
					h.write(p)
				}
				if got := h.end(pieces[last]); !bytes.Equal(got, want) {
					t.Fatalf("%T: got %x, want %x", h, got, want)
				}
			}
		}
	})
}

// TestTheKeptStatesAreUsed fails on a Go release whose hashes save their states
// in another way. Signatures are right all the same, by the standard HMAC; what
// is lost is the speed that BenchmarkSign measures.
func TestTheKeptStatesAreUsed(t *testing.T) {
	for name, newHash := range hashes() {
		if h, ok := newKeyedHash(newHash, []byte("key")).(*midstate); !ok {
			t.Errorf("%s: got %T", name, h)
		}
	}
}

// shifted saves its state behind one byte more.
type shifted struct{ resumable }

func (s shifted) AppendBinary(b []byte) ([]byte, error) {
	return s.resumable.AppendBinary(append(b, 0))
}

func (s shifted) UnmarshalBinary(b []byte) error { return s.resumable.UnmarshalBinary(b[1:]) }

// closed cannot save its state.
type closed struct{ resumable }

func (closed) AppendBinary([]byte) ([]byte, error) { return nil, errors.New("no state to be had") }

func TestAHashThatSavesItsStateOtherwiseIsLeftToTheStandardHMAC(t *testing.T) {
	key, content := []byte("a key"), counting(200)
	for name, newHash := range map[string]func() hash.Hash{
		"cannot be resumed":             func() hash.Hash { return struct{ hash.Hash }{sha256.New()} },
		"has another layout":            func() hash.Hash { return shifted{sha256.New().(resumable)} },
		"has blocks of another size":    sha512.New,
		"fails when its state is saved": func() hash.Hash { return closed{sha256.New().(resumable)} },
	} {
		t.Run(name, func(t *testing.T) {
			h := newKeyedHash(newHash, key)
			if _, ok := h.(*plainHMAC); !ok {
				t.Fatalf("got %T", h)
			}
			h.begin()
			if got := h.end(content); !bytes.Equal(got, standard(newHash, key, content)) {
				t.Errorf("got %x", got)
			}
		})
	}
}

// TestATextThatDecodesIsTheOnlyOneForItsValue is why the texts of MACs can be
// compared in place of what they decode to.
func TestATextThatDecodesIsTheOnlyOneForItsValue(t *testing.T) {
	const letters = "ABCDEFabcdef0189+/-_=zZ \r\n"
	rapid.Check(t, func(t *rapid.T) {
		encoding := rapid.SampledFrom(Encodings()).Draw(t, "encoding")
		sum := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "sum")
		text := appendEncoded(nil, encoding, sum, encodedLen(encoding, len(sum)))
		if got, ok := decodeStrict(encoding, string(text)); !ok || !bytes.Equal(got, sum) {
			t.Fatalf("%s decodes to %x, want %x", text, got, sum)
		}
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			i := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			letter := rapid.SampledFrom([]byte(letters)).Draw(t, "letter")
			if rapid.Bool().Draw(t, "insert") {
				text = append(text[:i], append([]byte{letter}, text[i:]...)...)
			} else {
				text[i] = letter
			}
		}
		got, ok := decodeStrict(encoding, string(text))
		if again := appendEncoded(nil, encoding, got, encodedLen(encoding, len(got))); ok && !bytes.Equal(again, text) {
			t.Fatalf("%q decodes to %x, which is written %q", text, got, again)
		}
	})
}
