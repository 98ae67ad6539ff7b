package suite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// SideBySide is how many scenarios run at one time by default. Most wait for
// an answer most of the time; sixteen keep two cores busy and stay far below
// the backlog of a listening socket (128 on many systems).
const SideBySide = 16

// Config is how scenarios are recorded.
type Config struct {
	SideBySide int // scenarios at a time; 0: SideBySide
	// Progress is told of each scenario's end, from one goroutine at a time. May be nil.
	Progress func(Progress)
	// Revive brings the subject back after it stopped listening. Nil: it cannot
	// be. See revive.go.
	Revive func(context.Context) error
}

// Progress is how far a recording has come.
type Progress struct {
	Scenario    string // that has just ended
	Done, Total int
	Failed      bool // the scenario broke down
}

// Record runs the scenarios and returns their transcripts in the order of the
// scenarios: first those that can stand beside others, then the slow ones
// beside each other, then those that run alone, one at a time. When ctx ends,
// scenarios that had begun are marked partial, the others are left out.
func Record(ctx context.Context, cfg Config, scenarios []Scenario) []evidence.Transcript {
	if cfg.SideBySide <= 0 {
		cfg.SideBySide = SideBySide
	}
	r := &recording{cfg: cfg, scenarios: scenarios, out: make([]*evidence.Transcript, len(scenarios))}
	beside, slow, alone := phases(scenarios)
	r.run(ctx, beside, cfg.SideBySide)
	r.revisit(ctx, beside)
	r.run(ctx, slow, max(len(slow), 1))
	r.revisit(ctx, slow)
	for _, i := range alone {
		r.run(ctx, []int{i}, 1)
		r.revisit(ctx, []int{i})
	}

	var done []evidence.Transcript
	for _, t := range r.out {
		if t != nil {
			done = append(done, *t)
		}
	}
	return done
}

func phases(scenarios []Scenario) (beside, slow, alone []int) {
	for i, s := range scenarios {
		switch {
		case s.Alone:
			alone = append(alone, i)
		case s.Slow:
			slow = append(slow, i)
		default:
			beside = append(beside, i)
		}
	}
	return beside, slow, alone
}

type recording struct {
	cfg       Config
	scenarios []Scenario
	mu        sync.Mutex
	done      int
	out       []*evidence.Transcript
	died      []string // see Recorder.Died; written between phases only
	lost      bool     // the subject did not come back when it was last asked to; likewise
}

// run records the scenarios at the given indexes, at most n at a time.
func (r *recording) run(ctx context.Context, indexes []int, n int) {
	var workers sync.WaitGroup
	next := make(chan int)
	for range min(n, len(indexes)) {
		workers.Go(func() {
			for i := range next {
				r.one(ctx, i)
			}
		})
	}
	defer workers.Wait()
	defer close(next)
	for _, i := range indexes {
		if ctx.Err() != nil { // select chooses at random between two that are ready
			return
		}
		select {
		case next <- i:
		case <-ctx.Done():
			return
		}
	}
}

func (r *recording) one(ctx context.Context, i int) {
	t := r.record(ctx, i)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out[i] = t
	r.done++
	if r.cfg.Progress != nil {
		r.cfg.Progress(Progress{t.Scenario, r.done, len(r.scenarios), t.Error != ""})
	}
}

// ErrOutOfTime is what a scenario returns that could not send everything before
// the end of the run: half the evidence must not pass for all of it.
var ErrOutOfTime = errors.New("the run ended before everything was sent")

// record runs one scenario.
func (r *recording) record(ctx context.Context, i int) *evidence.Transcript {
	s := r.scenarios[i]
	rec := newRecorder(s.Name)
	rec.died = r.died
	rec.t.Kills, rec.t.Received = s.Kills, s.Received
	began := time.Now()
	err := guarded(ctx, s, rec)
	t := rec.finish()
	t.TookMS = time.Since(began).Milliseconds()
	switch {
	case errors.Is(err, ErrOutOfTime):
		t.Partial = true
	case ctx.Err() != nil:
		// Also without an error: what its last delivery was cut short in may have
		// gone unnoticed, and half the evidence must not pass for all of it.
		t.Partial = true
	case err != nil:
		t.Error = err.Error()
	}
	return t
}

// guarded turns a panic of a scenario into an error of that scenario alone.
// Of the stack only the places are kept, no arguments.
func guarded(ctx context.Context, s Scenario, rec *Recorder) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("recording %s: the suite itself failed (please report this): %s at %s", s.Name, said(p), place(debug.Stack()))
		}
	}()
	return s.Record(ctx, rec)
}

