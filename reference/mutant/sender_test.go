package mutant

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/sender"
)

func TestEverySenderMutantSaysWhatIsWrongWithIt(t *testing.T) {
	rows := senderRows(t)
	names := map[string]bool{}
	for _, m := range Senders() {
		t.Run(m.Name, func(t *testing.T) {
			if names[m.Name] || m.Name == "" || strings.Trim(m.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
				t.Errorf("the name %q is taken, empty or not made of words and dashes", m.Name)
			}
			names[m.Name] = true
			if !strings.HasSuffix(m.Doc, ".") || strings.Contains(m.Doc, "\n") {
				t.Errorf("the doc is not one sentence: %q", m.Doc)
			}
			if len(m.Fails) == 0 || m.Change == nil && m.Wrap == nil {
				t.Error("it breaks nothing")
			}
			for _, id := range m.Fails {
				if rows[id] == "" {
					t.Errorf("%q is no requirement", id)
				}
			}
			if len(slices.Compact(slices.Sorted(slices.Values(m.Fails)))) != len(m.Fails) {
				t.Error("a requirement is listed twice")
			}
			if _, err := profile.Load(m.Profile); err != nil {
				t.Error(err)
			}
		})
	}
}

// senderRows reads the ids of the catalogue's file, with their levels. The file
// is read as text, since what stands below the suite does not import it.
func senderRows(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../conformance/catalogue/sender.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	group, id := "", ""
	for _, m := range regexp.MustCompile(`(?m)^  - name: (\S+)$|^      - id: (\S+)$|^        level: (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		switch {
		case m[1] != "":
			group = m[1]
		case m[2] != "":
			id = "sender." + group + "." + m[2]
		case m[3] != "":
			rows[id] = m[3]
		}
	}
	if len(rows) < 80 {
		t.Fatalf("only %d requirements were found in the catalogue", len(rows))
	}
	return rows
}

func TestEveryRowThatCanFailHasASenderThatFailsIt(t *testing.T) {
	broken := map[string]bool{}
	for _, m := range Senders() {
		for _, id := range m.Fails {
			broken[id] = true
		}
	}
	// The reference signs by HMAC alone, so no variant of it offers the scheme.
	without := []string{"sender.signature.ed25519"}
	for id, level := range senderRows(t) {
		if level != "MAY" && !broken[id] && !slices.Contains(without, id) {
			t.Errorf("no mutant breaks %s (%s)", id, level)
		}
	}
}

func TestFindSender(t *testing.T) {
	for _, m := range Senders() {
		found, err := FindSender(m.Name)
		if err != nil || found.Doc != m.Doc || found.Profile == "" {
			t.Errorf("%s: found %q of profile %q, %v", m.Name, found.Doc, found.Profile, err)
		}
	}
	if _, err := FindSender("no-such"); err == nil || !strings.Contains(err.Error(), "retries-410") {
		t.Errorf("the error does not list the names: %v", err)
	}
	for _, m := range Receivers() { // the command takes either by its name
		if _, err := FindSender(m.Name); err == nil {
			t.Errorf("%s is both a sender and a receiver", m.Name)
		}
	}
}

// driven is a mutant behind its methods.
type driven struct {
	t       *testing.T
	methods map[string]sender.ControlMethod
}

func (d driven) call(method string, params any) map[string]any {
	d.t.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		d.t.Fatal(err)
	}
	result, err := d.methods[method](context.WithoutCancel(d.t.Context()), text)
	if err != nil {
		d.t.Fatalf("%s: %v", method, err)
	}
	if text, err = json.Marshal(result); err != nil {
		d.t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		d.t.Fatalf("%s: %v", method, err)
	}
	return members
}

// A mutant that did not send an ordinary event would be caught for that, and its
// fault would never be reached.
func TestEverySenderMutantSendsAnOrdinaryEvent(t *testing.T) {
	for _, m := range append(Senders(), SenderReference(StandardWebhooks), SenderReference(DeliveryEnvelope)) {
		t.Run(m.Name+" of "+m.Profile, func(t *testing.T) {
			t.Parallel()
			arrived := make(chan string, 10)
			endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { arrived <- req.URL.Path }))
			defer endpoint.Close()
			control := m.Control(sender.ControlOptions{StateDir: t.TempDir()})
			d := driven{t, control.Methods()}
			defer func() {
				d.call("shutdown", nil)
				if err := control.Close(); err != nil {
					t.Error(err)
				}
			}()
			now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			declared := d.call("initialize", map[string]any{"protocolVersion": 1, "profile": m.Profile, "clock": "virtual", "now": now, "allowHosts": []string{"127.0.0.1"}})
			if declared["timeout"] == nil || declared["retrySchedule"] == nil {
				t.Errorf("it declares %v", declared)
			}
			d.call("endpoint.create", map[string]any{"url": endpoint.URL + "/hook", "eventTypes": []string{"order.shipped"}})
			ids := d.call("event.publish", map[string]any{"type": "order.shipped", "timestamp": now, "payload": map[string]any{"id": "o1"}})["messageIds"]
			if list, _ := ids.([]any); len(list) != 1 {
				t.Fatalf("it published %v", ids)
			}
			d.call("clock.advance", map[string]any{"to": now})
			select {
			case path := <-arrived:
				if path != "/hook" {
					t.Errorf("a request came at %s", path)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("no request came")
			}
		})
	}
}

func TestASenderMutantStartsAnewInEachProcess(t *testing.T) {
	m, err := FindSender("hands-over-after-the-commit")
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent++ }))
	defer endpoint.Close()
	state, now := t.TempDir(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	start := func() (driven, *sender.Control) {
		control := m.Control(sender.ControlOptions{StateDir: state})
		d := driven{t, control.Methods()}
		d.call("initialize", map[string]any{"protocolVersion": 1, "profile": m.Profile, "now": now, "allowHosts": []string{"127.0.0.1"}})
		return d, control
	}
	d, control := start()
	d.call("endpoint.create", map[string]any{"url": endpoint.URL})
	d.call("event.publish", map[string]any{"type": "order.shipped", "timestamp": now, "payload": 1, "transaction": "commit"})
	if err := control.Close(); err != nil {
		t.Fatal(err)
	}
	d, control = start()
	if state := d.call("clock.advance", map[string]any{"to": now}); state["inFlight"] != 0.0 || sent != 0 {
		t.Errorf("what the process before kept in memory is sent: %v, %d requests", state, sent)
	}
	if err := control.Close(); err != nil {
		t.Error(err)
	}
}

func TestAChangeOfTheCallersComesBeforeTheMutants(t *testing.T) {
	m, err := FindSender("gives-up-within-an-hour")
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	control := m.Control(sender.ControlOptions{StateDir: t.TempDir(), Change: func(o *sender.Options) {
		order = append(order, "change")
		o.Policy.Schedule = []time.Duration{0, time.Second}
	}, Wrap: func(method string, right sender.ControlMethod) sender.ControlMethod {
		if method != "initialize" {
			return right
		}
		return func(ctx context.Context, params json.RawMessage) (any, error) {
			order = append(order, "wrap")
			return right(ctx, params)
		}
	}})
	d := driven{t, control.Methods()}
	declared := d.call("initialize", map[string]any{"protocolVersion": 1, "profile": m.Profile})
	if list, _ := declared["retrySchedule"].([]any); len(list) != 2 || !slices.Equal(order, []string{"wrap", "change"}) {
		t.Errorf("%v, %v", declared["retrySchedule"], order)
	}
	if err := control.Close(); err != nil {
		t.Error(err)
	}
}
