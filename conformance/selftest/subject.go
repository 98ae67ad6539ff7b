// Package selftest runs the suite against itself: against the reference, which
// it must not blame, and against every mutant, which must fail the requirements
// that it declares and no others. [Run] makes the matrix.
package selftest

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/reference/mutant"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
)

// The scaled numbers of a self-test. What a run waits for shrinks, and the
// mutants' faults with it, so that a hundred runs end within a minute. The
// suite and the mutants read them from one place.
const (
	ackTimeout  = 9 * time.Second        // the provider's timeout; 15 s in the profile
	fastAnswer  = 4 * time.Second        // 1 s; longer here, as many runs share the machine
	burstAnswer = 6 * time.Second        // 2 s; likewise
	process     = 4 * time.Second        // 15 s; likewise
	stall       = 6 * time.Second        // how long a receiver may hold a body; 65 s
	settle      = 120 * time.Millisecond // 1.2 s; a mutant works at once or never
	drip        = 50 * time.Millisecond  // between the bytes of a slow body; 1 s
	flood       = 100 * time.Millisecond // 10 s
	floodLeast  = 150                    // above what mutants wear out at
	floodMore   = 10 * time.Second       // to get there on a busy machine
	oversize    = 12 << 20               // 64 MiB; still more than the kernel's buffers of both sides hold
	burstSize   = 96                     // 200; still more at a time than any pool of a mutant's
	headerTop   = 6 << 20                // 16 MiB; likewise
	retry       = 4 * time.Second        // until a failed event is tried again; 75 s
	slowAPI     = 5 * time.Second        // of the provider; 15 s, and here more than fastAnswer, too
)

// BodyTimeout is how long a mutant lets a body take; 30 s in the reference.
const BodyTimeout = 700 * time.Millisecond

func bounds() receiver.Bounds {
	b := receiver.DefaultBounds()
	b.Process, b.Settle, b.Retry, b.ProviderDelay = process, settle, retry, slowAPI
	b.FloodLeast, b.FloodMore, b.Oversize, b.HeaderTop, b.BurstSize = floodLeast, floodMore, oversize, headerTop, burstSize
	b.Fast, b.Burst, b.Stall, b.Drip, b.Flood = fastAnswer, burstAnswer, stall, drip, flood
	return b
}

// subject is a mutant, or the reference, ready to be judged.
type subject struct {
	config   conformance.Config
	receiver drive.Receiver
	clean    func() error // after the receiver is closed
}

// prepare starts a mutant on loopback and makes the configuration of its run.
func (o Options) prepare(ctx context.Context, m mutant.Mutant, c clock.Clock) (subject, error) {
	p, err := scaled(m.Profile)
	if err != nil {
		return subject{}, err
	}
	scheme, err := p.Scheme()
	if err != nil {
		return subject{}, fmt.Errorf("making the scheme of %s: %w", p.Name, err)
	}
	secrets, configured, err := newSecrets(scheme, rand.NewChaCha8([32]byte{byte(o.Seed)}))
	if err != nil {
		return subject{}, err
	}
	start := o.serve
	if slices.Contains(m.Needs, mutant.Managed) {
		start = o.exec
	}
	r, clean, err := start(ctx, m, p, scheme, configured, c)
	if err != nil {
		return subject{}, fmt.Errorf("starting %s: %w", m.Name, err)
	}
	return subject{receiver: r, clean: clean, config: conformance.Config{
		Receiver: r, Target: "mutant:" + m.Name, Profile: p, Secrets: secrets, Clock: c, Seed: o.Seed,
		Bounds: bounds(), Slow: true, SideBySide: sideBySide(m), Rate: 1e6, Load: true,
	}}, nil
}

// exec runs a mutant as a process of its own, which can be killed.
func (o Options) exec(ctx context.Context, m mutant.Mutant, _ *profile.Profile, _ signature.Scheme, s drive.Secrets, _ clock.Clock) (drive.Receiver, func() error, error) {
	command, err := o.command(m.Name)
	if err != nil {
		return nil, nil, err
	}
	state, err := os.MkdirTemp("", "whconform-selftest-")
	if err != nil {
		return nil, nil, fmt.Errorf("making a state folder: %w", err)
	}
	clean := func() error { return os.RemoveAll(state) }
	r, err := drive.Exec(ctx, drive.ExecConfig{Command: command, Secrets: s, State: state})
	if err != nil {
		return nil, nil, errors.Join(err, clean())
	}
	observed, err := drive.Observed(r, observer)
	return observed, clean, err
}

// command starts a mutant as a process: this program's own, unless the options
// name another.
func (o Options) command(name string) ([]string, error) {
	if o.Command != nil {
		return o.Command(name), nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	return []string{self, "reference", "receiver", "--mutant", name, "--body-timeout", BodyTimeout.String()}, nil
}

// observer asks a mutant how often an event had its effect.
func observer(r drive.Receiver) (drive.Observer, error) {
	return drive.ObserveURL(drive.ObserveURLConfig{Template: strings.TrimSuffix(r.Target(0).URL, "/") + "/_observe/events/{id}"})
}

// sideBySide is how many scenarios of a mutant's run are recorded at a time.
func sideBySide(m mutant.Mutant) int {
	if slices.Contains(m.Needs, mutant.OneAtATime) {
		return 1
	}
	return 8
}

// scaled is a profile with the provider's timeout of a self-test.
func scaled(name string) (*profile.Profile, error) {
	p, err := profile.Load(name)
	if err != nil {
		return nil, err
	}
	changed := *p
	changed.AckTimeout = ackTimeout
	return &changed, nil
}

// newSecrets makes the current and the previous secret, and an Ed25519 key for
// schemes that know such.
func newSecrets(scheme signature.Scheme, random *rand.ChaCha8) ([]string, drive.Secrets, error) {
	spec := scheme.Spec()
	var s drive.Secrets
	var err error
	if s.Current, err = spec.NewSecret(random); err == nil {
		s.Previous, err = spec.NewSecret(random)
	}
	if err != nil {
		return nil, s, fmt.Errorf("making secrets: %w", err)
	}
	secrets := []string{s.Current, s.Previous}
	if !spec.Knows(signature.Ed25519) {
		return secrets, s, nil
	}
	seed := make([]byte, ed25519.SeedSize)
	_, _ = random.Read(seed) // never fails
	private := spec.Key.Private + base64.StdEncoding.EncodeToString(seed)
	key, err := scheme.Key("ed25519", private)
	if err != nil {
		return nil, s, fmt.Errorf("making an Ed25519 key: %w", err)
	}
	s.Public = key.PublicText()
	return append(secrets, private), s, nil
}

// readKeys reads what a receiver is configured with. Unset and empty secrets
// give no keys: what a receiver makes of that is what is tried.
func readKeys(scheme signature.Scheme, s drive.Secrets) ([]signature.Key, error) {
	var keys []signature.Key
	for _, text := range []string{s.Current, s.Previous, s.Public} {
		if text == "" {
			continue
		}
		key, err := scheme.Key("key", text)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}
