package main

import "github.com/spf13/cobra"

// exitCodesTopic is a page of help, not a command.
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `The exit codes of whconform:

  0    The gate is open. The subject is conformant, or nothing that was judged
       fails and only your own --run and --skip left something out; or all that
       fails is on the list of --known-failing.
  1    The gate is closed. A MUST is broken; or part of the core set could not
       be judged, because the subject refused the valid delivery, throttled, or
       took longer than --timeout; or, with --strict, a SHOULD is broken; or
       something on the list of --known-failing holds.
       "whconform provider": a delivery got no answer. "whconform selftest": a
       mutant was not caught, or the reference was blamed.
  2    You asked for something that cannot be: an unknown flag, a pattern that
       matches nothing, a secret that is none, a host without --allow-host.
       Nothing was sent.
  3    There is no verdict: nobody answers at the URL, the command did not
       start, or something broke down.
  130  You interrupted it. The report holds what was seen until then.

A receiver that answers the valid delivery with an error is no reason for 3: it
is reached, and fails. With 0, 1, 3 and 130 there is a report; the exception is
a command that did not start.

Of several, the first of this order holds: 2, 130, 3, 1, 0.`,
	}
}
