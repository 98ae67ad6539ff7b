package sender

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
)

// safeBuffer is a buffer for several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// debugTo logs everything.
func debugTo(w interface{ Write([]byte) (int, error) }) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// refusesToPublish publishes and wants an error in clear words, and nothing stored.
func (g *stage) refusesToPublish(want string) {
	g.t.Helper()
	ids, err := g.Publish(context.Background(), Event{Type: "a.b", Data: []byte(`1`)})
	if ids != nil || !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), want) {
		g.t.Fatalf("publishing: %v, %v; want an error about %q", ids, err, want)
	}
}

func TestALockedDatabaseIsAnErrorAndSendingGoesOnAfterIt(t *testing.T) {
	logs := &safeBuffer{}
	g := newStage(t, "standard-webhooks", func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(logs, nil)) })
	g.endpoint("/e", nil, 500, 200)
	id := g.publish("a.b")
	g.settle()
	other, err := g.store.connect(1)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	g.refusesToPublish("locked")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	g.passTime(time.Minute)
	if m := g.message(id); m.Status != MessageDelivered {
		t.Errorf("the one before is %s", m.Status)
	}
	g.publish("a.b")
	g.settle()
	if n := len(g.peer.at("/e")); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
	for _, want := range []string{cannotStore, faultLocked, storesAgain} {
		if !strings.Contains(logs.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, logs)
		}
	}
}

func TestAnOutcomeIsWrittenDownWhenTheDatabaseIsFree(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, hangs, 200)
	id := g.publish("a.b")
	g.settle()
	other, err := g.store.connect(1)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	g.mock.Set(startTime().Add(15 * time.Second)) // the attempt ends, and that cannot be written
	await(t, "it was tried in vain", func() bool { return !g.settling.up() })
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	g.passTime(time.Minute)
	if calls, m := g.peer.at("/e"), g.message(id); len(calls) != 2 || m.Status != MessageDelivered || m.Attempts != 2 {
		t.Errorf("%d requests, it is %+v", len(calls), m)
	}
}

func TestAFullDatabaseIsAnErrorAndNothingIsLost(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, 500, 200)
	id := g.publish("a.b")
	g.settle()
	limit := func(pages int) {
		g.store.turn <- struct{}{}
		defer func() { <-g.store.turn }()
		if _, err := g.store.session.conn.ExecContext(context.Background(), "PRAGMA max_page_count = "+map[bool]string{true: "1", false: "1000000"}[pages == 1]); err != nil {
			t.Fatal(err)
		}
	}
	limit(1) // SQLite takes the present size
	var err error
	for range 200 {
		if _, err = g.Publish(context.Background(), Event{Type: "a.b", Raw: make([]byte, 1<<16)}); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrUnavailable) || describe(err) != faultFull {
		t.Fatalf("publishing into a full database: %v", err)
	}
	limit(0)
	g.passTime(time.Hour)
	if m := g.message(id); m.Status != MessageDelivered {
		t.Errorf("the one before is %s", m.Status)
	}
}

func TestAVanishedDatabaseIsAnErrorAndItsRowsAreSaved(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, 500, 200)
	id := g.publish("a.b")
	g.settle()
	if err := os.Remove(g.path); err != nil {
		t.Fatal(err)
	}
	g.refusesToPublish("removed or replaced")
	g.stop()
	saved, err := filepath.Glob(g.path + ".rescued-*")
	if err != nil || len(saved) != 1 {
		t.Fatalf("saved %v, %v", saved, err)
	}
	for _, old := range []string{g.path + "-wal", g.path + "-shm"} {
		_ = os.Remove(old)
	}
	if err := os.Rename(saved[0], g.path); err != nil {
		t.Fatal(err)
	}
	g.open("standard-webhooks")
	g.passTime(time.Minute)
	if m := g.message(id); m.Status != MessageDelivered {
		t.Errorf("what was published is %s", m.Status)
	}
}

func TestWhatIsConfirmedWaitsForTheDiskAndTheDispatchersNotesDoNot(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, 200)
	synchronous := func() (mode int) {
		g.store.turn <- struct{}{}
		defer func() { <-g.store.turn }()
		if err := g.store.session.conn.QueryRowContext(context.Background(), "PRAGMA synchronous").Scan(&mode); err != nil {
			t.Fatal(err)
		}
		return mode
	}
	const normal, full = 1, 2
	for range 2 {
		g.publish("a.b")
		g.settle()
		if mode := synchronous(); mode != normal {
			t.Errorf("the outcome was written with synchronous %d, want %d", mode, normal)
		}
		if _, _, err := g.CreateEndpoint(context.Background(), EndpointSpec{URL: "https://example.com/", EventTypes: []string{"c"}}); err != nil {
			t.Fatal(err)
		}
		if mode := synchronous(); mode != full {
			t.Errorf("a confirmed change was written with synchronous %d, want %d", mode, full)
		}
	}
}

