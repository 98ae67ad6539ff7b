package fakeprovider

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
)

// askAPI asks an API in this process.
func askAPI(t *testing.T, a *API, method, path, body string) (int, string) {
	t.Helper()
	answer := httptest.NewRecorder()
	a.ServeHTTP(answer, httptest.NewRequest(method, path, strings.NewReader(body)))
	if got := answer.Header().Get("Content-Type"); answer.Code != http.StatusNoContent && got != "application/json" {
		t.Errorf("%s %s: Content-Type %q", method, path, got)
	}
	return answer.Code, strings.TrimSpace(answer.Body.String())
}

func TestTheAPIAnswersWhatWasSet(t *testing.T) {
	a := NewAPI(clock.New())
	if err := a.Set(Payment{ID: "ch_1", Status: "succeeded", Amount: 4200, Currency: "EUR", Reference: "order-1"}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, method, path, body string
		status                   int
		answer                   string
	}{
		{"a payment that is known", "GET", "/payments/ch_1", "", 200, `{"id":"ch_1","status":"succeeded","amount":4200,"currency":"EUR","merchant_reference":"order-1"}`},
		{"one that is not", "GET", "/payments/ch_2", "", 404, `{"error":"there is no such payment"}`},
		{"an id with a slash in it", "GET", "/payments/a%2Fb", "", 404, `{"error":"there is no such payment"}`},
		{"set by HTTP", "PUT", "/payments/ch_2", `{"status":"refunded","amount":1}`, 200, `{"id":"ch_2","status":"refunded","amount":1}`},
		{"and asked for", "GET", "/payments/ch_2", "", 200, `{"id":"ch_2","status":"refunded","amount":1}`},
		{"set with another id", "PUT", "/payments/ch_2", `{"id":"ch_3"}`, 400, `{"error":"the id is another one than the address names"}`},
		{"a misspelt member", "PUT", "/payments/ch_2", `{"state":"refunded"}`, 400, `{"error":"reading the body: json: unknown field \"state\""}`},
		{"no JSON", "PUT", "/payments/ch_2", `refunded`, 400, `{"error":"reading the body: invalid character 'r' looking for beginning of value"}`},
		{"two values", "PUT", "/payments/ch_2", `{} {}`, 400, `{"error":"reading the body: something stands behind the JSON object"}`},
		{"too long a text", "PUT", "/payments/ch_2", `{"status":"` + strings.Repeat("x", 300) + `"}`, 400, `{"error":"setting a payment at the provider's API: a text of the payment is longer than 256 bytes"}`},
		{"forgotten", "DELETE", "/payments/ch_2", "", 204, ""},
		{"and asked for again", "GET", "/payments/ch_2", "", 404, `{"error":"there is no such payment"}`},
		{"another address", "GET", "/v1/charges/ch_1", "", 404, `{"error":"there are GET, PUT and DELETE /payments/{id}, and GET and PUT /control"}`},
		{"slower", "PUT", "/control", `{"delay":"15s"}`, 200, `{"delay":"15s","down":false,"asked":5}`},
		{"down", "PUT", "/control", `{"down":true,"delay":"0s"}`, 200, `{"delay":"0s","down":true,"asked":5}`},
		{"asked while it is down", "GET", "/payments/ch_1", "", 503, `{"error":"the provider's API is down"}`},
		{"too slow", "PUT", "/control", `{"delay":"15h"}`, 400, `{"error":"the delay is not a time from 0s to 10m0s, such as 15s"}`},
		{"as it stands", "GET", "/control", "", 200, `{"delay":"0s","down":true,"asked":6}`},
	} {
		status, answer := askAPI(t, a, tt.method, tt.path, tt.body)
		if status != tt.status || answer != tt.answer {
			t.Errorf("%s: %d %s, want %d %s", tt.name, status, answer, tt.status, tt.answer)
		}
	}
	if got := a.Asked("ch_1"); got != 2 {
		t.Errorf("asked for ch_1 %d times, want 2: a question that was answered by 503 is one", got)
	}
	if got := a.Payments(); len(got) != 1 || got[0].ID != "ch_1" {
		t.Errorf("it knows %v", got)
	}
}

