package sender

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/reference/profile"
)

func contract(t testing.TB, name string) *profile.Profile {
	t.Helper()
	p, err := profile.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func shop(t testing.TB) *Catalogue {
	t.Helper()
	c, err := NewCatalogue(
		EventType{Name: "order.shipped", Doc: "An order left the house.", Versions: []EventVersion{
			{Name: "2026-01-01", Fields: []Field{{Name: "id"}, {Name: "carrier"}}},
			{Name: "2026-06-01", Fields: []Field{{Name: "id"}, {Name: "carrier"}, {Name: "tracking", Doc: "The carrier's number."}}},
		}},
		EventType{Name: "order.note", Doc: "Somebody wrote something."},
	)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAPayloadIsRenderedInTheFormOfTheProfile(t *testing.T) {
	at := time.Date(2026, 11, 14, 10, 0, 0, 5e6, time.FixedZone("", 3600))
	data := json.RawMessage(`{"tracking":"<&> é","id": 1.0, "internal":true,"carrier":null}`)
	for name, c := range map[string]struct {
		profile string
		r       Rendering
		want    string
	}{
		"standard, the latest version": {"standard-webhooks", Rendering{Type: "order.shipped", At: at, Data: data},
			`{"type":"order.shipped","timestamp":"2026-11-14T09:00:00.005Z","data":{"id":1.0,"carrier":null,"tracking":"<&> é"}}`},
		"standard, a pinned version": {"standard-webhooks", Rendering{Type: "order.shipped", At: at, Version: "2026-01-01", Data: data},
			`{"type":"order.shipped","timestamp":"2026-11-14T09:00:00.005Z","data":{"id":1.0,"carrier":null}}`},
		"envelope": {"delivery-envelope", Rendering{ID: "whd_1", Type: "order.shipped", At: at, Version: "2026-06-01", Data: data},
			`{"delivery_id":"whd_1","type":"order.shipped","created_at":"2026-11-14T09:00:00.005Z","api_version":"2026-06-01","data":{"id":1.0,"carrier":null,"tracking":"<&> é"}}`},
		"a missing field is null": {"standard-webhooks", Rendering{Type: "order.shipped", At: day, Data: json.RawMessage(`{"id":"o1"}`)},
			`{"type":"order.shipped","timestamp":"2026-11-14T10:00:00Z","data":{"id":"o1","carrier":null,"tracking":null}}`},
		"a type without fields keeps its data": {"standard-webhooks", Rendering{Type: "order.note", At: day, Data: json.RawMessage(`[1, "\u0041/\/", 1e2]`)},
			`{"type":"order.note","timestamp":"2026-11-14T10:00:00Z","data":[1,"\u0041/\/",1e2]}`},
		"no data": {"standard-webhooks", Rendering{Type: "order.note", At: day},
			`{"type":"order.note","timestamp":"2026-11-14T10:00:00Z","data":null}`},
		"a version between two": {"standard-webhooks", Rendering{Type: "order.shipped", At: day, Version: "2026-03-01", Data: json.RawMessage(`{}`)},
			`{"type":"order.shipped","timestamp":"2026-11-14T10:00:00Z","data":{"id":null,"carrier":null}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := shop(t).Render(contract(t, c.profile), c.r)
			if err != nil || string(got) != c.want {
				t.Errorf("%s, %v, want\n%s", got, err, c.want)
			}
		})
	}
}

func TestDataThatIsNoJSONIsRefused(t *testing.T) {
	for _, eventType := range []string{"order.shipped", "order.note"} {
		for _, data := range []string{`{`, `nul`, `{"a":1}x`} {
			if got, err := shop(t).Render(contract(t, "standard-webhooks"), Rendering{Type: eventType, Data: json.RawMessage(data)}); err == nil {
				t.Errorf("%s with %s became %s", eventType, data, got)
			}
		}
	}
	if _, err := shop(t).Render(contract(t, "standard-webhooks"), Rendering{Type: "order.shipped", Data: json.RawMessage(`[]`)}); err == nil {
		t.Error("a list is taken for an object with fields")
	}
}

func TestWithoutACatalogueAnyTypeIsPublished(t *testing.T) {
	var none *Catalogue
	if err := none.Check("whconform.s17"); err != nil {
		t.Error(err)
	}
	if none.Types() != nil || none.Latest() != "" || none.CheckVersion("2026-06-01") != nil {
		t.Error("it lists something, or refuses a version")
	}
	got, err := none.Render(contract(t, "standard-webhooks"), Rendering{Type: "a.b", At: day, Data: json.RawMessage(`{"b":1,"a":2}`)})
	if want := `{"type":"a.b","timestamp":"2026-11-14T10:00:00Z","data":{"b":1,"a":2}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

func TestAFilterNamesTypesThatThereAre(t *testing.T) {
	c := shop(t)
	for name, filter := range map[string][]string{
		"unknown": {"order.shiped"}, "badly formed": {"order shipped"}, "part of a name": {"order"}, "twice": {"order.note", "order.note"},
		"empty": {""}, "a wildcard": {"order.*"}, "a full stop at the end": {"order."},
	} {
		if err := c.CheckFilter(filter); err == nil {
			t.Errorf("%s: %q is taken", name, filter)
		}
	}
	if err := c.CheckFilter([]string{"order.note", "order.shipped"}); err != nil {
		t.Error(err)
	}
	if err := c.CheckFilter(nil); err != nil {
		t.Error(err)
	}
	if err := c.Check(strings.Repeat("a", 1e6)); err == nil || len(err.Error()) > 300 {
		t.Errorf("a type of a megabyte: %v", err)
	}
}

func TestAnEndpointGetsTheTypesOfItsFilterByTheirWholeNames(t *testing.T) {
	for _, c := range []struct {
		filter []string
		event  string
		want   bool
	}{
		{nil, "order.created", true},
		{[]string{"order.created"}, "order.created", true},
		{[]string{"order"}, "order.created", false},
		{[]string{"order.created"}, "order", false},
		{[]string{"order.created"}, "order_item.created", false},
		{[]string{"a", "order.created"}, "order.created", true},
	} {
		if got := Subscribes(c.filter, c.event); got != c.want {
			t.Errorf("%q gets %s: %v", c.filter, c.event, got)
		}
	}
}

func TestACatalogueHoldsToItsOwnRules(t *testing.T) {
	fields := func(names ...string) (out []Field) {
		for _, n := range names {
			out = append(out, Field{Name: n})
		}
		return out
	}
	for name, types := range map[string][]EventType{
		"a bad name":             {{Name: "order shipped"}},
		"a type twice":           {{Name: "a"}, {Name: "a"}},
		"a version without name": {{Name: "a", Versions: []EventVersion{{}}}},
		"versions out of order":  {{Name: "a", Versions: []EventVersion{{Name: "2"}, {Name: "1"}}}},
		"a field that went":      {{Name: "a", Versions: []EventVersion{{"1", fields("x", "y")}, {"2", fields("x")}}}},
	} {
		if _, err := NewCatalogue(types...); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
	if v := shop(t).Latest(); v != "2026-06-01" {
		t.Errorf("the latest version is %q", v)
	}
	if err := shop(t).CheckVersion("2025-01-01"); err == nil || !strings.Contains(err.Error(), "2026-01-01, 2026-06-01") {
		t.Errorf("a version that there is not: %v", err)
	}
}