// said is a panic's value in words; of a value that is no text only the type,
// as its contents may be addresses.
func said(p any) string {
	switch p := p.(type) {
	case error:
		return p.Error()
	case string:
		return p
	}
	return fmt.Sprintf("a %T", p)
}

// place picks the first line of a stack that lies in this module's scenarios or
// checks: function name only.
func place(stack []byte) string {
	for line := range strings.Lines(string(stack)) {
		if strings.HasPrefix(line, "github.com/whconform/whconform/") && !strings.Contains(line, "suite.guarded") && !strings.Contains(line, "suite.judged") {
			name := strings.TrimSpace(line)
			// The arguments: memory addresses that say nothing and differ each time.
			if i := strings.LastIndexByte(name, '('); i > 0 {
				name = name[:i]
			}
			return name
		}
	}
	return "an unknown place"
}

// Recorder collects one scenario's evidence. Its methods may be called from
// several goroutines.
type Recorder struct {
	mu   sync.Mutex
	t    evidence.Transcript
	seen map[string]bool
	err  error
	died []string
}

// Died lists the scenarios that have ended the subject before this one began,
// or NotReproduced.
func (r *Recorder) Died() []string { return slices.Clone(r.died) }

func newRecorder(name string) *Recorder {
	return &Recorder{t: evidence.Transcript{Scenario: name, Facts: map[string]string{}}, seen: map[string]bool{}}
}

// Add records an exchange. A label that is already there is a fault of the
// scenario and makes it break down, as checks find exchanges by label.
func (r *Recorder) Add(x wire.Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[x.Label] {
		r.err = errors.Join(r.err, fmt.Errorf("recording %s: the label %q is used twice", r.t.Scenario, x.Label))
	}
	r.seen[x.Label] = true
	r.t.Exchanges = append(r.t.Exchanges, trimmed(x))
}

// Control names the exchange on whose acceptance the scenario's checks depend.
func (r *Recorder) Control(label string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Control = label
}

// Fact records a fact. The last value of a name counts.
func (r *Recorder) Fact(name, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Facts[name] = value
}

// Skip records that the scenario could not try a requirement.
func (r *Recorder) Skip(requirement string, reason evidence.SkipReason, detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.t.Skips == nil {
		r.t.Skips = map[string]evidence.Skip{}
	}
	r.t.Skips[requirement] = evidence.Skip{Reason: reason, Detail: detail}
}

// Break records that a requirement cannot be judged from this scenario because
// something beside the subject failed. Its other requirements are not touched.
func (r *Recorder) Break(requirement string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.t.Errors == nil {
		r.t.Errors = map[string]string{}
	}
	r.t.Errors[requirement] = err.Error()
}

func (r *Recorder) finish() *evidence.Transcript {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.t
	t.Facts = maps.Clone(r.t.Facts)
	if r.err != nil {
		t.Error = r.err.Error()
	}
	return &t
}

// headerKept is how much of one header line's value a transcript keeps, 8 KiB:
// what servers take by default. Scenarios send lines of many megabytes, which
// would make a report of as many.
const headerKept = 8 << 10

// answerKept is how much of an answer's body is kept: a receiver's own answers
// have a few words, and an error page of some hundred exchanges would fill the
// memory.
const answerKept = 4 << 10

// trimmed cuts bodies at wire.BodyLimit and the values of headers at
// headerKept; the sizes of bodies keep the whole.
func trimmed(x wire.Exchange) wire.Exchange {
	x.Request.Headers = trimmedHeaders(x.Request.Headers)
	if len(x.Request.Body) > wire.BodyLimit {
		x.Request.Body = x.Request.Body[:wire.BodyLimit:wire.BodyLimit]
	}
	if x.Response == nil {
		return x
	}
	response := *x.Response
	response.Headers = trimmedHeaders(response.Headers)
	if len(response.Body) > answerKept {
		response.Body = slices.Clone(response.Body[:answerKept]) // not a part of what was read: that would stay
	}
	x.Response = &response
	return x
}

func trimmedHeaders(headers []wire.Header) []wire.Header {
	if !slices.ContainsFunc(headers, func(h wire.Header) bool { return len(h.Value) > headerKept }) {
		return headers
	}
	out := slices.Clone(headers)
	for i := range out {
		if n := len(out[i].Value); n > headerKept {
			out[i].Value = strings.Clone(out[i].Value[:headerKept]) + fmt.Sprintf("… (%d bytes in all)", n)
		}
	}
	return out
}
