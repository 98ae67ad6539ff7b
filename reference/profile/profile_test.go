package profile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// described names the profiles whose scheme nothing here can sign, with the
// field that asks for it.
func described() map[string]string {
	return map[string]string{
		"adyen-standard": "signature.in",
		"hubspot":        "content",
		"mailgun":        "signature.in",
		"paypal":         "mac",
		"sendgrid":       "mac",
		"square":         "content",
		"twilio":         "content",
	}
}

// providers are the rows of the providers' table, one name or more for each.
func providers() []string {
	return []string{
		"standard-webhooks", "delivery-envelope", "svix", "openai", "replicate", "polar", "supabase", "stripe", "github",
		"slack", "shopify", "paddle", "twilio", "zoom", "square", "hubspot", "paypal", "meta", "discord", "linear", "gitlab",
		"gitlab-token", "adyen-standard", "adyen-platforms", "xero", "zendesk", "pagerduty", "mailgun", "sendgrid", "vercel",
		"elevenlabs", "checkout", "razorpay", "persona",
	}
}

func load(t testing.TB, name string) *profile.Profile {
	t.Helper()
	p, err := profile.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func data() profile.PayloadData {
	return profile.PayloadData{ID: "msg_1", Type: "invoice.paid", Time: time.Unix(1767225600, 123456789), Seq: 7, Random: "r4nd0m"}
}

func TestEveryProviderHasAProfile(t *testing.T) {
	want := slices.Sorted(slices.Values(providers()))
	if got := profile.Names(); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, name := range profile.Names() {
		if p := load(t, name); p.Name != name {
			t.Errorf("the file %s.yaml holds the profile %s", name, p.Name)
		}
	}
}

func TestEveryProfileDeliversAndVerifies(t *testing.T) {
	for _, name := range profile.Names() {
		t.Run(name, func(t *testing.T) {
			p := load(t, name)
			s, err := p.Scheme()
			if field, only := described()[name]; only {
				var no *signature.UnsupportedError
				if !errors.As(err, &no) || no.Field != field {
					t.Fatalf("want an UnsupportedError of %s, got %v", field, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			deliver(t, p, s)
		})
	}
}

// deliver signs the profile's own payload and verifies it, and that a changed
// one is refused where the scheme signs the body.
func deliver(t *testing.T, p *profile.Profile, s signature.Scheme) {
	random := &counter{}
	k, err := signature.NewKey(s, "current", random)
	if err != nil {
		t.Fatal(err)
	}
	other, err := signature.NewKey(s, "other", random)
	if err != nil {
		t.Fatal(err)
	}
	d := data()
	body, err := p.NewPayload(d)
	if err != nil {
		t.Fatal(err)
	}
	headers, err := s.Sign(signature.Input{ID: d.ID, Time: d.Time, Body: body}, k)
	if err != nil {
		t.Fatal(err)
	}
	r := &wire.Request{Method: "POST", Headers: headers, Body: body, Size: int64(len(body))}
	if got, err := s.Verify(r, d.Time, k); err != nil || got != k {
		t.Fatalf("verifying: %v, %v", got, err)
	}
	if _, err := s.Verify(r, d.Time, other); err == nil {
		t.Error("verifies by another key")
	}
	if p.Signature.ID.In != "none" {
		if id, err := s.ID(r); err != nil || id != d.ID {
			t.Errorf("the id: %q, %v", id, err)
		}
	}
	r.Body = append(bytes.Clone(body), ' ')
	r.Size++
	if _, err := s.Verify(r, d.Time, k); (err == nil) != (p.Signature.MAC == signature.PlainToken) {
		t.Errorf("a changed body: %v", err)
	}
}

// counter is a source of bytes that differ and repeat from run to run.
type counter struct{ n byte }

func (c *counter) Read(b []byte) (int, error) {
	for i := range b {
		c.n = c.n*5 + 17
		b[i] = c.n
	}
	return len(b), nil
}

func TestTheDocumentedContractsHaveTheirNumbers(t *testing.T) {
	const minute, hour, day = time.Minute, time.Hour, 24 * time.Hour
	sw, env := load(t, "standard-webhooks"), load(t, "delivery-envelope")
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"schedule", sw.Schedule, []time.Duration{0, 5 * time.Second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour}},
		{"jitter", []float64{sw.JitterLow, sw.JitterHigh}, []float64{0, 0.1}},
		{"tolerance", []time.Duration{sw.Signature.Timestamp.Past, sw.Signature.Timestamp.Future}, []time.Duration{5 * minute, 5 * minute}},
		{"timeouts", []time.Duration{sw.AttemptTimeout, sw.ConnectTimeout, sw.AckTimeout}, []time.Duration{15 * time.Second, 5 * time.Second, 15 * time.Second}},
		{"disabling, overlap, cap", []time.Duration{sw.DisableAfter, sw.RotationOverlap, sw.RetryAfterCap}, []time.Duration{5 * day, day, day}},
		{"size, memory", []int64{sw.MaxBody, int64(sw.Remember)}, []int64{64 << 10, int64(day)}},
		{"retention", sw.RetainDelivered, 30 * day},
		{"levels", len(sw.Levels), 0},
		{"schedule of the envelope", env.Schedule, []time.Duration{0, minute, 5 * minute, 30 * minute, 2 * hour, 12 * hour}},
		{"jitter of the envelope", []float64{env.JitterLow, env.JitterHigh}, []float64{-0.2, 0.2}},
		{"tolerance of the envelope", []time.Duration{env.Signature.Timestamp.Past, env.Signature.Timestamp.Future}, []time.Duration{5 * minute, 5 * minute}},
		{"timeouts of the envelope", []time.Duration{env.AttemptTimeout, env.AckTimeout}, []time.Duration{10 * time.Second, 10 * time.Second}},
		{"disabling by the envelope", []any{env.DisableAfter, env.NotifyAfter}, []any{7 * day, []time.Duration{day, 3 * day}}},
		{"retention of the envelope", env.RetainFailed, 30 * day},
		{"levels of the envelope", env.Levels, map[string]string{
			"receiver.signature.accepts-any-in-list": "SHOULD", "sender.request.payload-shape": "MUST"}},
	} {
		a, _ := json.Marshal(c.got)
		b, _ := json.Marshal(c.want)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: got %s, want %s", c.name, a, b)
		}
	}
}

func TestTheDocumentedProfilesHoldTheDocumentedSchemes(t *testing.T) {
	for name, want := range map[string]signature.Spec{
		"standard-webhooks": signature.StandardWebhooks(),
		"delivery-envelope": signature.DeliveryEnvelope(),
	} {
		a, _ := json.Marshal(load(t, name).Signature)
		b, _ := json.Marshal(want)
		if !bytes.Equal(a, b) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, a, b)
		}
	}
}

