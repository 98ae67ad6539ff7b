// Shipment tracker: receives shipment events (Standard Webhooks) with net/http
// and updates the tracking table from a worker goroutine.
//
// Field subject of the self test; ../EXPECTED.md says what is wrong with it.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxBody   = 64 << 10
	tolerance = 5 * time.Minute
)

var errSignature = errors.New("signature does not match")

type receiver struct {
	keys  [][]byte
	queue chan []byte

	mu   sync.Mutex
	seen map[string]time.Time
}

func loadKeys() [][]byte {
	var keys [][]byte
	for _, name := range []string{"WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS"} {
		v := os.Getenv(name)
		if v == "" {
			if name == "WEBHOOK_SECRET" {
				log.Fatal("WEBHOOK_SECRET is not set")
			}
			continue
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(v, "whsec_"))
		if err != nil {
			log.Fatalf("%s: %v", name, err)
		}
		keys = append(keys, key)
	}
	return keys
}

func (rc *receiver) verify(h http.Header, body []byte) error {
	id := h.Get("webhook-id")
	ts := h.Get("webhook-timestamp")
	if id == "" || ts == "" {
		return errors.New("missing headers")
	}
	sec, err := strconv.ParseInt(ts, 10, 64)
	if err != nil {
		return errors.New("bad timestamp")
	}
	if d := time.Since(time.Unix(sec, 0)); d > tolerance || d < -tolerance {
		return errors.New("timestamp outside tolerance")
	}

	// webhook-signature: v1,<base64>
	version, sig, ok := strings.Cut(h.Get("webhook-signature"), ",")
	if !ok || version != "v1" {
		return errors.New("unsupported signature version")
	}
	sig, _, _ = strings.Cut(sig, " ")
	given, err := base64.StdEncoding.DecodeString(sig)
	if err != nil {
		return errSignature
	}

	for _, key := range rc.keys {
		mac := hmac.New(sha256.New, key)
		io.WriteString(mac, id+"."+ts+".")
		mac.Write(body)
		if hmac.Equal(given, mac.Sum(nil)) {
			return nil
		}
	}
	return errSignature
}

func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > maxBody {
		http.Error(w, "payload too large", http.StatusRequestEntityTooLarge)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			http.Error(w, "payload too large", http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, "could not read body", http.StatusBadRequest)
		return
	}
	if err := rc.verify(r.Header, body); err != nil {
		log.Printf("rejected: %v", err)
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}

	id := r.Header.Get("webhook-id")
	rc.mu.Lock()
	_, dup := rc.seen[id]
	if !dup {
		rc.seen[id] = time.Now()
	}
	rc.mu.Unlock()
	if !dup {
		rc.queue <- body
	}
	w.WriteHeader(http.StatusOK)
}

func (rc *receiver) work() {
	for body := range rc.queue {
		var ev struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(body, &ev); err != nil {
			log.Printf("not JSON, put aside: %v", err)
			continue
		}
		log.Printf("handled %q", ev.Type)
	}
}

func main() {
	rc := &receiver{keys: loadKeys(), queue: make(chan []byte, 1024), seen: map[string]time.Time{}}
	go rc.work()

	mux := http.NewServeMux()
	mux.Handle("POST /webhooks", rc)
	srv := &http.Server{
		Addr:              "127.0.0.1:" + os.Getenv("PORT"),
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
	}
	log.Fatal(srv.ListenAndServe())
}
