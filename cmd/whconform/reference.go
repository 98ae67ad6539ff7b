package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/spf13/cobra"

	"github.com/whconform/whconform/reference/mutant"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/receiver"
	"github.com/whconform/whconform/reference/signature"
)

// stopGrace is how long deliveries in flight may take to end after a signal.
// It is below the time after which the suite kills what it started.
const stopGrace = 2 * time.Second

// referenceFlags are those of "whconform reference receiver".
type referenceFlags struct {
	addr, profile string
	db            string
	secrets       secretFlags
	publicKey     string
	maxBody       int64
	bodyTimeout   time.Duration
	cert, key     string
	mutant        string
	list          bool
	hooks         string
}

func (a *app) referenceCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "reference",
		Short: "Run a reference implementation, right or deliberately wrong",
		Long: `Run a reference implementation: something to send to, to compare with, and to
read. Its code is in the folder reference/ of the project.`,
	}, a.referenceReceiverCommand(), a.referenceSenderCommand())
}

func (a *app) referenceReceiverCommand() *cobra.Command {
	f := &referenceFlags{}
	c := &cobra.Command{
		Use:   "receiver",
		Short: "Run the reference receiver",
		Long: `Run the reference receiver until it is interrupted. It takes deliveries at any
path, verifies them and tells on stderr what it accepted and refused. With --db
it stores them before it answers, and processes them in the background;
/_observe/events/ID tells what became of one, /metrics how many wait. With
--hooks a test can also make processing fail and move its clock. Where the
environment has WHCONFORM_PROVIDER_URL, it asks there about each payment before
it acts.

Its secrets come from the flags or, where there are none, from the environment:
WEBHOOK_SECRET, WEBHOOK_SECRET_PREVIOUS while the secret is being rotated, and
WEBHOOK_PUBLIC_KEY (whpk_…) for Ed25519. Without a secret it does not start. It
listens on the port in PORT, else on 8080, on this machine only; --addr says
otherwise.

With --mutant it has one deliberate fault: something to show that the suite, or
your own tests, notice it.`,
		Example: `  WEBHOOK_SECRET=whsec_… whconform reference receiver
  whconform reference receiver --secret-file secrets.txt --addr 127.0.0.1:9000
  whconform reference receiver --list-mutants
  whconform reference receiver --secret-file secrets.txt --mutant NAME`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.list {
				return a.listMutants()
			}
			return a.serveReference(c.Context(), f)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.addr, "addr", "", "`ADDRESS` to listen on; 127.0.0.1 and the port in PORT, else 8080, by default")
	flags.StringVar(&f.db, "db", "", "where accepted events are kept: a `FILE` for SQLite or a postgres:// URL; in memory by default")
	f.secrets.register(flags)
	flags.StringVar(&f.publicKey, "public-key", "", "the provider's Ed25519 public `KEY` (whpk_…)")
	flags.StringVar(&f.profile, "profile", "standard-webhooks", "the contract: a `NAME` of \"whconform profile list\", or a YAML file")
	flags.Int64Var(&f.maxBody, "max-body", 0, "largest body in `BYTES`; the profile's by default")
	flags.DurationVar(&f.bodyTimeout, "body-timeout", receiver.DefaultBodyTimeout, "how long a whole body may take")
	flags.StringVar(&f.cert, "cert", "", "PEM `FILE` with a certificate: serve https")
	flags.StringVar(&f.key, "key", "", "PEM `FILE` with its key")
	flags.StringVar(&f.hooks, "hooks", "", "for tests: make processing fail and move the clock by the adapter protocol, `WHERE` is stdio or a path such as /_hooks; needs --db")
	flags.StringVar(&f.mutant, "mutant", "", "be wrong in the way of this `NAME`")
	flags.BoolVar(&f.list, "list-mutants", false, "list the names with what each does wrong")
	return c
}

func (a *app) listMutants() error {
	for _, m := range mutant.Receivers() {
		_, err := fmt.Fprintf(a.out, "%s\n%s", m.Name, wrapped(4, m.Doc))
		if err != nil {
			return brokenf("listing the mutants: %w", err)
		}
	}
	return nil
}

func (a *app) serveReference(ctx context.Context, f *referenceFlags) error {
	logger := slog.New(slog.NewTextHandler(a.err, nil))
	p, err := loadProfile(f.profile)
	if err != nil {
		return err
	}
	keys, err := a.referenceKeys(f, p)
	if err != nil {
		return err
	}
	hooks, err := f.readHooks()
	if err != nil {
		return err
	}
	store, err := a.openInbox(ctx, f.db, p, hooks, logger)
	if err != nil {
		return err
	}
	made, err := a.makeReference(f, p, keys, store, hooks, logger)
	if err != nil {
		return errors.Join(err, store.close())
	}
	served := hooks.during(ctx, a, func(ctx context.Context) error { return a.serveAt(ctx, f, p, made, logger) })
	return errors.Join(served, store.close())
}

// serveAt listens and serves until ctx is done.
func (a *app) serveAt(ctx context.Context, f *referenceFlags, p *profile.Profile, made *referenceServer, logger *slog.Logger) error {
	if err := made.readTLS(f); err != nil {
		return err
	}
	address := f.addr
	if address == "" {
		port := a.env("PORT")
		if port == "" {
			port = "8080"
		}
		address = net.JoinHostPort("127.0.0.1", port)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return usagef("listening on %s: %w. Choose another one by --addr or PORT", address, err)
	}
	scheme := "http"
	if made.tls != nil {
		scheme = "https"
	}
	logger.Info("listening", "url", scheme+"://"+listener.Addr().String()+"/", "profile", p.Name)
	return made.serve(ctx, listener, logger)
}

