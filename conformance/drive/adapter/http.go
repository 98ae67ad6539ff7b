package adapter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// maxHeader bounds the header of an HTTP answer, in bytes.
const maxHeader = 64 << 10

// HTTP is the suite's side of the protocol over a control URL: each message is
// the body of a POST, its answer the body of a 200. Make one with [NewHTTP].
type HTTP struct {
	url     string
	options Options
	redact  *redactor
	client  *http.Client
	slots   chan struct{}
	asked   atomic.Int64
}

// NewHTTP speaks the protocol by POST to a control URL. Transport carries the
// requests; nil for one that goes straight to the host, without a proxy.
func NewHTTP(controlURL string, transport http.RoundTripper, o Options) (*HTTP, error) {
	u, err := url.Parse(controlURL)
	if err != nil {
		return nil, fmt.Errorf("reading the control URL: %w", withoutURL(err))
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("reading the control URL: it is not http://HOST/… or https://HOST/…")
	}
	if transport == nil {
		// No compression: a bound on the answer is to mean the bytes that came.
		transport = &http.Transport{DisableCompression: true, MaxResponseHeaderBytes: maxHeader, MaxIdleConnsPerHost: maxCalls}
	}
	return &HTTP{
		url: controlURL, options: o.withDefaults(), redact: newRedactor(o.Redact), slots: make(chan struct{}, maxCalls),
		client: &http.Client{
			Transport: transport,
			// A redirect is shown, not followed: the messages are for this host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Call implements [Peer].
func (h *HTTP) Call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, h.options.CallTimeout, errOverdue)
	defer cancel()
	began := time.Now()
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return giveUp(ctx, h.options, method, began, Silent)
	}
	id := rawID(h.asked.Add(1))
	message, err := outgoing{ID: id, Method: method, Params: params}.encode()
	if err = h.options.writable(method, message, err); err != nil {
		return err
	}
	status, body, err := h.post(ctx, message)
	switch {
	case ctx.Err() != nil && err != nil:
		return giveUp(ctx, h.options, method, began, Silent)
	case err != nil:
		return &Fault{Kind: NoContact, Peer: h.options.Name, Method: method, Err: err,
			Detail: h.redact.clean(withoutURL(err).Error()), Advice: "is it the right URL, and is the subject running?"}
	}
	r, f := h.answer(status, body, string(id))
	if f != nil {
		f.Peer, f.Method = h.options.Name, method
		return f
	}
	return takeReply(h.options.Name, h.redact, method, r, result)
}

// post sends a message and reads the answer, a byte more than allowed.
func (h *HTTP) post(ctx context.Context, message []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(message))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	answer, err := h.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(h.options.MaxAnswer)+1))
	return answer.StatusCode, body, err
}

// answer reads the body of an answer to the request id.
func (h *HTTP) answer(status int, body []byte, id string) (reply, *Fault) {
	quoted := ""
	if len(body) > 0 {
		quoted = h.redact.quote(body)
	}
	if status != http.StatusOK {
		return reply{}, &Fault{Kind: BadStatus, Quote: quoted, Detail: "it answered with status " + strconv.Itoa(status),
			Advice: "answer 200 with a JSON-RPC message, also where that is an error"}
	}
	if len(body) > h.options.MaxAnswer {
		return reply{}, &Fault{Kind: LongLine, Quote: quoted, Detail: fmt.Sprintf("the answer is longer than %d bytes, or has no end", h.options.MaxAnswer), Advice: "answer with less"}
	}
	r, err := parseReply(body)
	if err != nil {
		return reply{}, &Fault{Kind: Garbage, Quote: quoted, Detail: err.Error(), Err: err, Advice: "answer each POST with one JSON-RPC message; is it the right URL?"}
	}
	if string(r.id) != id {
		f := wrongID(r, 0, h.redact)
		f.Quote = quoted
		return reply{}, f
	}
	return r, nil
}

// Close implements [Peer].
func (h *HTTP) Close(context.Context) error {
	h.client.CloseIdleConnections()
	return nil
}

// withoutURL drops the address that net/http and net/url put into their errors:
// it may hold credentials.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
