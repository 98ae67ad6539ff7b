package drive

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Bounds of the name server. Whoever asks it is a subject, which may be broken.
const (
	// nameServerTries is how often a port is looked for that is free for UDP and
	// TCP alike.
	nameServerTries = 20
	// nameQuery bounds a question over UDP, in bytes. Real ones have less than a
	// tenth.
	nameQuery = 4 << 10
	// nameAnswer is the longest answer over UDP, in bytes (RFC 1035 §4.2.1). A
	// longer one says that TCP is to be used.
	nameAnswer = 512
	// nameConns and nameIdle bound connections over TCP.
	nameConns = 64
	nameIdle  = 5 * time.Second
)

// NameServer is a name server on loopback that answers as a test wants: the
// address of a name may change between two questions, which no real one does on
// demand. Answers have a TTL of 0. Safe for concurrent use.
type NameServer struct {
	udp net.PacketConn
	tcp *net.TCPListener

	running sync.WaitGroup
	mu      sync.Mutex
	closed  bool
	conns   map[net.Conn]struct{}
	names   map[string]*nameRecord
	strange int // questions about names that it does not know
}

// nameRecord is what is known of a name.
type nameRecord struct {
	answers [][]netip.Addr // the last repeats; none: the name has no address
	asked   map[uint16]int // questions by type
	total   int
}

// NewNameServer listens on a free port of 127.0.0.1, for UDP and TCP.
func NewNameServer() (*NameServer, error) {
	var errs []error
	for range nameServerTries {
		udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("starting a name server: %w", err)
		}
		tcp, err := net.Listen("tcp4", udp.LocalAddr().String())
		if err != nil { // taken by somebody else
			errs = append(errs, err, udp.Close())
			continue
		}
		s := &NameServer{udp: udp, tcp: tcp.(*net.TCPListener), conns: map[net.Conn]struct{}{}, names: map[string]*nameRecord{}}
		s.running.Go(s.serveUDP)
		s.running.Go(s.serveTCP)
		return s, nil
	}
	return nil, fmt.Errorf("starting a name server: no port is free for UDP and TCP: %w", errors.Join(errs...))
}

// Addr is host:port, as senders are told it.
func (s *NameServer) Addr() string { return s.udp.LocalAddr().String() }

// Set has a name resolve to addresses from now on, to none if there are none: it
// exists then and has no address. What was asked before is still counted.
func (s *NameServer) Set(name string, addrs ...netip.Addr) { s.Sequence(name, addrs) }

// Sequence gives a name one answer after another, the last one for ever. IPv4
// and IPv6 are asked for by questions of their own and counted each for itself:
// both questions of one look-up get the same answer.
func (s *NameServer) Sequence(name string, answers ...[]netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.names[plainName(name)]
	if r == nil {
		r = &nameRecord{}
		s.names[plainName(name)] = r
	}
	r.answers, r.asked = answers, map[uint16]int{}
}

// Remove has a name not exist.
func (s *NameServer) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, plainName(name))
}

// Asked is how many questions were asked about a name since it was first set.
func (s *NameServer) Asked(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.names[plainName(name)]; r != nil {
		return r.total
	}
	return 0
}

// Strange is how many questions were about names that do not exist.
func (s *NameServer) Strange() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.strange
}

// Close stops it and waits.
func (s *NameServer) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.running.Wait()
		return nil
	}
	s.closed = true
	errs := []error{s.udp.Close(), s.tcp.Close()}
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("closing the name server: %w", err)
	}
	return nil
}

// plainName is a name as it is compared: names know no case, and the dot at the
// end means nothing here.
func plainName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// lookup counts a question and returns the answer; exists tells whether there is
// such a name.
func (s *NameServer) lookup(name string, kind uint16) (addrs []netip.Addr, exists bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.names[plainName(name)]
	if r == nil {
		s.strange++
		return nil, false
	}
	r.total++
	if len(r.answers) == 0 {
		return nil, true
	}
	n := min(r.asked[kind], len(r.answers)-1)
	if len(r.asked) < 16 || r.asked[kind] > 0 { // types are a number that the peer chooses
		r.asked[kind]++
	}
	return r.answers[n], true
}

func (s *NameServer) serveUDP() {
	query := make([]byte, nameQuery)
	for {
		n, from, err := s.udp.ReadFrom(query)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // an ICMP error about an answer
			continue
		}
		if answer := s.answer(query[:n], nameAnswer); answer != nil {
			_, _ = s.udp.WriteTo(answer, from) // who has left is told nothing
		}
	}
}

func (s *NameServer) serveTCP() {
	for {
		c, err := s.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		s.mu.Lock()
		if s.closed || len(s.conns) >= nameConns {
			s.mu.Unlock()
			_ = c.Close()
			continue
		}
		s.conns[c] = struct{}{}
		s.running.Go(func() { s.serveConn(c) })
		s.mu.Unlock()
	}
}
