package sender

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/profile"
)

// stage opens senders with a fake endpoint and a timeline around each.
type stage struct {
	profile *profile.Profile
	mode    string
}

type opener = func(context.Context, drive.SenderSetup) (drive.Sender, error)

// env makes an Env around a sender. The second result ends all of it.
func (r *stage) env(ctx context.Context, open opener) (*Env, func(context.Context) error, error) {
	virtual := r.mode == Virtual
	var now clock.Clock = clock.New()
	mock := clock.NewMock()
	if virtual {
		mock.Set(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		now = mock
	}
	server, err := fakeendpoint.Start(fakeendpoint.Config{Clock: now, Profile: r.profile, Limits: fakeendpoint.Limits{Record: 64 << 20}})
	if err != nil {
		return nil, nil, err
	}
	s, err := open(ctx, drive.SenderSetup{Profile: r.profile.Name, Virtual: virtual, Now: now.Now(), AllowHosts: []string{"127.0.0.1"}, CACertificate: string(server.CAPEM())})
	if err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	timeline := drive.NewRealTimeline()
	if virtual {
		if timeline, err = drive.NewTimeline(drive.TimelineConfig{Sender: s, Server: server, Clock: mock, Stall: 20 * time.Second}); err != nil {
			return nil, nil, errors.Join(err, s.Close(ctx), server.Close())
		}
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var owner sync.WaitGroup
	var failed error
	owner.Go(func() { failed = timeline.Run(running) })
	end := func(ctx context.Context) error {
		stop()
		owner.Wait()
		return errors.Join(failed, s.Close(ctx), server.Close())
	}
	e := &Env{Subject: s, Server: server, Timeline: timeline, Profile: r.profile, Mode: r.mode, Random: random}
	e.Another = func(ctx context.Context, instances int) (*Env, func(context.Context) error, error) {
		return r.env(ctx, func(ctx context.Context, setup drive.SenderSetup) (drive.Sender, error) {
			return another(ctx, s, setup.Now, instances)
		})
	}
	e.Prepare()
	return e, end, nil
}

// another starts a sender of the same kind on a fresh state, as one process or
// as two.
func another(ctx context.Context, s drive.Sender, now time.Time, instances int) (drive.Sender, error) {
	one, err := s.Another(ctx, now, false)
	if err != nil || instances < 2 {
		return one, err
	}
	two, err := one.Another(ctx, now, true)
	if err != nil {
		return nil, errors.Join(err, one.Close(ctx))
	}
	return drive.Twins(one, two), nil
}

func random(purpose string) *rand.ChaCha8 {
	var seed [32]byte
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose))
	binary.LittleEndian.PutUint64(seed[:], h.Sum64())
	return rand.NewChaCha8(seed)
}

// newReference makes an Env around a process that is the reference sender.
func newReference(t *testing.T, profileName, mode string, env ...string) *Env {
	t.Helper()
	p, err := profile.Load(profileName)
	if err != nil {
		t.Fatal(err)
	}
	command, variables := adapterCommand(t)
	env = append(env, variables...)
	r := &stage{p, mode}
	e, end, err := r.env(t.Context(), func(ctx context.Context, setup drive.SenderSetup) (drive.Sender, error) {
		setup.State = t.TempDir()
		return drive.SenderExec(ctx, drive.SenderExecConfig{SenderSetup: setup, Command: command, Env: env, Log: t.Output()})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := end(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return e
}

// judged records and judges the requirements of some groups.
func judged(t *testing.T, e *Env, groups ...string) []evidence.Ruling {
	t.Helper()
	if p := RunPreflight(t.Context(), e); !p.Accepted {
		t.Errorf("the preflight is not accepted: %+v, %s", p.Diagnosis, p.Transcript.Error)
	}
	questions := ask(e, func(id string) bool { return slices.Contains(groups, groupOf(id)) })
	return ruledOn(t, e, questions)
}

func groupOf(id string) string { return strings.Split(id, ".")[1] }

// ask makes the questions of a run.
func ask(e *Env, wanted func(id string) bool) []suite.Question {
	var questions []suite.Question
	for _, row := range catalogue.OfPart(catalogue.Sender) {
		if !wanted(row.ID) {
			continue
		}
		q := suite.Question{Requirement: row, Level: e.Profile.Level(row.ID, row.Level)}
		for _, need := range row.Needs {
			if !e.Offers(need) {
				q.Skip = &evidence.Skip{Reason: evidence.NotDeclared, Detail: need}
			}
		}
		questions = append(questions, q)
	}
	return questions
}

// ruledOn records what the questions need and answers them.
func ruledOn(t *testing.T, e *Env, questions []suite.Question) []evidence.Ruling {
	t.Helper()
	wanted := func(id string) bool {
		return slices.ContainsFunc(questions, func(q suite.Question) bool { return q.Requirement.ID == id && q.Skip == nil })
	}
	var transcripts []evidence.Transcript
	for _, phase := range Scenarios(e, wanted) {
		transcripts = append(transcripts, suite.Record(t.Context(), suite.Config{SideBySide: len(phase)}, phase)...)
	}
	return suite.Judge(questions, Checks(), transcripts)
}

// engineGroups are the groups that this file's tests are about; the others have
// tests of their own.
func engineGroups() []string {
	return []string{"request", "signature", "rotation", "resend", "log", "outbox"}
}

func TestTheReferenceConforms(t *testing.T) {
	for _, tt := range []struct{ profile, mode string }{
		{"standard-webhooks", Virtual}, {"delivery-envelope", Virtual}, {"standard-webhooks", Scaled},
	} {
		t.Run(tt.profile+" in "+tt.mode+" time", func(t *testing.T) {
			e := newReference(t, tt.profile, tt.mode)
			for _, r := range judged(t, e, engineGroups()...) {
				switch r.Outcome {
				case evidence.Pass, evidence.Info:
				case evidence.Skipped:
					t.Logf("%s is skipped: %s: %s", r.Requirement, r.Skip.Reason, r.Skip.Detail)
				default:
					t.Errorf("%s: %s %s %+v", r.Requirement, r.Outcome, r.Detail, r.Findings)
				}
			}
		})
	}
}
