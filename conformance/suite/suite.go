// Package suite is the engine: it records scenarios side by side and judges
// what they recorded. It knows nothing of webhooks and nothing of Ginkgo.
//
// A [Scenario] is a stimulus that records evidence. A [Check] is a pure
// function from that evidence to findings. A [Question] is a requirement that
// a run was asked to rule on. [Record] runs scenarios, [Judge] answers
// questions; nothing that Judge needs is outside its arguments, so a saved
// transcript can be judged again.
package suite

import (
	"context"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/evidence"
)

// Scenario is a stimulus that records evidence, for one check or for several.
type Scenario struct {
	Name  string // the id of the requirement whose file it stands in
	Slow  bool   // waits for tens of seconds: recorded after the others, beside the other slow ones
	Kills bool   // ends a subject of its own on purpose, so that lost connections are its own doing
	// Received says that the exchanges come to the suite's own endpoint: an answer
	// in them is the suite's and says nothing of the subject, a control holds by
	// having come.
	Received bool
	Alone    bool // disturbs others or is disturbed by them: recorded last, one at a time
	// Record sends and records. An error means that the scenario broke down and
	// says nothing about the subject; faults of the subject are evidence.
	Record func(context.Context, *Recorder) error
}

// Check judges one requirement from one scenario's transcript. Judge is pure:
// no clock, no randomness, no input but its argument. No finding means that
// the requirement holds; for a MAY the findings are the facts reported.
type Check struct {
	Requirement string
	Scenario    string
	Judge       func(*evidence.Transcript) []evidence.Finding
}

// Question is a requirement that a run rules on, with the level that the
// profile gives it. A Skip decided before recording is the answer.
type Question struct {
	Requirement catalogue.Requirement
	Level       string
	Skip        *evidence.Skip
}
