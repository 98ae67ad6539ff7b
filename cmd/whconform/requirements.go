package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/conformance/suite"
)

func (a *app) requirementsCommand() *cobra.Command {
	var asJSON, schema bool
	var part string
	c := &cobra.Command{
		Use:   "requirements [PATTERN...]",
		Short: "List what implementations are judged by",
		Long: `List the requirements, group by group: id, level and statement.

MUST fails a run, SHOULD warns, MAY is reported as a fact; PROFILE leaves the
level to the profile. What this version cannot try yet is marked "no check".
Patterns are those of "whconform receiver --run". "whconform explain ID" tells
all about one of them.`,
		Example: `  whconform requirements
  whconform requirements replay '*.duplicate.*'
  whconform requirements --part receiver --json`,
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case schema:
				if _, err := a.out.Write(catalogue.Schema()); err != nil {
					return brokenf("writing the schema: %w", err)
				}
				return nil
			case part != "" && !slices.Contains([]string{catalogue.Receiver, catalogue.Sender, catalogue.Library}, part):
				return usagef("reading --part: there is no part %q; there are receiver, sender and library", part)
			}
			rows, err := selected(part, args)
			if err != nil {
				return err
			}
			if asJSON {
				return catalogue.WriteJSON(a.out, rows)
			}
			return a.listRequirements(rows)
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&part, "part", "", "only this `PART`: receiver, sender or library")
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON, with all that is known of each")
	c.Flags().BoolVar(&schema, "schema", false, "the JSON Schema of that instead")
	return c
}

// selected are the rows of a part that the patterns name; all without any.
func selected(part string, patterns []string) ([]catalogue.Requirement, error) {
	rows, err := catalogue.Load()
	if err != nil {
		return nil, err
	}
	if part != "" {
		rows = catalogue.OfPart(part)
	}
	if len(patterns) == 0 {
		return rows, nil
	}
	ids, err := catalogue.Select(rows, patterns)
	if err != nil {
		return nil, usagef("reading the patterns: %w", err)
	}
	return slices.DeleteFunc(rows, func(r catalogue.Requirement) bool { return !slices.Contains(ids, r.ID) }), nil
}

// checked are the requirements that this version can try, with their scenario.
func checked() map[string]suite.Check {
	checks := map[string]suite.Check{}
	for _, c := range receiver.Checks() {
		checks[c.Requirement] = c
	}
	return checks
}

func (a *app) listRequirements(rows []catalogue.Requirement) error {
	checks := checked()
	var out strings.Builder
	unchecked := 0
	for _, g := range catalogue.Groups() {
		of := slices.DeleteFunc(slices.Clone(rows), func(r catalogue.Requirement) bool { return r.Group() != g.Name })
		if len(of) == 0 {
			continue
		}
		fmt.Fprintf(&out, "%s: %s\n", g.Name, g.Title)
		for _, r := range of {
			mark := ""
			if _, ok := checks[r.ID]; !ok {
				mark = "  (no check)"
				unchecked++
			}
			fmt.Fprintf(&out, "  %-7s %s%s\n%s", r.Level, r.ID, mark, wrapped(10, r.Statement))
		}
		out.WriteByte('\n')
	}
	fmt.Fprintf(&out, "%d requirements, %d of them without a check in this version\n", len(rows), unchecked)
	if _, err := fmt.Fprint(a.out, out.String()); err != nil {
		return brokenf("listing the requirements: %w", err)
	}
	return nil
}

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain ID",
		Short: "Tell all about one requirement",
		Long: `Tell all about one requirement: what must hold, what goes wrong otherwise, how
to mend it, where the rule comes from, and how it is tried.`,
		Example: `  whconform explain receiver.rawbody.rejects-reserialized`,
		Args:    exactly("ID"),
		RunE: func(_ *cobra.Command, args []string) error {
			r, ok := catalogue.Find(args[0])
			if !ok {
				return usagef("explaining %q: there is no such requirement%s See whconform requirements", args[0], didYouMean(catalogue.Suggest(args[0])))
			}
			if err := catalogue.Explain(a.out, r); err != nil {
				return brokenf("%w", err)
			}
			if _, err := fmt.Fprintf(a.out, "\nTried\n%s", wrapped(2, tried(r))); err != nil {
				return brokenf("explaining %s: %w", r.ID, err)
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var ids []string
			for _, r := range catalogue.All() {
				ids = append(ids, r.ID)
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// tried says how a requirement is tried.
func tried(r catalogue.Requirement) string {
	check, ok := checked()[r.ID]
	if !ok {
		return "Not by this version: a run reports it as not judged (no-check)."
	}
	text := "By whconform receiver --run " + r.ID
	if r.Has(catalogue.LabelSlow) {
		text += " --slow"
	}
	if check.Scenario != r.ID {
		text += ", from what is sent for " + check.Scenario
	}
	return text + "."
}

// wrapped is text in lines of at most helpWidth columns behind an indent.
func wrapped(indent int, text string) string {
	var out strings.Builder
	margin := strings.Repeat(" ", indent)
	column := 0
	for word := range strings.FieldsSeq(text) {
		length := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			out.WriteString(margin)
			column = indent
		case column+1+length > helpWidth:
			out.WriteString("\n" + margin)
			column = indent
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += length
	}
	out.WriteByte('\n')
	return out.String()
}