func TestTheAPIMayKnowEveryPayment(t *testing.T) {
	a := NewAPI(clock.New())
	a.SetOthers(&Payment{Status: "succeeded", Amount: 7})
	if err := a.Set(Payment{ID: "ch_1", Status: "refunded"}); err != nil {
		t.Fatal(err)
	}
	if p, known := a.Payment("ch_2"); !known || p != (Payment{ID: "ch_2", Status: "succeeded", Amount: 7}) {
		t.Errorf("another one is %+v, known %t", p, known)
	}
	if p, known := a.Payment("ch_1"); !known || p.Status != "refunded" {
		t.Errorf("one that was set is %+v, known %t", p, known)
	}
	a.SetOthers(nil)
	if _, known := a.Payment("ch_2"); known {
		t.Error("it still knows another one")
	}
}

func TestTheAPIIsBounded(t *testing.T) {
	a := NewAPI(clock.New())
	for n := range MaxPayments {
		if err := a.Set(Payment{ID: fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
		a.ask(fmt.Sprint(n))
	}
	if err := a.Set(Payment{ID: "one more"}); err == nil {
		t.Error("it knows any number of payments")
	}
	if err := a.Set(Payment{ID: "7", Status: "refunded"}); err != nil {
		t.Error("one that is known cannot be changed any more:", err)
	}
	a.ask("one more")
	if a.ask("7"); a.Asked("one more") != 0 || a.Asked("7") != 2 {
		t.Error("it counts any number of ids, or none")
	}
	if err := a.Set(Payment{}); err == nil {
		t.Error("it took a payment without an id")
	}
	a.SetDelay(time.Hour)
	if delay, _ := a.ask("7"); delay != MaxAPIDelay {
		t.Errorf("it is late by %v", delay)
	}
}

func TestTheAPIIsAsSlowAsItIsTold(t *testing.T) {
	now := clock.NewMock()
	s, err := ServeAPI(now, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	if err := s.Set(Payment{ID: "ch_1", Status: "succeeded"}); err != nil {
		t.Fatal(err)
	}
	s.SetDelay(15 * time.Second)
	answered := make(chan Payment, 1)
	go func() {
		var p Payment
		if answer, err := http.Get(s.URL() + "/payments/ch_1"); err == nil {
			_ = json.NewDecoder(answer.Body).Decode(&p)
			_ = answer.Body.Close()
		}
		answered <- p
	}()
	// The clock is moved until the question, which may still be on its way, is
	// answered: once for every second of the delay at least.
	moved := 0
	for {
		select {
		case p := <-answered:
			if p.Status != "succeeded" || moved < 15 {
				t.Errorf("%+v was answered after %d s", p, moved)
			}
			return
		default:
			now.Add(time.Second) // gives way to others
			moved++
		}
	}
}

func TestAQuestionThatNobodyWaitsForAnyMoreIsOver(t *testing.T) {
	s, err := ServeAPI(clock.NewMock(), "") // its time stands still
	if err != nil {
		t.Fatal(err)
	}
	s.SetDelay(time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/payments/ch_1", nil)
		if err == nil {
			var answer *http.Response
			if answer, err = http.DefaultClient.Do(req); err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
		}
		ended <- err
	}()
	for s.Asked("ch_1") == 0 { // asked over a socket, which tells nobody
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("it was answered")
	}
	s.held <- struct{}{} // there is room
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheAPIRefusesMoreQuestionsThanItHolds(t *testing.T) {
	a := NewAPI(clock.New())
	for range maxAPIHeld {
		a.held <- struct{}{}
	}
	if status, answer := askAPI(t, a, "GET", "/payments/ch_1", ""); status != http.StatusServiceUnavailable || !strings.Contains(answer, "open already") {
		t.Errorf("%d %s", status, answer)
	}
}

func TestTheAPICannotListenTwiceAtOneAddress(t *testing.T) {
	s, err := ServeAPI(clock.New(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	if _, err := ServeAPI(clock.New(), strings.TrimPrefix(s.URL(), "http://")); err == nil {
		t.Error("two listen there")
	}
}
