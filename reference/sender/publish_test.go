package sender

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/reference/profile"
)

func TestAFinishedPayloadIsSentByteForByte(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, 500, 200)
	for _, body := range []string{
		" {\"a\" : 1.0}\n", "\xff\x00\xfe", "{\"a\":\"\u2028\"}", strings.Repeat("x", MaxPayload), "1",
	} {
		if _, err := g.Publish(context.Background(), Event{Type: "a.b", Raw: []byte(body)}); err != nil {
			t.Fatal(err)
		}
		g.passTime(time.Minute)
		calls := g.peer.at("/e")
		if got := calls[len(calls)-1].body; got != body {
			t.Errorf("sent %.40q, want %.40q", got, body)
		}
	}
	if calls := g.peer.at("/e"); calls[0].body != calls[1].body {
		t.Errorf("the retry sent other bytes")
	}
}

func TestThePayloadIsThatOfTheProfile(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, want := range map[string][]string{
		"standard-webhooks": {"data", "timestamp", "type"},
		"delivery-envelope": {"api_version", "created_at", "data", "delivery_id", "type"},
	} {
		g := newStage(t, name)
		g.endpoint("/e", nil, 500, 200)
		ids, err := g.Publish(context.Background(), Event{Type: "a.b", Time: at, Data: []byte(`{ "n" : 1 }`)})
		if err != nil {
			t.Fatal(err)
		}
		g.passTime(5 * time.Minute)
		calls := g.peer.at("/e")
		var payload map[string]json.RawMessage
		if err := json.Unmarshal([]byte(calls[0].body), &payload); err != nil {
			t.Fatal(err)
		}
		var members []string
		for m := range payload {
			members = append(members, m)
		}
		slices.Sort(members)
		if !slices.Equal(members, want) || string(payload["data"]) != `{"n":1}` || len(calls) != 2 || !same(calls) || calls[0].id != ids[0] {
			t.Errorf("%s: sent %s under %s, %d times", name, calls[0].body, calls[0].id, len(calls))
		}
	}
}

