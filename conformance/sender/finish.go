package sender

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/whconform/whconform/fakeendpoint"
)

// noted is what only the fake endpoint knew of an attempt, and what the check
// of its signature found: a fact of the transcript, as JSON.
type noted struct {
	ID string `json:"id,omitempty"` // the message that the request claims to be

	By     []string `json:"by,omitempty"`     // labels of the secrets that sign it, be its timestamp right or wrong
	Rule   string   `json:"rule,omitempty"`   // why a receiver refuses it
	Detail string   `json:"detail,omitempty"` // likewise
	Hint   string   `json:"hint,omitempty"`   // what was signed instead, where that was found
	Leaks  []string `json:"leaks,omitempty"`  // labels of the secrets that stand in the request

	Digest   string `json:"digest,omitempty"`   // SHA-256 of a body that is longer than what is kept of it
	Uncaught bool   `json:"uncaught,omitempty"` // the fake endpoint could not keep the body

	BodyEnd   time.Time `json:"bodyEnd,omitzero"`
	Answered  time.Time `json:"answered,omitzero"`
	Closed    time.Time `json:"closed,omitzero"`
	LastWrite time.Time `json:"lastWrite,omitzero"` // when the sender's kernel last took some of the answer
	Written   int64     `json:"written,omitempty"`  // bytes of the answer that it took
	Peer      string    `json:"peer,omitempty"`     // how the sender ended it before the script did
	Step      string    `json:"step,omitempty"`     // of the script

	Connection int64    `json:"connection,omitempty"`
	Nth        int      `json:"nth,omitempty"` // request of that connection
	Remarks    []string `json:"remarks,omitempty"`

	// Window is how far the sender's clock was moved at once when the attempt
	// came, in nanoseconds: it may have been due so much earlier. 0 where the
	// sender tells when it is due.
	Window time.Duration `json:"window,omitempty"`
}

// Facts that finish records. attemptFact begins the name of each attempt's.
const (
	attemptFact    = "attempt: "
	unfinishedFact = "unfinished: " // + name: requests that came and were not over at the end of the scenario
	trapName       = " trap"        // behind the endpoint's name: requests to what its redirects lead to
)

// finish records what came at every endpoint of the scenario, and has the
// addresses answer 200, so that what is still to be tried ends. Doing it twice
// changes nothing.
func (s *session) finish() {
	s.mu.Lock()
	endpoints, done := s.endpoints, s.finished
	s.finished = true
	s.mu.Unlock()
	if done {
		return
	}
	for _, e := range endpoints {
		if e.path == nil {
			continue
		}
		s.note(e)
		if script, err := fakeendpoint.ParseScript("200"); err == nil {
			_ = e.path.SetScript(script) // a path that cannot has its own port, which nobody else uses
		}
	}
}

// note records the attempts of an endpoint and of its trap.
func (s *session) note(e *endpoint) {
	arrived, concluded := e.path.Count()
	if arrived > concluded {
		s.rec.Fact(unfinishedFact+e.name, fmt.Sprint(arrived-concluded))
	}
	if n := e.path.Forgotten(); n > 0 {
		s.fail(fmt.Errorf("the fake endpoint forgot %d attempts of %q to stay within its bounds", n, e.name))
	}
	s.add(e, e.name, e.path.Attempts())
	s.add(e, e.name+trapName, e.path.Trap().Attempts())
}

// add records attempts under a name, but those of messages that other scenarios
// published.
func (s *session) add(e *endpoint, name string, attempts []fakeendpoint.Attempt) {
	n := 0
	for i := range attempts {
		a := &attempts[i]
		if a.ID != "" && s.ledger.foreign(s.id, a.ID) {
			continue
		}
		n++
		label := fmt.Sprintf("%s #%d", name, n)
		x := a.Exchange
		x.Label = label
		fact := noted{
			ID: a.ID, By: a.Verification.By, Rule: a.Verification.Rule, Detail: a.Verification.Detail, Leaks: a.Verification.Leaks,
			Digest: a.Digest, Uncaught: a.Uncaught, BodyEnd: a.BodyEnd, Answered: a.Answered, Closed: a.Closed, LastWrite: a.LastWrite,
			Written: a.Written, Peer: a.Peer, Step: a.Step, Connection: a.Connection, Nth: a.Nth, Remarks: a.Remarks,
			Window: s.Timeline.Window(a.Began),
		}
		if a.Verification.Checked && !a.Verification.OK() && len(a.Verification.Leaks) == 0 {
			if fact.By = s.untimely(e, a); len(fact.By) == 0 {
				fact.Hint = s.explain(e, a)
			}
		}
		text, err := json.Marshal(fact)
		if err != nil {
			s.fail(fmt.Errorf("writing what was noted of %s: %w", label, err))
			return
		}
		s.rec.Add(x)
		s.rec.Fact(attemptFact+label, string(text))
	}
}
