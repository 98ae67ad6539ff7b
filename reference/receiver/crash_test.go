package receiver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/signature"
)

const (
	// killsVariable is how often the crash tests kill a receiver each; a few
	// times by default, hundreds of times where there is time.
	killsVariable = "WHCONFORM_KILLS"

	// seedVariable repeats a run of the crash tests.
	seedVariable = "WHCONFORM_SEED"

	// round is how many events are delivered between two kills.
	round = 100

	// senders is how many deliveries are under way at one time.
	senders = 8
)

// kills reads how often to kill.
func kills(t *testing.T) int {
	text := os.Getenv(killsVariable)
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number of kills", killsVariable, text)
	}
	return n
}

// seed is random, or the one asked for.
func seed(t *testing.T) uint64 {
	s := rand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s=%q is no seed", seedVariable, text)
		}
	}
	t.Logf("seed %d (repeat it by %s)", s, seedVariable)
	return s
}

// TestWhatWasAcknowledgedSurvivesKills kills receivers under load, each time at
// a random delivery, and starts them again; the provider sends again what was
// not acknowledged. In the end every event must be there and have had its effect
// once.
func TestWhatWasAcknowledgedSurvivesKills(t *testing.T) {
	t.Run("on SQLite", func(t *testing.T) {
		c := child{Path: filepath.Join(t.TempDir(), "inbox.db")}
		crash(t, 1, c, func() *Inbox { return openFile(t, c.Path, Options{Clock: clock.New()}) })
	})
	t.Run("two processes on one SQLite file", func(t *testing.T) {
		c := child{Path: filepath.Join(t.TempDir(), "inbox.db")}
		crash(t, 2, c, func() *Inbox { return openFile(t, c.Path, Options{Clock: clock.New()}) })
	})
	t.Run("two processes on one PostgreSQL", func(t *testing.T) {
		c := child{DSN: newDatabase(t)}
		crash(t, 2, c, func() *Inbox { return openDatabase(t, c.DSN, Options{Clock: clock.New()}) })
	})
}

func crash(t *testing.T, instances int, c child, open func() *Inbox) {
	random := rand.New(rand.NewPCG(seed(t), 0))
	p := newCrashProvider(t)
	running := make([]*process, instances)
	for i := range running {
		running[i] = startChild(t, c)
		p.addresses[i] = running[i].line()
	}
	n := kills(t)
	for i := range n {
		victim := i % instances
		p.deliver(i*round, random.IntN(round), running[victim].kill)
		running[victim] = startChild(t, c)
		p.addresses[victim] = running[victim].line()
	}
	p.deliver(n*round, -1, nil) // and what is not acknowledged by now

	inbox := open()
	await(t, "all is processed", func() bool {
		s, err := inbox.Stats(context.Background())
		return err == nil && s.Waiting == 0
	})
	p.judge(inbox, n)
}

// crashProvider delivers payments, one event each, to receivers that may die.
type crashProvider struct {
	t         *testing.T
	scheme    signature.Scheme
	key       signature.Key
	addresses [2]string
	client    *http.Client

	mu    sync.Mutex
	acked map[string]bool
	open  []int // not acknowledged yet
}

func newCrashProvider(t *testing.T) *crashProvider {
	scheme, err := signature.New(signature.StandardWebhooks())
	if err != nil {
		t.Fatal(err)
	}
	key, err := scheme.Key("current", childSecret())
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	t.Cleanup(client.CloseIdleConnections)
	return &crashProvider{t: t, scheme: scheme, key: key, client: client, acked: map[string]bool{}}
}

// deliver sends a round of new events, and again those that are open, several at
// a time; at the delivery with the number killAt it calls kill.
func (p *crashProvider) deliver(first, killAt int, kill func()) {
	work := slices.Concat(p.open, make([]int, 0, round))
	for i := range round {
		work = append(work, first+i)
	}
	p.open = nil
	numbers := make(chan int)
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for n := range numbers {
				p.send(n)
			}
		})
	}
	for i, n := range work {
		if i == killAt {
			all.Go(kill) // beside those that are under way
		}
		numbers <- n
	}
	close(numbers)
	all.Wait()
}

func crashID(n int) string { return fmt.Sprintf("msg_%06d", n) }

// send delivers event n to one of the instances, or to the other.
func (p *crashProvider) send(n int) {
	id := crashID(n)
	body := fmt.Sprintf(`{"type":"payment.succeeded","timestamp":"2026-01-02T15:04:05Z","data":{"id":"pay_%d","amount":%d}}`, n, n)
	for i := range p.addresses {
		address := p.addresses[(n+i)%len(p.addresses)]
		if address != "" && p.post(address, id, body) {
			p.mu.Lock()
			p.acked[id] = true
			p.mu.Unlock()
			return
		}
	}
	p.mu.Lock()
	p.open = append(p.open, n)
	p.mu.Unlock()
}

func (p *crashProvider) post(address, id, body string) bool {
	headers, err := p.scheme.Sign(signature.Input{ID: id, Time: time.Now(), Body: []byte(body)}, p.key)
	if err != nil {
		p.t.Error(err)
		return false
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+address+"/hooks", strings.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return false
	}
	for _, h := range headers {
		req.Header.Set(h.Name, h.Value)
	}
	req.GetBody = nil // no attempt that is not counted here
	resp, err := p.client.Do(req)
	if err != nil {
		return false // killed, or not up again
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK
}

// judge compares what was acknowledged with what became of it.
func (p *crashProvider) judge(inbox *Inbox, kills int) {
	p.t.Helper()
	lost, twice := 0, 0
	for id := range p.acked {
		e := became(p.t, inbox, id)
		n, err := strconv.Atoi(strings.TrimPrefix(id, "msg_"))
		if err != nil {
			p.t.Fatal(err)
		}
		pay, err := inbox.Payment(context.Background(), fmt.Sprintf("pay_%d", n))
		if err != nil {
			p.t.Fatal(err)
		}
		// The payment counts its events, so an effect that came twice shows.
		switch {
		case e.Processed == 0 || pay.Events == 0 || pay.State != PaymentSucceeded || pay.Amount != int64(n):
			lost++
			p.t.Errorf("%s was acknowledged and came out as %+v, %+v", id, e, pay)
		case e.Processed > 1 || pay.Events > 1:
			twice++
			p.t.Errorf("%s was processed twice: %+v, %+v", id, e, pay)
		}
	}
	p.t.Logf("%d kills, %d events acknowledged, %d lost, %d processed twice, %d never acknowledged", kills, len(p.acked), lost, twice, len(p.open))
	if want := (kills + 1) * round; len(p.acked)+len(p.open) != want {
		p.t.Errorf("%d events were acknowledged or are open, want %d", len(p.acked)+len(p.open), want)
	}
	if len(p.open) > 0 {
		p.t.Errorf("%d events were refused by receivers that run", len(p.open))
	}
}

func TestAChildTellsWhatBecameOfEvents(t *testing.T) {
	c := startChild(t, child{Path: filepath.Join(t.TempDir(), "inbox.db")})
	p := newCrashProvider(t)
	p.addresses[0] = c.line()
	p.send(7)
	var e Event
	await(t, "it is processed", func() bool {
		resp, err := p.client.Get("http://" + p.addresses[0] + "/_observe/events/" + crashID(7))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&e); err != nil {
			t.Fatal(err)
		}
		return e.Processed == 1
	})
}
