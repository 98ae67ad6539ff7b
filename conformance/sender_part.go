package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/sender"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/signature"
)

// The clock modes of a sender's run.
const (
	ModeVirtual = sender.Virtual // the suite moves the sender's clock
	ModeScaled  = sender.Scaled  // real time, and a shorter schedule that the sender declares
)

// StartSender starts a sender for a run, which closes it.
type StartSender func(context.Context, drive.SenderSetup) (drive.Sender, error)

// senderPart judges a sender.
type senderPart struct {
	config   Config
	stage    *stage            // what the scenarios share, since open
	resolver *drive.NameServer // likewise
}

func newSenderPart(c Config) (part, error) {
	switch c.Mode {
	case "", ModeVirtual, ModeScaled:
		return &senderPart{config: c}, nil
	}
	return nil, usage("there is no clock mode %q; there are %s and %s", c.Mode, ModeVirtual, ModeScaled)
}

func (*senderPart) kind() string                                 { return catalogue.Sender }
func (*senderPart) checks() []suite.Check                        { return sender.Checks() }
func (p *senderPart) target() string                             { return withoutCredentials(p.config.Target) }
func (*senderPart) judgedFromPreflight(id string) bool           { return sender.JudgedFromPreflight(id) }
func (*senderPart) remark(r []evidence.Ruling) []evidence.Ruling { return r }

// keys are none. The fake endpoint takes the secrets of its paths out of what it
// records, and the driver out of what an adapter says; to look for some hundred
// keys in a whole run again takes as long as a part of the run.
func (*senderPart) keys() []signature.Key { return nil }

// offers tells what the sender declared. Before it is started nobody knows, and
// everything may be asked for.
func (p *senderPart) offers(need string) bool { return p.stage == nil || p.stage.env.Offers(need) }

func (p *senderPart) capabilities() []string {
	if p.stage == nil {
		return []string{}
	}
	return p.stage.env.Capabilities()
}

func (p *senderPart) clock() string {
	if p.stage == nil {
		return ""
	}
	return p.stage.env.Mode
}

func (p *senderPart) declared() map[string]string {
	if p.stage == nil {
		return nil
	}
	return p.stage.env.Declared.Facts()
}

// open starts the name server, the fake endpoint and the sender, in this order:
// the sender is told of both.
func (p *senderPart) open(ctx context.Context) error {
	var err error
	if p.resolver, err = drive.NewNameServer(); err != nil {
		return err
	}
	virtual := p.config.Mode != ModeScaled
	s, err := p.newStage(virtual)
	if err != nil {
		return err
	}
	s.env.Subject, err = p.config.Sender(ctx, drive.SenderSetup{
		Profile: p.config.Profile.Name, Virtual: virtual, Now: s.clock.Now(), AllowHosts: append([]string{"127.0.0.1"}, sender.AllowedNames()...),
		Resolver: p.resolver.Addr(), CACertificate: string(s.env.Server.CAPEM()),
	})
	if err != nil {
		return errors.Join(err, s.env.Server.Close())
	}
	p.stage = s // from here on there is a sender that can be asked what it offers
	if virtual && !s.env.Subject.Has(drive.Clock) {
		if p.config.Mode == ModeVirtual {
			return fmt.Errorf("the sender %q does not declare clock.advance, so its clock cannot be moved; leave --clock out, or judge it by --clock %s", s.env.Subject.About().Name, ModeScaled)
		}
		// It runs in real time whatever the suite says, so the suite does too.
		if err := p.toRealTime(s); err != nil {
			return err
		}
	}
	return s.begin(ctx)
}

// toRealTime gives a stage a fake endpoint on the real clock. Nothing has been
// sent yet, so nobody knows the address of the one it had.
func (p *senderPart) toRealTime(s *stage) error {
	real, err := p.newStage(false)
	if err != nil {
		return err
	}
	err = s.env.Server.Close()
	real.env.Subject = s.env.Subject
	*s = *real
	return err
}

func (p *senderPart) close(ctx context.Context) error {
	var err error
	if p.stage != nil {
		err = p.stage.end(ctx)
	}
	if p.resolver != nil {
		err = errors.Join(err, p.resolver.Close())
	}
	return err
}

func (p *senderPart) preflight(ctx context.Context) preflight {
	r := sender.RunPreflight(ctx, p.stage.env)
	r.Transcript.Received = true
	return preflight{r.Transcript, r.Accepted, r.Unreachable, r.Diagnosis}
}

