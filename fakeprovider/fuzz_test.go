package fakeprovider

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/whconform/whconform/reference/wire"
)

// FuzzResponse feeds the reader of answers with whatever a peer may send.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1;a=b\r\no\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.0 200\n a\n\n", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\nx", "\x15\x03\x01\x00\x02\x02\x46", "HTTP/2 200\r\n\r\n", "",
	} {
		f.Add([]byte(seed), "POST")
	}
	f.Fuzz(func(t *testing.T, in []byte, method string) {
		r := newResponseReader(bytes.NewReader(in))
		response, err := r.head(method)
		if (response == nil) == (err == nil) {
			t.Fatalf("response %v and error %v", response, err)
		}
		if err != nil {
			return
		}
		if response.Status < 101 || response.Status > 999 {
			t.Errorf("status %d", response.Status)
		}
		err = r.body(response, method)
		if int64(len(response.Body)) != min(response.Size, wire.BodyLimit) || response.Size > min(ReadLimit, int64(len(in))) {
			t.Errorf("%d B kept of %d, %d B came: %v", len(response.Body), response.Size, len(in), err)
		}
		for _, h := range response.Headers {
			if h.Name == "" || strings.ContainsAny(h.Name+h.Value, "\n") {
				t.Errorf("header %q", h)
			}
		}
	})
}

// FuzzRespell compares every serializer's output with its input, and the
// reader's verdict with encoding/json's.
func FuzzRespell(f *testing.F) {
	for _, s := range Spellings() {
		body, err := s.Spell([]byte(`{"a":[1,-0.5e+3,null,true,"\u00e9\ud800"]}`))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`"2026-01-02T03:04:05.5+02:00"`))
	f.Add([]byte(`"/Date(1700000000000+0200)/"`))
	f.Fuzz(func(t *testing.T, body []byte) {
		root, err := parseJSON(body)
		if valid := json.Valid(body) && string(replaceAll(body)) == string(body); valid != (err == nil) && root.depth() < jsonDepth/2 && strings.Count(string(body), "[")+strings.Count(string(body), "{") < jsonDepth {
			t.Fatalf("encoding/json says %v, the reader %v", valid, err)
		}
		for _, s := range Serializers() {
			once, err := Respell(s.Name, body)
			if err != nil || s.Name == "python" && bytes.Contains(once, []byte("Infinity")) {
				continue
			}
			if !json.Valid(once) {
				t.Fatalf("%s wrote %q", s.Name, once)
			}
			twice, err := Respell(s.Name, once)
			if err != nil {
				t.Fatalf("%s cannot read what it wrote, %q: %v", s.Name, once, err)
			}
			// Json.NET reads dates in what it made of dates; PHP writes minus
			// zero so that it reads it as zero.
			if s.Name != "newtonsoft" && s.Name != "php" && !bytes.Equal(once, twice) {
				t.Fatalf("%s wrote %q, then %q", s.Name, once, twice)
			}
		}
	})
}

// replaceAll is body with what is not UTF-8 replaced.
func replaceAll(body []byte) []byte { return bytes.ToValidUTF8(body, []byte("\ufffd")) }

func TestTheJSONReaderKnowsWhereValuesStand(t *testing.T) {
	const body = ` {"a" : [1, {"b/c~d": "x\"y"}] , "a": null}`
	root, err := parseJSON([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	for pointer, want := range map[string]string{
		"": strings.TrimSpace(body), "/a": `[1, {"b/c~d": "x\"y"}]`, "/a/0": "1", "/a/1/b~1c~0d": `"x\"y"`,
	} {
		v, ok := root.find(pointer)
		if !ok || body[v.start:v.end] != want {
			t.Errorf("%q: %v, %+v", pointer, ok, v)
		}
	}
	for _, pointer := range []string{"/b", "/a/2", "/a/-1", "/a/0/x", "/a/x"} {
		if _, ok := root.find(pointer); ok {
			t.Errorf("%q was found", pointer)
		}
	}
}

func TestHalfSurrogatePairsSurviveTheReader(t *testing.T) {
	root, err := parseJSON([]byte(`"a\ud800b\udc00\udc00\ud83d\ude00\uD83D\uD83D\uDE00"`))
	if err != nil {
		t.Fatal(err)
	}
	var got []rune
	for s := root.text; s != ""; {
		r, n := nextWTF8(s)
		got, s = append(got, r), s[n:]
	}
	if want := []rune{'a', 0xd800, 'b', 0xdc00, 0xdc00, 0x1f600, 0xd83d, 0x1f600}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %x", got)
	}
}

func TestInvalidBytesAreReplacedAsTheWebPlatformHasIt(t *testing.T) {
	for in, want := range map[string]string{
		"a\xffb": "a\ufffdb", "\xe2\x82": "\ufffd", "\xe2\x82x": "\ufffdx", "\xf0\x9f\x98": "\ufffd", "\xed\xa0\x80": "\ufffd\ufffd\ufffd", "\xc0\xaf": "\ufffd\ufffd", "é": "é", "\xf0\x80\x80": "\ufffd\ufffd\ufffd",
	} {
		if got := string(decodeReplacing([]byte(in))); got != want {
			t.Errorf("%x: got %q, want %q", in, got, want)
		}
	}
}

func TestTheChunkReaderEndsWithItsChunks(t *testing.T) {
	r := newResponseReader(strings.NewReader("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 500 Next\r\n"))
	response, err := r.head("POST")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.body(response, "POST"); err != nil || string(response.Body) != "ok" {
		t.Errorf("%q, %v", response.Body, err)
	}
	if rest, _ := io.ReadAll(r.r); !bytes.HasPrefix(rest, []byte("HTTP/1.1 500")) {
		t.Errorf("the reader took more than its body: %q is left", rest)
	}
}
