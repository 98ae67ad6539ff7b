package drive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	// manualTimeout is how long an answer is waited for: somebody has to click
	// through the sender's own pages.
	manualTimeout = 10 * time.Minute
	// manualLine bounds a line of input, in bytes.
	manualLine = 16 << 10
	// manualPayload is how much of a payload is shown, in bytes.
	manualPayload = 400
)

// ManualConfig describes a sender that a person works.
type ManualConfig struct {
	In    io.Reader // answers, a line each
	Out   io.Writer // questions
	About About     // what is known of the sender; the name is "manual" if empty
	// Secret is told each secret that is typed; may be nil.
	Secret func(string)
	Time   time.Duration // for each answer; 0: ten minutes
}

// SenderManual prints the URL of each endpoint, asks for the secret that the
// sender made for it, and for each event asks that it be sent. It has no clock
// and no capability. Questions are asked one at a time, whoever waits.
//
// A read of In that does not return keeps one goroutine after Close, as a
// terminal's does until the program ends.
func SenderManual(c ManualConfig) (Sender, error) {
	if c.In == nil || c.Out == nil {
		return nil, errors.New("--manual: nobody to ask")
	}
	if c.About.Name == "" {
		c.About.Name = "manual"
	}
	if c.Time <= 0 {
		c.Time = manualTimeout
	}
	return &manual{bareSender: bareSender{about: c.About}, config: c, closed: make(chan struct{})}, nil
}

var errManualClosed = errors.New("the sender was closed")

type manual struct {
	bareSender
	config ManualConfig
	asking sync.Mutex // one question at a time

	reading sync.Once
	lines   chan string
	ended   error // why no more lines come, once lines is closed
	closing sync.Once
	closed  chan struct{}
}

// CreateEndpoint implements [Sender].
func (m *manual) CreateEndpoint(ctx context.Context, spec EndpointSpec) (Endpoint, error) {
	types := "any type"
	if len(spec.EventTypes) > 0 {
		types = "the type " + strings.Join(spec.EventTypes, ", ")
	}
	secret, err := m.ask(ctx, fmt.Sprintf("\nMake an endpoint in your sender with this URL, for events of %s:\n\n  %s\n\nIts secret, as your sender shows it: ", types, spec.URL))
	switch {
	case err != nil:
		return Endpoint{}, fmt.Errorf("asking for the secret of %s: %w", spec.URL, err)
	case secret == "":
		return Endpoint{}, fmt.Errorf("asking for the secret of %s: none was given", spec.URL)
	}
	if m.config.Secret != nil {
		m.config.Secret(secret)
	}
	return m.add(spec, secret), nil
}

// Publish implements [Sender].
func (m *manual) Publish(ctx context.Context, e Event) ([]string, error) {
	if e.Transaction != "" {
		return nil, ErrNotOffered
	}
	payload := string(e.Raw)
	if e.Raw == nil {
		payload = string(e.Payload)
	}
	if len(payload) > manualPayload {
		payload = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(payload[:manualPayload], ""), len(payload))
	}
	for _, to := range m.targets(e) {
		said, err := m.ask(ctx, fmt.Sprintf("\nLet your sender send an event of the type %s to\n\n  %s\n\nIts payload, if you can choose it: %s\n\nPress Enter when it is on its way, or type why it is not: ", e.Type, to.spec.URL, visible(payload)))
		switch {
		case err != nil:
			return nil, fmt.Errorf("asking for an event of the type %s: %w", e.Type, err)
		case said != "":
			return nil, fmt.Errorf("asking for an event of the type %s: it was not sent: %.200q", e.Type, said)
		}
	}
	return nil, nil
}

// Close implements [Subject].
func (m *manual) Close(context.Context) error {
	m.closing.Do(func() { close(m.closed) })
	return nil
}

// ask puts a question and returns the line that answers it.
func (m *manual) ask(ctx context.Context, question string) (string, error) {
	m.asking.Lock()
	defer m.asking.Unlock()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	m.reading.Do(func() {
		m.lines = make(chan string)
		go m.read()
	})
	if _, err := io.WriteString(m.config.Out, question); err != nil {
		return "", err
	}
	bound := time.NewTimer(m.config.Time)
	defer bound.Stop()
	select {
	case line, more := <-m.lines:
		if !more {
			return "", m.ended
		}
		return strings.TrimSpace(line), nil
	case <-bound.C:
		return "", fmt.Errorf("no answer within %v", m.config.Time)
	case <-m.closed:
		return "", errManualClosed
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// read hands on the lines of the input. One that came without a question waits
// for the next one, as at any prompt.
func (m *manual) read() {
	defer close(m.lines)
	in := bufio.NewScanner(m.config.In)
	in.Buffer(make([]byte, 0, 1024), manualLine)
	for in.Scan() {
		select {
		case m.lines <- in.Text():
		case <-m.closed:
			m.ended = errManualClosed
			return
		}
	}
	if m.ended = in.Err(); m.ended == nil {
		m.ended = errors.New("the input has ended")
	}
}

// visible shows a payload's control characters as a terminal should not act on
// them.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '␦'
		}
		return r
	}, text)
}
