package receiver

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

func TestADeliveryIsAnsweredByWhatItIs(t *testing.T) {
	const id = "msg_1"
	wrong := func(g *rig) signature.Key { return keyOf(t, g.scheme, "wrong", 9) }
	cases := []struct {
		name   string
		make   func(g *rig) (method string, headers []wire.Header, body string)
		status int
		stored bool
	}{
		{"an authentic event is stored and acknowledged", func(g *rig) (string, []wire.Header, string) {
			return "POST", g.headers(id, event), event
		}, 200, true},
		{"an authentic empty body is stored and acknowledged", func(g *rig) (string, []wire.Header, string) {
			return "POST", g.headers(id, ""), ""
		}, 200, true},
		{"authentic bytes that are no JSON are stored and acknowledged", func(g *rig) (string, []wire.Header, string) {
			return "POST", g.headers(id, "{\"a\":\xff\x00"), "{\"a\":\xff\x00"
		}, 200, true},
		{"a body as large as the bound is accepted", func(g *rig) (string, []wire.Header, string) {
			body := strings.Repeat("a", DefaultMaxBody)
			return "POST", g.headers(id, body), body
		}, 200, true},
		{"one byte more is not", func(g *rig) (string, []wire.Header, string) {
			body := strings.Repeat("a", DefaultMaxBody+1)
			return "POST", g.headers(id, body), body
		}, 413, false},
		{"no headers at all do not verify", func(*rig) (string, []wire.Header, string) {
			return "POST", nil, event
		}, 401, false},
		{"another secret does not verify", func(g *rig) (string, []wire.Header, string) {
			return "POST", g.headers(id, event, wrong(g)), event
		}, 401, false},
		{"a changed body does not verify", func(g *rig) (string, []wire.Header, string) {
			return "POST", g.headers(id, event), event + "\n"
		}, 401, false},
		{"malformed JSON under a wrong signature is answered as any forgery", func(g *rig) (string, []wire.Header, string) {
			return "POST", g.headers(id, event, wrong(g)), `{"broken":`
		}, 401, false},
		{"GET is not allowed", func(g *rig) (string, []wire.Header, string) {
			return "GET", g.headers(id, event), ""
		}, 405, false},
		{"PUT is not allowed, whatever its signature", func(g *rig) (string, []wire.Header, string) {
			return "PUT", g.headers(id, event), event
		}, 405, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, standard(), nil)
			method, headers, body := c.make(g)
			k := g.dial()
			k.send(whole(method, headers, body))
			resp, answer := k.answer()
			if resp.StatusCode != c.status {
				t.Errorf("answered %d, want %d", resp.StatusCode, c.status)
			}
			if answer != "" || len(resp.Cookies()) > 0 {
				t.Errorf("the answer says %q with cookies %v, want nothing", answer, resp.Cookies())
			}
			if allow := resp.Header.Get("Allow"); (resp.StatusCode == 405) != (allow == "POST") {
				t.Errorf("Allow: %q with status %d", allow, resp.StatusCode)
			}
			m, stored := g.store.Get(id)
			if stored != c.stored || stored && string(m.Body) != body {
				t.Errorf("stored %v with %d bytes, want %v with %d", stored, len(m.Body), c.stored, len(body))
			}
		})
	}
}

func TestAMessageIsStoredWithWhatIsKnownOfIt(t *testing.T) {
	p := standard()
	p.Headers = map[string]string{"X-Event": "{type}", "X-Other": "fixed"}
	g := newRig(t, p, nil)
	if status := g.post(append(g.headers("msg_7", event), wire.Header{Name: "x-event", Value: "invoice.paid"}), event); status != 200 {
		t.Fatalf("answered %d", status)
	}
	m, _ := g.store.Get("msg_7")
	want := Message{ID: "msg_7", Type: "invoice.paid", Body: []byte(event), ReceivedAt: g.clock.Now(), Key: "current"}
	if m.ID != want.ID || m.Type != want.Type || string(m.Body) != event || !m.ReceivedAt.Equal(want.ReceivedAt) || m.Key != want.Key {
		t.Errorf("stored %+v, want %+v", m, want)
	}
}

func TestAnIDInTheBodyIsReadAfterTheSignature(t *testing.T) {
	cases := []struct{ name, body, key string }{
		{"the id of the envelope is the key", `{"delivery_id":"whd_1","type":"invoice.paid"}`, "whd_1"},
		{"a body that cannot be read goes by its hash", `{"delivery_id":`, "sha256:4e3c56f8d87c111acf78961aaad0cc188f8934908f2cb6729b6249bd19b0b076"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, envelope(), nil)
			for range 2 { // a copy is the same message
				if status := g.post(g.headers("", c.body), c.body); status != 200 {
					t.Fatalf("answered %d", status)
				}
			}
			if g.store.Len() != 1 {
				t.Fatalf("%d messages stored, want 1", g.store.Len())
			}
			if _, ok := g.store.Get(c.key); !ok {
				t.Errorf("stored as %v, want %q", g.store.order, c.key)
			}
		})
	}
}

