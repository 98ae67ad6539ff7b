package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/whconform/whconform/conformance/report"
)

// shownFlags say how a report that is there already is shown.
type shownFlags struct {
	format           string
	verbose, noColor bool
}

func (f *shownFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.format, "format", "text", "`FORMAT` of what goes to stdout: text, json, junit or markdown")
	flags.BoolVar(&f.verbose, "verbose", false, "list also what passed and all that was reported")
	flags.BoolVar(&f.noColor, "no-color", false, "no colours; the variable NO_COLOR does the same")
}

func (f *shownFlags) check() error {
	if !formatExists(f.format) {
		return usagef("reading --format: there is no format %q; there are %s", f.format, formats)
	}
	return nil
}

func (a *app) reportCommand() *cobra.Command {
	f := &shownFlags{}
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Show a saved report, also in another form",
		Long: `Show the report of an earlier run, from the JSON that --report json=FILE or
--format json wrote. - is stdin.

Text is for people, junit for pipelines that show tests, markdown for the
comment on a pull request. A report that was cut short, or whose numbers
contradict its results, is refused.

Nothing is judged anew: "whconform judge" does that. The exit code is 0 whatever
the report says.`,
		Example: `  whconform report report.json
  whconform report report.json --format junit > report.xml
  whconform report report.json --format markdown > comment.md`,
		Args: exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			r, err := a.readReport(args[0])
			if err != nil {
				return err
			}
			return a.showReport(f, r)
		},
	}
	f.register(c)
	return c
}

// showReport writes a report to stdout.
func (a *app) showReport(f *shownFlags, r *report.Report) error {
	options := report.TextOptions{Color: a.color(f.noColor), Width: a.width(), Verbose: f.verbose}
	if err := render(a.out, f.format, r, options); err != nil {
		return brokenf("%w", err)
	}
	return nil
}

// readReport reads a saved report; - is stdin.
func (a *app) readReport(name string) (*report.Report, error) {
	from := io.Reader(a.in)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usagef("opening the report: %w", err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	r, err := report.ReadJSON(from)
	if err != nil {
		return nil, usagef("opening %s: %w", name, err)
	}
	return r, nil
}
