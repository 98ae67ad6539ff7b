package main

import (
	"io"
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"github.com/whconform/whconform/conformance/drive"
)

// referenceObserver is where the reference tells how often it processed an
// event.
const referenceObserver = "http://127.0.0.1:{port}/_observe/events/{id}"

// observeFlags say how the suite learns what a receiver made of an event.
type observeFlags struct{ url, command, log string }

func (f *observeFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "observe", "", "`URL` that tells how often the event {id} was processed, as a number or {\"processed\": n}; a #fragment is a JSON Pointer into the answer; {port} as above")
	flags.StringVar(&f.command, "observe-exec", "", "`COMMAND` that prints it; {id}, or the id as its last word")
	flags.StringVar(&f.log, "observe-log", "", "`REGEX` with {id}: the lines of --exec's output that match are counted")
}

// observation is an observer that is made when the receiver's port is known.
type observation struct {
	make func(port string) (drive.Observer, error)
	tap  *drive.LogTap // reads the command's output, nil unless --observe-log
}

// read checks the flags; nil where none is given.
func (f *observeFlags) read(s *subject, kept *secrets) (*observation, error) {
	given := 0
	for _, v := range []string{f.url, f.command, f.log} {
		if v != "" {
			given++
		}
	}
	options := drive.ObserveOptions{Redact: func(text string) string {
		clean, _ := kept.clean([]byte(text))
		return string(clean)
	}}
	switch {
	case given > 1:
		return nil, usagef("reading the command line: one observer is enough: --observe, --observe-exec or --observe-log")
	case given > 0 && s.reference:
		return nil, usagef("reading the command line: the reference brings its own observer. Leave out --observe, --observe-exec and --observe-log")
	case s.reference:
		return observeURL(referenceObserver, options)
	case f.url != "":
		if strings.Contains(f.url, "{port}") && s.command == nil {
			return nil, usagef("reading --observe: {port} is for --exec, where the suite chooses the port. Write the receiver's own")
		}
		return observeURL(f.url, options)
	case f.command != "":
		words, err := splitWords(f.command)
		if err != nil {
			return nil, usagef("reading --observe-exec: %w", err)
		}
		observer, err := drive.ObserveExec(drive.ObserveExecConfig{ObserveOptions: options, Command: words})
		if err != nil {
			return nil, usagef("reading the command line: %w", err)
		}
		return &observation{make: func(string) (drive.Observer, error) { return observer, nil }}, nil
	case f.log != "":
		if s.command == nil {
			return nil, usagef("reading --observe-log: it reads the output of --exec COMMAND")
		}
		tap, err := drive.ObserveLog(f.log)
		if err != nil {
			return nil, usagef("reading the command line: %w", err)
		}
		return &observation{make: func(string) (drive.Observer, error) { return tap, nil }, tap: tap}, nil
	}
	return nil, nil
}

// observeURL checks the template now and makes the observer later.
func observeURL(template string, options drive.ObserveOptions) (*observation, error) {
	with := func(port string) (drive.Observer, error) {
		return drive.ObserveURL(drive.ObserveURLConfig{ObserveOptions: options, Template: strings.ReplaceAll(template, "{port}", port)})
	}
	if _, err := with("1"); err != nil {
		return nil, usagef("reading the command line: %w", err)
	}
	return &observation{make: with}, nil
}

// watch puts the observer beside a receiver that has started.
func (o *observation) watch(r drive.Receiver) (drive.Receiver, error) {
	if o == nil {
		return r, nil
	}
	return drive.Observed(r, func(r drive.Receiver) (drive.Observer, error) {
		port := ""
		if u, err := url.Parse(r.Target(0).URL); err == nil {
			port = u.Port()
		}
		return o.make(port)
	})
}

// log is where a command's output goes: to what it went to before, and to the
// observer that reads it.
func (o *observation) log(before io.Writer) io.Writer {
	switch {
	case o == nil || o.tap == nil:
		return before
	case before == nil:
		return o.tap
	}
	return io.MultiWriter(before, o.tap)
}
