package receiver

import (
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/profile"
)

// lastWins is the work of a shop where the event that comes last wins.
func lastWins(s *shop, id string, e shopEvent) {
	s.done[id]++
	s.states[e.Data.ID] = lastWord(e.Type)
}

func TestALateSuccessLeavesARefundAlone(t *testing.T) {
	noObserver := func(change func(*shop)) func(*shop) {
		return func(s *shop) {
			s.lacks = drive.Observe
			if change != nil {
				change(s)
			}
		}
	}
	template := func(text string) func(*Env) {
		return func(e *Env) {
			p, err := profile.ParsePayload("event.json", []byte(text))
			if err != nil {
				panic(err) // a test's own text
			}
			e.Event.Records = TemplateRecord(p)
		}
	}
	for _, tt := range []ruling{
		{"a state that only goes forward", nil, nil, evidence.Pass, ""},
		{"nobody tells when an event was processed", noObserver(nil), nil, evidence.Pass, ""},
		{"the receiver's own words", func(s *shop) { s.word = strings.ToUpper }, nil, evidence.Pass, ""},
		{"a refund that waits for its payment", func(s *shop) {
			s.work = func(s *shop, id string, e shopEvent) {
				if e.Type == "payment.refunded" && s.states[e.Data.ID] == "" {
					s.done[id]++
					return
				}
				s.do(id, e)
			}
		}, nil, evidence.Pass, ""},
		{"the last event wins", func(s *shop) { s.work = lastWins }, nil, evidence.Warn, lateSuccess + `: the record's state became "succeeded"`},
		{"it wins also where the refund came first", func(s *shop) { s.work = lastWins }, nil, evidence.Warn, refundFirst + `: the record's state became "succeeded"`},
		{"it wins, and nobody tells when", noObserver(func(s *shop) { s.work = lastWins }), nil, evidence.Warn, lateSuccess},
		{"a late event deletes the record", func(s *shop) {
			s.work = func(s *shop, id string, e shopEvent) {
				if s.states[e.Data.ID] == "refunded" {
					delete(s.states, e.Data.ID)
					return
				}
				s.do(id, e)
			}
		}, nil, evidence.Warn, "became (none)"},
		{"no business with payments", func(s *shop) { s.work = func(s *shop, id string, _ shopEvent) { s.done[id]++ } }, nil, evidence.Skipped, "after an event of the type payment.succeeded the record's state is (none)"},
		{"no business with refunds", func(s *shop) {
			s.work = func(s *shop, id string, e shopEvent) {
				if e.Type == "payment.refunded" {
					s.done[id]++
					return
				}
				s.do(id, e)
			}
		}, nil, evidence.Skipped, `after an event of the type payment.refunded the record's state is "succeeded"`},
		{"the refund refused", func(s *shop) {
			s.answer = func(id string, _ bool) int {
				if len(s.states) > 0 {
					return 422
				}
				return 0
			}
		}, nil, evidence.Skipped, "the event payment.refunded was not accepted"},
		{"an adapter that fails", func(s *shop) { s.hookErr = errHook }, nil, evidence.Error, "asking for the state of a record: the adapter at"},
		{"a template of the user's", nil, template(`{"type":{{json .Type}},"data":{"id":"{{.Random}}","amount":1}}`), evidence.Pass, ""},
		{"a template that names no record", nil, template(`{"type":{{json .Type}},"data":{"id":"always"}}`), evidence.Skipped, "put {{.Random}}"},
		{"a template with types of its own", func(s *shop) { s.work = lastWins }, func(e *Env) {
			template(`{"type":{{json .Type}},"data":{"id":"ch_{{.Random}}","amount":1}}`)(e)
			e.Event.Type = "charge.succeeded"
		}, evidence.Warn, lateSuccess},
	} {
		tt.check(t, doesNotRegress)
	}
}