func TestDefaultPayloadsSurviveBeingWrittenAgain(t *testing.T) {
	for _, name := range profile.Names() {
		p := load(t, name)
		if !strings.HasPrefix(p.ContentType, "application/json") {
			continue
		}
		for _, event := range p.EventTypes {
			d := data()
			d.Type = event
			body, err := p.NewPayload(d)
			if err != nil {
				t.Fatal(err)
			}
			decoder := json.NewDecoder(bytes.NewReader(body))
			decoder.UseNumber()
			var v any
			if err := decoder.Decode(&v); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, body)
			}
			again, _ := json.Marshal(v) // compact, keys sorted
			if !bytes.Equal(body, again) {
				t.Errorf("%s:\nsent    %s\nagain   %s", name, body, again)
			}
		}
	}
}

func TestWhatIsNotSaidHasADefault(t *testing.T) {
	p := load(t, "vercel")
	if got := p.Rejections(); !slices.Equal(got, []int{400, 401, 403, 422}) {
		t.Errorf("rejections: %v", got)
	}
	if p.MaxBody != 64<<10 || p.Remember != 24*time.Hour || p.Handshake != "none" ||
		p.AttemptTimeout != p.AckTimeout || p.UserAgent != "whconform/1 (+vercel)" {
		t.Errorf("got %+v", p)
	}
	if got := load(t, "xero").Rejections(); !slices.Equal(got, []int{401}) {
		t.Errorf("rejections of xero: %v", got)
	}
	if got := load(t, "github").EventBytes; got != 25_000_000 {
		t.Errorf("events of github: %d bytes", got)
	}
	p.Rejections()[0] = 1
	p.YAML()[0] = 'X'
	if p.Rejections()[0] != 400 || p.YAML()[0] == 'X' {
		t.Error("a caller changed the profile")
	}
}

func TestFactsFromMemoryAreSaidToBe(t *testing.T) {
	for _, name := range profile.Names() {
		if n := len(load(t, name).Unverified); n == 0 && name != "standard-webhooks" {
			t.Errorf("%s claims that everything was verified", name)
		}
	}
}

