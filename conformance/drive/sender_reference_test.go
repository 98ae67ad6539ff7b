package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance/drive/adapter"
	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/sender"
)

// dialReference serves the reference sender in this process.
func dialReference(_ context.Context, _ SenderSetup, o adapter.Options) (adapter.Peer, error) {
	methods := adapter.Methods{}
	for name, method := range sender.NewControl(sender.ControlOptions{}).Methods() {
		methods[name] = adapter.Method(method)
	}
	begin := methods[adapter.MethodInitialize]
	methods[adapter.MethodInitialize] = func(ctx context.Context, params json.RawMessage) (any, error) {
		about, err := begin(ctx, params)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(about)
		if err != nil {
			return nil, err
		}
		var declared adapter.Initialized
		if err := json.Unmarshal(text, &declared); err != nil {
			return nil, err
		}
		// Whoever starts it says whether it can be started again: here it can.
		declared.Capabilities = append(declared.Capabilities, Managed)
		return declared, nil
	}
	return adapter.Local(methods, o), nil
}

// referenceSender is one that the test closes.
func referenceSender(t *testing.T, now time.Time) Sender {
	t.Helper()
	setup := SenderSetup{Profile: "standard-webhooks", State: t.TempDir(), Virtual: true, Now: now, AllowHosts: []string{"127.0.0.1"}}
	s, err := SenderPeer(t.Context(), setup, SenderOptions{}, dialReference)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestTheReferenceIsDrivenThroughItsAdapter(t *testing.T) {
	mock := clock.NewMock()
	mock.Set(epoch)
	server, err := fakeendpoint.Start(fakeendpoint.Config{Clock: mock})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	s := referenceSender(t, epoch)
	about := s.About()
	if about.Name == "" || len(about.Schedule) != 10 || about.Timeout == nil || about.JitterHigh == nil {
		t.Errorf("it declares %+v", about)
	}
	timeline, err := NewTimeline(TimelineConfig{Sender: s, Server: server, Clock: mock})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	owned := make(chan error, 1)
	defer func() {
		cancel()
		if err := <-owned; err != nil {
			t.Error(err)
		}
	}()
	go func() { owned <- timeline.Run(ctx) }()
	began := time.Now()
	timeline.Join()
	var done sync.WaitGroup
	for i, script := range []string{"200", "500,200", "500", "hang,200", "hang", "slow(14s)", "slow(16s),200", "503(retry-after=600),200", "reset,200"} {
		timeline.Join()
		done.Go(func() {
			defer timeline.Leave()
			for _, wrong := range throughReference(ctx, s, server, timeline, fmt.Sprintf("s%d", i), script) {
				t.Errorf("%s: %s", script, wrong)
			}
		})
	}
	timeline.Leave()
	done.Wait()
	t.Logf("90 hours in %v", time.Since(began).Round(time.Millisecond))
}

// throughReference plays a scenario and returns what is wrong: the log of the
// sender and the record of the fake endpoint are to tell of the same instants.
func throughReference(ctx context.Context, s Sender, server *fakeendpoint.Server, timeline Timeline, name, text string) []string {
	script, err := fakeendpoint.ParseScript(text)
	if err != nil {
		return []string{err.Error()}
	}
	path := server.Path(name, script)
	e, err := s.CreateEndpoint(ctx, EndpointSpec{URL: path.URL(), EventTypes: []string{"drive." + name}})
	if err != nil {
		return []string{err.Error()}
	}
	now := timeline.Now()
	ids, err := s.Publish(ctx, Event{Type: "drive." + name, At: now, Payload: []byte(`{"n":1}`), EndpointIDs: []string{e.ID}})
	if err != nil || len(ids) != 1 {
		return []string{fmt.Sprintf("publishing: %v, %v", ids, err)}
	}
	if err := timeline.Until(ctx, now.Add(90*time.Hour)); err != nil {
		return []string{err.Error()}
	}
	log, err := s.Attempts(ctx, ids[0])
	if err != nil {
		return []string{err.Error()}
	}
	seen := path.Attempts()
	if len(seen) != len(log) || len(seen) == 0 {
		return []string{fmt.Sprintf("%d attempts arrived, %d are in the log", len(seen), len(log))}
	}
	var wrong []string
	for i := range seen {
		if off := seen[i].Began.Sub(log[i].At).Abs(); off > time.Millisecond {
			wrong = append(wrong, fmt.Sprintf("attempt %d arrived at %v and is logged at %v", i+1, seen[i].Began, log[i].At))
		}
		if i == 0 {
			continue
		}
		gap, scheduled := seen[i].Began.Sub(seen[i-1].Ended), ladder[i]
		if strings.Contains(text, "600") {
			scheduled = 10 * time.Minute
		}
		if gap < scheduled || gap > scheduled+scheduled/10+100*time.Millisecond {
			wrong = append(wrong, fmt.Sprintf("attempt %d came after %v, scheduled for %v", i+1, gap, scheduled))
		}
	}
	return wrong
}

func TestARestartedSenderGoesOnWhereItsClockStood(t *testing.T) {
	s := referenceSender(t, epoch)
	later := epoch.Add(time.Hour)
	if _, err := s.Advance(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	e, err := s.CreateEndpoint(t.Context(), EndpointSpec{URL: "http://127.0.0.1:1/", EventTypes: []string{"drive.restart"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, kill := range []bool{true, false} {
		if err := s.Restart(t.Context(), kill); err != nil {
			t.Fatal(err)
		}
		state, err := s.Advance(t.Context(), later)
		if err != nil || !state.Now.Equal(later) || !state.Told {
			t.Errorf("kill %v: %+v, %v", kill, state, err)
		}
		if got, err := s.EndpointStatus(t.Context(), e.ID); err != nil || got.Status != "enabled" {
			t.Errorf("kill %v: %+v, %v", kill, got, err)
		}
	}
}

func TestAnotherSenderHasAStateOfItsOwn(t *testing.T) {
	s := referenceSender(t, epoch)
	e, err := s.CreateEndpoint(t.Context(), EndpointSpec{URL: "http://127.0.0.1:1/"})
	if err != nil {
		t.Fatal(err)
	}
	for _, same := range []bool{true, false} {
		other, err := s.Another(t.Context(), epoch.Add(time.Minute), same)
		if err != nil {
			t.Fatal(err)
		}
		_, err = other.EndpointStatus(t.Context(), e.ID)
		var refused *adapter.Error
		if known := err == nil; known != same || !known && !errors.As(err, &refused) {
			t.Errorf("same state %v: %v", same, err)
		}
		if state, err := other.Advance(t.Context(), epoch.Add(time.Minute)); err != nil || !state.Now.Equal(epoch.Add(time.Minute)) {
			t.Errorf("its clock stands at %v, %v", state.Now, err)
		}
		if err := other.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if !slices.Contains(s.About().Capabilities, Instances) {
		t.Errorf("it declares %v", s.About().Capabilities)
	}
}
