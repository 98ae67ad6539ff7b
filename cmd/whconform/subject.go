package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
)

// executableVariable names the program that --reference starts in place of this
// one. Tests that call run in their own process need it: there this program is
// the test.
const executableVariable = "WHCONFORM_EXECUTABLE"

// subject is a receiver that is yet to be started.
type subject struct {
	name      string   // in the report
	command   []string // to start; empty: it is running already
	reference bool     // the command is ours
	rotation  bool     // the command reads WEBHOOK_SECRET_PREVIOUS too
	target    fakeprovider.Target
	secrets   []secret
	given     drive.Secrets // what the command is configured with
	log       io.Writer     // of the command

	observation *observation // nil: nothing but the wire is seen
	hooks       hooks
}

// readSubject finds out what is to be judged: a URL, a command, the reference.
func (a *app) readSubject(f *receiverFlags, args []string, given []secret, p *profile.Profile) (*subject, error) {
	s := &subject{rotation: f.rotation}
	if f.verbose && !f.reference { // the reference tells of every delivery
		s.log = a.err
	}
	address := "http://127.0.0.1:{port}/"
	switch {
	case f.reference && (f.command != "" || len(args) > 0):
		return nil, usagef("reading the command line: --reference is judged where it is started; it goes with neither --exec nor a URL")
	case f.rotation && (f.command == "" || f.secrets.given()):
		return nil, usagef("reading the command line: --rotation makes a second secret for --exec. Where you give secrets yourself, give the previous one by a second --secret")
	case f.reference && f.secrets.given():
		return nil, usagef("reading the command line: the reference is started with secrets of its own. Leave out --secret")
	case f.reference:
		self, err := a.executable()
		if err != nil {
			return nil, brokenf("finding this program to start the reference: %w", err)
		}
		s.name, s.reference = "reference", true
		s.command = []string{self, "reference", "receiver", "--profile", f.profile, "--hooks", onStdio}
		if f.hooks.db != "" {
			s.command = append(s.command, "--db", f.hooks.db)
		}
	case f.command != "":
		words, err := splitWords(f.command)
		if err != nil {
			return nil, usagef("reading --exec: %w", err)
		}
		s.name, s.command = f.command, words
	}
	switch {
	case len(args) > 0 && s.command != nil && !strings.Contains(args[0], "{port}"):
		return nil, usagef("reading the URL: with --exec it holds {port} in place of the port, which the suite chooses: http://127.0.0.1:{port}/hooks")
	case len(args) > 0 && s.command == nil && strings.Contains(args[0], "{port}"):
		return nil, usagef("reading the URL: {port} is for --exec, where the suite chooses the port. Write the receiver's own")
	case len(args) > 0:
		address = args[0]
	case s.command == nil:
		return nil, usagef("reading the command line: nothing to judge. Give the receiver's URL, --exec COMMAND, or --reference")
	}
	var err error
	if s.target, err = f.target.target(a, address); err != nil {
		return nil, err
	}
	if s.command == nil {
		s.name = withoutCredentials(address)
	}
	return s, a.subjectSecrets(s, given, p)
}

// subjectSecrets takes the secrets given, or makes them for a command.
func (a *app) subjectSecrets(s *subject, given []secret, p *profile.Profile) error {
	scheme, err := p.Scheme()
	if err != nil {
		return usagef("signing by the profile %s: %w", p.Name, err)
	}
	s.secrets = given
	switch {
	case len(given) > 0:
	case s.command != nil:
		// Not every receiver knows Ed25519 or two secrets at a time, and one
		// that does not is not wrong: they are tried where the user says so.
		if s.secrets, err = a.freshSecrets(scheme, s.reference || s.rotation, s.reference); err != nil {
			return err
		}
	default:
		return usagef("reading the secrets: none is given. Give the one that the receiver is configured with by --secret-env, --secret-file or --secret")
	}
	keys, err := readKeys(scheme, s.secrets)
	if err != nil {
		return err
	}
	s.given = forCommand(s.secrets, keys)
	return nil
}

func (a *app) executable() (string, error) {
	if other := a.env(executableVariable); other != "" {
		return other, nil
	}
	return os.Executable()
}

