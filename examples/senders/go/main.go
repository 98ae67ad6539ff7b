// A webhook sender in Go, behind the adapter protocol: an outbox in a file, the
// Standard Webhooks scheme, one worker.
//
// It is here to be judged. What it does right and wrong stands in README.md;
// copy reference/sender in its place. The sender is in sender.go and outbox.go;
// this file is its adapter.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

// For the run: the sender's timers cannot be moved, so every delay is waited
// for. The last is longer than an attempt, so that one that hangs can be told
// from the next.
var short = []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 7 * time.Second}

const timeout = 1500 * time.Millisecond

func main() {
	log.SetFlags(0) // to stderr, which is the adapter's log
	if err := adapter.Serve(context.Background(), os.Stdin, os.Stdout, methods()); err != nil {
		log.Fatal(err)
	}
}

func methods() adapter.Methods {
	var s *sender
	m := adapter.Methods{
		adapter.MethodCreateEndpoint: adapter.Func(func(_ context.Context, p adapter.CreateEndpointParams) (adapter.CreatedEndpoint, error) {
			e, err := s.create(p.URL, p.EventTypes)
			if err != nil {
				return adapter.CreatedEndpoint{}, impossible(err)
			}
			return adapter.CreatedEndpoint{EndpointID: e.ID, Secret: e.Secrets[0].Text}, nil
		}),
		adapter.MethodGetEndpoint: adapter.Func(func(_ context.Context, p adapter.EndpointParams) (adapter.EndpointStatus, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			switch e := s.endpoints[p.EndpointID]; {
			case e == nil:
				return adapter.EndpointStatus{}, impossible(errors.New("there is no such endpoint"))
			case e.Gone:
				return adapter.EndpointStatus{Status: adapter.StatusDisabled, Reason: "it answered 410"}, nil
			}
			return adapter.EndpointStatus{Status: adapter.StatusEnabled}, nil
		}),
		adapter.MethodRotateSecret: adapter.Func(func(_ context.Context, p adapter.EndpointParams) (adapter.RotatedSecret, error) {
			text, err := s.rotate(p.EndpointID)
			return adapter.RotatedSecret{Secret: text}, impossible(err)
		}),
		adapter.MethodPublish: adapter.Func(func(_ context.Context, p adapter.PublishParams) (adapter.Published, error) {
			body := p.PayloadBase64
			if p.Payload != nil {
				body = p.Payload
			}
			ids, err := s.publish(p.Type, body)
			return adapter.Published{MessageIDs: ids}, err
		}),
		adapter.MethodAttempts: adapter.Func(func(_ context.Context, p adapter.MessageParams) (adapter.Attempts, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			list := adapter.Attempts{Attempts: []adapter.Attempt{}}
			if m := s.messages[p.MessageID]; m != nil {
				for _, a := range m.Attempts {
					list.Attempts = append(list.Attempts, adapter.Attempt{At: a.At, Status: a.Status, Error: a.Error, Duration: a.Took.Seconds()})
				}
			}
			return list, nil
		}),
		adapter.MethodMessages: adapter.Func(func(_ context.Context, p adapter.MessagesParams) (adapter.Messages, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			list := adapter.Messages{Messages: []adapter.Message{}}
			for _, m := range s.messages {
				if (p.Status == "" || p.Status == m.Status) && (p.EndpointID == "" || p.EndpointID == m.Endpoint) {
					list.Messages = append(list.Messages, adapter.Message{MessageID: m.ID, EndpointID: m.Endpoint, Status: m.Status, Type: m.Type})
				}
			}
			return list, nil
		}),
	}
	about := adapter.Initialized{
		Name: "example-go", Version: "1.0", Capabilities: []string{"managed"},
		RetrySchedule: seconds(short), DefaultSchedule: seconds(shipped), Jitter: &adapter.Jitter{},
		Timeout: new(timeout.Seconds()), RotationOverlap: new(overlap.Seconds()),
	}
	m[adapter.MethodInitialize] = adapter.Initialize(about, m, func(ctx context.Context, p adapter.InitializeParams) (err error) {
		if s, err = open(p.StateDir, short, client(p.CACertificate), p.AllowHosts); err != nil {
			return err
		}
		go func() {
			if err := s.run(context.WithoutCancel(ctx)); err != nil {
				log.Fatal(err) // an outbox that cannot be written is the end
			}
		}()
		return nil
	})
	return m
}

func client(authority string) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if authority != "" {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(authority))
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return &http.Client{Timeout: timeout, Transport: transport}
}

// impossible makes an error the sender's own answer.
func impossible(err error) error {
	if err == nil {
		return nil
	}
	return &adapter.Error{Code: adapter.NotPossible, Message: err.Error()}
}

func seconds(list []time.Duration) []float64 {
	var out []float64
	for _, d := range list {
		out = append(out, d.Seconds())
	}
	return out
}
