package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/spf13/cobra"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/conformance/selftest"
)

func (a *app) selftestCommand() *cobra.Command {
	var pattern, part string
	var asJSON, verbose bool
	c := &cobra.Command{
		Use:   "selftest",
		Short: "Let the suite judge the reference and every mutant",
		Long: `Let the suite prove itself: it judges the references, which it must not blame,
and every mutant, a receiver or a sender with one deliberate fault, which it
must fail for that fault and for no other. It takes a minute or two; the numbers
that a receiver's run waits for are scaled down.

The exit code is 0 when all was as it should be, else 1.`,
		Example: `  whconform selftest
  whconform selftest --run 'accepts-*'
  whconform selftest --part sender`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if part != "" && part != catalogue.Receiver && part != catalogue.Sender {
				return usagef("reading --part: there is no part %q to test; there are %s and %s", part, catalogue.Receiver, catalogue.Sender)
			}
			options := selftest.Options{Part: part, Progress: a.selftestProgress(verbose)}
			if pattern != "" {
				if _, err := path.Match(pattern, ""); err != nil {
					return usagef("reading --run: %w", err)
				}
				options.Mutants = func(name string) bool {
					matches, _ := path.Match(pattern, name) // the pattern was tried above
					return matches
				}
			}
			matrix, err := selftest.Run(c.Context(), options)
			if c.Context().Err() != nil {
				return &exit{report.ExitInterrupted, errors.New("testing the suite: interrupted")}
			}
			a.clearProgress()
			switch {
			case errors.Is(err, selftest.ErrNoMutant):
				return usagef("reading --run: no mutant matches %q. See whconform reference receiver --list-mutants, and reference sender", pattern)
			case err != nil:
				return brokenf("testing the suite: %w", err)
			}
			return a.showMatrix(matrix, asJSON)
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&pattern, "run", "", "judge only mutants whose name matches this `PATTERN` with * and ?")
	c.Flags().StringVar(&part, "part", "", "only the mutants of one `PART`: receiver or sender")
	c.Flags().BoolVar(&asJSON, "json", false, "the matrix as JSON")
	c.Flags().BoolVar(&verbose, "verbose", false, "a line on stderr for each mutant")
	return c
}

func (a *app) showMatrix(m *selftest.Matrix, asJSON bool) error {
	var err error
	if asJSON {
		encoder := json.NewEncoder(a.out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(m)
	} else {
		err = m.WriteText(a.out)
	}
	if err != nil {
		return brokenf("writing the matrix: %w", err)
	}
	if !m.OK() {
		return &exit{code: report.ExitNotConformant}
	}
	return nil
}

// selftestProgress shows how far the matrix is, as runs do. It is called from
// one goroutine at a time.
func (a *app) selftestProgress(verbose bool) func(done, total int, row selftest.Row) {
	return func(done, total int, row selftest.Row) {
		switch {
		case verbose:
			word := "ok"
			if !row.OK() {
				word = "wrong"
			}
			fmt.Fprintf(a.err, "%d of %d  %-5s  %s\n", done, total, word, row.Mutant)
		case a.errFile != nil:
			fmt.Fprintf(a.err, "%s%d of %d  %s", clearLine, done, total, row.Mutant)
		}
	}
}

func (a *app) clearProgress() {
	if a.errFile != nil {
		fmt.Fprint(a.err, clearLine)
	}
}
