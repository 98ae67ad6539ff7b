package sender

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
)

const (
	// killsVariable is how often the crash test kills a sender; a few times by
	// default, hundreds of times where there is time.
	killsVariable = "WHCONFORM_KILLS"

	// seedVariable repeats a run of the crash test.
	seedVariable = "WHCONFORM_SEED"
)

func kills(t *testing.T) int {
	text := os.Getenv(killsVariable)
	if text == "" {
		return 3
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number of kills", killsVariable, text)
	}
	return n
}

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

// newOutbox makes an outbox on the real clock, from which children send; the
// sender returned is not run.
func newOutbox(t testing.TB) *stage {
	t.Helper()
	p := contract(t, "standard-webhooks")
	scheme, err := p.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	g := &stage{t: t, peer: newPeer(t, scheme, time.Now), path: filepath.Join(t.TempDir(), "sender.db")}
	g.Sender, err = Open(context.Background(), g.path, Options{Profile: p, Clock: clock.New(), Guard: newGuard(t, "127.0.0.1"), Policy: crashPolicy()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// got waits until a path got a number of requests.
func (g *stage) got(path string, n int) []call {
	g.t.Helper()
	await(g.t, fmt.Sprintf("%s got %d requests", path, n), func() bool { return len(g.peer.at(path)) >= n })
	return g.peer.at(path)
}

// TestAKillLosesNothing kills a sender at the three moments at which a queue in
// memory, or a claim that is never released, would lose a message.
func TestAKillLosesNothing(t *testing.T) {
	t.Run("after publishing", func(t *testing.T) {
		g := newOutbox(t)
		g.endpoint("/e", nil, 200)
		p := startSender(t, g.path)
		id := p.publish("a.b")
		p.kill()
		startSender(t, g.path)
		if calls := g.got("/e", 1); calls[0].id != id || !same(calls) {
			t.Errorf("got %+v, want %s", calls, id)
		}
	})
	t.Run("during an attempt, and it is made again at once", func(t *testing.T) {
		g := newOutbox(t)
		g.endpoint("/e", nil, hangs, 200)
		p := startSender(t, g.path)
		p.publish("a.b")
		g.got("/e", 1)
		p.kill()
		await(t, "the peer has noticed", func() bool { return g.peer.holding() == 0 })
		began := time.Now()
		startSender(t, g.path)
		calls := g.got("/e", 2)
		if waited := time.Since(began); !same(calls) || waited > 10*time.Second {
			t.Errorf("got %+v after %v, want the same at once, and not when the lease of a minute ends", calls, waited)
		}
		await(t, "it is delivered", func() bool { return g.message(calls[0].id).Status == MessageDelivered })
		if lines := g.lines(calls[0].id); len(lines) != 2 || lines[0].Error != interrupted || lines[1].Number != 1 {
			t.Errorf("the log is %+v", lines)
		}
	})
	t.Run("while a retry waits, which comes once", func(t *testing.T) {
		g := newOutbox(t)
		g.endpoint("/e", nil, 500, 200)
		p := startSender(t, g.path)
		p.publish("a.b")
		id := g.got("/e", 1)[0].id
		await(t, "the failure is written down", func() bool { return len(g.lines(id)) == 1 })
		p.kill()
		startSender(t, g.path)
		await(t, "it is delivered", func() bool { return g.message(id).Status == MessageDelivered })
		if calls := g.peer.at("/e"); len(calls) != 2 || !same(calls) {
			t.Errorf("got %+v, want the retry once", calls)
		}
	})
	t.Run("another process takes over what one that died was sending", func(t *testing.T) {
		g := newOutbox(t)
		g.endpoint("/e", nil, hangs, 200)
		p := startSender(t, g.path)
		p.publish("a.b")
		g.got("/e", 1)
		startSender(t, g.path)
		p.kill()
		if calls := g.got("/e", 2); !same(calls) {
			t.Errorf("got %+v", calls)
		}
	})
}

// TestWhatWasPublishedSurvivesKills kills one of two senders on one outbox again
// and again while both publish and send. In the end every message whose
// publishing was confirmed must have been delivered.
func TestWhatWasPublishedSurvivesKills(t *testing.T) {
	random := rand.New(rand.NewPCG(seed(t), 0))
	g := newOutbox(t)
	g.peer.killed = true
	const endpoints, round = 8, 60
	for i := range endpoints {
		steps := []int{200, 500, 200, 503, 200} // then 200
		g.endpoint(fmt.Sprintf("/%d", i), []string{fmt.Sprintf("to.e%d", i)}, steps...)
	}
	senders := []*process{startSender(t, g.path), startSender(t, g.path)}
	var mu sync.Mutex
	confirmed := map[string]bool{}
	for n := range kills(t) + 1 {
		var all sync.WaitGroup
		killAt := random.IntN(round)
		for i, p := range senders {
			all.Go(func() {
				for j := range round {
					if i == n%2 && j == killAt && n < kills(t) {
						p.kill()
						return
					}
					if id := p.publish(fmt.Sprintf("to.e%d", (i*round+j)%endpoints)); id != "" {
						mu.Lock()
						confirmed[id] = true
						mu.Unlock()
					}
				}
			})
		}
		all.Wait()
		if senders[n%2].dead {
			senders[n%2] = startSender(t, g.path)
		}
	}
	for id := range confirmed {
		await(t, id+" is delivered", func() bool { return g.message(id).Status == MessageDelivered })
	}
	arrived := map[string]bool{}
	for i := range endpoints {
		for _, c := range g.peer.at(fmt.Sprintf("/%d", i)) {
			arrived[c.id] = true
		}
	}
	for id := range confirmed {
		if !arrived[id] {
			t.Errorf("%s was confirmed and never arrived", id)
		}
	}
	t.Logf("%d kills, %d messages confirmed, %d arrived", kills(t), len(confirmed), len(arrived))
}

// TestTwoProcessesNeverSendOneMessageAtOneTime lets two senders send from one
// outbox: the peer tells of two requests for one message that overlap.
func TestTwoProcessesNeverSendOneMessageAtOneTime(t *testing.T) {
	g := newOutbox(t)
	g.peer.slow = 3 * time.Millisecond
	const endpoints, n = 6, 25
	var ids []string
	for i := range endpoints {
		g.endpoint(fmt.Sprintf("/%d", i), []string{fmt.Sprintf("to.e%d", i)}, 500, 200)
	}
	for i := range endpoints * n {
		ids = append(ids, g.publish(fmt.Sprintf("to.e%d", i%endpoints)))
	}
	startSender(t, g.path)
	startSender(t, g.path)
	for _, id := range ids {
		await(t, id+" is delivered", func() bool { return g.message(id).Status == MessageDelivered })
	}
	total := 0
	for i := range endpoints {
		total += len(g.peer.at(fmt.Sprintf("/%d", i)))
	}
	if want := endpoints * (n + 1); total != want {
		t.Errorf("%d requests, want %d: one a message, and a retry an endpoint", total, want)
	}
}

func TestAMigrationThatIsKilledHalfWayIsDoneAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sender.db")
	p := startChild(t, child{Path: path, Migrate: true})
	_ = p.cmd.Wait()
	p.dead = true
	if status, ok := p.cmd.ProcessState.Sys().(interface{ Signaled() bool }); !ok || !status.Signaled() {
		t.Fatalf("the process was not killed: %v", p.cmd.ProcessState)
	}
	s, err := Open(context.Background(), path, Options{Profile: contract(t, "standard-webhooks"), Clock: clock.New()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
