package adapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestAStreamIsCutIntoLines(t *testing.T) {
	const limit = 5
	for _, tt := range []struct {
		name, stream string
		lines        []string
		last         string
		err          error
	}{
		{"nothing", "", nil, "", io.EOF},
		{"two lines", "a\nbc\n", []string{"a", "bc"}, "", io.EOF},
		{"empty lines", "\n\na\n", []string{"", "", "a"}, "", io.EOF},
		{"the longest that is allowed", "abcde\nf\n", []string{"abcde", "f"}, "", io.EOF},
		{"one byte more", "abcdef\n", nil, "abcde", errLongLine},
		{"one that is cut off", "a\nbc", []string{"a"}, "bc", io.ErrUnexpectedEOF},
		{"the longest, cut off", "abcde", nil, "abcde", io.ErrUnexpectedEOF},
		{"a carriage return belongs to it", "a\r\n", []string{"a\r"}, "", io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newLineReader(iotest.OneByteReader(strings.NewReader(tt.stream)), limit)
			for _, want := range tt.lines {
				if got, err := r.next(); err != nil || string(got) != want {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
			}
			if got, err := r.next(); !errors.Is(err, tt.err) || string(got) != tt.last {
				t.Errorf("the end: %q, %v", got, err)
			}
		})
	}
}

func TestAnEndlessStreamIsReadNoFurtherThanItsBound(t *testing.T) {
	var read tally
	r := newLineReader(io.TeeReader(endless{}, &read), MaxAnswer)
	if line, err := r.next(); !errors.Is(err, errLongLine) || len(line) != MaxAnswer {
		t.Errorf("%d bytes, %v", len(line), err)
	}
	if read.n > MaxAnswer+2*readBuffer {
		t.Errorf("%d bytes were read", read.n)
	}
}

// Whatever a stream holds, its lines are what stands between the line feeds, as
// far as the bound goes.
func FuzzLineReader(f *testing.F) {
	f.Add([]byte("a\nbc\n"), 3)
	f.Add([]byte("\n\n\r\nabcdefgh"), 4)
	f.Fuzz(func(t *testing.T, stream []byte, limit int) {
		limit = 1 + (limit&0xff+0x100)%64
		r := newLineReader(iotest.HalfReader(bytes.NewReader(stream)), limit)
		for rest := stream; ; {
			want, after, ended := bytes.Cut(rest, []byte{'\n'})
			got, err := r.next()
			switch {
			case len(want) > limit:
				if !errors.Is(err, errLongLine) || !bytes.Equal(got, want[:limit]) {
					t.Fatalf("got %q, %v of %q", got, err, want)
				}
				return
			case ended && (err != nil || !bytes.Equal(got, want)):
				t.Fatalf("got %q, %v, want %q", got, err, want)
			case !ended && len(want) > 0 && (!errors.Is(err, io.ErrUnexpectedEOF) || !bytes.Equal(got, want)):
				t.Fatalf("got %q, %v, want a cut %q", got, err, want)
			case !ended && len(want) == 0 && !errors.Is(err, io.EOF):
				t.Fatalf("got %q, %v at the end", got, err)
			}
			if !ended {
				return
			}
			rest = after
		}
	})
}

// An answer that is taken is one for encoding/json too, and says the same; one
// that is refused is explained without a panic, and the explanation is bounded.
func FuzzParseReply(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"processed":1}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x","data":[1]}}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"result":1}`, `{"jsonrpc":"2.0","id":1e400,"result":1}`, "{", "[", "\xff\xfe", "Content-Length: 3", `{"jsonrpc":"2.0","method":"x"}`,
		` {"jsonrpc" : "2.0" , "id" : 1 , "result" : "whsec_abc" } `, `{"jsonrpc":"2.0","id":1,"result":1} {}`, `{"a":1,}`, `{"\u0069d":1,"jsonrpc":"2.0","result":0}`,
	} {
		f.Add([]byte(seed))
	}
	redact := newRedactor(nil)
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseReply(line)
		if err != nil {
			explained := badLine(line, 1, true, err)
			explained.Quote = redact.quote(line)
			if n := len(explained.Error()); n > 2000 {
				t.Fatalf("an error of %d bytes", n)
			}
			return
		}
		var plain struct {
			ID     json.RawMessage
			Result json.RawMessage
			Error  *Error
		}
		if err := json.Unmarshal(line, &plain); err != nil {
			t.Fatalf("%q was taken: %v", line, err)
		}
		if (r.err == nil) == (r.result == nil) {
			t.Fatalf("%q is both or neither: %+v", line, r)
		}
		if wrong := wrongID(r, 1, redact); len(wrong.Error()) > 10_000 {
			t.Fatal("an error without a bound")
		}
	})
}

// A request that is taken is answered with one line that can be read again.
func FuzzParseRequest(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"receiver.processed","params":{"id":"evt_1"}}`, `{"jsonrpc":"2.0","id":"a","method":"test.panic"}`,
		`{"jsonrpc":"2.0","method":"cancel","params":{"id":1}}`, `{"jsonrpc":"2.0","id":-0.5e7,"method":"receiver.state","params":{}}`, `{"jsonrpc":"2.0","id":{},"method":"a"}`, `x`, ``,
	} {
		f.Add([]byte(seed))
	}
	m := goodMethods()
	delete(m, "test.wait")
	f.Fuzz(func(t *testing.T, line []byte) {
		r, bad := parseRequest(line)
		var result json.RawMessage
		if bad == nil {
			result, bad = m.call(t.Context(), r)
		}
		answer := encodeAnswer(r.id, result, bad)
		if bytes.Count(answer, []byte{'\n'}) != 1 || answer[len(answer)-1] != '\n' || len(answer) > MaxAnswer {
			t.Fatalf("%q is answered with %d bytes", line, len(answer))
		}
		if _, err := parseReply(answer); err != nil {
			t.Fatalf("%q is answered with %q: %v", line, answer, err)
		}
	})
}
