package receiver

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/whconform/whconform/conformance/evidence"
	fp "github.com/whconform/whconform/fakeprovider"
)

// receiver.rawbody: the bytes as sent, not a parsed copy.
func rawbodyRules() []rule {
	return []rule{
		{
			id: "receiver.rawbody.accepts-exact-bytes",
			probes: func(*session) []probe {
				var probes []probe
				for _, spelling := range fp.Spellings() {
					probes = append(probes, one(spelledLabel+spelling.What, fp.EditBody(spelling.Name, spelling.Spell)))
				}
				return probes
			},
			judge: judgeExactBytes,
		},
		{
			id:     "receiver.rawbody.rejects-reserialized",
			record: recordReserialized,
			judge:  rejected("The signature is computed over a parsed copy that was written again, so bytes that were never signed pass."),
		},
		{
			id: "receiver.rawbody.odd-json",
			probes: func(*session) []probe {
				return []probe{
					one("an authentic event with a name twice", fp.AddMember("type", `"whconform.second"`)),
					one(`an authentic event with \u0000 in a string`, fp.AddMember("whconform", `"a\u0000b"`)),
					one("an authentic {}", fp.BodyBytes([]byte("{}"))),
				}
			},
			judge: survived("Odd but well-formed JSON is met by an error that is not caught."),
		},
		{
			id: "receiver.rawbody.accepts-binary",
			probes: func(*session) []probe {
				return []probe{one("an authentic body that is not UTF-8, application/octet-stream",
					fp.BodyBytes([]byte{0xff, 0xfe, 0x00, 0x80, 0xc3, 0x28}), fp.ContentType("application/octet-stream"))}
			},
			judge: survived("The body is decoded to text before it is checked, and the decoder throws."),
		},
		{
			id: "receiver.rawbody.lossy-text",
			probes: func(*session) []probe {
				return []probe{
					one("a byte order mark in front, signed as it stands", fp.EditBody("BOM", func(b []byte) ([]byte, error) { return append([]byte("\ufeff"), b...), nil })),
					one("U+FFFD signed, an invalid byte sent in its place", fp.AddMember("whconform", "\"\ufffd\""),
						fp.EditSentBody("an invalid byte", func(b []byte) ([]byte, error) {
							return bytes.ReplaceAll(b, []byte("\ufffd"), []byte{0xff}), nil
						})),
				}
			},
			judge: reported,
		},
		{
			id: "receiver.rawbody.content-encoding",
			probes: func(*session) []probe {
				return []probe{
					one("gzip, signed over the packed bytes", fp.GzipSignedPacked()),
					one("gzip, signed over the plain bytes", fp.GzipSignedPlain()),
				}
			},
			judge: reported,
		},
	}
}

const spelledLabel = "an authentic event with "

// judgeExactBytes names the JSON library between the wire and the check, from
// which spellings were refused and which were taken.
func judgeExactBytes(t *evidence.Transcript) []evidence.Finding {
	cause := "Something between the wire and the check changes the bytes of the body."
	fix := ""
	if lib, ok := between(t); ok {
		cause = "The body is parsed and written again before the check, as " + lib.Library + " does: exactly the spellings that it changes are refused."
		fix = lib.RawBody
	}
	findings := acceptedSize(cause)(t)
	for i := range findings {
		if findings[i].Cause == cause {
			findings[i].Fix = fix
		}
	}
	return findings
}

// between names the serializer that explains which spellings were refused.
func between(t *evidence.Transcript) (fp.Serializer, bool) {
	var failing, passing []string
	bodies := map[string][]byte{}
	for i := range t.Exchanges {
		x := &t.Exchanges[i]
		if isControl(x) || evidence.Throttles(x) {
			continue
		}
		bodies[x.Label] = x.Request.Body
		switch {
		case x.OK():
			passing = append(passing, x.Label)
		case x.Response != nil && x.Response.Status < 500: // a crash tells nothing of bytes
			failing = append(failing, x.Label)
		}
	}
	if len(failing) == 0 {
		return fp.Serializer{}, false
	}
	return fp.Explain(failing, passing, bodies)
}

// recordReserialized sends bodies that say the same in other bytes, under the
// signature of the original.
func recordReserialized(s *session) {
	if !s.control() {
		return
	}
	s.deliver("one space more than was signed", fp.EditSentBody("one space more", func(b []byte) ([]byte, error) {
		return bytes.Replace(b, []byte(":"), []byte(": "), 1), nil
	}))
	s.deliver("sorted keys where unsorted ones were signed", fp.AddMember("a_whconform", "1"), fp.Reserialize("go"))
	for _, lib := range fp.Serializers() {
		spelling, ok := s.changedBy(lib)
		if !ok {
			continue
		}
		s.deliver(fmt.Sprintf("an event with %s, written again by %s", spelling.What, lib.Name),
			fp.EditBody(spelling.Name, spelling.Spell), fp.Reserialize(lib.Name))
	}
}

// changedBy finds a spelling that the library writes otherwise.
func (s *session) changedBy(lib fp.Serializer) (fp.Spelling, bool) {
	event := s.event().Body
	for _, spelling := range fp.Spellings() {
		// The blanks are what the first probe tries.
		if strings.HasPrefix(spelling.Name, "space-") {
			continue
		}
		if body, err := spelling.Spell(event); err == nil && lib.Changes(body) {
			if _, err := fp.Respell(lib.Name, body); err == nil {
				return spelling, true
			}
		}
	}
	return fp.Spelling{}, false
}
