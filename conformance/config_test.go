package conformance_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/reference/profile"
)

// Nothing is sent by these tests: the host is one that does not exist.
const elsewhere = "http://receiver.invalid/hooks"

func loaded(t *testing.T, name string) *profile.Profile {
	t.Helper()
	p, err := profile.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhatCannotBeRunIsAUsageError(t *testing.T) {
	public := keyOf(t, "private", private).PublicText()
	for _, tt := range []struct {
		name   string
		change func(*conformance.Config)
		want   string
	}{
		{"no receiver", func(c *conformance.Config) { c.Receiver = nil }, "no receiver"},
		{"no secret", func(c *conformance.Config) { c.Secrets = nil }, "no secret: give"},
		{"an Ed25519 key alone", func(c *conformance.Config) { c.Secrets = []string{private} }, "no secret: give"},
		{"three secrets", func(c *conformance.Config) {
			c.Secrets = []string{current, previous, "whsec_enp6enp6enp6enp6enp6enp6enp6enp6enp6enp6eno="}
		}, "secret 3: a receiver in rotation knows two"},
		{"a public key", func(c *conformance.Config) { c.Secrets = []string{current, public} }, "secret 2: a public key cannot sign"},
		{"a secret that is none", func(c *conformance.Config) { c.Secrets = []string{"whsec_%%%not-base64%%%"} }, "reading secret 1"},
		{"a secret that is too short", func(c *conformance.Config) { c.Secrets = []string{"whsec_c2hvcnQ="} }, "reading secret 1"},
		{"a pattern of --run that matches nothing", func(c *conformance.Config) { c.Run = []string{"receiver.signatur.*"} }, "--run"},
		{"a pattern of --skip that matches nothing", func(c *conformance.Config) { c.Skip = []string{"receiver.nothing"} }, "--skip"},
		{"a selection that leaves nothing", func(c *conformance.Config) {
			c.Run, c.Skip = []string{"receiver.replay.*"}, []string{"receiver.*"}
		}, "leaves nothing to judge"},
		{"a selection of what belongs to another kind of subject", func(c *conformance.Config) { c.Run = []string{"sender.*"} }, "leaves nothing to judge"},
		{"only slow rows without --slow", func(c *conformance.Config) { c.Run = []string{"receiver.limits.slow-body"} }, "leaves nothing to judge"},
		{"a negative rate", func(c *conformance.Config) { c.Rate = -1 }, "positive"},
		{"a negative timeout", func(c *conformance.Config) { c.Timeout = -time.Second }, "positive"},
		{"a profile whose scheme is only described", func(c *conformance.Config) { c.Profile = loaded(t, "paypal") }, "profile paypal"},
		{"a payload that cannot be made", func(c *conformance.Config) {
			c.Event = receiver.Event{Render: func(string, string) ([]byte, error) { return nil, errors.New("no field called Order") }}
		}, "no field called Order"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := conformance.Config{Receiver: at(elsewhere), Secrets: []string{current}}
			tt.change(&c)
			r, err := conformance.Run(t.Context(), c)
			if usage := new(conformance.UsageError); !errors.As(err, &usage) {
				t.Fatalf("got %v", err)
			}
			if r != nil {
				t.Error("there is a report")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want %q in it", err, tt.want)
			}
			for _, s := range append(c.Secrets, "not-base64", "c2hvcnQ") {
				if strings.Contains(err.Error(), strings.TrimPrefix(s, "whsec_")) {
					t.Errorf("%q shows a secret", err)
				}
			}
		})
	}
}

// planned is the report of a plan that was never recorded: it tells what was
// decided before anything is sent.
func planned(t *testing.T, c conformance.Config) *report.Report {
	t.Helper()
	plan, err := conformance.Prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	return plan.Report()
}

func TestWhatIsLeftOutIsSkippedForItsReason(t *testing.T) {
	const (
		unsigned, stale        = "receiver.signature.rejects-unsigned", "receiver.replay.rejects-stale"
		slow, flood            = "receiver.limits.slow-body", "receiver.limits.flood"
		constantTime           = "receiver.signature.constant-time"
		rotation, retired      = "receiver.rotation.accepts-old-and-new", "receiver.rotation.drops-retired"
		ed25519, unset         = "receiver.signature.accepts-ed25519", "receiver.signature.unset-secret"
		toBeTried              = evidence.NotReached // nothing was sent
		selected, declared, na = evidence.NotSelected, evidence.NotDeclared, evidence.NotApplicable
	)
	both := []string{current, previous, private}
	for _, tt := range []struct {
		name   string
		config conformance.Config
		want   map[string]evidence.SkipReason
	}{
		{"by default", conformance.Config{Secrets: []string{current}}, map[string]evidence.SkipReason{
			unsigned: toBeTried, stale: toBeTried, slow: selected, constantTime: selected,
			rotation: declared, retired: declared, ed25519: declared, unset: declared, flood: declared,
		}},
		{"with all secrets", conformance.Config{Secrets: both}, map[string]evidence.SkipReason{
			rotation: toBeTried, ed25519: toBeTried, retired: declared,
		}},
		{"with --slow", conformance.Config{Secrets: both, Slow: true}, map[string]evidence.SkipReason{slow: toBeTried, flood: declared, constantTime: selected}},
		{"with --slow and --allow-load", conformance.Config{Secrets: both, Slow: true, Load: true}, map[string]evidence.SkipReason{flood: toBeTried}},
		{"with --allow-load alone", conformance.Config{Secrets: both, Load: true}, map[string]evidence.SkipReason{flood: selected}},
		{"with --run of a group", conformance.Config{Secrets: both, Run: []string{"receiver.replay"}}, map[string]evidence.SkipReason{
			unsigned: selected, stale: toBeTried, ed25519: selected,
		}},
		{"with --run of one row", conformance.Config{Secrets: both, Run: []string{stale}}, map[string]evidence.SkipReason{
			stale: toBeTried, "receiver.replay.rejects-future": selected,
		}},
		{"with --run and --skip", conformance.Config{Secrets: both, Run: []string{"receiver.replay.*"}, Skip: []string{stale}}, map[string]evidence.SkipReason{
			stale: selected, "receiver.replay.rejects-future": toBeTried, unsigned: selected,
		}},
		{"with --skip alone", conformance.Config{Secrets: both, Skip: []string{"receiver.signature.*"}}, map[string]evidence.SkipReason{
			unsigned: selected, stale: toBeTried,
		}},
		{"with --run of what runs only on request", conformance.Config{Secrets: both, Run: []string{constantTime}}, map[string]evidence.SkipReason{constantTime: toBeTried}},
		{"a profile without a timestamp", conformance.Config{Secrets: []string{"a secret of the usual length"}, Profile: loaded(t, "github")}, map[string]evidence.SkipReason{
			stale: na, unsigned: toBeTried,
		}},
		{"a profile without Ed25519", conformance.Config{Secrets: []string{"a secret of the usual length"}, Profile: loaded(t, "delivery-envelope")}, map[string]evidence.SkipReason{
			ed25519: na, unsigned: toBeTried,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.config.Receiver = at(elsewhere)
			r := planned(t, tt.config)
			for id, want := range tt.want {
				got := row(t, r, id)
				if got.Outcome != evidence.Skipped || got.SkipReason != want || got.SkipDetail == "" {
					t.Errorf("%s: %s %s (%s), want %s", id, got.Outcome, got.SkipReason, got.SkipDetail, want)
				}
			}
		})
	}
}

