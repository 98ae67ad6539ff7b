package sender

import (
	"sync"
	"time"

	"github.com/whconform/whconform/conformance/drive"
)

// gateBound is how long, in real time, the scenarios of a phase are waited for
// to begin. They begin within milliseconds where the phase is recorded side by
// side as it should be; a recording with fewer at a time goes on all the same,
// and its late ones begin at a later time.
const gateBound = 2 * time.Second

// gate lets the scenarios of a phase begin at one time: the clock stands still
// until all have joined the timeline, so that a run repeats itself.
type gate struct {
	mu    sync.Mutex
	left  int // scenarios that have not begun
	held  bool
	bound *time.Timer
}

// join joins the timeline for a scenario.
func (g *gate) join(t drive.Timeline) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.held && g.left > 1 && g.bound == nil {
		g.held = true
		t.Join()
		g.bound = time.AfterFunc(gateBound, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.open(t)
		})
	}
	t.Join()
	if g.left--; g.left <= 0 {
		g.open(t)
	}
}

// open lets time pass. g.mu is held.
func (g *gate) open(t drive.Timeline) {
	if g.held {
		g.held = false
		g.bound.Stop()
		t.Leave()
	}
}
