package sender

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// minToken is the length of the shortest admin token, 16 bytes: whoever
	// guesses it can read every secret to come.
	minToken = 16

	// maxAdminBody is how large a request to the admin API may be, 64 KiB. One
	// that publishes may be larger, by MaxPayload.
	maxAdminBody = 64 << 10
)

// Admin serves the sender to the service around it and to whoever looks after
// it. Every request carries "Authorization: Bearer TOKEN", where the token has
// 16 bytes at least.
//
//	POST   /v1/events                                 publish {type, timestamp, data}
//	GET    /v1/webhook-event-types                    the catalogue
//	GET    /v1/webhook-endpoints?after=ID             a page of them
//	POST   /v1/webhook-endpoints                      create one; the answer holds its secret, once
//	GET    /v1/webhook-endpoints/{id}
//	PATCH  /v1/webhook-endpoints/{id}                 change {url, event_types, api_version}
//	DELETE /v1/webhook-endpoints/{id}
//	POST   /v1/webhook-endpoints/{id}/enable          and disable
//	POST   /v1/webhook-endpoints/{id}/rotate-secret   the answer holds the new secret, once
//	GET    /v1/webhook-deliveries?status=failed&endpoint_id=ID&since=TIME&after=ID&limit=N
//	POST   /v1/webhook-deliveries/redeliver           all that failed: {endpoint_id, since}
//	GET    /v1/webhook-deliveries/{id}
//	GET    /v1/webhook-deliveries/{id}/attempts       the delivery log
//	POST   /v1/webhook-deliveries/{id}/redeliver
//	GET    /v1/webhook-notifications?endpoint_id=ID   what owners were told
//
// Errors are {"error":{"code":…,"message":…}}: 400 what is no request, 401, 404,
// 409 what the present state does not permit, 413, 422 what can never be taken,
// 503 while the database does not answer.
//
// source: 07 delivery log and manual resend; Patterns, Designing Webhooks.
func (s *Sender) Admin(token string) (http.Handler, error) {
	if len(token) < minToken {
		return nil, fmt.Errorf("serving the admin API: the token has %d bytes, it needs %d at least", len(token), minToken)
	}
	a := admin{s}
	mux := http.NewServeMux()
	for pattern, call := range map[string]adminCall{
		"POST /v1/events":                               a.publish,
		"GET /v1/webhook-event-types":                   a.eventTypes,
		"GET /v1/webhook-endpoints":                     a.endpoints,
		"POST /v1/webhook-endpoints":                    a.createEndpoint,
		"GET /v1/webhook-endpoints/{id}":                a.endpoint,
		"PATCH /v1/webhook-endpoints/{id}":              a.updateEndpoint,
		"DELETE /v1/webhook-endpoints/{id}":             a.deleteEndpoint,
		"POST /v1/webhook-endpoints/{id}/enable":        a.changeEndpoint(s.EnableEndpoint),
		"POST /v1/webhook-endpoints/{id}/disable":       a.changeEndpoint(s.DisableEndpoint),
		"POST /v1/webhook-endpoints/{id}/rotate-secret": a.rotate,
		"GET /v1/webhook-deliveries":                    a.deliveries,
		"POST /v1/webhook-deliveries/redeliver":         a.redeliverFailed,
		"GET /v1/webhook-deliveries/{id}":               a.delivery,
		"GET /v1/webhook-deliveries/{id}/attempts":      a.attempts,
		"POST /v1/webhook-deliveries/{id}/redeliver":    a.redeliver,
		"GET /v1/webhook-notifications":                 a.notifications,
		"/": func(req *http.Request) (any, int, error) {
			return nil, 0, &adminError{http.StatusNotFound, "not_found", fmt.Sprintf("there is no call %s %s", req.Method, shorten(req.URL.Path))}
		},
	} {
		mux.Handle(pattern, answer(s.log, call))
	}
	return guarded(token, mux), nil
}

// guarded lets only those through who know the token, and tells nobody else
// anything: neither what calls there are nor how much of a token was right.
func guarded(token string, next http.Handler) http.Handler {
	// Of hashes the comparison takes one time whatever the lengths.
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		scheme, given, _ := strings.Cut(req.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(given)))
		if right := subtle.ConstantTimeCompare(want[:], got[:]) == 1; !right || !strings.EqualFold(scheme, "Bearer") {
			w.Header().Set("WWW-Authenticate", "Bearer")
			respond(w, http.StatusUnauthorized, failure("unauthorized", "the request needs Authorization: Bearer and the admin token"))
			return
		}
		next.ServeHTTP(w, req)
	})
}

// adminCall answers one call with what is written as JSON and a status, or with
// an error.
type adminCall func(*http.Request) (result any, status int, err error)

