package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/reference/sender"
)

// apiHeaders bounds the head of a request to the sender's HTTP API: its callers
// stand on the same network.
const apiHeaders = 10 * time.Second

// serveOutbox runs the reference sender with its HTTP API.
func (a *app) serveOutbox(ctx context.Context, f *referenceSenderFlags) error {
	token, err := a.outboxToken(f)
	if err != nil {
		return err
	}
	options, err := f.outboxOptions(slog.New(slog.NewTextHandler(a.err, nil)))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.addr)
	if err != nil {
		return usagef("listening on %s: %w. Choose another one by --addr", f.addr, err)
	}
	outbox, err := sender.Open(ctx, f.db, options)
	if err != nil {
		return errors.Join(brokenf("starting the reference sender: %w", err), listener.Close())
	}
	admin, err := outbox.Admin(token)
	if err != nil {
		return errors.Join(usagef("reading --token-env: %w", err), outbox.Close(), listener.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", admin)
	mux.Handle("GET /metrics", outbox.Metrics())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: apiHeaders}
	options.Logger.Info("listening", "url", "http://"+listener.Addr().String()+"/v1/", "outbox", f.db, "profile", options.Profile.Name)
	return a.runOutbox(ctx, outbox, server, listener)
}

// outboxToken reads what a service without the adapter needs.
func (a *app) outboxToken(f *referenceSenderFlags) (string, error) {
	switch {
	case f.mutant != "":
		return "", usagef("starting the reference sender: --mutant is for --adapter")
	case f.db == "":
		return "", usagef("starting the reference sender: give --db FILE for its outbox, or --adapter to drive it by the adapter protocol on stdin and stdout")
	case f.token == "":
		return "", usagef("starting the reference sender: its HTTP API needs a token. Give --token-env VARIABLE")
	}
	token := a.env(f.token)
	if token == "" {
		return "", usagef("reading --token-env: the environment has no %s, or it is empty", f.token)
	}
	a.kept.add(token)
	return token, nil
}

func (f *referenceSenderFlags) outboxOptions(logger *slog.Logger) (sender.Options, error) {
	name := f.profile
	if name == "" {
		name = "standard-webhooks"
	}
	p, err := loadProfile(name)
	if err != nil {
		return sender.Options{}, err
	}
	guard, err := sender.NewGuard(f.allow...)
	if err != nil {
		return sender.Options{}, usagef("reading --allow-host: %w", err)
	}
	return sender.Options{Profile: p, Clock: clock.New(), Guard: guard, Logger: logger, Drain: stopGrace}, nil
}

// runOutbox sends and serves until ctx is done or either of them fails.
func (a *app) runOutbox(ctx context.Context, outbox *sender.Sender, server *http.Server, listener net.Listener) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	sent, served := make(chan error, 1), make(chan error, 1)
	go func() { sent <- outbox.Run(running) }()
	go func() { served <- server.Serve(listener) }()
	var failure error
	select {
	case failure = <-served: // it never ends by itself
		served <- http.ErrServerClosed
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		_ = server.Close()
	}
	<-served
	stop()
	if err := errors.Join(failure, <-sent, outbox.Close()); err != nil {
		return brokenf("running the reference sender: %w", err)
	}
	return nil
}
