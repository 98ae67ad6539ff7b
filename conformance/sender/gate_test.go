package sender

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/drive"
)

// joinCounter is a timeline that notes how many have joined after each call.
type joinCounter struct {
	drive.Timeline // real
	mu             sync.Mutex
	live           int
	log            []int
}

func (c *joinCounter) change(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live += by
	c.log = append(c.log, c.live)
}

func (c *joinCounter) Join()  { c.change(1) }
func (c *joinCounter) Leave() { c.change(-1) }

func (c *joinCounter) is() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live
}

func TestTimeStandsStillUntilAllScenariosOfAPhaseHaveBegun(t *testing.T) {
	line := &joinCounter{Timeline: drive.NewRealTimeline()}
	g := &gate{left: 3}
	g.join(line)
	g.join(line)
	// Both wait now; the third one has not begun, and somebody who does not wait
	// is on the timeline for it.
	if n := line.is(); n != 3 {
		t.Errorf("%d have joined, want the two and the gate", n)
	}
	g.join(line)
	if n := line.is(); n != 3 || g.held {
		t.Errorf("%d have joined, want the three alone; held: %t", n, g.held)
	}
	if !slices.Equal(line.log, []int{1, 2, 3, 4, 3}) {
		t.Errorf("joined and left is %v", line.log)
	}
}

func TestAGateOfOneHoldsNobody(t *testing.T) {
	line := &joinCounter{Timeline: drive.NewRealTimeline()}
	(&gate{left: 1}).join(line)
	(&gate{}).join(line) // of a scenario that is alone
	if !slices.Equal(line.log, []int{1, 2}) {
		t.Errorf("joined and left is %v", line.log)
	}
}

func TestAGateOpensInTimeForAPhaseThatIsNotRecordedSideBySide(t *testing.T) {
	line := &joinCounter{Timeline: drive.NewRealTimeline()}
	g := &gate{left: 2}
	g.join(line)
	g.mu.Lock()
	g.bound.Reset(time.Millisecond)
	g.mu.Unlock()
	for end := time.Now().Add(10 * time.Second); line.is() != 1; {
		if time.Now().After(end) {
			t.Fatal("it is closed still")
		}
		time.Sleep(time.Millisecond) // the timer tells nobody
	}
	line.Leave() // the first scenario ends, and the second begins
	g.join(line)
	if n := line.is(); n != 1 {
		t.Errorf("%d have joined, want the second scenario", n)
	}
}
