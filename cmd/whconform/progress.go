package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/whconform/whconform/conformance/suite"
)

// progress tells on stderr how far a run has come: one line that changes on a
// terminal; elsewhere its beginning, and with --verbose each scenario.
type progress struct {
	app           *app
	live, verbose bool

	mu    sync.Mutex
	began time.Time
	shown bool // a live line stands there
}

func (a *app) newProgress(verbose bool) *progress {
	return &progress{app: a, live: a.errFile != nil && !verbose && a.env("TERM") != "dumb", verbose: verbose, began: time.Now()}
}

// clearLine returns to the line's beginning and empties it.
const clearLine = "\r\x1b[K"

func (p *progress) begin(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if p.live {
		fmt.Fprint(p.app.err, text+" …")
		p.shown = true
		return
	}
	fmt.Fprintln(p.app.err, text)
}

// step is told of each scenario's end.
func (p *progress) step(s suite.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.live:
		fmt.Fprintf(p.app.err, "%s%d of %d  %s", clearLine, s.Done, s.Total, s.Scenario)
		p.shown = true
	case p.verbose:
		failed := ""
		if s.Failed {
			failed = "  broke down"
		}
		fmt.Fprintf(p.app.err, "%5.1f s  %d of %d  %s%s\n", time.Since(p.began).Seconds(), s.Done, s.Total, s.Scenario, failed)
	}
}

// end removes the live line.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.app.err, clearLine)
		p.shown = false
	}
}
