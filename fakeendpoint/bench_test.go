package fakeendpoint_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/signature"
)

// The benchmarks load servers in processes of their own: this binary again,
// told by serverEnv which one to be. One that is told "clients" opens
// connections and holds them.
const serverEnv = "WHCONFORM_FAKEENDPOINT_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(serverEnv); role {
	case "":
		os.Exit(m.Run())
	case "clients":
		holdConnections()
	default:
		beServer(role)
	}
}

// beServer serves until stdin ends, and prints its URL.
func beServer(role string) {
	url := ""
	switch role {
	case "fake endpoint":
		scheme, err := signature.New(signature.StandardWebhooks())
		exitOn(err)
		key, err := scheme.Key("current", secret)
		exitOn(err)
		s, err := fakeendpoint.Start(fakeendpoint.Config{Clock: clock.New()})
		exitOn(err)
		always, err := fakeendpoint.Always(200)
		exitOn(err)
		url = s.Path("hook", always, key).URL()
	case "net/http":
		// What stands in everybody's test: read the body, answer 200.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		exitOn(err)
		url = "http://" + l.Addr().String() + "/hook"
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusOK)
		})}
		go func() { exitOn(server.Serve(l)) }()
	}
	fmt.Println(url)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child is a server in a process of its own.
type child struct {
	url string
	pid int
	in  io.WriteCloser
	out *bufio.Reader
}

// start runs this binary in a role; it ends with the test.
func start(t testing.TB, role string) *child {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.run=^$")
	cmd.Env = append(os.Environ(), serverEnv+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{pid: cmd.Process.Pid, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if role != "clients" {
		c.url = c.line(t)
	}
	return c
}

func (c *child) line(t testing.TB) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatalf("reading from the child: %v", err)
	}
	return strings.TrimSpace(line)
}

// rss is the largest resident size that a process has had, in MiB, where the
// system tells.
func (c *child) rss() float64 {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.pid), "status"))
	if err != nil {
		return 0
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0
	}
	kib, _ := strconv.ParseFloat(string(found[1]), 64)
	return kib / 1024
}

const (
	loadConns = 64
	loadTime  = 500 * time.Millisecond
)

// body is a webhook of the usual size, 200 B.
var body = `{"type":"invoice.paid","timestamp":"2026-11-30T12:00:00Z","data":{"id":"in_1","amount":4200,"currency":"EUR","customer":"cus_1","note":"` + strings.Repeat("x", 61) + `"}}`

// signedRequest is what the load consists of, signed now.
func signedRequest(t testing.TB) string {
	t.Helper()
	scheme := standard(t)
	key, err := scheme.Key("current", secret)
	if err != nil {
		t.Fatal(err)
	}
	headers, err := scheme.Sign(signature.Input{ID: "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", Time: time.Now(), Body: []byte(body)}, key)
	if err != nil {
		t.Fatal(err)
	}
	out := "POST /hook HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nContent-Type: application/json\r\n"
	for _, h := range headers {
		out += h.Name + ": " + h.Value + "\r\n"
	}
	return out + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// load sends the request over and over by many connections for a time, and
// returns the answers a second.
func load(t testing.TB, url, request string, d time.Duration) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var answers atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range loadConns {
		wg.Go(func() {
			c, err := net.Dial("tcp", hostPort(url))
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			out, in := []byte(request), make([]byte, 4096)
			for n := 0; ctx.Err() == nil; n++ {
				if _, err := c.Write(out); err != nil {
					t.Error(err)
					return
				}
				got, err := c.Read(in)
				if err != nil || !strings.HasPrefix(string(in[:got]), "HTTP/1.1 200 ") || !strings.HasSuffix(string(in[:got]), "\r\n\r\n") {
					t.Errorf("answer %d is %q, %v", n, in[:got], err)
					return
				}
				answers.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(answers.Load()) / time.Since(began).Seconds()
}

// BenchmarkBesideNetHTTP loads the fake endpoint, which verifies and records
// every request, and a plain net/http handler, in turns. "ratio" is the first
// one's answers a second by the second one's. The client is this process: it
// takes as much of the machine from either.
func BenchmarkBesideNetHTTP(b *testing.B) {
	ours, plain := start(b, "fake endpoint"), start(b, "net/http")
	request := signedRequest(b)
	compare(b, ours, plain, func(url string) float64 { return load(b, url, request, loadTime) })
}

// compare measures both in turns, ours first and last of four, so that what
// else the machine does meets both alike. The ratio is the median of those of
// the turns.
func compare(b *testing.B, ours, plain *child, rate func(url string) float64) {
	b.Helper()
	rate(ours.url) // to warm up
	rate(plain.url)
	var ratios []float64
	var mine, theirs, turns float64
	for b.Loop() {
		for range 3 {
			a1, p1, p2, a2 := rate(ours.url), rate(plain.url), rate(plain.url), rate(ours.url)
			ratios = append(ratios, (a1+a2)/(p1+p2))
			mine, theirs, turns = mine+a1+a2, theirs+p1+p2, turns+2
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(mine/turns, "req/s")
	b.ReportMetric(theirs/turns, "net/http-req/s")
	b.ReportMetric(ours.rss(), "RSS-MiB")
	b.ReportMetric(plain.rss(), "net/http-RSS-MiB")
}

// BenchmarkBesideNetHTTPByWrk is the same by wrk, a client that costs less.
func BenchmarkBesideNetHTTPByWrk(b *testing.B) {
	wrk, err := exec.LookPath("wrk")
	if err != nil {
		b.Skip("wrk is not installed (Debian: apt-get install wrk)")
	}
	ours, plain := start(b, "fake endpoint"), start(b, "net/http")
	lua := filepath.Join(b.TempDir(), "load.lua")
	head, payload, _ := strings.Cut(signedRequest(b), "\r\n\r\n")
	text := "wrk.method = \"POST\"\nwrk.body = [[" + payload + "]]\n"
	for _, line := range strings.Split(head, "\r\n")[2:] {
		if name, value, _ := strings.Cut(line, ": "); name != "Content-Length" {
			text += fmt.Sprintf("wrk.headers[%q] = %q\n", name, value)
		}
	}
	if err := os.WriteFile(lua, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	run := func(url string) float64 {
		out, err := exec.Command(wrk, "-t1", "-c"+strconv.Itoa(loadConns), "-d1s", "-s", lua, url).CombinedOutput()
		if err != nil || strings.Contains(string(out), "Non-2xx") || strings.Contains(string(out), "Socket errors") {
			b.Fatalf("%v\n%s", err, out)
		}
		found := regexp.MustCompile(`Requests/sec:\s+([\d.]+)`).FindSubmatch(out)
		if found == nil {
			b.Fatalf("%s", out)
		}
		rate, _ := strconv.ParseFloat(string(found[1]), 64)
		return rate
	}
	compare(b, ours, plain, run)
}

// holdConnections reads a URL and a number, opens that many connections with a
// request on each, says so, and keeps them until stdin ends.
func holdConnections() {
	in := bufio.NewReader(os.Stdin)
	var url string
	var n int
	_, err := fmt.Fscanln(in, &url, &n)
	exitOn(err)
	request := "POST /held HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	conns := make([]net.Conn, n)
	for i := range conns {
		conns[i], err = net.Dial("tcp", hostPort(url))
		exitOn(err)
		_, err = io.WriteString(conns[i], request)
		exitOn(err)
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, in)
	os.Exit(0)
}
