package mutant

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/receiver"
)

// business is what a receiver does with an event behind its answer: the least
// that shows what the reference's inbox does. The zero value is right; a mutant
// changes one member.
type business struct {
	// remember is how long ids are known; 0: as long as the profile asks for.
	remember time.Duration
	// failed is what becomes of an event whose work failed, and the error of the
	// delivery that brought it; nil: it is tried again a moment later.
	failed func(j *journal, m receiver.Message, again func()) error
	// copied is what becomes of the copy of a known event; nil: nothing.
	copied func(j *journal, m receiver.Message, again func())
	// follows tells whether a payment in one state may move to another; nil:
	// forward only.
	follows func(was, said payment) bool
	// believes says that the provider is not asked.
	believes bool
	// agrees tells whether the provider's answer confirms what an event says;
	// nil: amount and reference are the same.
	agrees func(said, is payment) bool
	// beforehand says that the provider is asked before the answer is given.
	beforehand bool
}

// secondAttempt is how long a failed event waits for it: the suite's self-test
// sees it within its shortest watch.
const secondAttempt = 30 * time.Millisecond

// lookupTimeout bounds a question to the provider. Nobody waits for the work when a
// receiver is closed: who asks then is told so by the provider's end.
const lookupTimeout = 30 * time.Second

// store takes in what is new and does its work.
func (b business) store(c Config) receiver.Store {
	remember := b.remember
	if remember == 0 {
		remember = receiver.Remember(c.Profile)
	}
	j := c.journal
	return adding(func(m receiver.Message) (bool, error) {
		added, err := j.takeFor(m.ID, remember)
		switch {
		case err != nil:
			return false, err
		case added:
			return true, b.work(c, m)
		case b.copied != nil:
			b.copied(j, m, func() { _ = b.work(c, m) })
		}
		return false, nil
	})
}

// work does an event's work. An error of it is the delivery's.
func (b business) work(c Config, m receiver.Message) error {
	j := c.journal
	retry := func() { time.AfterFunc(secondAttempt, func() { _ = b.work(c, m) }) }
	if j.fails(m.ID) {
		if b.failed != nil {
			return b.failed(j, m, retry)
		}
		retry()
		return nil
	}
	said, is := paymentOf(m.Body)
	switch {
	case !is:
		return j.effect(m.ID)
	case b.believes || c.ProviderURL == "":
		return j.apply(m.ID, said, b.follows)
	case b.beforehand:
		return b.confirm(c, m, said)
	}
	go func() { _ = b.confirm(c, m, said) }()
	return nil
}

// confirm asks the provider, and does an event's work if the answer agrees. What
// it cannot do it lists.
func (b business) confirm(c Config, m receiver.Message, said payment) error {
	is, err := ask(c.ProviderURL, said.ID)
	agrees := b.agrees
	if agrees == nil {
		agrees = func(said, is payment) bool { return said.Amount == is.Amount && said.Reference == is.Reference }
	}
	if err != nil || !agrees(said, is) {
		c.journal.list(m.ID)
		return nil
	}
	return c.journal.apply(m.ID, said, b.follows)
}

// payment is what an event, or the provider, says of a payment.
type payment struct {
	ID        string `json:"id"`
	State     string `json:"status"`
	Amount    int64  `json:"amount"`
	Reference string `json:"merchant_reference"`
}

// paymentOf reads an event about a payment; false for any other.
func paymentOf(body []byte) (payment, bool) {
	var e struct {
		Type string  `json:"type"`
		Data payment `json:"data"`
	}
	if json.Unmarshal(body, &e) != nil {
		return payment{}, false
	}
	state, ok := strings.CutPrefix(e.Type, "payment.")
	e.Data.State = state
	return e.Data, ok && e.Data.ID != ""
}

// ask asks the provider for a payment.
func ask(base, id string) (payment, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/payments/"+url.PathEscape(id), nil)
	if err != nil {
		return payment{}, err
	}
	req.Close = true // a receiver that is closed leaves no connection behind
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return payment{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return payment{}, fmt.Errorf("the provider answered %s", resp.Status)
	}
	var is payment
	err = json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&is)
	return is, err
}

// forward lets a payment move in one direction only.
func forward(was, said payment) bool {
	rank := map[string]int{"received": 1, "succeeded": 2, "refunded": 3}
	return rank[said.State] > rank[was.State]
}

// apply is the effect of an event about a payment.
func (j *journal) apply(event string, said payment, follows func(was, said payment) bool) error {
	if follows == nil {
		follows = forward
	}
	j.mu.Lock()
	j.about[event] = said.ID
	if follows(j.payments[said.ID], said) {
		j.payments[said.ID] = said
	}
	j.mu.Unlock()
	return j.effect(event)
}

// list puts an event on the list of failed ones.
func (j *journal) list(event string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed[event] = true
}

// unlist takes an event off that list, and tells whether it stood there.
func (j *journal) unlist(event string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	stood := j.failed[event]
	delete(j.failed, event)
	return stood
}

// fails tells whether this attempt at an event's work is to fail.
func (j *journal) fails(event string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	fails := j.failing[event]
	delete(j.failing, event)
	return fails
}

// failOnce makes the next attempt at an event's work fail.
func (j *journal) failOnce(event string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failing[event] = true
}

// stateOf is the state of a payment, named by itself or by an event about it;
// empty where there is none.
func (j *journal) stateOf(event, id string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if id == "" {
		id = j.about[event]
	}
	return j.payments[id].State
}
