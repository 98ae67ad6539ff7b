package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// shipped is the schedule: the delay before each attempt, the first included.
var shipped = []time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}

// overlap is how long an old secret signs beside the new one.
const overlap = 24 * time.Hour

// sender is a webhook sender with an outbox in a file and one worker.
type sender struct {
	schedule []time.Duration
	allowed  []string // hosts that may be called although they are internal, and by http
	client   *http.Client
	outbox   *outbox
	wake     chan struct{} // something is due earlier

	mu        sync.Mutex // of the outbox too
	endpoints map[string]*endpoint
	messages  map[string]*message
}

func open(dir string, schedule []time.Duration, client *http.Client, allowed []string) (*sender, error) {
	s := &sender{
		schedule: schedule, allowed: allowed, client: client, wake: make(chan struct{}, 1),
		endpoints: map[string]*endpoint{}, messages: map[string]*message{},
	}
	var err error
	s.outbox, err = openOutbox(dir, func(l line) {
		if l.Endpoint != nil {
			s.endpoints[l.Endpoint.ID] = l.Endpoint
		}
		if l.Message != nil {
			s.messages[l.Message.ID] = l.Message
		}
	})
	return s, err
}

// create makes an endpoint.
func (s *sender) create(address string, types []string) (*endpoint, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(s.allowed, u.Hostname()) {
		ip := net.ParseIP(u.Hostname())
		if u.Scheme != "https" || ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()) {
			return nil, fmt.Errorf("events are sent by https to public addresses, not to %s", address)
		}
	}
	e := &endpoint{ID: "ep_" + rand.Text(), URL: address, Types: types, Secrets: []secret{newSecret()}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints[e.ID] = e
	return e, s.outbox.keep(line{Endpoint: e})
}

func newSecret() secret {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return secret{Text: "whsec_" + base64.StdEncoding.EncodeToString(key)}
}

// rotate gives an endpoint a new secret. The older ones sign on for the overlap.
func (s *sender) rotate(id string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.endpoints[id]
	if e == nil {
		return "", errors.New("there is no such endpoint")
	}
	e.Secrets[len(e.Secrets)-1].Ends = time.Now().Add(overlap)
	e.Secrets = append(e.Secrets, newSecret())
	return e.Secrets[len(e.Secrets)-1].Text, s.outbox.keep(line{Endpoint: e})
}

// publish returns once the messages are on the disk.
func (s *sender) publish(eventType string, body []byte) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids, lines := []string{}, []line{}
	for _, e := range s.endpoints {
		if e.Gone || len(e.Types) > 0 && !slices.Contains(e.Types, eventType) {
			continue
		}
		m := &message{ID: "msg_" + rand.Text(), Endpoint: e.ID, Type: eventType, Body: body, Status: "pending", Next: time.Now().Add(s.schedule[0])}
		ids, lines = append(ids, m.ID), append(lines, line{Message: m})
	}
	if err := s.outbox.keep(lines...); err != nil {
		return nil, err
	}
	for _, l := range lines {
		s.messages[l.Message.ID] = l.Message
	}
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
	return ids, nil
}

// run is the worker: it sends what is due, the oldest first.
func (s *sender) run(ctx context.Context) error {
	for ctx.Err() == nil {
		m, e, wait := s.due()
		if m == nil {
			select {
			case <-s.wake:
			case <-time.After(wait):
			case <-ctx.Done():
			}
			continue
		}
		if err := s.attempt(ctx, m, e); err != nil {
			return err
		}
	}
	return nil
}

// due is the message to send now with a copy of its endpoint, or how long to
// wait for one.
func (s *sender) due() (*message, endpoint, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first *message
	for _, m := range s.messages {
		if m.Status == "pending" && (first == nil || m.Next.Before(first.Next)) {
			first = m
		}
	}
	if first == nil {
		return nil, endpoint{}, time.Hour
	}
	if wait := time.Until(first.Next); wait > 0 {
		return nil, endpoint{}, wait
	}
	e := *s.endpoints[first.Endpoint]
	e.Secrets = slices.Clone(e.Secrets)
	return first, e, 0
}

// attempt sends a message once and notes what came of it.
func (s *sender) attempt(ctx context.Context, m *message, e endpoint) error {
	a, retryAfter := attempt{At: time.Now()}, ""
	answer, err := s.post(ctx, m, e)
	if err != nil {
		a.Error = err.Error()
	} else {
		a.Status, retryAfter = answer.StatusCode, answer.Header.Get("Retry-After")
		_, _ = io.Copy(io.Discard, answer.Body) // so that the connection can be used again
		_ = answer.Body.Close()
	}
	a.Took = time.Since(a.At)

	s.mu.Lock()
	defer s.mu.Unlock()
	m.Attempts = append(m.Attempts, a)
	lines := []line{{Message: m}}
	switch {
	case a.Status >= 200 && a.Status < 300:
		m.Status = "delivered"
	case a.Status == http.StatusGone:
		m.Status = "failed"
		s.endpoints[e.ID].Gone = true
		lines = append(lines, line{Endpoint: s.endpoints[e.ID]})
	case len(m.Attempts) == len(s.schedule):
		m.Status = "failed"
	default:
		delay := s.schedule[len(m.Attempts)]
		if seconds, err := strconv.Atoi(retryAfter); err == nil && seconds > 0 {
			delay = time.Duration(seconds) * time.Second
		}
		m.Next = time.Now().Add(delay)
	}
	return s.outbox.keep(lines...)
}

func (s *sender) post(ctx context.Context, m *message, e endpoint) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(m.Body))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	timestamp := strconv.FormatInt(now.Unix(), 10)
	var tokens []string
	for _, secret := range slices.Backward(e.Secrets) {
		if secret.Ends.IsZero() || now.Before(secret.Ends) {
			tokens = append(tokens, sign(secret.Text, m.ID+"."+timestamp+".", m.Body))
		}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "example-go/1.0")
	r.Header.Set("webhook-id", m.ID)
	r.Header.Set("webhook-timestamp", timestamp)
	r.Header.Set("webhook-signature", strings.Join(tokens, " "))
	return s.client.Do(r)
}

func sign(secret, head string, body []byte) string {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_")) // it is newSecret's
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(head))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
