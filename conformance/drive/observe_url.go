package drive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// ObserveURLConfig describes an observer that is asked by GET.
type ObserveURLConfig struct {
	ObserveOptions
	// Template is the address, with {id} for the event's id in its path, query
	// or fragment: http://127.0.0.1:8080/_obs/{id}. The fragment is a JSON
	// Pointer (RFC 6901) into the answer: http://…/_obs#/processed/{id}.
	Template string
	// Headers are added to each request, e.g. for a token.
	Headers []wire.Header
	// Transport carries the requests; nil for one that goes straight to the
	// host, without a proxy.
	Transport http.RoundTripper
}

// ObserveURL asks an address. What it answers, or what the fragment points at,
// is a number, {"processed": n, "failed": bool}, or "failed". Status 404 means
// that the event was never seen, as does a pointer whose step with the id leads
// nowhere; both are 0, and Unknown. Redirects are not followed.
func ObserveURL(c ObserveURLConfig) (Observer, error) {
	name := "--observe " + c.clean(withoutUser(c.Template))
	address, fragment, _ := strings.Cut(c.Template, "#")
	if !strings.Contains(address, idSlot) && !strings.Contains(fragment, idSlot) {
		return nil, fmt.Errorf("%s: the address needs %s for the id of the event", name, idSlot)
	}
	o := &urlObserver{config: c, name: name}
	o.path, o.query, o.hasQuery = strings.Cut(address, "?")
	u, err := url.Parse(strings.ReplaceAll(address, idSlot, "id"))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: it is not a URL", name) // the error would quote it whole
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%s: the address is not http://HOST/… or https://HOST/…", name)
	}
	if strings.Contains(authority(address), idSlot) {
		return nil, fmt.Errorf("%s: %s stands in the host", name, idSlot)
	}
	decoded, err := url.PathUnescape(fragment)
	if err == nil {
		o.pointer, err = parsePointer(decoded)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the part behind # is no JSON Pointer: %w", name, err)
	}
	transport := c.Transport
	if transport == nil {
		// No compression: a bound on the answer is to mean the bytes that came.
		transport = &http.Transport{DisableCompression: true, MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: 8, IdleConnTimeout: 10 * time.Second}
	}
	o.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return o, nil
}

type urlObserver struct {
	config      ObserveURLConfig
	name        string
	path, query string
	hasQuery    bool
	pointer     pointer
	client      *http.Client
}

func (o *urlObserver) address(id string) string {
	address := strings.ReplaceAll(o.path, idSlot, url.PathEscape(id))
	if o.hasQuery {
		address += "?" + strings.ReplaceAll(o.query, idSlot, url.QueryEscape(id))
	}
	return address
}

func (o *urlObserver) Processed(ctx context.Context, id string) (Count, error) {
	asking, cancel := context.WithTimeout(ctx, o.config.timeout())
	defer cancel()
	status, body, err := o.get(asking, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return Count{}, fmt.Errorf("asking the observer %s: %w", o.name, context.Cause(ctx))
	case err != nil && asking.Err() != nil:
		return Count{}, o.fault(ObserverHangs, id, fmt.Sprintf("no whole answer within %v", o.config.timeout()), err)
	case err != nil:
		return Count{}, o.fault(ObserverUnreachable, id, "no answer: "+o.config.clean(withoutURL(err).Error()), err)
	}
	answered := fmt.Sprintf("it answered with status %d", status)
	if len(body) > 0 {
		answered += " " + o.config.quote(body)
	}
	switch {
	case status == http.StatusNotFound:
		return Count{Unknown: true}, nil
	case status >= 500 || status == http.StatusTooManyRequests:
		return Count{}, o.fault(ObserverRefuses, id, answered, nil)
	case status != http.StatusOK:
		return Count{}, o.fault(ObserverUnfit, id, answered, nil)
	case len(body) > answerMax:
		return Count{}, o.fault(ObserverNonsense, id, fmt.Sprintf("it answered with more than %d bytes", answerMax), nil)
	}
	count, err := o.count(body, id)
	if err != nil {
		return Count{}, o.fault(ObserverNonsense, id, answered+": "+o.config.clean(err.Error()), err)
	}
	return count, nil
}

// get asks once and reads the answer, a byte more than allowed.
func (o *urlObserver) get(ctx context.Context, id string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.address(id), nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept", "application/json, text/plain")
	for _, h := range o.config.Headers {
		req.Header.Add(h.Name, h.Value)
	}
	answer, err := o.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerMax+1))
	return answer.StatusCode, body, err
}

// count reads the answer, or the part of it that the fragment points at.
func (o *urlObserver) count(body []byte, id string) (Count, error) {
	if len(o.pointer) == 0 {
		return parseCount(body)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var answer any
	if err := d.Decode(&answer); err != nil {
		return Count{}, fmt.Errorf("%w: it is not JSON", errNoCount)
	}
	value, err := o.pointer.in(answer, id)
	if errors.Is(err, errMissing) {
		return Count{Unknown: true}, nil
	}
	if err != nil {
		return Count{}, fmt.Errorf("%w at %w", errNoCount, err)
	}
	return countOf(value)
}

func (o *urlObserver) fault(f ObserverFault, id, got string, err error) error {
	e := &ObserverError{Fault: f, Observer: o.name, ID: id, Got: got, Err: err}
	if f != ObserverUnreachable && f != ObserverHangs {
		e.Expected = "status 200 with " + expectedCount
	}
	return e
}

// authority is the host of an address, with port and credentials.
func authority(address string) string {
	_, rest, ok := strings.Cut(address, "://")
	if !ok {
		return ""
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// withoutUser drops the credentials of an address.
func withoutUser(address string) string {
	whole := authority(address)
	host := whole[strings.LastIndexByte(whole, '@')+1:]
	return strings.Replace(address, whole, host, 1)
}

// withoutURL drops the address that net/http puts into its errors: it may hold
// credentials.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
