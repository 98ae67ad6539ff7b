package fakeprovider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// Bounds of the provider's API.
const (
	// MaxPayments is how many payments are known at a time. A run has some
	// hundred.
	MaxPayments = 100_000
	// MaxAPIDelay bounds how slow it may be told to be: no client waits longer.
	MaxAPIDelay = 10 * time.Minute
	// maxAPIHeld is how many requests may wait for a slow answer at a time. A
	// receiver that asks from inside its handler opens one a delivery, and a
	// load scenario has 64 of those.
	maxAPIHeld = 1024
	// maxPaymentText bounds each text of a payment, in bytes.
	maxPaymentText = 256
)

// Payment is a payment as the provider's API tells of it: what a receiver finds
// when it asks back instead of believing an event.
type Payment struct {
	ID        string `json:"id"`
	Status    string `json:"status"` // such as received, succeeded, refunded
	Amount    int64  `json:"amount"` // in the currency's smallest unit
	Currency  string `json:"currency,omitempty"`
	Reference string `json:"merchant_reference,omitempty"` // the order it pays for
	Version   int64  `json:"version,omitempty"`            // grows with each change
}

// check refuses what could not be asked for, or would cost without bound.
func (p Payment) check() error {
	if p.ID == "" {
		return errors.New("the payment has no id")
	}
	for _, text := range []string{p.ID, p.Status, p.Currency, p.Reference} {
		if len(text) > maxPaymentText {
			return fmt.Errorf("a text of the payment is longer than %d bytes", maxPaymentText)
		}
	}
	return nil
}

// API plays the provider's own API, which a receiver asks for the present state
// of a payment before it acts on an event: GET /payments/{id}. It is an
// [http.Handler]; [ServeAPI] gives it a port of its own. What it answers is set
// by its methods or by HTTP:
//
//	GET    /payments/{id}  the payment; 404 for one that is not known
//	PUT    /payments/{id}  sets it: {"status":"succeeded","amount":4200,…}
//	DELETE /payments/{id}  forgets it
//	GET    /control        {"delay":"15s","down":false,"asked":3}
//	PUT    /control        sets delay and down, either may be left out
//
// It knows no credentials and takes any: what is sent to it is neither kept nor
// shown. Safe for concurrent use.
//
// source: 08 receiving webhooks, idempotent processing and event order.
type API struct {
	clock clock.Clock
	mux   *http.ServeMux
	held  chan struct{} // a token for each request that is being answered

	mu       sync.Mutex
	tell     func(Question)
	payments map[string]Payment
	others   *Payment // what every other id is answered with; nil: 404
	asked    map[string]int
	total    int
	delay    time.Duration
	down     bool
}

// NewAPI makes an API that knows no payment. The clock is what its delay is
// measured by: the real one, unless the receiver lives by another.
func NewAPI(c clock.Clock) *API {
	a := &API{clock: c, held: make(chan struct{}, maxAPIHeld), payments: map[string]Payment{}, asked: map[string]int{}}
	a.mux = a.routes()
	return a
}

// Set makes a payment known, or changes it.
func (a *API) Set(p Payment) error {
	if err := p.check(); err != nil {
		return fmt.Errorf("setting a payment at the provider's API: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.payments[p.ID]; !known && len(a.payments) >= MaxPayments {
		return fmt.Errorf("setting a payment at the provider's API: it knows %d, and more are not kept", MaxPayments)
	}
	a.payments[p.ID] = p
	return nil
}

// SetOthers is what is answered about a payment that is not known, with the id
// that is asked for in the place of p's; nil for 404, as at the beginning.
func (a *API) SetOthers(p *Payment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p != nil {
		own := *p
		p = &own
	}
	a.others = p
}

// Forget makes a payment unknown.
func (a *API) Forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.payments, id)
}

// Payment is what is answered about an id, and whether there is such a payment.
func (a *API) Payment(id string) (Payment, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p, known := a.payments[id]; known {
		return p, true
	}
	if a.others == nil {
		return Payment{}, false
	}
	p := *a.others
	p.ID = id
	return p, true
}

// Payments lists the payments that are known, by id.
func (a *API) Payments() []Payment {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]Payment, 0, len(a.payments))
	for _, p := range a.payments {
		all = append(all, p)
	}
	slices.SortFunc(all, func(x, y Payment) int { return strings.Compare(x.ID, y.ID) })
	return all
}

// SetDelay makes every answer about a payment late by d, from 0 to MaxAPIDelay.
// Requests that wait already keep the delay that they met.
func (a *API) SetDelay(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delay = min(max(d, 0), MaxAPIDelay)
}

// SetDown makes it answer 503 to whoever asks about a payment.
func (a *API) SetDown(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
}

// Asked is how often an id was asked for, when it was, answered or not. Of ids
// that are not known only the first MaxPayments are counted.
func (a *API) Asked(id string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[id]
}

// Question is one question about a payment, and how it was answered.
type Question struct {
	ID     string        `json:"id"` // of the payment, as it was asked for
	Status int           `json:"status"`
	Answer *Payment      `json:"answer,omitempty"` // nil unless the status is 200
	After  time.Duration `json:"-"`                // until it was answered
	Gone   bool          `json:"gone,omitempty"`   // whoever asked did not wait for the answer
}

// Tell has f told of every question once it is over; nil for nobody. It is
// called by several goroutines at a time.
func (a *API) Tell(f func(Question)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell = f
}

// told tells of a question.
func (a *API) told(q Question) {
	a.mu.Lock()
	tell := a.tell
	a.mu.Unlock()
	if tell != nil {
		tell(q)
	}
}

// ask notes a question and returns how it is to be answered.
func (a *API) ask(id string) (delay time.Duration, down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total++
	if a.asked[id] > 0 || len(a.asked) < MaxPayments {
		a.asked[id]++
	}
	return a.delay, a.down
}

// pause waits for as long as an answer is to be late, or until nobody waits for
// it any more.
func (a *API) pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := a.clock.Timer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