func TestCopiesAreAcknowledged(t *testing.T) {
	g := newRig(t, standard(), nil)
	first := g.headers("msg_1", event)
	g.clock.Add(time.Minute)
	resigned := g.headers("msg_1", event)
	for _, h := range [][]wire.Header{first, first, resigned} {
		if status := g.post(h, event); status != 200 {
			t.Errorf("answered %d, want 200", status)
		}
	}
	if g.store.Len() != 1 {
		t.Errorf("%d messages stored, want 1", g.store.Len())
	}
}

func TestCopiesAtOneMomentAreStoredOnce(t *testing.T) {
	g := newRig(t, standard(), nil)
	request := whole("POST", g.headers("msg_1", event), event)
	const copies = 64
	var all sync.WaitGroup
	release := make(chan struct{})
	statuses := make([]int, copies)
	for i := range copies {
		k := g.dial()
		all.Go(func() {
			<-release
			k.send(request)
			resp, _ := k.answer()
			statuses[i] = resp.StatusCode
		})
	}
	close(release)
	all.Wait()
	for i, status := range statuses {
		if status != 200 {
			t.Errorf("copy %d was answered %d", i, status)
		}
	}
	if g.store.Len() != 1 {
		t.Errorf("%d messages stored, want 1", g.store.Len())
	}
}

func TestBothSecretsVerifyDuringARotation(t *testing.T) {
	g := newRig(t, standard(), nil)
	previous, third := keyOf(t, g.scheme, "previous", 2), keyOf(t, g.scheme, "third", 3)
	g = newRig(t, standard(), func(c *Config) { c.Keys = append(c.Keys, previous) })
	cases := []struct {
		name   string
		keys   []signature.Key
		status int
		label  string
	}{
		{"signed with the new secret", []signature.Key{g.key}, 200, "current"},
		{"signed with the old secret", []signature.Key{previous}, 200, "previous"},
		{"signed with both", []signature.Key{previous, g.key}, 200, "current"},
		{"signed with a third", []signature.Key{third}, 401, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if status := g.post(g.headers(c.name, event, c.keys...), event); status != c.status {
				t.Errorf("answered %d, want %d", status, c.status)
			}
			if m, _ := g.store.Get(c.name); m.Key != c.label {
				t.Errorf("verified by %q, want %q", m.Key, c.label)
			}
		})
	}
}

func TestRefusalsAreAlikeAndLeaveTheirReasonInTheLog(t *testing.T) {
	g := newRig(t, standard(), nil)
	valid := g.headers("msg_1", event)
	cases := []struct {
		rule    string
		headers []wire.Header
		body    string
	}{
		{signature.RuleMissingID, wire.Drop(valid, "webhook-id"), event},
		{signature.RuleMissingTimestamp, wire.Drop(valid, "webhook-timestamp"), event},
		{signature.RuleMissingSignature, wire.Drop(valid, "webhook-signature"), event},
		{signature.RuleNoMatch, valid, event + " "},
		{signature.RuleStale, wire.Set(valid, "webhook-timestamp", "1"), event},
		{signature.RuleMalformedTimestamp, wire.Set(valid, "webhook-timestamp", "1e9"), event},
		{signature.RuleMalformedSignature, wire.Set(valid, "webhook-signature", "abc"), event},
	}
	var first http.Header
	for _, c := range cases {
		k := g.dial()
		k.send(whole("POST", c.headers, c.body))
		resp, body := k.answer()
		resp.Header.Del("Date")
		if first == nil {
			first = resp.Header
		}
		if resp.StatusCode != 401 || body != "" || len(resp.Header) != len(first) {
			t.Errorf("%s: answered %d %v %q, want 401 %v without a body", c.rule, resp.StatusCode, resp.Header, body, first)
		}
		if !strings.Contains(g.logs.String(), "rule="+c.rule) {
			t.Errorf("no line with the rule %s in the log", c.rule)
		}
	}
}

func TestNothingSecretIsLogged(t *testing.T) {
	g := newRig(t, standard(), nil)
	expected, err := g.scheme.MAC(signature.Input{ID: "msg_1", Time: g.clock.Now(), Body: []byte(event)}, g.key)
	if err != nil {
		t.Fatal(err)
	}
	g.post(g.headers("msg_1", event), event)
	g.post(g.headers("msg_1", event, keyOf(t, g.scheme, "wrong", 9)), event)
	logs := g.logs.String()
	if !strings.Contains(logs, "received") || !strings.Contains(logs, "refused") {
		t.Fatalf("the log lacks lines:\n%s", logs)
	}
	if form, found := g.key.In([]byte(logs)); found {
		t.Errorf("the log holds the secret (%s)", form)
	}
	if strings.Contains(logs, hex.EncodeToString(expected)) || strings.Contains(logs, "invoice.paid") {
		t.Errorf("the log holds a signature or a body:\n%s", logs)
	}
}

