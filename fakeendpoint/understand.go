package fakeendpoint

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/wire"
)

// Steps are understood in two passes: the parser knows only words, arguments
// and repetitions; this file knows what each word takes.

// isInterim tells whether a word is a status from 100 to 199, 101 aside, which
// ends the exchange.
func isInterim(word string) bool {
	return len(word) == 3 && word[0] == '1' && isDigits(word) && word != "101"
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func (p *parser) interim(c call) (Interim, error) {
	status, _ := strconv.Atoi(c.word) // three digits
	i := Interim{Status: status}
	for _, a := range c.args {
		if a.name != "header" {
			return i, p.unknownArg(c.word, a, []string{"header="})
		}
		h, err := p.header(a)
		if err != nil {
			return i, err
		}
		i.Headers = append(i.Headers, h)
	}
	if c.repeat != "" {
		n, err := strconv.Atoi(c.repeat)
		if err != nil || n < 1 || n > MaxInterim {
			return i, p.errorf(c.repeatAt, "an interim answer is repeated 1 to %d times", MaxInterim)
		}
		if i.Times = n; n == 1 {
			i.Times = 0
		}
	}
	return i, nil
}

// step understands a call. begun is where its interim answers begin.
func (p *parser) step(c call, interim []Interim, begun int, last bool) (Step, error) {
	s := Step{Interim: interim}
	if isDigits(c.word) {
		s.Kind = KindStatus
		s.Status, _ = strconv.Atoi(c.word)
		if err := checkStatus(s.Status); err != nil || len(c.word) != 3 {
			return s, p.errorf(c.at, "%s is no status; 100 to 999 are", c.word)
		}
	} else if s.Kind = Kind(c.word); !known(s.Kind) {
		e := p.errorf(c.at, "there is no step %q", c.word)
		if e.Meant = profile.Nearest(c.word, stepWords()); e.Meant == "" {
			e.Problem += "; there are statuses and " + strings.Join(stepWords(), ", ")
		}
		return s, e
	}
	if err := p.arguments(&s, c); err != nil {
		return s, err
	}
	if err := p.repetition(&s, c); err != nil {
		return s, err
	}
	if err := s.check(last); err != nil {
		return s, p.errorf(begun, "%v", err)
	}
	return s, nil
}

// stepWords are the words of steps, in the order of the documentation.
func stepWords() []string {
	kinds := []Kind{
		KindSlow, KindHang, KindDrip, KindHuge, KindBomb, KindEndless, KindHeaders, KindReset, KindClose, KindTruncate,
		KindGarbage, KindEarly, KindExpired, KindWrongHost, KindSelfSigned, KindRefuse, KindFullQueue,
	}
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return words
}

func known(k Kind) bool {
	for _, w := range stepWords() {
		if w == string(k) {
			return true
		}
	}
	return false
}

// position is an argument that is known by where it stands.
type position struct {
	what     string // for errors
	required bool
	read     func(p *parser, s *Step, a arg) error
}

// positions are what a kind takes without a name, and the flags and names
// beside.
func positions(k Kind) (list []position, names []string) {
	size := position{"a size such as 1GiB", true, (*parser).sizeArg}
	optional := position{size.what, false, size.read}
	wait := position{"a duration such as 20s", true, (*parser).waitArg}
	switch k {
	case KindStatus:
		return nil, []string{"retry-after=", "location=", "header=", "body=", "close"}
	case KindSlow:
		return []position{wait, {"a step", false, (*parser).thenArg}}, nil
	case KindDrip:
		return []position{{"a size such as 1B", true, (*parser).pieceArg}, wait}, []string{"head", "size=", "status="}
	case KindHuge, KindBomb:
		return []position{size}, []string{"chunked", "status="}
	case KindTruncate:
		return []position{optional}, []string{"chunked", "status="}
	case KindHeaders:
		return []position{size}, []string{"one-line", "status="}
	case KindEndless:
		return nil, []string{"status="}
	case KindEarly:
		return []position{{"a status", false, (*parser).thenArg}}, nil
	case KindRefuse, KindFullQueue:
		return []position{{wait.what, false, wait.read}}, nil
	}
	return nil, nil
}

func (p *parser) arguments(s *Step, c call) error {
	list, names := positions(s.Kind)
	taken := 0
	seen := map[string]bool{}
	for _, a := range c.args {
		word := a.name + "="
		if a.name == "" {
			word = a.value
		}
		isName := !a.quoted || a.name != ""
		switch {
		case isName && contains(names, word):
			if seen[word] && word != "header=" {
				return p.errorf(a.nameAt, "%s stands twice", strings.TrimSuffix(word, "="))
			}
			seen[word] = true
			if err := p.named(s, a); err != nil {
				return err
			}
		case a.name == "" && taken < len(list):
			if err := list[taken].read(p, s, a); err != nil {
				// A misspelt flag is not a bad size.
				if meant := profile.Nearest(word, names); meant != "" && !list[taken].required {
					return p.unknownArg(c.word, a, names)
				}
				return err
			}
			taken++
		default:
			return p.unknownArg(c.word, a, names)
		}
	}
	if taken < len(list) && list[taken].required {
		return p.errorf(c.at, "%s needs %s", c.word, list[taken].what)
	}
	return s.defaults()
}

// defaults fills in what a word without arguments means.
func (s *Step) defaults() error {
	if s.Then == nil {
		switch s.Kind {
		case KindSlow:
			s.Then = &okSteps()[0]
		case KindEarly:
			s.Then = &Step{Kind: KindStatus, Status: 413}
		}
	}
	return nil
}

func contains(list []string, word string) bool {
	for _, l := range list {
		if l == word {
			return true
		}
	}
	return false
}

func (p *parser) unknownArg(word string, a arg, names []string) error {
	text := a.name
	if text == "" {
		text = a.value
	}
	e := p.errorf(a.nameAt, "%s takes no argument %q", word, cut(text, 40))
	asked := text
	if a.name != "" {
		asked += "="
	}
	e.Meant = profile.Nearest(asked, names)
	switch {
	case e.Meant != "":
	case len(names) > 0:
		e.Problem += "; it takes " + strings.Join(names, ", ")
	}
	return e
}

func (p *parser) sizeArg(s *Step, a arg) (err error) {
	s.Size, err = parseSize(a.value)
	return p.at1(a, err)
}

func (p *parser) pieceArg(s *Step, a arg) (err error) {
	s.Piece, err = parseSize(a.value)
	return p.at1(a, err)
}

func (p *parser) waitArg(s *Step, a arg) (err error) {
	s.Wait, err = parseWait(a.value)
	return p.at1(a, err)
}

// at1 gives an error of an argument its place.
func (p *parser) at1(a arg, err error) error {
	if err == nil {
		return nil
	}
	return p.errorf(a.at, "%v", err)
}

// thenArg reads a step within another.
func (p *parser) thenArg(s *Step, a arg) error {
	if a.quoted {
		return p.errorf(a.at, "a step stands without quotes")
	}
	inner := &parser{text: p.text[:a.at+len(a.value)], at: a.at}
	steps, err := inner.steps()
	if err != nil {
		var e *ScriptError
		if errors.As(err, &e) {
			e.Script = p.text
		}
		return err
	}
	s.Then = &steps[0] // a comma would have ended the argument
	return nil
}

// named reads a flag or a name=value.
func (p *parser) named(s *Step, a arg) (err error) {
	switch a.name {
	case "":
		switch a.value {
		case "chunked":
			s.Chunked = true
		case "head":
			s.Head = true
		case "one-line":
			s.OneLine = true
		case "close":
			s.Close = true
		}
		return nil
	case "size":
		return p.sizeArg(s, a)
	case "status":
		if s.Status, err = strconv.Atoi(a.value); err != nil || checkStatus(s.Status) != nil || len(a.value) != 3 {
			return p.errorf(a.at, "%q is no status of an answer", cut(a.value, 40))
		}
	case "retry-after":
		if s.RetryAfter = parseRetryAfter(a.value); a.quoted {
			s.RetryAfter = RetryAfter{Text: a.value}
		}
		if s.RetryAfter.IsZero() {
			return p.errorf(a.at, "the value of retry-after is empty")
		}
	case "location":
		if s.Location = a.value; a.value == "" {
			return p.errorf(a.at, "the value of location is empty")
		}
	case "body":
		s.Body = a.value
	case "header":
		h, err := p.header(a)
		s.Headers = append(s.Headers, h)
		return err
	}
	return nil
}

// header reads "Name: value".
func (p *parser) header(a arg) (wire.Header, error) {
	name, value, ok := strings.Cut(a.value, ":")
	h := wire.Header{Name: name, Value: strings.Trim(value, " \t")}
	if !ok || !isToken(h.Name) || !headerSafe(h.Value) {
		return h, p.errorf(a.at, `%q is no header line; write header="Name: value"`, cut(a.value, 40))
	}
	return h, nil
}

// parseRetryAfter reads a duration, date+duration, or anything, which is sent
// as it stands.
func parseRetryAfter(text string) RetryAfter {
	if rest, ok := strings.CutPrefix(text, "date"); ok && rest != "" && strings.IndexByte("+-", rest[0]) >= 0 {
		if rest[1:] == "0s" {
			return RetryAfter{Date: true}
		}
		if d, err := parseWait(rest[1:]); err == nil {
			d = (d + time.Second - 1).Truncate(time.Second)
			if rest[0] == '-' {
				d = -d
			}
			return RetryAfter{Delay: d, Date: true}
		}
	}
	if d, err := parseWait(text); err == nil && !isDigits(text) {
		return RetryAfter{Delay: (d + time.Second - 1).Truncate(time.Second)}
	}
	return RetryAfter{Text: text}
}

func (p *parser) repetition(s *Step, c call) error {
	switch text := c.repeat; {
	case text == "":
	case text == untilWord:
		s.Repeat.Until = true
	case isDigits(text):
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > MaxRepeat {
			return p.errorf(c.repeatAt, "a step is repeated 1 to %d times", MaxRepeat)
		}
		if n > 1 {
			s.Repeat.Times = n
		}
	default:
		d, err := parseWait(text)
		if err != nil {
			e := p.errorf(c.repeatAt, "%q is neither a number, a duration such as 30s, nor %q", cut(text, 40), untilWord)
			e.Meant = profile.Nearest(text, []string{untilWord})
			return e
		}
		s.Repeat.For = d
	}
	return nil
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}
