package receiver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// noting is a handler whose effect is the row that stands for one.
func noting(before func(Message) error) Handler {
	p := &payments{clock: mockClock()}
	return func(_ context.Context, m Message) (Effect, error) {
		if err := before(m); err != nil {
			return nil, err
		}
		return p.seen(m.ID, "test", ""), nil
	}
}

func TestWhatWaitsIsProcessedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		inbox := open(Options{Clock: mockClock()})
		add(t, inbox, "before") // as a crash right after the 2xx would leave it
		run(t, inbox)
		add(t, inbox, "after")
		for _, id := range []string{"before", "after"} {
			if e := awaitState(t, inbox, id, StatusProcessed); e.Processed != 1 || e.Failed || e.Attempts != 1 {
				t.Errorf("%s came out as %+v", id, e)
			}
			add(t, inbox, id)
		}
		await(t, "the copies are counted", func() bool { return inbox.counts.duplicates.Load() == 2 })
		for _, id := range []string{"before", "after"} {
			if e := became(t, inbox, id); e.Processed != 1 || e.State != StatusProcessed {
				t.Errorf("after a copy %s is %+v", id, e)
			}
		}
	})
}

func TestTwoInstancesProcessEachMessageOnce(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		var handled atomic.Int32
		o := Options{Clock: mockClock(), Handler: noting(func(Message) error { handled.Add(1); return nil })}
		instances := []*Inbox{open(o), open(o)}
		const n = 200
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { add(t, instances[i%2], randomID(i)) })
		}
		run(t, instances[0])
		run(t, instances[1])
		all.Wait()
		for i := range n {
			if e := awaitState(t, instances[0], randomID(i), StatusProcessed); e.Processed != 1 || e.Attempts != 1 {
				t.Fatalf("%s came out as %+v", e.ID, e)
			}
		}
		done := instances[0].counts.processed.Load() + instances[1].counts.processed.Load()
		if done != n {
			t.Errorf("%d were processed, want %d", done, n)
		}
		t.Logf("the handler ran %d times for %d messages", handled.Load(), n)
	})
}

func TestAMessageThatFailsIsTriedAgainAndAtLastListed(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		mock := mockClock()
		var broken atomic.Bool
		broken.Store(true)
		inbox := open(Options{Clock: mock, Attempts: 3, Handler: noting(func(Message) error {
			if broken.Load() {
				return errors.New("out of order")
			}
			return nil
		})})
		run(t, inbox)
		add(t, inbox, "msg_1")
		for i, wait := range []time.Duration{firstWait, 4 * firstWait} {
			await(t, "an attempt is noted", func() bool { return became(t, inbox, "msg_1").Attempts == i+1 })
			if e := became(t, inbox, "msg_1"); e.State != StatusReceived || e.Error != "out of order" || e.Processed != 0 {
				t.Errorf("after attempt %d it is %+v", i+1, e)
			}
			mock.Add(wait - time.Millisecond)
			if e := became(t, inbox, "msg_1"); e.Attempts != i+1 {
				t.Errorf("it was tried again before %v", wait)
			}
			mock.Add(time.Millisecond)
		}
		if e := awaitState(t, inbox, "msg_1", StatusFailed); e.Attempts != 3 || !e.Failed || e.Processed != 0 {
			t.Errorf("at last it is %+v", e)
		}
		listed, err := inbox.Failed(context.Background(), "")
		if err != nil || len(listed) != 1 || listed[0].ID != "msg_1" || listed[0].Error != "out of order" || listed[0].Attempts != 3 ||
			!listed[0].ReceivedAt.Equal(start()) || !listed[0].FailedAt.Equal(mock.Now()) {
			t.Errorf("the failed list is %+v, %v", listed, err)
		}
		if listed, err := inbox.Failed(context.Background(), "msg_1"); err != nil || len(listed) != 0 {
			t.Errorf("the page after it is %+v, %v", listed, err)
		}

		broken.Store(false)
		if n, err := inbox.Retry(context.Background()); n != 1 || err != nil {
			t.Errorf("%d were put back, %v", n, err)
		}
		if e := awaitState(t, inbox, "msg_1", StatusProcessed); e.Processed != 1 || e.Attempts != 4 || e.Error != "" {
			t.Errorf("after the retry it is %+v", e)
		}
		if n, err := inbox.Retry(context.Background(), "msg_1", "msg_2"); n != 0 || err != nil {
			t.Errorf("%d were put back, %v; want none that is processed", n, err)
		}
	})
}

