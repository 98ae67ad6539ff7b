package fakeendpoint

import (
	"slices"
	"strconv"
	"time"
)

// record is an attempt as the server keeps it.
type record struct {
	Attempt
	path      *Path
	step      *Step
	size      int64 // estimated, in bytes
	arrived   bool
	concluded bool
	forgotten bool
	answering bool // its answer is being written in one piece

	message *messageState // of the message it claims, until it is concluded
	before  *record       // the message's attempt before, if that was under way when this one came
	told    chan struct{} // closed when OnAttempt has been called; nil without it
}

// snapshot is the attempt with what is made up only when somebody looks.
func (r *record) snapshot() Attempt {
	a := r.Attempt
	a.Path = r.path.name
	a.Label = r.path.name + "/" + strconv.Itoa(a.Number)
	if r.step != nil {
		step := *r.step
		step.Repeat = Repeat{} // how often is the script's affair
		a.Step = step.String()
	}
	a.Remarks = slices.Clone(a.Remarks)
	return a
}

// recordSize is what a record costs beside the head and body of its request:
// itself, the header lines, the answer.
const recordSize = 1 << 10

// ledger remembers concluded attempts up to a bound, the oldest ones first to
// go. It is guarded by Server.mu.
type ledger struct {
	limit   int64
	size    int64
	records []*record // nil where removed
	first   int       // of those not yet gone
	dropped int64
}

// add remembers r and forgets what is too much.
func (l *ledger) add(r *record) {
	r.size = recordSize + int64(len(r.Head)) + int64(cap(r.Request.Body)) + 32*int64(len(r.Request.Headers))
	l.size += r.size
	l.records = append(l.records, r)
	for l.size > l.limit && l.first < len(l.records)-1 { // the newest stays
		if old := l.records[l.first]; old != nil && !old.forgotten {
			l.size -= old.size
			l.dropped++
			old.path.lose(old)
		}
		l.records[l.first] = nil
		l.first++
	}
	if l.first > 1024 && l.first > len(l.records)/2 {
		l.records = append(make([]*record, 0, 2*(len(l.records)-l.first)), l.records[l.first:]...)
		l.first = 0
	}
}

// remove takes away what its path has forgotten by itself; the entry goes when
// its turn comes.
func (l *ledger) remove(r *record) {
	l.size -= r.size
	r.size = 0
}

// lose forgets a record of the path to stay within bounds.
func (p *Path) lose(r *record) {
	r.forgotten = true
	p.forgotten++
	if i := slices.Index(p.records, r); i == 0 {
		p.records[0] = nil
		p.records = p.records[1:]
	} else if i > 0 {
		p.records = slices.Delete(p.records, i, i+1)
	}
}

// messageKey is a message on a path.
type messageKey struct {
	path *Path
	id   string
}

// messageState is what the next attempt of a message is told.
type messageState struct {
	count int
	ended time.Time // of the attempt before; zero while that one is under way
	last  *record   // the attempt before, until it is concluded
}

// messages counts the attempts of messages. Of ids that nobody has seen for
// long it remembers nothing: it keeps two generations of a bounded size, and
// what is used moves to the younger one. It is guarded by Server.mu.
type messages struct{ young, old map[messageKey]*messageState }

// of is the state of a message, to be read and changed.
func (m *messages) of(k messageKey) *messageState {
	if state := m.young[k]; state != nil {
		return state
	}
	state := m.old[k]
	if state == nil {
		state = &messageState{}
	}
	if m.young == nil || len(m.young) >= messageCount {
		m.old, m.young = m.young, make(map[messageKey]*messageState)
	}
	m.young[k] = state
	return state
}

// drop forgets the messages of a path.
func (m *messages) drop(p *Path) {
	for _, generation := range []map[messageKey]*messageState{m.young, m.old} {
		for k := range generation {
			if k.path == p {
				delete(generation, k)
			}
		}
	}
}
