package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/conformance/suite"
	"github.com/whconform/whconform/reference/wire"
)

// Run goes through Ginkgo, the steps do not; what they say must not differ.
func TestRunSaysWhatItsStepsSay(t *testing.T) {
	for _, tt := range []struct {
		name    string
		config  func(*testing.T) conformance.Config
		verdict report.Verdict
		exit    int
		broken  []string
	}{
		{"of the reference", func(t *testing.T) conformance.Config {
			c := config(t, reference(t, standard(t, 10*time.Second)))
			c.Secrets = []string{current, previous, private}
			return c
		}, report.Conformant, report.ExitConformant, nil},
		{"of a small receiver that is right in what was asked", func(t *testing.T) conformance.Config {
			c := config(t, serve(t, small{}))
			// What runs only on request sends thousands.
			c.Run, c.Skip = []string{"receiver.signature", "receiver.rawbody", "receiver.replay"}, []string{"receiver.signature.constant-time"}
			return c
		}, report.Partial, report.ExitConformant, nil},
		{"of one that takes what bears no signature", func(t *testing.T) conformance.Config {
			return config(t, serve(t, small{takesUnsigned: true}))
		}, report.NotConformant, report.ExitNotConformant, []string{"receiver.signature.rejects-unsigned", "receiver.signature.rejects-missing-header"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run, err := conformance.Run(t.Context(), tt.config(t))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := conformance.Prepare(tt.config(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := plan.Record(t.Context()); err != nil {
				t.Fatal(err)
			}
			steps := plan.Report()
			if a, b := outcomes(run), outcomes(steps); !maps.Equal(a, b) {
				for id := range a {
					if a[id] != b[id] {
						t.Errorf("%s: %s by Run, %s in steps", id, a[id], b[id])
					}
				}
			}
			for _, r := range []*report.Report{run, steps} {
				if r.Verdict != tt.verdict || r.ExitCode() != tt.exit {
					t.Errorf("the verdict is %s, exit %d: %v", r.Verdict, r.ExitCode(), r.Reasons)
				}
				for _, id := range tt.broken {
					if got := row(t, r, id); got.Outcome != evidence.Fail || len(got.Findings) == 0 {
						t.Errorf("%s is %s", id, got.Outcome)
					}
				}
			}
			if again := plan.Report(); !maps.Equal(outcomes(again), outcomes(steps)) {
				t.Error("judging the same evidence twice gives two answers")
			}
		})
	}
}

func TestRunsOfOneProcessMayOverlap(t *testing.T) {
	const n = 6
	var running sync.WaitGroup
	for i := range n {
		// Every second one is wrong, so that a mix-up would show.
		wrong := i%2 == 1
		c := config(t, serve(t, small{takesUnsigned: wrong}))
		c.Target, c.Seed = fmt.Sprintf("receiver %d", i), uint64(i)
		c.Run = []string{"receiver.signature.rejects-unsigned", "receiver.replay.rejects-stale"}
		running.Go(func() {
			for range 2 {
				r, err := conformance.Run(t.Context(), c)
				if err != nil {
					t.Error(err)
					return
				}
				if r.Subject.Target != c.Target || r.Seed != c.Seed {
					t.Errorf("run %d got the report of %s", i, r.Subject.Target)
				}
				if failed := row(t, r, "receiver.signature.rejects-unsigned").Outcome == evidence.Fail; failed != wrong {
					t.Errorf("run %d: failed is %t", i, failed)
				}
				if got := row(t, r, "receiver.replay.rejects-stale").Outcome; got != evidence.Pass {
					t.Errorf("run %d: rejects-stale is %s", i, got)
				}
			}
		})
	}
	running.Wait()
}

func TestProgressIsToldOfEveryScenario(t *testing.T) {
	c := config(t, serve(t, small{}))
	c.Run = []string{"receiver.replay"}
	var told []suite.Progress
	c.Progress = func(p suite.Progress) { told = append(told, p) }
	r, err := conformance.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	// The preflight is no scenario of the recording.
	if len(told) != len(r.Transcripts)-1 || told[len(told)-1].Done != told[0].Total {
		t.Errorf("told of %v, recorded %d", told, len(r.Transcripts))
	}
}

// holding is a small receiver that holds what comes after the first deliveries
// until the sender goes away.
func holding(after int) http.Handler {
	count := make(chan int, 1)
	count <- 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := <-count + 1
		count <- n
		if n > after {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return
		}
		small{}.ServeHTTP(w, r)
	})
}

const preflightDeliveries = 4

