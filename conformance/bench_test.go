package conformance_test

import (
	"testing"
	"time"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/receiver"
)

// BenchmarkReceiverRun measures a whole run without the slow rows against the
// reference in this process, beside the longest of its scenarios, which no
// overlapping can shorten. The goals are a ratio of 1.2 and 3 s; they are
// printed, not asserted: a shared machine decides nothing.
func BenchmarkReceiverRun(b *testing.B) {
	subject := reference(b, standard(b, 15*time.Second))
	var ratio, longest float64
	for b.Loop() {
		r, err := conformance.Run(b.Context(), conformance.Config{
			Receiver: subject, Secrets: []string{current, previous, private}, Bounds: receiver.DefaultBounds(),
		})
		if err != nil {
			b.Fatal(err)
		}
		var most int64
		for _, t := range r.Transcripts {
			most = max(most, t.TookMS)
		}
		longest += float64(most)
		ratio += float64(r.DurationMS) / float64(max(most, 1))
	}
	b.ReportMetric(ratio/float64(b.N), "x-longest-wait")
	b.ReportMetric(longest/float64(b.N), "ms-longest-wait/run")
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/run")
	b.ReportMetric(0, "ns/op") // ms/run says it
}
