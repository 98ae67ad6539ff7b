package fakeprovider_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// now is the virtual time of the tests.
var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// secrets are public: they are good for nothing.
var secrets = map[string]string{
	"standard-webhooks": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	"delivery-envelope": "public test secret of whconform, good for nothing",
}

// fixture is a provider with a key and an event.
type fixture struct {
	*fakeprovider.Provider
	clock *clock.Mock
	key   signature.Key
	event []byte
	id    string
}

func newFixture(t testing.TB, profileName string) *fixture {
	t.Helper()
	contract, err := profile.Load(profileName)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{clock: clock.NewMock()}
	f.clock.Set(now)
	f.Provider, err = fakeprovider.New(fakeprovider.Config{Profile: contract, Clock: f.clock, Rand: rand.NewChaCha8([32]byte{1})})
	if err != nil {
		t.Fatal(err)
	}
	switch secret, ok := secrets[profileName]; {
	case ok:
		f.key, err = f.Scheme().Key("current", secret)
	case contract.Signature.MAC == signature.Ed25519:
		f.key, err = signature.NewEd25519Key("current", rand.NewChaCha8([32]byte{2}))
	case contract.Signature.Key.Decode == "utf8":
		f.key, err = f.Scheme().Key("current", "public test secret of whconform, good for nothing")
	default:
		f.key, err = signature.NewKey(f.Scheme(), "current", rand.NewChaCha8([32]byte{2}))
	}
	if err != nil {
		t.Fatal(err)
	}
	f.id = f.NewID()
	if f.event, err = contract.NewPayload(profile.PayloadData{ID: f.id, Type: "invoice.paid", Time: now, Seq: 7, Random: "x1"}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) delivery() fakeprovider.Delivery {
	return fakeprovider.Delivery{ID: f.id, Type: "invoice.paid", Keys: []signature.Key{f.key}, Body: f.event}
}

func (f *fixture) draft(t testing.TB, a ...fakeprovider.Alteration) fakeprovider.Draft {
	t.Helper()
	d, err := f.Draft(f.delivery(), a...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// send drafts and sends to url, bounded by a few seconds.
func (f *fixture) send(t testing.TB, url string, a ...fakeprovider.Alteration) wire.Exchange {
	t.Helper()
	to := fakeprovider.Target{URL: url, Answer: 20 * time.Second}
	return f.Send(t.Context(), to, f.draft(t, a...), "probe")
}

// serve listens on loopback and gives each connection to handle, which may
// leave it open: it is closed when handle returns. It returns the URL.
func serve(t testing.TB, handle func(c *net.TCPConn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				handle(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return "http://" + listener.Addr().String() + "/hooks?tenant=1"
}

// capture is a server that reads what comes until the peer ends its side or
// until enough, which gets all that has come, says so; then it answers.
func capture(t testing.TB, answer string, enough func(got []byte) bool) (url string, got func(context.Context) string) {
	t.Helper()
	all := make(chan string, 16)
	url = serve(t, func(c *net.TCPConn) {
		var in []byte
		buf := make([]byte, 64<<10)
		for !enough(in) {
			n, err := c.Read(buf)
			in = append(in, buf[:n]...)
			if err != nil {
				break
			}
		}
		_, _ = io.WriteString(c, answer)
		all <- string(in)
	})
	return url, func(ctx context.Context) string {
		select {
		case s := <-all:
			return s
		case <-ctx.Done():
			t.Fatal("nothing was captured")
			return ""
		}
	}
}
