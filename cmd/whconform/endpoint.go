package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/spf13/cobra"

	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/fakeendpoint"
)

// endpointFlags are those of "whconform endpoint".
type endpointFlags struct {
	secrets                   secretFlags
	script, profile, addr     string
	allowRemote               bool
	tls, caFile, urlFile, api string
	format                    string
	count                     int
	timeout                   time.Duration
}

func (a *app) endpointCommand() *cobra.Command {
	f := &endpointFlags{}
	c := &cobra.Command{
		Use:   "endpoint",
		Short: "Play the endpoint that webhooks are sent to, by a script",
		Long: `Play the endpoint that webhooks are sent to, and show what comes: two lines an
attempt, the request and what it was answered.

  <-- POST /  id=msg_01…  171 B  attempt 2, 5.0 s after the last  verified by …
  --> 500 Internal Server Error  1 ms

The script says how each attempt is answered. Its steps stand between commas,
*2 repeats a step and the last one stays:

  200  503(retry-after=600)  429(retry-after=date+30s)*until  301  410
  slow(20s)  slow(20s,500)  hang  drip(1B,1s)  early(413)  103,200
  huge(1GiB)  gzip-bomb(1GiB)  endless  headers(16MiB)
  reset  close  truncate  garbage
  expired  wrong-host  self-signed  refuse(30s)  full-queue(30s)

Every address takes the script, and attempts are counted together. A URL may
also hold a script of its own, and is then a scenario of its own:
/s/500*2,200/any/path. docs/fake-endpoint.md describes the language and the
API.

It listens on this machine only and runs until it is interrupted, or until
--count attempts are over; if they are not within --timeout, the exit code is
1.`,
		Example: `  whconform endpoint --script '500*2,200' --secret-env WEBHOOK_SECRET
  whconform endpoint --script 'slow(20s),hang' --addr 127.0.0.1:9000
  whconform endpoint --script expired,200 --ca-file ca.pem
  whconform endpoint --script 500,200 --count 2 --format json >attempts.jsonl`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error { return a.playEndpoint(c.Context(), f) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.script, "script", "200", "how attempts are answered: `STEPS` with commas between them")
	f.secrets.register(flags)
	flags.StringVar(&f.profile, "profile", "standard-webhooks", "the contract: a `NAME` of \"whconform profile list\", or a YAML file")
	flags.StringVar(&f.addr, "addr", "", "`ADDRESS` to listen on; a free port on 127.0.0.1 by default")
	flags.BoolVar(&f.allowRemote, "allow-remote", false, "listen also where other machines reach it")
	flags.StringVar(&f.tls, "tls", "", "speak TLS with a `CERTIFICATE` that is good, expired, wrong-host or self-signed")
	flags.StringVar(&f.caFile, "ca-file", "", "write the authority that signs the certificates to the PEM `FILE`")
	flags.StringVar(&f.urlFile, "url-file", "", "write the URL to `FILE` once it listens")
	flags.StringVar(&f.api, "api", "", "serve the HTTP API on `ADDRESS`, such as 127.0.0.1:9001")
	flags.StringVar(&f.format, "format", "text", "`FORMAT` of what is shown: text, or json with one line an attempt")
	flags.IntVar(&f.count, "count", 0, "end after `N` attempts")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long to wait for them; for ever by default")
	return c
}

// told is what the endpoint hands to the goroutine that writes.
type told struct {
	attempt *fakeendpoint.Attempt
	stray   *fakeendpoint.Stray
}

func (a *app) playEndpoint(ctx context.Context, f *endpointFlags) error {
	script, config, err := a.readEndpoint(f)
	if err != nil {
		return err
	}
	// Unbuffered, so that a sender that is faster than the terminal waits rather
	// than fills memory.
	news := make(chan told)
	done := make(chan struct{})
	defer close(done)
	tell := func(t told) {
		select {
		case news <- t:
		case <-done:
		}
	}
	config.OnAttempt = func(at fakeendpoint.Attempt) { tell(told{attempt: &at}) }
	config.OnStray = func(s fakeendpoint.Stray) { tell(told{stray: &s}) }
	server, err := fakeendpoint.Start(config)
	if err != nil {
		return usagef("starting the endpoint: %w", err)
	}
	stopped := make(chan struct{})
	defer func() { <-stopped }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(stopped)
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := a.announce(f, server, script, config); err != nil {
		cancel()
		go drain(news, stopped)
		return err
	}
	err = a.show(ctx, f, news)
	cancel()
	go drain(news, stopped)
	return err
}

// drain takes what is told while the endpoint stops, so that it can.
func drain(news <-chan told, stopped <-chan struct{}) {
	for {
		select {
		case <-news:
		case <-stopped:
			return
		}
	}
}

func (a *app) readEndpoint(f *endpointFlags) (fakeendpoint.Script, fakeendpoint.Config, error) {
	var config fakeendpoint.Config
	// First, so that no error from here on can show one.
	given, err := a.readSecrets(f.secrets)
	if err != nil {
		return fakeendpoint.Script{}, config, err
	}
	script, err := fakeendpoint.ParseScript(f.script)
	var wrong *fakeendpoint.ScriptError
	if errors.As(err, &wrong) {
		return script, config, usagef("reading --script: %w\n  %s", err, indentCaret(wrong.Caret()))
	}
	if f.format != "text" && f.format != "json" {
		return script, config, usagef("reading --format: there is no format %q; text and json are", f.format)
	}
	if f.count < 0 || f.timeout < 0 || f.timeout > 0 && f.count == 0 {
		return script, config, usagef("reading --count and --timeout: neither is negative, and a timeout is for a count")
	}
	p, err := loadProfile(f.profile)
	if err != nil {
		return script, config, err
	}
	scheme, err := p.Scheme()
	if err != nil {
		return script, config, usagef("verifying by the profile %s: %w", p.Name, err)
	}
	keys, err := readKeys(scheme, given)
	if err != nil {
		return script, config, err
	}
	config = fakeendpoint.Config{
		Clock: clock.New(), Profile: p, Keys: keys, Addr: f.addr, Remote: f.allowRemote, Certificate: fakeendpoint.Certificate(f.tls),
	}
	if !script.OwnPort() {
		config.Fallback = &script
	}
	return script, config, nil
}

// indentCaret puts both lines of a caret below the message.
func indentCaret(text string) string {
	for i := range text {
		if text[i] == '\n' {
			return text[:i] + "\n  " + text[i+1:]
		}
	}
	return text
}

// announce tells where the endpoint is, on stderr and in the files asked for.
func (a *app) announce(f *endpointFlags, server *fakeendpoint.Server, script fakeendpoint.Script, config fakeendpoint.Config) error {
	url := server.URL() + "/"
	if script.OwnPort() {
		// Steps about connections take a port of their own.
		path := server.Path("hooks", script, config.Keys...)
		if err := path.Err(); err != nil {
			return brokenf("starting the endpoint: %w", err)
		}
		url = path.URL()
	}
	if f.caFile != "" {
		if err := writeWhole(f.caFile, server.CAPEM()); err != nil {
			return usagef("writing --ca-file: %w", err)
		}
	}
	fmt.Fprintf(a.err, "listening on %s, script %s\n", url, script)
	if f.api != "" {
		api, err := server.ServeAPI(f.api)
		if err != nil {
			return usagef("reading --api: %w", err)
		}
		fmt.Fprintf(a.err, "the API is at %s\n", api)
	}
	if f.urlFile != "" {
		if err := writeWhole(f.urlFile, []byte(url+"\n")); err != nil {
			return usagef("writing --url-file: %w", err)
		}
	}
	return nil
}

// writeWhole writes a file that appears with all that is in it: somebody may be
// waiting for it.
func writeWhole(name string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// show writes what comes until it is enough.
func (a *app) show(ctx context.Context, f *endpointFlags, news <-chan told) error {
	var late <-chan time.Time
	if f.timeout > 0 {
		timer := time.NewTimer(f.timeout)
		defer timer.Stop()
		late = timer.C
	}
	for seen := 0; f.count == 0 || seen < f.count; {
		select {
		case n := <-news:
			if n.attempt != nil {
				seen++
			}
			if err := a.showNews(f, n); err != nil {
				return brokenf("showing an attempt: %w", err)
			}
		case <-late:
			return &exit{report.ExitNotConformant, fmt.Errorf("waiting for attempts: %d of %d came within %v", seen, f.count, f.timeout)}
		case <-ctx.Done():
			if f.count > 0 {
				return &exit{report.ExitInterrupted, fmt.Errorf("waiting for attempts: interrupted after %d of %d", seen, f.count)}
			}
			return nil
		}
	}
	return nil
}

func (a *app) showNews(f *endpointFlags, n told) error {
	switch {
	case n.stray != nil: // no attempt, so it is on the side
		return fakeendpoint.WriteStray(a.err, n.stray)
	case f.format == "json":
		encoder := json.NewEncoder(a.out)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(n.attempt)
	}
	return fakeendpoint.WriteAttempt(a.out, n.attempt)
}
