package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/reference/profile"
)

func (a *app) profileCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "profile",
		Short: "List, show and check profiles",
		Long: `A profile is a documented contract as data: how deliveries are signed, what they
look like, how long anybody waits. Some are built in; one of your own is a YAML
file, given by --profile FILE.`,
	}, a.profileListCommand(), a.profileShowCommand(), a.profileCheckCommand())
}

func (a *app) profileListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the profiles that are built in",
		Args:  exactly(),
		RunE: func(*cobra.Command, []string) error {
			for _, name := range profile.Names() {
				p, err := profile.Load(name)
				if err != nil {
					return brokenf("reading the profile %s: %w", name, err)
				}
				mark := ""
				if _, err := p.Scheme(); err != nil {
					mark = " (described only: its deliveries cannot be signed here)"
				}
				if _, err := fmt.Fprintf(a.out, "%-20s %s%s\n", name, p.Title, mark); err != nil {
					return brokenf("listing the profiles: %w", err)
				}
			}
			return nil
		},
	}
}

func (a *app) profileShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Print a profile, to read it or to begin one's own",
		Example: `  whconform profile show standard-webhooks >mine.yaml`,
		Args:    exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := profile.Load(args[0])
			if err != nil {
				return usagef("showing a profile: %w", err)
			}
			if _, err := a.out.Write(p.YAML()); err != nil {
				return brokenf("showing the profile: %w", err)
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return profile.Names(), cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func (a *app) profileCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "Check profiles of your own",
		Long: `Check profiles. Every fault is printed with its line and column, one a line on
stdout; if there is any the exit code is 2.`,
		Example: `  whconform profile check mine.yaml`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactly("FILE")(c, args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.checkProfiles(args) },
	}
}

func (a *app) checkProfiles(names []string) error {
	faulty := 0
	for _, name := range names {
		text := ""
		p, err := profile.Load(name)
		var faults *profile.ParseError
		switch {
		case err == nil:
			text = fmt.Sprintf("%s: valid, profile %s", name, p.Name)
		case errors.As(err, &faults):
			faulty++
			text = faults.Error()
		default:
			return usagef("checking a profile: %w", err)
		}
		if _, err := fmt.Fprintln(a.out, strings.TrimRight(text, "\n")); err != nil {
			return brokenf("checking profiles: %w", err)
		}
	}
	if faulty > 0 {
		return &exit{report.ExitUsage, fmt.Errorf("checking profiles: %d of %d cannot be used", faulty, len(names))}
	}
	return nil
}
