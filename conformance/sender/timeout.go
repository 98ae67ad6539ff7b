package sender

import (
	"fmt"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
)

const (
	timeoutGivesUp     = "sender.timeout.gives-up"
	timeoutRange       = "sender.timeout.gives-up.range"
	timeoutWaits       = "sender.timeout.waits"
	timeoutTotal       = "sender.timeout.total"
	timeoutConnect     = "sender.timeout.connect"
	timeoutConnectFast = "sender.timeout.connect.fast"
	timeoutPublish     = "sender.timeout.publish-returns"
	timeoutPublishAbs  = "sender.timeout.publish-returns.absolute"
	timeoutIsolation   = "sender.timeout.isolation"
	timeoutMany        = "sender.timeout.isolation-many"
)

// timeoutRules is sender.timeout.*; what is about other endpoints than the slow
// one stands in isolation.go.
func timeoutRules() []rule {
	return []rule{
		{id: timeoutGivesUp, record: recordGivesUp, judge: judgeGivesUp, holds: true},
		{id: timeoutRange, use: timeoutGivesUp, judge: judgeTimeoutRange},
		{id: timeoutWaits, record: recordWaits, judge: judgeWaits, holds: true},
		{id: timeoutTotal, record: recordTotal, judge: judgeTotal, holds: true},
		{id: timeoutConnect, record: recordConnect, judge: judgeConnect, alone: true},
		{id: timeoutConnectFast, use: timeoutConnect, judge: judgeConnectFast},
		{id: timeoutPublish, record: recordPublishReturns, judge: judgePublishReturns, alone: true},
		{id: timeoutPublishAbs, use: timeoutPublish, judge: judgePublishAbsolute},
		{id: timeoutIsolation, record: recordIsolation, judge: judgeIsolation, alone: true},
		{id: timeoutMany, record: recordIsolationMany, judge: judgeIsolationMany, alone: true},
	}
}

const hangsName = "never answers the first attempt"

// profileTimeoutFact is what the profile says of an attempt's timeout.
const profileTimeoutFact = "profile's timeout"

func recordGivesUp(s *session) {
	s.rec.Fact(profileTimeoutFact, s.Profile.AttemptTimeout.String())
	if s.Mode == Scaled && s.Declared.declares(factDefault) {
		s.skip(timeoutRange, evidence.NotObservable, "the timeout that is declared is the run's own, as its schedule is")
	}
	if !s.affordsRetry(1, timeoutGivesUp) || !s.control() {
		return
	}
	e := s.endpoint(hangsName, "hang,200")
	e.publish()
	s.await(s.firstWithin()+s.Declared.gaveUpBy(), concluded(1, e))
	e.await(2, s.within(2))
}

// lasted is how long the fake endpoint saw an attempt last.
func lasted(a *attempt) time.Duration { return a.Ended.Sub(a.Began) }

// tooLong tells how an attempt exceeded the timeout, "" if it did not.
func (d Declared) tooLong(a *attempt) string {
	if took := lasted(a); took > d.gaveUpBy()+early {
		return fmt.Sprintf("it lasted %v", shown(took))
	}
	return ""
}

// expectsTimeout says when an attempt has to end.
func (d Declared) expectsTimeout() string {
	if d.declares(factTimeout) {
		return fmt.Sprintf("the attempt ends at the declared timeout of %v", d.Timeout)
	}
	return fmt.Sprintf("the attempt ends within %v, twice the profile's timeout, as none is declared", 2*d.Timeout)
}

// judgeLasting judges one slow attempt: its length, and whether another follows.
func judgeLasting(t *evidence.Transcript, name, long string, retried bool) []evidence.Finding {
	d := declaredOf(t)
	sent := "an event for an endpoint that " + name
	got := attempts(t, name)
	if len(got) == 0 {
		if unfinished(t, name) == 0 {
			return nil
		}
		return []evidence.Finding{finding(sent, d.expectsTimeout(), "it was still open at the end of the scenario", long)}
	}
	var findings []evidence.Finding
	if what := d.tooLong(&got[0]); what != "" {
		findings = append(findings, finding(sent, d.expectsTimeout(), what, long, got[0]))
	}
	if retried && len(got) == 1 {
		findings = append(findings, finding(sent, "another attempt after "+d.between(1), "none came",
			"The timeout's error is not caught around the attempt: the message stays claimed or is given up.", got[0]))
	}
	return findings
}

func judgeGivesUp(t *evidence.Transcript) []evidence.Finding {
	return append(judgeLasting(t, hangsName, "The client has no limit, or its default of minutes.", true), judgeUnserved(t, "an attempt")...)
}

