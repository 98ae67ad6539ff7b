package main

import (
	"bytes"

	"github.com/spf13/pflag"

	"github.com/whconform/whconform/conformance/report"
)

// knownFormat is the list of what is known to fail, as a format of output. It
// is no report, so --report and --format do not take it.
const knownFormat = "known-failing"

// knownFlags are about what is known to fail.
type knownFlags struct{ file, write string }

func (f *knownFlags) register(flags *pflag.FlagSet) {
	f.registerRead(flags)
	flags.StringVar(&f.write, "write-known-failing", "", "write such a `FILE` from this run; it may be the same one")
}

// registerRead is for commands that write no such list.
func (f *knownFlags) registerRead(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "known-failing", "", "let what this `FILE` lists fail: a pattern a line, then # and the reason; what it lists and holds exits with 1")
}

// read reads the list; nil without one.
func (f *knownFlags) read(a *app) (report.Known, error) {
	if f.file == "" {
		return nil, nil
	}
	text, err := a.readFile("--known-failing", f.file)
	if err != nil {
		return nil, err
	}
	known, err := report.ReadKnown(bytes.NewReader(text))
	if err != nil {
		return nil, usagef("reading --known-failing %s: %w", f.file, err)
	}
	return known, nil
}
