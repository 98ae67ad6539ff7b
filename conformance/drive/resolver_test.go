package drive

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func nameServer(t *testing.T) *NameServer {
	t.Helper()
	noLeaks(t)
	s, err := NewNameServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// resolver asks the name server as a sender would.
func resolver(s *NameServer) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, s.Addr())
	}}
}

// found are the addresses of a name, sorted.
func found(t *testing.T, s *NameServer, network, name string) []string {
	t.Helper()
	addrs, err := resolver(s).LookupNetIP(t.Context(), network, name)
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, a := range addrs {
		out = append(out, a.Unmap().String())
	}
	slices.Sort(out)
	return out
}

func addresses(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

func TestNamesResolveToWhatIsSet(t *testing.T) {
	s := nameServer(t)
	const name = "hooks.example."
	check := func(what, network string, want ...string) {
		t.Helper()
		if got := found(t, s, network, name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	check("a name that is not there", "ip")
	s.Set("HOOKS.example", addresses("192.0.2.1", "2001:db8::1", "127.0.0.1")...)
	check("both kinds", "ip", "127.0.0.1", "192.0.2.1", "2001:db8::1")
	check("IPv4", "ip4", "127.0.0.1", "192.0.2.1")
	check("IPv6", "ip6", "2001:db8::1")
	s.Set(name)
	check("a name without an address", "ip")
	s.Set(name, addresses("::ffff:192.0.2.7")...)
	check("an IPv4 address in the form of IPv6", "ip", "192.0.2.7")
	before := s.Asked(name)
	s.Set(name, addresses("10.0.0.1")...)
	check("after another change", "ip4", "10.0.0.1")
	if got := s.Asked("Hooks.Example"); got <= before || before == 0 {
		t.Errorf("asked %d times, and %d times before", got, before)
	}
	s.Remove(name)
	strange := s.Strange()
	check("a name that was removed", "ip")
	if s.Strange() <= strange || s.Asked(name) != 0 {
		t.Errorf("%d questions about what is not there, %d about it", s.Strange()-strange, s.Asked(name))
	}
}

// A name may be harmless when it is looked at and internal when it is connected
// to.
func TestANameChangesBetweenTwoQuestions(t *testing.T) {
	s := nameServer(t)
	s.Sequence("rebinds.example", addresses("192.0.2.1"), addresses("127.0.0.1", "::1"))
	for i, want := range [][]string{{"192.0.2.1"}, {"127.0.0.1", "::1"}, {"127.0.0.1", "::1"}} {
		if got := found(t, s, "ip", "rebinds.example."); !slices.Equal(got, want) {
			t.Errorf("question %d: %q, want %q", i+1, got, want)
		}
	}
}

func TestAnAnswerTooLongForUDPComesOverTCP(t *testing.T) {
	s := nameServer(t)
	var want []string
	var addrs []netip.Addr
	for i := range 200 {
		a := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
		addrs, want = append(addrs, a), append(want, a.String())
	}
	s.Set("many.example", addrs...)
	slices.Sort(want)
	if got := found(t, s, "ip4", "many.example."); !slices.Equal(got, want) {
		t.Errorf("%d addresses came: %q", len(got), got)
	}
}

// ask sends a message over UDP or TCP as it stands and returns the answer's
// header; ok is false if none comes.
func askRaw(t *testing.T, s *NameServer, network string, message []byte) (dnsmessage.Message, bool) {
	t.Helper()
	c, err := net.Dial(network, s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(200 * time.Millisecond))
	if network == "tcp" {
		message = append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)
	}
	if _, err := c.Write(message); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 1<<16)
	n := 0
	if network == "udp" {
		n, err = c.Read(answer)
	} else {
		var length [2]byte
		if _, err = io.ReadFull(c, length[:]); err == nil {
			n, err = io.ReadFull(c, answer[:binary.BigEndian.Uint16(length[:])])
		}
	}
	if err != nil {
		return dnsmessage.Message{}, false
	}
	var m dnsmessage.Message
	if err := m.Unpack(answer[:n]); err != nil {
		t.Fatalf("its answer cannot be read: %v", err)
	}
	return m, true
}

func packed(t testing.TB, m dnsmessage.Message) []byte {
	t.Helper()
	out, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatIsNoQuestionIsRefused(t *testing.T) {
	s := nameServer(t)
	s.Set("a.example", addresses("192.0.2.1")...)
	name := dnsmessage.MustNewName("A.eXample.")
	question := dnsmessage.Question{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}
	for _, tt := range []struct {
		name     string
		message  []byte
		answered bool
		code     dnsmessage.RCode
		answers  int
	}{
		{"a question", packed(t, dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true}, Questions: []dnsmessage.Question{question}}), true, dnsmessage.RCodeSuccess, 1},
		{"a type that it has nothing of", packed(t, dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypeMX, Class: dnsmessage.ClassINET}}}), true, dnsmessage.RCodeSuccess, 0},
		{"another class", packed(t, dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassCHAOS}}}), true, dnsmessage.RCodeRefused, 0},
		{"two questions", packed(t, dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{question, question}}), true, dnsmessage.RCodeFormatError, 0},
		{"no question", packed(t, dnsmessage.Message{Header: dnsmessage.Header{ID: 7}}), true, dnsmessage.RCodeFormatError, 0},
		{"another operation", packed(t, dnsmessage.Message{Header: dnsmessage.Header{ID: 7, OpCode: 5}, Questions: []dnsmessage.Question{question}}), true, dnsmessage.RCodeNotImplemented, 0},
		{"an answer", packed(t, dnsmessage.Message{Header: dnsmessage.Header{ID: 7, Response: true}, Questions: []dnsmessage.Question{question}}), false, 0, 0},
		{"half a header", []byte{0, 7, 1}, false, 0, 0},
		{"half a question", packed(t, dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{question}})[:20], true, dnsmessage.RCodeFormatError, 0},
	} {
		for _, network := range []string{"udp", "tcp"} {
			t.Run(tt.name+" over "+network, func(t *testing.T) {
				got, answered := askRaw(t, s, network, tt.message)
				if answered != tt.answered || answered && (got.RCode != tt.code || got.ID != 7 || !got.Response || len(got.Answers) != tt.answers) {
					t.Errorf("answered %v: %+v", answered, got)
				}
				for _, a := range got.Answers {
					if a.Header.TTL != 0 || a.Header.Name.String() != "A.eXample." {
						t.Errorf("answer %+v", a.Header)
					}
				}
			})
		}
	}
}

