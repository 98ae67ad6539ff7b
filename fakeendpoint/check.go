package fakeendpoint

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// check tells what is wrong with a step that no parser made.
func (s *Step) check(last bool) error {
	if err := s.checkInterim(); err != nil {
		return err
	}
	if err := s.checkKind(); err != nil {
		return err
	}
	if err := s.checkUnused(); err != nil {
		return err
	}
	return s.checkRepeat(last)
}

func (s *Step) checkInterim() error {
	total := 0
	for _, i := range s.Interim {
		if i.Status < 100 || i.Status > 199 || i.Status == 101 {
			return fmt.Errorf("%d is no interim status; 100 and 102 to 199 are", i.Status)
		}
		if i.Times < 0 || i.Times > MaxInterim {
			return fmt.Errorf("the interim answer %d stands %d times, at most %d", i.Status, i.Times, MaxInterim)
		}
		total += max(i.Times, 1)
		if err := checkHeaders(i.Headers); err != nil {
			return err
		}
	}
	if total > MaxInterim {
		return fmt.Errorf("%d interim answers, at most %d", total, MaxInterim)
	}
	if total > 0 && s.Kind.OnConnection() {
		return fmt.Errorf("%s has no answer that could follow an interim one", s.Kind)
	}
	return nil
}

func (s *Step) checkKind() error {
	switch s.Kind {
	case KindStatus:
		if err := checkStatus(s.Status); err != nil {
			return err
		}
		return s.checkAnswer()
	case KindSlow:
		return s.checkSlow()
	case KindEarly:
		if s.Then == nil {
			return errors.New("early has no answer")
		}
		if s.Then.Kind != KindStatus || len(s.Then.Interim) > 0 {
			return errors.New("early takes a status, such as early(413)")
		}
		return s.Then.checkNested()
	case KindDrip:
		if err := checkSize("the piece of a drip", s.Piece); err != nil {
			return err
		}
		return checkWait("the wait of a drip", s.Wait, false)
	case KindHuge, KindBomb, KindHeaders:
		return checkSize("the size of "+string(s.Kind), s.Size)
	case KindRefuse, KindFullQueue:
		return checkWait("the duration of "+string(s.Kind), s.Wait, true)
	case KindHang, KindEndless, KindReset, KindClose, KindTruncate, KindGarbage, KindExpired, KindWrongHost, KindSelfSigned:
		return nil
	}
	return fmt.Errorf("there is no kind %q", string(s.Kind))
}

func (s *Step) checkSlow() error {
	if err := checkWait("the wait of slow", s.Wait, false); err != nil {
		return err
	}
	if s.Then == nil {
		return errors.New("slow has nothing that follows the wait")
	}
	switch s.Then.Kind {
	case KindSlow, KindEarly:
		return fmt.Errorf("%s cannot follow the wait of slow", s.Then.Kind)
	}
	if s.Then.Kind.OnConnection() {
		return fmt.Errorf("%s is about a connection and cannot follow the wait of slow", s.Then.Kind)
	}
	return s.Then.checkNested()
}

// checkNested checks a step within another, which alone says how often.
func (s *Step) checkNested() error {
	if s.Repeat != (Repeat{}) {
		return errors.New("a step within another is not repeated by itself")
	}
	return s.check(true)
}

// checkUnused refuses what the kind has no use for: a step that says more than
// it does is a mistake that nobody would see.
func (s *Step) checkUnused() error {
	statusOnly := s.RetryAfter != RetryAfter{} || s.Location != "" || len(s.Headers) > 0 || s.Body != "" || s.Close
	sized := s.Kind == KindHuge || s.Kind == KindBomb || s.Kind == KindHeaders || s.Kind == KindDrip || s.Kind == KindTruncate
	chunkable := s.Kind == KindHuge || s.Kind == KindBomb || s.Kind == KindTruncate
	waits := s.Kind == KindSlow || s.Kind == KindDrip || s.Kind.isOutage()
	for _, u := range []struct {
		used, set bool
		field     string
	}{
		{s.Kind == KindStatus, statusOnly, "Retry-After, Location, Headers, Body or Close"},
		{s.Kind == KindStatus || s.Kind.answers(), s.Status != 0, "Status"},
		{sized, s.Size != 0, "Size"},
		{chunkable, s.Chunked, "Chunked"},
		{s.Kind == KindDrip, s.Head || s.Piece != 0, "Head or Piece"},
		{s.Kind == KindHeaders, s.OneLine, "OneLine"},
		{waits, s.Wait != 0, "Wait"},
		{s.Kind == KindSlow || s.Kind == KindEarly, s.Then != nil, "Then"},
	} {
		if u.set && !u.used {
			return fmt.Errorf("%s takes no %s", s.Kind, u.field)
		}
	}
	if s.Kind.answers() && s.Status != 0 {
		if err := checkStatus(s.Status); err != nil {
			return err
		}
		if !bodied(s.Status) {
			return fmt.Errorf("an answer %d has no body, so %s cannot be one", s.Status, s.Kind)
		}
	}
	if s.Size != 0 {
		return checkSize("the size of "+string(s.Kind), s.Size)
	}
	return nil
}

