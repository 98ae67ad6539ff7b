package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/benbjohnson/clock"
	"github.com/spf13/pflag"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
)

const (
	// onStdio is the word for an adapter on a command's standard streams.
	onStdio = "stdio"
	// anyLoopbackPort is where the provider's API is played for a command, which
	// is told the port.
	anyLoopbackPort = "127.0.0.1:0"
)

// hookFlags say what the receiver can do beside taking deliveries.
type hookFlags struct {
	control     string
	instances   bool
	providerAPI string
	db          string
}

func (f *hookFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.control, "control", "", "`WHERE` its adapter answers, which can make processing fail, tell a state, move the clock: a URL, with {port} as above, or stdio for --exec's standard streams")
	flags.BoolVar(&f.instances, "instances", false, "the command of --exec may run twice on the folder in WHCONFORM_STATE_DIR")
	flags.StringVar(&f.providerAPI, "provider-api", "", "the receiver asks the provider's API: --exec at the URL in WHCONFORM_PROVIDER_URL, another at this `ADDRESS`, where the suite plays it")
	flags.Lookup("provider-api").NoOptDefVal = anyLoopbackPort
	flags.StringVar(&f.db, "db", "", "postgres:// `URL` of a database for --reference; a file in a folder of its own by default")
}

// given names the flags that were given, in their order.
func (f *hookFlags) given() []string {
	var names []string
	for _, flag := range []struct {
		name string
		is   bool
	}{{"--control", f.control != ""}, {"--instances", f.instances}, {"--provider-api", f.providerAPI != ""}} {
		if flag.is {
			names = append(names, flag.name)
		}
	}
	return names
}

// hooks is what a receiver is started with so that its hooks can be reached.
type hooks struct {
	hooking     *drive.Hooking // nil: it has no adapter
	stdio       bool
	instances   bool
	providerAPI string // where the provider's API is played; "" for nowhere
	db          string
}

// read checks the flags against what is judged.
func (f *hookFlags) read(s *subject, p *profile.Profile, kept *secrets) (hooks, error) {
	for _, text := range []string{f.control, f.db} {
		if u, err := url.Parse(strings.ReplaceAll(text, "{port}", "1")); err == nil {
			if password, ok := u.User.Password(); ok {
				kept.add(password)
			}
		}
	}
	h := hooks{stdio: f.control == onStdio, instances: f.instances, providerAPI: f.providerAPI, db: f.db}
	options := drive.HookOptions{Profile: p.Name, Clock: clock.New(), Redact: kept.text}
	switch {
	case f.db != "" && !s.reference:
		return h, usagef("reading --db: it is for --reference. Tell a command of your own in its arguments")
	case f.db != "" && !isPostgres(f.db):
		return h, usagef("reading --db: a postgres:// URL is needed. Without --db the reference keeps a file in a folder of its own")
	case s.reference && len(f.given()) > 0:
		return h, usagef("reading the command line: the reference brings its own hooks. Leave out %s", strings.Join(f.given(), " and "))
	case s.reference:
		h.stdio, h.instances, h.providerAPI = true, true, anyLoopbackPort
	case f.instances && s.command == nil:
		return h, usagef("reading --instances: a second one is started by the suite, for which it needs --exec COMMAND")
	case h.stdio && s.command == nil:
		return h, usagef("reading --control: stdio is for --exec, where the suite holds the streams. Write a URL")
	case strings.Contains(f.control, "{port}") && s.command == nil:
		return h, usagef("reading --control: {port} is for --exec, where the suite chooses the port. Write the receiver's own")
	case f.providerAPI == anyLoopbackPort && s.command == nil:
		return h, usagef("reading --provider-api: the suite does not start this receiver, so it must know where it asks. Write the address, as in --provider-api=127.0.0.1:9100")
	case f.providerAPI != "" && !isLoopbackAddress(f.providerAPI):
		return h, usagef("reading --provider-api: the API is played on this machine only. Write 127.0.0.1 and a port, as in --provider-api=127.0.0.1:9100")
	}
	switch {
	case h.stdio:
		hooking := drive.HooksOnStdio(options)
		h.hooking = &hooking
	case f.control != "":
		hooking, err := drive.HooksAt(f.control, options)
		if err != nil {
			return h, usagef("reading the command line: %w", err)
		}
		h.hooking = &hooking
	}
	return h, nil
}

// isLoopbackAddress tells whether HOST:PORT stays on this machine.
func isLoopbackAddress(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && drive.Loopback(host)
}

// text takes the secrets out of a text.
func (s *secrets) text(text string) string {
	clean, _ := s.clean([]byte(text))
	return string(clean)
}

// play serves the provider's API; nil where it is not asked.
func (h *hooks) play() (*fakeprovider.APIServer, error) {
	if h.providerAPI == "" {
		return nil, nil
	}
	api, err := fakeprovider.ServeAPI(clock.New(), h.providerAPI)
	if err != nil {
		return nil, fmt.Errorf("%w. Choose another address by --provider-api=ADDRESS", err)
	}
	return api, nil
}

// attach puts the hooks beside a receiver that has started.
func (h *hooks) attach(ctx context.Context, r drive.Receiver) (drive.Receiver, error) {
	if h.hooking == nil {
		return r, nil
	}
	return drive.Hooked(ctx, r, *h.hooking)
}

// started is a receiver with what goes with it: it is ended first, if it was
// started at all, then the others in their order.
type started struct {
	drive.Receiver
	others []func(context.Context) error
}

// Unwrap returns the receiver without what goes with it; its errors name it.
func (s *started) Unwrap() drive.Receiver { return s.Receiver }

func (s *started) Close(ctx context.Context) error {
	var errs []error
	if s.Receiver != nil {
		errs = append(errs, s.Receiver.Close(ctx))
	}
	for _, end := range s.others {
		errs = append(errs, end(ctx))
	}
	return errors.Join(errs...)
}
