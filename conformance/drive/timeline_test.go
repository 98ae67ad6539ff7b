package drive

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/fakeendpoint"
)

var epoch = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// rig is a sender, a fake endpoint and a timeline, which somebody owns.
type rig struct {
	sender   *ladderSender
	server   *fakeendpoint.Server
	timeline *virtual
	run      func() // begins to own the timeline
	owner    func() error
}

func newRig(t *testing.T, seed uint64) *rig {
	t.Helper()
	noLeaks(t)
	mock := clock.NewMock()
	mock.Set(epoch)
	server, err := fakeendpoint.Start(fakeendpoint.Config{Clock: mock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	r := &rig{sender: newLadderSender(t, epoch, seed), server: server}
	made, err := NewTimeline(TimelineConfig{Sender: r.sender, Server: server, Clock: mock})
	if err != nil {
		t.Fatal(err)
	}
	r.timeline = made.(*virtual)
	ctx, cancel := context.WithCancel(t.Context())
	var owner sync.WaitGroup
	r.run = func() { owner.Go(func() { err = r.timeline.Run(ctx) }) }
	r.owner = sync.OnceValue(func() error { cancel(); owner.Wait(); return err })
	t.Cleanup(func() { _ = r.owner() })
	return r
}

// course is a scenario: what its endpoint answers, for how long it is watched,
// and how its attempts are to end.
type course struct {
	name, script string
	messages     int
	watch        time.Duration
	attempts     int
	took         time.Duration // each attempt that fails, and the last one if it is slow
}

// courses are a hundred scenarios.
func courses() []course {
	var out []course
	add := func(n int, c course) {
		name := c.name
		for i := range n {
			c.name = fmt.Sprintf("%s-%d", name, i)
			out = append(out, c)
		}
	}
	add(30, course{name: "one-failure", script: "500,200", messages: 1, watch: time.Minute, attempts: 2})
	add(35, course{name: "three-failures", script: "500*3,200", messages: 1, watch: time.Hour, attempts: 4})
	add(2, course{name: "all-fail", script: "500", messages: 1, watch: 90 * time.Hour, attempts: 10})
	add(8, course{name: "hangs-once", script: "hang,200", messages: 1, watch: time.Minute, attempts: 2, took: ladderTimeout})
	add(5, course{name: "slow-failure", script: "slow(14s,500)*3,200", messages: 1, watch: time.Hour, attempts: 4, took: 14 * time.Second})
	add(5, course{name: "slow-answer", script: "slow(14s)", messages: 1, watch: time.Minute, attempts: 1, took: 14 * time.Second})
	add(5, course{name: "too-slow", script: "slow(16s)*2,200", messages: 1, watch: time.Hour, attempts: 3, took: ladderTimeout})
	add(2, course{name: "hangs", script: "hang", messages: 1, watch: 90 * time.Hour, attempts: 10, took: ladderTimeout})
	add(2, course{name: "drips", script: "drip(1B,1s)", messages: 1, watch: 10 * time.Minute, attempts: 3, took: ladderTimeout})
	add(2, course{name: "pile", script: "hang*8,200", messages: 8, watch: 10 * time.Minute, attempts: 16, took: ladderTimeout})
	add(4, course{name: "days", script: "500*7,200", messages: 1, watch: 130 * time.Hour, attempts: 8})
	return out
}

// play runs one scenario to its end.
func (r *rig) play(ctx context.Context, c course) ([]fakeendpoint.Attempt, error) {
	script, err := fakeendpoint.ParseScript(c.script)
	if err != nil {
		return nil, err
	}
	path := r.server.Path(c.name, script)
	e, err := r.sender.CreateEndpoint(ctx, EndpointSpec{URL: path.URL(), EventTypes: []string{c.name}})
	if err != nil {
		return nil, err
	}
	began := r.timeline.Now()
	for range c.messages {
		if _, err := r.sender.Publish(ctx, Event{Type: c.name, EndpointIDs: []string{e.ID}}); err != nil {
			return nil, err
		}
	}
	if err := r.timeline.Until(ctx, began.Add(c.watch)); err != nil {
		return nil, err
	}
	return path.Attempts(), nil
}

// wrongs is what is not exactly as it should be.
func (r *rig) wrongs(c course, attempts []fakeendpoint.Attempt) (wrong []string) {
	complain := func(format string, args ...any) { wrong = append(wrong, c.name+": "+fmt.Sprintf(format, args...)) }
	if len(attempts) != c.attempts {
		complain("%d attempts, want %d", len(attempts), c.attempts)
	}
	url := r.server.Find(c.name).URL()
	delays := r.sender.chosen(url)
	last := map[string]time.Time{}
	for _, a := range attempts {
		took := c.took
		if a.Response != nil && a.Response.Status == 200 && c.attempts > 1 && !strings.HasPrefix(c.script, "drip") {
			took = 0
		}
		if got := a.Ended.Sub(a.Began); got != took {
			complain("attempt %d took %v, want %v", a.Number, got, took)
		}
		if before, again := last[a.ID]; again {
			gap := a.Began.Sub(before)
			if i := slices.Index(delays, gap); i >= 0 {
				delays = slices.Delete(delays, i, i+1)
			} else if c.messages == 1 {
				complain("attempt %d came %v after the one before, and the sender chose %v", a.Number, gap, delays)
			}
		}
		last[a.ID] = a.Ended
	}
	return wrong
}

// playAll plays all scenarios side by side and returns what is wrong.
func (r *rig) playAll(t *testing.T) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r.timeline.Join()
	all := courses()
	seen := make([][]fakeendpoint.Attempt, len(all))
	errs := make([]error, len(all))
	var done sync.WaitGroup
	for i, c := range all {
		r.timeline.Join()
		done.Go(func() {
			defer r.timeline.Leave()
			seen[i], errs[i] = r.play(ctx, c)
		})
	}
	r.run()
	r.timeline.Leave()
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var wrong []string
	for i, c := range all {
		wrong = append(wrong, r.wrongs(c, seen[i])...)
	}
	return wrong
}

// load keeps the processors busy until the test ends: other processes do, since
// goroutines that never rest would starve this one's network instead. Each ends
// with its stdin, so none is left behind whatever happens to the test.
func load(t *testing.T) {
	t.Helper()
	for range 2 * runtime.NumCPU() {
		burner := exec.Command("sh", "-c", "while :; do :; done & burning=$!; cat; kill $burning")
		stdin, err := burner.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := burner.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = stdin.Close()
			_ = burner.Wait()
		})
	}
}

