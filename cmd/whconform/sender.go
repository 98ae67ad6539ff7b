package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/benbjohnson/clock"
	"github.com/spf13/cobra"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/report"
)

// senderFlags are those of "whconform sender".
type senderFlags struct {
	reference bool
	control   string
	trigger   string
	manual    bool
	clock     string
	secrets   secretFlags
	allowHost []string

	runFlags
}

func (a *app) senderCommand() *cobra.Command {
	f := &senderFlags{}
	c := &cobra.Command{
		Use:   "sender [flags] -- ADAPTER [ARGUMENT…]",
		Short: "Judge a webhook sender",
		Long: `Judge a webhook sender by what it sends.

The suite plays the endpoints: it has the sender make them, publishes events,
answers well and badly, and looks at every attempt that comes. It reaches the
sender through an adapter, a small program that speaks the adapter protocol on
its standard streams (docs/adapter-protocol.md); "whconform adapter check" walks
through one. A sender that serves the same messages itself is reached by
--control URL.

Where the adapter can move the sender's clock, days of retries pass in a second.
Where it cannot, the sender declares a shorter schedule for the run, and time is
real. What the adapter does not declare is not judged, and the report says so.

Without an adapter, --trigger COMMAND runs a command for each event, and
--manual asks you to make the endpoints and send the events yourself. Both show
what the sender does at once: its requests and signatures.

The text goes to stdout, progress to stderr. "whconform help exit-codes" lists
the exit codes.`,
		Example: `  whconform sender --reference
  whconform sender -- node adapter.mjs
  whconform sender --control http://127.0.0.1:9000/adapter
  whconform sender --run retry --run timeout -- ./adapter
  whconform sender --trigger './send-event.sh' --secret-env WEBHOOK_SECRET
  whconform sender --reference --report json=report.json`,
		RunE: func(c *cobra.Command, args []string) error { return a.judgeSender(c, f, args) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.reference, "reference", false, "judge the reference sender, started for the run")
	flags.StringVar(&f.control, "control", "", "speak the adapter protocol by POST to this `URL`")
	flags.StringVar(&f.trigger, "trigger", "", "run `COMMAND` for each event; it is told where to send it in its environment")
	flags.BoolVar(&f.manual, "manual", false, "ask on the terminal for each endpoint and each event")
	flags.StringVar(&f.clock, "clock", "", "`MODE` of the sender's clock: virtual or scaled; by default virtual where it can be moved")
	f.secrets.register(flags)
	flags.StringArrayVar(&f.allowHost, "allow-host", nil, "the `HOST` of --control may be another than this machine; repeatable")
	f.registerProfile(flags)
	f.runFlags.register(flags)
	a.withConfig(c, "adapter")
	return c
}

// judgeSender is the command: read everything, run, report.
func (a *app) judgeSender(c *cobra.Command, f *senderFlags, args []string) error {
	given, err := a.readSecrets(f.secrets)
	if err != nil {
		return err
	}
	config, err := f.config(c)
	if err != nil {
		return err
	}
	config.Mode, config.Clock = f.clock, clock.New()
	state, err := os.MkdirTemp("", "whconform-sender-")
	if err != nil {
		return brokenf("making a state folder for the sender: %w", err)
	}
	defer func() { _ = os.RemoveAll(state) }()
	if config.Target, config.Sender, err = a.readSender(f, args, given, state); err != nil {
		return err
	}
	if _, err := conformance.Prepare(config); err != nil {
		return err
	}
	if config.Known, err = f.known.read(a); err != nil {
		return err
	}
	outputs, err := f.outputs(a)
	if err != nil {
		return err
	}
	defer outputs.discard()
	progress := a.newProgress(f.verbose)
	config.Progress = progress.step
	ctx := c.Context()
	progress.begin("judging %s by %s, seed %d", config.Target, config.Profile.Name, config.Seed)
	r, runErr := conformance.Run(ctx, config)
	progress.end()
	if r == nil {
		return fmt.Errorf("judging %s: %w", config.Target, runErr)
	}
	if err := outputs.write(a, r, report.TextOptions{
		Color: a.color(f.noColor), Width: a.width(), Verbose: f.verbose, Repeat: repeater(c, args, r.Seed),
	}); err != nil {
		return err
	}
	return ending(ctx, r, runErr, f.timeout)
}

// readSender finds out what is to be judged, and how it is started.
func (a *app) readSender(f *senderFlags, args []string, given []secret, state string) (string, conformance.StartSender, error) {
	if err := f.oneSubject(args, given); err != nil {
		return "", nil, err
	}
	options := drive.SenderOptions{Redact: a.kept.text, Secret: a.kept.add}
	var log io.Writer
	if f.verbose && !f.reference { // the reference tells of every attempt
		log = a.err
	}
	switch {
	case f.control != "":
		return a.readControlledSender(f, options)
	case f.trigger != "":
		return a.readTriggeredSender(f, given, log)
	case f.manual:
		return "by hand", func(context.Context, drive.SenderSetup) (drive.Sender, error) {
			return drive.SenderManual(drive.ManualConfig{In: a.in, Out: a.err, Secret: a.kept.add})
		}, nil
	}
	name, command := strings.Join(args, " "), args
	if f.reference {
		self, err := a.executable()
		if err != nil {
			return "", nil, brokenf("finding this program to start the reference: %w", err)
		}
		name, command = "reference", []string{self, "reference", "sender", "--adapter", "--profile", f.profile}
	}
	return name, func(ctx context.Context, setup drive.SenderSetup) (drive.Sender, error) {
		setup.State = state
		return drive.SenderExec(ctx, drive.SenderExecConfig{SenderSetup: setup, SenderOptions: options, Command: command, Log: log})
	}, nil
}

// oneSubject refuses flags that name no sender or more than one.
func (f *senderFlags) oneSubject(args []string, given []secret) error {
	named := 0
	for _, is := range []bool{f.reference, f.control != "", f.trigger != "", f.manual, len(args) > 0} {
		if is {
			named++
		}
	}
	switch {
	case named == 0:
		return usagef("reading the command line: nothing to judge. Give the adapter's command behind --, or --control URL, --trigger COMMAND, --manual or --reference")
	case named > 1:
		return usagef("reading the command line: one sender at a time: the adapter's command behind --, --control, --trigger, --manual or --reference")
	case len(given) > 0 && f.trigger == "":
		return usagef("reading the command line: secrets come from the sender: its adapter answers each endpoint's, and --manual asks for it. --secret goes with --trigger only")
	case len(given) == 0 && f.trigger != "":
		return usagef("reading the command line: --trigger needs the secret that the sender signs with. Give --secret-env or --secret-file")
	}
	return nil
}

func (a *app) readControlledSender(f *senderFlags, options drive.SenderOptions) (string, conformance.StartSender, error) {
	u, err := readURL(f.control)
	if err != nil {
		return "", nil, err
	}
	if password, ok := u.User.Password(); ok {
		a.kept.add(password)
	}
	if !conformance.Loopback(u.String()) && !slices.Contains(f.allowHost, u.Hostname()) {
		return "", nil, usagef("reading --control: %s is not this machine, and its sender is made to fail, wait and retry. If you may do that there, add --allow-host %s", u.Hostname(), u.Hostname())
	}
	return f.control, func(ctx context.Context, setup drive.SenderSetup) (drive.Sender, error) {
		return drive.SenderControl(ctx, drive.SenderControlConfig{SenderSetup: setup, SenderOptions: options, URL: f.control})
	}, nil
}

func (a *app) readTriggeredSender(f *senderFlags, given []secret, log io.Writer) (string, conformance.StartSender, error) {
	words, err := splitWords(f.trigger)
	if err != nil {
		return "", nil, usagef("reading --trigger: %w", err)
	}
	secrets := texts(given)
	config := drive.TriggerConfig{
		Command: words, Log: log, Redact: a.kept.text,
		// One secret for all endpoints, or the n-th for the n-th and the last for the rest.
		Secret: func(n int) (string, error) { return secrets[min(n, len(secrets))-1], nil },
	}
	return f.trigger, func(context.Context, drive.SenderSetup) (drive.Sender, error) { return drive.SenderTrigger(config) }, nil
}
