package fakeprovider_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// loading is a provider on the real clock.
func loading(t testing.TB, profileName string) (*fakeprovider.Provider, signature.Key) {
	t.Helper()
	contract, err := profile.Load(profileName)
	if err != nil {
		t.Fatal(err)
	}
	p, err := fakeprovider.New(fakeprovider.Config{Profile: contract, Clock: clock.New()})
	if err != nil {
		t.Fatal(err)
	}
	key, err := p.Scheme().Key("current", secrets[profileName])
	if err != nil {
		t.Fatal(err)
	}
	return p, key
}

// checking is a receiver that verifies, and counts deliveries by id and bytes.
type checking struct {
	scheme signature.Scheme
	key    signature.Key

	mu   sync.Mutex
	ids  map[string]int
	same map[string]int // by signature header and body
	bad  int
}

func (c *checking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	request := wire.Request{Method: r.Method, Target: r.RequestURI, Body: body, Size: int64(len(body))}
	for name, values := range r.Header {
		for _, v := range values {
			request.Headers = append(request.Headers, wire.Header{Name: name, Value: v})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.scheme.Verify(&request, time.Now(), c.key); err != nil {
		c.bad++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	id, _ := c.scheme.ID(&request)
	c.ids[id]++
	c.same[r.Header.Get(c.scheme.Spec().Signature.Name)+string(body)]++
}

func TestTheCountsOfALoadAddUp(t *testing.T) {
	for _, name := range []string{"standard-webhooks", "delivery-envelope"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, key := loading(t, name)
			receiver := &checking{scheme: p.Scheme(), key: key, ids: map[string]int{}, same: map[string]int{}}
			s := httptest.NewServer(receiver)
			defer s.Close()
			var sent, accepted, refused int64
			r, err := p.Load(t.Context(), fakeprovider.Target{URL: s.URL}, fakeprovider.LoadConfig{
				Rate: 2000, Duration: 500 * time.Millisecond, Copies: 2, Forged: 0.2, Duplicates: 0.3, Connections: 8, Keys: []signature.Key{key}, Seed: 3,
				Second: func(s fakeprovider.LoadSecond) {
					sent, accepted, refused = sent+s.Sent, accepted+s.Accepted, refused+s.Refused
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if r.Due != 1000 || r.Sent != 1000 || r.Unanswered() != 0 || r.FirstFault != "" {
				t.Errorf("%d sent of %d, %d unanswered, %s", r.Sent, r.Due, r.Unanswered(), r.FirstFault)
			}
			for what, c := range map[string]fakeprovider.LoadCount{"genuine": r.Genuine, "duplicates": r.Duplicates, "forged": r.Forged} {
				byStatus := int64(0)
				for _, n := range c.Statuses {
					byStatus += n
				}
				if c.Sent == 0 || c.Sent != byStatus || c.Sent != c.Accepted+c.Refused+c.Other+c.Failed+c.Cancelled {
					t.Errorf("%s: %+v", what, c)
				}
			}
			if r.Forged.Accepted != 0 || r.Forged.Refused != int64(receiver.bad) || r.Genuine.Refused != 0 || r.Duplicates.Refused != 0 {
				t.Errorf("%d forged ones accepted, %d refused, of %d that did not verify", r.Forged.Accepted, r.Forged.Refused, receiver.bad)
			}
			if r.Events != int64(len(receiver.ids)) || r.Genuine.Accepted != 2*r.Events {
				t.Errorf("%d events and %d genuine deliveries, the receiver saw %d ids", r.Events, r.Genuine.Accepted, len(receiver.ids))
			}
			for _, n := range receiver.same {
				// A duplicate that is signed in the same second has the same bytes.
				if n%2 != 0 {
					t.Errorf("%d copies of the same bytes", n)
				}
			}
			if sent != r.Sent || accepted != r.Genuine.Accepted+r.Duplicates.Accepted || refused != r.Forged.Refused {
				t.Errorf("the seconds have %d, %d, %d", sent, accepted, refused)
			}
			if r.Latency.Count()+r.ForgedLatency.Count() != 1000 || r.Waited.Count() != 1000 || r.Dialed > 8 {
				t.Errorf("%d and %d latencies, %d waits, %d connections", r.Latency.Count(), r.ForgedLatency.Count(), r.Waited.Count(), r.Dialed)
			}
		})
	}
}

func TestAStallIsSeenOverARealConnection(t *testing.T) {
	p, key := loading(t, "standard-webhooks")
	const stall = 400 * time.Millisecond
	var once sync.Once
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		once.Do(func() { time.Sleep(stall) }) // the fault under test, not a wait for an event
	}))
	defer s.Close()
	r, err := p.Load(t.Context(), fakeprovider.Target{URL: s.URL}, fakeprovider.LoadConfig{Rate: 100, Duration: 600 * time.Millisecond, Connections: 1, Keys: []signature.Key{key}})
	if err != nil {
		t.Fatal(err)
	}
	// The first one held 40 others up; half of them for 200 ms and more.
	if r.Genuine.Accepted != 60 || r.Latency.Percentile(70) < stall/2 || r.Latency.Max() < stall {
		t.Errorf("%d accepted, p70 %v, max %v", r.Genuine.Accepted, r.Latency.Percentile(70), r.Latency.Max())
	}
}

func TestALoadEndsWhenItIsCancelled(t *testing.T) {
	p, key := loading(t, "standard-webhooks")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	url := serve(t, func(c *net.TCPConn) {
		readHead(c)
		cancel(why)
		await(c)
	})
	r, err := p.Load(ctx, fakeprovider.Target{URL: url}, fakeprovider.LoadConfig{Rate: 100, Duration: fakeprovider.MaxLoadDuration, Connections: 3, Keys: []signature.Key{key}})
	if !errors.Is(err, why) || r == nil {
		t.Fatalf("%v, %v", r, err)
	}
	if g := r.Genuine; g.Cancelled < 1 || g.Sent != g.Cancelled+g.Failed || g.Failed != 0 || r.Due > 10_000 {
		t.Errorf("%+v, %d due", g, r.Due)
	}
	// Nor does it begin.
	if _, err := p.Load(ctx, fakeprovider.Target{URL: url}, fakeprovider.LoadConfig{Rate: 1, Duration: time.Second, Keys: []signature.Key{key}}); err == nil {
		t.Error("a load begins under a context that is done")
	}
}

// answering answers each request on a connection by what next says, until it
// says "".
func answering(t *testing.T, next func(n int) string) string {
	return serve(t, func(c *net.TCPConn) {
		in := bufio.NewReader(c)
		for n := 0; ; n++ {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			text := next(n)
			if text == "" {
				return
			}
			_, _ = io.WriteString(c, text)
		}
	})
}

func TestAConnectionThatTheReceiverClosedIsNoFault(t *testing.T) {
	p, key := loading(t, "standard-webhooks")
	url := answering(t, func(n int) string {
		if n == 3 {
			return "" // closed without a word, as at the end of an idle time
		}
		return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	})
	r, err := p.Load(t.Context(), fakeprovider.Target{URL: url}, fakeprovider.LoadConfig{Rate: 200, Duration: 200 * time.Millisecond, Connections: 1, Keys: []signature.Key{key}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Genuine.Accepted != 40 || r.Resent < 10 || r.Dialed != r.Resent+1 {
		t.Errorf("%+v, %d sent once more, %d connections", r.Genuine, r.Resent, r.Dialed)
	}
}

func TestFaultsUnderLoadAreNamed(t *testing.T) {
	p, key := loading(t, "standard-webhooks")
	secret := secrets["standard-webhooks"]
	for name, c := range map[string]struct {
		handle func(*net.TCPConn)
		fault  string
	}{
		"closed without an answer": {func(c *net.TCPConn) { readHead(c); await1(c); _ = c.CloseWrite(); await(c) }, wire.FaultClosed},
		"reset":                    {func(c *net.TCPConn) { readHead(c); drop(c) }, wire.FaultReset},
		"no answer":                {func(c *net.TCPConn) { await(c) }, wire.FaultTimeout},
		"no HTTP":                  {say("220 " + secret + "\r\n"), wire.FaultNotHTTP},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := 20 * time.Second
			if c.fault == wire.FaultTimeout {
				answer = 100 * time.Millisecond
			}
			r, err := p.Load(t.Context(), fakeprovider.Target{URL: serve(t, c.handle), Answer: answer}, fakeprovider.LoadConfig{Rate: 100, Duration: 100 * time.Millisecond, Connections: 10, Keys: []signature.Key{key}})
			if err != nil {
				t.Fatal(err)
			}
			if r.Genuine.Failed != 10 || r.Genuine.Faults[c.fault] != 10 || r.Unanswered() != 10 || r.FirstFault == "" {
				t.Errorf("%+v, first %q", r.Genuine, r.FirstFault)
			}
			if text, err := json.Marshal(r); err != nil || bytes.Contains(text, []byte(secret)) || bytes.Contains(text, []byte(secret[6:])) {
				t.Errorf("the secret is told: %s, %v", text, err)
			}
		})
	}
}

func TestALoadOverTLS(t *testing.T) {
	p, key := loading(t, "standard-webhooks")
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	r, err := p.Load(t.Context(), fakeprovider.Target{URL: s.URL, TLS: &tls.Config{RootCAs: roots}}, fakeprovider.LoadConfig{Rate: 200, Duration: 100 * time.Millisecond, Connections: 2, Keys: []signature.Key{key}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Genuine.Statuses[202] != 20 || r.Dialed > 2 {
		t.Errorf("%+v, %d connections", r.Genuine, r.Dialed)
	}
	if _, err := p.Load(t.Context(), fakeprovider.Target{URL: s.URL}, fakeprovider.LoadConfig{Rate: 1, Duration: time.Second, Keys: []signature.Key{key}}); err == nil || !strings.Contains(err.Error(), "nothing was sent: TLS handshake") {
		t.Errorf("without its root: %v", err)
	}
}

func TestALoadThatCannotBeIsRefused(t *testing.T) {
	p, key := loading(t, "standard-webhooks")
	keys := []signature.Key{key}
	for want, c := range map[string]fakeprovider.LoadConfig{
		"the rate is 0":               {Duration: time.Second, Keys: keys},
		"the rate is 100001":          {Rate: fakeprovider.MaxRate + 1, Duration: time.Second, Keys: keys},
		"the duration is 0s":          {Rate: 1, Keys: keys},
		"the duration is 1h0m0.0":     {Rate: 1, Duration: fakeprovider.MaxLoadDuration + time.Millisecond, Keys: keys},
		"not one delivery is due":     {Rate: 1e-9, Duration: time.Nanosecond, Keys: keys},
		"there are 101 copies":        {Rate: 1, Duration: time.Second, Copies: 101, Keys: keys},
		"there are -1 copies":         {Rate: 1, Duration: time.Second, Copies: -1, Keys: keys},
		"there are 1001 connections":  {Rate: 1, Duration: time.Second, Connections: fakeprovider.MaxConnections + 1, Keys: keys},
		"the shares are 1.1 forged":   {Rate: 1, Duration: time.Second, Forged: 1.1, Keys: keys},
		"0.6 forged and 0.6 dupl":     {Rate: 1, Duration: time.Second, Forged: 0.6, Duplicates: 0.6, Keys: keys},
		"a key is required":           {Rate: 1, Duration: time.Second},
		"nothing was sent: connectin": {Rate: 1, Duration: time.Second, Keys: keys},
	} {
		if r, err := p.Load(t.Context(), fakeprovider.Target{URL: "http://127.0.0.1:1/"}, c); err == nil || !strings.Contains(err.Error(), want) || r != nil {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := p.Load(t.Context(), fakeprovider.Target{URL: "ftp://127.0.0.1:1/"}, fakeprovider.LoadConfig{Rate: 1, Duration: time.Second, Keys: keys}); err == nil || !strings.Contains(err.Error(), "scheme") {
		t.Errorf("%v", err)
	}
}
