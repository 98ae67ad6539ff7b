package fakeendpoint

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// door is a port that the server listens on: the one that paths share, or a
// path's own.
type door struct {
	s           *Server
	path        *Path // whose own it is, or nil
	certificate Certificate
	secure      bool
	address     string      // host and port, which stay through an outage
	tls         *tls.Config // where all handshakes show the same

	mu       sync.Mutex
	closed   bool
	listener *net.TCPListener // nil while connections are refused
	loop     chan struct{}    // closed when nothing accepts from listener any more
	outage   outage
	fillers  []net.Conn // that keep the accept queue full
}

// outage is a step that closes the door for a time. The zero outage is none.
type outage struct {
	kind  Kind
	round int // of the cursor, and where it stood in it: tells one outage from the next
	at    int
	timer *clock.Timer
}

// openDoor listens. An empty address is a free port on loopback.
func (s *Server) openDoor(address string, certificate Certificate, p *Path) (*door, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	if err := s.mayListen(address); err != nil {
		return nil, err
	}
	d := &door{s: s, path: p, certificate: certificate, secure: certificate != PlainHTTP, address: address}
	if d.secure {
		d.tls = s.certs.serverTLS(func() Certificate { return certificate })
	}
	if err := d.listen(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = d.listener.Close()
		<-d.loop
		return nil, ErrClosed
	}
	s.doors = append(s.doors, d)
	return d, nil
}

// mayListen refuses addresses that others can reach, unless they are wanted.
func (s *Server) mayListen(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listening on %q: it is no host:port: %w", address, err)
	}
	if ip := net.ParseIP(host); s.config.Remote || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("listening on %q: others than this machine could reach it, and nobody asked for that: set Remote, or listen on 127.0.0.1", address)
}

// listen opens the port, again after an outage, and accepts. Where several
// goroutines may call it, d.mu is held.
func (d *door) listen() error {
	l, err := net.Listen("tcp", d.address)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", d.address, err)
	}
	d.listener = l.(*net.TCPListener)
	d.address = l.Addr().String()
	d.accept()
	return nil
}

// accept begins to take connections from the listener.
func (d *door) accept() {
	l, done := d.listener, make(chan struct{})
	d.loop = done
	go func() {
		defer close(done)
		for {
			nc, err := l.AcceptTCP()
			switch {
			case err == nil:
				d.s.serve(nc, d)
			case errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
				return
			case !d.s.pause(acceptPause):
				return
			}
		}
	}()
}

// acceptPause is the wait after a failed accept. It fails when the process has
// no file descriptor left, and trying again at once would keep a core busy.
const acceptPause = 20 * time.Millisecond

// pause waits in real time, and tells whether the server is still open.
func (s *Server) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.done:
		return false
	}
}

// base is the beginning of the URLs of this door.
func (d *door) base() string {
	if d.secure {
		return "https://" + d.address
	}
	return "http://" + d.address
}

// serve takes a connection.
func (s *Server) serve(nc net.Conn, d *door) {
	c := newConn(s, d, nc)
	s.mu.Lock()
	full := len(s.open) >= s.limits.Conns
	if full || s.closed {
		if full {
			s.stats.Refused++
		}
		s.mu.Unlock()
		c.reset()
		return
	}
	s.stats.Connections++
	s.open[c] = struct{}{}
	s.conns.Add(1)
	s.mu.Unlock()
	go c.serve()
}

// settle opens or closes the door as the path's script wants it now. It is
// called whenever the script has moved.
func (d *door) settle() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.s.mu.Lock()
	cursor := &d.path.cursor
	cursor.advance(d.s.clock.Now())
	step := &cursor.steps[cursor.at]
	want := outage{round: cursor.round, at: cursor.at}
	last := cursor.at == len(cursor.steps)-1
	d.s.mu.Unlock()
	if step.Kind.isOutage() {
		want.kind = step.Kind
	}
	if want.kind == d.outage.kind && (want.kind == "" || want.round == d.outage.round && want.at == d.outage.at) {
		return nil
	}
	if err := d.endOutage(); err != nil {
		return err
	}
	if want.kind == "" {
		return nil
	}
	return d.beginOutage(want, step.Wait, last)
}

// settled is settle where nobody is there to be told of an error but who waits
// for the path.
func (d *door) settled() {
	if err := d.settle(); err != nil {
		d.s.mu.Lock()
		d.path.err = err
		d.s.mu.Unlock()
	}
}

// beginOutage closes the door. d.mu is held. The last step of a script stays,
// so its duration means nothing.
func (d *door) beginOutage(o outage, wait time.Duration, last bool) error {
	if err := d.stopAccepting(o.kind); err != nil {
		return err
	}
	if wait > 0 && !last {
		now := d.s.clock.Now()
		o.timer = d.s.clock.AfterFunc(wait, func() { d.over(o.round, o.at) })
		d.s.setDue(d, now.Add(wait))
	}
	d.outage = o
	return nil
}

func (d *door) stopAccepting(kind Kind) error {
	if kind == KindRefuse {
		err := d.listener.Close()
		<-d.loop
		d.listener = nil
		if err != nil {
			return fmt.Errorf("closing port %s: %w", d.address, err)
		}
		return nil
	}
	if err := d.listener.SetDeadline(time.Unix(1, 0)); err != nil {
		return fmt.Errorf("holding port %s: %w", d.address, err)
	}
	<-d.loop
	fillers, err := fillQueue(d.listener)
	d.fillers = fillers
	if err != nil {
		return fmt.Errorf("filling the accept queue of %s: %w", d.address, err)
	}
	return nil
}

// over ends an outage whose time has passed, if it is still the one in force.
func (d *door) over(round, at int) {
	d.s.mu.Lock()
	if c := &d.path.cursor; c.round == round && c.at == at && at < len(c.steps)-1 {
		c.skip()
	}
	d.s.mu.Unlock()
	d.settled()
}

// endOutage opens the door again. d.mu is held.
func (d *door) endOutage() error {
	o := d.outage
	d.outage = outage{}
	if o.timer != nil {
		o.timer.Stop()
	}
	if o.kind != "" {
		defer d.s.setDue(d, time.Time{}) // only then, so that who sees nothing due can connect
	}
	switch o.kind {
	case KindRefuse:
		return d.listen()
	case KindFullQueue:
		if err := emptyQueue(d.listener, d.fillers); err != nil {
			return fmt.Errorf("opening port %s again: %w", d.address, err)
		}
		d.fillers = nil
		d.accept()
	}
	return nil
}

// close ends listening.
func (d *door) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	if d.outage.timer != nil {
		d.outage.timer.Stop()
	}
	d.s.setDue(d, time.Time{})
	for _, f := range d.fillers {
		_ = f.Close()
	}
	var err error
	if d.listener != nil {
		err = d.listener.Close()
	}
	<-d.loop
	d.s.mu.Lock()
	for i, o := range d.s.doors {
		if o == d && !d.s.closed {
			d.s.doors = append(append([]*door(nil), d.s.doors[:i]...), d.s.doors[i+1:]...)
			break
		}
	}
	d.s.mu.Unlock()
	return err
}
