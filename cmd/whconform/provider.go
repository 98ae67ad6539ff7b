package main

import (
	"crypto/rand"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/spf13/cobra"

	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
)

// providerFlags are those of "whconform provider".
type providerFlags struct {
	secrets secretFlags
	target  targetFlags

	profile, payload, eventType, id string

	count, copies int
	timeout       time.Duration

	age                   time.Duration
	reserialize, tamper   string
	dropHeader            []string
	wrongSecret, unsigned bool
	chunked               bool

	load loadFlags
}

func (a *app) providerCommand() *cobra.Command {
	f := &providerFlags{}
	c := &cobra.Command{
		Use:   "provider URL",
		Short: "Send deliveries as a provider does, right or wrong in one way",
		Long: `Send deliveries to a receiver as the profile's provider would, and show what
came back: two lines a delivery.

  --> POST /hooks  id=msg_0193…  171 B  delivery 1
  <-- 204 No Content  3 ms

Without further flags a delivery is right: fresh, signed, of the profile's
example event. Flags make it wrong in one way or in several, so that you can see
what your receiver makes of it, or debug it while deliveries come. Each secret
given signs, as during a rotation.

With --rate it is a load. Deliveries become due at that rate whether the
receiver keeps up or not, each signed when it is sent, and how long they took is
counted from when they were due. A line a second on a terminal, and at the end:

  5000 of 5000 deliveries sent in 10.0 s: 500.0 a second, as asked for; …
  genuine      4750  2375 events: 200 OK 4750
  forged        250  401 Unauthorized 250
  latency      p50 0.8 ms  p90 1.6 ms  p99 5.5 ms  p99.9 11 ms  max 12 ms

--copies then sends the same bytes close together, --duplicates an event of a
while ago, as a retry. Forgeries are counted apart.

The exit code is 0 when every delivery was answered, whatever the answer, and 1
when one was not: connection refused, reset, no answer in time; or when a forged
one of --forged was accepted.`,
		Example: `  whconform provider http://127.0.0.1:8080/webhooks --secret-env WEBHOOK_SECRET
  whconform provider http://127.0.0.1:8080/ --secret-env S --copies 3
  whconform provider http://127.0.0.1:8080/ --secret-env S --age 10m
  whconform provider http://127.0.0.1:8080/ --secret-env S --tamper digit
  whconform provider http://127.0.0.1:8080/ --secret-env S --reserialize dotnet
  whconform provider http://127.0.0.1:8080/ --secret-env S --count 10 \
    --payload order.json --event-type order.shipped
  whconform provider http://127.0.0.1:8080/ --secret-env S --rate 500 \
    --duration 10s --copies 2 --forged 5%`,
		Args: exactly("URL"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.load.check(c.Flags()); err != nil {
				return err
			}
			s, err := a.readSending(f, args[0])
			if err != nil {
				return err
			}
			if c.Flags().Changed("rate") {
				return a.load(c, f, s, args[0])
			}
			return a.provide(c, f, s, args[0])
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	f.secrets.register(flags)
	flags.StringVar(&f.profile, "profile", "standard-webhooks", "the contract: a `NAME` of \"whconform profile list\", or a YAML file")
	flags.StringVar(&f.payload, "payload", "", "template `FILE` of the event; - is stdin")
	flags.StringVar(&f.eventType, "event-type", "", "`TYPE` of the event; the profile's first by default")
	flags.StringVar(&f.id, "id", "", "message `ID`; a new one for each event by default")
	flags.IntVar(&f.count, "count", 1, "how many events, one after another")
	flags.IntVar(&f.copies, "copies", 1, "how often each is sent: the same bytes again")
	flags.DurationVar(&f.age, "age", 0, "signed that long ago, such as 10m; negative: in the future")
	flags.StringVar(&f.tamper, "tamper", "", "change something after signing: `WHAT` is digit, append or remove (of the body), id or timestamp")
	flags.StringVar(&f.reserialize, "reserialize", "", "send the body as a JSON `LIBRARY` would write it again: "+strings.Join(serializers(), ", "))
	flags.BoolVar(&f.wrongSecret, "wrong-secret", false, "sign with a secret that nobody else knows")
	flags.BoolVar(&f.unsigned, "unsigned", false, "send no signature headers")
	flags.StringArrayVar(&f.dropHeader, "drop-header", nil, "leave out the header `NAME`; repeatable")
	flags.BoolVar(&f.chunked, "chunked", false, "send the body in chunks, without a Content-Length")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long to wait for an answer; the profile's provider's by default")
	f.load.register(flags)
	f.target.register(flags)
	return c
}

func serializers() []string {
	var names []string
	for _, s := range fakeprovider.Serializers() {
		names = append(names, s.Name)
	}
	return names
}

// sending is what all deliveries of a call share.
type sending struct {
	provider *fakeprovider.Provider
	to       fakeprovider.Target
	keys     []signature.Key
	render   func(id, eventType string) ([]byte, error)
	changes  []fakeprovider.Alteration
}

func (a *app) provide(c *cobra.Command, f *providerFlags, s *sending, address string) error {
	unanswered, total := 0, 0
	for n := range f.count {
		draft, err := s.draft(f)
		if err != nil {
			return usagef("building the delivery: %w", err)
		}
		for copies := range f.copies {
			label := fmt.Sprintf("delivery %d", n+1)
			if copies > 0 {
				label += fmt.Sprintf(", copy %d", copies+1)
			}
			x := s.provider.Send(c.Context(), s.to, draft, label)
			if c.Context().Err() != nil {
				return &exit{report.ExitInterrupted, fmt.Errorf("sending to %s: interrupted after %d of %d deliveries", withoutCredentials(address), total, f.count*f.copies)}
			}
			total++
			if x.Response == nil {
				unanswered++
			}
			if err := fakeprovider.WriteExchange(a.out, &x); err != nil {
				return brokenf("showing the exchange: %w", err)
			}
		}
	}
	if unanswered > 0 {
		return &exit{report.ExitNotConformant, fmt.Errorf("sending to %s: %d of %d deliveries got no answer", withoutCredentials(address), unanswered, total)}
	}
	return nil
}

func (a *app) readSending(f *providerFlags, address string) (*sending, error) {
	// Above a million, somebody mistook this for a load generator.
	const most = 1_000_000
	if f.count < 1 || f.copies < 1 || f.count > most || f.copies > most {
		return nil, usagef("reading --count and --copies: both are from 1 to %d", most)
	}
	// First, so that no error from here on can show one.
	given, err := a.readSecrets(f.secrets)
	if err != nil {
		return nil, err
	}
	p, err := loadProfile(f.profile)
	if err != nil {
		return nil, err
	}
	s := &sending{}
	if s.provider, err = fakeprovider.New(fakeprovider.Config{Profile: p, Clock: clock.New()}); err != nil {
		return nil, usagef("playing the provider: %w", err)
	}
	if err := f.target.read(a); err != nil {
		return nil, err
	}
	if s.to, err = f.target.target(a, address); err != nil {
		return nil, err
	}
	s.to.Headers = f.target.parsed
	s.to.Answer = p.AckTimeout
	if f.timeout > 0 {
		s.to.Answer = f.timeout
	}
	if s.keys, err = signingKeys(f, given, s.provider.Scheme()); err != nil {
		return nil, err
	}
	if err := a.readContent(f, p, s); err != nil {
		return nil, err
	}
	s.changes, err = f.alterations(s.provider)
	return s, err
}

// signingKeys are the secrets given, or one that nobody knows.
func signingKeys(f *providerFlags, all []secret, scheme signature.Scheme) ([]signature.Key, error) {
	if f.wrongSecret || len(all) == 0 && f.unsigned {
		text, err := scheme.Spec().NewSecret(rand.Reader)
		if err != nil {
			return nil, usagef("making a wrong secret: %w", err)
		}
		all = []secret{{text, "the wrong secret"}}
	}
	if len(all) == 0 {
		return nil, usagef("reading the secrets: none is given. Give the receiver's by --secret-env, --secret-file or --secret, or send --unsigned or with a --wrong-secret")
	}
	return readKeys(scheme, all)
}

// readContent finds out what deliveries carry.
func (a *app) readContent(f *providerFlags, p *profile.Profile, s *sending) error {
	if f.eventType == "" {
		f.eventType = p.EventTypes[0]
	}
	if f.payload == "" {
		s.render = receiver.ProfileEvent(p, clock.New())
		return nil
	}
	template, err := a.readPayload(f.payload)
	if err != nil {
		return err
	}
	s.render = receiver.TemplateEvent(template, clock.New())
	return nil
}

// draft builds the next delivery.
func (s *sending) draft(f *providerFlags) (fakeprovider.Draft, error) {
	id := f.id
	if id == "" {
		id = s.provider.NewID()
	}
	body, err := s.render(id, f.eventType)
	if err != nil {
		return fakeprovider.Draft{}, err
	}
	return s.provider.Draft(fakeprovider.Delivery{ID: id, Type: f.eventType, Keys: s.keys, Body: body, URL: s.to.URL}, s.changes...)
}

// alterations are what the flags ask for.
func (f *providerFlags) alterations(p *fakeprovider.Provider) ([]fakeprovider.Alteration, error) {
	var changes []fakeprovider.Alteration
	if f.age != 0 {
		// Beyond some 290 years a duration has no room; far before that a
		// receiver has said what there is to say.
		if f.age.Abs() > math.MaxInt64/2 {
			return nil, usagef("reading --age: %v is too far away", f.age)
		}
		changes = append(changes, fakeprovider.Age(f.age))
	}
	switch f.tamper {
	case "":
	case "digit":
		changes = append(changes, fakeprovider.ChangeDigit())
	case "append":
		changes = append(changes, fakeprovider.AppendByte())
	case "remove":
		changes = append(changes, fakeprovider.RemoveByte())
	case "id":
		changes = append(changes, fakeprovider.SwapID(p.NewID()))
	case "timestamp":
		changes = append(changes, fakeprovider.ShiftTimestamp(1))
	default:
		return nil, usagef("reading --tamper: %q cannot be changed; digit, append, remove, id and timestamp can", f.tamper)
	}
	if f.reserialize != "" {
		if _, err := fakeprovider.Respell(f.reserialize, []byte("{}")); err != nil {
			return nil, usagef("reading --reserialize: no library is called %q; there are %s", f.reserialize, strings.Join(serializers(), ", "))
		}
		changes = append(changes, fakeprovider.Reserialize(f.reserialize))
	}
	if f.unsigned {
		changes = append(changes, fakeprovider.DropSignatureHeaders())
	}
	for _, name := range f.dropHeader {
		changes = append(changes, fakeprovider.DropHeader(name))
	}
	if f.chunked {
		changes = append(changes, fakeprovider.Chunked())
	}
	return changes, nil
}
