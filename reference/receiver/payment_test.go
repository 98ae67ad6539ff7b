package receiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/jarcoal/httpmock"
)

// paymentEvent is an event about payment ch_1 at a second of a certain minute.
func paymentEvent(state string, second int) string {
	return fmt.Sprintf(`{"type":"payment.%s","timestamp":"2026-01-02T15:04:%02dZ","data":{"id":"ch_1","amount":4200,"currency":"EUR","merchant_reference":"order-1"}}`, state, second)
}

// paymentNow is the state of payment ch_1.
func paymentNow(t testing.TB, inbox *Inbox, id string) Payment {
	t.Helper()
	p, err := inbox.Payment(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAPaymentMovesForwardOnlyInWhateverOrderItsEventsCome(t *testing.T) {
	versioned := func(state string, version int) string {
		return fmt.Sprintf(`{"type":"payment.%s","timestamp":"2026-01-02T15:04:05Z","data":{"id":"ch_1","amount":4200,"version":%d}}`, state, version)
	}
	cases := []struct {
		name   string
		events []string
		want   string
	}{
		{"in order", []string{paymentEvent("received", 1), paymentEvent("succeeded", 2), paymentEvent("refunded", 3)}, PaymentRefunded},
		{"the refund first, the success late", []string{paymentEvent("refunded", 3), paymentEvent("succeeded", 2)}, PaymentRefunded},
		{"a success that is newer than the refund", []string{paymentEvent("refunded", 3), paymentEvent("succeeded", 9)}, PaymentRefunded},
		{"all in one second", []string{paymentEvent("received", 1), paymentEvent("refunded", 1), paymentEvent("succeeded", 1)}, PaymentRefunded},
		{"an older event, though it would be forward", []string{paymentEvent("received", 5), paymentEvent("succeeded", 4)}, PaymentReceived},
		{"a higher version", []string{versioned("received", 1), versioned("succeeded", 2)}, PaymentSucceeded},
		{"a lower version", []string{versioned("received", 2), versioned("succeeded", 1)}, PaymentReceived},
		{"created_at takes the place of timestamp", []string{
			`{"type":"payment.succeeded","created_at":"2026-01-02T15:04:05Z","data":{"id":"ch_1","amount":4200}}`,
			`{"type":"payment.refunded","created_at":"2026-01-02T15:04:04Z","data":{"id":"ch_1","amount":4200}}`}, PaymentSucceeded},
	}
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				inbox := open(Options{Clock: mockClock()})
				stop := run(t, inbox)
				for i, body := range c.events {
					id := fmt.Sprintf("%s %d", c.name, i)
					addBody(t, inbox, id, strings.ReplaceAll(body, "ch_1", c.name))
					if e := awaitState(t, inbox, id, StatusProcessed); e.Processed != 1 {
						t.Errorf("event %d came out as %+v", i, e)
					}
				}
				stop()
				if p := paymentNow(t, inbox, c.name); p.State != c.want || p.Amount != 4200 || p.Events != int64(len(c.events)) {
					t.Errorf("it is %+v, want it %s after %d events", p, c.want, len(c.events))
				}
			})
		}
	})
}

func TestEventsAboutOnePaymentAtOneMomentAllCount(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		inbox := open(Options{Clock: mockClock()})
		const n = 30
		for i := range n {
			state := []string{PaymentReceived, PaymentSucceeded, PaymentRefunded}[i%3]
			addBody(t, inbox, randomID(i), paymentEvent(state, 1))
		}
		run(t, inbox)
		await(t, "all have taken effect", func() bool { return paymentNow(t, inbox, "ch_1").Events == n })
		if p := paymentNow(t, inbox, "ch_1"); p.State != PaymentRefunded {
			t.Errorf("it is %+v", p)
		}
	})
}

