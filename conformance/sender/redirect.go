package sender

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
)

const (
	redirectFollowed = "sender.redirect.not-followed"
	redirectFailure  = "sender.redirect.counts-as-failure"
	redirectLogged   = "sender.redirect.counts-as-failure.logged"
)

func redirectRules() []rule {
	return []rule{
		{id: redirectFollowed, record: recordRedirects, judge: judgeNotFollowed},
		{id: redirectFailure, use: redirectFollowed, judge: judgeRedirectFails},
		{id: redirectLogged, use: redirectFollowed, judge: judgeRedirectLogged},
	}
}

// redirectStatuses are those that name another address.
func redirectStatuses() []int { return []int{301, 302, 303, 307, 308} }

// loggedFact begins the name of a fact: the statuses in the log of an
// endpoint's first message, the oldest first, 0 where no answer came.
const loggedFact = "logged: "

// recordRedirects has an endpoint for each status that leads to its trap twice
// and then answers. The trap is at the same host: a sender that follows within a
// host only is seen as well.
func recordRedirects(s *session) {
	if !s.control() {
		return
	}
	retried := s.affordsRetry(1, redirectFailure)
	var all []*endpoint
	ids := map[*endpoint]string{}
	for _, status := range redirectStatuses() {
		e := s.endpoint(answering(status), fmt.Sprintf("%d*2,200", status))
		ids[e] = e.publish()
		all = append(all, e)
	}
	s.await(s.firstWithin(), concluded(1, all...))
	if retried {
		s.await(s.within(2), concluded(2, all...))
	}
	s.settle() // a client follows at once
	if !s.Offers(drive.AttemptLog) || !s.wanted(redirectLogged) {
		return
	}
	for _, e := range all {
		s.noteLogged(e, ids[e])
	}
}

// noteLogged records what the sender's log has of a message.
func (s *session) noteLogged(e *endpoint, id string) {
	log, ok := s.logOf(e, id)
	if !ok {
		return
	}
	var statuses []string
	for _, line := range log {
		statuses = append(statuses, strconv.Itoa(line.Status))
	}
	s.rec.Fact(loggedFact+e.name, strings.Join(statuses, " "))
}

// logOf is the sender's log of an endpoint's first message.
func (s *session) logOf(e *endpoint, id string) (log []drive.LoggedAttempt, ok bool) {
	if e.unmade() {
		return nil, false
	}
	if id == "" { // publishing told none
		came := e.path.Attempts()
		if len(came) == 0 {
			return nil, false
		}
		id = came[0].ID
	}
	ok = s.must("reading the log of a message", func(ctx context.Context) (err error) {
		log, err = s.Subject.Attempts(ctx, id)
		return err
	})
	return log, ok
}

func judgeNotFollowed(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for _, status := range redirectStatuses() {
		name := answering(status)
		trapped := requests(t, name+trapName)
		if len(trapped) == 0 {
			continue
		}
		var methods []string
		for i := range trapped {
			if m := trapped[i].Request.Method; !slices.Contains(methods, m) {
				methods = append(methods, m)
			}
		}
		findings = append(findings, finding(fmt.Sprintf("an event for an endpoint that answers %d with a Location", status), "no request to that location",
			fmt.Sprintf("%s there, by %s", plural(len(trapped), "request"), strings.Join(methods, " and ")),
			"The HTTP client follows redirects by itself, as most do unless told otherwise.", append(attempts(t, name), trapped...)...))
	}
	return append(findings, judgeUnserved(t, "an attempt at each endpoint, whatever the others answer")...)
}

func judgeRedirectFails(t *evidence.Transcript) []evidence.Finding {
	d := declaredOf(t)
	var findings []evidence.Finding
	for _, status := range redirectStatuses() {
		got := attempts(t, answering(status))
		if len(got) != 1 {
			continue
		}
		findings = append(findings, finding(fmt.Sprintf("an event for an endpoint that answers %d", status), "another attempt after "+d.between(1),
			"no second request came", causeOfNoRetry(t, status), got...))
	}
	return findings
}

func judgeRedirectLogged(t *evidence.Transcript) []evidence.Finding {
	var findings []evidence.Finding
	for _, status := range redirectStatuses() {
		name := answering(status)
		got := attempts(t, name)
		text, looked := t.Facts[loggedFact+name]
		if !looked || len(got) == 0 {
			continue
		}
		logged := strings.Fields(text)
		if len(logged) > 0 && logged[0] == strconv.Itoa(status) {
			continue
		}
		what := "no attempt at all"
		if len(logged) > 0 {
			what = "an attempt with the status " + logged[0]
		}
		cause := "Only the end of an attempt is recorded, and not its status."
		if len(requests(t, name+trapName)) > 0 {
			cause = "The redirect was followed, and the answer from there was recorded."
		}
		findings = append(findings, finding(fmt.Sprintf("the log of a message that was answered %d", status), fmt.Sprintf("an attempt with the status %d", status), what, cause, got[0]))
	}
	return findings
}
