package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/fakeprovider"
)

// defaultLoad is how long a load lasts where nothing is said.
const defaultLoad = 10 * time.Second

// loadFlags are those that make deliveries a load.
type loadFlags struct {
	rate               float64
	duration           time.Duration
	forged, duplicates share
	connections        int
	seed               uint64
	allowLoad          bool
	format             string
}

func (f *loadFlags) register(flags *pflag.FlagSet) {
	flags.Float64Var(&f.rate, "rate", 0, fmt.Sprintf("send a load: so many `DELIVERIES` a second, copies included, at most %d", fakeprovider.MaxRate))
	flags.DurationVar(&f.duration, "duration", defaultLoad, fmt.Sprintf("with --rate: for how long, at most %v", fakeprovider.MaxLoadDuration))
	flags.Var(&f.forged, "forged", "with --rate: `SHARE` of events that are signed by a key nobody has, such as 5%")
	flags.Var(&f.duplicates, "duplicates", "with --rate: `SHARE` of events that were sent before, signed anew")
	flags.IntVar(&f.connections, "connections", fakeprovider.DefaultConnections, fmt.Sprintf("with --rate: connections at most, up to %d", fakeprovider.MaxConnections))
	flags.Uint64Var(&f.seed, "seed", 0, "with --rate: repeat the choices of the load that printed this `NUMBER`")
	flags.BoolVar(&f.allowLoad, "allow-load", false, "with --rate: send it to a host that is not this machine, too")
	flags.StringVar(&f.format, "format", "text", "with --rate: `FORMAT` of what goes to stdout: text or json")
}

// share is a part of a whole: 5% or 0.05.
type share float64

// String implements pflag.Value.
func (s *share) String() string { return strconv.FormatFloat(float64(*s)*100, 'g', -1, 64) + "%" }

// Type implements pflag.Value.
func (s *share) Type() string { return "share" }

// Set implements pflag.Value.
func (s *share) Set(text string) error {
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(digits, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return errors.New("a share is from 0% to 100%, or from 0 to 1")
	}
	*s = share(v)
	return nil
}

// onlyOneByOne lists the flags that say something about single deliveries.
func onlyOneByOne() []string {
	return []string{"id", "count", "age", "tamper", "reserialize", "drop-header", "wrong-secret", "unsigned", "chunked"}
}

// onlyLoad lists the flags that say something about a load.
func onlyLoad() []string {
	return []string{"duration", "forged", "duplicates", "connections", "seed", "allow-load", "format"}
}

// check tells which flags do not go together.
func (f *loadFlags) check(flags *pflag.FlagSet) error {
	if !flags.Changed("rate") {
		for _, name := range onlyLoad() {
			if flags.Changed(name) {
				return usagef("reading the command line: --%s is about a load. Say how many deliveries a second by --rate", name)
			}
		}
		return nil
	}
	for _, name := range onlyOneByOne() {
		if flags.Changed(name) {
			return usagef("reading the command line: --%s is for single deliveries, it does not go with --rate", name)
		}
	}
	if f.format != "text" && f.format != "json" {
		return usagef("reading --format: there is no format %q; text and json are", f.format)
	}
	return nil
}

// load sends deliveries at a rate and shows what became of them.
func (a *app) load(c *cobra.Command, f *providerFlags, s *sending, address string) error {
	shown := withoutCredentials(address)
	if !conformance.Loopback(address) && !f.load.allowLoad {
		return usagef("reading the URL: %s is not this machine. If you may put it under load, add --allow-load", shown)
	}
	seed := f.load.seed
	if !c.Flags().Changed("seed") {
		seed = uint64(rand.Uint32()) // short enough to type
	}
	config := fakeprovider.LoadConfig{
		Rate: f.load.rate, Duration: f.load.duration, Copies: f.copies, Connections: f.load.connections,
		Forged: float64(f.load.forged), Duplicates: float64(f.load.duplicates),
		Keys: s.keys, Type: f.eventType, Event: s.render, Seed: seed, Second: a.showSecond(),
	}
	if err := config.Check(); err != nil {
		return usagef("reading the command line: %w", err)
	}
	fmt.Fprintf(a.err, "sending %v a second to %s for %v, seed %d\n", config.Rate, shown, config.Duration, seed)
	result, loadErr := s.provider.Load(c.Context(), s.to, config)
	if result == nil {
		return &exit{report.ExitNotConformant, fmt.Errorf("sending to %s: %w", shown, loadErr)}
	}
	if err := a.showLoad(f.load.format, result); err != nil {
		return brokenf("showing the result: %w", err)
	}
	return loadEnding(c, shown, result, loadErr)
}

// loadEnding is the exit code of a load, and why it is not 0.
func loadEnding(c *cobra.Command, shown string, r *fakeprovider.LoadResult, err error) error {
	switch {
	case c.Context().Err() != nil:
		return &exit{report.ExitInterrupted, fmt.Errorf("sending to %s: interrupted after %d of %d deliveries", shown, r.Sent, r.Due)}
	case err != nil:
		return usagef("sending to %s: %w", shown, err)
	case r.Forged.Accepted > 0:
		return &exit{report.ExitNotConformant, fmt.Errorf("sending to %s: %d of %d forged deliveries were accepted", shown, r.Forged.Accepted, r.Forged.Sent)}
	case r.Unanswered() > 0:
		return &exit{report.ExitNotConformant, fmt.Errorf("sending to %s: %d of %d deliveries got no answer", shown, r.Unanswered(), r.Due)}
	}
	return nil
}

func (a *app) showLoad(format string, r *fakeprovider.LoadResult) error {
	if format == "json" {
		out := json.NewEncoder(a.out)
		out.SetIndent("", "  ")
		return out.Encode(r)
	}
	return fakeprovider.WriteLoad(a.out, r)
}

// showSecond tells of each second, a line each, on a terminal; nil elsewhere: a
// log has no use for it.
func (a *app) showSecond() func(fakeprovider.LoadSecond) {
	if a.errFile == nil {
		return nil
	}
	return func(s fakeprovider.LoadSecond) {
		fmt.Fprintf(a.err, "%4d s  %6d sent  %6d accepted  %6d refused  %6d failed  max %v\n", s.Second, s.Sent, s.Accepted, s.Refused, s.Failed, s.Max.Round(100*time.Microsecond))
	}
}
