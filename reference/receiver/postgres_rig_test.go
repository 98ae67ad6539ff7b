package receiver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// peersVariable demands the peers of the tests, such as a PostgreSQL server:
// without it a test that finds none is skipped.
const peersVariable = "WHCONFORM_PEERS"

// server is the one PostgreSQL server of a test run, started when a test first
// asks for it.
var server struct {
	once      sync.Once
	dir       string // of its data and its socket
	err       error
	process   *os.Process
	ended     chan struct{}
	databases int
	mu        sync.Mutex
}

// newDatabase makes an empty database and returns its DSN.
func newDatabase(t testing.TB) (dsn string) {
	t.Helper()
	server.once.Do(startPostgres)
	if server.err != nil {
		if os.Getenv(peersVariable) != "" {
			t.Fatalf("starting PostgreSQL: %v", server.err)
		}
		t.Skipf("NOT TESTED on PostgreSQL: %v. Install its server, or set %s to make this a failure", server.err, peersVariable)
	}
	server.mu.Lock()
	server.databases++
	name := fmt.Sprintf("inbox%d", server.databases)
	server.mu.Unlock()
	administer(t, "CREATE DATABASE "+name)
	return serverDSN(name)
}

func serverDSN(database string) string {
	return "host=" + server.dir + " user=postgres dbname=" + database
}

// administer runs a statement outside of any inbox.
func administer(t testing.TB, statement string) {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, serverDSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// startPostgres starts a server that listens on a socket in its own folder only.
func startPostgres() {
	server.err = func() error {
		initdb, err := postgresTool("initdb")
		if err != nil {
			return err
		}
		postgres, err := postgresTool("postgres")
		if err != nil {
			return err
		}
		// A short name: a socket's path has 107 bytes at most.
		if server.dir, err = os.MkdirTemp("", "pg"); err != nil {
			return err
		}
		as, err := unprivileged(server.dir)
		if err != nil {
			return err
		}
		data := filepath.Join(server.dir, "data")
		create := exec.Command(initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
		create.Dir, create.SysProcAttr = server.dir, as
		if out, err := create.CombinedOutput(); err != nil {
			return fmt.Errorf("initdb: %w\n%s", err, out)
		}
		run := exec.Command(postgres, "-D", data, "-k", server.dir, "-c", "listen_addresses=", "-c", "max_connections=100")
		run.Dir, run.SysProcAttr = server.dir, as
		log, err := os.Create(filepath.Join(server.dir, "log"))
		if err != nil {
			return err
		}
		defer log.Close()
		run.Stdout, run.Stderr = log, log
		return runPostgres(run)
	}()
}

// runPostgres starts the server and waits until it answers.
func runPostgres(run *exec.Cmd) error {
	started := make(chan error, 1)
	server.ended = make(chan struct{})
	go func() {
		// The kernel ends the server when the thread that started it ends, so
		// this one stays: a test run that is killed leaves nothing behind.
		runtime.LockOSThread()
		defer close(server.ended)
		err := run.Start()
		started <- err
		if err == nil {
			_ = run.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	server.process = run.Process
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; {
		ctx := context.Background()
		c, err := pgx.Connect(ctx, serverDSN("postgres"))
		if err == nil {
			return c.Close(ctx)
		}
		if time.Now().After(end) {
			return err
		}
		select {
		case <-tick.C:
		case <-server.ended:
			text, _ := os.ReadFile(filepath.Join(server.dir, "log"))
			return fmt.Errorf("the server ended:\n%s", text)
		}
	}
}

// stopPostgres ends the server, if there is one.
func stopPostgres() {
	if server.process != nil {
		_ = server.process.Signal(syscall.SIGQUIT) // at once: the data is not kept
		<-server.ended
	}
	if server.dir != "" {
		_ = os.RemoveAll(server.dir)
	}
}

// postgresTool finds a program of the server, which distributions keep out of
// the usual path.
func postgresTool(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return "", fmt.Errorf("%s is not installed", name)
	}
	return found[len(found)-1], nil
}

// unprivileged is how to run a program that refuses to run as root: as the user
// postgres, who then owns dir.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	attributes := &syscall.SysProcAttr{}
	endWithParent(attributes)
	if os.Getuid() != 0 {
		return attributes, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attributes, os.Chown(dir, int(uid), int(gid))
}

// onEach runs a test on an inbox in an SQLite file, and on one in PostgreSQL.
func onEach(t *testing.T, test func(t *testing.T, open func(Options) *Inbox)) {
	t.Run("on SQLite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "inbox?100%.db") // a name that must not be read as a URL
		test(t, func(o Options) *Inbox { return openFile(t, path, o) })
	})
	t.Run("on PostgreSQL", func(t *testing.T) {
		dsn := newDatabase(t)
		test(t, func(o Options) *Inbox { return openDatabase(t, dsn, o) })
	})
}

// openDatabase opens an inbox in PostgreSQL and closes it when the test ends.
func openDatabase(t testing.TB, dsn string, o Options) *Inbox {
	t.Helper()
	inbox, err := OpenPostgres(context.Background(), dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inbox.Close(); err != nil {
			t.Error(err)
		}
	})
	return inbox
}

// theLinesAbout are those lines of a log that hold a text.
func theLinesAbout(log, text string) (lines []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}
