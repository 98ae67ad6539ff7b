package drive

import (
	"slices"
	"time"
)

// A sender that does not tell when something is due gets its time in small
// steps. They grow with the time since something last arrived, as the delays of
// a retry schedule do, so that what comes is placed within a twentieth of its
// delay and three days take some thousands of steps.
const (
	untoldLeast = time.Second // nobody's timers are expected to be finer
	untoldMost  = time.Minute
	untoldShare = 20
	jumpsKept   = 1 << 18 // three days of the smallest steps
)

// jumps remembers how far the clock went at once. The zero value is ready to
// use.
type jumps struct {
	ends    []time.Time
	sizes   []time.Duration
	arrived int       // requests so far
	active  time.Time // when that last changed
}

// limit shortens a move from now, and remembers it.
func (j *jumps) limit(now, to time.Time, arrived int) time.Time {
	if arrived != j.arrived || j.active.IsZero() {
		j.arrived, j.active = arrived, now
	}
	step := min(max(now.Sub(j.active)/untoldShare, untoldLeast), untoldMost)
	if most := now.Add(step); most.Before(to) {
		to = most
	}
	if len(j.ends) == jumpsKept {
		j.ends, j.sizes = slices.Clone(j.ends[jumpsKept/2:]), slices.Clone(j.sizes[jumpsKept/2:])
	}
	j.ends, j.sizes = append(j.ends, to), append(j.sizes, to.Sub(now))
	return to
}

// window is how far the clock went at once to reach an instant.
func (j *jumps) window(at time.Time) time.Duration {
	i, found := slices.BinarySearchFunc(j.ends, at, time.Time.Compare)
	if !found {
		return 0
	}
	return j.sizes[i]
}
