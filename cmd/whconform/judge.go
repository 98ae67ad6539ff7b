package main

import (
	"github.com/spf13/cobra"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/report"
)

func (a *app) judgeCommand() *cobra.Command {
	f := &shownFlags{}
	known := &knownFlags{}
	var strict bool
	c := &cobra.Command{
		Use:   "judge FILE",
		Short: "Judge a saved run again, without sending anything",
		Long: `Judge the run of a saved report again with this version's checks, from the
exchanges that the report holds. Nothing is sent. FILE is the JSON that --report
json=FILE or --format json wrote; - is stdin.

So a run can be looked at after the suite has learned something, or under
--strict, or with another list of what is known to fail. Only what the run tried
is judged. What this version tries and that one did not is not reached.

The text goes to stdout. The exit codes are those of "whconform receiver".`,
		Example: `  whconform judge report.json
  whconform judge report.json --strict --format json > again.json`,
		Args: exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			list, err := known.read(a)
			if err != nil {
				return err
			}
			saved, err := a.readReport(args[0])
			if err != nil {
				return err
			}
			if c.Flags().Changed("strict") {
				saved.Strict = strict
			}
			r, err := conformance.Rejudge(saved)
			if err != nil {
				return err
			}
			r.Suite.Version = version()
			if list != nil {
				r.Excuse(list)
			}
			if err := a.showReport(f, r); err != nil {
				return err
			}
			return judgedAgain(r)
		},
	}
	f.register(c)
	c.Flags().BoolVar(&strict, "strict", false, "exit with 1 on warnings, too; as the run had it by default")
	known.registerRead(c.Flags())
	return c
}

// judgedAgain is the exit code of a saved run, the same that the run had.
func judgedAgain(r *report.Report) error {
	if !r.Interrupted && cutShort(r) && !answered(r) {
		return brokenf("judging %s again: no answer came before the run was out of time", r.Subject.Target)
	}
	if code := r.ExitCode(); code != 0 {
		return &exit{code: code}
	}
	return nil
}