// timeoutMost is the longest timeout that Standard Webhooks asks for; its
// shortest is the 15 seconds of the profiles that follow it. A profile with
// another timeout names the one that counts.
// source: SW, "between 15 and 30 seconds".
const (
	timeoutLeast = 15 * time.Second
	timeoutMost  = 30 * time.Second
)

// judgeTimeoutRange looks at what was seen, not at what was declared.
func judgeTimeoutRange(t *evidence.Transcript) []evidence.Finding {
	got := attempts(t, hangsName)
	if len(got) == 0 {
		return nil
	}
	d := declaredOf(t)
	low := durationFact(t, profileTimeoutFact)
	high, expected := low, fmt.Sprintf("a timeout of %v", low)
	if low == timeoutLeast {
		high, expected = timeoutMost, fmt.Sprintf("a timeout of %v to %v", low, timeoutMost)
	}
	took := lasted(&got[0])
	cause := ""
	switch {
	case took < low-max(d.Granularity, early):
		cause = "Receivers that keep to the documented time are taken for failed."
	case took > high+d.Granularity+early:
		cause = "Slow endpoints hold workers for longer than they need."
	default:
		return nil
	}
	return []evidence.Finding{finding("an event for an endpoint that "+hangsName, expected, fmt.Sprintf("the attempt ended after %v", shown(took)), cause, got[0])}
}

const waitsName = "answers 200 shortly before the timeout"

// recordWaits has an answer come a second before the timeout, or at its half
// where that is later.
func recordWaits(s *session) {
	if s.Declared.attemptsAtMost() > 1 && !s.affordsRetry(1, timeoutWaits) || !s.control() {
		return
	}
	timeout := s.Declared.Timeout
	e := s.endpoint(waitsName, fmt.Sprintf("slow(%v)", max(timeout-time.Second, timeout/2)))
	e.publish()
	e.await(1, s.firstWithin()+s.Declared.gaveUpBy())
	if s.Declared.attemptsAtMost() > 1 {
		s.quiet(1)
	}
}

func judgeWaits(t *evidence.Transcript) []evidence.Finding {
	got := attempts(t, waitsName)
	if len(got) == 0 {
		return judgeUnserved(t, "an attempt")
	}
	d := declaredOf(t)
	sent := "an event for an endpoint that " + waitsName
	expected := fmt.Sprintf("the answer counts: one attempt, with a timeout of %v", d.Timeout)
	switch {
	case got[0].Response == nil:
		return []evidence.Finding{finding(sent, expected, fmt.Sprintf("the sender ended the connection after %v", shown(lasted(&got[0]))),
			"A shorter limit than the declared one ends the attempt: in the client, in a proxy, or in a context around it.", got...)}
	case len(got) > 1:
		return []evidence.Finding{finding(sent, expected, "the answer was read, and the message sent again", "A limit for the whole job, or a lease, is shorter than the attempt's timeout.", got...)}
	}
	return nil
}

// dripPause is the time between the bytes of an answer that drips: a second,
// and a small part of the timeout where that is short. A head of a hundred bytes
// lasts several timeouts.
func (s *session) dripPause() time.Duration {
	return min(time.Second, s.Declared.Timeout/20).Round(time.Millisecond)
}

// dripProbes are answers that never pause for long. Whether another attempt
// follows is said only where the status is no success: of a 2xx the status may
// count alone.
func (s *session) dripProbes() []transportProbe {
	pause := s.dripPause()
	return []transportProbe{
		{dripsHead, fmt.Sprintf("drip(1B,%v,head),200", pause)},
		{dripsError, fmt.Sprintf("drip(1B,%v,status=500),200", pause)},
		{dripsSuccess, fmt.Sprintf("drip(1B,%v),200", pause)},
	}
}

const (
	dripsHead    = "sends the head of its answer a byte at a time"
	dripsError   = "sends the body of a 500 a byte at a time"
	dripsSuccess = "sends the body of a 200 a byte at a time"
)

func recordTotal(s *session) {
	if !s.affordsRetry(1, timeoutTotal) || !s.control() {
		return
	}
	var all []*endpoint
	for _, p := range s.dripProbes() {
		e := s.endpoint(p.name, p.script)
		e.publish()
		all = append(all, e)
	}
	s.await(s.firstWithin()+s.Declared.gaveUpBy(), concluded(1, all...))
	s.await(s.within(2), concluded(2, all[:2]...))
}

func judgeTotal(t *evidence.Transcript) []evidence.Finding {
	const idle = "The limit starts anew with every byte, or ends with the head of the answer."
	var findings []evidence.Finding
	for _, p := range []struct {
		name    string
		retried bool
	}{{dripsHead, true}, {dripsError, true}, {dripsSuccess, false}} {
		findings = append(findings, judgeLasting(t, p.name, idle, p.retried)...)
	}
	return append(findings, judgeUnserved(t, "an attempt at each")...)
}

