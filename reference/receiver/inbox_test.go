package receiver

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/profile"
)

// start is when the clocks of these tests stand at first.
func start() time.Time { return time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC) }

// mockClock is a clock that stands still.
func mockClock() *clock.Mock {
	c := clock.NewMock()
	c.Set(start())
	return c
}

// logged is options that log into the buffer returned.
func logged(c clock.Clock) (Options, *logBuffer) {
	logs := &logBuffer{}
	return Options{Clock: c, Logger: slog.New(slog.NewTextHandler(logs, nil))}, logs
}

// add adds a message whose body is about no payment.
func add(t testing.TB, inbox *Inbox, id string) (added bool) {
	t.Helper()
	return addBody(t, inbox, id, event)
}

func addBody(t testing.TB, inbox *Inbox, id, body string) (added bool) {
	t.Helper()
	added, err := inbox.Add(context.Background(), Message{ID: id, Body: []byte(body), ReceivedAt: inbox.clock.Now(), Key: "current"})
	if err != nil {
		t.Fatalf("adding %q: %v", id, err)
	}
	return added
}

// became is what became of an event.
func became(t testing.TB, inbox *Inbox, id string) Event {
	t.Helper()
	e, err := inbox.Event(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// awaitState waits until an event has a state.
func awaitState(t testing.TB, inbox *Inbox, id, state string) Event {
	t.Helper()
	await(t, id+" is "+state, func() bool { return became(t, inbox, id).State == state })
	return became(t, inbox, id)
}

func TestAMessageIsKeptAndACopyIsNoError(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		first := open(Options{Clock: mockClock()})
		if !add(t, first, "msg_1") {
			t.Error("the first was not added")
		}
		if add(t, first, "msg_1") {
			t.Error("the copy was added")
		}
		second := open(Options{Clock: mockClock()}) // as a restart would
		if add(t, second, "msg_1") {
			t.Error("the copy was added after opening again")
		}
		if e := became(t, second, "msg_1"); e.State != StatusReceived || e.Processed != 0 {
			t.Errorf("it is %+v, want it to wait", e)
		}
		if e := became(t, second, "msg_2"); e.State != StatusUnknown {
			t.Errorf("a message that never came is %+v", e)
		}
	})
}

func TestOfCopiesThatArriveTogetherOneIsAdded(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		instances := []*Inbox{open(Options{Clock: mockClock()}), open(Options{Clock: mockClock()})}
		const ids, copies = 20, 8
		var added [ids]atomic.Int32
		var all sync.WaitGroup
		for i := range ids * copies {
			all.Go(func() {
				// Half of them in the opposite order, so that batches cross.
				n := i / 2 % ids
				if i%2 == 0 {
					n = ids - 1 - n
				}
				if add(t, instances[i%2], randomID(n)) {
					added[n].Add(1)
				}
			})
		}
		all.Wait()
		for i := range added {
			if n := added[i].Load(); n != 1 {
				t.Errorf("%s was added %d times", randomID(i), n)
			}
		}
	})
}

func TestAnyIDAndAnyBodyIsStored(t *testing.T) {
	ids := map[string]string{
		"a plain one":                 "msg_1",
		"not UTF-8":                   "msg_\xff\xfe",
		"with a NUL":                  "msg_\x00",
		"longer than an index takes":  strings.Repeat("x", 60_000),
		"as long, and different":      strings.Repeat("x", 59_999) + "y",
		"like a digest":               storedID("msg_\x00"),
		"of quotes and backslashes":   `'"\;--`,
		"of letters of all languages": "Zażółć 漢字 🙂",
		"empty":                       "",
	}
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		inbox := open(Options{Clock: mockClock()})
		for name, id := range ids {
			t.Run(name, func(t *testing.T) {
				for i, want := range []bool{true, false} {
					m := Message{ID: id, Type: id, Key: id, ReceivedAt: start()}
					if i == 0 {
						m.Body = []byte("\x00\xff")
					}
					added, err := inbox.Add(context.Background(), m)
					if err != nil || added != want {
						t.Errorf("delivery %d: added %v, %v; want %v", i+1, added, err, want)
					}
				}
				if e := became(t, inbox, id); e.State != StatusReceived {
					t.Errorf("it is %+v", e)
				}
			})
		}
	})
}

func TestAddingWhileNobodyWaitsStoresNothing(t *testing.T) {
	inbox := openFile(t, filepath.Join(t.TempDir(), "inbox.db"), Options{Clock: mockClock()})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if added, err := inbox.Add(ctx, Message{ID: "msg_1"}); added || !errors.Is(err, context.Canceled) {
		t.Errorf("added %v, %v", added, err)
	}
}

