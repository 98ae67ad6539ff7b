package receiver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/signature"
)

// childVariable makes this test binary play a receiver in a process of its own.
const childVariable = "WHCONFORM_RECEIVER_CHILD"

// child is what such a process is to do.
type child struct {
	Path string // of an SQLite file
	DSN  string // of a PostgreSQL database

	Migrate bool // only bring the schema to a version that kills the process half way
	Lock    bool // only hold the database locked until standard input ends
	Probe   bool // only try to open it, and print the error
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		if err := playChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	stopPostgres()
	os.Exit(code)
}

func playChild(text string) error {
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch {
	case c.Migrate:
		return migrateAndDie(ctx, c.Path)
	case c.Lock:
		return holdLock(ctx, c.Path)
	}
	inbox, err := c.open(ctx)
	if err != nil {
		if c.Probe {
			fmt.Println(err)
			return nil
		}
		return err
	}
	defer inbox.Close()
	return c.serve(ctx, inbox)
}

func (c child) open(ctx context.Context) (*Inbox, error) {
	o := Options{Clock: clock.New(), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if c.DSN != "" {
		return OpenPostgres(ctx, c.DSN, o)
	}
	return OpenSQLite(ctx, c.Path, o)
}

// serve receives and processes until it is told to stop.
func (c child) serve(ctx context.Context, inbox *Inbox) error {
	scheme, err := signature.New(signature.StandardWebhooks())
	if err != nil {
		return err
	}
	key, err := scheme.Key("current", childSecret())
	if err != nil {
		return err
	}
	r, err := New(Config{Profile: standard(), Keys: []signature.Key{key}, Store: inbox, Clock: clock.New()})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", r)
	mux.Handle("/_observe/", inbox.Observer())
	mux.Handle("/metrics", inbox.Metrics())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := HTTPServer(mux)
	processed, served := make(chan error, 1), make(chan error, 1)
	go func() { processed <- inbox.Run(ctx) }()
	go func() { served <- srv.Serve(l) }()
	fmt.Println(l.Addr())
	<-ctx.Done()
	err = srv.Close()
	<-served
	return errors.Join(err, <-processed)
}

// childSecret is the secret that children share with the test.
func childSecret() string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret for tests, of 32 bytes."))
}
