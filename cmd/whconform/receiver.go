package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/spf13/cobra"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/reference/profile"
)

// receiverFlags are those of "whconform receiver".
type receiverFlags struct {
	reference bool
	command   string

	secrets secretFlags
	target  targetFlags

	payload, eventType string

	allowLoad, rotation bool
	observe             observeFlags
	hooks               hookFlags
	rate                float64

	runFlags
}

func (a *app) receiverCommand() *cobra.Command {
	f := &receiverFlags{}
	c := &cobra.Command{
		Use:   "receiver [URL]",
		Short: "Judge a webhook receiver",
		Long: `Judge the webhook receiver at a URL, or one that is started for the run.

First a valid delivery is sent. If it is refused, the reason is looked for and
told, and the run ends. Otherwise some hundred deliveries follow, most of them
forged, stale, damaged or abusive on purpose, and what comes back is judged
against the requirements ("whconform requirements"). What is wrong is shown
with its likely cause and how to mend it.

Secrets are those that the receiver is configured with: the current one, during
a rotation the previous one too, and for Ed25519 the private key (whsk_…) that
belongs to its public key.

With --exec the suite starts the receiver, so that more can be judged. The
command is cut into words as a shell would, but there is no shell. It finds its
port in PORT, listens on 127.0.0.1, and takes its secret from WEBHOOK_SECRET,
which is made for the run unless you give one. A receiver that can hold two
while they are rotated takes the older from WEBHOOK_SECRET_PREVIOUS: add
--rotation. If you give a private key, WEBHOOK_PUBLIC_KEY belongs to it.

What becomes of an event after its 2xx is told by an observer (--observe) or by
an adapter (--control), which can also make processing fail and move the clock;
docs/adapter-protocol.md describes both.

Deliveries carry the profile's example event. A receiver that wants its own
takes --payload: a JSON template that may hold {{.ID}}, {{.Type}}, {{.Now}} (RFC
3339), {{.Unix}}, {{.Seq}} and {{.Random}}; {{json .ID}} quotes.

With --config the flags are read from a YAML file, whose keys they are; the key
url is the receiver's URL.

The text goes to stdout, progress to stderr. "whconform help exit-codes" lists
the exit codes.`,
		Example: `  whconform receiver --reference
  whconform receiver http://127.0.0.1:8080/webhooks --secret-env WEBHOOK_SECRET
  whconform receiver --exec 'node server.js'
  whconform receiver http://127.0.0.1:{port}/hooks --exec 'python3 app.py'
  whconform receiver https://staging.example.com/hooks --rate 20 \
    --allow-host staging.example.com --secret-file secrets.txt
  whconform receiver http://localhost:3000/ --secret-env S --run replay
  whconform receiver --config whconform.yaml --slow
  whconform receiver --reference --strict --report json=report.json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("reading the command line: %q is one argument too many. See %s --help", args[1], c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.judge(c, f, args) },
	}
	f.register(c)
	a.withConfig(c, "url")
	return c
}

func (f *receiverFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.reference, "reference", false, "judge the reference receiver, started for the run; no URL and no secret are needed")
	flags.StringVar(&f.command, "exec", "", "start `COMMAND` as the receiver; the URL, where one is given, holds {port} for the port it is told")
	f.secrets.register(flags)
	flags.BoolVar(&f.rotation, "rotation", false, "the command of --exec accepts the secret in WEBHOOK_SECRET_PREVIOUS, too")
	f.observe.register(flags)
	f.hooks.register(flags)
	f.registerProfile(flags)
	flags.StringVar(&f.payload, "payload", "", "template `FILE` of the event that deliveries carry; - is stdin")
	flags.StringVar(&f.eventType, "event-type", "", "`TYPE` of the event; the profile's first by default")
	f.target.register(flags)
	flags.BoolVar(&f.allowLoad, "allow-load", false, "send floods to a host that is not this machine, too")
	flags.Float64Var(&f.rate, "rate", 0, fmt.Sprintf("`DELIVERIES` begun a second; by default %d on this machine, %d elsewhere", conformance.DefaultRate, conformance.RemoteRate))
	f.runFlags.register(flags)
}

// judge is the command: read everything, start the subject, run, report.
func (a *app) judge(c *cobra.Command, f *receiverFlags, args []string) error {
	subject, config, err := a.readRun(c, f, args)
	if err != nil {
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
	if config.Receiver, err = subject.start(ctx); err != nil {
		return startError(ctx, err)
	}
	// The run may have been interrupted; the subject must end all the same.
	defer func() { _ = config.Receiver.Close(context.WithoutCancel(ctx)) }()
	progress.begin("judging %s by %s, seed %d", config.Target, config.Profile.Name, config.Seed)
	r, runErr := conformance.Run(ctx, config)
	progress.end()
	if r == nil {
		return fmt.Errorf("judging %s: %w", config.Target, runErr)
	}
	if subject.speaksTLS(ctx, r) {
		return brokenf("delivering to %s: the port speaks TLS. Write https:// in place of http://", config.Target)
	}
	if err := outputs.write(a, r, report.TextOptions{
		Color: a.color(f.noColor), Width: a.width(), Verbose: f.verbose, Repeat: repeater(c, args, r.Seed),
	}); err != nil {
		return err
	}
	return ending(ctx, r, runErr, f.timeout)
}

// startError tells why there was nothing to judge.
func startError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &exit{report.ExitInterrupted, fmt.Errorf("interrupted: %w", err)}
	}
	return brokenf("%w", err)
}

// ending is the exit code of a run, and what has to be said beside its report.
func ending(ctx context.Context, r *report.Report, err error, timeout time.Duration) error {
	var unreachable *conformance.UnreachableError
	late := r.DurationMS >= timeout.Milliseconds() || cutShort(r)
	switch {
	case errors.As(err, &unreachable):
		return brokenf("delivering to %s: %s. %s", r.Subject.Target, unreachable.Finding.Got, unreachable.Finding.Cause)
	case err != nil:
		return brokenf("judging %s: %w", r.Subject.Target, err)
	case r.Interrupted:
		return &exit{r.ExitCode(), fmt.Errorf("judging %s: interrupted; the report holds what was seen until then", r.Subject.Target)}
	case late && !answered(r):
		return brokenf("delivering to %s: no answer came within the --timeout of %v. Does the handler block, for example on a database?", r.Subject.Target, timeout)
	case late:
		return &exit{r.ExitCode(), fmt.Errorf("judging %s: the run was not done within its --timeout of %v; what was left counts as not reached. Give it more time, or leave something out by --skip", r.Subject.Target, timeout)}
	}
	if code := r.ExitCode(); code != 0 {
		return &exit{code: code}
	}
	return nil
}

// cutShort tells whether a scenario ran out of time.
func cutShort(r *report.Report) bool {
	return slices.ContainsFunc(r.Transcripts, func(t evidence.Transcript) bool { return t.Partial })
}

// answered tells whether anything came back at all.
func answered(r *report.Report) bool {
	for _, t := range r.Transcripts {
		for i := range t.Exchanges {
			if t.Exchanges[i].Response != nil {
				return true
			}
		}
	}
	return false
}

// readRun reads what the flags say, before anything is started or sent.
func (a *app) readRun(c *cobra.Command, f *receiverFlags, args []string) (*subject, conformance.Config, error) {
	// First, so that no error from here on can show one.
	given, err := a.readSecrets(f.secrets)
	if err != nil {
		return nil, conformance.Config{}, err
	}
	config, err := f.config(c)
	if err != nil {
		return nil, config, err
	}
	config.Load, config.Rate, config.Clock = f.allowLoad, f.rate, clock.New()
	if config.Event, err = a.readEvent(f, config); err != nil {
		return nil, config, err
	}
	if err := f.target.read(a); err != nil {
		return nil, config, err
	}
	config.Headers = f.target.parsed
	subject, err := a.readSubject(f, args, given, config.Profile)
	if err != nil {
		return nil, config, err
	}
	if subject.observation, err = f.observe.read(subject, a.kept); err != nil {
		return nil, config, err
	}
	if subject.hooks, err = f.hooks.read(subject, config.Profile, a.kept); err != nil {
		return nil, config, err
	}
	config.Target, config.Secrets = subject.name, texts(subject.secrets)
	// A mistake in the flags must not cost the start of a receiver.
	config.Receiver = drive.URL(subject.target)
	if _, err := conformance.Prepare(config); err != nil {
		return nil, config, err
	}
	return subject, config, nil
}

func loadProfile(name string) (*profile.Profile, error) {
	p, err := profile.Load(name)
	if err != nil {
		return nil, usagef("reading --profile: %w", err)
	}
	return p, nil
}

// readEvent is what deliveries carry: the user's own, or nothing for the
// profile's.
func (a *app) readEvent(f *receiverFlags, config conformance.Config) (receiver.Event, error) {
	event := receiver.Event{Type: f.eventType}
	if f.payload == "" {
		return event, nil
	}
	template, err := a.readPayload(f.payload)
	if err != nil {
		return event, err
	}
	event.Render = receiver.TemplateEvent(template, config.Clock)
	event.Records = receiver.TemplateRecord(template)
	return event, nil
}

func (a *app) readPayload(name string) (*profile.Payload, error) {
	text, err := a.readFile("--payload", name)
	if err != nil {
		return nil, err
	}
	template, err := profile.ParsePayload(name, text)
	if err != nil {
		return nil, usagef("reading --payload: %w", err)
	}
	return template, nil
}