func (s *Step) checkRepeat(last bool) error {
	r := s.Repeat
	set := 0
	for _, is := range []bool{r.Times != 0, r.For != 0, r.Until} {
		if is {
			set++
		}
	}
	switch {
	case set > 1:
		return errors.New("it is repeated in two ways")
	case s.Kind.isOutage() && set > 0:
		return fmt.Errorf("%s is not repeated: it counts no attempts. Give it a duration: %s(30s)", s.Kind, s.Kind)
	case r.Times < 0 || r.Times > MaxRepeat:
		return fmt.Errorf("it repeats %d times; 1 to %d are possible", r.Times, MaxRepeat)
	case last && (r.For != 0 || r.Until):
		return errors.New("it lasts a time, but nothing follows it. Add the step that does")
	case r.Until:
		answer := s
		if s.Then != nil {
			answer = s.Then
		}
		if _, ok := answer.RetryAfter.passes(time.Unix(0, 0)); !ok {
			return errors.New("it repeats until its Retry-After has passed, but has none that says when. Add one: 429(retry-after=30s)*until")
		}
	case r.For != 0:
		return checkWait("its repetition", r.For, false)
	}
	return nil
}

func (s *Step) checkAnswer() error {
	r := s.RetryAfter
	if r.Text != "" && (r.Delay != 0 || r.Date) {
		return errors.New("its Retry-After is both a text and a time")
	}
	if r.Delay.Abs() > MaxWait || r.Delay < 0 && !r.Date || r.Delay%time.Second != 0 {
		return fmt.Errorf("the Retry-After of %v is not whole seconds from 0 to %s", r.Delay, durationText(MaxWait))
	}
	if !headerSafe(r.Text) || !headerSafe(s.Location) {
		return errors.New("a header value holds a control character")
	}
	if s.Body != "" && !bodied(s.Status) {
		return fmt.Errorf("an answer %d has no body", s.Status)
	}
	return checkHeaders(s.Headers)
}

func checkHeaders(headers []wire.Header) error {
	for _, h := range headers {
		if !isToken(h.Name) {
			return fmt.Errorf("%q is no header name", h.Name)
		}
		if !headerSafe(h.Value) {
			return fmt.Errorf("the value of the header %s holds a control character", h.Name)
		}
	}
	return nil
}

func checkStatus(status int) error {
	if status != 101 && (status < 200 || status > 999) {
		return fmt.Errorf("%d is no status of an answer; 101 and 200 to 999 are", status)
	}
	return nil
}

func checkSize(what string, n int64) error {
	if n < 1 || n > MaxSize {
		return fmt.Errorf("%s is %d bytes; 1 B to %s are possible", what, n, sizeText(MaxSize))
	}
	return nil
}

func checkWait(what string, d time.Duration, zero bool) error {
	if d < 0 || d > MaxWait || d == 0 && !zero {
		return fmt.Errorf("%s is %v; up to %s are possible", what, d, durationText(MaxWait))
	}
	return nil
}

// bodied tells whether an answer of this status has a body (RFC 9112 §6.3).
func bodied(status int) bool { return status >= 200 && status != 204 && status != 304 }

// passes is the time that the Retry-After sent at now names, if it names one.
func (r RetryAfter) passes(now time.Time) (time.Time, bool) {
	switch {
	case r.Date:
		return wholeSecond(now.Add(r.Delay)), true
	case r.Text != "":
		n, err := strconv.Atoi(r.Text)
		if err != nil || n < 0 || time.Duration(n) > MaxWait/time.Second {
			return time.Time{}, false
		}
		return now.Add(time.Duration(n) * time.Second), true
	case r.Delay > 0:
		return now.Add(r.Delay), true
	}
	return time.Time{}, false
}

// wholeSecond is the first whole second that is not before t: who obeys an
// HTTP-date, which has no fraction, must not come early.
func wholeSecond(t time.Time) time.Time {
	if cut := t.Truncate(time.Second); !cut.Equal(t) {
		return cut.Add(time.Second)
	}
	return t
}

// isToken tells whether s is a token (RFC 9110 §5.6.2), as header names and
// methods are.
func isToken(s string) bool {
	for i := range len(s) {
		if !tokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func tokenByte(c byte) bool {
	switch c {
	case '!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~':
		return true
	}
	return isAlnum(c)
}

// headerSafe tells whether s may stand as a header's value without ending it.
func headerSafe(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
