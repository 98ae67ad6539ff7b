package sender

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"
)

// everyType stands in the place of a type for an endpoint that gets all. No type
// can be called so.
const everyType = "*"

// CreateEndpoint creates an endpoint with a secret of its own, which is returned
// here and never again. It gets what is published from now on.
//
// The error is a *[RefusedError] for a URL that leads where nothing may be sent,
// [ErrInvalid] for types or a version that do not exist, or [ErrUnavailable].
func (s *Sender) CreateEndpoint(ctx context.Context, spec EndpointSpec) (e Endpoint, secret string, err error) {
	if err := s.checkSpec(&spec); err != nil {
		return Endpoint{}, "", fmt.Errorf("creating an endpoint: %w", err)
	}
	now := s.clock.Now()
	e = Endpoint{URL: spec.URL, EventTypes: spec.EventTypes, APIVersion: spec.APIVersion, Status: EndpointEnabled, CreatedAt: fromNano(now.UnixNano())}
	if e.ID, err = s.newID("ep_", now); err != nil {
		return Endpoint{}, "", fmt.Errorf("creating an endpoint: %w", err)
	}
	if secret, err = s.profile.Signature.NewSecret(s.random); err != nil {
		return Endpoint{}, "", fmt.Errorf("creating an endpoint: drawing its secret: %w", err)
	}
	if s.faults.Secret != nil {
		secret = s.faults.Secret(e.ID, secret)
	}
	err = s.store.update(ctx, func(ctx context.Context, tx Tx) error { return s.insertEndpoint(ctx, tx, e, secret) })
	if err != nil {
		return Endpoint{}, "", fmt.Errorf("creating an endpoint: %w", err)
	}
	return e, secret, nil
}

// checkSpec checks a spec and pins it to the newest version if it names none.
func (s *Sender) checkSpec(spec *EndpointSpec) error {
	refusal := s.guard.CheckURL(spec.URL)
	if s.faults.URL != nil {
		refusal = s.faults.URL(spec.URL, refusal)
	}
	if refusal != nil {
		return refusal
	}
	if err := errors.Join(s.catalogue.CheckFilter(spec.EventTypes), s.catalogue.CheckVersion(spec.APIVersion)); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	spec.APIVersion = firstOf(spec.APIVersion, s.catalogue.Latest())
	return nil
}

func (s *Sender) insertEndpoint(ctx context.Context, tx Tx, e Endpoint, secret string) error {
	if _, err := tx.ExecContext(ctx, `INSERT INTO endpoints (id, url, api_version, status, created_at) VALUES ($1, $2, $3, $4, $5)`,
		e.ID, e.URL, e.APIVersion, e.Status, e.CreatedAt.UnixNano()); err != nil {
		return err
	}
	types := e.EventTypes
	if len(types) == 0 {
		types = []string{everyType}
	}
	for _, name := range types {
		if _, err := tx.ExecContext(ctx, `INSERT INTO subscriptions (type, endpoint_id) VALUES ($1, $2)`, name, e.ID); err != nil {
			return err
		}
	}
	return insertSecret(ctx, tx, e.ID, secret, e.CreatedAt)
}

func insertSecret(ctx context.Context, tx Tx, endpoint, secret string, now time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO secrets (endpoint_id, text, created_at) VALUES ($1, $2, $3)`, endpoint, secret, now.UnixNano())
	return err
}

const selectEndpoints = `SELECT id, url, api_version, status, reason, created_at, failing_since, last_success FROM endpoints`

// Endpoint reads an endpoint, also one that was deleted. The error is
// [ErrNotFound].
func (s *Sender) Endpoint(ctx context.Context, id string) (Endpoint, error) {
	all, err := s.endpoints(ctx, selectEndpoints+` WHERE id = $1`, id)
	if err != nil {
		return Endpoint{}, fmt.Errorf("reading the endpoint %q: %w", id, err)
	}
	if len(all) == 0 {
		return Endpoint{}, fmt.Errorf("reading the endpoint %q: %w", id, ErrNotFound)
	}
	return all[0], nil
}

// Endpoints lists the endpoints that were not deleted, the oldest first, from
// the one behind after on, which is an id or "": at most [MaxPage].
func (s *Sender) Endpoints(ctx context.Context, after string) ([]Endpoint, error) {
	all, err := s.endpoints(ctx, selectEndpoints+` WHERE id > $1 AND status <> 'deleted' ORDER BY id LIMIT $2`, after, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("listing endpoints: %w", err)
	}
	return all, nil
}

func (s *Sender) endpoints(ctx context.Context, query string, args ...any) ([]Endpoint, error) {
	all, err := scanEndpoints(s.store.query(ctx, query, args...))
	if err != nil {
		return nil, err
	}
	for i := range all {
		types, err := column[string](s.store.query(ctx, `SELECT type FROM subscriptions WHERE endpoint_id = $1 ORDER BY type`, all[i].ID))
		if err != nil {
			return nil, err
		}
		if len(types) != 1 || types[0] != everyType {
			all[i].EventTypes = types
		}
	}
	return all, nil
}

func scanEndpoints(rows *sql.Rows, err error) (all []Endpoint, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var e Endpoint
		var created int64
		var failing, success sql.NullInt64
		if err := rows.Scan(&e.ID, &e.URL, &e.APIVersion, &e.Status, &e.Reason, &created, &failing, &success); err != nil {
			return nil, err
		}
		e.CreatedAt, e.FailingSince, e.LastSuccess = fromNano(created), timeOf(failing), timeOf(success)
		all = append(all, e)
	}
	return all, rows.Err()
}

// changeEndpoint changes an endpoint that was not deleted and gives it its place
// in the queue.
func (s *Sender) changeEndpoint(ctx context.Context, id, doing string, change func(context.Context, Tx, standing) error) error {
	err := s.store.update(ctx, func(ctx context.Context, tx Tx) error {
		e, err := readStanding(ctx, tx, id)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return ErrNotFound
		case err != nil:
			return err
		case e.status == EndpointDeleted:
			return fmt.Errorf("%w: it was deleted", ErrConflict)
		}
		if err := change(ctx, tx, e); err != nil {
			return err
		}
		return s.requeue(ctx, tx, id)
	})
	if err != nil {
		return fmt.Errorf("%s the endpoint %q: %w", doing, id, err)
	}
	s.rouse()
	return nil
}

// newID draws an id: the prefix and a UUIDv7, which begins with the time, so that
// new rows come to stand side by side in the index.
//
// source: RFC 9562 §5.7.
func (s *Sender) newID(prefix string, now time.Time) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(s.random, b[6:]); err != nil {
		return "", fmt.Errorf("drawing an id: %w", err)
	}
	ms := now.UnixMilli()
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%s%x-%x-%x-%x-%x", prefix, b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}
