package fakeprovider

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// LoadSchema names the JSON form of a [LoadResult]. It changes when a reader of
// the old form would misread the new one; members may be added without a change.
const LoadSchema = "whconform-load/1"

type loadJSON struct {
	Schema      string  `json:"schema"`
	Rate        float64 `json:"rate"`
	Achieved    float64 `json:"achievedRate"`
	Duration    float64 `json:"durationSeconds"`
	Sending     float64 `json:"sendingSeconds"`
	Elapsed     float64 `json:"elapsedSeconds"`
	Connections int     `json:"connections"`
	Seed        uint64  `json:"seed"`
	Due         int64   `json:"due"`
	Sent        int64   `json:"sent"`
	Events      int64   `json:"events"`
	Dialed      int64   `json:"dialed"`
	Resent      int64   `json:"resent"`
	FirstFault  string  `json:"firstFault,omitempty"`

	Genuine    LoadCount `json:"genuine"`
	Duplicates LoadCount `json:"duplicates"`
	Forged     LoadCount `json:"forged"`

	Latency       *Distribution `json:"latency"`
	ForgedLatency *Distribution `json:"forgedLatency"`
	Waited        *Distribution `json:"waited"`
}

// MarshalJSON writes rates in deliveries a second, times in seconds, and
// distributions in microseconds. There are no secrets in it.
func (r *LoadResult) MarshalJSON() ([]byte, error) {
	return json.Marshal(loadJSON{
		Schema: LoadSchema, Rate: r.Rate, Achieved: r.AchievedRate(),
		Duration: r.Duration.Seconds(), Sending: r.Sending.Seconds(), Elapsed: r.Elapsed.Seconds(),
		Connections: r.Connections, Seed: r.Seed, Due: r.Due, Sent: r.Sent, Events: r.Events, Dialed: r.Dialed, Resent: r.Resent,
		FirstFault: r.FirstFault, Genuine: r.Genuine, Duplicates: r.Duplicates, Forged: r.Forged,
		Latency: r.Latency, ForgedLatency: r.ForgedLatency, Waited: r.Waited,
	})
}

// WriteLoad writes a result for a terminal:
//
//	5000 of 5000 deliveries sent in 10.0 s: 500.0 a second, as asked for; 12 connections
//	genuine      4750  2500 events: 200 OK 4750
//	forged        250  401 Unauthorized 250
//	latency      p50 0.8 ms  p90 1.6 ms  p99 5.5 ms  p99.9 11 ms  max 12 ms
//
// An error is w's.
func WriteLoad(w io.Writer, r *LoadResult) error {
	var out strings.Builder
	achieved, asked := r.AchievedRate(), "as asked for"
	if achieved < 0.99*r.Rate || achieved > 1.01*r.Rate {
		asked = fmt.Sprintf("not the %s asked for", number(r.Rate))
	}
	fmt.Fprintf(&out, "%d of %d deliveries sent in %s: %s a second, %s; %s\n", r.Sent, r.Due, spanText(r.Sending), number(achieved), asked, counted(r.Dialed, "connection"))
	writeCount(&out, "genuine", r.Genuine, counted(r.Events, "event")+": ")
	writeCount(&out, "duplicates", r.Duplicates, "")
	writeCount(&out, "forged", r.Forged, "")
	writeDistribution(&out, "latency", r.Latency)
	writeDistribution(&out, "of forged", r.ForgedLatency)
	writeDistribution(&out, "waited", r.Waited)
	if r.Resent > 0 {
		fmt.Fprintf(&out, "%d were sent once more, on a new connection: the receiver had closed the old one\n", r.Resent)
	}
	if r.FirstFault != "" {
		out.WriteString("first fault: " + wire.Line(r.FirstFault) + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// writeCount writes a line about deliveries of one kind, if there are any.
func writeCount(out *strings.Builder, name string, c LoadCount, before string) {
	if c.Sent+c.Unsent == 0 {
		return
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(c.Statuses)) {
		text := strconv.Itoa(status)
		if phrase := http.StatusText(status); phrase != "" {
			text += " " + phrase
		}
		parts = append(parts, fmt.Sprintf("%s %d", text, c.Statuses[status]))
	}
	for _, fault := range slices.Sorted(maps.Keys(c.Faults)) {
		parts = append(parts, fmt.Sprintf("%s %d", fault, c.Faults[fault]))
	}
	if c.Unsent > 0 {
		parts = append(parts, fmt.Sprintf("never sent (all connections were taken) %d", c.Unsent))
	}
	if c.Cancelled > 0 {
		parts = append(parts, fmt.Sprintf("cancelled %d", c.Cancelled))
	}
	fmt.Fprintf(out, "%-11s %5d  %s%s\n", name, c.Sent, before, strings.Join(parts, ", "))
}

// writeDistribution writes a line of percentiles, if there is anything.
func writeDistribution(out *strings.Builder, name string, d *Distribution) {
	if d == nil || d.Count() == 0 {
		return
	}
	fmt.Fprintf(out, "%-11s ", name)
	for _, p := range []float64{50, 90, 99, 99.9} {
		fmt.Fprintf(out, " p%v %s ", p, spanText(d.Percentile(p)))
	}
	fmt.Fprintf(out, " max %s\n", spanText(d.Max()))
}

// spanText is a duration with two digits or three that say something.
func spanText(d time.Duration) string {
	switch ms := float64(d) / float64(time.Millisecond); {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// number is a rate.
func number(v float64) string {
	if v < 10 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// counted is a number with its noun.
func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
