package sender

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
)

// benchEndpoints is how many endpoints the benchmarks send to: as many as
// attempts are under way at one time.
const benchEndpoints = 64

// at200 is a transport whose every attempt succeeds at once.
type at200 struct{ delivered func() }

func (a at200) Attempt(context.Context, Request) Result {
	a.delivered()
	return Result{Status: http.StatusOK}
}

// countdown tells when a number of attempts have been made.
type countdown struct {
	mu   sync.Mutex
	left int
	zero chan struct{}
}

func (c *countdown) start(n int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.zero = n, make(chan struct{})
	return c.zero
}

func (c *countdown) one() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		close(c.zero)
	}
}

// outboxWith opens an outbox on the real clock in which pending messages wait
// for retries, of a thousand endpoints, and lets it run.
func outboxWith(b *testing.B, pending int, url string, change func(*Options)) *Sender {
	b.Helper()
	o := Options{Profile: contract(b, "standard-webhooks"), Clock: clock.New(), Guard: newGuard(b, "127.0.0.1")}
	change(&o)
	s, err := Open(context.Background(), filepath.Join(b.TempDir(), "sender.db"), o)
	if err != nil {
		b.Fatal(err)
	}
	fill(b, s, pending)
	for i := range benchEndpoints {
		_, _, err := s.CreateEndpoint(context.Background(), EndpointSpec{URL: fmt.Sprintf("%s/%d", url, i), EventTypes: []string{benchType(i)}})
		if err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-done
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

func benchType(i int) string { return fmt.Sprintf("bench.e%d", i%benchEndpoints) }

// fill puts messages into the outbox that are due tomorrow.
func fill(b *testing.B, s *Sender, pending int) {
	b.Helper()
	const endpoints = 1000
	tomorrow := time.Now().Add(24 * time.Hour).UnixNano()
	exec := func(query string, args ...any) {
		err := s.store.update(context.Background(), func(ctx context.Context, tx Tx) error {
			_, err := tx.ExecContext(ctx, query, args...)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	exec(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < $1 - 1)
		INSERT INTO endpoints (id, url, api_version, status, created_at, next_at) SELECT 'ep_' || i, 'https://example.com', '', 'enabled', 0, $2 + i FROM n`, endpoints, tomorrow)
	for first := 0; first < pending; first += 20_000 {
		n := min(20_000, pending-first)
		exec(`WITH RECURSIVE n (i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM n WHERE i < $1 + $2 - 1)
			INSERT INTO payloads (id, body) SELECT i + 1, $3 FROM n`, first, n, []byte(`{"type":"order.shipped","timestamp":"2026-01-02T15:04:05Z","data":{"n":1}}`))
		exec(`WITH RECURSIVE n (i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM n WHERE i < $1 + $2 - 1)
			INSERT INTO events (id, type, happened_at, created_at) SELECT i + 1, 'order.shipped', 0, 0 FROM n`, first, n)
		exec(`WITH RECURSIVE n (i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM n WHERE i < $1 + $2 - 1)
			INSERT INTO messages (id, event_id, payload_id, endpoint_id, type, status, created_at, attempts, due_at, queued_at)
			SELECT printf('msg_0%015x-', i) || lower(hex(randomblob(8))), i + 1, i + 1, 'ep_' || (i % $4), 'order.shipped', 'pending', 0, 3, $3 + i, $3 + i FROM n`,
			first, n, tomorrow, endpoints)
	}
}

// publishAll publishes n events from 64 goroutines.
func publishAll(b *testing.B, s *Sender, n int) {
	var all sync.WaitGroup
	for worker := range 64 {
		all.Go(func() {
			for i := worker; i < n; i += 64 {
				if ids, err := s.Publish(context.Background(), Event{Type: benchType(i), Data: []byte(`{"n":1}`)}); err != nil || len(ids) != 1 {
					b.Errorf("publishing: %v, %v", ids, err)
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkOutboxBySize measures publishing and delivering, over a transport that
// costs nothing, with a thousand messages that wait for retries and with a
// million, in turns. x-small is the rate beside the million as a share of that
// beside the thousand; 0.8 is the goal.
func BenchmarkOutboxBySize(b *testing.B) {
	small, large := sized(b, 1_000), sized(b, 1_000_000)
	b.Run("publishing and delivering", func(b *testing.B) {
		var ofSmall, ofLarge time.Duration
		const turn = 500
		for i := 0; i < b.N; i += turn {
			n := min(turn, b.N-i)
			ofSmall += small(b, n)
			ofLarge += large(b, n)
		}
		b.ReportMetric(ofSmall.Seconds()/ofLarge.Seconds(), "x-small")
		b.ReportMetric(float64(b.N)/ofLarge.Seconds(), "messages/s")
	})
}

// sized is an outbox in which messages wait, as the time that n others take.
func sized(b *testing.B, pending int) func(b *testing.B, n int) time.Duration {
	var count countdown
	s := outboxWith(b, pending, "http://127.0.0.1:9", func(o *Options) { o.Transport = at200{count.one} })
	return func(b *testing.B, n int) time.Duration {
		began := time.Now()
		done := count.start(n)
		publishAll(b, s, n)
		<-done
		return time.Since(began)
	}
}

// BenchmarkDeliveries measures the whole way of a message, from publishing over a
// commit to the disk to the answer of a real HTTP server, beside a plain
// net/http client that sends the same bytes: in one loop, and in as many loops as
// attempts are under way. x-loop is the number to look at; 0.4 is the goal.
func BenchmarkDeliveries(b *testing.B) {
	var count countdown
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		count.one()
	}))
	b.Cleanup(server.Close)
	s := outboxWith(b, 0, server.URL, func(*Options) {})
	var ofSender, ofLoop, ofLoops time.Duration
	b.ResetTimer()
	const turn = 1000
	for i := 0; i < b.N; i += turn {
		n := min(turn, b.N-i)
		began, done := time.Now(), count.start(n)
		publishAll(b, s, n)
		<-done
		ofSender += time.Since(began)
		ofLoop += clients(b, &count, server.URL, n, 1)
		ofLoops += clients(b, &count, server.URL, n, benchEndpoints)
	}
	b.StopTimer()
	b.ReportMetric(ofLoop.Seconds()/ofSender.Seconds(), "x-loop")
	b.ReportMetric(ofLoops.Seconds()/ofSender.Seconds(), "x-64-loops")
	b.ReportMetric(float64(b.N)/ofSender.Seconds(), "deliveries/s")
}

// clients sends n requests by plain clients.
func clients(b *testing.B, count *countdown, url string, n, loops int) time.Duration {
	body := []byte(`{"type":"bench.e1","timestamp":"2026-01-02T15:04:05Z","data":{"n":1}}`)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: loops}}
	defer client.CloseIdleConnections()
	began, done := time.Now(), count.start(n)
	var all sync.WaitGroup
	for worker := range loops {
		all.Go(func() {
			for i := worker; i < n; i += loops {
				resp, err := client.Post(url, "application/json", bytes.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	all.Wait()
	<-done
	return time.Since(began)
}