// start starts what there is to start. Closing the receiver ends it, and removes
// the folder it was given.
func (s *subject) start(ctx context.Context) (_ drive.Receiver, err error) {
	all := &started{}
	defer func() {
		if err != nil {
			_ = all.Close(context.WithoutCancel(ctx))
		}
	}()
	api, err := s.hooks.play()
	if err != nil {
		return nil, err
	}
	if api != nil {
		all.others = append(all.others, api.Close)
	}
	if s.command == nil {
		all.Receiver = drive.URL(s.target)
		if api != nil {
			all.Receiver = drive.AsksProvider(all.Receiver, api.API)
		}
	} else if all.Receiver, err = s.exec(ctx, all, api); err != nil {
		return nil, err
	}
	hooked, err := s.hooks.attach(ctx, all.Receiver)
	if err != nil {
		return nil, err
	}
	all.Receiver = hooked
	watched, err := s.observation.watch(hooked)
	if err != nil {
		return nil, err
	}
	all.Receiver = watched
	return all, nil
}

// exec starts the command on a folder of its own.
func (s *subject) exec(ctx context.Context, all *started, api *fakeprovider.APIServer) (drive.Receiver, error) {
	state, err := os.MkdirTemp("", "whconform-")
	if err != nil {
		return nil, fmt.Errorf("making a state folder for the receiver: %w", err)
	}
	if s.hooks.db != "" {
		all.others = append(all.others, func(ctx context.Context) error { return dropSchemas(ctx, s.hooks.db, state) })
	}
	all.others = append(all.others, func(context.Context) error {
		if err := os.RemoveAll(state); err != nil {
			return fmt.Errorf("removing the receiver's state folder: %w", err)
		}
		return nil
	})
	return drive.Exec(ctx, drive.ExecConfig{
		Command: s.command, Target: s.target, Secrets: s.given, State: state, Log: s.observation.log(s.log),
		Stdio: s.hooks.stdio, Instances: s.hooks.instances, Provider: api,
	})
}

// speaksTLS tells whether a receiver that accepted nothing over http would have
// spoken https. Servers answer plain HTTP on a TLS port with a 400 or with
// nothing at all, which a report would take for the receiver's own answer.
func (s *subject) speaksTLS(ctx context.Context, r *report.Report) bool {
	u, err := url.Parse(s.target.URL)
	if err != nil || u.Scheme != "http" || s.command != nil || r.Diagnosis == nil || r.Summary.Pass > 0 {
		return false
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "80")
	}
	ctx, cancel := context.WithTimeout(ctx, fakeprovider.ConnectTimeout)
	defer cancel()
	// Whoever is there: nothing is sent to it.
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// repeater makes the command that tries one requirement again: this one, with
// what chooses and shows left out, and placeholders for what is secret.
func repeater(c *cobra.Command, args []string, seed uint64) func(id string) string {
	words, behind := []string{"whconform", c.Name()}, ""
	for _, arg := range args {
		if c.Flags().ArgsLenAtDash() >= 0 {
			behind += " " + quoteWord(arg) // a command, whose own flags are none of ours
			continue
		}
		words = append(words, quoteWord(withoutCredentials(arg)))
	}
	if behind != "" {
		behind = " --" + behind
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		if fromConfig(f) {
			return // --config has it
		}
		switch f.Name {
		case "run", "skip", "slow", "seed", "strict", "report", "format", "verbose", "no-color", "timeout":
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			switch {
			case f.Name == "secret":
				words = append(words, "--secret SECRET")
			case f.Name == "header":
				name, _, _ := strings.Cut(value, ":")
				words = append(words, "--header "+quoteWord(name+": VALUE"))
			case f.Name == "db" || (f.Name == "control" || f.Name == "observe") && strings.Contains(value, "@"): // a password, perhaps
				words = append(words, "--"+f.Name+" URL")
			case f.Value.Type() == "bool" || f.NoOptDefVal == value && value != "":
				words = append(words, "--"+f.Name)
			case f.NoOptDefVal != "":
				words = append(words, "--"+f.Name+"="+quoteWord(value))
			default:
				words = append(words, "--"+f.Name+" "+quoteWord(value))
			}
		}
	})
	return func(id string) string {
		slow := ""
		if r, ok := catalogue.Find(id); ok && r.Has(catalogue.LabelSlow) {
			slow = " --slow"
		}
		return fmt.Sprintf("%s --run %s%s --seed %d%s", strings.Join(words, " "), id, slow, seed, behind)
	}
}

// withoutCredentials hides user and password of a URL.
func withoutCredentials(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return text
	}
	u.User = url.User("redacted")
	return u.String()
}
