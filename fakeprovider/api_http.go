package fakeprovider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/benbjohnson/clock"
)

const (
	// maxAPIBody bounds what is set by HTTP, in bytes: a payment has some hundred.
	maxAPIBody = 16 << 10
	// apiReadTimeout bounds the header of a request. Not the whole: net/http would
	// take the end of that time for the end of whoever waits for a late answer.
	apiReadTimeout = 10 * time.Second
	// apiIdleTimeout is how long a connection is kept for the next question.
	apiIdleTimeout = time.Minute
)

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, req *http.Request) { a.mux.ServeHTTP(w, req) }

func (a *API) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /payments/{id}", a.get)
	mux.HandleFunc("PUT /payments/{id}", a.put)
	mux.HandleFunc("DELETE /payments/{id}", func(w http.ResponseWriter, req *http.Request) {
		a.Forget(req.PathValue("id"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /control", func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, http.StatusOK, a.control()) })
	mux.HandleFunc("PUT /control", a.putControl)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuseJSON(w, http.StatusNotFound, "there are GET, PUT and DELETE /payments/{id}, and GET and PUT /control")
	})
	return mux
}

// get is what a receiver asks.
func (a *API) get(w http.ResponseWriter, req *http.Request) {
	began := a.clock.Now()
	q := Question{ID: req.PathValue("id")}
	refusal := a.answer(req.Context(), &q)
	q.After = a.clock.Now().Sub(began)
	a.told(q)
	switch {
	case q.Gone: // nobody waits for the answer
	case q.Answer != nil:
		answerJSON(w, q.Status, q.Answer)
	default:
		refuseJSON(w, q.Status, refusal)
	}
}

// answer decides how a question is answered, and waits for as long as that is to
// take.
func (a *API) answer(ctx context.Context, q *Question) (refusal string) {
	delay, down := a.ask(q.ID)
	q.Status = http.StatusServiceUnavailable
	select {
	case a.held <- struct{}{}:
		defer func() { <-a.held }()
	default:
		return fmt.Sprintf("%d questions are open already", maxAPIHeld)
	}
	if a.pause(ctx, delay) != nil {
		q.Gone, q.Status = true, 0
		return ""
	}
	if down {
		return "the provider's API is down"
	}
	p, known := a.Payment(q.ID)
	if !known {
		q.Status = http.StatusNotFound
		return "there is no such payment"
	}
	q.Status, q.Answer = http.StatusOK, &p
	return ""
}

func (a *API) put(w http.ResponseWriter, req *http.Request) {
	p := Payment{ID: req.PathValue("id")}
	err := readJSON(w, req, &p)
	if err == nil && p.ID != req.PathValue("id") {
		err = errors.New("the id is another one than the address names")
	}
	if err == nil {
		err = a.Set(p)
	}
	if err != nil {
		refuseJSON(w, http.StatusBadRequest, err.Error())
		return
	}
	answerJSON(w, http.StatusOK, p)
}

// apiControl is how the API behaves. Asked counts all questions.
type apiControl struct {
	Delay string `json:"delay"`
	Down  bool   `json:"down"`
	Asked int    `json:"asked"`
}

func (a *API) control() apiControl {
	a.mu.Lock()
	defer a.mu.Unlock()
	return apiControl{Delay: a.delay.String(), Down: a.down, Asked: a.total}
}

func (a *API) putControl(w http.ResponseWriter, req *http.Request) {
	var set struct {
		Delay *string `json:"delay"`
		Down  *bool   `json:"down"`
	}
	if err := readJSON(w, req, &set); err != nil {
		refuseJSON(w, http.StatusBadRequest, err.Error())
		return
	}
	if set.Delay != nil {
		d, err := time.ParseDuration(*set.Delay)
		if err != nil || d < 0 || d > MaxAPIDelay {
			refuseJSON(w, http.StatusBadRequest, fmt.Sprintf("the delay is not a time from 0s to %v, such as 15s", MaxAPIDelay))
			return
		}
		a.SetDelay(d)
	}
	if set.Down != nil {
		a.SetDown(*set.Down)
	}
	answerJSON(w, http.StatusOK, a.control())
}

// readJSON reads the body of a request into v. A member that is not known is
// refused: it would be a typing error that changes nothing.
func readJSON(w http.ResponseWriter, req *http.Request, v any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxAPIBody))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("reading the body: something stands behind the JSON object")
	}
	return nil
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the peer has gone; there is nobody to tell
}

func refuseJSON(w http.ResponseWriter, status int, why string) {
	answerJSON(w, status, struct {
		Error string `json:"error"`
	}{why})
}

// APIServer is an [API] on a port of its own.
type APIServer struct {
	*API
	listener net.Listener
	server   *http.Server
	done     chan struct{}
	err      error // of Serve, once done is closed
}

// ServeAPI makes an API and serves it at an address, "" for a free port on
// 127.0.0.1. The caller closes it.
func ServeAPI(c clock.Clock, address string) (*APIServer, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving the provider's API: %w", err)
	}
	s := &APIServer{API: NewAPI(c), listener: listener, done: make(chan struct{})}
	s.server = &http.Server{
		Handler: s.API, ReadHeaderTimeout: apiReadTimeout, IdleTimeout: apiIdleTimeout, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // what a receiver breaks off is its own affair
	}
	go func() {
		defer close(s.done)
		s.err = s.server.Serve(listener)
	}()
	return s, nil
}

// URL is where it is asked, without a slash at its end.
func (s *APIServer) URL() string { return "http://" + s.listener.Addr().String() }

// Close ends it, and the answers that are late.
func (s *APIServer) Close(context.Context) error {
	err := s.server.Close()
	<-s.done
	if !errors.Is(s.err, http.ErrServerClosed) {
		err = errors.Join(err, s.err)
	}
	if err != nil {
		return fmt.Errorf("closing the provider's API: %w", err)
	}
	return nil
}
