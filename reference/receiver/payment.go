package receiver

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/benbjohnson/clock"
)

// The states of a payment, in the only order in which it moves through them.
const (
	PaymentReceived  = "received"
	PaymentSucceeded = "succeeded"
	PaymentRefunded  = "refunded"
)

// rank orders the states; 0 is none of them.
func rank(state string) int {
	switch state {
	case PaymentReceived:
		return 1
	case PaymentSucceeded:
		return 2
	case PaymentRefunded:
		return 3
	}
	return 0
}

// Payments is the example business: events of the types payment.received,
// payment.succeeded and payment.refunded, such as
//
//	{"type":"payment.succeeded","timestamp":"2026-11-14T10:00:00Z","data":
//	 {"id":"ch_1","amount":54890,"currency":"TRY","merchant_reference":"order-1001"}}
//
// The signature says who sent an event, not that it is right, and nothing says
// that events come in order. So an event only tells that something has changed:
//
//   - The provider at providerURL is asked for the payment's current state, by
//     GET {providerURL}/payments/{id}, and that state is written down. Where its
//     answer has another amount, currency or reference than the event, or the
//     provider knows no such payment, the event has failed and changes nothing.
//   - Without a providerURL an event that is older than the newest one seen, by
//     data.version or else by its time, changes nothing.
//   - A state only moves forward, whoever says what.
//
// An event of any other type has the effect that it was seen.
//
// client asks the provider; nil is one without credentials.
// source: 08 receiving webhooks, idempotent processing and event order.
func Payments(c clock.Clock, providerURL string, client *http.Client) (Handler, error) {
	p := &payments{clock: c}
	if providerURL != "" {
		ask, err := newProvider(providerURL, client)
		if err != nil {
			return nil, err
		}
		p.provider = ask
	}
	return p.handle, nil
}

type payments struct {
	clock    clock.Clock
	provider *provider // nil: nobody to ask
}

// payment is what an event, or the provider, says of a payment.
type payment struct {
	ID        string
	State     string
	Amount    int64
	Currency  string
	Reference string
	Version   int64
	At        time.Time
}

// handle implements Handler.
func (p *payments) handle(ctx context.Context, m Message) (Effect, error) {
	kind, said, err := readPayment(m)
	if err != nil {
		return nil, Permanent(err)
	}
	if said == nil {
		return p.seen(m.ID, kind, ""), nil
	}
	if p.provider == nil {
		return p.apply(m.ID, kind, *said), nil
	}
	is, err := p.provider.payment(ctx, said.ID)
	if err != nil {
		return nil, err
	}
	if err := said.contradicts(is); err != nil {
		return nil, Permanent(fmt.Errorf("asking the provider about payment %q: %w", said.ID, err))
	}
	return p.apply(m.ID, kind, is), nil
}

// contradicts says in which way two sayings about one payment differ that never
// changes while a payment lives.
func (s payment) contradicts(is payment) error {
	switch {
	case s.Amount != is.Amount:
		return fmt.Errorf("the event says amount %d, and it is %d", s.Amount, is.Amount)
	case s.Currency != "" && is.Currency != "" && !strings.EqualFold(s.Currency, is.Currency):
		return fmt.Errorf("the event says currency %q, and it is %q", s.Currency, is.Currency)
	case s.Reference != is.Reference && s.Reference != "":
		return fmt.Errorf("the event says reference %q, and it is %q", s.Reference, is.Reference)
	}
	return nil
}

// seen notes the effect of an event, once.
func (p *payments) seen(event, kind, about string) Effect {
	return func(ctx context.Context, tx Tx) error {
		_, err := p.note(ctx, tx, event, kind, about)
		return err
	}
}

// note writes the row that stands for the effect of an event, and tells whether
// it is new. It is not when the event was processed so long ago that its id was
// forgotten.
func (p *payments) note(ctx context.Context, tx Tx, event, kind, about string) (isNew bool, err error) {
	n, err := changed(tx.ExecContext(ctx, `INSERT INTO effects (event_id, kind, payment, applied_at)
		VALUES ($1, $2, $3, $4) ON CONFLICT (event_id) DO NOTHING`, event, kind, about, p.clock.Now().UnixMicro()))
	return n > 0, err
}

