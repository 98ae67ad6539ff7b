package main

import (
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/catalogue"
)

// runFlags are those that every run has, whatever it judges.
type runFlags struct {
	profile          string
	run, skip        []string
	slow, strict     bool
	known            knownFlags
	seed             uint64
	timeout          time.Duration
	reports          []string
	format           string
	verbose, noColor bool
}

func (f *runFlags) registerProfile(flags *pflag.FlagSet) {
	flags.StringVar(&f.profile, "profile", "standard-webhooks", "the contract: a `NAME` of \"whconform profile list\", or a YAML file")
}

func (f *runFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.run, "run", nil, "judge only these: an id, a group (replay), or a `PATTERN` with * and ?; separated by commas; repeatable")
	flags.StringArrayVar(&f.skip, "skip", nil, "leave these out, likewise a `PATTERN`; repeatable")
	flags.BoolVar(&f.slow, "slow", false, "judge also what takes a minute or more")
	flags.BoolVar(&f.strict, "strict", false, "exit with 1 on warnings, too")
	f.known.register(flags)
	flags.Uint64Var(&f.seed, "seed", 0, "repeat the choices of the run that printed this `NUMBER`; a new one by default")
	flags.DurationVar(&f.timeout, "timeout", conformance.DefaultTimeout, "bound on the whole run, such as 90s or 5m")
	flags.StringArrayVar(&f.reports, "report", nil, "write a report too, as `FORMAT=FILE`; formats: json, junit, markdown, text; repeatable")
	flags.StringVar(&f.format, "format", "text", "`FORMAT` of what goes to stdout: text, json, junit or markdown")
	flags.BoolVar(&f.verbose, "verbose", false, "list also what passed and all that was reported, and show the log of a command")
	flags.BoolVar(&f.noColor, "no-color", false, "no colours; the variable NO_COLOR does the same")
}

// config is the part of a run's configuration that these flags make.
func (f *runFlags) config(c *cobra.Command) (conformance.Config, error) {
	config := conformance.Config{
		Run: f.run, Skip: f.skip, Slow: f.slow, Strict: f.strict,
		Seed: f.seed, Timeout: f.timeout, Version: version(),
	}
	if !c.Flags().Changed("seed") {
		// Short enough to type; a run has a few hundred choices.
		config.Seed = uint64(rand.Uint32())
	}
	for _, part := range []struct {
		flag     string
		patterns []string
	}{{"--run", f.run}, {"--skip", f.skip}} {
		if _, err := catalogue.Match(part.patterns); err != nil {
			return config, usagef("reading %s: %w", part.flag, err)
		}
	}
	if f.timeout <= 0 {
		return config, usagef("reading --timeout: %v is no time to run in", f.timeout)
	}
	var err error
	config.Profile, err = loadProfile(f.profile)
	return config, err
}
