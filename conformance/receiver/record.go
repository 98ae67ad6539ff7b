package receiver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
)

// Events about one record, a payment: what the rows on the state of records
// send. The record's name stands in the payload where {{.Random}} does, or, in
// the profile's own payload, in the members of its data that a payment has.

// The types of the two events about a record where the run names none.
const (
	defaultEarlier = "payment.succeeded"
	defaultLater   = "payment.refunded"
)

// paymentAmount is what the suite's own payments are about, in the currency's
// smallest unit.
const paymentAmount = 54890

// RecordEvents makes bodies of events about a record, at a time of the event's.
type RecordEvents func(recordName, id, eventType string, at time.Time) ([]byte, error)

// TemplateRecord renders a payload template of the user's for events about a
// record: {{.Random}} is the record's name, equal in all of its events.
func TemplateRecord(t *profile.Payload) RecordEvents { return renderedRecord(t.Render) }

func renderedRecord(render func(profile.PayloadData) ([]byte, error)) RecordEvents {
	return func(recordName, id, eventType string, at time.Time) ([]byte, error) {
		return render(profile.PayloadData{ID: id, Type: eventType, Time: at, Seq: 1, Random: recordName})
	}
}

// profileRecord renders the profile's payload with a payment in its data. It
// returns nil where that has no data which could hold one.
func profileRecord(p *profile.Profile, c clock.Clock) RecordEvents {
	render := renderedRecord(p.NewPayload)
	if body, err := render("name", "id", defaultEarlier, c.Now()); err != nil || dataOf(object(body)) == nil {
		return nil
	}
	return func(recordName, id, eventType string, at time.Time) ([]byte, error) {
		body, err := render(recordName, id, eventType, at)
		if err != nil {
			return nil, err
		}
		event := object(body)
		data := dataOf(event)
		if data == nil {
			return nil, fmt.Errorf("making an event about a record: the payload of the profile %s has no data", p.Name)
		}
		data["id"], data["amount"], data["currency"] = recordName, paymentAmount, "EUR"
		data["merchant_reference"], data["status"] = "order-"+recordName, lastWord(eventType)
		return json.Marshal(event)
	}
}

// object reads a JSON object, nil if it is none. Numbers stay as they are spelt.
func object(body []byte) map[string]any {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var o map[string]any
	if d.Decode(&o) != nil {
		return nil
	}
	return o
}

// dataOf is the part of an event that speaks of its record: data.object, as
// Stripe has it, or data; nil without such.
func dataOf(event map[string]any) map[string]any {
	data, _ := event["data"].(map[string]any)
	if inner, ok := data["object"].(map[string]any); ok {
		return inner
	}
	return data
}

// lastWord is the end of an event type: "refunded" of payment.refunded.
func lastWord(eventType string) string {
	return eventType[strings.LastIndexAny(eventType, "./_: ")+1:]
}

// steps are the types of two events about a record, of which the first cannot
// undo the second. A run whose own type is that of a success keeps its words.
func (e Event) steps() (earlier, later string) {
	switch {
	case e.Steps != [2]string{}:
		return e.Steps[0], e.Steps[1]
	case lastWord(e.Type) == "succeeded" && e.Type != "succeeded":
		return e.Type, strings.TrimSuffix(e.Type, "succeeded") + "refunded"
	}
	return defaultEarlier, defaultLater
}

// record is a record that events speak of.
type record struct {
	*session
	name   string // its own, as {{.Random}} is
	spelt  string // as the payload names it, perhaps with something around
	render RecordEvents
}

// newRecord names a record that no event has spoken of. It is nil, and the
// requirement skipped, where events cannot speak of one.
func (s *session) newRecord(id string) *record {
	render := s.Event.Records
	if render == nil {
		render = profileRecord(s.Profile, s.Clock)
	}
	if render == nil {
		s.skip(id, evidence.NotObservable, "the payload of the profile %s speaks of no record whose state could change; give one that does by --payload", s.Profile.Name)
		return nil
	}
	r := &record{session: s, name: "pay_" + strings.TrimPrefix(s.Provider.NewID(), s.Profile.IDPrefix), render: render}
	body, err := render(r.name, "id", defaultEarlier, s.Clock.Now())
	if s.fail(err); err != nil {
		return nil
	}
	if r.spelt = named(object(body), r.name); r.spelt == "" {
		s.skip(id, evidence.NotObservable, "the payload does not name the record that it speaks of; put {{.Random}} where its name stands")
		return nil
	}
	return r
}

// event makes a delivery of a new event about the record. It happened at a time,
// and is signed now: as a provider does that tries it again.
func (r *record) event(eventType string, at time.Time) fakeprovider.Delivery {
	id := r.Provider.NewID()
	body, err := r.render(r.name, id, eventType, at)
	r.fail(err)
	return fakeprovider.Delivery{ID: id, Type: eventType, Keys: []signature.Key{r.Keys.Current}, Body: body}
}

// payment is the record as the provider's API tells of it, in agreement with an
// event about it. ok is false where the event tells no amount.
func (r *record) payment(d fakeprovider.Delivery) (p fakeprovider.Payment, ok bool) {
	p = fakeprovider.Payment{ID: r.spelt, Status: lastWord(d.Type)}
	event := object(d.Body)
	amount, found := member(event, "amount").(json.Number)
	if n, err := amount.Int64(); found && err == nil {
		p.Amount, ok = n, true
	}
	p.Currency, _ = member(event, "currency").(string)
	for _, name := range []string{"merchant_reference", "reference"} {
		if text, is := member(event, name).(string); is && p.Reference == "" {
			p.Reference = text
		}
	}
	return p, ok
}

// named is the text in an event that holds a record's name, an id before any
// other; "" without one.
func named(event map[string]any, name string) string {
	if text := textWith(event, name, true); text != "" {
		return text
	}
	return textWith(event, name, false)
}

func textWith(v any, name string, onlyIDs bool) string {
	o, _ := v.(map[string]any)
	for _, key := range keysOf(o) {
		if text, ok := o[key].(string); ok && strings.Contains(text, name) && (key == "id" || !onlyIDs) {
			return text
		}
		if found := textWith(o[key], name, onlyIDs); found != "" {
			return found
		}
	}
	return ""
}

// member is the first member of that name, the outer ones first; nil without one.
func member(v any, name string) any {
	o, _ := v.(map[string]any)
	if found, ok := o[name]; ok {
		return found
	}
	for _, key := range keysOf(o) {
		if found := member(o[key], name); found != nil {
			return found
		}
	}
	return nil
}

func keysOf(o map[string]any) []string {
	keys := make([]string, 0, len(o))
	for key := range o {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
