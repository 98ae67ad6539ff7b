package receiver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// ask sends a request to h and returns the status and the body.
func ask(h http.Handler, method, target string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	body, _ := io.ReadAll(w.Result().Body)
	return w.Code, strings.TrimSpace(string(body))
}

func TestAnObserverSeesWhatBecameOfEvents(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		inbox := open(Options{Clock: mockClock(), TestHooks: true})
		run(t, inbox)
		addBody(t, inbox, "msg_1", paymentEvent("succeeded", 1))
		awaitState(t, inbox, "msg_1", StatusProcessed)
		addBody(t, inbox, "a/b c", `{"type":`)
		awaitState(t, inbox, "a/b c", StatusFailed)
		observer := inbox.Observer()
		for _, c := range []struct{ name, method, target, want string }{
			{"a processed event", "GET", "/_observe/events/msg_1", `{"id":"msg_1","processed":1,"failed":false,"state":"processed","attempts":1}`},
			{"a failed one, its id escaped", "GET", "/_observe/events/a%2Fb%20c", `{"id":"a/b c","processed":0,"failed":true,"state":"failed","attempts":1,"error":"reading the event: it is no well-formed JSON"}`},
			{"one that never came", "GET", "/_observe/events/msg_2", `{"id":"msg_2","processed":0,"failed":false,"state":"unknown","attempts":0}`},
			{"a payment", "GET", "/_observe/state/ch_1", `{"payment":"ch_1","state":"succeeded","amount":4200,"currency":"EUR","reference":"order-1","events":1}`},
			{"a payment nobody spoke of", "GET", "/_observe/state/ch_2", `{"payment":"ch_2","state":"unknown","amount":0,"events":0}`},
			{"the failed list", "GET", "/_observe/failed", `{"failed":[{"id":"a/b c","received_at":"2026-01-02T15:04:05Z","failed_at":"2026-01-02T15:04:05Z","attempts":1,"error":"reading the event: it is no well-formed JSON"}]}`},
			{"the page after it", "GET", "/_observe/failed?after=a/b%20c", `{"failed":[]}`},
			{"making an event fail", "POST", "/_observe/fail-once?id=msg_3", `{}`},
		} {
			t.Run(c.name, func(t *testing.T) {
				if status, body := ask(observer, c.method, c.target); status != http.StatusOK || body != c.want {
					t.Errorf("answered %d\n%s\nwant 200\n%s", status, body, c.want)
				}
			})
		}
		if !inbox.hooks.failing["msg_3"] {
			t.Error("msg_3 is not going to fail")
		}
	})
}

func TestNothingCanBeMadeToFailWithoutTestHooks(t *testing.T) {
	inbox := openFile(t, filepath.Join(t.TempDir(), "inbox.db"), Options{Clock: mockClock()})
	if status, _ := ask(inbox.Observer(), "POST", "/_observe/fail-once"); status != http.StatusNotFound {
		t.Errorf("answered %d, want 404", status)
	}
}

func TestAnOperatorPutsFailedMessagesBack(t *testing.T) {
	broken := true
	inbox := openFile(t, filepath.Join(t.TempDir(), "inbox.db"), Options{Clock: mockClock(), Handler: noting(func(Message) error {
		if broken {
			return Permanent(errors.New("broken"))
		}
		return nil
	})})
	stop := run(t, inbox)
	for _, id := range []string{"a", "b", "c"} {
		add(t, inbox, id)
		awaitState(t, inbox, id, StatusFailed)
	}
	stop()
	broken = false
	run(t, inbox)
	operator := inbox.Operator()
	if status, body := ask(operator, "GET", "/failed?after=a"); status != 200 || strings.Count(body, `"error":"broken"`) != 2 {
		t.Errorf("the list is %d %s", status, body)
	}
	if status, body := ask(operator, "POST", "/failed/retry?id=a"); status != 200 || body != `{"queued":1}` {
		t.Errorf("one: %d %s", status, body)
	}
	if status, body := ask(operator, "POST", "/failed/retry"); status != 200 || body != `{"queued":2}` {
		t.Errorf("the others: %d %s", status, body)
	}
	for _, id := range []string{"a", "b", "c"} {
		awaitState(t, inbox, id, StatusProcessed)
	}
	if status, _ := ask(operator, "GET", "/failed/retry"); status != http.StatusMethodNotAllowed {
		t.Errorf("reading the address that changes: %d", status)
	}
}

func TestAnObserverOfABrokenInboxIsTold(t *testing.T) {
	inbox, err := OpenSQLite(context.Background(), filepath.Join(t.TempDir(), "inbox.db"), Options{Clock: mockClock()})
	if err != nil {
		t.Fatal(err)
	}
	if err := inbox.Close(); err != nil {
		t.Fatal(err)
	}
	status, body := ask(inbox.Observer(), "GET", "/_observe/events/msg_1")
	var answer struct{ Error string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusServiceUnavailable || answer.Error == "" {
		t.Errorf("answered %d %s, want 503 with an error", status, body)
	}
}

func TestMetricsTellWhatWaitsAndWhatFailed(t *testing.T) {
	mock := mockClock()
	inbox := openFile(t, filepath.Join(t.TempDir(), "inbox.db"), Options{Clock: mock, Handler: noting(func(m Message) error {
		if m.ID == "bad" {
			return Permanent(errors.New("bad"))
		}
		return nil
	})})
	stop := run(t, inbox)
	for _, id := range []string{"good", "bad"} {
		add(t, inbox, id)
	}
	awaitState(t, inbox, "good", StatusProcessed)
	awaitState(t, inbox, "bad", StatusFailed)
	stop()
	add(t, inbox, "good")
	add(t, inbox, "waiting 1")
	mock.Add(90 * time.Second)
	add(t, inbox, "waiting 2")
	checkMetrics(t, inbox, map[string]string{
		"waiting": "2", "oldest_seconds": "90", "failed": "1", "up": "1",
		"acknowledged_total": "5", "duplicates_total": "1", "processed_total": "1", "failed_total": "1",
	})

	// While the database does not answer, what this process knows is told.
	if err := inbox.Close(); err != nil {
		t.Fatal(err)
	}
	checkMetrics(t, inbox, map[string]string{"acknowledged_total": "5", "waiting": ""})
}

// checkMetrics compares metrics; an empty value wants none of that name.
func checkMetrics(t *testing.T, inbox *Inbox, want map[string]string) {
	t.Helper()
	status, body := ask(inbox.Metrics(), "GET", "/metrics")
	if status != http.StatusOK {
		t.Fatalf("answered %d %s", status, body)
	}
	for name, value := range want {
		found := regexp.MustCompile(`(?m)^webhook_inbox_` + name + ` (.*)$`).FindStringSubmatch(body)
		got := ""
		if found != nil {
			got = found[1]
		}
		if got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}
