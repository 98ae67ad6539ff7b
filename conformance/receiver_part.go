package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"

	"golang.org/x/time/rate"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/signature"
)

// receiverPart judges a receiver.
type receiverPart struct {
	config Config
	env    *receiver.Env
}

func newReceiverPart(c Config) (part, error) {
	if c.Bounds == (receiver.Bounds{}) {
		c.Bounds = receiver.DefaultBounds()
	}
	local := Loopback(c.Receiver.Target(0).URL)
	if c.Rate == 0 {
		c.Rate = RemoteRate
		if local {
			c.Rate = DefaultRate
		}
	}
	c.Bounds.Load = c.Load || local
	env, err := receiverEnv(c)
	if err != nil {
		return nil, err
	}
	return &receiverPart{c, env}, nil
}

func (*receiverPart) kind() string                                 { return catalogue.Receiver }
func (*receiverPart) checks() []suite.Check                        { return receiver.Checks() }
func (p *receiverPart) offers(need string) bool                    { return p.env.Offers(need) }
func (p *receiverPart) capabilities() []string                     { return p.env.Capabilities() }
func (*receiverPart) clock() string                                { return "" }
func (*receiverPart) declared() map[string]string                  { return nil }
func (*receiverPart) open(context.Context) error                   { return nil }
func (*receiverPart) close(context.Context) error                  { return nil } // the receiver is the caller's
func (*receiverPart) judgedFromPreflight(id string) bool           { return receiver.JudgedFromPreflight(id) }
func (*receiverPart) remark(r []evidence.Ruling) []evidence.Ruling { return receiver.Remark(r) }

// target names the subject without credentials.
func (p *receiverPart) target() string {
	text := p.config.Target
	if text == "" {
		text = p.config.Receiver.Target(0).URL
	}
	return withoutCredentials(text)
}

func (p *receiverPart) preflight(ctx context.Context) preflight {
	r := receiver.RunPreflight(ctx, p.env)
	return preflight{r.Transcript, r.Accepted, r.Unreachable, r.Diagnosis}
}

func (p *receiverPart) record(ctx context.Context, wanted func(string) bool) []evidence.Transcript {
	cfg := suite.Config{SideBySide: p.config.SideBySide, Progress: p.config.Progress,
		Revive: func(ctx context.Context) error { return drive.Revive(ctx, p.config.Receiver) }}
	if p.env.Slow && cfg.SideBySide == 0 {
		cfg.SideBySide = 2 * suite.SideBySide
	}
	return suite.Record(ctx, cfg, receiver.Scenarios(p.env, wanted))
}

func (p *receiverPart) keys() []signature.Key {
	keys := []signature.Key{p.env.Keys.Current}
	for _, k := range []*signature.Key{p.env.Keys.Previous, p.env.Keys.Ed25519} {
		if k != nil {
			keys = append(keys, *k)
		}
	}
	return keys
}

// receiverEnv makes what the scenarios work with.
func receiverEnv(c Config) (*receiver.Env, error) {
	provider, err := fakeprovider.New(fakeprovider.Config{Profile: c.Profile, Clock: c.Clock, Rand: c.random("ids")})
	if err != nil {
		return nil, usage("preparing deliveries of the profile %s: %w", c.Profile.Name, err)
	}
	keys, err := readKeys(provider.Scheme(), c.Secrets, c.random("foreign keys"))
	if err != nil {
		return nil, err
	}
	event := c.Event
	if event.Render == nil {
		event.Render = receiver.ProfileEvent(c.Profile, c.Clock)
	}
	if event.Type == "" {
		event.Type = c.Profile.EventTypes[0]
	}
	payload, err := event.Render(provider.NewID(), event.Type)
	if err != nil {
		return nil, usage("making the payload: %w", err)
	}
	// The rows on unknown fields, spellings and sizes add members to it.
	var object map[string]any
	if err := json.Unmarshal(payload, &object); err != nil {
		return nil, usage("making the payload: it has to be a JSON object, as deliveries with further members are made from it: %w", err)
	}
	return &receiver.Env{
		Subject: c.Receiver, Provider: provider, Profile: c.Profile, Keys: keys, Event: event, Bounds: c.Bounds, Clock: c.Clock,
		// A burst of a tenth of a second's worth: a receiver sees the rate that
		// was asked for, not one gulp a second.
		Limiter: rate.NewLimiter(rate.Limit(c.Rate), max(1, int(c.Rate/10))),
		Random:  c.random,
		Extra:   c.Headers,
	}, nil
}

// readKeys sorts the secrets into current, previous and Ed25519.
func readKeys(scheme signature.Scheme, texts []string, random io.Reader) (receiver.Keys, error) {
	var keys receiver.Keys
	symmetric := 0
	for i, text := range texts {
		name := fmt.Sprintf("secret %d", i+1)
		key, err := scheme.Key(name, text)
		if err != nil {
			return keys, usage("reading %s: %w", name, err)
		}
		switch {
		case key.Kind() == signature.Ed25519Private:
			keys.Ed25519 = &key
			keys.Texts.Public = key.PublicText()
		case key.Kind() == signature.Ed25519Public:
			return keys, usage("reading %s: a public key cannot sign; give the private one (whsk_…)", name)
		case symmetric == 0:
			keys.Current, keys.Texts.Current = key, text
			symmetric++
		case symmetric == 1:
			keys.Previous, keys.Texts.Previous = &key, text
			symmetric++
		default:
			return keys, usage("reading %s: a receiver in rotation knows two secrets, the current one and the previous one; this is a third", name)
		}
	}
	if symmetric == 0 {
		return keys, usage("no secret: give the one that the receiver is configured with by --secret, --secret-env or --secret-file")
	}
	var err error
	if keys.Wrong, err = foreignKey(scheme, "a secret that the receiver does not know", random); err != nil {
		return keys, err
	}
	if keys.Third, err = foreignKey(scheme, "a third secret", random); err != nil {
		return keys, err
	}
	return keys, nil
}

// foreignKey makes a key of the scheme's own form that nobody was given.
func foreignKey(scheme signature.Scheme, label string, random io.Reader) (signature.Key, error) {
	text, err := scheme.Spec().NewSecret(random)
	if err != nil {
		return signature.Key{}, fmt.Errorf("making %s: %w", label, err)
	}
	key, err := scheme.Key(label, text)
	if err != nil {
		return signature.Key{}, fmt.Errorf("making %s: %w", label, err)
	}
	return key, nil
}

// Loopback tells whether deliveries to target stay on this machine, so that no
// permission is needed for them.
func Loopback(target string) bool {
	u, err := url.Parse(target)
	return err == nil && drive.Loopback(u.Hostname())
}

// withoutCredentials is an address as a report may show it.
func withoutCredentials(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = url.User("redacted")
	return u.String()
}
