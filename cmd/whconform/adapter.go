package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/reference/profile"
)

func (a *app) adapterCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "adapter",
		Short: "Try an adapter that is being written",
		Long: `An adapter is a small program that speaks for a sender or a receiver: it does
what cannot be asked for on the wire. docs/adapter-protocol.md describes the
protocol, with adapters to copy.`,
	}
	return parent(c, a.adapterCheckCommand())
}

func (a *app) adapterCheckCommand() *cobra.Command {
	var profileName string
	var timeout time.Duration
	verbose := false
	c := &cobra.Command{
		Use:   "check [flags] -- ADAPTER [ARGUMENT…]",
		Short: "Walk through the protocol with an adapter, step by step",
		Long: `Walk through the protocol with an adapter, step by step.

The adapter is started as a run would start it. Each method that it declares is
called once with harmless parameters. A sender makes an endpoint, publishes an
event whose attempt has to arrive, and retries it; a receiver is asked about
events that were never sent. At last it is listened to, killed if it declares to
bear that, and asked to end.

For each step it is said what was asked, what came, and what is to be done. Exit
code 0: it would do for a run. 3: it would not. 2: nothing was tried.`,
		Example: `  whconform adapter check -- node adapter.mjs
  whconform adapter check --profile delivery-envelope -- ./adapter --test
  whconform adapter check -- whconform reference sender --adapter`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("reading the command line: no adapter. Give its command behind --: whconform adapter check -- node adapter.mjs")
			}
			p, err := profile.Load(profileName)
			if err != nil {
				return usagef("reading --profile: %w", err)
			}
			if timeout <= 0 {
				return usagef("reading --timeout: %v is no time to wait", timeout)
			}
			return a.checkAdapter(c, drive.CheckConfig{Command: args, Profile: p, CallTimeout: timeout}, verbose)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&profileName, "profile", "standard-webhooks", "the contract: the `NAME` of a profile or a file")
	flags.DurationVar(&timeout, "timeout", 10*time.Second, "how long the adapter may take for each answer")
	flags.BoolVarP(&verbose, "verbose", "v", false, "show what the adapter logs to stderr")
	return c
}

// checkAdapter is the command.
func (a *app) checkAdapter(c *cobra.Command, config drive.CheckConfig, verbose bool) error {
	state, err := os.MkdirTemp("", "whconform-adapter-")
	if err != nil {
		return brokenf("making a state folder for the adapter: %w", err)
	}
	defer func() { _ = os.RemoveAll(state) }()
	config.State = state
	if verbose {
		config.Log = a.err
	}
	failed := 0
	config.Tell = func(s drive.Step) {
		if s.Outcome == drive.StepFailed {
			failed++
		}
		fmt.Fprint(a.out, stepText(s))
	}
	good, err := drive.CheckAdapter(c.Context(), config)
	switch {
	case err != nil:
		return err
	case good:
		fmt.Fprintln(a.out, "\nThe adapter would do for a run.")
		return nil
	}
	steps := "1 step failed"
	if failed != 1 {
		steps = fmt.Sprintf("%d steps failed", failed)
	}
	fmt.Fprintf(a.out, "\nThe adapter would not do for a run: %s.\n", steps)
	return &exit{code: report.ExitError}
}

// stepText is a step as it is printed: a line, and what came and what is to be
// done below it where that is more than a line.
func stepText(s drive.Step) string {
	const column = 24
	var text strings.Builder
	name := s.Name
	if len(name) < column {
		name += strings.Repeat(" ", column-len(name))
	}
	fmt.Fprintf(&text, "%-12s%s", s.Outcome, name)
	switch {
	case s.Asked != "" && s.Came != "" && s.Outcome == drive.StepOK:
		fmt.Fprintf(&text, " %s → %s", s.Asked, s.Came)
	case s.Asked != "":
		fmt.Fprintf(&text, " %s", s.Asked)
	case s.Came != "" && s.Outcome == drive.StepOK:
		fmt.Fprintf(&text, " %s", s.Came)
	}
	line := strings.TrimRight(text.String(), " ")
	text.Reset()
	text.WriteString(line + "\n")
	if s.Outcome != drive.StepOK && s.Came != "" {
		fmt.Fprintf(&text, "            came: %s\n", strings.ReplaceAll(s.Came, "\n", "\n                  "))
	}
	if s.Do != "" {
		fmt.Fprintf(&text, "            do:   %s\n", s.Do)
	}
	return text.String()
}
