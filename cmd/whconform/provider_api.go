package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/spf13/cobra"

	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/wire"
)

// providerAPIFlags are those of "whconform provider-api".
type providerAPIFlags struct {
	addr, urlFile, format string
	allowRemote, down     bool
	delay                 time.Duration
	payments              []string
}

func (a *app) providerAPICommand() *cobra.Command {
	f := &providerAPIFlags{}
	c := &cobra.Command{
		Use:   "provider-api",
		Short: "Play the provider's own API, which a receiver asks about payments",
		Long: `Play the provider's own API: a receiver that does not believe an event asks it
for the payment's present state. A line on stdout tells of each question.

  GET    /payments/ID  {"id":"ch_1","status":"succeeded","amount":4200,…}, and
                       404 for a payment that is not known
  PUT    /payments/ID  sets it: members status, amount, currency,
                       merchant_reference, version
  DELETE /payments/ID  forgets it
  PUT    /control      {"delay":"15s","down":true}; GET shows both

--payment ID=STATUS makes one known at the start, with amount=N, currency=C,
reference=R and version=N behind commas. The ID * stands for every payment that
is not named. With --delay each answer is late, as some providers' are: what
your receiver does meanwhile must not hold up its 2xx.

It takes any credentials and looks at none, listens on this machine only and
runs until it is interrupted.`,
		Example: `  whconform provider-api --payment ch_1=succeeded,amount=4200,reference=order-7
  whconform provider-api --addr 127.0.0.1:9100 --delay 15s --payment '*=failed'
  curl -X PUT 127.0.0.1:9100/payments/ch_1 -d '{"status":"refunded","amount":1}'`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error { return a.playProviderAPI(c.Context(), f) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.addr, "addr", anyLoopbackPort, "`ADDRESS` to listen on; port 0 is a free one")
	flags.BoolVar(&f.allowRemote, "allow-remote", false, "listen also where other machines reach it")
	flags.StringVar(&f.urlFile, "url-file", "", "write the URL to `FILE` once it listens")
	flags.StringArrayVar(&f.payments, "payment", nil, "`ID=STATUS` of a payment that is known; repeatable")
	flags.DurationVar(&f.delay, "delay", 0, "how late each answer is, such as 15s")
	flags.BoolVar(&f.down, "down", false, "answer 503")
	flags.StringVar(&f.format, "format", "text", "`FORMAT` of what is shown: text, or json with one line a question")
	return c
}

func (a *app) playProviderAPI(ctx context.Context, f *providerAPIFlags) (err error) {
	payments, err := f.read()
	if err != nil {
		return err
	}
	api, err := fakeprovider.ServeAPI(clock.New(), f.addr)
	if err != nil {
		return usagef("%w. Choose another address by --addr", err)
	}
	defer func() {
		if closed := api.Close(context.WithoutCancel(ctx)); err == nil && closed != nil {
			err = brokenf("%w", closed)
		}
	}()
	for _, p := range payments {
		if p.ID == everyPayment {
			api.SetOthers(&p)
		} else if err := api.Set(p); err != nil {
			return usagef("reading --payment: %w", err)
		}
	}
	api.SetDelay(f.delay)
	api.SetDown(f.down)
	failed := make(chan error, 1)
	api.Tell(func(q fakeprovider.Question) {
		if err := a.showQuestion(f.format, q); err != nil {
			select {
			case failed <- err:
			default:
			}
		}
	})
	fmt.Fprintf(a.err, "listening on %s\n", api.URL())
	if f.urlFile != "" {
		if err := writeWhole(f.urlFile, []byte(api.URL()+"\n")); err != nil {
			return usagef("writing --url-file: %w", err)
		}
	}
	select {
	case err := <-failed:
		return brokenf("showing a question: %w", err)
	case <-ctx.Done():
		return nil
	}
}

// read checks the flags.
func (f *providerAPIFlags) read() ([]fakeprovider.Payment, error) {
	switch {
	case f.format != "text" && f.format != "json":
		return nil, usagef("reading --format: there is no format %q; text and json are", f.format)
	case f.delay < 0 || f.delay > fakeprovider.MaxAPIDelay:
		return nil, usagef("reading --delay: a time from 0s to %v is possible", fakeprovider.MaxAPIDelay)
	case !f.allowRemote && !isLoopbackAddress(f.addr):
		return nil, usagef("reading --addr: %s can be reached from other machines. If that is meant, add --allow-remote", f.addr)
	}
	var payments []fakeprovider.Payment
	for _, text := range f.payments {
		p, err := parsePayment(text)
		if err != nil {
			return nil, usagef("reading --payment %q: %w", text, err)
		}
		payments = append(payments, p)
	}
	return payments, nil
}

// everyPayment stands for all payments that are not named.
const everyPayment = "*"

// parsePayment reads ID=STATUS,amount=N,currency=C,reference=R,version=N.
func parsePayment(text string) (fakeprovider.Payment, error) {
	parts := strings.Split(text, ",")
	id, status, ok := strings.Cut(parts[0], "=")
	if !ok || id == "" || status == "" {
		return fakeprovider.Payment{}, errors.New("it begins with ID=STATUS, as in ch_1=succeeded,amount=4200")
	}
	p := fakeprovider.Payment{ID: id, Status: status}
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(part, "=")
		var err error
		switch name {
		case "amount":
			p.Amount, err = strconv.ParseInt(value, 10, 64)
		case "version":
			p.Version, err = strconv.ParseInt(value, 10, 64)
		case "currency":
			p.Currency = value
		case "reference":
			p.Reference = value
		default:
			return p, fmt.Errorf("%q is none of amount, currency, reference and version", name)
		}
		if err != nil {
			return p, fmt.Errorf("the %s %q is not a whole number", name, value)
		}
	}
	return p, nil
}

// showQuestion writes a line about a question.
func (a *app) showQuestion(format string, q fakeprovider.Question) error {
	if format == "json" {
		return json.NewEncoder(a.out).Encode(struct {
			fakeprovider.Question
			AfterMS int64 `json:"afterMs"`
		}{q, q.After.Milliseconds()})
	}
	what := http.StatusText(q.Status)
	switch {
	case q.Gone:
		what = "nobody waited for the answer"
	case q.Answer != nil:
		what = q.Answer.Status
	}
	_, err := fmt.Fprintf(a.out, "GET /payments/%s  %s  after %v\n", wire.Line(q.ID), what, q.After.Round(time.Millisecond))
	return err
}
