// Package mutant holds deliberately wrong webhook receivers: the reference with
// one fault each. A conformance suite that does not notice them is wrong
// itself, and each shows a fault that was met in the field.
//
// A [Mutant] says in one sentence what is wrong with it, and names the
// requirements that it breaks, by the ids of the requirement catalogue: these,
// and no others. [Receivers] lists them all. They stand in files by requirement
// group: what breaks receiver.replay.* is in receiver_replay.go.
//
// Read build.go first: a fault is put around the reference's handler, in place
// of its verification, into its configuration or into the server under it. To
// add a mutant, write its sentence, its requirements and its few lines in the
// group's file. business.go is what happens behind the answer, and [Otherwise]
// lists receivers that are right in another way.
package mutant

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
)

// StandardWebhooks is the name of the profile for which most mutants are made.
const StandardWebhooks = "standard-webhooks"

// VerdictError is the value of Mutant.Verdict for a receiver that cannot be
// judged at all.
const VerdictError = "error"

// What a mutant needs of the run beside a URL: the values of Mutant.Needs.
const (
	TwoSecrets          = "two-secrets"          // Config.Keys holds a previous secret as well
	Ed25519             = "ed25519"              // Config.Keys holds a public key
	SecondConfiguration = "second-configuration" // New is called again, with other keys
	PublicName          = "public-name"          // its URL names a host beyond loopback
	Managed             = "managed"              // it is run as a process, which can be killed
	HTTPS               = "https"                // it is served over TLS, with TLS applied to the server's configuration
	Insecure            = "insecure"             // deliveries do not verify its certificate
	Slow                = "slow"                 // the rows that wait for tens of seconds are judged
	Load                = "load"                 // floods are allowed
	OneAtATime          = "one-at-a-time"        // its fault in one scenario reaches others that run beside it
)

// Config is what a mutant is made from.
type Config struct {
	Profile *profile.Profile
	// Keys are the secrets that the receiver is configured with: the current
	// one, then the previous, then a public key, as far as there are such.
	// Empty means that no secret is configured, or an empty one.
	Keys   []signature.Key
	Clock  clock.Clock
	Logger *slog.Logger

	BodyTimeout time.Duration // for the whole body; 0: the reference's
	AckTimeout  time.Duration // what the run takes for the provider's timeout; 0: the profile's
	Fast        time.Duration // what the run takes for a fast answer; 0: 1 s
	Burst       time.Duration // likewise in a burst; 0: 2 s

	// State is the folder for what must outlast the process; "": memory.
	State string

	// ProviderURL is where the provider is asked for a payment, as in
	// receiver.Options; "": nobody is asked.
	ProviderURL string

	journal *journal // opened by Serve
}

// Mutant is a receiver with one deliberate fault.
type Mutant struct {
	Name string // words joined by dashes
	Doc  string // what is wrong, as one sentence

	// Fails lists the requirements it breaks, whether the suite must fail them
	// (MUST) or warn (SHOULD). All others hold, as far as a run can judge them;
	// a listed one shows only in a run that offers what the requirement needs,
	// two secrets for instance.
	Fails []string

	// Reports lists requirements that are never judged (MAY) and under which
	// the fault shows.
	Reports []string

	Profile string   // the contract it is made for
	Needs   []string // see TwoSecrets and what follows it

	// Verdict is what the run as a whole must come to, where that does not
	// follow from Fails: VerdictError, or "".
	Verdict string

	// New makes the handler. A mutant keeps what it remembers between two calls
	// in the Mutant value, so each run takes its own from Receivers or Find.
	New func(Config) (http.Handler, error)

	Server   func(*http.Server)              // changes the server, after the reference's limits; may be nil
	Listener func(net.Listener) net.Listener // wraps the listener; may be nil
	TLS      func(*tls.Config)               // changes the server's TLS configuration; may be nil
}

// HTTPServer is the server of Serve, for whoever asks it for nothing else.
func (m Mutant) HTTPServer(c Config) (*http.Server, error) {
	s, err := m.Serve(c)
	if err != nil {
		return nil, err
	}
	return s.Server, nil
}

// Reference is the mutant without a fault: what all others are made from.
func Reference(profile string) Mutant {
	return Mutant{Name: "reference", Doc: "no fault", Profile: profile, New: reference()}
}

// Receivers returns every mutant receiver, group by group in the catalogue's
// order.
func Receivers() []Mutant {
	var all []Mutant
	for _, group := range [][]Mutant{
		general(), signatureMutants(), rawbodyMutants(), replayMutants(), duplicateMutants(),
		acknowledgeMutants(), orderMutants(), durabilityMutants(), limitsMutants(), rotationMutants(), transportMutants(),
	} {
		all = append(all, group...)
	}
	for i := range all {
		if all[i].Profile == "" {
			all[i].Profile = StandardWebhooks
		}
	}
	return all
}

// Find returns the mutant receiver of that name. The error lists the names.
func Find(name string) (Mutant, error) {
	var names []string
	for _, m := range Receivers() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Mutant{}, fmt.Errorf("no mutant is called %q; there are: %s", name, strings.Join(names, ", "))
}