func TestARunThatIsInterruptedStillReports(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := config(t, serve(t, holding(40)))
	c.SideBySide = 4
	// The first scenario that ends: others are then in the middle, and some
	// have not begun.
	c.Progress = func(suite.Progress) { cancel() }
	r, err := conformance.Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || r.End.Complete || r.ExitCode() != report.ExitInterrupted {
		t.Errorf("interrupted %t, complete %t, exit %d", r.Interrupted, r.End.Complete, r.ExitCode())
	}
	if r.Verdict == report.Conformant {
		t.Error("half a run is conformant")
	}
	reached := 0
	for _, row := range asked(r) {
		switch {
		case row.Outcome == evidence.Error:
			t.Errorf("%s is an error: %s", row.ID, row.Detail)
		case row.Outcome == evidence.Fail, row.Outcome == evidence.Warn:
			t.Errorf("%s is blamed for the interruption: %+v", row.ID, row.Findings)
		case row.SkipReason != evidence.NotReached:
			reached++
		}
	}
	if reached == 0 {
		t.Error("nothing was judged of what was recorded")
	}
}

func TestARunThatIsInterruptedBeforeItBeganStillReports(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := conformance.Run(ctx, config(t, serve(t, small{})))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || r.ExitCode() != report.ExitInterrupted {
		t.Errorf("interrupted %t, exit %d", r.Interrupted, r.ExitCode())
	}
	for _, row := range asked(r) {
		if row.SkipReason != evidence.NotReached {
			t.Errorf("%s: %s %s", row.ID, row.Outcome, row.Detail)
		}
	}
}

func TestARunOutOfTimeLeavesTheRestNotReached(t *testing.T) {
	c := config(t, serve(t, holding(preflightDeliveries)))
	c.Timeout = time.Second
	r, err := conformance.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Interrupted || r.ExitCode() != report.ExitNotConformant || r.Verdict != report.Partial {
		t.Errorf("interrupted %t, exit %d, verdict %s", r.Interrupted, r.ExitCode(), r.Verdict)
	}
	if got := row(t, r, "receiver.signature.accepts-valid").Outcome; got != evidence.Pass {
		t.Errorf("accepts-valid is %s", got)
	}
	if got := row(t, r, "receiver.signature.rejects-unsigned"); got.SkipReason != evidence.NotReached {
		t.Errorf("rejects-unsigned is %s %s", got.Outcome, got.SkipReason)
	}
	for _, row := range asked(r) {
		if row.Outcome == evidence.Error || row.Outcome == evidence.Fail || row.Outcome == evidence.Warn {
			t.Errorf("%s is %s: %s %+v", row.ID, row.Outcome, row.Detail, row.Findings)
		}
	}
}

func TestAControlThatIsRefusedFailsAndLeavesTheRestNotReached(t *testing.T) {
	refusing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "bad signature", http.StatusUnauthorized) })
	r, err := conformance.Run(t.Context(), config(t, serve(t, refusing)))
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != report.NotConformant || r.ExitCode() != report.ExitNotConformant || r.Diagnosis == nil {
		t.Errorf("verdict %s, exit %d, diagnosis %v", r.Verdict, r.ExitCode(), r.Diagnosis)
	}
	for _, row := range asked(r) {
		switch row.ID {
		case "receiver.signature.accepts-valid":
			if row.Outcome != evidence.Fail {
				t.Errorf("%s is %s", row.ID, row.Outcome)
			}
		case "receiver.acknowledge.no-redirect": // a 401 is none
		default:
			if row.SkipReason != evidence.NotReached {
				t.Errorf("%s is %s", row.ID, row.Outcome)
			}
		}
	}
}

// speaking listens and says something to whoever connects.
func speaking(t *testing.T, words string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, words)
				_, _ = io.Copy(io.Discard, conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return l.Addr().String()
}

func TestNobodyToSendToIsAnErrorWithAReport(t *testing.T) {
	for _, tt := range []struct {
		name string
		url  func(*testing.T) string
		ack  time.Duration
		want string
	}{
		{"a closed port", func(*testing.T) string {
			s := httptest.NewServer(nil)
			s.Close()
			return s.URL
		}, 10 * time.Second, "Nothing listens there"},
		{"something that is not HTTP", func(t *testing.T) string { return "http://" + speaking(t, "SSH-2.0-other\r\n") }, 10 * time.Second, "Another protocol"},
		{"a certificate that does not verify", func(t *testing.T) string {
			s := httptest.NewUnstartedServer(small{})
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.StartTLS()
			t.Cleanup(s.Close)
			return s.URL
		}, 10 * time.Second, "TLS"},
		{"a plain port asked for TLS", func(t *testing.T) string { return "https://" + speaking(t, "HTTP/1.1 400 Bad Request\r\n\r\n") }, 10 * time.Second, "TLS"},
		{"a receiver that never answers", func(t *testing.T) string { return "http://" + speaking(t, "") }, 50 * time.Millisecond, "never answered"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := conformance.Config{Receiver: at(tt.url(t)), Profile: standard(t, tt.ack), Secrets: []string{current}, Skip: []string{"receiver.replay"}}
			r, err := conformance.Run(t.Context(), c)
			var unreachable *conformance.UnreachableError
			if !errors.As(err, &unreachable) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want %q in it", err, tt.want)
			}
			if r == nil {
				t.Fatal("there is no report")
			}
			if r.Verdict != report.Broken || r.ExitCode() != report.ExitError || r.Interrupted || r.Diagnosis == nil {
				t.Errorf("verdict %s, exit %d, interrupted %t, diagnosis %v", r.Verdict, r.ExitCode(), r.Interrupted, r.Diagnosis)
			}
			for _, row := range asked(r) {
				if row.Outcome != evidence.Error || row.Detail == "" {
					t.Errorf("%s is %s %s", row.ID, row.Outcome, row.SkipReason)
				}
			}
			if got := row(t, r, "receiver.replay.rejects-stale"); got.SkipReason != evidence.NotSelected {
				t.Errorf("what was not selected is %s", got.Outcome)
			}
		})
	}
}