// adminError is an error with the status that it is answered by.
type adminError struct {
	status        int
	code, message string
}

func (e *adminError) Error() string { return e.message }

func badRequest(format string, args ...any) error {
	return &adminError{http.StatusBadRequest, "bad_request", fmt.Sprintf(format, args...)}
}

type failed struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func failure(code, message string) (f failed) {
	f.Error.Code, f.Error.Message = code, message
	return f
}

func answer(log *slog.Logger, call adminCall) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		most := int64(maxAdminBody)
		if req.URL.Path == "/v1/events" {
			most += MaxPayload
		}
		req.Body = http.MaxBytesReader(w, req.Body, most)
		result, status, err := call(req)
		if err != nil {
			e := asAdminError(err)
			if e.status >= 500 {
				log.Error("the admin API could not answer", "call", req.Pattern, "because", err)
				w.Header().Set("Retry-After", "1")
			}
			status, result = e.status, failure(e.code, e.message)
		}
		respond(w, status, result)
	})
}

func asAdminError(err error) *adminError {
	var (
		own     *adminError
		refused *RefusedError
		large   *http.MaxBytesError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &large):
		return &adminError{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the request has more than %d bytes", large.Limit)}
	case errors.As(err, &refused):
		return &adminError{http.StatusUnprocessableEntity, "url_refused", refused.Error()}
	case errors.Is(err, ErrNotFound):
		return &adminError{http.StatusNotFound, "not_found", err.Error()}
	case errors.Is(err, ErrConflict):
		return &adminError{http.StatusConflict, "conflict", err.Error()}
	case errors.Is(err, ErrInvalid):
		return &adminError{http.StatusUnprocessableEntity, "invalid", err.Error()}
	}
	return &adminError{http.StatusServiceUnavailable, "unavailable", "the outbox cannot do this now; nothing was changed"}
}

// respond writes an answer, which may hold a secret: no cache keeps it.
func respond(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if v == nil {
		w.WriteHeader(status)
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // the peer has gone; there is nobody to tell
}

// body reads a request's JSON: one object, no members that nobody knows. A name
// that was mistyped would otherwise do something else than was meant, in silence.
func body(req *http.Request, into any) error {
	d := json.NewDecoder(req.Body)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err == nil {
			err = errors.New("there is more behind the object")
		}
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return err
	}
	return badRequest("reading the request's JSON: %v", err)
}

// query reads a request's parameters, of which there may be no others.
func query(req *http.Request, names ...string) (url.Values, error) {
	values, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return nil, badRequest("reading the parameters: %v", err)
	}
	for name, all := range values {
		known := false
		for _, n := range names {
			known = known || n == name
		}
		if !known {
			return nil, badRequest("there is no parameter %q; there are: %s", shorten(name), strings.Join(names, ", "))
		}
		if len(all) > 1 {
			return nil, badRequest("the parameter %q stands there %d times", name, len(all))
		}
	}
	return values, nil
}

func timeParameter(values url.Values, name string) (time.Time, error) {
	text := values.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, badRequest("the parameter %s: %q is no time like 2026-11-14T10:00:00Z", name, shorten(text))
	}
	return at, nil
}

func countParameter(values url.Values, name string) (int, error) {
	text := values.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxPage {
		return 0, badRequest("the parameter %s: %q is no number from 1 to %d", name, shorten(text), MaxPage)
	}
	return n, nil
}

// UpdateEndpoint changes where an endpoint is, what it gets and in which version,
// from now on: messages that wait go to the new URL, with the bytes they have.
// The errors are those of [Sender.CreateEndpoint], [ErrNotFound], and
// [ErrConflict] for an endpoint that was deleted.
func (s *Sender) UpdateEndpoint(ctx context.Context, id string, spec EndpointSpec) error {
	if err := s.checkSpec(&spec); err != nil {
		return fmt.Errorf("changing the endpoint %q: %w", id, err)
	}
	types := spec.EventTypes
	if len(types) == 0 {
		types = []string{everyType}
	}
	return s.changeEndpoint(ctx, id, "changing", func(ctx context.Context, tx Tx, _ standing) error {
		if _, err := tx.ExecContext(ctx, `UPDATE endpoints SET url = $2, api_version = $3 WHERE id = $1`, id, spec.URL, spec.APIVersion); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM subscriptions WHERE endpoint_id = $1`, id); err != nil {
			return err
		}
		for _, name := range types {
			if _, err := tx.ExecContext(ctx, `INSERT INTO subscriptions (type, endpoint_id) VALUES ($1, $2)`, name, id); err != nil {
				return err
			}
		}
		return nil
	})
}
