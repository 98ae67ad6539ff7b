package sender

import (
	"encoding/json"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
)

// place is what became of an endpoint at a place.
func place(label string, r reached) fact {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return fact{reachedFact + label, string(text)}
}

func TestOnlyHTTPSIsTaken(t *testing.T) {
	secure := place("https", reached{URL: "https://hooks.example.com/hook"})
	tell(t, judgeHTTPS, map[string]*evidence.Transcript{
		"http is refused": recorded(secure, place("http", reached{URL: "http://hooks.example.com/hook", Refused: "no"})),
	}, []wrongly{
		{"http is taken", recorded(secure, place("http", reached{URL: "http://hooks.example.com/hook"})), "created", "not looked at"},
		{"HTTP is taken", recorded(secure, place("HTTP", reached{URL: "HTTP://hooks.example.com/hook"})), "created", "not looked at"},
	})
}

func TestAConnectionToAnInternalAddressIsFound(t *testing.T) {
	tell(t, judgeInternal, map[string]*evidence.Transcript{
		"refused, not connected to, not seen": recorded(place("loopback", reached{Refused: "no"}), place("localhost", reached{}), place("link-local", reached{Unseen: "why"})),
	}, []wrongly{
		{"as it is", recorded(place("loopback", reached{URL: "u", Connections: 2})), "2 connections", "are not checked"},
		{"in another spelling", recorded(place("loopback, in hex", reached{URL: "u", Connections: 1})), "1 connection", "as text"},
		{"by a name", recorded(place(nameInside, reached{URL: "u", Connections: 1})), "1 connection", "resolves to"},
		{"by rebinding", recorded(place(nameRebound, reached{URL: "u", Connections: 1})), "1 connection", "when the endpoint is created"},
	})
}

func TestALogTellsWhetherTheSenderRefused(t *testing.T) {
	for text, want := range map[string]bool{
		"10.0.0.1 is refused: it is private": true, "blocked by policy": true, "": false,
		"dial tcp 10.0.0.1:443: connect: connection refused": false, "i/o timeout": false, "The operation timed out.": false, "connect EHOSTUNREACH 10.0.0.1:443": false,
		"tls: failed to verify certificate": false, "lookup metadata.google.internal: no such host": false, "context deadline exceeded": false,
	} {
		if got := refusesItself(drive.LoggedAttempt{Error: text, Duration: time.Millisecond}); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
	if refusesItself(drive.LoggedAttempt{Error: "it did not work", Duration: 5 * time.Second}) {
		t.Error("what took five seconds was refused at once")
	}
}

// Of a URL that the standard library can read, and of addresses, this test knows
// what they are; the rest are spellings that some clients read and others do not.
func TestProbesAreInternalAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range slices.Concat(seenProbes(), unseenProbes()) {
		at := p.at(443)
		if seen[at] || seen[p.label] {
			t.Errorf("%s (%s) is tried twice", at, p.label)
		}
		seen[at], seen[p.label] = true, true
		if (p.listen != "") != strings.Contains(p.url, "PORT") {
			t.Errorf("%s: it listens at %q", p.url, p.listen)
		}
		u, err := url.Parse(at)
		if err != nil {
			continue
		}
		addr, err := netip.ParseAddr(u.Hostname())
		if err != nil {
			continue
		}
		if a := addr.Unmap().WithZone(""); a.IsGlobalUnicast() && !a.IsPrivate() && !reservedOrTunnel(a) {
			t.Errorf("%s (%s) is public", at, p.label)
		}
	}
	if a := netip.MustParseAddr(publicAddress); !a.IsGlobalUnicast() || a.IsPrivate() || reservedOrTunnel(a) {
		t.Errorf("%s is not public", a)
	}
}

// reservedOrTunnel are the ranges of probes that net/netip has no name for.
func reservedOrTunnel(a netip.Addr) bool {
	return slices.ContainsFunc([]string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001:db8::/32", "fec0::/10",
	}, func(p string) bool { return netip.MustParsePrefix(p).Contains(a) })
}

func TestATripwireCountsConnections(t *testing.T) {
	w, err := newTripwire("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c, err := net.Dial("tcp", w.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil { // until it is closed
			t.Error("it said something")
		}
		_ = c.Close()
	}
	w.close()
	if got := w.count(); got != 3 {
		t.Errorf("%d connections", got)
	}
	if _, err := newTripwire("192.0.2.1"); err == nil {
		t.Error("it listens at an address that is not this machine's")
	}
}
