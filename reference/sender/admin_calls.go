package sender

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
	"unicode/utf8"
)

// admin is the calls of the admin API.
type admin struct{ *Sender }

type endpointJSON struct {
	ID           string     `json:"id"`
	URL          string     `json:"url"`
	EventTypes   []string   `json:"event_types"` // empty: every type
	APIVersion   string     `json:"api_version,omitempty"`
	Status       string     `json:"status"`
	Reason       string     `json:"reason,omitempty"`
	CreatedAt    time.Time  `json:"created_at"`
	FailingSince *time.Time `json:"failing_since,omitempty"`
	LastSuccess  *time.Time `json:"last_success,omitempty"`
	Secret       string     `json:"secret,omitempty"` // after it was made, and never again
}

func endpointOf(e Endpoint) endpointJSON {
	types := e.EventTypes
	if types == nil {
		types = []string{}
	}
	return endpointJSON{ID: e.ID, URL: e.URL, EventTypes: types, APIVersion: e.APIVersion, Status: e.Status, Reason: e.Reason,
		CreatedAt: e.CreatedAt, FailingSince: optional(e.FailingSince), LastSuccess: optional(e.LastSuccess)}
}

// optional is a time that is left out where there is none.
func optional(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// each makes a list of what f makes of each element; never null.
func each[T, R any](all []T, f func(T) R) []R {
	out := make([]R, 0, len(all))
	for _, v := range all {
		out = append(out, f(v))
	}
	return out
}

type endpointSpecJSON struct {
	URL        string   `json:"url"`
	EventTypes []string `json:"event_types"`
	APIVersion string   `json:"api_version"`
}

func (a admin) publish(req *http.Request) (any, int, error) {
	var p struct {
		Type      string          `json:"type"`
		Timestamp time.Time       `json:"timestamp"`
		Data      json.RawMessage `json:"data"`
	}
	if err := body(req, &p); err != nil {
		return nil, 0, err
	}
	ids, err := a.Publish(req.Context(), Event{Type: p.Type, Time: p.Timestamp, Data: p.Data})
	if err != nil {
		return nil, 0, err
	}
	return struct {
		IDs []string `json:"delivery_ids"`
	}{each(ids, func(id string) string { return id })}, http.StatusAccepted, nil
}

func (a admin) eventTypes(*http.Request) (any, int, error) {
	return struct {
		Types []EventType `json:"event_types"`
	}{each(a.catalogue.Types(), func(t EventType) EventType { return t })}, http.StatusOK, nil
}

func (a admin) endpoints(req *http.Request) (any, int, error) {
	values, err := query(req, "after")
	if err != nil {
		return nil, 0, err
	}
	all, err := a.Endpoints(req.Context(), values.Get("after"))
	if err != nil {
		return nil, 0, err
	}
	return struct {
		Endpoints []endpointJSON `json:"endpoints"`
	}{each(all, endpointOf)}, http.StatusOK, nil
}

func (a admin) createEndpoint(req *http.Request) (any, int, error) {
	var p endpointSpecJSON
	if err := body(req, &p); err != nil {
		return nil, 0, err
	}
	e, secret, err := a.CreateEndpoint(req.Context(), EndpointSpec(p))
	if err != nil {
		return nil, 0, err
	}
	out := endpointOf(e)
	out.Secret = secret
	return out, http.StatusCreated, nil
}

func (a admin) endpoint(req *http.Request) (any, int, error) {
	e, err := a.Endpoint(req.Context(), req.PathValue("id"))
	return endpointOf(e), http.StatusOK, err
}

// updateEndpoint changes the members that the request has.
func (a admin) updateEndpoint(req *http.Request) (any, int, error) {
	var p struct {
		URL        *string   `json:"url"`
		EventTypes *[]string `json:"event_types"`
		APIVersion *string   `json:"api_version"`
	}
	if err := body(req, &p); err != nil {
		return nil, 0, err
	}
	id := req.PathValue("id")
	e, err := a.Endpoint(req.Context(), id)
	if err != nil {
		return nil, 0, err
	}
	spec := EndpointSpec{URL: e.URL, EventTypes: e.EventTypes, APIVersion: e.APIVersion}
	if p.URL != nil {
		spec.URL = *p.URL
	}
	if p.EventTypes != nil {
		spec.EventTypes = *p.EventTypes
	}
	if p.APIVersion != nil {
		spec.APIVersion = *p.APIVersion
	}
	if err := a.UpdateEndpoint(req.Context(), id, spec); err != nil {
		return nil, 0, err
	}
	return a.endpoint(req)
}

func (a admin) deleteEndpoint(req *http.Request) (any, int, error) {
	return nil, http.StatusNoContent, a.DeleteEndpoint(req.Context(), req.PathValue("id"))
}

// changeEndpoint is a call that changes an endpoint's status and answers with it.
func (a admin) changeEndpoint(change func(context.Context, string) error) adminCall {
	return func(req *http.Request) (any, int, error) {
		if err := change(req.Context(), req.PathValue("id")); err != nil {
			return nil, 0, err
		}
		return a.endpoint(req)
	}
}

func (a admin) rotate(req *http.Request) (any, int, error) {
	secret, err := a.RotateSecret(req.Context(), req.PathValue("id"))
	return struct {
		Secret         string  `json:"secret"`
		OverlapSeconds float64 `json:"previous_signs_for_seconds"`
	}{secret, a.policy.RotationOverlap.Seconds()}, http.StatusOK, err
}

type deliveryJSON struct {
	ID         string     `json:"id"`
	EndpointID string     `json:"endpoint_id"`
	Type       string     `json:"type"`
	Status     string     `json:"status"`
	Attempts   int        `json:"attempts"`
	CreatedAt  time.Time  `json:"created_at"`
	Next       *time.Time `json:"next_attempt_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

func deliveryOf(m Message) deliveryJSON {
	return deliveryJSON{m.ID, m.EndpointID, m.Type, m.Status, m.Attempts, m.CreatedAt, optional(m.Next), optional(m.FinishedAt)}
}

func (a admin) deliveries(req *http.Request) (any, int, error) {
	values, err := query(req, "status", "endpoint_id", "since", "after", "limit")
	if err != nil {
		return nil, 0, err
	}
	f := MessageFilter{Status: values.Get("status"), EndpointID: values.Get("endpoint_id"), After: values.Get("after")}
	if f.Since, err = timeParameter(values, "since"); err != nil {
		return nil, 0, err
	}
	if f.Limit, err = countParameter(values, "limit"); err != nil {
		return nil, 0, err
	}
	all, err := a.Messages(req.Context(), f)
	if err != nil {
		return nil, 0, err
	}
	return struct {
		Deliveries []deliveryJSON `json:"deliveries"`
	}{each(all, deliveryOf)}, http.StatusOK, nil
}

func (a admin) delivery(req *http.Request) (any, int, error) {
	m, err := a.Message(req.Context(), req.PathValue("id"))
	return deliveryOf(m), http.StatusOK, err
}

type attemptJSON struct {
	Number   int       `json:"number,omitempty"` // none: by hand
	Manual   bool      `json:"manual,omitempty"`
	At       time.Time `json:"at"`
	Duration float64   `json:"duration_seconds"`
	Status   int       `json:"status,omitempty"`
	Fault    string    `json:"fault,omitempty"`
	Error    string    `json:"error,omitempty"`
	Body     string    `json:"body,omitempty"`
	Base64   []byte    `json:"body_base64,omitempty"` // of a body that is no UTF-8
}

func attemptOf(a Attempt) attemptJSON {
	out := attemptJSON{Number: a.Number, Manual: a.Manual, At: a.At, Duration: a.Duration.Seconds(), Status: a.Status, Fault: a.Fault, Error: a.Error}
	if utf8.Valid(a.Body) {
		out.Body = string(a.Body)
	} else {
		out.Base64 = a.Body
	}
	return out
}

func (a admin) attempts(req *http.Request) (any, int, error) {
	all, err := a.Attempts(req.Context(), req.PathValue("id"))
	return struct {
		Attempts []attemptJSON `json:"attempts"`
	}{each(all, attemptOf)}, http.StatusOK, err
}

func (a admin) redeliver(req *http.Request) (any, int, error) {
	if err := a.Resend(req.Context(), req.PathValue("id")); err != nil {
		return nil, 0, err
	}
	return struct {
		Queued int `json:"queued"`
	}{1}, http.StatusAccepted, nil
}

func (a admin) redeliverFailed(req *http.Request) (any, int, error) {
	var p struct {
		EndpointID string    `json:"endpoint_id"`
		Since      time.Time `json:"since"`
	}
	if err := body(req, &p); err != nil {
		return nil, 0, err
	}
	if p.Since.IsZero() {
		return nil, 0, badRequest("since is missing: from when on failed deliveries are sent again")
	}
	n, err := a.ResendFailed(req.Context(), p.EndpointID, p.Since)
	return struct {
		Queued int `json:"queued"`
	}{n}, http.StatusAccepted, err
}

type notificationJSON struct {
	At         time.Time `json:"at"`
	EndpointID string    `json:"endpoint_id"`
	Kind       string    `json:"kind"`
	Text       string    `json:"text"`
}

func (a admin) notifications(req *http.Request) (any, int, error) {
	values, err := query(req, "endpoint_id")
	if err != nil {
		return nil, 0, err
	}
	all, err := a.Notifications(req.Context(), values.Get("endpoint_id"))
	return struct {
		Notifications []notificationJSON `json:"notifications"`
	}{each(all, func(n Notification) notificationJSON { return notificationJSON(n) })}, http.StatusOK, err
}
