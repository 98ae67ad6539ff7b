package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/receiver"
)

// Of what the suite tells a receiver that it starts: the folder that is its own,
// and where the provider's API is asked.
const (
	stateVariable    = "WHCONFORM_STATE_DIR"
	providerVariable = "WHCONFORM_PROVIDER_URL"
)

// inbox is where the reference receiver keeps what it took in: in a database,
// from which a processor works, or in memory, where nothing is processed.
type inbox struct {
	receiver.Store
	durable *receiver.Inbox // nil in memory
	done    chan error
	cancel  context.CancelFunc
}

// openInbox opens the database named by --db, else the one in the folder that
// the suite gives, else memory.
func (a *app) openInbox(ctx context.Context, db string, p *profile.Profile, hooks *referenceHooks, logger *slog.Logger) (*inbox, error) {
	state := a.env(stateVariable)
	if db == "" && state != "" {
		db = filepath.Join(state, "inbox.db")
	}
	if db == "" {
		logger.Info("the inbox is in memory: what was accepted is neither processed nor kept. Give --db FILE")
		return &inbox{Store: receiver.NewMemory()}, nil
	}
	options := receiver.Options{
		Clock: hooks.time(), Logger: logger, Profile: p, ProviderURL: a.env(providerVariable),
		// The suite makes processing fail on purpose; nobody else is given the folder.
		TestHooks: state != "" || hooks.where != "",
	}
	open := receiver.OpenSQLite
	if isPostgres(db) {
		open = receiver.OpenPostgres
		if state != "" {
			var err error
			if db, err = inSchema(ctx, db, state); err != nil {
				return nil, brokenf("opening the inbox: %w", err)
			}
		}
	}
	durable, err := open(ctx, db, options)
	if err != nil {
		return nil, brokenf("opening the inbox: %w", err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b := &inbox{Store: durable, durable: durable, done: make(chan error, 1), cancel: cancel}
	go func() { b.done <- durable.Run(running) }()
	return b, nil
}

// beside serves the observer and the metrics beside the receiver. The paths are
// compared as they stand: a mux would redirect what it finds untidy.
func (b *inbox) beside(h http.Handler) http.Handler {
	if b.durable == nil {
		return h
	}
	observer, metrics := b.durable.Observer(), b.durable.Metrics()
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case strings.HasPrefix(req.URL.Path, "/_observe/"):
			observer.ServeHTTP(w, req)
		case req.URL.Path == "/metrics":
			metrics.ServeHTTP(w, req)
		default:
			h.ServeHTTP(w, req)
		}
	})
}

// close ends the processor, then the database.
func (b *inbox) close() error {
	if b.durable == nil {
		return nil
	}
	b.cancel()
	err := <-b.done
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, b.durable.Close())
}
