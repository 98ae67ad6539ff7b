package mutant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whconform/whconform/reference/sender"
)

// What a sender mutant needs of a run beside its events: the values of
// SenderMutant.Needs. Managed is among them, too.
const (
	Virtual   = "virtual"   // the run's clock is virtual
	Instances = "instances" // two processes send from one outbox
	Names     = "names"     // the run has a name server, whom it asks
)

// DeliveryEnvelope is the name of the other profile that mutants are made for.
const DeliveryEnvelope = "delivery-envelope"

// SenderMutant is a sender with one deliberate fault: the reference sender, one
// of whose steps is replaced. sender_build.go has what they are made with.
type SenderMutant struct {
	Name string // words joined by dashes
	Doc  string // what is wrong, as one sentence

	// Fails lists the requirements it breaks, whether the suite must fail them
	// (MUST) or warn (SHOULD). All others hold, as far as a run can judge them.
	Fails []string

	Profile string   // the contract it is made for
	Needs   []string // what shows the fault, see Virtual and what follows it

	// Change changes the options of the reference. It is called for each process
	// anew, and what it declares is that process's state. May be nil.
	Change func(*sender.Options)

	// Wrap makes, for each process anew, what puts other methods into the place of
	// some of the adapter protocol. May be nil.
	Wrap func() methodWrap
}

// methodWrap puts another method into the place of one, by its name.
type methodWrap = func(method string, right sender.ControlMethod) sender.ControlMethod

// Control makes the mutant, behind the methods of the adapter protocol. What o
// changes itself is changed before.
func (m SenderMutant) Control(o sender.ControlOptions) *sender.Control {
	before, wraps := o.Change, []methodWrap{o.Wrap}
	if m.Wrap != nil {
		wraps = append(wraps, m.Wrap())
	}
	o.Change = func(options *sender.Options) {
		for _, change := range []func(*sender.Options){before, m.Change} {
			if change != nil {
				change(options)
			}
		}
	}
	o.Wrap = func(method string, right sender.ControlMethod) sender.ControlMethod {
		for _, wrap := range wraps {
			if wrap != nil {
				right = wrap(method, right)
			}
		}
		return right
	}
	return sender.NewControl(o)
}

// SenderReference is the sender mutant without a fault.
func SenderReference(profile string) SenderMutant {
	return SenderMutant{Name: "reference", Doc: "no fault", Profile: profile}
}

// Senders returns every mutant sender, group by group in the catalogue's order.
func Senders() []SenderMutant {
	all := slices.Concat(
		requestSenders(), signatureSenders(), retrySenders(), retryAfterSenders(), timeoutSenders(), responseSenders(), redirectSenders(),
		disableSenders(), rotationSenders(), resendSenders(), logSenders(), ssrfSenders(), outboxSenders(),
	)
	for i := range all {
		if all[i].Profile == "" {
			all[i].Profile = StandardWebhooks
		}
	}
	return all
}

// FindSender returns the mutant sender of that name. The error lists the names.
func FindSender(name string) (SenderMutant, error) {
	var names []string
	for _, m := range Senders() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return SenderMutant{}, fmt.Errorf("no mutant sender is called %q; there are: %s", name, strings.Join(names, ", "))
}
