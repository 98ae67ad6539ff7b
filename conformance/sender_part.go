package conformance

import (
	"context"
	"time"

	"github.com/whconform/whconform/conformance/drive"
)

// The clock modes of a sender's run.
const (
	ModeVirtual = "virtual" // the suite moves the sender's clock
	ModeScaled  = "scaled"  // real time, and a shorter schedule that the sender declares
)

// SenderSetup is what a sender's adapter is told when it is started.
type SenderSetup struct {
	Profile       string
	Virtual       bool      // its clock is going to be moved
	Now           time.Time // what a virtual clock begins with
	AllowHosts    []string  // hosts that it may call although they are internal
	Resolver      string    // host:port of the name server that it is to ask
	CACertificate string    // PEM, of the authority behind https addresses of the run
}

// StartSender starts a sender for a run, which closes it.
type StartSender func(context.Context, SenderSetup) (drive.Sender, error)

func newSenderPart(Config) (part, error) {
	return nil, usage("senders cannot be judged yet")
}
