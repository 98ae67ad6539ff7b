package receiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	// lookupTimeout is how long the provider's API may take to answer, 30 s:
	// twice the 15 s for which payment providers are known to think. Nobody but
	// one worker waits for it.
	lookupTimeout = 30 * time.Second

	// maxLookup is how much of an answer is read, 64 KiB: a payment has some
	// hundred bytes.
	maxLookup = 64 << 10
)

// provider asks the provider's API.
type provider struct {
	base   *url.URL
	client *http.Client
}

func newProvider(base string, client *http.Client) (*provider, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// Not shown: it may hold a user's name and password.
		return nil, errors.New("the address of the provider's API is no http or https URL")
	}
	if client == nil {
		client = &http.Client{}
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // an API that moved is a fault to look at, not to follow with credentials
	}
	return &provider{u, &own}, nil
}

// payment asks for the current state of a payment. That there is none, or that
// the answer makes no sense, is permanent; that there is no answer is not.
func (p *provider) payment(ctx context.Context, id string) (payment, error) {
	if id == "." || id == ".." {
		return payment{}, Permanent(fmt.Errorf("asking the provider about payment %q: that is no id but a step to another address", id))
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout) // of the network, and so in real time
	defer cancel()
	body, err := p.get(ctx, p.base.JoinPath("payments", url.PathEscape(id)))
	if err != nil {
		return payment{}, fmt.Errorf("asking the provider about payment %q: %w", id, err)
	}
	is, err := readAnswer(body, id)
	if err != nil {
		return payment{}, Permanent(fmt.Errorf("reading the provider's answer about payment %q: %w", id, err))
	}
	return is, nil
}

func (p *provider) get(ctx context.Context, u *url.URL) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, Permanent(err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		// Without the URL that the client's error begins with.
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxLookup+1))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone:
		return nil, Permanent(errors.New("the provider knows no such payment"))
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the provider answered %s", resp.Status)
	case len(body) > maxLookup:
		return nil, Permanent(fmt.Errorf("the provider's answer is longer than %d bytes", maxLookup))
	}
	return body, nil
}

func readAnswer(body []byte, id string) (payment, error) {
	var data paymentData
	if err := json.Unmarshal(body, &data); err != nil {
		return payment{}, err
	}
	is, err := data.payment()
	switch {
	case err != nil:
		return payment{}, err
	case is.ID != id:
		return payment{}, fmt.Errorf("it is about payment %q", is.ID)
	case rank(is.State) == 0:
		return payment{}, fmt.Errorf("it has the status %q, which no payment to be recorded has", is.State)
	}
	return *is, nil
}