func TestAStoreThatFailsMakesTheProviderTryAgain(t *testing.T) {
	g := newRig(t, standard(), func(c *Config) {
		c.Store = storeFunc(func(context.Context, Message) (bool, error) { return false, errors.New("disk full") })
	})
	k := g.dial()
	k.send(whole("POST", g.headers("msg_1", event), event))
	resp, _ := k.answer()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("answered %d %v, want 503 with Retry-After", resp.StatusCode, resp.Header)
	}
	if !strings.Contains(g.logs.String(), "disk full") {
		t.Error("the log does not say why")
	}
}

func TestAPanicIsAnsweredAndTheConnectionServesOn(t *testing.T) {
	calls := 0
	g := newRig(t, standard(), func(c *Config) {
		c.Store = storeFunc(func(context.Context, Message) (bool, error) {
			if calls++; calls == 1 {
				panic("a bug")
			}
			return true, nil
		})
	})
	k := g.dial()
	for _, want := range []int{500, 200} {
		k.send(whole("POST", g.headers("msg_1", event), event))
		if resp, _ := k.answer(); resp.StatusCode != want {
			t.Errorf("answered %d, want %d", resp.StatusCode, want)
		}
	}
	if !strings.Contains(g.logs.String(), "a bug") || !strings.Contains(g.logs.String(), "receiver_test.go") {
		t.Error("the log lacks the panic or its stack")
	}
	if len(g.receiver.slots) != 0 {
		t.Error("the slot is still taken")
	}
}

func TestATimestampAheadIsRefusedWhereTheProvidersLibrariesLookAtThePastOnly(t *testing.T) {
	p := standard()
	p.Signature.Timestamp.Future = 0
	g := newRig(t, p, nil)
	for _, c := range []struct {
		ahead  time.Duration
		status int
	}{{5 * time.Minute, 200}, {5*time.Minute + time.Second, 401}} {
		headers, err := g.scheme.Sign(signature.Input{ID: "msg_1", Time: g.clock.Now().Add(c.ahead), Body: []byte(event)}, g.key)
		if err != nil {
			t.Fatal(err)
		}
		if status := g.post(headers, event); status != c.status {
			t.Errorf("%v ahead: answered %d, want %d", c.ahead, status, c.status)
		}
	}
}

func TestAProfileThatKnowsOneRefusalGetsIt(t *testing.T) {
	for _, c := range []struct {
		statuses []int
		want     int
	}{{nil, 401}, {[]int{401}, 401}, {[]int{400, 403, 401}, 401}, {[]int{403}, 403}} {
		p := standard()
		p.RejectWith = c.statuses
		if got := newRig(t, p, nil).post(nil, event); got != c.want {
			t.Errorf("with %v: answered %d, want %d", c.statuses, got, c.want)
		}
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	g := newRig(t, standard(), nil)
	good := Config{Profile: standard(), Keys: []signature.Key{g.key}, Store: g.store, Clock: g.clock}
	described := standard()
	described.Signature.MAC = signature.RSASHA256
	described.Signature.Versions = nil
	cases := []struct {
		name   string
		change func(*Config)
		says   string
	}{
		{"no secret at all", func(c *Config) { c.Keys = nil }, "no secret"},
		{"a secret that is the zero key", func(c *Config) { c.Keys = append(c.Keys, signature.Key{Label: "previous"}) }, "secret 2 (previous) is empty"},
		{"no profile", func(c *Config) { c.Profile = nil }, "no profile"},
		{"no store", func(c *Config) { c.Store = nil }, "no store"},
		{"no clock", func(c *Config) { c.Clock = nil }, "no clock"},
		{"a negative bound", func(c *Config) { c.MaxBody = -1 }, "negative"},
		{"a scheme that is only described", func(c *Config) { c.Profile = described }, "described"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			config := good
			c.change(&config)
			_, err := New(config)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, want it to say %q", err, c.says)
			}
		})
	}
	if _, err := New(good); err != nil {
		t.Errorf("the good configuration: %v", err)
	}
}

func TestTheBoundOnABodyFollowsTheProfile(t *testing.T) {
	for _, c := range []struct {
		name               string
		maxBody, eventSize int64
		want               int64
	}{
		{"nothing said", 0, 0, DefaultMaxBody},
		{"what the profile asks for", 1 << 20, 0, 1 << 20},
		{"never less than the provider's largest event", 64 << 10, 25 << 20, 25 << 20},
	} {
		p := &profile.Profile{MaxBody: c.maxBody, EventBytes: c.eventSize}
		config := Config{Profile: p}
		config.defaults()
		if config.MaxBody != c.want || config.MaxMemory < 4*c.want {
			t.Errorf("%s: %d bytes a body, %d in all; want %d and four times that", c.name, config.MaxBody, config.MaxMemory, c.want)
		}
	}
}
