package sender

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const adminToken = "a token of 16 B or more"

// office is the admin API of a stage.
type office struct {
	*stage
	url string
}

func newOffice(t *testing.T, change ...func(*Options)) office {
	t.Helper()
	g := newStage(t, "standard-webhooks", change...)
	h, err := g.Admin(adminToken)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return office{g, s.URL}
}

// ask makes a call and returns its status and its JSON.
func (o office) ask(method, path, body string) (int, map[string]any) {
	o.t.Helper()
	status, text := o.raw(method, path, body, "Bearer "+adminToken)
	var v map[string]any
	if len(text) > 0 {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			o.t.Fatalf("%s %s: %q is no JSON object: %v", method, path, text, err)
		}
	}
	return status, v
}

func (o office) raw(method, path, body, authorization string) (int, string) {
	o.t.Helper()
	req, err := http.NewRequestWithContext(o.t.Context(), method, o.url+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	if answer.Header.Get("Cache-Control") != "no-store" {
		o.t.Errorf("%s %s may be cached", method, path)
	}
	return answer.StatusCode, string(text)
}

// text is a member of an answer.
func text(v map[string]any, name string) string { s, _ := v[name].(string); return s }

func TestNobodyIsToldAnythingWithoutTheToken(t *testing.T) {
	o := newOffice(t)
	for _, authorization := range []string{"", adminToken, "Basic " + adminToken, "Bearer", "Bearer ", "Bearer " + adminToken[1:], "Bearer " + adminToken + "x", "bearer  x"} {
		for _, path := range []string{"/v1/webhook-endpoints", "/v1/webhook-deliveries", "/nothing"} {
			if status, body := o.raw("GET", path, "", authorization); status != 401 || !strings.Contains(body, "unauthorized") {
				t.Errorf("%q gets %d %s", authorization, status, body)
			}
		}
	}
	if _, err := o.Admin("short"); err == nil || strings.Contains(err.Error(), "short ") {
		t.Errorf("a short token: %v", err)
	}
}

func TestAnEndpointIsMadeChangedAndDeletedByItsOwner(t *testing.T) {
	o := newOffice(t)
	o.peer.script("/a", 200)
	status, made := o.ask("POST", "/v1/webhook-endpoints", fmt.Sprintf(`{"url":%q,"event_types":["order.shipped"]}`, o.peer.server.URL+"/a"))
	id, secret := text(made, "id"), text(made, "secret")
	if status != 201 || !strings.HasPrefix(secret, "whsec_") || text(made, "status") != EndpointEnabled {
		t.Fatalf("%d %v", status, made)
	}
	if _, shown := o.ask("GET", "/v1/webhook-endpoints/"+id, ""); shown["secret"] != nil || text(shown, "url") != o.peer.server.URL+"/a" {
		t.Errorf("shown as %v", shown)
	}
	if status, v := o.ask("PATCH", "/v1/webhook-endpoints/"+id, `{"event_types":[]}`); status != 200 || len(v["event_types"].([]any)) != 0 {
		t.Errorf("%d %v", status, v)
	}
	if status, v := o.ask("PATCH", "/v1/webhook-endpoints/"+id, `{"url":"https://10.0.0.1/"}`); status != 422 {
		t.Errorf("an internal URL: %d %v", status, v)
	}
	if status, v := o.ask("POST", "/v1/webhook-endpoints/"+id+"/rotate-secret", ""); status != 200 || text(v, "secret") == secret || v["previous_signs_for_seconds"] != 86400.0 {
		t.Errorf("%d %v", status, v)
	}
	for _, c := range []struct{ call, want string }{{"disable", EndpointDisabled}, {"enable", EndpointEnabled}} {
		if status, v := o.ask("POST", "/v1/webhook-endpoints/"+id+"/"+c.call, ""); status != 200 || text(v, "status") != c.want {
			t.Errorf("%s: %d %v", c.call, status, v)
		}
	}
	if _, v := o.ask("GET", "/v1/webhook-endpoints", ""); len(v["endpoints"].([]any)) != 1 {
		t.Errorf("listed as %v", v)
	}
	if status, _ := o.ask("DELETE", "/v1/webhook-endpoints/"+id, ""); status != 204 {
		t.Errorf("deleting: %d", status)
	}
	if status, v := o.ask("POST", "/v1/webhook-endpoints/"+id+"/enable", ""); status != 409 {
		t.Errorf("enabling what was deleted: %d %v", status, v)
	}
	if _, v := o.ask("GET", "/v1/webhook-endpoints?after=", ""); len(v["endpoints"].([]any)) != 0 {
		t.Errorf("listed as %v", v)
	}
}

func TestAnUpdatedEndpointGetsWhatItAsksForAtItsNewURL(t *testing.T) {
	o := newOffice(t)
	e := o.endpoint("/old", []string{"a.b"}, 500, 200)
	o.peer.script("/new", 200)
	o.publish("a.b")
	o.settle()
	o.peer.mu.Lock()
	o.peer.keys["/new"] = o.peer.keys["/old"]
	o.peer.mu.Unlock()
	status, v := o.ask("PATCH", "/v1/webhook-endpoints/"+e.ID, fmt.Sprintf(`{"url":%q,"event_types":["c.d"]}`, o.peer.server.URL+"/new"))
	if status != 200 {
		t.Fatalf("%d %v", status, v)
	}
	o.passTime(time.Minute)
	o.publish("c.d")
	o.settle()
	if old, moved := len(o.peer.at("/old")), len(o.peer.at("/new")); old != 1 || moved != 2 {
		t.Errorf("%d requests at the old address, %d at the new one", old, moved)
	}
	if ids, err := o.Publish(t.Context(), Event{Type: "a.b", Data: []byte(`1`)}); err != nil || len(ids) != 0 {
		t.Errorf("what it no longer asks for: %v, %v", ids, err)
	}
}

func TestAFailedDeliveryIsFoundAndSentAgain(t *testing.T) {
	o := newOffice(t, func(op *Options) { op.Policy.Schedule = []time.Duration{0, time.Second} })
	e := o.endpoint("/a", nil, 500, 500, 200)
	status, v := o.ask("POST", "/v1/events", `{"type":"order.shipped","timestamp":"2026-01-02T15:00:00Z","data":{"id":"o1"}}`)
	if status != 202 {
		t.Fatalf("%d %v", status, v)
	}
	id := v["delivery_ids"].([]any)[0].(string)
	o.passTime(time.Minute)
	_, v = o.ask("GET", "/v1/webhook-deliveries?status=failed&endpoint_id="+e.ID, "")
	if list := v["deliveries"].([]any); len(list) != 1 || text(list[0].(map[string]any), "id") != id {
		t.Fatalf("failed: %v", v)
	}
	_, v = o.ask("GET", "/v1/webhook-deliveries/"+id+"/attempts", "")
	if log := v["attempts"].([]any); len(log) != 2 || log[1].(map[string]any)["status"] != 500.0 || !strings.Contains(text(log[1].(map[string]any), "body"), "script") {
		t.Errorf("log: %v", v)
	}
	if status, v = o.ask("POST", "/v1/webhook-deliveries/"+id+"/redeliver", ""); status != 202 || v["queued"] != 1.0 {
		t.Errorf("%d %v", status, v)
	}
	o.settle()
	if _, v = o.ask("GET", "/v1/webhook-deliveries/"+id, ""); text(v, "status") != MessageDelivered {
		t.Errorf("afterwards: %v", v)
	}
	if status, v = o.ask("POST", "/v1/webhook-deliveries/redeliver", `{"since":"2026-01-02T15:00:00Z","endpoint_id":"`+e.ID+`"}`); status != 202 || v["queued"] != 0.0 {
		t.Errorf("%d %v", status, v)
	}
	if _, v = o.ask("GET", "/v1/webhook-deliveries?since=2026-01-03T00:00:00Z&limit=5", ""); len(v["deliveries"].([]any)) != 0 {
		t.Errorf("since tomorrow: %v", v)
	}
}

func TestWhatOwnersWereToldCanBeRead(t *testing.T) {
	o := newOffice(t)
	e := o.endpoint("/a", nil, 410)
	o.publish("a.b")
	o.settle()
	_, v := o.ask("GET", "/v1/webhook-notifications?endpoint_id="+e.ID, "")
	if list := v["notifications"].([]any); len(list) != 1 || text(list[0].(map[string]any), "kind") != NotifyDisabled {
		t.Errorf("%v", v)
	}
}

func TestTheCatalogueIsServed(t *testing.T) {
	o := newOffice(t, func(op *Options) { op.Catalogue = shop(t) })
	status, text := o.raw("GET", "/v1/webhook-event-types", "", "Bearer "+adminToken)
	if status != 200 || !strings.Contains(text, `{"name":"2026-01-01","fields":[{"name":"id"},{"name":"carrier"}]}`) {
		t.Errorf("%d %s", status, text)
	}
}

func TestABadCallIsAnErrorThatSaysWhatIsWrong(t *testing.T) {
	o := newOffice(t)
	for _, c := range []struct {
		call, body string
		status     int
		says       string
	}{
		{"GET /v1/nothing", "", 404, "there is no call GET /v1/nothing"},
		{"PUT /v1/webhook-endpoints", "", 404, "there is no call PUT"},
		{"GET /v1/webhook-endpoints/ep_x", "", 404, "not found"},
		{"POST /v1/webhook-endpoints/ep_x/rotate-secret", "", 404, "not found"},
		{"PATCH /v1/webhook-endpoints/ep_x", "{}", 404, "not found"},
		{"DELETE /v1/webhook-endpoints/ep_x", "", 404, "not found"},
		{"GET /v1/webhook-deliveries/msg_x", "", 404, "not found"},
		{"GET /v1/webhook-deliveries/msg_x/attempts", "", 404, "not found"},
		{"POST /v1/webhook-deliveries/msg_x/redeliver", "", 404, "not found"},
		{"POST /v1/webhook-endpoints", "", 400, "reading the request's JSON"},
		{"POST /v1/webhook-endpoints", "[]", 400, "reading the request's JSON"},
		{"POST /v1/webhook-endpoints", `{"url":"https://example.com/","types":[]}`, 400, "types"},
		{"POST /v1/webhook-endpoints", `{"url":"https://example.com/"}{}`, 400, "more behind"},
		{"POST /v1/webhook-endpoints", `{"url":"http://example.com/"}`, 422, "https only"},
		{"POST /v1/webhook-endpoints", `{"url":"https://example.com/","event_types":["a b"]}`, 422, "event type"},
		{"POST /v1/webhook-endpoints", `{"url":"` + strings.Repeat("x", maxAdminBody) + `"}`, 413, "more than 65536 bytes"},
		{"GET /v1/webhook-deliveries?state=failed", "", 400, `no parameter "state"; there are: status`},
		{"GET /v1/webhook-deliveries?status=failed&status=pending", "", 400, "2 times"},
		{"GET /v1/webhook-deliveries?status=broken", "", 422, "broken"},
		{"GET /v1/webhook-deliveries?since=yesterday", "", 400, "no time like"},
		{"GET /v1/webhook-deliveries?limit=0", "", 400, "no number from 1"},
		{"GET /v1/webhook-deliveries?a=%zz", "", 400, "parameters"},
		{"POST /v1/webhook-deliveries/redeliver", `{}`, 400, "since is missing"},
		{"POST /v1/events", `{"type":"a.b"}`, 422, "no payload"},
		{"POST /v1/events", `{"type":"a b","data":1}`, 422, "event type"},
		{"POST /v1/events", `{"type":"a.b","data":"` + strings.Repeat("x", MaxPayload) + `"}`, 422, "payload has"},
		{"POST /v1/events", `{"type":"a.b","data":"` + strings.Repeat("x", MaxPayload+maxAdminBody) + `"}`, 413, "more than"},
	} {
		method, path, _ := strings.Cut(c.call, " ")
		status, v := o.ask(method, path, c.body)
		e, _ := v["error"].(map[string]any)
		if status != c.status || !strings.Contains(text(e, "message"), c.says) || text(e, "code") == "" {
			t.Errorf("%s %.60s: %d %v, want %d, %q", c.call, c.body, status, v, c.status, c.says)
		}
	}
}

func TestADatabaseThatDoesNotAnswerIs503(t *testing.T) {
	o := newOffice(t)
	o.stop()
	status, v := o.ask("POST", "/v1/webhook-endpoints", `{"url":"https://example.com/"}`)
	if e, _ := v["error"].(map[string]any); status != 503 || text(e, "code") != "unavailable" {
		t.Errorf("%d %v", status, v)
	}
}
