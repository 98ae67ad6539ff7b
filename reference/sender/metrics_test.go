package sender

import (
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scraped reads the sender's metrics by name and labels.
func scraped(t *testing.T, s *Sender) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	s.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	out := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			out[strings.TrimPrefix(name, "webhook_outbox_")] = f
		}
	}
	return out
}

func TestMetricsTellWhatNeedsAPerson(t *testing.T) {
	g := newStage(t, "standard-webhooks", func(o *Options) { o.Policy.Schedule = []time.Duration{0, time.Hour} })
	good, bad := g.endpoint("/good", nil, 200), g.endpoint("/bad", []string{"a.b"}, 500)
	gone := g.endpoint("/gone", []string{"c.d"}, 410)
	if _, err := g.Publish(t.Context(), Event{Type: "a.b", Data: []byte(`1`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Publish(t.Context(), Event{Type: "c.d", Data: []byte(`1`)}); err != nil {
		t.Fatal(err)
	}
	g.passTime(time.Minute)
	check := func(want map[string]float64) {
		t.Helper()
		got := scraped(t, g.Sender)
		for name, v := range want {
			if found, ok := got[name]; !ok || found != v {
				t.Errorf("%s is %v, want %v", name, found, v)
			}
		}
	}
	check(map[string]float64{
		"pending": 2, "oldest_seconds": 60, "overdue_seconds": 0, "failed": 0, "in_flight": 0, "up": 1,
		`endpoints{status="enabled"}`: 2, `endpoints{status="disabled"}`: 1,
		`success_ratio{endpoint="` + good.ID + `"}`: 1, `success_ratio{endpoint="` + bad.ID + `"}`: 0,
		`attempts_total{endpoint="` + good.ID + `",outcome="delivered"}`: 2,
		`attempts_total{endpoint="` + gone.ID + `",outcome="failed"}`:    1,
	})
	g.passTime(2 * time.Hour)
	check(map[string]float64{"pending": 1, "failed": 1})
}

func TestMetricsOfAnEmptyOutboxAreZero(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	got := scraped(t, g.Sender)
	for _, name := range []string{"pending", "oldest_seconds", "overdue_seconds", "failed", "in_flight"} {
		if v, ok := got[name]; !ok || v != 0 {
			t.Errorf("%s: %v, %v", name, v, ok)
		}
	}
}

func TestWhatCanBeToldIsToldWithoutADatabase(t *testing.T) {
	g := newStage(t, "standard-webhooks")
	g.counts.add("ep_1", true)
	g.stop()
	if got := scraped(t, g.Sender); got[`success_ratio{endpoint="ep_1"}`] != 1 {
		t.Errorf("%v", got)
	}
}

func TestCountsOfEndpointsAreBounded(t *testing.T) {
	var c counts
	for i := range maxCounted + 100 {
		c.add(strconv.Itoa(i), i%2 == 0)
	}
	n, other := 0, outcomes{}
	c.each(func(id string, o outcomes) {
		n++
		if id == otherEndpoints {
			other = o
		}
	})
	if n != maxCounted+1 || other != (outcomes{50, 50}) {
		t.Errorf("%d endpoints, %+v others", n, other)
	}
}