// apply moves a payment to the state that s says, if that is forward.
func (p *payments) apply(event, kind string, s payment) Effect {
	return func(ctx context.Context, tx Tx) error {
		if isNew, err := p.note(ctx, tx, event, kind, s.ID); err != nil || !isNew {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO payments (id, state, amount, currency, reference, version, event_at, events)
			VALUES ($1, $2, $3, $4, $5, $6, $7, 0) ON CONFLICT (id) DO NOTHING`,
			s.ID, s.State, s.Amount, s.Currency, s.Reference, s.Version, s.At.UnixMicro())
		if err != nil {
			return err
		}
		var was payment
		var at int64
		// The update locks the row before its state is read: events about one
		// payment may be processed at the same moment.
		err = tx.QueryRowContext(ctx, `UPDATE payments SET events = events + 1 WHERE id = $1
			RETURNING state, amount, currency, reference, version, event_at`, s.ID).
			Scan(&was.State, &was.Amount, &was.Currency, &was.Reference, &was.Version, &at)
		if err != nil {
			return err
		}
		was.At = time.UnixMicro(at)
		if err := s.contradicts(was); err != nil {
			return Permanent(fmt.Errorf("comparing with earlier events of payment %q: %w", s.ID, err))
		}
		if p.provider == nil && s.older(was) || rank(s.State) <= rank(was.State) {
			return nil
		}
		_, err = tx.ExecContext(ctx, `UPDATE payments SET state = $2, version = $3, event_at = $4 WHERE id = $1`,
			s.ID, s.State, s.Version, s.At.UnixMicro())
		return err
	}
}

// older tells whether s was said before was, by the version where both have one.
func (s payment) older(was payment) bool {
	if s.Version != 0 && was.Version != 0 {
		return s.Version < was.Version
	}
	return s.At.Before(was.At)
}

// readPayment reads a message: its type, and what it says of a payment, nil if
// it is about none. Its errors are faults of the event, and for ever.
func readPayment(m Message) (kind string, said *payment, err error) {
	if text := bytes.TrimSpace(m.Body); m.Type == "" && (len(text) == 0 || text[0] != '{' && text[0] != '[') {
		return "", nil, nil // a form, or bytes: another provider's kind of event
	}
	var event struct {
		Timestamp time.Time   `json:"timestamp"`
		CreatedAt time.Time   `json:"created_at"`
		Data      paymentData `json:"data"`
	}
	kind = m.Type
	var head struct {
		Type any `json:"type"`
	}
	// Only the type at first: an event of a type that means nothing here may
	// look as it likes.
	if err := json.Unmarshal(m.Body, &head); err != nil && kind == "" {
		if !json.Valid(m.Body) {
			return "", nil, errors.New("reading the event: it is no well-formed JSON")
		}
		return "", nil, nil // an array, or so
	}
	if text, ok := head.Type.(string); ok && kind == "" {
		kind = clip(text, maxIDBytes)
	}
	state, ok := strings.CutPrefix(kind, "payment.")
	if !ok || rank(state) == 0 {
		return kind, nil, nil
	}
	if err := json.Unmarshal(m.Body, &event); err != nil {
		return "", nil, fmt.Errorf("reading the event: %w", err)
	}
	said, err = event.Data.payment()
	if err != nil {
		return "", nil, fmt.Errorf("reading the event's data: %w", err)
	}
	said.State, said.At = state, event.Timestamp
	if said.At.IsZero() {
		said.At = event.CreatedAt
	}
	if said.At.IsZero() {
		said.At = m.ReceivedAt
	}
	return kind, said, nil
}

// paymentData is a payment as events and the provider's API spell it.
type paymentData struct {
	ID                string `json:"id"`
	Status            string `json:"status"`
	Amount            *int64 `json:"amount"` // in the currency's smallest unit
	Currency          string `json:"currency"`
	Reference         string `json:"reference"`
	MerchantReference string `json:"merchant_reference"`
	Version           int64  `json:"version"`
}

func (d paymentData) payment() (*payment, error) {
	switch {
	case d.ID == "":
		return nil, errors.New("the id of the payment is missing")
	case d.ID != storedID(d.ID):
		return nil, fmt.Errorf("the id of the payment is longer than %d bytes, or no text", maxIDBytes)
	case d.Amount == nil:
		return nil, errors.New("the amount is missing")
	}
	p := &payment{
		ID: d.ID, State: d.Status, Amount: *d.Amount, Currency: clip(d.Currency, maxIDBytes),
		Reference: clip(d.MerchantReference, maxIDBytes), Version: d.Version,
	}
	if p.Reference == "" {
		p.Reference = clip(d.Reference, maxIDBytes)
	}
	return p, nil
}

// Payment is a payment of the example business.
type Payment struct {
	ID        string `json:"payment"`
	State     string `json:"state"` // StatusUnknown where no event was about it
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency,omitempty"`
	Reference string `json:"reference,omitempty"`
	Events    int64  `json:"events"` // that took effect on it
}

// Payment tells the state of a payment.
func (b *Inbox) Payment(ctx context.Context, id string) (Payment, error) {
	p := Payment{ID: id, State: StatusUnknown}
	err := b.db.reader().QueryRowContext(ctx, `SELECT state, amount, currency, reference, events FROM payments WHERE id = $1`, storedID(id)).
		Scan(&p.State, &p.Amount, &p.Currency, &p.Reference, &p.Events)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Payment{}, fmt.Errorf("looking for a payment: %w", err)
	}
	return p, nil
}
