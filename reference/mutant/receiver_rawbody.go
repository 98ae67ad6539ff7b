package mutant

import (
	"bytes"
	"encoding/json"
	"net/http"
	"unicode/utf8"
)

// rawbodyMutants break receiver.rawbody.*: between the wire and their check the
// bytes of the body change.
func rawbodyMutants() []Mutant {
	return append(respellingMutants(), []Mutant{
		{
			Name: "accepts-compacted", Doc: "It accepts a signature over the body with the blanks taken out as well.",
			Fails: []string{"receiver.rawbody.rejects-reserialized"},
			New: reference(verifying(func(v check) error {
				body := compacted(v.request.Body)
				if bytes.HasSuffix(v.request.Body, body[len(body)-min(len(body), 1):]) {
					return either(v, v.withBody(body))
				}
				return v.right()
			})),
		},
		{
			Name: "reads-in-text-mode", Doc: "It reads the body in text mode, which turns CRLF into LF.",
			Fails: []string{"receiver.rawbody.accepts-exact-bytes"},
			New: reference(verifying(func(v check) error {
				return v.withBody(bytes.ReplaceAll(v.request.Body, []byte("\r\n"), []byte("\n"))).right()
			})),
		},
		{
			Name: "trims-the-body", Doc: "It trims the body before it verifies.",
			Fails: []string{"receiver.rawbody.accepts-exact-bytes", "receiver.signature.rejects-tampered-body"},
			New: reference(verifying(func(v check) error {
				return v.withBody(bytes.TrimSpace(v.request.Body)).right()
			})),
		},
		{
			Name: "decodes-to-text", Doc: "It decodes the body to text and back, which replaces what is not UTF-8.",
			Reports: []string{"receiver.rawbody.lossy-text"},
			New: reference(verifying(func(v check) error {
				return v.withBody([]byte(string([]rune(string(v.request.Body))))).right()
			})),
		},
		{
			Name: "throws-at-binary", Doc: "It decodes the body to text, and what is not UTF-8 meets an error that it does not catch.",
			Fails: []string{"receiver.rawbody.accepts-binary"},
			New:   accepted(http.StatusInternalServerError, func(_ Config, body []byte) bool { return !utf8.Valid(body) }),
		},
		{
			Name: "cannot-store-nul", Doc: "Its database takes no NUL in a text, and the error becomes a 500.",
			Fails: []string{"receiver.rawbody.odd-json"},
			New:   accepted(http.StatusInternalServerError, func(_ Config, body []byte) bool { return bytes.Contains(body, []byte(`\u0000`)) }),
		},
	}...)
}

// respellingMutants parse the body, write it again and verify that, each in the
// spelling of a library.
func respellingMutants() []Mutant {
	verifies := func(respelled func([]byte) []byte) maker {
		return reference(verifying(func(v check) error { return v.withBody(respelled(v.request.Body)).right() }))
	}
	list := []Mutant{
		{Name: "verifies-compacted", Doc: "It verifies the body with the blanks taken out.", New: verifies(compacted)},
		{
			Name: "verifies-as-javascript", Doc: "It verifies what JSON.stringify makes of the parsed body.",
			New: verifies(speller{never, `\u%04x`, false, asDouble}.respelled),
		},
		{
			Name: "verifies-as-python", Doc: "It verifies what json.dumps makes of the parsed body, with separators set to none.",
			New: verifies(speller{notASCII, `\u%04x`, false, asWritten}.respelled),
		},
		{
			Name: "verifies-as-php", Doc: "It verifies what json_encode makes of the parsed body.",
			New: verifies(speller{notASCII, `\u%04x`, true, asWritten}.respelled),
		},
		{
			Name: "verifies-as-go", Doc: "It verifies what json.Marshal makes of the raw message.",
			New: verifies(speller{among("<>&\u2028\u2029"), `\u%04x`, false, asWritten}.respelled),
		},
		{
			Name: "verifies-as-dotnet", Doc: "It verifies what System.Text.Json makes of the parsed body.",
			New: verifies(speller{func(r rune) bool { return notASCII(r) || among("<>&'+\"`")(r) }, `\u%04X`, false, asWritten}.respelled),
		},
		{
			Name: "verifies-sorted", Doc: "It verifies the body with its members sorted, as a map writes them.",
			Profile: "delivery-envelope", New: verifies(sortedMembers),
		},
	}
	for i := range list {
		// A blank behind the body goes the way of the blanks inside.
		list[i].Fails = []string{
			"receiver.rawbody.accepts-exact-bytes",
			"receiver.rawbody.rejects-reserialized",
			"receiver.signature.rejects-tampered-body",
		}
	}
	return list
}

// compacted is body without blanks between its tokens, or body itself where it
// is no JSON.
func compacted(body []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, body) != nil {
		return body
	}
	return out.Bytes()
}
