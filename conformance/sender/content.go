package sender

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"time"

	"github.com/whconform/whconform/fakeprovider"
)

// content is a payload that a sender may be asked to publish byte for byte.
type content struct {
	what string // for people: "an event with a space after a colon"
	body []byte
}

// contents are the payloads that every accepted one of has to arrive verifiably:
// each spelling of JSON that receivers are tried with, what is odd or no JSON at
// all, and sizes from nothing to 1 MiB.
func contents(eventType, id string, at time.Time) ([]content, error) {
	event := fmt.Appendf(nil, `{"type":%q,"timestamp":%q,"data":{"amount":4200}}`, eventType, at.UTC().Format(time.RFC3339))
	if id != "" {
		// Profiles whose id is in the body: without one nobody can tell messages apart.
		event = append(fmt.Appendf(nil, `{"delivery_id":%q,`, id), event[1:]...)
	}
	var out []content
	for _, spelling := range fakeprovider.Spellings() {
		body, err := spelling.Spell(event)
		if err != nil {
			return nil, fmt.Errorf("spelling an event with %s: %w", spelling.What, err)
		}
		out = append(out, content{"an event with " + spelling.What, body})
	}
	member := func(text string) []byte {
		return append(append(bytes.Clone(event[:len(event)-1]), ","+text...), '}')
	}
	packed, err := gzipped(event)
	if err != nil {
		return nil, err
	}
	out = append(out,
		content{"an event with a name twice", member(`"type":"whconform.second"`)},
		content{`an event with \u0000 in a string`, member(`"whconform":"a\u0000b"`)},
		content{"{}", []byte("{}")},
		content{"a JSON text that is no object", []byte(`["whconform",1.0]`)},
		content{"plain text", []byte("no JSON at all\r\n")},
		content{"bytes that are not UTF-8", []byte{0xff, 0xfe, 0x00, 0x80, 0xc3, 0x28}},
		content{"an event behind a byte order mark", append([]byte("\ufeff"), event...)},
		content{"an event with U+FFFD", member("\"whconform\":\"\ufffd\"")},
		content{"an event with an invalid byte in a string", member("\"whconform\":\"\xff\"")},
		content{"gzip", packed},
		content{"nothing", []byte{}},
		content{"a single byte", []byte("0")},
	)
	for _, size := range []int{20 << 10, 64 << 10, 64<<10 + 1, 256 << 10, 1 << 20} {
		out = append(out, content{fmt.Sprintf("an event of %d bytes", size), filled(member, len(event), size)})
	}
	return out, nil
}

// filled is the event with a member that makes it of just this size.
func filled(member func(string) []byte, base, size int) []byte {
	const around = `,"whconform":""`
	return member(`"whconform":"` + strings.Repeat("x", size-base-len(around)) + `"`)
}

func gzipped(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		return nil, fmt.Errorf("packing an event: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing an event: %w", err)
	}
	return out.Bytes(), nil
}
