//go:build unix

package fakeendpoint_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/fakeendpoint"
)

// peersEnv makes a missing client a failure: where it is set, all are there.
const peersEnv = "WHCONFORM_PEERS"

// peerTime is how long the clients wait for an answer.
const peerTime = 1500 * time.Millisecond

// peerClient posts "{}" once and says "STATUS BYTES", "STATUS stopped" or
// "error WHY".
type peerClient struct {
	name string
	tool string // what must be installed; empty: nothing
	post func(t *testing.T, url, caFile string, ca *tls.Config) string
}

func peerClients() []peerClient {
	seconds := strconv.FormatFloat(peerTime.Seconds(), 'f', -1, 64)
	return []peerClient{
		{"go", "", postByGo},
		{"node", "node", func(t *testing.T, url, caFile string, _ *tls.Config) string {
			return output(t, "node", filepath.Join("testdata", "peers", "client.mjs"), url, seconds, caFile)
		}},
		{"python", "python3", func(t *testing.T, url, caFile string, _ *tls.Config) string {
			return output(t, "python3", filepath.Join("testdata", "peers", "client.py"), url, seconds, caFile)
		}},
		{"curl", "curl", func(t *testing.T, url, caFile string, _ *tls.Config) string {
			return postByCurl(t, url, seconds, caFile)
		}},
	}
}

// enough is how much of a body the clients read at most.
const enough = 8 << 20

func postByGo(t *testing.T, url, _ string, ca *tls.Config) string {
	ctx, cancel := context.WithTimeout(t.Context(), peerTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: ca, DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return "error " + err.Error()
	}
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, io.LimitReader(answer.Body, enough))
	switch {
	case err != nil:
		return "error " + err.Error()
	case n == enough:
		return fmt.Sprintf("%d stopped", answer.StatusCode)
	}
	return fmt.Sprintf("%d %d", answer.StatusCode, n)
}

func postByCurl(t *testing.T, url, seconds, caFile string) string {
	cmd := exec.CommandContext(t.Context(), "curl", "--silent", "--show-error", "--noproxy", "*", "--http1.1", "--compressed", "--max-time", seconds,
		"--cacert", caFile, "--header", "Content-Type: application/json", "--data-binary", "{}", "--output", "-", "--write-out", "%{stderr}status=%{http_code}\n", url)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n, _ := io.Copy(io.Discard, io.LimitReader(out, enough))
	_ = out.Close() // curl sees nobody reads and ends
	err = cmd.Wait()
	status := ""
	if found := regexp.MustCompile(`status=(\d+)`).FindStringSubmatch(problem.String()); found != nil {
		status = found[1]
	}
	var failed *exec.ExitError
	switch {
	case n == enough:
		return status + " stopped"
	case errors.As(err, &failed):
		return fmt.Sprintf("error curl %d: %s", failed.ExitCode(), strings.TrimSpace(problem.String()))
	case err != nil:
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %d", status, n)
}

func output(t *testing.T, name string, args ...string) string {
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}

// peerCases are what each client makes of each step. A client that sees
// something else than most is named.
func peerCases() []struct {
	script, want string
	but          map[string]string
	fault        string // as it is recorded, of all clients
} {
	return []struct {
		script, want string
		but          map[string]string
		fault        string
	}{
		{script: "200", want: "200 0"},
		{script: "204", want: "204 0"},
		{script: "500(body=no)", want: "500 2"},
		{script: "503(retry-after=600)", want: "503 0"},
		{script: "429(retry-after=date+30s)*until,200", want: "429 0"},
		{script: "301", want: "301 0"},
		{script: "410", want: "410 0"},
		{script: "slow(100ms,500)", want: "500 0"},
		{script: "hang", want: "error", fault: "timeout"},
		{script: "drip(1B,20ms,size=4)", want: "200 4"},
		{script: "drip(10B,20ms,head,size=4)", want: "200 4"},
		{script: "drip(1B,200ms)", want: "error"},
		{script: "drip(1B,200ms,head)", want: "error", fault: "timeout"},
		{script: "huge(4MiB)", want: "200 4194304"},
		{script: "huge(4MiB,chunked,status=500)", want: "500 4194304"},
		{script: "huge(1GiB)", want: "200 stopped"},
		{script: "gzip-bomb(4MiB)", want: "200 4194304"},
		{script: "gzip-bomb(1GiB,chunked)", want: "200 stopped"},
		{script: "endless", want: "200 stopped"},
		// Node takes 16 KiB of headers, Python 100 lines, Go 10 MiB; what curl takes
		// depends on its version.
		{script: "headers(32KiB)", want: "200 0", but: map[string]string{"node": "error"}},
		{script: "headers(1MiB)", want: "error", but: map[string]string{"go": "200 0", "curl": ""}},
		{script: "headers(16MiB,one-line)", want: "error"},
		{script: "reset", want: "error", fault: "reset"},
		{script: "close", want: "error", fault: "closed"},
		{script: "truncate", want: "error", fault: "closed"},
		{script: "truncate(1MiB,chunked)", want: "error", fault: "closed"},
		{script: "garbage", want: "error", fault: "not-http"},
		// Python takes every 1xx but 100 for the answer.
		{script: "103,200", want: "200 0", but: map[string]string{"python": "103 0"}},
		{script: "100*3,500", want: "500 0", but: map[string]string{"python": ""}},
		{script: "early(413)", want: "413 0"},
		{script: "expired", want: "error", fault: "tls"},
		{script: "wrong-host", want: "error", fault: "tls"},
		{script: "self-signed", want: "error", fault: "tls"},
		{script: "200*2,expired", want: "200 0"}, // by TLS, and in order
		{script: "refuse", want: "error"},
		{script: "full-queue", want: "error"},
	}
}

func TestClientsOfOtherLanguagesSeeEachFault(t *testing.T) {
	s, err := fakeendpoint.Start(fakeendpoint.Config{Clock: clock.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, s.CAPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, client := range peerClients() {
		t.Run(client.name, func(t *testing.T) {
			if client.tool != "" {
				if _, err := exec.LookPath(client.tool); err != nil {
					if os.Getenv(peersEnv) != "" {
						t.Fatalf("%s is not installed, and %s says that it is", client.tool, peersEnv)
					}
					t.Skipf("WARNING: %s is not installed: not one fault is shown to it. Install it, and set %s=1 to have its absence fail", client.tool, peersEnv)
				}
			}
			for i, c := range peerCases() {
				t.Run(c.script, func(t *testing.T) {
					t.Parallel()
					p := s.Path(fmt.Sprintf("%s/%d", client.name, i), script(t, c.script))
					if err := p.Err(); err != nil {
						t.Fatal(err)
					}
					got := client.post(t, p.URL(), caFile, s.ClientTLS())
					want := c.want
					if but, is := c.but[client.name]; is {
						want = but
					}
					if want != "" && got != want && (want != "error" || !strings.HasPrefix(got, "error ")) {
						t.Errorf("it got %q, want %q", got, want)
					}
					if strings.HasPrefix(c.script, "refuse") || strings.HasPrefix(c.script, "full") {
						return // nobody sees these come
					}
					a := attempts(t, p, 1)[0]
					if c.fault != "" && a.Fault != c.fault {
						t.Errorf("it is recorded as %q: %s", a.Fault, a.FaultDetail)
					}
					// Python sends the body in a piece of its own, which is not read early.
					early := strings.HasPrefix(c.script, "early")
					if c.fault != "tls" && (string(a.Request.Body) != "{}" && !early || a.Request.Method != "POST") {
						t.Errorf("the record is %+v", a)
					}
				})
			}
		})
	}
}