func TestACopyOfAFailedMessageIsNotSwallowed(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		var broken atomic.Bool
		broken.Store(true)
		inbox := open(Options{Clock: mockClock(), Handler: noting(func(Message) error {
			if broken.Load() {
				return Permanent(errors.New("unknown reference"))
			}
			return nil
		})})
		run(t, inbox)
		add(t, inbox, "msg_1")
		if e := awaitState(t, inbox, "msg_1", StatusFailed); e.Attempts != 1 {
			t.Errorf("a permanent failure was tried again: %+v", e)
		}
		broken.Store(false)
		if add(t, inbox, "msg_1") {
			t.Error("the copy was taken for new")
		}
		if e := awaitState(t, inbox, "msg_1", StatusProcessed); e.Processed != 1 {
			t.Errorf("after the copy it is %+v", e)
		}
	})
}

func TestAnEffectThatFailsIsTakenBackAlone(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		p := &payments{clock: mockClock()}
		inbox := open(Options{Clock: mockClock(), Handler: func(_ context.Context, m Message) (Effect, error) {
			return func(ctx context.Context, tx Tx) error {
				if err := p.seen(m.ID, "test", "")(ctx, tx); err != nil {
					return err
				}
				switch m.ID {
				case "breaks a rule of the schema":
					_, err := tx.ExecContext(ctx, `INSERT INTO payments (id, state) VALUES ('p', 'none')`)
					return Permanent(err)
				case "panics":
					panic("no such thing")
				case "changes its mind":
					return Permanent(errors.New("no"))
				}
				return nil
			}, nil
		}})
		bad := []string{"breaks a rule of the schema", "panics", "changes its mind"}
		var all sync.WaitGroup
		for i := range 20 { // good ones beside, to share the commits
			all.Go(func() { add(t, inbox, fmt.Sprintf("good %d", i)) })
		}
		for _, id := range bad {
			add(t, inbox, id)
		}
		all.Wait()
		run(t, inbox)
		for i := range 20 {
			if e := awaitState(t, inbox, fmt.Sprintf("good %d", i), StatusProcessed); e.Processed != 1 {
				t.Errorf("it is %+v", e)
			}
		}
		for _, id := range bad {
			await(t, id, func() bool { return became(t, inbox, id).Attempts == 1 })
			if e := became(t, inbox, id); e.Processed != 0 || e.Error == "" {
				t.Errorf("it is %+v", e)
			}
		}
	})
}

func TestAHandlerThatPanicsHoldsNobodyUp(t *testing.T) {
	mock := mockClock()
	o, logs := logged(mock)
	o.Handler = noting(func(m Message) error {
		if m.ID == "bad" {
			panic("no such thing")
		}
		return nil
	})
	inbox := openFile(t, t.TempDir()+"/inbox.db", o)
	run(t, inbox)
	add(t, inbox, "bad")
	add(t, inbox, "good")
	awaitState(t, inbox, "good", StatusProcessed)
	await(t, "the panic is noted", func() bool { return became(t, inbox, "bad").Attempts == 1 })
	if e := became(t, inbox, "bad"); !strings.HasPrefix(e.Error, "panic: no such thing") || len(e.Error) > maxErrorBytes {
		t.Errorf("it is %+v", e)
	}
	await(t, "it is logged", func() bool { return len(theLinesAbout(logs.String(), "panic: no such thing")) == 1 })
}

