package receiver

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// observeTimeout is how long looking something up for an observer may take, 5 s.
const observeTimeout = 5 * time.Second

// Observer serves what became of events, for whoever has to know from outside
// that an event was processed once:
//
//	GET  /_observe/events/{id}     {"id":…,"processed":1,"failed":false,"state":"processed","attempts":1}
//	GET  /_observe/state/{payment} {"payment":…,"state":"succeeded","amount":4200,"events":1}
//	GET  /_observe/failed?after=ID the failed list, a page of it
//	POST /_observe/fail-once?id=ID makes processing fail once (Options.TestHooks)
//
// An event or a payment that is not known is 200 with "state":"unknown". It tells
// what events say, and has no guard of its own: it belongs on an address that
// the internet does not reach.
func (b *Inbox) Observer() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_observe/events/{id}", answerWith(func(ctx context.Context, req *http.Request) (any, error) {
		return b.Event(ctx, req.PathValue("id"))
	}))
	mux.HandleFunc("GET /_observe/state/{payment}", answerWith(func(ctx context.Context, req *http.Request) (any, error) {
		return b.Payment(ctx, req.PathValue("payment"))
	}))
	mux.HandleFunc("GET /_observe/failed", answerWith(b.failedPage))
	if b.hooks != nil {
		mux.HandleFunc("POST /_observe/fail-once", answerWith(func(_ context.Context, req *http.Request) (any, error) {
			return struct{}{}, b.FailOnce(req.URL.Query().Get("id"))
		}))
	}
	return mux
}

// Operator serves the failed list to the person who looks after it:
//
//	GET  /failed?after=ID  the failed list, a page of it
//	POST /failed/retry     puts all of it back into the queue, or with ?id=ID, which may repeat, those messages
//
// It has no guard of its own either.
func (b *Inbox) Operator() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /failed", answerWith(b.failedPage))
	mux.HandleFunc("POST /failed/retry", answerWith(func(ctx context.Context, req *http.Request) (any, error) {
		n, err := b.Retry(ctx, req.URL.Query()["id"]...)
		return struct {
			Queued int64 `json:"queued"`
		}{n}, err
	}))
	return mux
}

func (b *Inbox) failedPage(ctx context.Context, req *http.Request) (any, error) {
	failed, err := b.Failed(ctx, req.URL.Query().Get("after"))
	if failed == nil {
		failed = []FailedMessage{} // an empty list, not null
	}
	return struct {
		Failed []FailedMessage `json:"failed"`
	}{failed}, err
}

// answerWith answers with the JSON of what get returns, or 503 and its error.
func answerWith(get func(context.Context, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), observeTimeout)
		defer cancel()
		status := http.StatusOK
		v, err := get(ctx, req)
		if err != nil {
			status = http.StatusServiceUnavailable
			v = struct {
				Error string `json:"error"`
			}{err.Error()}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v) // the peer has gone; there is nobody to tell
	}
}
