package receiver

import (
	"bufio"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"modernc.org/sqlite"
)

// These tests break the database under an inbox: every delivery meanwhile is
// refused, none that was acknowledged is lost, and the log has a line for the
// beginning of it and one for the end.

// refused adds several messages, each of which must be refused.
func refused(t *testing.T, inbox *Inbox) {
	t.Helper()
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			added, err := inbox.Add(context.Background(), Message{ID: randomID(i), Body: make([]byte, 100_000), ReceivedAt: inbox.clock.Now()})
			if added || !errors.Is(err, ErrUnavailable) {
				t.Errorf("adding message %d: %v, %v; want ErrUnavailable", i, added, err)
			}
		})
	}
	all.Wait()
}

// told checks that the log has one line about a fault and, if it ended, one about
// that.
func told(t *testing.T, logs *logBuffer, because string, ended bool) {
	t.Helper()
	text := logs.String()
	if lines := theLinesAbout(text, "the inbox cannot store"); len(lines) != 1 || !strings.Contains(lines[0], because) {
		t.Errorf("the log says %q, want one line because it %s", lines, because)
	}
	want := 0
	if ended {
		want = 1
	}
	if lines := theLinesAbout(text, "the inbox stores again"); len(lines) != want {
		t.Errorf("the log says %q of its end, want %d lines", lines, want)
	}
}

func TestALockedDatabaseRefusesUntilItIsFree(t *testing.T) {
	t.Parallel() // it waits, mostly
	path := filepath.Join(t.TempDir(), "inbox.db")
	o, logs := logged(mockClock())
	inbox := openFile(t, path, o)
	add(t, inbox, "before")

	locker := startChild(t, child{Path: path, Lock: true})
	locker.line() // it holds the lock
	refused(t, inbox)
	told(t, logs, faultLocked, false)
	if _, err := OpenSQLite(context.Background(), path, o); err == nil || !strings.Contains(err.Error(), faultLocked) {
		t.Errorf("opening it meanwhile: %v", err)
	}
	locker.end()
	if !add(t, inbox, "after") || add(t, inbox, "before") {
		t.Error("afterwards it holds other messages than it should")
	}
	told(t, logs, faultLocked, true)
}

// holdLock keeps an SQLite file locked until standard input ends.
func holdLock(ctx context.Context, path string) error {
	s := &sqliteDB{path: path}
	db, err := s.connect(1)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "BEGIN EXCLUSIVE"); err != nil {
		return err
	}
	fmt.Println("locked")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func TestAFullDatabaseRefusesUntilThereIsRoom(t *testing.T) {
	o, logs := logged(mockClock())
	inbox := openFile(t, filepath.Join(t.TempDir(), "inbox.db"), o)
	add(t, inbox, "before")
	pragma := func(statement string) {
		if _, err := inbox.db.(*sqliteDB).conn.ExecContext(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}
	pragma("PRAGMA max_page_count = 1") // as many as there are
	refused(t, inbox)
	told(t, logs, faultFull, false)
	pragma("PRAGMA max_page_count = 1000000")
	if !add(t, inbox, "after") || add(t, inbox, "before") {
		t.Error("afterwards it holds other messages than it should")
	}
	told(t, logs, faultFull, true)
}

func TestADatabaseThatTurnsReadOnlyRefuses(t *testing.T) {
	o, logs := logged(mockClock())
	inbox := openFile(t, filepath.Join(t.TempDir(), "inbox.db"), o)
	conn := inbox.db.(*sqliteDB).conn
	if _, err := conn.ExecContext(context.Background(), "PRAGMA query_only = 1"); err != nil {
		t.Fatal(err)
	}
	refused(t, inbox)
	told(t, logs, faultReadOnly, false)
}

func TestAFileRemovedUnderTheInboxIsNoticedAndSaved(t *testing.T) {
	for _, c := range []struct {
		name   string
		remove func(path string) error
	}{
		{"the database", os.Remove},
		{"its write-ahead log", func(path string) error { return os.Remove(path + "-wal") }},
		{"moved away", func(path string) error { return os.Rename(path, path+".moved") }},
		{"replaced by another", func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "inbox.db")
			o, logs := logged(mockClock())
			inbox := openFile(t, path, o)
			for i := range 10 {
				add(t, inbox, randomID(i))
			}
			if err := c.remove(path); err != nil {
				t.Fatal(err)
			}
			refused(t, inbox)
			told(t, logs, faultRemoved, false)

			saved, err := filepath.Glob(path + ".rescued-*")
			if err != nil || len(saved) != 1 {
				t.Fatalf("what it held is saved in %q, %v; want one file", saved, err)
			}
			if !strings.Contains(logs.String(), saved[0]) {
				t.Errorf("the log does not name %s:\n%s", saved[0], logs)
			}
			if info, err := os.Stat(saved[0]); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("others may read the copy: %v, %v", info.Mode(), err)
			}
			copied := openFile(t, saved[0], Options{Clock: mockClock()})
			for i := range 10 {
				if add(t, copied, randomID(i)) {
					t.Errorf("message %d was acknowledged and is not in the copy", i)
				}
			}
		})
	}
}

