// Command whconform judges webhook implementations against documented
// behaviour, and holds the tools around that: a provider to send with, a
// reference receiver to send to, the catalogue of requirements, profiles and
// test vectors.
//
// Each command has a file of its own; receiver.go is the one to read first. The
// files hold flags, messages and exit codes and no rule of the domain: those
// stand in the packages that the commands call.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the run in order; a second one ends it at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
}