func TestAHundredScenariosSeeEverythingAtItsExactTime(t *testing.T) {
	r := newRig(t, 1)
	began := time.Now()
	if wrong := r.playAll(t); len(wrong) > 0 {
		t.Errorf("%d things are not exact:\n%s", len(wrong), strings.Join(wrong, "\n"))
	}
	t.Logf("130 hours in %v", time.Since(began).Round(time.Millisecond))
	if err := r.owner(); err != nil {
		t.Error(err)
	}
}

func TestTimesAreExactWhileTheMachineIsBusy(t *testing.T) {
	load(t)
	runs := uint64(10)
	if testing.Short() {
		runs = 2
	}
	for run := range runs {
		t.Run(fmt.Sprintf("run %d", run), func(t *testing.T) {
			if wrong := newRig(t, run).playAll(t); len(wrong) > 0 {
				t.Errorf("%d things are not exact:\n%s", len(wrong), strings.Join(wrong, "\n"))
			}
		})
	}
}

// The barrier is what makes it so: a clock that moves without it shows attempts
// at times that they never had.
func TestWithoutTheBarrierTimesAreWrong(t *testing.T) {
	r := newRig(t, 1)
	r.timeline.hasty = true
	if wrong := r.playAll(t); len(wrong) == 0 {
		t.Error("everything was exact")
	}
}

