package sender

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/whconform/whconform/reference/wire"
	"golang.org/x/net/dns/dnsmessage"
)

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

// endless is a body of zeros.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// names is a name server over UDP whose answers a test changes.
type names struct {
	mu    sync.Mutex
	known map[string][]string // "hooks.test." → addresses
	asked []string
}

func (n *names) set(name string, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known[name] = addresses
}

func answers(t *testing.T, known map[string][]string) string {
	t.Helper()
	at, _ := nameServer(t, known)
	return at
}

func nameServer(t *testing.T, known map[string][]string) (string, *names) {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	n := &names{known: known}
	go func() {
		buf := make([]byte, 4096)
		for {
			size, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:size]) == nil && len(m.Questions) == 1 {
				if out, err := n.answer(m); err == nil {
					_, _ = c.WriteTo(out, from)
				}
			}
		}
	}()
	return c.LocalAddr().String(), n
}

func (n *names) answer(m dnsmessage.Message) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := m.Questions[0]
	n.asked = append(n.asked, q.Name.String())
	out := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RCode: dnsmessage.RCodeNameError}, Questions: m.Questions}
	addresses, ok := n.known[q.Name.String()]
	if ok && len(addresses) > 0 {
		out.RCode = dnsmessage.RCodeSuccess
	}
	for _, text := range addresses {
		addr := netip.MustParseAddr(text)
		head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		switch {
		case addr.Is4() && q.Type == dnsmessage.TypeA:
			out.Answers = append(out.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: addr.As4()}})
		case addr.Is6() && q.Type == dnsmessage.TypeAAAA:
			out.Answers = append(out.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
		}
	}
	return out.Pack()
}

// counting listens on loopback and counts connections.
func counting(t *testing.T, at string) (port string, connections *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Skipf("this machine has no %s: %v", at, err)
	}
	t.Cleanup(func() { _ = l.Close() })
	connections = new(atomic.Int32)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = c.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, connections
}

func TestANameThatIsInternalIsNeverConnectedTo(t *testing.T) {
	port, connections := counting(t, "127.0.0.1:0")
	for name, addresses := range map[string][]string{
		"loopback":              {"127.0.0.1"},
		"one among several":     {"10.0.0.1", "127.0.0.1", "169.254.169.254"},
		"IPv6":                  {"::1"},
		"a mapped address":      {"::ffff:127.0.0.1"},
		"both families at once": {"127.0.0.1", "::1"},
	} {
		t.Run(name, func(t *testing.T) {
			at := answers(t, map[string][]string{"rebind.test.": addresses})
			rig := newRig(t, func(o *TransportOptions) { o.Guard, o.Resolver = newGuard(t), at })
			r := rig.post(t, "https://rebind.test:"+port+"/", "x")
			if r.Fault != FaultForbidden || r.Err == nil {
				t.Errorf("%+v", r)
			}
		})
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestANameThatTurnsInternalIsNotFollowed(t *testing.T) {
	port, connections := counting(t, "127.0.0.1:0")
	at, zone := nameServer(t, map[string][]string{"rebind.test.": {}})
	rig := newRig(t, func(o *TransportOptions) { o.Guard, o.Resolver = newGuard(t), at })
	to := "https://rebind.test:" + port + "/"
	if r := rig.post(t, to, "x"); r.Fault != wire.FaultDNS {
		t.Errorf("a name that does not resolve: %+v", r)
	}
	zone.set("rebind.test.", "127.0.0.1")
	if r := rig.post(t, to, "x"); r.Fault != FaultForbidden || connections.Load() != 0 {
		t.Errorf("%+v, %d connections", r, connections.Load())
	}
}

func TestANameIsAskedForAsItIs(t *testing.T) {
	at, zone := nameServer(t, map[string][]string{})
	rig := newRig(t, func(o *TransportOptions) { o.Resolver = at })
	if r := rig.post(t, "https://nowhere.test/", "x"); r.Fault != wire.FaultDNS || !strings.Contains(r.Err.Error(), "resolve") {
		t.Errorf("%+v", r)
	}
	zone.mu.Lock()
	defer zone.mu.Unlock()
	for _, name := range zone.asked {
		if name != "nowhere.test." {
			t.Errorf("asked for %q: a domain of this machine behind it", name)
		}
	}
}

func TestAnEndpointThatMovesIsFoundAgain(t *testing.T) {
	here := serve(t, func(http.ResponseWriter, *http.Request) {})
	u, err := url.Parse(here.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, there := counting(t, "127.0.0.2:"+u.Port())
	at, zone := nameServer(t, map[string][]string{"hooks.test.": {"127.0.0.1"}})
	rig := newRig(t, func(o *TransportOptions) { o.Guard, o.Resolver = newGuard(t, "hooks.test"), at })
	to := "http://hooks.test:" + u.Port() + "/"
	if r := rig.post(t, to, "x"); r.Status != 200 {
		t.Fatalf("%+v", r)
	}
	zone.set("hooks.test.", "127.0.0.2")
	rig.clock.Set(day.Add(time.Minute))
	if r := rig.post(t, to, "x"); r.Status != 200 || !r.ConnectionReused {
		t.Errorf("a minute later: %+v", r)
	}
	rig.clock.Set(day.Add(2 * time.Minute))
	if r := rig.post(t, to, "x"); r.Fault != wire.FaultClosed || there.Load() != 1 {
		t.Errorf("two minutes later: %+v, %d connections there", r, there.Load())
	}
}
