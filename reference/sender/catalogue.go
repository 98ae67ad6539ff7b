package sender

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/profile"
)

// EventType is a type of event that a sender publishes, as its documentation
// tells customers: a name, and the fields that data has in each version.
type EventType struct {
	Name string `json:"name"` // parts of letters, digits and _ joined by full stops: "order.shipped"
	Doc  string `json:"doc"`  // when it happens, in a sentence
	// Versions are the forms that data has had, the oldest first. With none,
	// data is passed on as it is, in every version.
	Versions []EventVersion `json:"versions,omitempty"`
}

// EventVersion is the form of an event's data from one API version on.
type EventVersion struct {
	Name   string  `json:"name"` // "2026-06-01"; versions are in the order of their names
	Fields []Field `json:"fields"`
}

// Field is one member of an event's data.
type Field struct {
	Name string `json:"name"`
	Doc  string `json:"doc,omitempty"`
}

// Catalogue lists the types of events that a sender publishes. It is read only
// once made, and safe for use by several goroutines at a time.
type Catalogue struct {
	types    []EventType
	byName   map[string]*EventType
	versions []string // all there are, the oldest first
}

// typeName is what an event type may be called.
//
// source: Standard Webhooks 1.0.0, event types.
var typeName = regexp.MustCompile(`^[a-zA-Z0-9_]+(\.[a-zA-Z0-9_]+)*$`)

// maxTypeName is the length of the longest name of an event type, 256 bytes.
const maxTypeName = 256

// NewCatalogue makes a catalogue. Names must be well formed and different, the
// versions of a type in order, and a field once there must stay: receivers rely
// on it (what has to go is a new type).
func NewCatalogue(types ...EventType) (*Catalogue, error) {
	c := &Catalogue{types: slices.Clone(types), byName: map[string]*EventType{}}
	for i := range c.types {
		t := &c.types[i]
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("event type %q: %w", t.Name, err)
		}
		if c.byName[t.Name] != nil {
			return nil, fmt.Errorf("event type %q: it is listed twice", t.Name)
		}
		c.byName[t.Name] = t
		for _, v := range t.Versions {
			c.versions = append(c.versions, v.Name)
		}
	}
	slices.Sort(c.versions)
	c.versions = slices.Compact(c.versions)
	return c, nil
}

func (t *EventType) check() error {
	if err := CheckEventType(t.Name); err != nil {
		return err
	}
	for i, v := range t.Versions {
		if v.Name == "" {
			return errors.New("a version has no name")
		}
		if i == 0 {
			continue
		}
		before := t.Versions[i-1]
		if v.Name <= before.Name {
			return fmt.Errorf("the version %q stands behind %q", v.Name, before.Name)
		}
		for _, f := range before.Fields {
			if !slices.ContainsFunc(v.Fields, func(g Field) bool { return g.Name == f.Name }) {
				return fmt.Errorf("the version %q lacks the field %q of %q", v.Name, f.Name, before.Name)
			}
		}
	}
	return nil
}

// CheckEventType tells whether a name is well formed as that of an event type.
func CheckEventType(name string) error {
	if len(name) > maxTypeName || !typeName.MatchString(name) {
		return errors.New("a type's name is letters, digits and _ in parts joined by full stops, of at most 256 bytes")
	}
	return nil
}

// Types lists the types, in the order in which they were given. A nil catalogue,
// which takes any type, lists none.
func (c *Catalogue) Types() []EventType {
	if c == nil {
		return nil
	}
	return slices.Clone(c.types)
}

// Check tells whether events of a type may be published.
func (c *Catalogue) Check(eventType string) error {
	if err := CheckEventType(eventType); err != nil {
		return fmt.Errorf("event type %q: %w", shorten(eventType), err)
	}
	if c != nil && c.byName[eventType] == nil {
		return fmt.Errorf("event type %q: it is not in the catalogue", eventType)
	}
	return nil
}

// CheckFilter tells whether an endpoint may subscribe to these types. A type
// that nobody publishes is a typing error that its owner would find out by
// silence.
func (c *Catalogue) CheckFilter(eventTypes []string) error {
	seen := map[string]bool{}
	for _, name := range eventTypes {
		if err := c.Check(name); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("event type %q: it is listed twice", name)
		}
		seen[name] = true
	}
	return nil
}