func TestWhatTheSchemeLacksIsNotApplicable(t *testing.T) {
	for _, c := range []struct {
		profile, id string
		no          bool
	}{
		{"standard-webhooks", "receiver.signature.rejects-tampered-id", false},
		{"standard-webhooks", "receiver.signature.rejects-unknown-version", false},
		{"standard-webhooks", "receiver.signature.accepts-ed25519", false},
		{"standard-webhooks", "receiver.replay.rejects-future", false},
		{"standard-webhooks", "receiver.acknowledge.handshake", true},
		{"standard-webhooks", "receiver.duplicate.unsigned-id", true},
		{"delivery-envelope", "receiver.signature.rejects-tampered-id", true},
		{"delivery-envelope", "receiver.signature.rejects-missing-header", false},
		{"delivery-envelope", "receiver.signature.rejects-missing-header.empty-id", true},
		{"delivery-envelope", "receiver.signature.rejects-tampered-timestamp", false},
		{"delivery-envelope", "receiver.signature.accepts-any-in-list", false},
		{"delivery-envelope", "receiver.signature.accepts-ed25519", true},
		{"delivery-envelope", "receiver.signature.scheme-confusion", true},
		{"github", "receiver.replay.rejects-stale", true},
		{"github", "receiver.replay.exact-replay", false},
		{"github", "receiver.replay.clock", false},
		{"github", "receiver.signature.rejects-tampered-timestamp", true},
		{"github", "receiver.signature.rejects-tampered-id", true},
		{"github", "receiver.duplicate.unsigned-id", false},
		{"github", "receiver.signature.accepts-any-in-list", true},
		{"github", "receiver.limits.many-signatures", true},
		{"github", "receiver.limits.many-signatures.fast", true},
		{"github", "receiver.signature.rejects-unknown-version", false},
		{"github", "receiver.limits.accepts-provider-size", false},
		{"github", "sender.retry.fresh-timestamp", true},
		{"shopify", "receiver.signature.rejects-unknown-version", true},
		{"stripe", "receiver.replay.rejects-future", false},
		{"discord", "receiver.replay.rejects-stale", true},
		{"discord", "receiver.signature.rejects-tampered-timestamp", false},
		{"discord", "receiver.signature.rejects-empty-key", true},
		{"discord", "receiver.signature.accepts-ed25519", false},
		{"linear", "receiver.replay.rejects-stale", false},
		{"linear", "receiver.replay.rejects-malformed-timestamp", true},
		{"gitlab-token", "receiver.signature.rejects-tampered-body", true},
		{"gitlab-token", "receiver.rawbody.rejects-reserialized", true},
		{"gitlab-token", "receiver.signature.rejects-wrong-secret", false},
		{"slack", "receiver.acknowledge.handshake", false},
	} {
		p := load(t, c.profile)
		reason, no := p.NotApplicable(c.id)
		if no != c.no || (reason != "") != c.no {
			t.Errorf("%s %s: got %v, %q", c.profile, c.id, no, reason)
		}
		if level := p.Level(c.id, "FALLBACK"); (level == profile.NotApplicableLevel) != c.no {
			t.Errorf("%s %s: level %s", c.profile, c.id, level)
		}
	}
}

func TestTheProfileDecidesBeforeTheCatalogue(t *testing.T) {
	p := load(t, "delivery-envelope")
	if got := p.Level("receiver.signature.accepts-any-in-list", "MUST"); got != "SHOULD" {
		t.Errorf("got %s", got)
	}
	if got := p.Level("receiver.signature.accepts-valid", "MUST"); got != "MUST" {
		t.Errorf("got %s", got)
	}
	text := strings.Replace(string(p.YAML()), "levels:\n", "levels:\n  receiver.signature.no-oracle: n/a\n  receiver.signature.accepts-ed25519: MAY\n", 1)
	p, err := profile.Parse("mine", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if reason, no := p.NotApplicable("receiver.signature.no-oracle"); !no || reason == "" || p.Level("receiver.signature.no-oracle", "MUST") != "n/a" {
		t.Errorf("n/a by the profile: %v, %q", no, reason)
	}
	if reason, no := p.NotApplicable("receiver.signature.accepts-ed25519"); no || reason != "" && no {
		t.Errorf("applicable by the profile: %v, %q", no, reason)
	}
}

func TestLevelsAreOverriddenWhereTheProviderIsLenient(t *testing.T) {
	var lenient []string
	for _, name := range profile.Names() {
		if load(t, name).Level("receiver.replay.rejects-future", "MUST") == "SHOULD" {
			lenient = append(lenient, name)
		}
	}
	want := []string{"elevenlabs", "hubspot", "mailgun", "paddle", "slack", "stripe", "zoom"}
	if !slices.Equal(lenient, want) {
		t.Errorf("got %v, want %v", lenient, want)
	}
}

func TestHeadersOfProvidersNameTheEvent(t *testing.T) {
	h := load(t, "github").Headers
	if h["X-GitHub-Event"] != "{type}" || len(slices.Collect(maps.Keys(h))) != 2 {
		t.Errorf("got %v", h)
	}
}
