package fakeendpoint

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/signature"
)

// Stats counts what bounds and peers have cost.
type Stats struct {
	Connections int64 // that were taken
	Refused     int64 // reset because of Limits.Conns
	Strays      int64 // see [Server.Strays]
	Forgotten   int64 // attempts, because of Limits.Record
	NoPath      int64 // requests answered 503 because of Limits.Paths
	Uncaught    int64 // bodies that were not kept because of Limits.InFlight
	Held        int   // requests held on purpose now
	Open        int   // connections now
	Paths       int   // now, traps not counted
}

// Stray is a connection, or the end of one, that brought no request which could
// be taken: a TLS handshake that failed, garbage, a request with two lengths. A
// connection that is opened and closed without a byte is none.
type Stray struct {
	At     time.Time
	Remote string
	Path   string // where it is known
	Reason string
	Status int    // it was answered; 0: it was not
	Sample []byte // the beginning of what came
}

// Stats is a copy of the counts.
func (s *Server) Stats() Stats {
	n, _ := s.Held()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	out.Held, out.Open, out.Paths, out.Forgotten = n, len(s.open), s.count, s.ledger.dropped
	return out
}

// Strays are the last ones, the oldest first; Stats counts them all.
func (s *Server) Strays() []Stray {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Stray(nil), s.strays...)
}

// stray records one, with the beginning of what came.
func (s *Server) stray(st Stray, sample []byte) {
	st.Sample = sample
	s.mu.Lock()
	known := s.known
	s.mu.Unlock()
	for _, k := range known {
		if _, found := k.In(sample); found {
			st.Sample = k.Redact(sample)
			st.Reason, _, _ = strings.Cut(st.Reason, ":") // what is quoted behind it may hold a part
		}
	}
	st.Sample = bytes.Clone(st.Sample[:min(len(st.Sample), straySample)])
	s.mu.Lock()
	s.stats.Strays++
	if len(s.strays) == strayCount {
		s.strays = append(s.strays[:0], s.strays[1:]...)
	}
	s.strays = append(s.strays, st)
	s.mu.Unlock()
	if s.config.OnStray != nil {
		s.telling.Lock()
		defer s.telling.Unlock()
		s.config.OnStray(st)
	}
}

// know remembers keys. s.mu is held. The slice is never changed in place, so
// that it can be read without the lock.
func (s *Server) know(keys []signature.Key) {
	for _, k := range keys {
		if !slices.Contains(s.known, k) {
			s.known = append(slices.Clone(s.known[max(0, len(s.known)-knownKeys+1):]), k)
		}
	}
}
