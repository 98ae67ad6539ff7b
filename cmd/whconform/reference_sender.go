package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/whconform/whconform/conformance/drive/adapter"
	"github.com/whconform/whconform/conformance/selftest"
	"github.com/whconform/whconform/reference/mutant"
	"github.com/whconform/whconform/reference/sender"
)

// referenceSenderFlags are those of "whconform reference sender".
type referenceSenderFlags struct {
	adapter bool
	db      string
	addr    string
	token   string // of the environment
	allow   []string
	profile string
	mutant  string
	list    bool
	verbose bool
}

func (a *app) referenceSenderCommand() *cobra.Command {
	f := &referenceSenderFlags{}
	c := &cobra.Command{
		Use:   "sender",
		Short: "Run the reference sender",
		Long: `Run the reference sender until it is interrupted: endpoints are made and events
published by its HTTP API (/v1/webhook-endpoints, /v1/events), with the token in
the environment variable that --token-env names; what became of them is at
/v1/webhook-deliveries, and /metrics needs no token. Its outbox is the SQLite
file of --db, which several processes may share. It sends to public https
addresses alone; --allow-host names hosts of this machine beside them.

With --adapter it is driven by the adapter protocol, on stdin and stdout, until
stdin ends: what "whconform sender --reference" starts, and something to look at
while you write an adapter of your own (docs/adapter-protocol.md). Its outbox is
then sender.db in the folder that initialize names as stateDir, or in
WHCONFORM_STATE_DIR, else in a temporary one.

With --mutant it has one deliberate fault: something to show that the suite, or
your own endpoint, notice it.`,
		Example: `  TOKEN=… whconform reference sender --db outbox.db --token-env TOKEN
  whconform sender -- whconform reference sender --adapter
  whconform adapter check -- whconform reference sender --adapter`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.list {
				return a.listSenderMutants()
			}
			return a.serveSender(c.Context(), f)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.adapter, "adapter", false, "speak the adapter protocol on stdin and stdout")
	flags.StringVar(&f.db, "db", "", "`FILE` of the outbox")
	flags.StringVar(&f.addr, "addr", "127.0.0.1:8090", "`ADDRESS` that the HTTP API listens on")
	flags.StringVar(&f.token, "token-env", "", "environment `VARIABLE` with the token of the HTTP API")
	flags.StringArrayVar(&f.allow, "allow-host", nil, "`HOST` of this machine that endpoints may have, without TLS; repeatable")
	flags.StringVar(&f.profile, "profile", "", "the contract, a `NAME` of \"whconform profile list\" or a YAML file, in place of the one that initialize names")
	flags.StringVar(&f.mutant, "mutant", "", "be wrong in the way of this `NAME`")
	flags.BoolVar(&f.list, "list-mutants", false, "list the names with what each does wrong")
	flags.BoolVar(&f.verbose, "verbose", false, "tell on stderr of every attempt")
	return c
}

func (a *app) serveSender(ctx context.Context, f *referenceSenderFlags) error {
	if !f.adapter {
		return a.serveOutbox(ctx, f)
	}
	options := sender.ControlOptions{Version: version(), StateDir: a.env(stateVariable)}
	if f.profile != "" {
		p, err := loadProfile(f.profile)
		if err != nil {
			return err
		}
		options.Profile = p
	}
	if f.verbose {
		options.Logger = slog.New(slog.NewTextHandler(a.err, nil))
	}
	m := mutant.SenderReference(f.profile)
	if f.mutant != "" {
		var err error
		if m, err = mutant.FindSender(f.mutant); err != nil {
			return usagef("reading --mutant: no mutant sender is called %q. See whconform reference sender --list-mutants", f.mutant)
		}
	}
	control := m.Control(options)
	// The protocol's secrets are the suite's to keep, so they pass unredacted.
	err := adapter.Serve(ctx, a.in, a.out.to, selftest.SenderMethods(control, selftest.ProcessCapabilities()...))
	if err = errors.Join(err, control.Close()); err != nil {
		return brokenf("serving the adapter protocol: %w", err)
	}
	return nil
}

func (a *app) listSenderMutants() error {
	for _, m := range mutant.Senders() {
		if _, err := fmt.Fprintf(a.out, "%s\n%s", m.Name, wrapped(4, m.Doc)); err != nil {
			return brokenf("listing the mutants: %w", err)
		}
	}
	return nil
}