func TestWhatEventsMayHold(t *testing.T) {
	cases := []struct {
		name, header, body string
		failed             string // part of the error; empty: processed
	}{
		{"a type that means nothing here", "", `{"type":"invoice.paid","data":{"id":7}}`, ""},
		{"a payment's type that means nothing here", "", `{"type":"payment.disputed","data":{"id":7}}`, ""},
		{"no type", "", `{"data":{}}`, ""},
		{"a type that is no text", "", `{"type":7}`, ""},
		{"an array", "", `[{"type":"payment.succeeded"}]`, ""},
		{"a form", "", `type=payment.succeeded&id=ch_1`, ""},
		{"nothing", "", ``, ""},
		{"bytes", "", "\xff\x00\xfe", ""},
		{"a type in a header, and any body", "push", `no JSON`, ""},
		{"fields nobody knows", "", `{"type":"payment.succeeded","x":[],"data":{"id":"ch_7","amount":1,"y":{}}}`, ""},
		{"broken JSON", "", `{"type":"payment.succeeded",`, "no well-formed JSON"},
		{"nesting without end", "", strings.Repeat("[", 30_000), "no well-formed JSON"},
		{"no data", "", `{"type":"payment.succeeded"}`, "the id of the payment is missing"},
		{"no amount", "", `{"type":"payment.succeeded","data":{"id":"ch_8"}}`, "the amount is missing"},
		{"an amount that is no whole number", "", `{"type":"payment.succeeded","data":{"id":"ch_8","amount":1.5}}`, "reading the event"},
		{"an id no index takes", "", `{"type":"payment.succeeded","data":{"id":"` + strings.Repeat("x", 300) + `","amount":1}}`, "longer than 255 bytes"},
		{"an id with a NUL", "", `{"type":"payment.succeeded","data":{"id":"\u0000","amount":1}}`, "no text"},
		{"a payment in a header, and no body", "payment.succeeded", ``, "reading the event"},
		{"a time that is none", "", `{"type":"payment.succeeded","timestamp":"yesterday","data":{"id":"ch_8","amount":1}}`, "reading the event"},
	}
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		inbox := open(Options{Clock: mockClock()})
		run(t, inbox)
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				_, err := inbox.Add(context.Background(), Message{ID: c.name, Type: c.header, Body: []byte(c.body), ReceivedAt: start()})
				if err != nil {
					t.Fatal(err)
				}
				want := StatusProcessed
				if c.failed != "" {
					want = StatusFailed
				}
				if e := awaitState(t, inbox, c.name, want); !strings.Contains(e.Error, c.failed) || e.Failed != (c.failed != "") || e.Attempts != 1 {
					t.Errorf("it came out as %+v, want an error about %q", e, c.failed)
				}
			})
		}
	})
}

func TestAnEventThatContradictsWhatIsKnownChangesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		inbox := open(Options{Clock: mockClock()})
		run(t, inbox)
		addBody(t, inbox, "good", paymentEvent("succeeded", 1))
		awaitState(t, inbox, "good", StatusProcessed)
		for change, want := range map[string]string{
			`"amount":4200|"amount":9`: "amount", "EUR|USD": "currency", "order-1|order-2": "reference",
		} {
			from, to, _ := strings.Cut(change, "|")
			addBody(t, inbox, change, strings.ReplaceAll(paymentEvent("refunded", 2), from, to))
			if e := awaitState(t, inbox, change, StatusFailed); e.Processed != 0 || !strings.Contains(e.Error, want) {
				t.Errorf("%s came out as %+v", change, e)
			}
		}
		if p := paymentNow(t, inbox, "ch_1"); p.State != PaymentSucceeded || p.Events != 1 {
			t.Errorf("the payment is %+v", p)
		}
	})
}

func TestAnEffectOfLongAgoIsNotRepeated(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		mock := mockClock()
		inbox := open(Options{Clock: mock})
		stop := run(t, inbox)
		addBody(t, inbox, "msg_1", paymentEvent("succeeded", 1))
		awaitState(t, inbox, "msg_1", StatusProcessed)
		stop()
		mock.Add(leastRemember + time.Second)
		if n, err := inbox.Forget(context.Background()); n != 1 || err != nil {
			t.Fatalf("forgot %d, %v", n, err)
		}
		run(t, inbox)
		if !addBody(t, inbox, "msg_1", paymentEvent("succeeded", 1)) {
			t.Error("the id was not forgotten")
		}
		awaitState(t, inbox, "msg_1", StatusProcessed)
		if p := paymentNow(t, inbox, "ch_1"); p.Events != 1 {
			t.Errorf("the payment is %+v", p)
		}
	})
}

// asking is an inbox that asks a provider which answers by mocked responders.
func asking(t *testing.T, c clock.Clock) (*Inbox, *httpmock.MockTransport) {
	t.Helper()
	transport := httpmock.NewMockTransport()
	inbox := openFile(t, t.TempDir()+"/inbox.db", Options{
		Clock: c, ProviderURL: "https://api.provider.test/v1/", ProviderClient: &http.Client{Transport: transport},
	})
	run(t, inbox)
	return inbox, transport
}

const lookupURL = "https://api.provider.test/v1/payments/ch_1"