func TestTheProviderIsAskedBeforeAnEventIsBelieved(t *testing.T) {
	believing := func(amount, reference bool) func(*shop) {
		return func(s *shop) {
			s.work = func(s *shop, id string, e shopEvent) {
				s.done[id]++
				is, _ := s.api.Payment(e.Data.ID)
				if (amount || is.Amount == e.Data.Amount) && (reference || is.Reference == e.Data.MerchantReference) {
					s.states[e.Data.ID] = "paid"
				}
			}
		}
	}
	slowly := func(e *Env) { e.Bounds.Fast, e.Bounds.ProviderDelay = 150*time.Millisecond, 300*time.Millisecond }
	for _, tt := range []ruling{
		{"asked, and compared", nil, nil, evidence.Pass, ""},
		{"believed", believing(true, true), nil, evidence.Warn, wrongAmount + `: the record's state became "paid"`},
		{"the amount not compared", believing(true, false), nil, evidence.Warn, wrongAmount},
		{"the reference not compared", believing(false, true), nil, evidence.Warn, wrongOrder + `: the record's state became "paid"`},
		{"what is contradicted refused", func(s *shop) {
			s.answer = func(string, bool) int {
				if len(s.states) > 0 {
					return 422
				}
				return 0
			}
		}, nil, evidence.Warn, wrongAmount + ": answered 422"},
		{"asked before the answer", func(s *shop) {
			s.work = func(s *shop, id string, e shopEvent) {
				if len(s.done) > 2 { // the confirmed one, and the two that are not
					time.Sleep(300 * time.Millisecond)
				}
				s.do(id, e)
			}
		}, slowly, evidence.Warn, slowProvider + ": it takes 300ms to answer: answered 200 after"},
		{"no business with payments", func(s *shop) { s.work = func(s *shop, id string, _ shopEvent) { s.done[id]++ } }, nil, evidence.Skipped, "payment.succeeded"},
		{"no amount to contradict", nil, func(e *Env) {
			p, err := profile.ParsePayload("event.json", []byte(`{"type":{{json .Type}},"data":{"id":"{{.Random}}"}}`))
			if err != nil {
				panic(err) // a test's own text
			}
			e.Event.Records = TemplateRecord(p)
		}, evidence.Skipped, "tells no amount"},
		{"an adapter that fails", func(s *shop) { s.hookErr = errHook }, nil, evidence.Error, "asking for the state of a record: the adapter at"},
	} {
		tt.check(t, asksProvider)
	}
}

func TestTheTypesOfARecordsEvents(t *testing.T) {
	for _, tt := range []struct {
		name           string
		event          Event
		earlier, later string
	}{
		{"none named", Event{Type: "invoice.paid"}, "payment.succeeded", "payment.refunded"},
		{"a type that is a success", Event{Type: "charge.succeeded"}, "charge.succeeded", "charge.refunded"},
		{"a success without anything around", Event{Type: "succeeded"}, "payment.succeeded", "payment.refunded"},
		{"both named", Event{Type: "charge.succeeded", Steps: [2]string{"paid", "reversed"}}, "paid", "reversed"},
	} {
		if earlier, later := tt.event.steps(); earlier != tt.earlier || later != tt.later {
			t.Errorf("%s: %s and %s, want %s and %s", tt.name, earlier, later, tt.earlier, tt.later)
		}
	}
}

func TestAnEventAboutARecordTellsWhatTheProviderHasToTell(t *testing.T) {
	for _, tt := range []struct {
		name, template, id string
		amount             int64
		reference          string
		ok                 bool
	}{
		{"a payment", `{"type":"x","data":{"id":"{{.Random}}","amount":4200,"merchant_reference":"order-1"}}`, "", 4200, "order-1", true},
		{"with something around its name", `{"type":"x","data":{"object":{"id":"in_{{.Random}}","amount":1}}}`, "in_", 1, "", true},
		{"named by another member than id", `{"type":"x","id":"evt_1","data":{"order":"o-{{.Random}}","amount":1,"reference":"r"}}`, "o-", 1, "r", true},
		{"an id before another member", `{"data":{"about":"about {{.Random}}","id":"{{.Random}}","amount":1}}`, "", 1, "", true},
		{"without an amount", `{"data":{"id":"{{.Random}}"}}`, "", 0, "", false},
		{"an amount that is no whole number", `{"data":{"id":"{{.Random}}","amount":"12.50"}}`, "", 0, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := profile.ParsePayload("event.json", []byte(tt.template))
			if err != nil {
				t.Fatal(err)
			}
			e := envOf(t, "http://127.0.0.1:1", amply)
			e.Event.Records = TemplateRecord(p)
			s := e.session(t.Context(), nothing(), "receiver.example.row")
			r := s.newRecord("receiver.example.row")
			if r == nil {
				t.Fatal("no record")
			}
			got, ok := r.payment(r.event("payment.succeeded", time.Now()))
			if ok != tt.ok || got.ID != tt.id+r.name || got.Amount != tt.amount || got.Reference != tt.reference || got.Status != "succeeded" {
				t.Errorf("%+v, %v", got, ok)
			}
			if r.spelt != got.ID {
				t.Errorf("its state is asked for as %q, and the provider knows it as %q", r.spelt, got.ID)
			}
		})
	}
}

func TestEveryProfileWithDataTellsOfAPayment(t *testing.T) {
	for _, name := range profile.Names() {
		p, err := profile.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		e := envOf(t, "http://127.0.0.1:1", amply)
		render := profileRecord(p, e.Clock)
		if render == nil {
			continue // its payload has no data
		}
		body, err := render("pay_1", "id_1", "payment.refunded", e.Clock.Now())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if data := dataOf(object(body)); data["id"] != "pay_1" || data["status"] != "refunded" || data["merchant_reference"] != "order-pay_1" {
			t.Errorf("%s: %s", name, body)
		}
	}
}