func TestTheNameServerTakesManyQuestionsAtATime(t *testing.T) {
	s := nameServer(t)
	s.Set("a.example", addresses("192.0.2.1")...)
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			got, err := resolver(s).LookupNetIP(t.Context(), "ip4", "a.example.")
			if err != nil || len(got) != 1 {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	all.Wait()
	if got := s.Asked("a.example"); got < 30 {
		t.Errorf("asked %d times", got)
	}
}

// Whatever is sent to it, it answers with a message or not at all.
func FuzzNameServer(f *testing.F) {
	name := dnsmessage.MustNewName("a.example.")
	f.Add(packed(f, dnsmessage.Message{Header: dnsmessage.Header{ID: 1}, Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}))
	f.Add(packed(f, dnsmessage.Message{Header: dnsmessage.Header{ID: 1, Response: true}}))
	f.Add([]byte(strings.Repeat("\xc0\x0c", 40)))
	s := &NameServer{names: map[string]*nameRecord{}}
	s.Set("a.example", addresses("192.0.2.1", "2001:db8::1")...)
	f.Fuzz(func(t *testing.T, message []byte) {
		answer := s.answer(message, nameAnswer)
		if answer == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(answer); err != nil || !m.Response || len(answer) > nameAnswer {
			t.Errorf("%q is answered with %q: %v", message, answer, err)
		}
	})
}
