package fakeprovider

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/signature"
)

// The alterations of this file are made before signing: the delivery is
// authentic, the signature covers what they change.

// At signs at another time: offset after the delivery's own, before it when
// negative.
func At(offset time.Duration) Alteration {
	return Alteration{"at" + signed(offset), BeforeSigning, func(d *Draft) {
		d.Input.Time = d.Input.Time.Add(offset)
		d.writeTimeIntoBody()
	}}
}

// Age signs as if the delivery had been made that long ago: a captured
// request that comes late.
func Age(age time.Duration) Alteration {
	a := At(-age)
	a.Name = "age-" + age.String()
	return a
}

// signed is a duration with its sign, for names.
func signed(d time.Duration) string {
	if d < 0 {
		return d.String()
	}
	return "+" + d.String()
}

// Timestamp puts text in place of the timestamp, well formed or not, and signs
// it as it stands. The empty text is signed as an empty timestamp.
func Timestamp(text string) Alteration {
	return Alteration{"timestamp-" + label(text), BeforeSigning, func(d *Draft) {
		if text == "" {
			d.signEmptyTime()
			return
		}
		d.Input.Timestamp = text
		d.writeTimeIntoBody()
	}}
}

// signEmptyTime makes the signed content the scheme's without its {ts}: to
// signature.Input an empty timestamp means "take the time".
func (d *Draft) signEmptyTime() {
	spec := d.scheme.Spec()
	if spec.Timestamp.In == "body" {
		d.Fail(errors.New("an empty timestamp inside the body: alter the body instead"))
		return
	}
	spec.Content = slices.DeleteFunc(spec.Content, func(piece string) bool { return piece == "{ts}" })
	scheme, err := signature.New(spec)
	if err != nil {
		d.Fail(fmt.Errorf("signing an empty timestamp: %w", err))
		return
	}
	d.signingScheme, d.emptyTime = scheme, true
}

// writeTimeIntoBody keeps a timestamp that the body carries equal to the
// input's.
func (d *Draft) writeTimeIntoBody() {
	spec := d.scheme.Spec().Timestamp
	if spec.In != "body" {
		return
	}
	text := d.Input.Timestamp
	if text == "" {
		text = timeText(d.Input.Time, spec.Unit)
	}
	if !isJSONNumber(text) {
		text = quoteJSON(text)
	}
	body, err := replaceInBody(d.Input.Body, spec.Name, text)
	if err != nil {
		d.Fail(fmt.Errorf("moving the timestamp: %w", err))
		return
	}
	d.Input.Body = body
}

// timeText is a time in a scheme's unit.
func timeText(t time.Time, unit string) string {
	switch unit {
	case "ms":
		return strconv.FormatInt(t.UnixMilli(), 10)
	case "iso8601", "rfc3339":
		return t.UTC().Format(time.RFC3339)
	}
	return strconv.FormatInt(t.Unix(), 10)
}

// ID makes text the message id, in the header or in the body, wherever the
// scheme carries it, and signs it so.
func ID(text string) Alteration {
	return Alteration{"id-" + label(text), BeforeSigning, func(d *Draft) {
		d.Input.ID = text
		spec := d.scheme.Spec().ID
		if spec.In != "body" {
			return
		}
		body, err := replaceInBody(d.Input.Body, spec.Name, quoteJSON(text))
		if err != nil {
			d.Fail(fmt.Errorf("changing the id: %w", err))
			return
		}
		d.Input.Body = body
	}}
}

// BodyBytes signs and sends b in place of the event.
func BodyBytes(b []byte) Alteration {
	return Alteration{"body", BeforeSigning, func(d *Draft) { d.Input.Body = slices.Clone(b) }}
}

// EditBody signs and sends what edit makes of the event. An error of edit is
// Draft's.
func EditBody(name string, edit func(body []byte) ([]byte, error)) Alteration {
	return Alteration{name, BeforeSigning, func(d *Draft) {
		body, err := edit(slices.Clone(d.Input.Body))
		if err != nil {
			d.Fail(err)
			return
		}
		d.Input.Body = body
	}}
}

// AddMember signs and sends the event, a JSON object, with one more member at
// its top level. value is JSON as it shall stand.
func AddMember(name, value string) Alteration {
	return EditBody("member-"+label(name), func(body []byte) ([]byte, error) {
		return addMember(body, "", quoteJSON(name)+":"+value, "")
	})
}

// DeepJSON nests levels arrays in the event: as a further member where the
// event is a JSON object, so that what a receiver looks for is still there, in
// place of it otherwise.
func DeepJSON(levels int) Alteration {
	name := "deep-" + strconv.Itoa(levels)
	return EditBody(name, func(body []byte) ([]byte, error) {
		deep := strings.Repeat("[", levels) + strings.Repeat("]", levels)
		if nested, err := addMember(body, "", `"whconform":`+deep, ""); err == nil {
			return nested, nil
		}
		return []byte(deep), nil
	})
}

// FillTo signs and sends the event, a JSON object, filled up with a further
// member to exactly size bytes. It fails when the event with an empty member
// is longer.
func FillTo(size int) Alteration {
	return EditBody("fill-"+strconv.Itoa(size), func(body []byte) ([]byte, error) {
		empty, err := addMember(body, "", `"whconform":""`, "")
		if err != nil {
			return nil, err
		}
		if len(empty) > size {
			return nil, fmt.Errorf("filling the event to %d B: it has %d B already", size, len(empty))
		}
		return addMember(body, "", `"whconform":"`+strings.Repeat("x", size-len(empty))+`"`, "")
	})
}

// WithKeys signs with keys, one token each, in place of the delivery's. With
// no key there are no tokens.
func WithKeys(keys ...signature.Key) Alteration {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Label
	}
	name := "keys-" + label(strings.Join(names, "-"))
	return Alteration{name, BeforeSigning, func(d *Draft) { d.Keys = slices.Clone(keys) }}
}

// Method sends by another method; schemes that sign the method sign it.
func Method(method string) Alteration {
	return Alteration{"method-" + label(method), BeforeSigning, func(d *Draft) { d.Input.Method = method }}
}

// labelMax cuts texts in alterations' names: labels stand in one line of a
// report.
const labelMax = 32

// label makes text fit for a name: letters, digits, dots, dashes and
// underscores stay.
func label(text string) string {
	out := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_', r == '+':
			return r
		}
		return '_'
	}, text)
	if out == "" {
		return "empty"
	}
	return out[:min(len(out), labelMax)]
}
