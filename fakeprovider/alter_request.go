package fakeprovider

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// The alterations of this file are made after signing: the signature covers
// what was, not what is sent.

// SwapID puts another id in place of the signed one, in the header or in the
// body, wherever the scheme carries it.
func SwapID(text string) Alteration {
	return Alteration{"swap-id", AfterSigning, func(d *Draft) {
		spec := d.scheme.Spec().ID
		if spec.In == "body" {
			d.editRequestBody(func(body []byte) ([]byte, error) { return replaceInBody(body, spec.Name, quoteJSON(text)) })
			return
		}
		in := d.Input
		in.ID = text
		d.rewrite(in)
	}}
}

// ShiftTimestamp moves the timestamp that stands in the request by seconds.
func ShiftTimestamp(seconds int) Alteration {
	name := "shift-timestamp" + signed(time.Duration(seconds)*time.Second)
	return Alteration{name, AfterSigning, func(d *Draft) {
		spec := d.scheme.Spec().Timestamp
		if spec.In == "none" || spec.In == "" {
			d.Fail(errors.New("the scheme has no timestamp"))
			return
		}
		if d.Input.Timestamp != "" || d.emptyTime {
			d.Fail(errors.New("a timestamp that was set as a text cannot be moved"))
			return
		}
		moved := d.Input.Time.Add(time.Duration(seconds) * time.Second)
		if spec.In == "body" {
			text := timeText(moved, spec.Unit)
			if !isJSONNumber(text) {
				text = quoteJSON(text)
			}
			d.editRequestBody(func(body []byte) ([]byte, error) { return replaceInBody(body, spec.Name, text) })
			return
		}
		in := d.Input
		in.Time = moved
		d.rewrite(in)
	}}
}

// rewrite writes the scheme's headers for in, with the tokens that were made
// for the draft's own input, and changes those lines which differ. The others
// may have been altered already and keep that.
func (d *Draft) rewrite(in signature.Input) {
	before, after := d.headers(d.Input, d.emptyTime), d.headers(in, false)
	changed := false
	for i := range before {
		if i >= len(after) || before[i] == after[i] {
			continue
		}
		changed = true
		d.Request.Headers = wire.Set(d.Request.Headers, after[i].Name, after[i].Value)
	}
	if !changed {
		d.Fail(errors.New("no header carries what was to be changed"))
	}
}

func (d *Draft) editRequestBody(edit func(body []byte) ([]byte, error)) {
	body, err := edit(slices.Clone(d.Request.Body))
	if err != nil {
		d.Fail(err)
		return
	}
	d.Request.Body = body
}

// DropTimestamp takes the timestamp out of the request: its header, or its
// element where it stands in the signature header.
func DropTimestamp() Alteration {
	return Alteration{"drop-timestamp", AfterSigning, func(d *Draft) { d.editTimestamp(true) }}
}

// EmptyTimestamp leaves the timestamp's place empty under the signature of the
// full one.
func EmptyTimestamp() Alteration {
	return Alteration{"empty-timestamp", AfterSigning, func(d *Draft) { d.editTimestamp(false) }}
}

func (d *Draft) editTimestamp(drop bool) {
	parts := d.parts()
	switch {
	case parts.Timestamp == "":
		d.Fail(errors.New("no header carries a timestamp"))
	case parts.Timestamp != parts.Signature && drop:
		d.dropHeader(parts.Timestamp)
	case parts.Timestamp != parts.Signature:
		d.setHeader(parts.Timestamp, "")
	default:
		d.editTimestampElement(parts.Signature, drop)
	}
}

// editTimestampElement edits "t=1700000000,v1=…": it finds the element by
// writing the header once more with a mark in the timestamp's place.
func (d *Draft) editTimestampElement(header string, drop bool) {
	in := d.Input
	in.Timestamp = timeMark
	marked, ok := wire.Get(d.scheme.Headers(in, d.Tokens...), header)
	if !ok || !strings.Contains(marked, timeMark) {
		d.Fail(errors.New("the signature header carries no timestamp"))
		return
	}
	if !drop {
		d.setHeader(header, strings.ReplaceAll(marked, timeMark, ""))
		return
	}
	join := d.scheme.Spec().Signature.Join
	if join == "" {
		join = ","
	}
	elements := slices.DeleteFunc(strings.Split(marked, join), func(e string) bool { return strings.Contains(e, timeMark) })
	d.setHeader(header, strings.Join(elements, join))
}