func TestAReceiverThatDiesOnTheWayIsNoErrorOfTheSuite(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	count := make(chan int, 1)
	count <- 0
	server := &http.Server{Handler: small{count: count, before: func(n int) {
		if n > preflightDeliveries {
			_ = l.Close() // it stops listening and does not come back
		}
	}}}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	defer serving.Wait()
	defer server.Close()

	c := config(t, at("http://"+l.Addr().String()))
	c.SideBySide, c.Run = 1, []string{"receiver.replay.rejects-stale", "receiver.replay.rejects-future", "receiver.limits.alive-after-abuse"}
	r, err := conformance.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict == report.Conformant || r.ExitCode() != report.ExitNotConformant {
		t.Errorf("the verdict is %s, exit %d", r.Verdict, r.ExitCode())
	}
	lost := 0
	for _, row := range asked(r) {
		if row.Outcome == evidence.Error {
			t.Errorf("%s: %s", row.ID, row.Detail)
		}
		if row.SkipReason == evidence.NotReached {
			lost++
		}
	}
	if lost == 0 {
		t.Error("nothing is told to be lost")
	}
}

func TestHeadersOfTheRunGoWithEveryDelivery(t *testing.T) {
	var mu sync.Mutex
	missing, all := 0, 0
	c := config(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		all++
		if r.Header.Get("X-Gateway-Key") != "a gateway's key" {
			missing++
		}
		mu.Unlock()
		small{}.ServeHTTP(w, r)
	})))
	c.Headers = []wire.Header{{Name: "X-Gateway-Key", Value: "a gateway's key"}}
	c.Run = []string{"receiver.replay", "receiver.duplicate"}
	r, err := conformance.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if missing > 0 || all == 0 {
		t.Errorf("%d of %d deliveries came without it", missing, all)
	}
	for _, tr := range r.Transcripts {
		for _, x := range tr.Exchanges {
			if value, _ := wire.Get(x.Request.Headers, "X-Gateway-Key"); value == "a gateway's key" {
				t.Fatal("its value stands in the report")
			}
		}
	}
}

func TestStrictCountsWarnings(t *testing.T) {
	for strict, want := range map[bool]int{false: report.ExitConformant, true: report.ExitNotConformant} {
		c := config(t, serve(t, pickyHandler{}))
		c.Run, c.Strict = []string{"receiver.acknowledge.poison-event.acknowledged"}, strict
		r, err := conformance.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if got := row(t, r, "receiver.acknowledge.poison-event.acknowledged").Outcome; got != evidence.Warn || r.ExitCode() != want || r.Strict != strict {
			t.Errorf("strict %t: %s, exit %d", strict, got, r.ExitCode())
		}
	}
}

func TestTheReportTellsWhenAndHowLong(t *testing.T) {
	c := config(t, serve(t, small{}))
	c.Run, c.Version = []string{"receiver.replay.rejects-stale"}, "v1.2.3"
	before := time.Now()
	r, err := conformance.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Began.Before(before.Add(-time.Second)) || r.Began.After(time.Now().Add(time.Second)) || r.DurationMS < 0 || r.DurationMS > time.Since(before).Milliseconds()+1 {
		t.Errorf("began %v, took %d ms", r.Began, r.DurationMS)
	}
	if r.Suite.Version != "v1.2.3" || r.Profile != "standard-webhooks" || r.Subject.Kind != "receiver" {
		t.Errorf("suite %+v, profile %s, subject %+v", r.Suite, r.Profile, r.Subject)
	}
	names := []string{}
	for _, tr := range r.Transcripts {
		names = append(names, tr.Scenario)
	}
	if !slices.Equal(names, []string{"receiver.signature.accepts-valid", "receiver.replay.rejects-stale"}) {
		t.Errorf("recorded %q", names)
	}
}
