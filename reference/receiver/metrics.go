package receiver

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrapeTimeout is how long counting for the metrics may take, 5 s: half of what
// a scraper waits by default.
const scrapeTimeout = 5 * time.Second

// Metrics serves the inbox's metrics in Prometheus's format. What to watch: the
// age of the oldest waiting message, which shows that processing is stuck, and
// anything on the failed list. The totals are those of this process.
func (b *Inbox) Metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(b))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		// What can be told is told, also while the database does not answer.
		ErrorHandling: promhttp.ContinueOnError,
	})
}

// collector asks the inbox whenever it is asked.
type collector struct {
	inbox                                             *Inbox
	waiting, oldest, failed, up                       *prometheus.Desc
	acknowledged, duplicates, processed, failedEvents *prometheus.Desc
}

func newCollector(b *Inbox) *collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("webhook_inbox_"+name, help, nil, nil)
	}
	return &collector{
		inbox:        b,
		waiting:      desc("waiting", "Messages received and not processed yet."),
		oldest:       desc("oldest_seconds", "Age of the oldest of them."),
		failed:       desc("failed", "Messages on the failed list."),
		up:           desc("up", "Whether the last commit went well."),
		acknowledged: desc("acknowledged_total", "Deliveries stored or known, and so acknowledged."),
		duplicates:   desc("duplicates_total", "Those of them that were copies."),
		processed:    desc("processed_total", "Messages processed."),
		failedEvents: desc("failed_total", "Messages put on the failed list."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.waiting, c.oldest, c.failed, c.up, c.acknowledged, c.duplicates, c.processed, c.failedEvents} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) { out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	count := func(d *prometheus.Desc, v int64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	counts := &c.inbox.counts
	count(c.acknowledged, counts.acknowledged.Load())
	count(c.duplicates, counts.duplicates.Load())
	count(c.processed, counts.processed.Load())
	count(c.failedEvents, counts.failed.Load())
	up := 0.0
	if c.inbox.storing.up() {
		up = 1
	}
	gauge(c.up, up)

	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	s, err := c.inbox.Stats(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(c.waiting, err)
		return
	}
	gauge(c.waiting, float64(s.Waiting))
	gauge(c.oldest, s.Oldest.Seconds())
	gauge(c.failed, float64(s.Failed))
}
