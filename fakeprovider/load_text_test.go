package fakeprovider

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// loaded is a result with something of everything.
func loaded() *LoadResult {
	r := &LoadResult{
		Rate: 10, Duration: 10 * time.Second, Sending: 12 * time.Second, Elapsed: 12500 * time.Millisecond, Connections: 4, Seed: 7,
		Due: 100, Sent: 95, Events: 30, Dialed: 4, Resent: 2, FirstFault: "reading the answer: \x1b[31mred",
		Genuine:    LoadCount{Sent: 60, Accepted: 50, Other: 6, Failed: 4, Unsent: 5, Statuses: map[int]int64{503: 6, 200: 50}, Faults: map[string]int64{wire.FaultTimeout: 3, wire.FaultNotHTTP: 1}},
		Duplicates: LoadCount{Sent: 20, Accepted: 20, Statuses: map[int]int64{204: 20}},
		Forged:     LoadCount{Sent: 15, Refused: 14, Cancelled: 1, Statuses: map[int]int64{401: 13, 499: 1}},
		Latency:    &Distribution{}, ForgedLatency: &Distribution{}, Waited: &Distribution{},
	}
	for ms := range 100 {
		r.Latency.add(time.Duration(ms*ms) * 100 * time.Microsecond)
		r.Waited.add(time.Duration(ms) * 7 * time.Microsecond)
	}
	r.Latency.add(75 * time.Second)
	return r
}

func TestAResultReadsWell(t *testing.T) {
	const want = `95 of 100 deliveries sent in 12.0 s: 7.92 a second, not the 10.0 asked for; 4 connections
genuine        60  30 events: 200 OK 50, 503 Service Unavailable 6, not-http 1, timeout 3, never sent (all connections were taken) 5
duplicates     20  204 No Content 20
forged         15  401 Unauthorized 13, 499 1, cancelled 1
latency      p50 251 ms  p90 811 ms  p99 983 ms  p99.9 1 min 15 s  max 1 min 15 s
waited       p50 343 µs  p90 623 µs  p99 687 µs  p99.9 693 µs  max 693 µs
2 were sent once more, on a new connection: the receiver had closed the old one
first fault: reading the answer: \x1b[31mred
`
	var out strings.Builder
	if err := WriteLoad(&out, loaded()); err != nil || out.String() != want {
		t.Errorf("%v\n%swant\n%s", err, out.String(), want)
	}
	if err := WriteLoad(full{}, loaded()); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestAResultAsData(t *testing.T) {
	text, err := json.Marshal(loaded())
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Schema   string
		Achieved float64 `json:"achievedRate"`
		Genuine  struct {
			Statuses map[string]int64
			Unsent   int64
		}
		Latency map[string]int64
	}
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if back.Schema != LoadSchema || back.Genuine.Statuses["503"] != 6 || back.Genuine.Unsent != 5 || back.Latency["count"] != 101 || back.Latency["maxMicros"] != 75_000_000 || back.Achieved < 7.9 {
		t.Errorf("%s is read as %+v", text, back)
	}
}
