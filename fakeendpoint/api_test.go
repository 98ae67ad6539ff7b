package fakeendpoint_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/whconform/whconform/fakeendpoint"
)

// call makes a call to the API and reads its answer into out.
func call(t *testing.T, method, address, text string, out any) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(body, out); err != nil {
			t.Fatalf("%s %s answered %s: %v", method, address, body, err)
		}
	}
	return answer.StatusCode
}

func TestTheAPIMakesWaitsListsAndResets(t *testing.T) {
	r := newRig(t, func(c *fakeendpoint.Config) { c.Keys = append(c.Keys, mustKey(t)) })
	api, err := r.ServeAPI("")
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ Name, URL, Script string }
	if got := call(t, "POST", api+"paths?name=orders/1", " 500*2,200\n", &made); got != 200 || made.Script != "500*2,200" || made.URL != r.URL()+"/orders/1" {
		t.Fatalf("%d, %+v", got, made)
	}
	p := r.Find("orders/1")
	conn := dial(t, p)
	conn.status(r.signed(p, "msg_1", "{}"))
	var all []fakeendpoint.Attempt
	if got := call(t, "GET", api+"wait?path=/orders/1&n=1&timeout=5s", "", &all); got != 200 || len(all) != 1 || all[0].Response.Status != 500 || all[0].ID != "msg_1" || !all[0].Verification.OK() {
		t.Errorf("%d, %+v", got, all)
	}
	var problem struct {
		Error, Meant string
		Column       int
		Attempts     []fakeendpoint.Attempt
	}
	if got := call(t, "GET", api+"wait?path=orders/1&n=2&timeout=10ms", "", &problem); got != 504 || len(problem.Attempts) != 1 {
		t.Errorf("a wait in vain: %d, %+v", got, problem)
	}
	if got := call(t, "PUT", api+"script?path=orders/1", "hang", &made); got != 200 || made.Script != "hang" {
		t.Errorf("%d, %+v", got, made)
	}
	conn.send(post(p, "{}"))
	if got := call(t, "GET", api+"wait?path=orders/1&n=2&arrived=true", "", &all); got != 200 || len(all) != 1 {
		t.Errorf("%d, %d attempts", got, len(all))
	}
	var held map[string]any
	r.held(1)
	if call(t, "GET", api+"held", "", &held); held["held"] != 1.0 {
		t.Errorf("held: %v", held)
	}
	if got := call(t, "PUT", api+"script?path=orders/1", "hagn", &problem); got != 400 || problem.Meant != "hang" || problem.Column != 1 {
		t.Errorf("%d, %+v", got, problem)
	}
	if got := call(t, "POST", api+"reset?path=orders/1", "", nil); got != 200 || len(p.Attempts()) != 0 {
		t.Errorf("reset: %d", got)
	}
	if got := call(t, "POST", api+"reset", "", nil); got != 200 {
		t.Errorf("reset of all: %d", got)
	}
	var paths []map[string]any
	if call(t, "GET", api+"paths", "", &paths); len(paths) != 2 || paths[1]["name"] != "orders/1" {
		t.Errorf("paths: %v", paths)
	}
	var stats map[string]int64
	if call(t, "GET", api+"stats", "", &stats); stats["connections"] != 1 || stats["held"] != 1 {
		t.Errorf("stats: %v", stats)
	}
	dialURL(t, r.URL()).send("garbage\r\n\r\n")
	r.until("the stray is noted", func() bool { return r.Stats().Strays == 1 })
	var strays []map[string]any
	if call(t, "GET", api+"strays", "", &strays); len(strays) != 1 || strays[0]["status"] != 400.0 {
		t.Errorf("strays: %v", strays)
	}
	if got := call(t, "GET", api+"script?path=orders/1", "", &made); got != 200 || made.Script != "hang" {
		t.Errorf("%d, %+v", got, made)
	}
	if got := call(t, "GET", api+"ca.pem", "", nil); got != 200 {
		t.Errorf("ca.pem: %d", got)
	}
}

func TestTheAPIRefusesWhatCannotBe(t *testing.T) {
	r := newRig(t)
	api, err := r.ServeAPI("")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, call, body string
		status             int
		says               string
	}{
		{"GET", "attempts", "", 400, "parameter path is missing"},
		{"GET", "attempts?path=x", "", 404, `no path \"x\"`},
		{"GET", "attempts?path=", "", 200, "[]"},
		{"GET", "wait?path=", "", 400, "parameter n"},
		{"GET", "wait?path=&n=1&timeout=soon", "", 400, "parameter timeout"},
		{"GET", "wait?path=&n=1&timeout=1h", "", 400, "parameter timeout"},
		{"PUT", "script?path=", "expired,200", 409, "shares its port"},
		{"PUT", "script?path=", strings.Repeat("2", 10_000), 400, "at most 8192"},
		{"POST", "paths", "200", 409, "no name"},
		{"POST", "paths?name=x", "20", 400, "no status"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, api+c.call, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != c.status || !strings.Contains(string(text), c.says) {
			t.Errorf("%s %s answered %d %s", c.method, c.call, answer.StatusCode, text)
		}
	}
	if _, err := r.ServeAPI("0.0.0.0:0"); err == nil {
		t.Error("it is served to others")
	}
}

func TestTheAPIIsNotForOtherSitesPages(t *testing.T) {
	r := newRig(t)
	api, err := r.ServeAPI("")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*http.Request){
		"a name that leads here":     func(r *http.Request) { r.Host = "evil.example:80" },
		"another origin":             func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"another site's form or xhr": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		request, err := http.NewRequestWithContext(t.Context(), "POST", api+"reset", nil)
		if err != nil {
			t.Fatal(err)
		}
		change(request)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != 403 {
			t.Errorf("%s: %d", name, answer.StatusCode)
		}
	}
	if u, err := url.Parse(api); err != nil || u.Path != fakeendpoint.APIPrefix {
		t.Errorf("its URL is %s", api)
	}
}

func TestAnAttemptIsTwoLinesForATerminal(t *testing.T) {
	r := newRig(t)
	p := r.path("text", "503,reset", r.key)
	conn := dial(t, p)
	conn.send(r.signed(p, "msg_1", "{}"))
	conn.answer()
	conn.send(strings.Replace(post(p, "[]"), "/text", "/text?\x9b[31m", 1))
	_, _ = conn.end()
	var out strings.Builder
	for _, a := range attempts(t, p, 2) {
		if err := fakeendpoint.WriteAttempt(&out, &a); err != nil {
			t.Fatal(err)
		}
	}
	want := `<-- POST /text  id=msg_1  2 B  attempt 1  verified by current
--> 503 Service Unavailable  0 µs
<-- POST /text?\x9b[31m  2 B  request 2  NOT VERIFIED: missing-id (no header webhook-id)
--> reset: the script reset the connection  0 µs
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
