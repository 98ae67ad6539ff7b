// Package drive reaches the subject under test: a receiver at a URL, one that
// the suite starts as a process, or an http.Handler in this process. All
// scenarios go through the same small interfaces, so the reference and a
// foreign implementation take one path.
//
// Start with [Receiver], then [URL], [Handler] and [Exec]; [Observed] puts an
// [Observer] of its effects beside a receiver, [Hooked] what only the receiver
// can do, and [AsksProvider] the provider's API that it asks.
//
// For a sender start with [Sender], which [SenderExec], [SenderControl],
// [SenderTrigger] and [SenderManual] reach, and with [Timeline], the one clock of
// a run. [NameServer] plays the name server that a sender asks, and
// [CheckAdapter] walks through the protocol with an adapter that is being written.
package drive

import (
	"context"
	"errors"

	"github.com/whconform/whconform/fakeprovider"
)

// Capabilities that a receiver may offer beside a URL, by the names that the
// catalogue's Needs use.
const (
	Managed             = "managed"              // the suite starts and restarts it
	Observe             = "observe"              // an observer tells how often an event was processed
	ObserveByID         = "observe-by-id"        // and keeps events apart by their ids
	SecondConfiguration = "second-configuration" // the suite can start another one with other secrets
	Fail                = "fail"                 // the processing of an event can be made to fail once
	ObserveState        = "observe-state"        // the state of a record can be read
	Clock               = "clock"                // its clock can be moved
	Instances           = "instances"            // several processes share one store
	ProviderAPI         = "provider-api"         // it asks the provider's API that the suite plays
)

// ErrNotOffered is returned by a method whose capability the subject lacks.
var ErrNotOffered = errors.New("the subject does not offer this")

// Subject is an implementation under test.
type Subject interface {
	// Has tells whether the subject offers a capability.
	Has(capability string) bool
	// Restart stops the subject, with SIGKILL if kill, and starts it again on
	// the same state. ErrNotOffered unless Has(Managed).
	Restart(ctx context.Context, kill bool) error
	// Close ends what was started and waits for it.
	Close(context.Context) error
}

// Receiver is a webhook receiver.
type Receiver interface {
	Subject
	// Target is where an instance takes deliveries; 0 is the first.
	Target(instance int) fakeprovider.Target
	// Observer tells how often an event was processed. Its only method returns
	// ErrNotOffered unless Has(Observe); see [Observed].
	Observer
	// Hooks are what only the receiver can do; see [Hooked].
	Hooks
	// Second is where a second process on the same state takes deliveries, which
	// is Target(1) from then on. The first call starts it; Restart and Close
	// reach both. ErrNotOffered unless Has(Instances).
	Second(context.Context) (fakeprovider.Target, error)
	// Provider is the provider's own API that the receiver asks, played by the
	// suite. Nil unless Has(ProviderAPI); see [AsksProvider].
	Provider() *fakeprovider.API
	// Variant starts another receiver of the same kind, configured with
	// secrets, beside this one. The caller closes it. An error that wraps
	// ErrRefusedToStart means that it chose not to run so. ErrNotOffered unless
	// Has(SecondConfiguration).
	Variant(context.Context, Secrets) (Receiver, error)
}

// ErrNeverListened means that a receiver was started and nothing took
// connections on its port in time.
var ErrNeverListened = errors.New("nothing listened on the receiver's port")

// ErrRefusedToStart means that a receiver ended by itself before it listened.
var ErrRefusedToStart = errors.New("the receiver ended before it listened")

// Secrets is what a receiver is configured with. An empty string is an
// environment variable set to nothing; Unset leaves all of them out.
type Secrets struct {
	Current, Previous string
	Public            string // whpk_…, for Ed25519
	Unset             bool
}

// environment is what a managed receiver is started with, as environment
// variables. PORT, WHCONFORM_STATE_DIR and the secrets it lists are the whole
// contract between the suite and a command under test.
func (s Secrets) environment() []string {
	if s.Unset {
		return nil
	}
	env := []string{"WEBHOOK_SECRET=" + s.Current}
	if s.Previous != "" {
		env = append(env, "WEBHOOK_SECRET_PREVIOUS="+s.Previous)
	}
	if s.Public != "" {
		env = append(env, "WEBHOOK_PUBLIC_KEY="+s.Public)
	}
	return env
}

// texts lists the secrets for redaction.
func (s Secrets) texts() []string { return []string{s.Current, s.Previous} }