func TestEachEndpointGetsItsTypesInItsVersionUnderItsSecret(t *testing.T) {
	catalogue, err := NewCatalogue(EventType{Name: "order.shipped", Versions: []EventVersion{
		{Name: "2025", Fields: []Field{{Name: "id"}}}, {Name: "2026", Fields: []Field{{Name: "id"}, {Name: "weight"}}},
	}}, EventType{Name: "order.shipped_late"})
	if err != nil {
		t.Fatal(err)
	}
	g := newStage(t, "standard-webhooks", func(o *Options) { o.Catalogue = catalogue })
	make := func(path, version string, types ...string) {
		t.Helper()
		_, secret, err := g.CreateEndpoint(context.Background(), EndpointSpec{URL: g.peer.server.URL + path, EventTypes: types, APIVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		g.peer.learn(path, path, secret) // a copy signed with another's secret does not verify
	}
	make("/old", "2025", "order.shipped")
	make("/new", "", "order.shipped")
	make("/all", "2026")
	make("/other", "", "order.shipped_late")
	ids, err := g.Publish(context.Background(), Event{Type: "order.shipped", Data: []byte(`{"id":1,"weight":2,"secret":3}`)})
	if err != nil || len(ids) != 3 {
		t.Fatal(ids, err)
	}
	g.settle()
	for path, want := range map[string]string{"/old": `"data":{"id":1}`, "/new": `"data":{"id":1,"weight":2}`, "/all": `"data":{"id":1,"weight":2}`} {
		if calls := g.peer.at(path); len(calls) != 1 || !strings.Contains(calls[0].body, want) {
			t.Errorf("%s got %+v, want one with %s", path, calls, want)
		}
	}
	if calls := g.peer.at("/other"); len(calls) != 0 {
		t.Errorf("an endpoint with another type got %+v", calls)
	}
	if n, err := column[int](g.store.query(context.Background(), "SELECT count(*) FROM payloads")); err != nil || n[0] != 2 {
		t.Errorf("%d payloads are stored, %v; want one a version", n[0], err)
	}
	g.peer.script("/all", 500)
	if _, err := g.Publish(context.Background(), Event{Type: "no.such", Data: []byte(`1`)}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a type that is not in the catalogue: %v", err)
	}
}

func TestTheBytesStayWhenTheRecordChanges(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, 500, 200)
	id := g.publish("a.b")
	g.settle()
	if err := g.ChangeRecord(context.Background(), id, []byte(`{"n":2}`)); err != nil {
		t.Fatal(err)
	}
	g.passTime(time.Minute)
	if calls := g.peer.at("/e"); len(calls) != 2 || !same(calls) || !strings.Contains(calls[1].body, `{"n":1}`) {
		t.Errorf("got %+v", calls)
	}
	if record, err := g.Record(context.Background(), id); err != nil || string(record) != `{"n":2}` {
		t.Errorf("the record is %s, %v", record, err)
	}
	if err := g.ChangeRecord(context.Background(), "msg_no", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("changing what is not there: %v", err)
	}
}

func TestWhatIsPublishedInATransactionStandsOrFallsWithIt(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, 200)
	ctx := context.Background()
	shop := func(ctx context.Context, tx *sql.Tx) (id string, err error) {
		if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS orders (id TEXT)`); err != nil {
			return "", err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO orders (id) VALUES ('o')`); err != nil {
			return "", err
		}
		ids, err := g.PublishTx(ctx, tx, Event{Type: "a.b", Data: []byte(`1`)})
		if err != nil || len(ids) != 1 {
			return "", errors.Join(err, errors.New("no message"))
		}
		return ids[0], nil
	}
	sorry := errors.New("the card was refused")
	err := g.Transaction(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := shop(ctx, tx); err != nil {
			return err
		}
		return sorry
	})
	if !errors.Is(err, sorry) {
		t.Fatal(err)
	}
	g.passTime(time.Hour)
	if n := len(g.peer.at("/e")); n != 0 {
		t.Errorf("%d requests after a rollback", n)
	}
	var id string
	err = g.Transaction(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		id, err = shop(ctx, tx)
		g.passTime(time.Second) // nothing is sent before the commit
		if n := len(g.peer.at("/e")); n != 0 {
			t.Errorf("%d requests before the commit", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	g.settle()
	if calls := g.peer.at("/e"); len(calls) != 1 || calls[0].id != id {
		t.Errorf("got %+v, want %s", calls, id)
	}
}

func TestATransactionGoesOnAfterAnEventThatCouldNotBePublished(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, 200)
	err := g.Transaction(context.Background(), func(ctx context.Context, tx *sql.Tx) error {
		if _, err := g.PublishTx(ctx, tx, Event{Type: "a.b", Data: []byte(`{"broken`)}); !errors.Is(err, ErrInvalid) {
			t.Errorf("publishing what is no JSON: %v", err)
		}
		_, err := g.PublishTx(ctx, tx, Event{Type: "a.b", Data: []byte(`1`)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	g.settle()
	if n := len(g.peer.at("/e")); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestWhatCanNeverBeTakenIsRefused(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, 200)
	for name, e := range map[string]Event{
		"no payload":            {Type: "a.b"},
		"two payloads":          {Type: "a.b", Data: []byte(`1`), Raw: []byte(`1`)},
		"a payload too large":   {Type: "a.b", Raw: make([]byte, MaxPayload+1)},
		"data too large":        {Type: "a.b", Data: []byte(`"` + strings.Repeat("x", MaxPayload) + `"`)},
		"data that is no JSON":  {Type: "a.b", Data: []byte(`{`)},
		"a type with blanks":    {Type: "a b", Data: []byte(`1`)},
		"the type of all types": {Type: "*", Data: []byte(`1`)},
		"no type":               {Data: []byte(`1`)},
	} {
		if ids, err := g.Publish(context.Background(), e); !errors.Is(err, ErrInvalid) || ids != nil {
			t.Errorf("%s: %v, %v; want ErrInvalid", name, ids, err)
		}
	}
	if all, err := g.Messages(context.Background(), MessageFilter{}); err != nil || len(all) != 0 {
		t.Errorf("stored %v, %v", all, err)
	}
}

func TestEndpointsThatMakeNoSenseAreRefused(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	for name, spec := range map[string]EndpointSpec{
		"plain http":      {URL: "http://example.com/hooks"},
		"an internal one": {URL: "https://169.254.169.254/hooks"},
		"a bad type":      {URL: "https://example.com/hooks", EventTypes: []string{"*"}},
		"a doubled type":  {URL: "https://example.com/hooks", EventTypes: []string{"a", "a"}},
	} {
		_, secret, err := g.CreateEndpoint(context.Background(), spec)
		_, refused := errors.AsType[*RefusedError](err)
		if secret != "" || !refused && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSecretsAndIDsDiffer(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	seen := map[string]bool{}
	for range 50 {
		e, secret, err := g.CreateEndpoint(context.Background(), EndpointSpec{URL: "https://example.com/hooks"})
		if err != nil || seen[secret] || seen[e.ID] || !strings.HasPrefix(secret, "whsec_") {
			t.Fatalf("%v, secret or id twice: %v", err, e.ID)
		}
		seen[secret], seen[e.ID] = true, true
	}
	ids, err := g.Publish(context.Background(), Event{Type: "a.b", Data: []byte(`1`)})
	if err != nil || len(ids) != 50 {
		t.Fatal(len(ids), err)
	}
	for _, id := range ids {
		if seen[id] || !strings.HasPrefix(id, "msg_") || strings.Contains(id, ".") || len(id) != 40 {
			t.Errorf("the id %q", id)
		}
		seen[id] = true
	}
}

func TestOptionsOfASenderThatMakeNoSenseAreRefused(t *testing.T) {
	good := func() Options {
		return Options{Profile: contract(t, "standard-webhooks"), Clock: newStage(t, "standard-webhooks").mock}
	}
	for want, change := range map[string]func(*Options){
		"no profile":        func(o *Options) { o.Profile = nil },
		"no clock":          func(o *Options) { o.Clock = nil },
		"negative":          func(o *Options) { o.Policy.Schedule = []time.Duration{-1} },
		"jitter":            func(o *Options) { o.Policy.JitterHigh = 2 },
		"lease":             func(o *Options) { o.Policy.Lease = time.Second },
		"notifications":     func(o *Options) { o.Policy.NotifyAfter = []time.Duration{2, 1} },
		"no retry schedule": func(o *Options) { o.Profile = &profile.Profile{Name: "silent", Signature: o.Profile.Signature} },
	} {
		o := good()
		change(&o)
		if _, err := Open(context.Background(), t.TempDir()+"/sender.db", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %q", err, want)
		}
	}
}

func TestAnExplicitPolicyWins(t *testing.T) {
	p, err := Policy{Schedule: []time.Duration{1}, Timeout: 3 * time.Second, PerEndpoint: 7}.fill(contract(t, "standard-webhooks"))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Schedule) != 1 || p.Timeout != 3*time.Second || p.ConnectTimeout != 3*time.Second || p.PerEndpoint != 7 || p.DisableAfter != 5*aDay || p.KeepFailed != 30*aDay {
		t.Errorf("it is %+v", p)
	}
}

func TestNoSecretStandsInALogOrAnError(t *testing.T) {
	var logs bytes.Buffer
	g := newStage(t, "standard-webhooks", func(o *Options) { o.Logger = debugTo(&logs) })
	g.peer.script("/e", 500)
	e, secret, err := g.CreateEndpoint(context.Background(), EndpointSpec{URL: g.peer.server.URL + "/e"})
	if err != nil {
		t.Fatal(err)
	}
	g.peer.learn("/e", "first", secret)
	g.publish("a.b")
	g.passTime(time.Hour)
	if _, err := g.RotateSecret(context.Background(), e.ID); err != nil {
		t.Fatal(err)
	}
	g.stop()
	if logs.Len() == 0 || strings.Contains(logs.String(), strings.TrimPrefix(secret, "whsec_")) {
		t.Errorf("the log, of %d bytes, holds the secret or nothing", logs.Len())
	}
}
