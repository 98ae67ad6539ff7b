package fakeprovider_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"go/build"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// The benchmarks load a bare server in a process of its own: this binary again,
// told so by bareEnv.
const bareEnv = "WHCONFORM_FAKEPROVIDER_BARE"

func TestMain(m *testing.M) {
	if os.Getenv(bareEnv) != "" {
		beBare()
		return
	}
	os.Exit(m.Run())
}

// beBare serves until stdin ends, and prints its URL. It costs as little as a
// server can, so that what is measured is the client.
func beBare() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerAll(c)
		}
	}()
	fmt.Println("http://" + l.Addr().String() + "/hooks")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// answerAll answers requests with a Content-Length one after another.
func answerAll(c net.Conn) {
	defer c.Close()
	in := bufio.NewReaderSize(c, 16<<10)
	for {
		length := 0
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return
			}
			if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
				break
			}
			if name, value, _ := bytes.Cut(line, []byte(": ")); bytes.EqualFold(name, []byte("content-length")) {
				length, _ = strconv.Atoi(string(value))
			}
		}
		if _, err := in.Discard(length); err != nil {
			return
		}
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return
		}
	}
}

// bare starts the bare server; it ends with the benchmark.
func bare(b *testing.B) (url string) {
	b.Helper()
	binary, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), bareEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

const (
	benchConns = 64
	benchTime  = time.Second
)

// bench is what the clients of a benchmark have in common.
type bench struct {
	provider *fakeprovider.Provider
	key      signature.Key
	url      string
	body     []byte // a webhook of the usual size, 200 B
}

func newBench(b *testing.B) *bench {
	b.Helper()
	contract, err := profile.Load("standard-webhooks")
	if err != nil {
		b.Fatal(err)
	}
	out := &bench{url: bare(b)}
	if out.provider, err = fakeprovider.New(fakeprovider.Config{Profile: contract, Clock: clock.New()}); err != nil {
		b.Fatal(err)
	}
	if out.key, err = out.provider.Scheme().Key("current", secrets["standard-webhooks"]); err != nil {
		b.Fatal(err)
	}
	out.body = []byte(`{"type":"invoice.paid","timestamp":"2026-11-30T12:00:00Z","data":{"id":"in_1","note":"` + strings.Repeat("x", 111) + `"}}`)
	return out
}

// ours loads as fast as it can, signing each, and returns the rate.
func (x *bench) ours(b *testing.B) float64 {
	b.Helper()
	r, err := x.provider.Load(b.Context(), fakeprovider.Target{URL: x.url, Answer: benchTime}, fakeprovider.LoadConfig{
		Rate: fakeprovider.MaxRate, Duration: benchTime / 4, Connections: benchConns, Keys: []signature.Key{x.key},
	})
	if err != nil {
		b.Fatal(err)
	}
	return float64(r.Genuine.Accepted) / r.Sending.Seconds()
}

// request signs a delivery for another client.
func (x *bench) request(b *testing.B) []wire.Header {
	b.Helper()
	headers, err := x.provider.Scheme().Sign(signature.Input{ID: x.provider.NewID(), Time: time.Now(), Body: x.body}, x.key)
	if err != nil {
		b.Fatal(err)
	}
	return append(headers, wire.Header{Name: "Content-Type", Value: "application/json"})
}

// vegeta runs the program with one request over and over, signed once, which
// favours it.
func (x *bench) vegeta(b *testing.B, program string) float64 {
	b.Helper()
	header := map[string][]string{}
	for _, h := range x.request(b) {
		header[h.Name] = []string{h.Value}
	}
	target, err := json.Marshal(map[string]any{"method": "POST", "url": x.url, "header": header, "body": base64.StdEncoding.EncodeToString(x.body)})
	if err != nil {
		b.Fatal(err)
	}
	conns := strconv.Itoa(benchConns)
	attack := exec.Command(program, "attack", "-format=json", "-rate=0", "-duration="+benchTime.String(), "-workers="+conns, "-max-workers="+conns, "-connections="+conns)
	attack.Stdin, attack.Stderr = bytes.NewReader(append(target, '\n')), os.Stderr
	results, err := attack.Output()
	if err != nil {
		b.Fatalf("running vegeta: %v", err)
	}
	tell := exec.Command(program, "report", "-type=json")
	tell.Stdin, tell.Stderr = bytes.NewReader(results), os.Stderr
	text, err := tell.Output()
	if err != nil {
		b.Fatalf("running vegeta: %v", err)
	}
	var report struct {
		Throughput float64 `json:"throughput"`
		Success    float64 `json:"success"`
	}
	if err := json.Unmarshal(text, &report); err != nil || report.Success != 1 {
		b.Fatalf("vegeta reports %v, %s", err, text)
	}
	return report.Throughput
}

// netHTTP is what one would write: a client, a loop on each connection, each
// delivery signed.
func (x *bench) netHTTP(b *testing.B) float64 {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConns: benchConns, MaxIdleConnsPerHost: benchConns}}
	defer client.CloseIdleConnections()
	began := time.Now()
	var answers atomic.Int64
	var loops sync.WaitGroup
	for range benchConns {
		loops.Go(func() {
			for time.Since(began) < benchTime {
				r, err := http.NewRequest(http.MethodPost, x.url, bytes.NewReader(x.body))
				if err != nil {
					b.Error(err)
					return
				}
				for _, h := range x.request(b) {
					r.Header.Set(h.Name, h.Value)
				}
				response, err := client.Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				answers.Add(1)
			}
		})
	}
	loops.Wait()
	return float64(answers.Load()) / time.Since(began).Seconds()
}

// compare measures both in turns, ours first and last of four, so that what
// else the machine does meets both alike. "ratio" is the median of those of the
// turns.
func (x *bench) compare(b *testing.B, name string, theirs func() float64) {
	b.Helper()
	x.ours(b) // to warm up
	theirs()
	var ratios []float64
	var mine, others, turns float64
	for b.Loop() {
		for range 3 {
			a1, p1, p2, a2 := x.ours(b), theirs(), theirs(), x.ours(b)
			ratios = append(ratios, (a1+a2)/(p1+p2))
			mine, others, turns = mine+a1+a2, others+p1+p2, turns+2
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(mine/turns, "req/s")
	b.ReportMetric(others/turns, name+"-req/s")
}

// BenchmarkLoadBesideVegeta loads a bare server by both in turns. Ours signs
// each delivery, vegeta sends one that was signed before. "ratio" is the first
// one's answers a second by the second one's.
func BenchmarkLoadBesideVegeta(b *testing.B) {
	program, err := exec.LookPath("vegeta")
	if err != nil {
		program = filepath.Join(build.Default.GOPATH, "bin", "vegeta")
		if _, err := os.Stat(program); err != nil {
			b.Skip("vegeta is not installed (go install github.com/tsenart/vegeta/v12@latest)")
		}
	}
	x := newBench(b)
	x.compare(b, "vegeta", func() float64 { return x.vegeta(b, program) })
}

// BenchmarkLoadBesideNetHTTP does it with a loop around net/http's client in
// vegeta's place, which signs each delivery too.
func BenchmarkLoadBesideNetHTTP(b *testing.B) {
	x := newBench(b)
	x.compare(b, "net/http", func() float64 { return x.netHTTP(b) })
}