// Connecting. The fake endpoint sees nothing of a connection that hangs. What
// shows is a connection that was still waiting when the accept queue is emptied:
// the kernel completes it then, and its request comes long before the next
// attempt of the schedule would.

const (
	connectName     = "lets connections hang for an attempt's timeout"
	connectFastName = "lets connections hang for six seconds"
	connectLimit    = 5 * time.Second // source: 07, ConnectTimeout
	connectMargin   = time.Second
)

// connectFact begins the names of facts: how many attempts an endpoint answers
// before its queue is full.
const connectFact = "answered before the queue was full: "

// recordConnect fills an accept queue when an attempt has failed, and empties it
// when the next one has had its time.
func recordConnect(s *session) {
	n := s.connectStep(s.Declared.gaveUpBy())
	if n == 0 {
		for _, id := range []string{timeoutConnect, timeoutConnectFast} {
			s.skip(id, evidence.NotObservable, "no delay of the declared schedule is so much longer than the attempt's timeout that a connection that hangs can be told from the next attempt")
		}
		return
	}
	if !s.affordsRetry(n+1, timeoutConnect, timeoutConnectFast) || !s.control() {
		return
	}
	slow := s.recordFull(connectName, n, s.Declared.gaveUpBy()+connectMargin)
	var fast *endpoint
	if s.Declared.Timeout > connectLimit+2*connectMargin {
		fast = s.recordFull(connectFastName, n, connectLimit+s.Declared.Granularity+connectMargin)
	} else {
		s.skip(timeoutConnectFast, evidence.NotObservable, "the declared timeout of an attempt is %v, and connecting is part of it", s.Declared.Timeout)
	}
	for _, e := range []*endpoint{slow, fast} {
		if e != nil {
			e.await(n+1, s.within(n+2))
		}
	}
}

// connectStep is the first n whose next-but-one attempt comes surely later than
// an attempt that hangs in connecting for so long.
func (s *session) connectStep(limit time.Duration) int {
	d := s.Declared
	for n := 1; n+1 < d.attemptsAtMost(); n++ {
		low, high := d.window(n)
		next, _ := d.window(n + 1)
		if next > high-low+limit+3*connectMargin {
			return n
		}
	}
	return 0
}

// recordFull has an endpoint answer 500 n times and then take no connection for
// as long as the next attempt may come and hang. It returns when the queue has
// been emptied.
func (s *session) recordFull(name string, n int, limit time.Duration) *endpoint {
	e := s.endpoint(name, fmt.Sprintf("500*%d,full-queue", n))
	e.publish()
	if e.unmade() || !e.await(n, s.within(n)) {
		return e
	}
	if err := e.path.Err(); err != nil {
		for _, id := range []string{timeoutConnect, timeoutConnectFast} {
			s.skip(id, evidence.NotObservable, "this system cannot fill an accept queue: %v", err)
		}
		return nil
	}
	_, high := s.Declared.window(n)
	s.Timeline.Stuck(1)
	s.until(high + limit)
	s.rec.Fact(connectFact+name, fmt.Sprint(n))
	e.setScript("200")
	s.Timeline.Stuck(-1) // who hangs still is waited for, and arrives
	return e
}

func judgeConnect(t *evidence.Transcript) []evidence.Finding {
	return judgeHanging(t, connectName, func(d Declared) string {
		return "the attempt ends by its timeout, and another one follows by the schedule"
	})
}

func judgeConnectFast(t *evidence.Transcript) []evidence.Finding {
	return judgeHanging(t, connectFastName, func(Declared) string { return fmt.Sprintf("connecting is given up after %v", connectLimit) })
}

func judgeHanging(t *evidence.Transcript, name string, expected func(Declared) string) []evidence.Finding {
	if t.Facts[connectFact+name] == "" {
		return nil
	}
	d := declaredOf(t)
	n := numberFact(t, connectFact+name)
	got := attempts(t, name)
	sent := "an event for an endpoint that " + name
	if len(got) < n {
		return nil
	}
	if len(got) == n {
		return []evidence.Finding{finding(sent, "another attempt when connections are taken again", "none came", "The error of connecting ends the message, or the attempts altogether.", got[n-1])}
	}
	first, _ := d.window(n)
	second, _ := d.window(n + 1)
	if _, most := delay(&got[n-1], &got[n]); most < first+second-early {
		return []evidence.Finding{finding(sent, expected(d), fmt.Sprintf("the attempt was still connecting when connections were taken again: its request came %v after the failure before it", shown(gap(&got[n-1], &got[n]))),
			"The limit does not cover connecting, or connecting has no limit of its own: the system's is over two minutes.", got[n-1], got[n])}
	}
	return nil
}
