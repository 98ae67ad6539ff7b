package conformance_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/report"
)

// saved is a run's report as it comes from a file.
func saved(t *testing.T, r *report.Report) *report.Report {
	t.Helper()
	var file bytes.Buffer
	if err := report.WriteJSON(&file, r); err != nil {
		t.Fatal(err)
	}
	read, err := report.ReadJSON(&file)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// ran is a run's report; without an answer there is one, too.
func ran(t *testing.T, c conformance.Config) *report.Report {
	t.Helper()
	r, err := conformance.Run(t.Context(), c)
	var unreachable *conformance.UnreachableError
	if err != nil && !errors.As(err, &unreachable) {
		t.Fatal(err)
	}
	return r
}

func rejudged(t *testing.T, r *report.Report) *report.Report {
	t.Helper()
	again, err := conformance.Rejudge(r)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func answering(status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
	})
}

func TestASavedRunIsJudgedAsItWas(t *testing.T) {
	for name, run := range map[string]struct {
		config func(*testing.T) conformance.Config
		known  report.Known
	}{
		"of the reference": {config: func(t *testing.T) conformance.Config {
			c := config(t, reference(t, standard(t, 10*time.Second)))
			c.Secrets = []string{current, previous, private}
			return c
		}},
		"of a receiver that takes what is not signed": {config: func(t *testing.T) conformance.Config {
			return config(t, serve(t, small{takesUnsigned: true}))
		}},
		"of a receiver that accepts anything": {config: func(t *testing.T) conformance.Config {
			return config(t, serve(t, answering(http.StatusOK)))
		}},
		"with what is known to fail": {config: func(t *testing.T) conformance.Config {
			c := config(t, serve(t, small{takesUnsigned: true}))
			c.Run = []string{"signature"}
			return c
		}, known: report.Known{"receiver.signature.rejects-unsigned": "ticket 12", "receiver.signature.accepts-valid": "ticket 13", "receiver.replay.rejects-stale": "ticket 14"}},
		"of a receiver that refuses everything": {config: func(t *testing.T) conformance.Config {
			return config(t, serve(t, answering(http.StatusUnauthorized)))
		}},
		"of a receiver that throttles": {config: func(t *testing.T) conformance.Config {
			return config(t, serve(t, answering(http.StatusTooManyRequests)))
		}},
		"of nobody": {config: func(t *testing.T) conformance.Config { return config(t, at("http://127.0.0.1:1/")) }},
	} {
		t.Run(name, func(t *testing.T) {
			first := ran(t, run.config(t))
			first.Excuse(run.known)
			r := saved(t, first)
			before := saved(t, first)
			again := rejudged(t, r)
			if !reflect.DeepEqual(r, before) {
				t.Error("the report that was given is changed")
			}
			for i, row := range saved(t, again).Results {
				if !reflect.DeepEqual(row, r.Results[i]) {
					t.Errorf("judged again it is\n%+v\nwant\n%+v", row, r.Results[i])
				}
			}
			if again.Verdict != r.Verdict || again.Gate != r.Gate || !slices.Equal(again.Reasons, r.Reasons) || again.Summary != r.Summary || again.ExitCode() != r.ExitCode() {
				t.Errorf("verdict %s, gate %s, %s, %q; want %s, %s, %s, %q", again.Verdict, again.Gate, again.Summary, again.Reasons, r.Verdict, r.Gate, r.Summary, r.Reasons)
			}
		})
	}
}

// With the evidence changed the ruling changes: nothing is copied over.
func TestTheTranscriptsDecideNotTheSavedResults(t *testing.T) {
	c := config(t, serve(t, small{}))
	c.Run = []string{"receiver.signature.rejects-unsigned", "receiver.signature.accepts-valid"}
	r := saved(t, ran(t, c))
	if got := row(t, r, "receiver.signature.rejects-unsigned").Outcome; got != evidence.Pass {
		t.Fatalf("of a right receiver it is %s", got)
	}
	for i := range r.Transcripts {
		for j := range r.Transcripts[i].Exchanges {
			if x := &r.Transcripts[i].Exchanges[j]; x.Response != nil {
				x.Response.Status = http.StatusOK
			}
		}
	}
	again := rejudged(t, r)
	if got := row(t, again, "receiver.signature.rejects-unsigned"); got.Outcome != evidence.Fail || len(got.Findings) == 0 {
		t.Errorf("after everything was answered with 200 it is %s", got.Outcome)
	}
	if again.Verdict != report.NotConformant {
		t.Errorf("verdict %s", again.Verdict)
	}
}

func TestRunsOfOtherVersionsAreJudgedAsFarAsTheyGo(t *testing.T) {
	c := config(t, serve(t, small{}))
	c.Run = []string{"receiver.signature.rejects-unsigned"}
	r := saved(t, ran(t, c))
	const gone, added = "receiver.signature.rejects-purple", "receiver.replay.rejects-stale"
	r.Results = slices.DeleteFunc(r.Results, func(row report.Result) bool { return row.ID == added })
	r.Results = append(r.Results, report.Result{ID: gone, Level: evidence.Must, Outcome: evidence.Fail, Statement: "No purple."})
	again := rejudged(t, r)
	if got := row(t, again, gone); got.Outcome != evidence.Skipped || got.SkipReason != evidence.NoCheck || got.Statement != "No purple." {
		t.Errorf("what this version does not know: %+v", got)
	}
	if got := row(t, again, added); got.Outcome != evidence.Skipped || got.SkipReason != evidence.NotReached || !strings.Contains(got.SkipDetail, "another version") {
		t.Errorf("what that version did not know: %+v", got)
	}
	// A scenario that is called otherwise now left nothing to judge by.
	r.Transcripts = slices.DeleteFunc(r.Transcripts, func(t evidence.Transcript) bool { return t.Scenario == "receiver.signature.rejects-unsigned" })
	if got := row(t, rejudged(t, r), "receiver.signature.rejects-unsigned"); got.SkipReason != evidence.NotReached {
		t.Errorf("without its transcript: %+v", got)
	}
}

func TestRunsAgainstOtherSubjectsAreRefused(t *testing.T) {
	_, err := conformance.Rejudge(&report.Report{Subject: report.Subject{Kind: "library"}})
	var usage *conformance.UsageError
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), `"library"`) {
		t.Errorf("%v, want a UsageError", err)
	}
}