func TestFloodsAreAlwaysAllowedOnLoopback(t *testing.T) {
	for url, want := range map[string]bool{
		"http://127.0.0.1:1/": true, "http://localhost:1/": true, "http://[::1]:1/": true, "http://127.9.9.9/": true,
		elsewhere: false, "http://10.0.0.1/": false, "http://localhost.example.com/": false, "http://127.0.0.1.example.com/": false,
	} {
		if got := conformance.Loopback(url); got != want {
			t.Errorf("%s: loopback is %t", url, got)
		}
		r := planned(t, conformance.Config{Receiver: at(url), Secrets: []string{current}, Slow: true})
		reason := row(t, r, "receiver.limits.flood").SkipReason
		if allowed := reason == evidence.NotReached; allowed != want {
			t.Errorf("%s: the flood is skipped as %s", url, reason)
		}
	}
	if conformance.Loopback("http://%zz") {
		t.Error("what is no URL is loopback")
	}
}

func TestEveryRowOfTheReceiversPartIsListedOnce(t *testing.T) {
	r := planned(t, conformance.Config{Receiver: at(elsewhere), Secrets: []string{current}, Run: []string{"receiver.replay"}})
	seen := map[string]bool{}
	for _, row := range r.Results {
		if seen[row.ID] || !strings.HasPrefix(row.ID, "receiver.") {
			t.Errorf("%s is listed", row.ID)
		}
		seen[row.ID] = true
	}
	if len(seen) < 80 {
		t.Errorf("%d rows are listed", len(seen))
	}
}

func TestTheReportNamesItsTargetWithoutCredentials(t *testing.T) {
	for target, want := range map[string]string{
		"":                                   "http://redacted@receiver.invalid/hooks?tenant=1",
		"https://user:hunter2@example.com/h": "https://redacted@example.com/h",
		"node server.js":                     "node server.js",
		"https://example.com/h":              "https://example.com/h",
	} {
		r := planned(t, conformance.Config{Receiver: at("http://me:hunter2@receiver.invalid/hooks?tenant=1"), Target: target, Secrets: []string{current}})
		if r.Subject.Target != want {
			t.Errorf("%q is named %q, want %q", target, r.Subject.Target, want)
		}
	}
}

func TestCapabilitiesAreThoseOfSubjectAndRun(t *testing.T) {
	r := planned(t, conformance.Config{Receiver: at(elsewhere), Secrets: []string{current}})
	if len(r.Subject.Capabilities) != 0 {
		t.Errorf("a URL offers %v", r.Subject.Capabilities)
	}
	r = planned(t, conformance.Config{Receiver: reference(t, standard(t, time.Second)), Secrets: []string{current, previous, private}})
	for _, want := range []string{"two-secrets", "ed25519", "second-configuration", "load"} {
		if !slices.Contains(r.Subject.Capabilities, want) {
			t.Errorf("%s is missing among %v", want, r.Subject.Capabilities)
		}
	}
}

func TestTheSeedDecidesWhatIsSent(t *testing.T) {
	body := func(seed uint64) string {
		c := config(t, serve(t, small{}))
		c.Seed, c.Run = seed, []string{"receiver.signature.accepts-valid"}
		r, err := conformance.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Seed != seed {
			t.Errorf("the report's seed is %d", r.Seed)
		}
		for _, h := range r.Transcripts[0].Exchanges[0].Request.Headers {
			if strings.EqualFold(h.Name, "webhook-id") {
				return h.Value[len(h.Value)-12:] // ids begin with the time
			}
		}
		t.Fatal("there is no id")
		return ""
	}
	one, again, other := body(1), body(1), body(2)
	if one != again {
		t.Error("two runs of one seed differ")
	}
	if one == other {
		t.Error("runs of two seeds are equal")
	}
}
