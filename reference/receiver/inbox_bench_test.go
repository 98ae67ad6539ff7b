package receiver

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/signature"
)

// BenchmarkDurableReceiver measures the whole way of a delivery, verification
// and a commit to the disk before the 200, on 64 loopback connections, beside a
// plain net/http handler. x-plain is the number to look at; 0.5 is the goal.
func BenchmarkDurableReceiver(b *testing.B) {
	b.Run("storing", func(b *testing.B) { benchmarkDurable(b, false) })
	b.Run("storing and processing", func(b *testing.B) { benchmarkDurable(b, true) })
}

func benchmarkDurable(b *testing.B, process bool) {
	inbox := openFile(b, filepath.Join(b.TempDir(), "inbox.db"), Options{Clock: clock.New()})
	if process {
		run(b, inbox)
	}
	scheme, err := signature.New(signature.StandardWebhooks())
	if err != nil {
		b.Fatal(err)
	}
	key := keyOf(b, scheme, "current", 1)
	r, err := New(Config{Profile: standard(), Keys: []signature.Key{key}, Clock: clock.New(), Store: inbox})
	if err != nil {
		b.Fatal(err)
	}
	requests := make([][]byte, b.N)
	for i := range requests {
		headers, err := scheme.Sign(signature.Input{ID: fmt.Sprintf("msg_%08d", i), Time: time.Now(), Body: []byte(event)}, key)
		if err != nil {
			b.Fatal(err)
		}
		requests[i] = []byte(head("POST", headers, "Content-Length: "+strconv.Itoa(len(event))) + "\r\n" + event)
	}
	besidePlain(b, r, requests)
}

// BenchmarkInboxBySize measures adding from 64 goroutines at a time to an inbox
// that remembers a thousand ids and to one that remembers a million, in turns.
// x-small is the rate of the large one as a share of the small one's. Ids that
// begin with the time, as UUIDv7 do, land at the end of the index; random ones
// land anywhere, and each costs a page of the index in the log.
func BenchmarkInboxBySize(b *testing.B) {
	small, large := filled(b, 1_000), filled(b, 1_000_000)
	b.Run("ids in order of time", func(b *testing.B) {
		benchmarkSizes(b, small, large, func(i int) string { return fmt.Sprintf("msg_z%d_%09d", b.N, i) })
	})
	b.Run("random ids", func(b *testing.B) {
		benchmarkSizes(b, small, large, func(i int) string { return randomID(b.N<<32 + i) })
	})
}

func benchmarkSizes(b *testing.B, small, large *Inbox, id func(int) string) {
	var ofSmall, ofLarge time.Duration
	b.ResetTimer()
	const turn = 1000
	for i := 0; i < b.N; i += turn {
		n := min(turn, b.N-i)
		ofSmall += addMany(b, small, i, n, id)
		ofLarge += addMany(b, large, i, n, id)
	}
	b.StopTimer()
	b.ReportMetric(ofSmall.Seconds()/ofLarge.Seconds(), "x-small")
	b.ReportMetric(float64(b.N)/ofLarge.Seconds(), "adds/s")
}

// filled is an inbox with n processed messages in it.
func filled(b *testing.B, n int) *Inbox {
	b.Helper()
	inbox := openFile(b, filepath.Join(b.TempDir(), "inbox.db"), Options{Clock: clock.New()})
	for rest := n; rest > 0; rest -= 10_000 {
		err := inbox.db.update(context.Background(), func(ctx context.Context, tx Tx) error {
			_, err := tx.ExecContext(ctx, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
				INSERT INTO messages (id, type, body, key_label, status, received_at, due_at, finished_at)
				SELECT 'msg_' || lower(hex(randomblob(16))), '', $2, 'current', 'processed', $3 + i, $3, $3 FROM n`,
				min(rest, 10_000), []byte(event), time.Now().UnixMicro())
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return inbox
}

// addMany adds n messages, numbered from first, from 64 goroutines at a time.
func addMany(b *testing.B, inbox *Inbox, first, n int, id func(int) string) time.Duration {
	b.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for worker := range connections {
		all.Go(func() {
			for i := worker; i < n; i += connections {
				m := Message{ID: id(first + i), Body: []byte(event), ReceivedAt: time.Now()}
				if added, err := inbox.Add(context.Background(), m); err != nil || !added {
					b.Errorf("adding: %v, %v", added, err)
				}
			}
		})
	}
	all.Wait()
	return time.Since(began)
}