func TestASlowHandlerHoldsNeitherDeliveriesNorOthersUp(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		working, proceed := make(chan struct{}), make(chan struct{})
		inbox := open(Options{Clock: mockClock(), Handler: noting(func(m Message) error {
			if m.ID == "slow" {
				close(working)
				<-proceed
			}
			return nil
		})})
		run(t, inbox)
		add(t, inbox, "slow")
		<-working
		for i := range 20 {
			add(t, inbox, randomID(i))
			awaitState(t, inbox, randomID(i), StatusProcessed)
		}
		if e := became(t, inbox, "slow"); e.State != StatusReceived {
			t.Errorf("it is %+v", e)
		}
		close(proceed)
		awaitState(t, inbox, "slow", StatusProcessed)
	})
}

func TestStoppingLeavesWhatWasBegunInTheQueue(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		working := make(chan struct{})
		var once sync.Once
		inbox := open(Options{Clock: mockClock(), Handler: func(ctx context.Context, _ Message) (Effect, error) {
			once.Do(func() { close(working) })
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		stop := run(t, inbox)
		add(t, inbox, "msg_1")
		<-working
		stop()
		if e := became(t, inbox, "msg_1"); e.State != StatusReceived || e.Attempts != 0 {
			t.Errorf("it is %+v, want it to wait as if never begun", e)
		}
		inbox.handler = noting(func(Message) error { return nil })
		run(t, inbox)
		awaitState(t, inbox, "msg_1", StatusProcessed)
	})
}

func TestAnInboxIsProcessedByOneRunOnly(t *testing.T) {
	inbox := openFile(t, t.TempDir()+"/inbox.db", Options{Clock: mockClock()})
	run(t, inbox)
	await(t, "it runs", inbox.running.Load)
	if err := inbox.Run(context.Background()); !errors.Is(err, errRunning) {
		t.Errorf("a second one: %v", err)
	}
}

func TestAnotherProcessesMessagesAreFoundWithoutASignal(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		busy, gone := open(Options{Clock: mockClock()}), open(Options{Clock: mockClock()})
		run(t, busy)
		add(t, gone, "msg_1") // and that instance never processes it
		awaitState(t, busy, "msg_1", StatusProcessed)
	})
}

func TestWaitsGrowToABound(t *testing.T) {
	b := &Inbox{attempts: 100}
	for i, want := range []time.Duration{time.Second, 4 * time.Second, 16 * time.Second, 64 * time.Second, 256 * time.Second, longestWait, longestWait} {
		if got := b.wait(&claim{attempts: i}, errors.New("broken")); got != want {
			t.Errorf("after attempt %d it waits %v, want %v", i+1, got, want)
		}
	}
	if got := b.wait(&claim{attempts: 99}, errors.New("broken")); got != 0 {
		t.Errorf("after the last attempt it waits %v", got)
	}
	if got := b.wait(&claim{}, fmt.Errorf("wrapped: %w", Permanent(errors.New("broken")))); got != 0 {
		t.Errorf("after a permanent failure it waits %v", got)
	}
}

func TestProcessingFailsOnceWhenATestAsksForIt(t *testing.T) {
	mock := mockClock()
	inbox := openFile(t, t.TempDir()+"/inbox.db", Options{Clock: mock, TestHooks: true})
	if err := inbox.FailOnce("msg_2"); err != nil {
		t.Fatal(err)
	}
	run(t, inbox)
	add(t, inbox, "msg_1")
	awaitState(t, inbox, "msg_1", StatusProcessed)
	add(t, inbox, "msg_2")
	await(t, "it fails", func() bool { return became(t, inbox, "msg_2").Attempts == 1 })
	mock.Add(firstWait)
	if e := awaitState(t, inbox, "msg_2", StatusProcessed); e.Attempts != 2 || e.Processed != 1 {
		t.Errorf("it is %+v", e)
	}
	if err := inbox.FailOnce(""); err != nil {
		t.Fatal(err)
	}
	add(t, inbox, "msg_3")
	await(t, "whichever comes next fails", func() bool { return became(t, inbox, "msg_3").Attempts == 1 })

	plain := openFile(t, t.TempDir()+"/inbox.db", Options{Clock: mock})
	if err := plain.FailOnce("msg_1"); err == nil {
		t.Error("an inbox without hooks can be made to fail")
	}
}
