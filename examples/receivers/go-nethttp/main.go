// A receiver of signed webhooks with net/http.
//
// The order matters: bound the body, verify its bytes as sent, store the event
// under its id, answer, and only then parse and work.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const maxBody = 64 << 10 // events are a few KB

type entry struct {
	body  []byte
	state string // received, then processed or why it failed
}

// receiver holds the events by webhook-id. In a real system the inbox is a table
// with the id as its primary key: the insert tells a duplicate, also between two
// instances, and an answered event survives a restart.
type receiver struct {
	webhooks []*standardwebhooks.Webhook
	inbox    sync.Map    // webhook-id to *entry
	queue    chan *entry // to process; when full, answers wait and the sender retries
}

func (rc *receiver) authentic(body []byte, h http.Header) bool {
	for _, wh := range rc.webhooks {
		if wh.Verify(body, h) == nil {
			return true
		}
	}
	return false
}

func (rc *receiver) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	} else if err != nil {
		w.WriteHeader(http.StatusBadRequest) // the sender went away or took too long
		return
	}
	if !rc.authentic(body, r.Header) {
		w.WriteHeader(http.StatusUnauthorized) // for whatever reason: a forger learns nothing
		return
	}
	e := &entry{body: body, state: "received"}
	if _, duplicate := rc.inbox.LoadOrStore(r.Header.Get("webhook-id"), e); !duplicate {
		rc.queue <- e
	}
	w.WriteHeader(http.StatusNoContent) // a duplicate as well: the sender asks whether it arrived
}

// process works the queue off. The sender was answered and will not send again,
// so what fails stays in the inbox, for a rerun or a person.
func (rc *receiver) process() {
	for e := range rc.queue {
		if err := handle(e.body); err != nil {
			e.state = "failed: " + err.Error()
		} else {
			e.state = "processed"
		}
	}
}

// handle does the work. It may be cut off and run again: make it idempotent.
func handle(body []byte) error {
	var event struct{ Type string }
	if err := json.Unmarshal(body, &event); err != nil {
		return err
	}
	if event.Type == "" {
		return errors.New("the event has no type")
	}
	return nil // the work goes here
}

func main() {
	rc := &receiver{queue: make(chan *entry, 1024)}
	// During a rotation the previous secret is accepted beside the current one.
	secrets := []string{os.Getenv("WEBHOOK_SECRET")}
	if previous := os.Getenv("WEBHOOK_SECRET_PREVIOUS"); previous != "" {
		secrets = append(secrets, previous)
	}
	for _, secret := range secrets {
		// NewWebhook takes an empty secret, and then whoever signs with the
		// empty key is believed.
		if strings.TrimPrefix(secret, "whsec_") == "" {
			log.Fatal("WEBHOOK_SECRET is not set")
		}
		wh, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			log.Fatal(err)
		}
		rc.webhooks = append(rc.webhooks, wh)
	}
	go rc.process()

	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhooks", rc.receive)
	srv := &http.Server{
		Addr:        "127.0.0.1:" + cmp.Or(os.Getenv("PORT"), "8080"),
		Handler:     mux,
		ReadTimeout: 30 * time.Second, // a sender that stalls holds no connection for long
	}
	log.Fatal(srv.ListenAndServe())
}