func TestOpeningWhatIsNoOutboxIsAnErrorThatSaysSo(t *testing.T) {
	open := func(path string) error {
		_, err := Open(context.Background(), path, Options{Profile: contract(t, "standard-webhooks"), Clock: clock.NewMock()})
		return err
	}
	garbage := filepath.Join(t.TempDir(), "garbage.db")
	if err := os.WriteFile(garbage, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(garbage); err == nil || !strings.Contains(err.Error(), faultDamaged) {
		t.Errorf("garbage: %v", err)
	}
	if err := open(filepath.Join(t.TempDir(), "no", "such", "folder.db")); err == nil || !strings.Contains(err.Error(), faultUnopened) {
		t.Errorf("no folder: %v", err)
	}
	g := newStage(t, "standard-webhooks")
	err := g.store.update(context.Background(), func(ctx context.Context, tx Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO schema_migrations (version, name, applied_at) VALUES ($1, 'later', 0)`, 999)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	g.stop()
	if _, newer := errors.AsType[*SchemaError](open(g.path)); !newer {
		t.Errorf("a newer schema: %v", open(g.path))
	}
}

func TestAClosedSenderIsUnavailable(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.stop()
	g.refusesToPublish("closed")
	if err := g.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestRunningTwiceIsAnError(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	if err := g.Run(context.Background()); !errors.Is(err, errRunning) {
		t.Errorf("%v, want errRunning", err)
	}
}

func TestAStopEndsAttemptsAndTheyAreMadeAgain(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, hangs, 200)
	id := g.publish("a.b")
	g.settle()
	g.stop()
	locks, err := filepath.Glob(g.path + "-sender-*.lock")
	if err != nil || len(locks) != 0 {
		t.Errorf("it leaves %v, %v", locks, err)
	}
	await(t, "the peer has noticed", func() bool { return g.peer.holding() == 0 })
	g.open("standard-webhooks")
	g.settle()
	if calls, m := g.peer.at("/e"), g.message(id); len(calls) != 2 || !same(calls) || m.Status != MessageDelivered || m.Attempts != 1 {
		t.Errorf("%d requests, it is %+v", len(calls), m)
	}
}

func TestAttemptsMayGoOnForAWhileWhenTheSenderIsStopped(t *testing.T) {
	transport := &gated{begun: make(chan struct{}), proceed: make(chan struct{})}
	g := newStage(t, "standard-webhooks", func(o *Options) { o.Drain, o.Transport = time.Minute, transport })
	g.endpoint("/e", nil)
	id := g.publish("a.b")
	<-transport.begun
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		g.stop()
	}()
	await(t, "nothing begins any more", func() bool { return !g.isActive() })
	close(transport.proceed)
	<-stopped
	g.open("standard-webhooks")
	if m := g.message(id); m.Status != MessageDelivered {
		t.Errorf("it is %s", m.Status)
	}
}

// gated is a transport whose first attempt waits, and succeeds.
type gated struct{ begun, proceed chan struct{} }

func (g *gated) Attempt(ctx context.Context, _ Request) Result {
	close(g.begun)
	select {
	case <-g.proceed:
	case <-ctx.Done():
	}
	return Result{Status: 200}
}

func TestAClockThatJumpsBackLosesNothingAndSendsNothingTwice(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.endpoint("/e", nil, 200, 500, 200)
	g.publish("a.b")
	g.settle()
	waiting := g.publish("a.b")
	g.settle()
	g.mock.Set(g.mock.Now().Add(-48 * time.Hour))
	id := g.publish("a.b")
	g.settle()
	if m := g.message(id); m.Status != MessageDelivered {
		t.Errorf("what was published after the jump is %s, want it sent at once", m.Status)
	}
	g.passTime(49 * time.Hour)
	if m := g.message(waiting); m.Status != MessageDelivered || m.Attempts != 2 {
		t.Errorf("what waited is %+v", m)
	}
	if n := len(g.peer.at("/e")); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
}

// A process that hangs keeps its lock: its messages are taken when its lease
// ends, and not before.
func TestALeaseThatEndsFreesTheMessageOfAProcessThatHangs(t *testing.T) {
	transport := &gated{begun: make(chan struct{}), proceed: make(chan struct{})}
	g := newStage(t, "standard-webhooks", func(o *Options) { o.Transport = transport })
	e := g.endpoint("/e", nil, 200)
	id := g.publish("a.b")
	<-transport.begun
	second := &stage{t: t, mock: g.mock, peer: g.peer, path: g.path}
	second.open("standard-webhooks")
	second.passTime(29 * time.Second)
	if n := len(g.peer.at("/e")); n != 0 {
		t.Fatalf("%d requests while the lease lasts", n)
	}
	second.mock.Set(startTime().Add(30 * time.Second))
	second.settle()
	if calls := g.peer.at("/e"); len(calls) != 1 || calls[0].id != id {
		t.Errorf("got %+v after the lease", calls)
	}
	close(transport.proceed) // the first comes back, too late
	await(t, "that is written down", func() bool { return len(second.lines(id)) == 3 })
	if m := second.message(id); m.Status != MessageDelivered || m.Attempts != 1 {
		t.Errorf("it is %+v", m)
	}
	var errs []string
	for _, line := range second.lines(id) {
		errs = append(errs, line.Error)
	}
	if !slices.ContainsFunc(errs, func(s string) bool { return strings.HasPrefix(s, "interrupted") }) {
		t.Errorf("the log of %s has %q", e.ID, errs)
	}
}
