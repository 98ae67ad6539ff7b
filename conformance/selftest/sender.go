package selftest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"slices"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/drive/adapter"
	checks "github.com/whconform/whconform/conformance/sender"
	"github.com/whconform/whconform/reference/mutant"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/sender"
)

// SenderMethods are a reference sender's methods as an adapter serves them. The
// reference does not know the adapter protocol's package, and so its errors
// carry their codes in a type of its own. Capabilities are declared beside the
// sender's own: "managed" and "instances" are for who serves it as a process.
func SenderMethods(c *sender.Control, capabilities ...string) adapter.Methods {
	methods := adapter.Methods{}
	for name, method := range c.Methods() {
		methods[name] = func(ctx context.Context, params json.RawMessage) (any, error) {
			result, err := method(ctx, params)
			var coded *sender.ControlError
			if errors.As(err, &coded) {
				err = &adapter.Error{Code: coded.Code, Message: coded.Message}
			}
			if err != nil || name != adapter.MethodInitialize {
				return result, err
			}
			return declaring(result, capabilities)
		}
	}
	return methods
}

// declaring is a result of initialize with capabilities more.
func declaring(result any, capabilities []string) (any, error) {
	text, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("writing what the sender declares: %w", err)
	}
	var about adapter.Initialized
	if err := json.Unmarshal(text, &about); err != nil {
		return nil, fmt.Errorf("reading what the sender declares: %w", err)
	}
	about.Capabilities = slices.Concat(about.Capabilities, capabilities)
	return about, nil
}

// ProcessCapabilities are those of a sender that is a process of its own on a
// state folder.
func ProcessCapabilities() []string { return []string{drive.Managed} }

// judgeSender runs the suite against one mutant sender and compares.
func (o Options) judgeSender(ctx context.Context, m mutant.SenderMutant) (row Row) {
	row = newRow(catalogue.Sender, m.Name, m.Doc)
	config, clean, err := o.prepareSender(m)
	if err != nil {
		row.Wrong = err.Error()
		return row
	}
	defer func() {
		if err := clean(); err != nil && row.Wrong == "" {
			row.Wrong = err.Error()
		}
	}()
	plan, err := conformance.Prepare(config)
	if err != nil {
		row.Wrong = err.Error()
		return row
	}
	recordErr := plan.Record(ctx)
	row.Report = plan.Report()
	row.Verdict = row.Report.Verdict
	row.compare(m.Fails, "", recordErr)
	return row
}

// prepareSender makes the configuration of a mutant sender's run.
func (o Options) prepareSender(m mutant.SenderMutant) (conformance.Config, func() error, error) {
	p, err := profile.Load(m.Profile)
	if err != nil {
		return conformance.Config{}, nil, err
	}
	state, err := os.MkdirTemp("", "whconform-selftest-")
	if err != nil {
		return conformance.Config{}, nil, fmt.Errorf("making a state folder: %w", err)
	}
	start := serveSender(m)
	if slices.Contains(m.Needs, mutant.Managed) || slices.Contains(m.Needs, mutant.Instances) {
		if start, err = o.execSender(m); err != nil {
			return conformance.Config{}, nil, errors.Join(err, os.RemoveAll(state))
		}
	}
	bounds := checks.DefaultBounds(checks.Virtual)
	bounds.Sparse = true
	config := conformance.Config{
		Target: "mutant:" + m.Name, Profile: p, Clock: clock.New(), Seed: o.Seed, Slow: true, SenderBounds: bounds,
		Skip: []string{"sender.retry.throttles", "sender.timeout.isolation-many"}, // told and never judged, and the longest
		Sender: func(ctx context.Context, setup drive.SenderSetup) (drive.Sender, error) {
			setup.State = state
			return start(ctx, setup)
		},
	}
	return config, func() error { return os.RemoveAll(state) }, nil
}

// serveSender runs a mutant in this process: most faults do not need another.
func serveSender(m mutant.SenderMutant) conformance.StartSender {
	return func(ctx context.Context, setup drive.SenderSetup) (drive.Sender, error) {
		return drive.SenderPeer(ctx, setup, drive.SenderOptions{}, func(_ context.Context, _ drive.SenderSetup, options adapter.Options) (adapter.Peer, error) {
			return adapter.Local(SenderMethods(m.Control(sender.ControlOptions{Random: coarse{}})), options), nil
		})
	}
}

// execSender runs a mutant as a process of its own, which can be killed.
func (o Options) execSender(m mutant.SenderMutant) (conformance.StartSender, error) {
	command, err := o.senderCommand(m)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, setup drive.SenderSetup) (drive.Sender, error) {
		return drive.SenderExec(ctx, drive.SenderExecConfig{SenderSetup: setup, Command: command})
	}, nil
}

// senderCommand starts a mutant sender as a process: this program's own, unless
// the options name another.
func (o Options) senderCommand(m mutant.SenderMutant) ([]string, error) {
	if o.SenderCommand != nil {
		return o.SenderCommand(m.Name), nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	command := []string{self, "reference", "sender", "--adapter"}
	if m.Name != mutant.SenderReference(m.Profile).Name {
		command = append(command, "--mutant", m.Name)
	}
	return command, nil
}

// coarse is a random source whose numbers of eight bytes, by which the reference
// draws how far a delay is from its schedule, are one of a few. A timeline has a
// step for each instant at which something is due, and a run with all its
// messages at instants of their own takes three times as long.
type coarse struct{}

// Read implements io.Reader.
func (coarse) Read(b []byte) (int, error) {
	if len(b) != 8 {
		return rand.Read(b)
	}
	const steps = 16
	binary.LittleEndian.PutUint64(b, mathrand.Uint64N(steps)*(1<<64/steps))
	return len(b), nil
}