// Subscribes tells whether an endpoint with this filter gets events of a type:
// those of its types, or all with an empty filter. Whole names are compared:
// "order" is not "order.created".
func Subscribes(filter []string, eventType string) bool {
	return len(filter) == 0 || slices.Contains(filter, eventType)
}

// CheckVersion tells whether an endpoint may be pinned to a version; "" is the
// latest one.
func (c *Catalogue) CheckVersion(version string) error {
	if version == "" || c == nil || len(c.versions) == 0 || slices.Contains(c.versions, version) {
		return nil
	}
	return fmt.Errorf("API version %q: there are %s", shorten(version), strings.Join(c.versions, ", "))
}

// Latest is the newest version, "" where there are none. It is what a new
// endpoint is pinned to, so that later versions change nothing for it.
func (c *Catalogue) Latest() string {
	if c == nil || len(c.versions) == 0 {
		return ""
	}
	return c.versions[len(c.versions)-1]
}

// Rendering is what a payload is made from.
type Rendering struct {
	ID      string // of the message
	Type    string
	At      time.Time // when the event happened, not when it is sent
	Version string    // that the endpoint is pinned to; "" for the latest
	Data    json.RawMessage
}

// Envelope tells whether a profile's payloads carry the id in their body: then
// they are {delivery_id, type, created_at, api_version, data}, and otherwise
// {type, timestamp, data}.
func Envelope(p *profile.Profile) bool { return p.Signature.ID.In == "body" }

// Render makes the payload of one message, in the form of the profile and in the
// version that its endpoint is pinned to. It is called once for a message, when
// it is published; what is stored and sent are these bytes. Members stand in a
// fixed order and nothing is escaped that JSON does not ask for; data keeps its
// spelling but for blanks between its parts.
//
// source: 07 the event payload; Standard Webhooks 1.0.0, payload structure.
func (c *Catalogue) Render(p *profile.Profile, r Rendering) ([]byte, error) {
	version := r.Version
	if version == "" {
		version = c.Latest()
	}
	data, err := c.data(r.Type, version, r.Data)
	if err != nil {
		return nil, fmt.Errorf("rendering an event of type %q: %w", shorten(r.Type), err)
	}
	at := r.At.UTC().Format(time.RFC3339Nano)
	if !Envelope(p) {
		return write(struct {
			Type      string          `json:"type"`
			Timestamp string          `json:"timestamp"`
			Data      json.RawMessage `json:"data"`
		}{r.Type, at, data})
	}
	return write(struct {
		ID      string          `json:"delivery_id"`
		Type    string          `json:"type"`
		At      string          `json:"created_at"`
		Version string          `json:"api_version"`
		Data    json.RawMessage `json:"data"`
	}{r.ID, r.Type, at, version, data})
}

// data is an event's data in one version: the fields that the version has, in
// its order. One that is missing is null rather than left out, since receivers
// take a field that comes and goes for one that was removed.
func (c *Catalogue) data(eventType, version string, data json.RawMessage) (json.RawMessage, error) {
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	fields := c.fields(eventType, version)
	if fields == nil {
		var compact bytes.Buffer
		if err := json.Compact(&compact, data); err != nil {
			return nil, fmt.Errorf("its data is no JSON: %w", err)
		}
		return compact.Bytes(), nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, fmt.Errorf("its data is no JSON object: %w", err)
	}
	out := []byte{'{'}
	for i, f := range fields {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := write(f.Name)
		if err != nil {
			return nil, err
		}
		value := members[f.Name]
		if value == nil {
			value = json.RawMessage("null")
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

// fields are the fields of a type in a version: those of the newest form that is
// no newer than the version. nil: whatever there is.
func (c *Catalogue) fields(eventType, version string) []Field {
	if c == nil || c.byName[eventType] == nil {
		return nil
	}
	var fields []Field
	for i, v := range c.byName[eventType].Versions {
		if i == 0 || v.Name <= version {
			fields = v.Fields
		}
	}
	return fields
}

// write is json.Marshal without the escapes of <, > and & that only Go writes.
func write(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// shorten cuts a stranger's text for an error.
func shorten(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