// record records phase by phase. All scenarios of a phase are under way at one
// time: the sender's clock passes for all of them at once.
func (p *senderPart) record(ctx context.Context, wanted func(string) bool) []evidence.Transcript {
	phases := sender.Scenarios(p.stage.env, wanted)
	progress := newPhases(phases, p.config.Progress)
	var all []evidence.Transcript
	for _, phase := range phases {
		for i := range phase {
			phase[i].Received = true
		}
		all = append(all, suite.Record(ctx, suite.Config{SideBySide: len(phase), Progress: progress.step}, phase)...)
	}
	return all
}

// stage is a sender with what it delivers to: a fake endpoint and a timeline on
// one clock.
type stage struct {
	env   *sender.Env
	clock clock.Clock
	stop  context.CancelCauseFunc
	ended chan error
}

// newStage makes a stage whose sender is still missing.
func (p *senderPart) newStage(virtual bool) (*stage, error) {
	s := &stage{clock: p.config.Clock}
	mode := ModeScaled
	if virtual {
		mode = ModeVirtual
		mock := clock.NewMock()
		// Whole seconds: timestamps of deliveries have no more.
		mock.Set(p.config.Clock.Now().UTC().Truncate(time.Second))
		s.clock = mock
	}
	config := fakeendpoint.Config{Clock: s.clock, Profile: p.config.Profile}
	if p.stage != nil { // the sender was told of its authority
		config.Certificates = p.stage.env.Server
	}
	server, err := fakeendpoint.Start(config)
	if err != nil {
		return nil, err
	}
	s.env = &sender.Env{
		Server: server, Profile: p.config.Profile, Mode: mode, Random: p.config.random,
		Names: p.resolver, Bounds: p.config.SenderBounds,
	}
	s.env.Another = func(ctx context.Context, instances int) (*sender.Env, func(context.Context) error, error) {
		return p.another(ctx, s, instances)
	}
	return s, nil
}

// begin lets time pass on a stage whose sender is there.
func (s *stage) begin(ctx context.Context) error {
	s.env.Timeline = drive.NewRealTimeline()
	if mock, virtual := s.clock.(*clock.Mock); virtual {
		timeline, err := drive.NewTimeline(drive.TimelineConfig{Sender: s.env.Subject, Server: s.env.Server, Clock: mock})
		if err != nil {
			return err
		}
		s.env.Timeline = timeline
	}
	s.env.Prepare()
	ctx, s.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	s.ended = make(chan error, 1)
	go func() { s.ended <- s.env.Timeline.Run(ctx) }()
	return nil
}

// end closes the sender and the fake endpoint. What the timeline failed of is
// told by those who waited for it.
func (s *stage) end(ctx context.Context) error {
	if s.stop != nil {
		s.stop(errors.New("the run has ended"))
		<-s.ended
	}
	var err error
	if s.env.Subject != nil {
		err = s.env.Subject.Close(ctx)
	}
	return errors.Join(err, s.env.Server.Close())
}

// another makes a stage with a sender of its own, for a scenario that kills it or
// needs two processes on one state.
func (p *senderPart) another(ctx context.Context, of *stage, instances int) (*sender.Env, func(context.Context) error, error) {
	s, err := p.newStage(of.env.Mode == ModeVirtual)
	if err != nil {
		return nil, nil, err
	}
	if s.env.Subject, err = of.env.Subject.Another(ctx, s.clock.Now(), false); err != nil {
		return nil, nil, errors.Join(err, s.end(ctx))
	}
	if instances == 2 {
		second, err := s.env.Subject.Another(ctx, s.clock.Now(), true)
		if err != nil {
			return nil, nil, errors.Join(err, s.end(ctx))
		}
		s.env.Subject = drive.Twins(s.env.Subject, second)
	}
	if err := s.begin(ctx); err != nil {
		return nil, nil, errors.Join(err, s.end(ctx))
	}
	return s.env, s.end, nil
}

// phases tells of scenarios of several recordings as of one.
type phases struct {
	tell        func(suite.Progress)
	done, total int
}

func newPhases(all [][]suite.Scenario, tell func(suite.Progress)) *phases {
	p := &phases{tell: tell}
	for _, phase := range all {
		p.total += len(phase)
	}
	return p
}

// step is called from one goroutine at a time.
func (p *phases) step(s suite.Progress) {
	p.done++
	if p.tell != nil {
		p.tell(suite.Progress{Scenario: s.Scenario, Done: p.done, Total: p.total, Failed: s.Failed})
	}
}
