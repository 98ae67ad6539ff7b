package sender

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/drive/adapter"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/profile"
	reference "github.com/whconform/whconform/reference/sender"
)

// rig is a run against the reference sender in this process.
type rig struct {
	env *Env
	ctx context.Context
}

// newRig starts the reference in a clock mode, changed as a mutant would be.
func newRig(t *testing.T, mode, contract string, change func(*reference.Options)) *rig {
	t.Helper()
	p, err := profile.Load(contract)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	now := time.Date(2026, 11, 14, 9, 0, 0, 0, time.UTC)
	mock := clock.NewMock()
	mock.Set(now)
	var time clock.Clock = mock
	if mode == Scaled {
		time = clock.New()
	}
	server, err := fakeendpoint.Start(fakeendpoint.Config{Clock: time, Profile: p, Hosts: AllowedNames()})
	if err != nil {
		t.Fatal(err)
	}
	names, err := drive.NewNameServer()
	if err != nil {
		t.Fatal(err)
	}
	home, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	setup := drive.SenderSetup{Profile: contract, State: t.TempDir(), Virtual: mode == Virtual, Now: now, AllowHosts: append(AllowedNames(), home.Hostname()), Resolver: names.Addr(), CACertificate: string(server.CAPEM())}
	subject, err := drive.SenderPeer(ctx, setup, drive.SenderOptions{}, func(_ context.Context, _ drive.SenderSetup, o adapter.Options) (adapter.Peer, error) {
		control := reference.NewControl(reference.ControlOptions{Change: change})
		return adapter.Local(methodsOf(control), o), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	line := drive.NewRealTimeline()
	if mode == Virtual {
		if line, err = drive.NewTimeline(drive.TimelineConfig{Sender: subject, Server: server, Clock: mock}); err != nil {
			t.Fatal(err)
		}
	}
	owned := make(chan error, 1)
	go func() { owned <- line.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-owned; err != nil {
			t.Errorf("the timeline: %v", err)
		}
		err := errors.Join(subject.Close(context.Background()), server.Close(), names.Close())
		if err != nil {
			t.Errorf("ending: %v", err)
		}
	})
	e := &Env{Subject: subject, Server: server, Timeline: line, Profile: p, Mode: mode, Names: names,
		Random: func(string) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{}) }}
	e.Prepare()
	return &rig{env: e, ctx: ctx}
}

// ruling is what was made of one requirement.
type ruling struct {
	outcome  string // "pass", "found", "skip", "error"
	detail   string
	findings []evidence.Finding
}

// rule records and judges requirements, and returns what was made of each.
func (r *rig) rule(t *testing.T, wanted func(id string) bool) map[string]ruling {
	t.Helper()
	transcripts := map[string]evidence.Transcript{}
	for _, phase := range Scenarios(r.env, wanted) {
		for _, transcript := range suite.Record(r.ctx, suite.Config{SideBySide: len(phase)}, phase) {
			transcripts[transcript.Scenario] = transcript
			if testing.Verbose() {
				t.Logf("%s took %d ms", transcript.Scenario, transcript.TookMS)
			}
		}
	}
	out := map[string]ruling{}
	for _, c := range Checks() {
		if wanted(c.Requirement) {
			transcript := transcripts[c.Scenario]
			out[c.Requirement] = ruled(c, &transcript)
		}
	}
	return out
}

func ruled(c suite.Check, t *evidence.Transcript) ruling {
	control := t.Find(t.Control)
	skip, skipped := t.Skips[c.Requirement]
	switch {
	case t.Scenario == "":
		return ruling{outcome: "error", detail: "its scenario was not recorded"}
	case t.Error != "":
		return ruling{outcome: "error", detail: t.Error}
	case t.Partial:
		return ruling{outcome: "error", detail: "its scenario was interrupted"}
	case skipped:
		return ruling{outcome: "skip", detail: string(skip.Reason) + ": " + skip.Detail}
	case t.Control != "" && (control == nil || !control.OK()):
		return ruling{outcome: "skip", detail: "its control did not arrive"}
	}
	if findings := c.Judge(t); len(findings) > 0 {
		return ruling{outcome: "found", findings: findings}
	}
	return ruling{outcome: "pass"}
}
