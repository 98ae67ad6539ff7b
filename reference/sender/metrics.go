package sender

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// scrapeTimeout is how long counting for the metrics may take, 5 s: half of
	// what a scraper waits by default.
	scrapeTimeout = 5 * time.Second

	// maxCounted is how many endpoints have counts of their own, 10,000: each is
	// two time series. What is beyond them is counted together, as "other".
	maxCounted = 10_000
)

// Stats is how the outbox stands.
type Stats struct {
	Pending int64         // messages that are neither delivered nor failed
	Oldest  time.Duration // since the oldest of them was published
	Overdue time.Duration // since the first attempt was due that has not begun
	Failed  int64         // messages on the failed list
	Enabled int64         // endpoints
	// Disabled are the endpoints that get nothing, whoever disabled them.
	Disabled int64
}

// Stats counts what is in the outbox. It costs an index scan over what is
// pending.
func (s *Sender) Stats(ctx context.Context) (Stats, error) {
	now := s.clock.Now()
	var out Stats
	age := func(at []int64) time.Duration {
		if len(at) == 0 || at[0] == 0 {
			return 0
		}
		return max(0, now.Sub(fromNano(at[0])))
	}
	for _, q := range []struct {
		query string
		take  func([]int64)
	}{
		{`SELECT count(*) FROM messages WHERE status = 'pending' AND finished_at IS NULL`, func(n []int64) { out.Pending = n[0] }},
		{`SELECT coalesce(min(created_at), 0) FROM messages WHERE status = 'pending' AND finished_at IS NULL`, func(n []int64) { out.Oldest = age(n) }},
		{`SELECT next_at FROM endpoints WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1`, func(n []int64) { out.Overdue = age(n) }},
		{`SELECT count(*) FROM messages WHERE status = 'failed'`, func(n []int64) { out.Failed = n[0] }},
		{`SELECT count(*) FROM endpoints WHERE status = 'enabled'`, func(n []int64) { out.Enabled = n[0] }},
		{`SELECT count(*) FROM endpoints WHERE status = 'disabled'`, func(n []int64) { out.Disabled = n[0] }},
	} {
		n, err := column[int64](s.store.query(ctx, q.query))
		if err != nil {
			return Stats{}, fmt.Errorf("counting what is in the outbox: %w", err)
		}
		q.take(n)
	}
	return out, nil
}

// counts are the outcomes of this process's attempts, by endpoint. The zero
// value is ready for use.
type counts struct {
	mu         sync.Mutex
	byEndpoint map[string]*outcomes
}

type outcomes struct{ delivered, failed int64 }

// otherEndpoints stands in the place of an id for endpoints beyond maxCounted.
const otherEndpoints = "other"

func (c *counts) add(endpoint string, delivered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byEndpoint == nil {
		c.byEndpoint = map[string]*outcomes{}
	}
	if c.byEndpoint[endpoint] == nil && len(c.byEndpoint) >= maxCounted {
		endpoint = otherEndpoints
	}
	o := c.byEndpoint[endpoint]
	if o == nil {
		o = new(outcomes)
		c.byEndpoint[endpoint] = o
	}
	if delivered {
		o.delivered++
	} else {
		o.failed++
	}
}

// each calls f for each endpoint that had an attempt.
func (c *counts) each(f func(endpoint string, o outcomes)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, o := range c.byEndpoint {
		f(id, *o)
	}
}

// Metrics serves the outbox's metrics in Prometheus's format. What to watch: how
// long the first attempt is overdue, which shows that sending is stuck; the age
// of the oldest pending message, which grows to days where an endpoint is down;
// anything on the failed list; and the share of attempts that succeed, by
// endpoint. The totals are those of this process.
func (s *Sender) Metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(s))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		// What can be told is told, also while the database does not answer.
		ErrorHandling: promhttp.ContinueOnError,
	})
}

// collector asks the outbox whenever it is asked.
type collector struct {
	sender                                              *Sender
	pending, oldest, overdue, failed, endpoints, flight *prometheus.Desc
	attempts, success, up                               *prometheus.Desc
}

func newCollector(s *Sender) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("webhook_outbox_"+name, help, labels, nil)
	}
	return &collector{
		sender:    s,
		pending:   desc("pending", "Messages neither delivered nor failed."),
		oldest:    desc("oldest_seconds", "Age of the oldest of them."),
		overdue:   desc("overdue_seconds", "How long the first attempt is overdue that has not begun."),
		failed:    desc("failed", "Messages on the failed list."),
		endpoints: desc("endpoints", "Endpoints, by status.", "status"),
		flight:    desc("in_flight", "Attempts under way."),
		attempts:  desc("attempts_total", "Attempts, by endpoint and outcome.", "endpoint", "outcome"),
		success:   desc("success_ratio", "Share of an endpoint's attempts that were answered by 2xx, since the start.", "endpoint"),
		up:        desc("up", "Whether the database took what was last written, and answered what was last read."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.pending, c.oldest, c.overdue, c.failed, c.endpoints, c.flight, c.attempts, c.success, c.up} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	c.sender.counts.each(func(endpoint string, o outcomes) {
		for outcome, n := range map[string]int64{"delivered": o.delivered, "failed": o.failed} {
			out <- prometheus.MustNewConstMetric(c.attempts, prometheus.CounterValue, float64(n), endpoint, outcome)
		}
		gauge(c.success, float64(o.delivered)/float64(o.delivered+o.failed), endpoint)
	})
	c.sender.mu.Lock()
	gauge(c.flight, float64(len(c.sender.running)))
	c.sender.mu.Unlock()
	up := 0.0
	if c.sender.reading.up() && c.sender.settling.up() {
		up = 1
	}
	gauge(c.up, up)

	ctx, cancel := deadline(c.sender.clock, scrapeTimeout)
	defer cancel()
	s, err := c.sender.Stats(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(c.pending, err)
		return
	}
	gauge(c.pending, float64(s.Pending))
	gauge(c.oldest, s.Oldest.Seconds())
	gauge(c.overdue, s.Overdue.Seconds())
	gauge(c.failed, float64(s.Failed))
	gauge(c.endpoints, float64(s.Enabled), EndpointEnabled)
	gauge(c.endpoints, float64(s.Disabled), EndpointDisabled)
}

// errDeadline is the cause of a context that deadline has ended.
var errDeadline = fmt.Errorf("it took longer than it may: %w", context.DeadlineExceeded)

// deadline is a context that ends after d of the sender's clock: context's own
// deadlines are real time.
func deadline(c clock.Clock, d time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	timer := c.AfterFunc(d, func() { cancel(errDeadline) })
	return ctx, func() { timer.Stop(); cancel(nil) }
}