func TestACommitToAFileThatIsRemovedMeanwhileIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inbox.db")
	inbox := openFile(t, path, Options{Clock: mockClock()})
	err := inbox.db.update(context.Background(), func(context.Context, Tx) error { return os.Remove(path) })
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, errRemoved) {
		t.Errorf("committing: %v, want ErrUnavailable because the file was removed", err)
	}
}

func TestAFileRemovedFromAnIdleInboxIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inbox.db")
	o, logs := logged(mockClock())
	inbox := openFile(t, path, o)
	run(t, inbox)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	await(t, "it is told", func() bool { return strings.Contains(logs.String(), faultRemoved) })
}

func TestAFileMovedAwayAndBackGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inbox.db")
	o, logs := logged(mockClock())
	inbox := openFile(t, path, o)
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	refused(t, inbox)
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if !add(t, inbox, "after") {
		t.Error("it was known before")
	}
	told(t, logs, faultRemoved, true)
}

func TestAFileThatIsNoDatabaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"a text file", text, faultDamaged},
		{"a folder", dir, faultUnopened},
		{"a folder that does not exist", filepath.Join(dir, "none", "inbox.db"), faultUnopened},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := OpenSQLite(context.Background(), c.path, Options{Clock: mockClock()})
			if err == nil || !strings.Contains(err.Error(), "it "+c.want) {
				t.Errorf("opening it: %v, want one that says it %s", err, c.want)
			}
		})
	}
}

func TestOthersMayNotReadTheInbox(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inbox.db")
	add(t, openFile(t, path, Options{Clock: mockClock()}), "msg_1")
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", filepath.Base(name), info.Mode(), err)
		}
	}
}

func TestADatabaseOfANewerVersionIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, open func(Options) *Inbox) {
		inbox := open(Options{Clock: mockClock()})
		err := inbox.db.update(context.Background(), func(ctx context.Context, tx Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO schema_migrations (version, name, applied_at) VALUES (99, '0099_later.sql', 0)`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		switch db := inbox.db.(type) {
		case *sqliteDB:
			_, err = OpenSQLite(context.Background(), db.path, Options{Clock: mockClock()})
		case *postgresDB:
			_, err = OpenPostgres(context.Background(), serverDSN(db.title[strings.LastIndex(db.title, "/")+1:]), Options{Clock: mockClock()})
		}
		found, ok := errors.AsType[*SchemaError](err)
		if !ok || found.Found != 99 || found.Known != 2 {
			t.Errorf("opening it: %v, want a SchemaError with 99 and 2", err)
		}
	})
}

// halfMigration is a schema whose second step kills the process when it is half
// done.
func halfMigration(t testing.TB, die string) fstest.MapFS {
	first, err := migrationFiles.ReadFile("migrations/0001_messages.sql")
	if err != nil && t != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{
		"migrations/0001_messages.sql": {Data: first},
		"migrations/0002_payments.sql": {Data: []byte("CREATE TABLE effects (half INTEGER); INSERT INTO effects VALUES (1); " + die)},
	}
}

// migrateAndDie opens an SQLite file with a schema of which one step is all that
// becomes of it.
func migrateAndDie(ctx context.Context, path string) error {
	err := sqlite.RegisterScalarFunction("die", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		return nil, syscall.Kill(os.Getpid(), syscall.SIGKILL)
	})
	if err != nil {
		return err
	}
	s := &sqliteDB{path: path}
	if s.writing, err = s.connect(1); err != nil {
		return err
	}
	if s.conn, err = s.writing.Conn(ctx); err != nil {
		return err
	}
	return migrate(ctx, halfMigration(nil, "SELECT die();"), start(), s.transaction)
}

func TestACrashHalfWayThroughAMigrationLeavesNoHalf(t *testing.T) {
	t.Run("on SQLite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "inbox.db")
		c := startChild(t, child{Path: path, Migrate: true})
		var exit *exec.ExitError
		if err := c.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("the process that migrates ended by %v, want a signal", err)
		}
		inbox := openFile(t, path, Options{Clock: mockClock()})
		run(t, inbox)
		add(t, inbox, "msg_1")
		awaitState(t, inbox, "msg_1", StatusProcessed)
	})
	t.Run("on PostgreSQL", func(t *testing.T) {
		dsn := newDatabase(t)
		config, err := postgresConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		p := &postgresDB{db: openConfig(config)}
		err = migrate(context.Background(), halfMigration(t, "SELECT pg_terminate_backend(pg_backend_pid());"), start(), p.update)
		if err == nil {
			t.Error("it survived the end of its session")
		}
		if err := p.close(); err != nil {
			t.Fatal(err)
		}
		inbox := openDatabase(t, dsn, Options{Clock: mockClock()})
		run(t, inbox)
		add(t, inbox, "msg_1")
		awaitState(t, inbox, "msg_1", StatusProcessed)
	})
}

func TestTheReceiverAnswers503WhileItCannotStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inbox.db")
	o, logs := logged(mockClock())
	inbox := openFile(t, path, o)
	g := newRig(t, standard(), func(c *Config) { c.Store, c.Logger = inbox, o.Logger })
	if status := g.post(g.headers("msg_1", event), event); status != http.StatusOK {
		t.Fatalf("answered %d", status)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if status := g.post(g.headers("msg_2", event), event); status != http.StatusServiceUnavailable {
			t.Errorf("answered %d, want 503", status)
		}
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if status := g.post(g.headers("msg_2", event), event); status != http.StatusOK {
		t.Errorf("answered %d afterwards", status)
	}
	if n := strings.Count(logs.String(), "\n"); n != 2 {
		t.Errorf("the log has %d lines, want 2, whatever the number of deliveries:\n%s", n, logs)
	}
}

// process is a child of this test.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

// startChild runs this test binary as a process, in a group of its own, that
// plays c. It is killed when the test ends.
func startChild(t testing.TB, c child) *process {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := &process{t: t, cmd: cmd}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdout = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// line is the next line that the process prints.
func (p *process) line() string {
	p.t.Helper()
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		p.t.Fatalf("reading what the process prints: %v", err)
	}
	return strings.TrimSpace(line)
}

// end ends standard input and waits for the process to end by itself.
func (p *process) end() {
	p.t.Helper()
	_ = p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Error(err)
	}
}

// kill kills the process group, and waits.
func (p *process) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.cmd.Wait()
}

func TestProcessingWaitsWhileNothingCanBeWrittenDown(t *testing.T) {
	o, logs := logged(mockClock())
	calls := make(chan time.Time, 100)
	o.Handler = noting(func(Message) error {
		calls <- time.Now()
		return nil
	})
	inbox := openFile(t, filepath.Join(t.TempDir(), "inbox.db"), o)
	add(t, inbox, "msg_1")
	pragma := func(statement string) {
		if _, err := inbox.db.(*sqliteDB).conn.ExecContext(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}
	pragma("PRAGMA query_only = 1")
	run(t, inbox)
	if first, second := <-calls, <-calls; second.Sub(first) < pollEvery/2 {
		t.Errorf("it was tried again after %v, want a pause of some %v", second.Sub(first), pollEvery)
	}
	pragma("PRAGMA query_only = 0")
	if e := awaitState(t, inbox, "msg_1", StatusProcessed); e.Processed != 1 || e.Attempts != 1 {
		t.Errorf("it came out as %+v; what cannot be written down is no attempt", e)
	}
	told(t, logs, faultReadOnly, true)
	if n := strings.Count(logs.String(), "\n"); n != 2 {
		t.Errorf("the log has %d lines, want 2:\n%s", n, logs)
	}
}