func TestTheProvidersAnswerDecides(t *testing.T) {
	answer := func(status string, amount int) string {
		return fmt.Sprintf(`{"id":"ch_1","status":%q,"amount":%d,"currency":"eur","merchant_reference":"order-1"}`, status, amount)
	}
	for _, c := range []struct {
		name   string
		status int
		body   string
		state  string // of the payment
		failed string // part of the error; empty: processed
	}{
		{"it agrees", 200, answer("succeeded", 4200), PaymentSucceeded, ""},
		{"it is further on already", 200, answer("refunded", 4200), PaymentRefunded, ""},
		{"it is not that far", 200, answer("received", 4200), PaymentReceived, ""},
		{"it names another amount", 200, answer("succeeded", 1), StatusUnknown, "the event says amount 4200, and it is 1"},
		{"it names another reference", 200, strings.Replace(answer("succeeded", 4200), "order-1", "order-2", 1), StatusUnknown, `and it is "order-2"`},
		{"it names another currency", 200, strings.Replace(answer("succeeded", 4200), "eur", "usd", 1), StatusUnknown, "currency"},
		{"it speaks of another payment", 200, strings.Replace(answer("succeeded", 4200), "ch_1", "ch_2", 1), StatusUnknown, `about payment "ch_2"`},
		{"it has a status that means nothing here", 200, answer("declined", 4200), StatusUnknown, `"declined"`},
		{"it names no amount", 200, `{"id":"ch_1","status":"succeeded"}`, StatusUnknown, "the amount is missing"},
		{"it knows no such payment", 404, "", StatusUnknown, "knows no such payment"},
		{"it answers nonsense", 200, "<html>", StatusUnknown, "reading the provider's answer"},
		{"it answers without end", 200, strings.Repeat(" ", maxLookup+1), StatusUnknown, "longer than 65536 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inbox, transport := asking(t, mockClock())
			transport.RegisterResponder("GET", lookupURL, httpmock.NewStringResponder(c.status, c.body))
			addBody(t, inbox, "msg_1", paymentEvent("succeeded", 1))
			want := StatusProcessed
			if c.failed != "" {
				want = StatusFailed
			}
			if e := awaitState(t, inbox, "msg_1", want); !strings.Contains(e.Error, c.failed) {
				t.Errorf("it came out as %+v, want an error about %q", e, c.failed)
			}
			if p := paymentNow(t, inbox, "ch_1"); p.State != c.state {
				t.Errorf("the payment is %+v, want it %s", p, c.state)
			}
			if n := transport.GetTotalCallCount(); n != 1 {
				t.Errorf("the provider was asked %d times", n)
			}
		})
	}
}

func TestAProviderThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		broken httpmock.Responder
		want   string
	}{
		{"out of order", httpmock.NewStringResponder(500, ""), "the provider answered 500"},
		{"too busy", httpmock.NewStringResponder(429, ""), "the provider answered 429"},
		{"moved", httpmock.NewStringResponder(302, "").HeaderSet(http.Header{"Location": {"https://elsewhere.test/"}}), "the provider answered 302"},
		{"refusing credentials", httpmock.NewStringResponder(401, ""), "the provider answered 401"},
		{"gone from the network", httpmock.NewErrorResponder(errors.New("no route")), "no route"},
	} {
		t.Run(c.name, func(t *testing.T) {
			mock := mockClock()
			inbox, transport := asking(t, mock)
			good := httpmock.NewStringResponder(200, `{"id":"ch_1","status":"succeeded","amount":4200,"reference":"order-1"}`)
			transport.RegisterResponder("GET", lookupURL, c.broken.Then(good))
			addBody(t, inbox, "msg_1", paymentEvent("succeeded", 1))
			await(t, "it fails", func() bool { return became(t, inbox, "msg_1").Attempts == 1 })
			if e := became(t, inbox, "msg_1"); e.State != StatusReceived || !strings.Contains(e.Error, c.want) {
				t.Errorf("it came out as %+v, want an error about %q", e, c.want)
			}
			mock.Add(firstWait)
			awaitState(t, inbox, "msg_1", StatusProcessed)
			if p := paymentNow(t, inbox, "ch_1"); p.State != PaymentSucceeded {
				t.Errorf("the payment is %+v", p)
			}
		})
	}
}

func TestOnlyPaymentsAreAskedFor(t *testing.T) {
	inbox, transport := asking(t, mockClock())
	add(t, inbox, "msg_1")
	awaitState(t, inbox, "msg_1", StatusProcessed)
	addBody(t, inbox, "msg_2", strings.Replace(paymentEvent("succeeded", 1), "ch_1", "..", 1))
	if e := awaitState(t, inbox, "msg_2", StatusFailed); !strings.Contains(e.Error, "another address") {
		t.Errorf("it came out as %+v", e)
	}
	if n := transport.GetTotalCallCount(); n != 0 {
		t.Errorf("the provider was asked %d times", n)
	}
}

func TestAPaymentsIDIsOnePartOfTheAddress(t *testing.T) {
	asked := make(chan string, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked <- req.RequestURI
		w.WriteHeader(http.StatusNotFound)
	}))
	defer api.Close()
	p, err := newProvider(api.URL+"/v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.payment(context.Background(), "a/../b?c#d %"); err == nil {
		t.Error("no error for a payment that is not known")
	}
	if got, want := <-asked, "/v1/payments/a%2F..%2Fb%3Fc%23d%20%25"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
}

func TestAskingEndsWithItsContext(t *testing.T) {
	asked := make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		close(asked)
		<-req.Context().Done()
	}))
	defer api.Close()
	p, err := newProvider(api.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := p.payment(ctx, "ch_1"); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended by %v", err)
	}
}
