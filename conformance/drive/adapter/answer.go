package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// call runs the method of a request and encodes its result. It does not panic.
func (m Methods) call(ctx context.Context, r request) (result json.RawMessage, failure *Error) {
	defer func() {
		if caught := recover(); caught != nil {
			result, failure = nil, &Error{Code: InternalError, Message: fmt.Sprintf("the method %s panicked: %v", r.method, caught)}
		}
	}()
	method, ok := m[r.method]
	if !ok && r.method == MethodShutdown {
		return json.RawMessage("null"), nil // there may be nothing to do for it
	}
	if !ok {
		return nil, &Error{Code: MethodNotFound, Message: fmt.Sprintf("there is no method %.80q", r.method)}
	}
	value, err := method(ctx, r.params)
	if err != nil {
		return nil, asError(ctx, err)
	}
	result, err = json.Marshal(value)
	if err != nil {
		return nil, &Error{Code: InternalError, Message: fmt.Sprintf("writing the result of %s: %v", r.method, err)}
	}
	return result, nil
}

// asError is the error that a method's error is answered with.
func asError(ctx context.Context, err error) *Error {
	var chosen *Error
	switch {
	case errors.As(err, &chosen):
		return chosen
	case ctx.Err() != nil:
		return &Error{Code: Cancelled, Message: "the request was taken back"}
	}
	return &Error{Code: InternalError, Message: err.Error()}
}

// encodeAnswer makes a message that fits the bounds. An answer to nobody has the
// id null, as JSON-RPC has it.
func encodeAnswer(id, result json.RawMessage, failure *Error) []byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	line, err := outgoing{ID: id, Result: result, Error: failure}.encode()
	switch {
	case err != nil:
		failure = &Error{Code: InternalError, Message: "the answer could not be written: " + err.Error()}
	case len(line) > MaxAnswer:
		failure = &Error{Code: InternalError, Message: fmt.Sprintf("the answer has %d bytes, more than the %d of the protocol", len(line), MaxAnswer)}
	default:
		return line
	}
	line, _ = outgoing{ID: id, Error: failure}.encode() // text and numbers always encode
	return line
}

// Handler answers the same requests by POST, one message a request, for a
// control URL. It answers 200 with a message, also where that is an error, 405
// to another method than POST, and 204 to a notification. Serve it on loopback,
// and in tests only: it moves clocks and makes processing fail.
func Handler(methods Methods) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "the adapter protocol is spoken by POST", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, MaxRequest))
		var tooLong *http.MaxBytesError
		switch {
		case errors.As(err, &tooLong):
			reply200(w, encodeAnswer(nil, nil, &Error{Code: InvalidRequest, Message: fmt.Sprintf("a request is longer than %d bytes", MaxRequest)}))
			return
		case err != nil: // the peer is gone
			return
		}
		r, bad := parseRequest(body)
		if bad != nil {
			reply200(w, encodeAnswer(r.id, nil, bad))
			return
		}
		if r.method == MethodCancel { // a closed connection says it here
			w.WriteHeader(http.StatusNoContent)
			return
		}
		result, failure := methods.call(req.Context(), r)
		if len(r.id) == 0 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		reply200(w, encodeAnswer(r.id, result, failure))
	})
}

func reply200(w http.ResponseWriter, message []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(message) // a peer that is gone is told nothing
}