func TestAnAttemptMayHangInConnecting(t *testing.T) {
	r := newRig(t, 1)
	r.run()
	r.timeline.Join()
	defer r.timeline.Leave()
	r.timeline.Stuck(1)
	defer r.timeline.Stuck(-1)
	attempts, err := r.play(t.Context(), course{name: "full", script: "full-queue(10s),200", messages: 1, watch: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	// Its timeout ended the first, which never arrived; the next came by the
	// schedule, unless the queue was still full.
	if len(attempts) != 1 {
		t.Fatalf("%d attempts arrived", len(attempts))
	}
	delays := r.sender.chosen(r.server.Find("full").URL())
	if got, want := attempts[0].Began.Sub(epoch), ladderTimeout+delays[0]; got != want {
		t.Errorf("it came after %v, want %v", got, want)
	}
}

func TestAwaitEndsWhenSomethingHappens(t *testing.T) {
	r := newRig(t, 1)
	r.run()
	script, err := fakeendpoint.ParseScript("500*2,200")
	if err != nil {
		t.Fatal(err)
	}
	path := r.server.Path("awaited", script)
	e, err := r.sender.CreateEndpoint(t.Context(), EndpointSpec{URL: path.URL()})
	if err != nil {
		t.Fatal(err)
	}
	r.timeline.Join()
	defer r.timeline.Leave()
	if _, err := r.sender.Publish(t.Context(), Event{EndpointIDs: []string{e.ID}}); err != nil {
		t.Fatal(err)
	}
	two := func() bool { _, concluded := path.Count(); return concluded >= 2 }
	if err := r.timeline.Await(t.Context(), epoch.Add(time.Hour), two); err != nil {
		t.Fatal(err)
	}
	if got, want := r.timeline.Now(), path.Attempts()[1].Ended; !got.Equal(want) {
		t.Errorf("it ended at %v, and the second attempt at %v", got, want)
	}
	never := func() bool { return false }
	if err := r.timeline.Await(t.Context(), epoch.Add(10*time.Minute), never); err != nil {
		t.Fatal(err)
	}
	if got := r.timeline.Now(); !got.Equal(epoch.Add(10 * time.Minute)) {
		t.Errorf("it ended at %v", got)
	}
}

func TestTimeStandsStillWhileAScenarioWorks(t *testing.T) {
	r := newRig(t, 1)
	r.run()
	r.timeline.Join() // works
	r.timeline.Join()
	waited := make(chan error, 1)
	go func() {
		defer r.timeline.Leave()
		waited <- r.timeline.Until(t.Context(), epoch.Add(time.Hour))
	}()
	// The owner has nothing to do, and does nothing, for as long as one works.
	runtime.Gosched()
	select {
	case err := <-waited:
		t.Fatalf("the clock stands at %v, %v", r.timeline.Now(), err)
	case <-time.After(20 * time.Millisecond):
	}
	if got := r.timeline.Now(); !got.Equal(epoch) {
		t.Errorf("the clock stands at %v", got)
	}
	r.timeline.Leave()
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	r := newRig(t, 1)
	r.timeline.Join() // and nobody owns the clock
	defer r.timeline.Leave()
	over := errors.New("the scenario is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if err := r.timeline.Until(ctx, epoch.Add(time.Hour)); !errors.Is(err, over) {
		t.Errorf("got %v", err)
	}
}

func TestAllWhoWaitLearnThatTheSenderFailed(t *testing.T) {
	r := newRig(t, 1)
	broken := errors.New("no such table")
	r.sender.fails = broken
	r.timeline.Join()
	r.run()
	if err := r.timeline.Until(t.Context(), epoch.Add(time.Hour)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	r.timeline.Leave()
	if err := r.timeline.Until(t.Context(), epoch); !errors.Is(err, broken) {
		t.Errorf("whoever comes later gets %v", err)
	}
}

func TestASenderThatDoesNotRestIsAnError(t *testing.T) {
	for _, tt := range []struct {
		name, script, want string
		change             func(*rig)
	}{
		{"an attempt hangs in connecting", "full-queue", "do they hang in connecting, or is inFlight counted wrongly?", func(*rig) {}},
		{"one is counted that is none", "200", "1 attempts are under way by its own count", func(r *rig) { r.sender.flying++ }},
		{"one is due and not begun", "500", "it says that something is due at 2026-01-02T15:04:10.2", func(r *rig) { r.sender.lazy = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, 1)
			r.timeline.config.Stall = 100 * time.Millisecond
			tt.change(r)
			r.run()
			r.timeline.Join()
			defer r.timeline.Leave()
			_, err := r.play(t.Context(), course{name: "stalls", script: tt.script, messages: 1, watch: time.Hour})
			if !errors.Is(err, ErrStalled) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A sender that tells neither what is due nor what is under way gets its time in
// steps, and its delays are known up to a step.
func TestTheDelaysOfASenderThatDoesNotTellAreKnownUpToAStep(t *testing.T) {
	r := newRig(t, 1)
	r.sender.untold = true
	r.run()
	r.timeline.Join()
	defer r.timeline.Leave()
	attempts, err := r.play(t.Context(), course{name: "untold", script: "500*2,200", messages: 1, watch: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if len(attempts) != 3 {
		t.Fatalf("%d attempts arrived", len(attempts))
	}
	for i, d := range r.sender.chosen(r.server.Find("untold").URL()) {
		due := attempts[i].Ended.Add(d)
		late := attempts[i+1].Began.Sub(due)
		if window := r.timeline.Window(attempts[i+1].Began); late < 0 || late > window || window > max(time.Second, d/untoldShare+time.Second) {
			t.Errorf("attempt %d was due after %v, came %v later, in a window of %v", i+2, d, late, window)
		}
	}
	if got := r.timeline.Window(epoch.Add(-time.Hour)); got != 0 {
		t.Errorf("an instant that never was has a window of %v", got)
	}
}

func TestARealTimelineWaitsForTheRealClock(t *testing.T) {
	r := NewRealTimeline()
	began := time.Now()
	if err := r.Until(t.Context(), began.Add(20*time.Millisecond)); err != nil || time.Since(began) < 20*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	asked := 0
	if err := r.Await(t.Context(), began.Add(time.Hour), func() bool { asked++; return asked == 3 }); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Until(ctx, began.Add(time.Hour)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := r.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestATimelineNeedsASenderWithAClock(t *testing.T) {
	mock := clock.NewMock()
	server, err := fakeendpoint.Start(fakeendpoint.Config{Clock: mock})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if _, err := NewTimeline(TimelineConfig{Sender: &manual{}, Server: server, Clock: mock}); !errors.Is(err, ErrNotOffered) {
		t.Errorf("got %v", err)
	}
	if _, err := NewTimeline(TimelineConfig{}); err == nil {
		t.Error("it is made from nothing")
	}
}