// referenceKeys reads the secrets from the flags or else from the environment.
func (a *app) referenceKeys(f *referenceFlags, p *profile.Profile) ([]signature.Key, error) {
	scheme, err := p.Scheme()
	if err != nil {
		return nil, usagef("verifying by the profile %s: %w", p.Name, err)
	}
	all, err := a.readSecrets(f.secrets)
	if err != nil {
		return nil, err
	}
	public := f.publicKey
	if !f.secrets.given() && public == "" {
		for _, name := range []string{"WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS"} {
			if text := a.env(name); text != "" {
				a.kept.add(text)
				all = append(all, secret{text, name})
			}
		}
		public = a.env("WEBHOOK_PUBLIC_KEY")
	}
	if public != "" {
		all = append(all, secret{public, "the public key"})
	}
	if len(all) == 0 && f.mutant == "" {
		return nil, usagef("starting the reference receiver: there is no secret, and without one every delivery is a forgery. Set WEBHOOK_SECRET, or give --secret-file or --secret-env")
	}
	return readKeys(scheme, all)
}

// referenceServer is a server with what its mutant does around it.
type referenceServer struct {
	*http.Server
	mutant mutant.Mutant
	tls    *tls.Config
}

// makeReference makes the reference or the mutant that is asked for, with its
// hooks.
func (a *app) makeReference(f *referenceFlags, p *profile.Profile, keys []signature.Key, store *inbox, hooks *referenceHooks, logger *slog.Logger) (*referenceServer, error) {
	if f.mutant != "" {
		return a.makeMutant(f, p, keys, hooks, logger)
	}
	h, err := receiver.New(receiver.Config{
		Profile: p, Keys: keys, Store: &toldStore{store, logger}, Clock: hooks.time(), Logger: logger, MaxBody: f.maxBody, BodyTimeout: f.bodyTimeout,
	})
	if err != nil {
		return nil, usagef("starting the reference receiver: %w", err)
	}
	if store.durable != nil {
		hooks.offer("whconform reference receiver", receiver.Methods(store.durable, hooks.clock))
	} else if hooks.where != "" {
		return nil, usagef("reading --hooks: an inbox in memory has none, since nothing is processed. Give --db FILE")
	}
	return &referenceServer{Server: receiver.HTTPServer(hooks.beside(store.beside(h)))}, nil
}

func (a *app) makeMutant(f *referenceFlags, p *profile.Profile, keys []signature.Key, hooks *referenceHooks, logger *slog.Logger) (*referenceServer, error) {
	m, err := mutant.Find(f.mutant)
	if err != nil {
		return nil, usagef("reading --mutant: no mutant is called %q. See whconform reference receiver --list-mutants", f.mutant)
	}
	if slices.Contains(m.Needs, mutant.HTTPS) && f.cert == "" {
		return nil, usagef("starting the mutant %s: it is wrong in its TLS. Give it --cert and --key", m.Name)
	}
	served, err := m.Serve(mutant.Config{
		Profile: p, Keys: keys, Clock: clock.New(), Logger: logger, BodyTimeout: f.bodyTimeout,
		State: a.env(stateVariable), ProviderURL: a.env(providerVariable),
	})
	if err != nil {
		return nil, usagef("starting the receiver: %w", err)
	}
	hooks.offer("whconform mutant "+m.Name, served.Methods)
	served.Server.Handler = hooks.beside(served.Server.Handler)
	return &referenceServer{Server: served.Server, mutant: m}, nil
}

func (s *referenceServer) readTLS(f *referenceFlags) error {
	switch {
	case f.cert == "" && f.key == "":
		return nil
	case f.cert == "" || f.key == "":
		return usagef("reading the certificate: --cert and --key belong together. Give both")
	}
	certificate, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return usagef("reading the certificate: %w", err)
	}
	s.tls = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	if s.mutant.TLS != nil {
		s.mutant.TLS(s.tls)
	}
	return nil
}

// serve takes deliveries until ctx is done, and lets those in flight end.
func (s *referenceServer) serve(ctx context.Context, listener net.Listener, logger *slog.Logger) error {
	if s.mutant.Listener != nil {
		listener = s.mutant.Listener(listener)
	}
	if s.tls != nil {
		listener = tls.NewListener(listener, s.tls)
	}
	s.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	select {
	case err := <-served:
		return brokenf("serving: %w", err)
	case <-ctx.Done():
	}
	logger.Info("stopping")
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	err := s.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close()
	}
	<-served
	if err != nil {
		return brokenf("stopping: %w", err)
	}
	return nil
}

// toldStore is a store that tells of what it takes in; the receiver itself
// tells of what it refuses.
type toldStore struct {
	receiver.Store
	logger *slog.Logger
}

// Add implements receiver.Store.
func (s *toldStore) Add(ctx context.Context, m receiver.Message) (bool, error) {
	added, err := s.Store.Add(ctx, m)
	if err != nil {
		return added, err
	}
	what := "accepted"
	if !added {
		what = "accepted again, not stored twice"
	}
	fields := []any{"id", m.ID, "bytes", len(m.Body), "key", m.Key}
	if m.Type != "" { // most providers name it in the body only
		fields = append(fields, "type", m.Type)
	}
	s.logger.Info(what, fields...)
	return added, nil
}