func (d *Draft) dropHeader(name string) {
	if wire.Count(d.Request.Headers, name) == 0 {
		d.Fail(fmt.Errorf("the delivery has no header %q", name))
		return
	}
	d.Request.Headers = wire.Drop(d.Request.Headers, name)
}

func (d *Draft) setHeader(name, value string) {
	d.Request.Headers = wire.Set(d.Request.Headers, name, value)
}

// ChangeDigit changes one digit of the body, the first after a colon where
// there is one, else the first at all: the amount, not the key.
func ChangeDigit() Alteration {
	return Alteration{"change-digit", AfterSigning, func(d *Draft) {
		d.editRequestBody(func(body []byte) ([]byte, error) {
			at := -1
			for i, c := range body {
				if c < '0' || c > '9' {
					continue
				}
				if i > 0 && body[i-1] == ':' {
					at = i
					break
				}
				if at < 0 {
					at = i
				}
			}
			if at < 0 {
				return changeLetter(body)
			}
			// 1 to 9 stay among themselves: a leading zero would be another
			// fault, malformed JSON.
			if body[at] = body[at] + 1; body[at] > '9' {
				body[at] = '1'
			}
			return body, nil
		})
	}}
}

// changeLetter changes a letter of a body without digits: the last, which
// stands in a value.
func changeLetter(body []byte) ([]byte, error) {
	for i, c := range slices.Backward(body) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			body[i] = c ^ 1 // another letter, or a bracket beside the alphabet
			return body, nil
		}
	}
	return nil, errors.New("the body has no digit and no letter to change")
}

// AppendByte puts one more byte behind the body: a blank, after which JSON is
// still well formed.
func AppendByte() Alteration {
	return Alteration{"append-byte", AfterSigning, func(d *Draft) { d.Request.Body = append(d.Request.Body, ' ') }}
}

// RemoveByte takes away the body's last byte.
func RemoveByte() Alteration {
	return Alteration{"remove-byte", AfterSigning, func(d *Draft) {
		if len(d.Request.Body) == 0 {
			d.Fail(errors.New("the body has no byte to remove"))
			return
		}
		d.Request.Body = d.Request.Body[:len(d.Request.Body)-1]
	}}
}

// SendBody sends b under the signature of the event.
func SendBody(b []byte) Alteration {
	return Alteration{"other-body", AfterSigning, func(d *Draft) { d.Request.Body = slices.Clone(b) }}
}

// EditSentBody sends what edit makes of the signed event.
func EditSentBody(name string, edit func(body []byte) ([]byte, error)) Alteration {
	return Alteration{name, AfterSigning, func(d *Draft) { d.editRequestBody(edit) }}
}

// Reserialize sends the event as a JSON library would write it (see
// [Serializers]) under the signature of the original.
func Reserialize(library string) Alteration {
	return EditSentBody("reserialize-"+label(library), func(body []byte) ([]byte, error) { return Respell(library, body) })
}

// DropHeader takes away the header called name, in whatever case. The draft
// must have one.
func DropHeader(name string) Alteration {
	return Alteration{"drop-" + label(name), AfterSigning, func(d *Draft) { d.dropHeader(name) }}
}

// EmptyHeader leaves the header called name with an empty value. The draft must
// have one.
func EmptyHeader(name string) Alteration {
	return Alteration{"empty-" + label(name), AfterSigning, func(d *Draft) {
		if wire.Count(d.Request.Headers, name) == 0 {
			d.Fail(fmt.Errorf("the delivery has no header %q", name))
			return
		}
		d.setHeader(name, "")
	}}
}

// RenameHeader writes the header called from under another name, in its place.
func RenameHeader(from, to string) Alteration {
	return Alteration{"rename-" + label(from), AfterSigning, func(d *Draft) {
		done := false
		for i, h := range d.Request.Headers {
			if strings.EqualFold(h.Name, from) {
				d.Request.Headers[i].Name = to
				done = true
			}
		}
		if !done {
			d.Fail(fmt.Errorf("the delivery has no header %q", from))
		}
	}}
}

