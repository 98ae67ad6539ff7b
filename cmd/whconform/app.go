package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/whconform/whconform/conformance/report"
)

// helpWidth is what help is wrapped at: the terminal that everybody has.
const helpWidth = 80

// app is one run of the command line. All output goes through out and err,
// which let no secret pass.
type app struct {
	in       io.Reader
	out, err *redactor
	lookup   func(string) (string, bool) // of the environment
	kept     *secrets                    // what the writers must not let through

	outFile, errFile *os.File // the terminals, if they are such; else nil
	started          bool     // a command's own code has begun: what fails now is not the command line
}

// run is the whole program but for the process around it. It returns the exit
// code; see docs/exit-codes.md.
func run(ctx context.Context, args []string, in io.Reader, out, err io.Writer, lookup func(string) (string, bool)) (code int) {
	kept := &secrets{}
	a := &app{in: in, out: newRedactor(out, kept), err: newRedactor(err, kept), lookup: lookup, kept: kept}
	a.outFile, a.errFile = terminal(out), terminal(err)
	defer func() {
		// A panic's stack may hold anything, so none is shown.
		if p := recover(); p != nil {
			fmt.Fprintf(a.err, "whconform: the program itself failed: %v. Please report this with the command that was run\n", p)
			code = report.ExitError
		}
		if e := a.flush(); e != nil && code == 0 {
			code = report.ExitError
		}
	}()
	a.kept.addFrom(args)
	root := a.root()
	root.SetArgs(args)
	return a.conclude(root.ExecuteContext(ctx))
}

func (a *app) flush() error {
	outErr := a.out.Flush()
	if err := a.err.Flush(); err != nil {
		return err
	}
	return outErr
}

// terminal returns w if it is one.
func terminal(w io.Writer) *os.File {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// env is a variable of the environment; one that is absent is empty.
func (a *app) env(name string) string {
	value, _ := a.lookup(name)
	return value
}

// color tells whether stdout may be coloured: a terminal that can, and nobody
// said no (https://no-color.org).
func (a *app) color(forbidden bool) bool {
	return a.outFile != nil && !forbidden && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

// width is how wide text for stdout may be; 0 where there is no terminal.
func (a *app) width() int {
	// Longer lines are hard to read.
	const widest = 120
	if a.outFile == nil {
		return 0
	}
	columns, _, err := term.GetSize(int(a.outFile.Fd()))
	if err != nil {
		return 0
	}
	return min(columns, widest)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "whconform",
		Short: "Judge webhook implementations against documented behaviour",
		Long: `whconform judges webhook implementations against documented behaviour, says
what is wrong and how to mend it, and holds the tools to try it yourself.

To judge the receiver that listens on port 8080:

  whconform receiver http://127.0.0.1:8080/webhooks --secret-env WEBHOOK_SECRET

To see a run without having anything to judge:

  whconform receiver --reference`,
		SilenceErrors: true, SilenceUsage: true,
		Args:             noArgsButCommands,
		RunE:             func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRun: func(*cobra.Command, []string) { a.started = true },
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpTemplate(helpTemplate)
	cobra.AddTemplateFunc("flags", flagText)
	root.SetFlagErrorFunc(flagError)
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(
		a.receiverCommand(), a.senderCommand(), a.adapterCommand(), a.judgeCommand(), a.reportCommand(), a.providerCommand(), a.providerAPICommand(), a.endpointCommand(), a.referenceCommand(),
		a.requirementsCommand(), a.explainCommand(), a.profileCommand(), a.vectorsCommand(),
		a.selftestCommand(), a.versionCommand(), exitCodesTopic(),
	)
	root.SetHelpCommand(helpCommand())
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Short = "Print a script that completes commands in a shell"
		parent(completion)
	}
	return root
}

// helpCommand is cobra's, but a topic that does not exist is an error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Tell about a command, or about exit-codes",
		Long:  "Tell about a command or a topic, as COMMAND --help does.",
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 && about.HasSubCommands() {
				return usagef("showing help: there is nothing about %q. See whconform --help", strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// noArgsButCommands refuses a word that is no command and says what is like it.
func noArgsButCommands(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("reading the command line: there is no command %q%s See %s --help", args[0], didYouMean(c.SuggestionsFor(args[0])), c.CommandPath())
}

// parent makes a command that only holds others.
func parent(c *cobra.Command, children ...*cobra.Command) *cobra.Command {
	c.Args = noArgsButCommands
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(children...)
	return c
}

// flagText is the flags of a command, wrapped.
func flagText(c *cobra.Command) string {
	return strings.TrimRight(c.LocalFlags().FlagUsagesWrapped(helpWidth), " \n")
}

const helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}`

const usageTemplate = `Usage:{{if and .Runnable (not .HasAvailableSubCommands)}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{flags .}}{{end}}{{if .HasHelpSubCommands}}

More to read:{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  {{rpad .CommandPath .CommandPathPadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableSubCommands}}

{{.CommandPath}} COMMAND --help tells more of a command.{{end}}
`
