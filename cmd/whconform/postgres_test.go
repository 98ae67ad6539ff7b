package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// peersVariable demands the peers of the tests, such as a PostgreSQL server:
// without it a test that finds none is skipped.
const peersVariable = "WHCONFORM_PEERS"

// newDatabase starts a PostgreSQL server that ends with the test, and returns
// the address of an empty database.
func newDatabase(t *testing.T) string {
	t.Helper()
	address, err := startPostgres(t)
	if err == nil {
		return address
	}
	if os.Getenv(peersVariable) != "" {
		t.Fatalf("starting PostgreSQL: %v", err)
	}
	t.Skipf("NOT TESTED on PostgreSQL: %v. Install its server, or set %s to make this a failure", err, peersVariable)
	return ""
}

// startPostgres starts a server that listens on a socket in its own folder only.
func startPostgres(t *testing.T) (address string, err error) {
	initdb, err := postgresTool("initdb")
	if err != nil {
		return "", err
	}
	postgres, err := postgresTool("postgres")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "pg") // a short name: a socket's path has 107 bytes at most
	if err != nil {
		return "", err
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	as, err := unprivileged(dir)
	if err != nil {
		return "", err
	}
	data := filepath.Join(dir, "data")
	create := exec.Command(initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	create.Dir, create.SysProcAttr = dir, as
	if out, err := create.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w\n%s", err, out)
	}
	server := exec.Command(postgres, "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "max_connections=200")
	server.Dir, server.SysProcAttr = dir, as
	address = "postgres://postgres@/postgres?host=" + url.QueryEscape(dir)
	return address, servePostgres(t, server, address)
}

// servePostgres runs a server until the test ends, and waits until it answers.
func servePostgres(t *testing.T, server *exec.Cmd, address string) error {
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		// The kernel ends the server when the thread that started it ends, so
		// this one stays: a test run that is killed leaves nothing behind.
		runtime.LockOSThread()
		defer close(ended)
		err := server.Start()
		started <- err
		if err == nil {
			_ = server.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT) // at once: the data is not kept
		<-ended
	})
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(patience); ; {
		c, err := pgx.Connect(t.Context(), address)
		if err == nil {
			return c.Close(context.WithoutCancel(t.Context()))
		}
		if time.Now().After(end) {
			return err
		}
		select {
		case <-again.C:
		case <-ended:
			return errors.Join(err, errors.New("the server ended"))
		}
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