// AddHeader adds a line, beside others of that name. Name and value go out as
// they stand, line breaks and all.
func AddHeader(name, value string) Alteration {
	return Alteration{"add-" + label(name), AfterSigning, func(d *Draft) {
		d.Request.Headers = append(d.Request.Headers, wire.Header{Name: name, Value: value})
	}}
}

// SetHeader puts value in place of the header's, or adds the header. Name and
// value go out as they stand, line breaks and all.
func SetHeader(name, value string) Alteration {
	return Alteration{"set-" + label(name), AfterSigning, func(d *Draft) { d.setHeader(name, value) }}
}

// DropSignatureHeaders takes away all headers of the scheme, those of id and
// timestamp too.
func DropSignatureHeaders() Alteration {
	return Alteration{"unsigned", AfterSigning, func(d *Draft) {
		for _, name := range schemeHeaders(d.scheme) {
			d.Request.Headers = wire.Drop(d.Request.Headers, name)
		}
	}}
}

// ContentType names another type of the body.
func ContentType(value string) Alteration {
	a := SetHeader("Content-Type", value)
	a.Name = "content-type-" + label(value)
	return a
}

// NoContentType sends no Content-Type.
func NoContentType() Alteration {
	return Alteration{"no-content-type", AfterSigning, func(d *Draft) { d.Request.Headers = wire.Drop(d.Request.Headers, "Content-Type") }}
}

// NoUserAgent sends no User-Agent.
func NoUserAgent() Alteration {
	return Alteration{"no-user-agent", AfterSigning, func(d *Draft) { d.Request.Headers = wire.Drop(d.Request.Headers, "User-Agent") }}
}

// Path sends to another target than the URL's: a path and query as they stand
// in the request line.
func Path(target string) Alteration {
	return Alteration{"path-" + label(target), AfterSigning, func(d *Draft) { d.Request.Target = target }}
}

// HugeHeader adds one header line with a value of size bytes.
func HugeHeader(size int) Alteration {
	return Alteration{"huge-header-" + strconv.Itoa(size), AfterSigning, func(d *Draft) {
		d.Request.Headers = append(d.Request.Headers, wire.Header{Name: "X-Whconform-Fill", Value: strings.Repeat("x", size)})
	}}
}

// ManyHeaders adds n header lines of different names, each with a value of
// size bytes.
func ManyHeaders(n, size int) Alteration {
	return Alteration{"many-headers-" + strconv.Itoa(n), AfterSigning, func(d *Draft) {
		value := strings.Repeat("x", size)
		for i := range n {
			d.Request.Headers = append(d.Request.Headers, wire.Header{Name: "X-Whconform-Fill-" + strconv.Itoa(i), Value: value})
		}
	}}
}

// Case is a way to write header names.
type Case int

// The ways to write header names. HTTP takes them all for the same
// (RFC 9110 §5.1).
const (
	LowerCase Case = iota // webhook-id
	UpperCase             // WEBHOOK-ID
	TitleCase             // Webhook-Id
	MixedCase             // wEbHoOk-Id
)

// HeaderCase writes the names of all headers of the draft in one way.
func HeaderCase(c Case) Alteration {
	name := [...]string{"lower", "upper", "title", "mixed"}[max(0, min(int(c), 3))]
	return Alteration{"case-" + name, AfterSigning, func(d *Draft) {
		for i := range d.Request.Headers {
			d.Request.Headers[i].Name = c.of(d.Request.Headers[i].Name)
		}
	}}
}

// of writes a name in the case.
func (c Case) of(name string) string {
	switch c {
	case UpperCase:
		return strings.ToUpper(name)
	case LowerCase:
		return strings.ToLower(name)
	}
	out, start := []rune(strings.ToLower(name)), true
	for i, r := range out {
		if (c == TitleCase && start) || (c == MixedCase && i%2 == 1) {
			out[i] = unicode.ToUpper(r)
		}
		start = r == '-'
	}
	return string(out)
}
