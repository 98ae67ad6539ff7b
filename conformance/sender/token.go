package sender

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// form is how the profile spells signatures and times: a fact of the
// transcript, since judges know nothing else of the profile.
type form struct {
	Header   string            `json:"header"`
	Grammar  string            `json:"grammar"`
	Join     string            `json:"join,omitempty"`
	Encoding string            `json:"encoding,omitempty"`
	Sizes    map[string]int    `json:"sizes"` // label of a version -> bytes of its signature
	Versions map[string]string `json:"versions,omitempty"`
	TimeIn   string            `json:"timeIn"` // header, signature, body or none
	TimeName string            `json:"timeName,omitempty"`
	TimeUnit string            `json:"timeUnit,omitempty"`
}

const factForm = "signature form"

// formOf reads the form from a profile's scheme.
func formOf(spec signature.Spec) form {
	f := form{
		Header: spec.Signature.Name, Grammar: spec.Signature.Grammar, Join: spec.Signature.Join, Encoding: spec.Encoding,
		Sizes: map[string]int{}, Versions: map[string]string{},
		TimeIn: spec.Timestamp.In, TimeName: spec.Timestamp.Name, TimeUnit: spec.Timestamp.Unit,
	}
	for _, v := range spec.Versions {
		f.Sizes[v.Label], f.Versions[v.Label] = macBytes(v.MAC), v.MAC
	}
	if len(spec.Versions) == 0 {
		label, _ := f.label()
		f.Sizes[label], f.Versions[label] = macBytes(spec.MAC), spec.MAC
	}
	return f
}

// macBytes is how long a signature is, before it is encoded; 0: not known.
func macBytes(mac string) int {
	switch mac {
	case signature.HMACSHA256:
		return 32
	case signature.HMACSHA1:
		return 20
	case signature.Ed25519:
		return 64
	}
	return 0
}

// label is what stands before {sig} in the grammar, and what separates it.
func (f form) label() (label, separator string) {
	before, _, _ := strings.Cut(f.Grammar, "{sig}")
	if f.Join != "" {
		before = before[strings.LastIndex(before, f.Join)+len(f.Join):]
	}
	for _, sep := range []string{"=", ","} {
		if label, rest, ok := strings.Cut(before, sep); ok && rest == "" {
			return label, sep
		}
	}
	return before, ""
}

// timeLabel is the label of the element that carries the time, "t".
func (f form) timeLabel() string {
	before, _, ok := strings.Cut(f.Grammar, "{ts}")
	if !ok {
		return ""
	}
	if f.Join != "" {
		before = before[strings.LastIndex(before, f.Join)+len(f.Join):]
	}
	return strings.TrimRight(before, "=,")
}

func readForm(t *evidence.Transcript) form {
	var f form
	if err := json.Unmarshal([]byte(t.Facts[factForm]), &f); err != nil {
		panic(fmt.Sprintf("the fact %q of the transcript cannot be read: %v", factForm, err))
	}
	return f
}

// element is one labelled part of a signature header.
type element struct{ label, text string }

// elements takes a signature header apart. Ones without the separator have no
// label.
func (f form) elements(value string) []element {
	parts := []string{value}
	if f.Join != "" {
		parts = strings.Split(value, f.Join)
	}
	_, sep := f.label()
	var out []element
	for _, part := range parts {
		label, text, ok := strings.Cut(part, sep)
		if sep == "" || !ok {
			label, text = "", part
		}
		out = append(out, element{label, text})
	}
	return out
}

// wrong says what is wrong with the form of a signature header; "" if nothing
// is. At least one token of a known version has to be there.
func (f form) wrong(value string) (got, cause string) {
	if f.Versions[""] == signature.PlainToken {
		return "", ""
	}
	known := 0
	label, sep := f.label()
	for _, e := range f.elements(value) {
		size, is := f.Sizes[e.label]
		switch {
		case is && size > 0:
			known++
			if got, cause := f.misspelt(e, size); got != "" {
				return got, cause
			}
		case f.timeLabel() != "" && e.label == f.timeLabel():
			if _, err := strconv.ParseInt(e.text, 10, 64); err != nil {
				return fmt.Sprintf("%s is %q, no whole number", e.label, e.text), ""
			}
		case e.label == "" && sep != "":
			return fmt.Sprintf("a part is %q, without a version", cut(e.text)), "The tokens are joined by something else than the profile says, or the label is missing."
		}
	}
	if known == 0 {
		return "there is no token " + label + sep + "…", "The version's label is missing or another."
	}
	return "", ""
}

// misspelt says what is wrong with the encoding of a signature.
func (f form) misspelt(e element, size int) (got, cause string) {
	what := fmt.Sprintf("the %s signature is no ", e.label)
	if f.Encoding == "hex" {
		switch raw, err := hex.DecodeString(e.text); {
		case err != nil:
			return what + "hexadecimal", "It is base64, or holds something else than hexadecimal digits."
		case len(raw) != size:
			return fmt.Sprintf("the %s signature has %d digits instead of %d", e.label, len(e.text), 2*size), "Another hash is used, or the text is cut."
		}
		return "", ""
	}
	encoding, name := base64.StdEncoding, "padded standard base64"
	if f.Encoding == "base64url" {
		encoding, name = base64.URLEncoding, "padded url-safe base64"
	}
	raw, err := encoding.Strict().DecodeString(e.text)
	switch {
	case err == nil && len(raw) == size:
		return "", ""
	case err == nil:
		if size == 32 && len(raw) == 48 {
			return fmt.Sprintf("the %s signature has %d bytes instead of %d", e.label, len(raw), size), "It is hexadecimal where base64 is expected: 64 hexadecimal digits read as base64 give 48 bytes."
		}
		return fmt.Sprintf("the %s signature has %d bytes instead of %d", e.label, len(raw), size), "Another hash is used, or the text is cut."
	case strings.ContainsAny(e.text, "-_"):
		return what + name, "It is encoded with the url-safe alphabet."
	case !strings.HasSuffix(e.text, "=") && len(e.text)%4 != 0:
		return what + name, "The padding is missing."
	}
	return what + name, ""
}

// cut shortens a text for a report.
func cut(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// timestamp is the time that an attempt carries, as its text; ok is false where
// there is none.
func (f form) timestamp(a *attempt) (text string, ok bool) {
	switch f.TimeIn {
	case "header":
		return wire.Get(a.Request.Headers, f.TimeName)
	case "signature":
		value, _ := wire.Get(a.Request.Headers, f.Header)
		for _, e := range f.elements(value) {
			if e.label == f.timeLabel() && e.label != "" {
				return e.text, true
			}
		}
	}
	return "", false
}

// instant reads a timestamp in the profile's unit.
func (f form) instant(text string) (time.Time, bool) {
	switch f.TimeUnit {
	case "iso8601", "rfc3339":
		at, err := time.Parse(time.RFC3339, text)
		return at, err == nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text {
		return time.Time{}, false
	}
	if f.TimeUnit == "ms" {
		return time.UnixMilli(n), true
	}
	return time.Unix(n, 0), true
}
