package conformance

import (
	"context"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/receiver"
	"github.com/whconform/whconform/conformance/sender"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/reference/signature"
)

// part is what a run asks of the kind of its subject: the catalogue's part that
// it is judged by, how it is reached, what is recorded. See receiver_part.go and
// sender_part.go.
type part interface {
	kind() string   // catalogue.Receiver or catalogue.Sender
	target() string // the subject's name in the report
	checks() []suite.Check
	offers(need string) bool
	capabilities() []string
	// clock is by which clock a sender is judged, "" for a receiver; declared
	// are the numbers that the subject named and is held to.
	clock() string
	declared() map[string]string

	// open starts what only a recording needs. What a subject offers may be known
	// only afterwards. close ends it, also after an open that failed.
	open(context.Context) error
	preflight(context.Context) preflight
	judgedFromPreflight(requirement string) bool
	record(ctx context.Context, wanted func(requirement string) bool) []evidence.Transcript
	close(context.Context) error

	// keys are those that no report may show.
	keys() []signature.Key
	remark([]evidence.Ruling) []evidence.Ruling
}

// preflight is what the first delivery or attempt showed.
type preflight struct {
	transcript  evidence.Transcript
	accepted    bool              // go on
	unreachable bool              // nothing of any kind came: there is no verdict
	diagnosis   *evidence.Finding // of what is not simply an acceptance; nil if it is
}

// part makes the part of the configuration's subject.
func (c Config) part() (part, error) {
	switch {
	case c.Receiver != nil && c.Sender != nil:
		return nil, usage("two subjects: a run judges a receiver or a sender")
	case c.Receiver != nil:
		return newReceiverPart(c)
	case c.Sender != nil:
		return newSenderPart(c)
	}
	return nil, usage("no receiver and no sender to judge")
}

// checksOf are the checks of a part of the catalogue, for runs that are judged
// again without their subject.
func checksOf(kind string) []suite.Check {
	switch kind {
	case catalogue.Receiver:
		return receiver.Checks()
	case catalogue.Sender:
		return sender.Checks()
	}
	return nil
}
