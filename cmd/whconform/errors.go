package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/report"
)

// exit ends the program with a code. Without an error everything has been said.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usagef is an error of the command line or of a file that it names.
func usagef(format string, args ...any) error {
	return &exit{report.ExitUsage, fmt.Errorf(format, args...)}
}

// brokenf is an error of what the command has to do with.
func brokenf(format string, args ...any) error {
	return &exit{report.ExitError, fmt.Errorf(format, args...)}
}

// conclude prints the one error there is and returns the exit code.
func (a *app) conclude(err error) int {
	if err == nil {
		return 0
	}
	var end *exit
	var usage *conformance.UsageError
	code := report.ExitError
	switch {
	case errors.As(err, &end):
		code = end.code
		if end.err == nil {
			return code
		}
	case errors.As(err, &usage):
		code = report.ExitUsage
	case errors.Is(err, context.Canceled):
		code = report.ExitInterrupted
	case !a.started: // cobra's own
		code = report.ExitUsage
		err = fmt.Errorf("reading the command line: %w", err)
	}
	fmt.Fprintf(a.err, "whconform: %s\n", sentence(err.Error()))
	return code
}

// sentence ends a message, unless the end of it is what a program printed.
func sentence(text string) string {
	text = strings.TrimRight(text, "\n")
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if strings.HasPrefix(last, " ") || strings.HasSuffix(text, "?") || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// flagError adds to pflag's error what may have been meant.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	meant := "."
	if errors.As(err, &unknown) {
		meant = didYouMean(similarFlags(c, unknown.GetSpecifiedName()))
	}
	return usagef("reading the command line: %w%s See %s --help", err, meant, c.CommandPath())
}

// similarFlags lets cobra's search for a likely command look among the flags.
func similarFlags(c *cobra.Command, name string) []string {
	search := &cobra.Command{SuggestionsMinimumDistance: 2}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		search.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	names := search.SuggestionsFor(name)
	for i := range names {
		names[i] = "--" + names[i]
	}
	return names
}

// didYouMean ends a sentence about a word that is not known.
func didYouMean(names []string) string {
	if len(names) == 0 {
		return "."
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// exactly is the arguments' count with a message that names them.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		if len(args) < len(names) {
			return usagef("reading the command line: %s is missing. See %s --help", names[len(args)], c.CommandPath())
		}
		return usagef("reading the command line: %q is one argument too many. See %s --help", args[len(names)], c.CommandPath())
	}
}