func TestAClosedInboxIsUnavailable(t *testing.T) {
	inbox, err := OpenSQLite(context.Background(), filepath.Join(t.TempDir(), "inbox.db"), Options{Clock: mockClock()})
	if err != nil {
		t.Fatal(err)
	}
	if err := inbox.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := inbox.Add(context.Background(), Message{ID: "msg_1"}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("adding: %v, want ErrUnavailable", err)
	}
	if err := inbox.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestMessagesThatArriveTogetherShareACommit(t *testing.T) {
	var batches []int
	begun, proceed := make(chan struct{}), make(chan struct{})
	w := newWriter()
	w.start(func(batch []*job) error {
		batches = append(batches, len(batch))
		if len(batches) == 1 {
			close(begun)
			<-proceed
		}
		return nil
	}, func(error) {})
	var all sync.WaitGroup
	submit := func() {
		all.Go(func() {
			if err := w.submit(&job{ctx: context.Background(), done: make(chan struct{})}); err != nil {
				t.Error(err)
			}
		})
	}
	submit()
	<-begun // the first is being committed; the others have to wait
	for range 10 {
		submit()
	}
	close(proceed)
	all.Wait()
	w.stop()
	commits, jobs := len(batches), 0
	for _, n := range batches {
		jobs += n
	}
	if jobs != 11 || batches[0] != 1 {
		t.Errorf("%d jobs in batches of %v", jobs, batches)
	}
	t.Logf("%d jobs took %d commits", jobs, commits)
}

func TestNobodyWaitsForACommitLongerThanAskedFor(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	w := newWriter()
	w.start(func([]*job) error {
		close(begun)
		<-proceed // as a disk that hangs
		return nil
	}, func(error) {})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-begun
		cancel()
	}()
	err := w.submit(&job{ctx: ctx, message: &Message{ID: "msg_1"}, done: make(chan struct{})})
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("it ended by %v", err)
	}
	close(proceed)
	w.stop()
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inbox.db")
	for _, c := range []struct {
		name, want string
		options    Options
	}{
		{"no clock", "no clock", Options{}},
		{"a negative bound", "negative", Options{Clock: mockClock(), Workers: -1}},
		{"a provider that is no URL", "no http or https URL", Options{Clock: mockClock(), ProviderURL: "user:secret@host"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := OpenSQLite(context.Background(), path, c.options)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want one about %q", err, c.want)
			}
		})
	}
}

func TestIDsAreRememberedAsLongAsTheProviderSendsCopies(t *testing.T) {
	hour := time.Hour
	for _, c := range []struct {
		name    string
		profile *profile.Profile
		want    time.Duration
	}{
		{"without a profile a day", nil, 24 * hour},
		{"a short schedule: still a day", &profile.Profile{Schedule: []time.Duration{0, hour}}, 24 * hour},
		{"as the profile asks", &profile.Profile{Remember: 72 * hour}, 72 * hour},
		{"the whole schedule with its jitter and its attempts", &profile.Profile{
			Schedule: []time.Duration{0, 20 * hour, 20 * hour}, JitterHigh: 0.5, AttemptTimeout: hour,
		}, 63 * hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Remember(c.profile); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	p, err := profile.Load("standard-webhooks")
	if err != nil {
		t.Fatal(err)
	}
	if got := Remember(p); got < 83*hour || got > 84*hour {
		t.Errorf("standard-webhooks: %v, want a bit above 83 h, which is 75 h 35 m and a tenth", got)
	}
}

func TestOldIDsAreForgottenAndWorkIsNot(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		mock := mockClock()
		inbox := open(Options{Clock: mock, Handler: func(_ context.Context, m Message) (Effect, error) {
			if strings.HasPrefix(m.ID, "bad") {
				return nil, Permanent(errors.New("bad"))
			}
			return nil, nil
		}})
		stop := run(t, inbox)
		for _, id := range []string{"good", "bad"} {
			add(t, inbox, id)
		}
		awaitState(t, inbox, "good", StatusProcessed)
		awaitState(t, inbox, "bad", StatusFailed)
		stop()
		add(t, inbox, "waiting")

		mock.Add(leastRemember)
		if n, err := inbox.Forget(context.Background()); n != 0 || err != nil {
			t.Errorf("after a day %d were forgotten, %v; want none", n, err)
		}
		if add(t, inbox, "good") {
			t.Error("after a day a copy was taken for new")
		}
		run(t, inbox) // forgets by itself from here on
		awaitState(t, inbox, "waiting", StatusProcessed)
		await(t, "both that are done are forgotten", func() bool {
			mock.Add(forgetEvery)
			return became(t, inbox, "good").State == StatusUnknown
		})
		if e := became(t, inbox, "bad"); e.State != StatusFailed {
			t.Errorf("the failed one is %+v", e)
		}
	})
}

func TestForgettingGoesOnUntilAllOldOnesAreGone(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		mock := mockClock()
		inbox := open(Options{Clock: mock})
		const n = 2*forgetBatch + 1
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { add(t, inbox, randomID(i)) })
		}
		all.Wait()
		stop := run(t, inbox)
		await(t, "all are processed", func() bool {
			s, err := inbox.Stats(context.Background())
			return err == nil && s.Waiting == 0
		})
		stop()
		mock.Add(leastRemember + time.Second)
		if got, err := inbox.Forget(context.Background()); got != n || err != nil {
			t.Errorf("%d were forgotten, %v; want %d", got, err, n)
		}
	})
}
