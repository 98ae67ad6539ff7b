package drive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestAPersonIsAskedForWhatASenderDoes(t *testing.T) {
	var asked bytes.Buffer
	var learned string
	s, err := SenderManual(ManualConfig{In: strings.NewReader("whsec_abc \n\nthe page is down\n"), Out: &asked, Secret: func(secret string) { learned = secret }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	e, err := s.CreateEndpoint(t.Context(), EndpointSpec{URL: "http://127.0.0.1:1/a", EventTypes: []string{"order.shipped"}})
	if err != nil || e.Secret != "whsec_abc" || learned != "whsec_abc" {
		t.Errorf("endpoint %+v, %v, learned %q", e, err, learned)
	}
	event := Event{Type: "order.shipped", At: epoch, Raw: []byte("{\x1b[2J" + strings.Repeat("x", 500))}
	if ids, err := s.Publish(t.Context(), event); err != nil || len(ids) != 0 {
		t.Errorf("published %q, %v", ids, err)
	}
	if _, err := s.Publish(t.Context(), event); err == nil || !strings.Contains(err.Error(), `it was not sent: "the page is down"`) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Publish(t.Context(), event); err == nil || !strings.Contains(err.Error(), "the input has ended") {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{"http://127.0.0.1:1/a", "for events of the type order.shipped", "Press Enter when it is on its way", "(505 bytes)", "{␦[2J"} {
		if !strings.Contains(asked.String(), want) {
			t.Errorf("it did not say %q:\n%s", want, asked.String())
		}
	}
	if s.Has(Clock) || s.About().Name != "manual" {
		t.Errorf("it is %+v", s.About())
	}
}

func TestNobodyIsWaitedForForEver(t *testing.T) {
	in, never := io.Pipe()
	defer never.Close()
	s, err := SenderManual(ManualConfig{In: in, Out: io.Discard, Time: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateEndpoint(t.Context(), EndpointSpec{URL: "http://127.0.0.1:1/a"}); err == nil || !strings.Contains(err.Error(), "no answer within 20ms") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.CreateEndpoint(ctx, EndpointSpec{URL: "http://127.0.0.1:1/a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := errors.Join(s.Close(t.Context()), s.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if _, err := s.CreateEndpoint(t.Context(), EndpointSpec{URL: "http://127.0.0.1:1/a"}); !errors.Is(err, errManualClosed) {
		t.Errorf("got %v", err)
	}
}

func TestAnEmptySecretIsNone(t *testing.T) {
	s, err := SenderManual(ManualConfig{In: strings.NewReader("  \n"), Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateEndpoint(t.Context(), EndpointSpec{URL: "http://127.0.0.1:1/a"}); err == nil || !strings.Contains(err.Error(), "none was given") {
		t.Errorf("got %v", err)
	}
	if _, err := SenderManual(ManualConfig{}); err == nil {
		t.Error("a sender with nobody to ask")
	}
}
