package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// counter counts scenarios under way and remembers the most there were.
type counter struct{ now, most atomic.Int64 }

func (c *counter) enter() (leave func()) {
	n := c.now.Add(1)
	for {
		most := c.most.Load()
		if n <= most || c.most.CompareAndSwap(most, n) {
			break
		}
	}
	return func() { c.now.Add(-1) }
}

// gather makes n scenarios that all wait until at of them are under way: it
// ends only if that many are recorded beside each other.
func gather(name string, n, at int, c *counter, set func(*Scenario)) []Scenario {
	full := make(chan struct{})
	var under atomic.Int64
	var out []Scenario
	for i := range n {
		s := Scenario{Name: fmt.Sprintf("%s %d", name, i), Record: func(ctx context.Context, _ *Recorder) error {
			defer c.enter()()
			if under.Add(1) == int64(at) {
				close(full)
			}
			select {
			case <-full:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		set(&s)
		out = append(out, s)
	}
	return out
}

func beside(*Scenario)  {}
func slow(s *Scenario)  { s.Slow = true }
func alone(s *Scenario) { s.Alone = true }

func names(transcripts []evidence.Transcript) []string {
	var out []string
	for _, t := range transcripts {
		out = append(out, t.Scenario)
	}
	return out
}

func TestScenariosStandSideBySideUpToTheBound(t *testing.T) {
	for _, tt := range []struct {
		name         string
		bound, n, at int
	}{
		{"as many as the bound says", 3, 10, 3},
		{"sixteen where nothing is said", 0, 40, SideBySide},
		{"all where they are fewer than the bound", 8, 2, 2},
		{"one at a time where the bound is one", 1, 5, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c counter
			got := Record(t.Context(), Config{SideBySide: tt.bound}, gather("scenario", tt.n, tt.at, &c, beside))
			if len(got) != tt.n {
				t.Errorf("%d of %d scenarios were recorded", len(got), tt.n)
			}
			if most := c.most.Load(); most != int64(tt.at) {
				t.Errorf("%d were recorded at one time, want %d", most, tt.at)
			}
		})
	}
}

func TestTheSlowOnesStandBesideEachOtherWhateverTheBound(t *testing.T) {
	var c counter
	Record(t.Context(), Config{SideBySide: 2}, gather("slow", 30, 30, &c, slow))
	if most := c.most.Load(); most != 30 {
		t.Errorf("%d of 30 were recorded at one time", most)
	}
}

func TestThoseThatStandAloneAreRecordedOneAtATime(t *testing.T) {
	var c counter
	Record(t.Context(), Config{SideBySide: 8}, gather("alone", 5, 1, &c, alone))
	if most := c.most.Load(); most != 1 {
		t.Errorf("%d were recorded at one time", most)
	}
}

func TestPhasesFollowOneAnother(t *testing.T) {
	const besideN, slowN, aloneN = 6, 4, 3
	var ended [4]atomic.Int64 // by phase, from 1
	var scenarios []Scenario
	add := func(phase int, set func(*Scenario), want ...int64) {
		s := Scenario{Name: fmt.Sprintf("phase %d, scenario %d", phase, len(scenarios)), Record: func(context.Context, *Recorder) error {
			for earlier, n := range want {
				if got := ended[earlier+1].Load(); got != n {
					t.Errorf("phase %d began when %d of the %d of phase %d had ended", phase, got, n, earlier+1)
				}
			}
			ended[phase].Add(1)
			return nil
		}}
		set(&s)
		scenarios = append(scenarios, s)
	}
	// In a mixed order: phases come from the scenarios, not from their places.
	for i := range max(besideN, slowN, aloneN) {
		if i < aloneN {
			add(3, func(s *Scenario) { s.Alone = true; s.Slow = i == 1 }, besideN, slowN)
		}
		if i < slowN {
			add(2, slow, besideN)
		}
		if i < besideN {
			add(1, beside)
		}
	}
	got := Record(t.Context(), Config{SideBySide: 3}, scenarios)
	var want []string
	for _, s := range scenarios {
		want = append(want, s.Name)
	}
	if !slices.Equal(names(got), want) {
		t.Errorf("transcripts came as %q, want the order of the scenarios", names(got))
	}
	if n := ended[3].Load(); n != aloneN {
		t.Errorf("%d of %d scenarios that stand alone were recorded", n, aloneN)
	}
}

func TestNoScenariosGiveNoTranscripts(t *testing.T) {
	if got := Record(t.Context(), Config{}, nil); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestAScenarioThatBreaksDownHarmsNoOther(t *testing.T) {
	fine := func(name string) Scenario {
		return Scenario{Name: name, Record: func(_ context.Context, r *Recorder) error {
			r.Add(wire.Exchange{Label: "probe"})
			return nil
		}}
	}
	for _, tt := range []struct {
		name   string
		record func(context.Context, *Recorder) error
		want   []string
	}{
		{"by an error", func(context.Context, *Recorder) error { return errors.New("no such thing") }, []string{"no such thing"}},
		{"by a panic", func(context.Context, *Recorder) error { panic("boom") },
			[]string{"recording bad", "the suite itself failed", "boom", "suite.TestAScenarioThatBreaksDownHarmsNoOther"}},
		{"by a nil pointer", func(context.Context, *Recorder) error {
			var s *Scenario
			return errors.New(s.Name)
		}, []string{"nil pointer", "suite.TestAScenarioThatBreaksDownHarmsNoOther"}},
		{"by a panic after it recorded something", func(_ context.Context, r *Recorder) error {
			r.Add(wire.Exchange{Label: "probe"})
			panic(errors.New("late"))
		}, []string{"late"}},
		{"by a label used twice", func(_ context.Context, r *Recorder) error {
			r.Add(wire.Exchange{Label: "probe"})
			r.Add(wire.Exchange{Label: "probe"})
			return nil
		}, []string{"recording bad", `"probe" is used twice`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var progress []Progress
			cfg := Config{SideBySide: 2, Progress: func(p Progress) { progress = append(progress, p) }}
			got := Record(t.Context(), cfg, []Scenario{fine("before"), {Name: "bad", Record: tt.record}, fine("after")})
			if !slices.Equal(names(got), []string{"before", "bad", "after"}) {
				t.Fatalf("recorded %q", names(got))
			}
			for _, want := range tt.want {
				if !strings.Contains(got[1].Error, want) {
					t.Errorf("its error %q does not say %q", got[1].Error, want)
				}
			}
			if strings.Contains(got[1].Error, "0x") {
				t.Errorf("its error %q holds an address", got[1].Error)
			}
			if got[1].Partial {
				t.Error("it is marked as cut short")
			}
			for _, i := range []int{0, 2} {
				if got[i].Error != "" || len(got[i].Exchanges) != 1 {
					t.Errorf("scenario %q: error %q, %d exchanges", got[i].Scenario, got[i].Error, len(got[i].Exchanges))
				}
			}
			for _, p := range progress {
				if p.Failed != (p.Scenario == "bad") {
					t.Errorf("progress says failed: %t of %q", p.Failed, p.Scenario)
				}
			}
		})
	}
}

func TestWhenTheRunEndsWhatHadBegunIsPartialAndTheRestIsLeftOut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var begun sync.WaitGroup
	begun.Add(2)
	waiting := func(ctx context.Context, r *Recorder) error {
		r.Add(wire.Exchange{Label: "sent before the end"})
		begun.Done()
		<-ctx.Done()
		return ctx.Err()
	}
	// It does not look at ctx: its last delivery came back cut short.
	unaware := func(ctx context.Context, _ *Recorder) error {
		begun.Done()
		<-ctx.Done()
		return nil
	}
	never := func(context.Context, *Recorder) error {
		t.Error("a scenario began after the end of the run")
		return nil
	}
	go func() {
		begun.Wait()
		cancel()
	}()
	got := Record(ctx, Config{SideBySide: 3}, []Scenario{
		{Name: "ended in time", Record: func(context.Context, *Recorder) error { return nil }},
		{Name: "waiting", Record: waiting},
		{Name: "alone", Alone: true, Record: never},
		{Name: "unaware", Record: unaware},
		{Name: "slow", Slow: true, Record: never},
	})
	if !slices.Equal(names(got), []string{"ended in time", "waiting", "unaware"}) {
		t.Fatalf("recorded %q", names(got))
	}
	for _, tr := range got[1:] {
		if !tr.Partial || tr.Error != "" {
			t.Errorf("%s: partial %t, error %q", tr.Scenario, tr.Partial, tr.Error)
		}
	}
	if len(got[1].Exchanges) != 1 {
		t.Error("what was recorded before the end is lost")
	}
}

func TestAScenarioThatWaitsForAPlaceIsLeftOutWhenTheRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := Record(ctx, Config{SideBySide: 1}, []Scenario{
		{Name: "first", Record: func(ctx context.Context, _ *Recorder) error {
			cancel()
			return ctx.Err()
		}},
		{Name: "second", Record: func(context.Context, *Recorder) error {
			t.Error("it began after the end of the run")
			return nil
		}},
	})
	if !slices.Equal(names(got), []string{"first"}) || !got[0].Partial {
		t.Errorf("got %+v", got)
	}
}

func TestARunThatEndedBeforeRecordsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, set := range []func(*Scenario){beside, slow, alone} {
		var c counter
		if got := Record(ctx, Config{}, gather("scenario", 3, 1, &c, set)); len(got) != 0 || c.most.Load() != 0 {
			t.Errorf("recorded %q", names(got))
		}
	}
}

func TestProgressCountsEachScenarioOnce(t *testing.T) {
	const n = 50
	var scenarios []Scenario
	for i := range n {
		scenarios = append(scenarios, Scenario{Name: fmt.Sprint(i), Slow: i%7 == 0, Alone: i%11 == 0, Record: func(context.Context, *Recorder) error { return nil }})
	}
	var inside counter
	var done []int
	seen := map[string]bool{}
	Record(t.Context(), Config{SideBySide: 8, Progress: func(p Progress) {
		defer inside.enter()()
		done = append(done, p.Done)
		seen[p.Scenario] = true
		if p.Total != n {
			t.Errorf("the total is %d", p.Total)
		}
	}}, scenarios)
	if inside.most.Load() != 1 {
		t.Error("progress was told from several goroutines at a time")
	}
	if len(seen) != n || len(done) != n || !slices.IsSorted(done) || done[0] != 1 || done[n-1] != n {
		t.Errorf("%d scenarios, counted %v", len(seen), done)
	}
}

func TestARecorderMayBeUsedBySeveralGoroutines(t *testing.T) {
	const n = 64
	got := Record(t.Context(), Config{}, []Scenario{{Name: "s", Record: func(_ context.Context, r *Recorder) error {
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				r.Add(wire.Exchange{Label: fmt.Sprint(i)})
				r.Fact(fmt.Sprint(i), "told")
				r.Skip(fmt.Sprint(i), evidence.NotObservable, "not seen")
				r.Control("0")
			})
		}
		all.Wait()
		return nil
	}}})[0]
	if len(got.Exchanges) != n || len(got.Facts) != n || len(got.Skips) != n || got.Control != "0" || got.Error != "" {
		t.Errorf("%d exchanges, %d facts, %d skips, control %q, error %q", len(got.Exchanges), len(got.Facts), len(got.Skips), got.Control, got.Error)
	}
}

func TestTheLastValueOfAFactCounts(t *testing.T) {
	got := Record(t.Context(), Config{}, []Scenario{{Name: "s", Record: func(_ context.Context, r *Recorder) error {
		r.Fact("count", "1")
		r.Fact("count", "2")
		return nil
	}}})[0]
	if got.Facts["count"] != "2" {
		t.Errorf("the fact is %q", got.Facts["count"])
	}
}

func TestBodiesAreCutAtTheLimitAndSizesKept(t *testing.T) {
	const over = wire.BodyLimit + 1000
	body := bytes.Repeat([]byte("x"), over)
	sent := wire.Exchange{
		Label:    "large",
		Request:  wire.Request{Body: body, Size: over},
		Response: &wire.Response{Status: 200, Body: body, Size: over},
	}
	exact := wire.Exchange{Label: "exact", Request: wire.Request{Body: body[:wire.BodyLimit], Size: wire.BodyLimit}}
	got := Record(t.Context(), Config{}, []Scenario{{Name: "s", Record: func(_ context.Context, r *Recorder) error {
		r.Add(sent)
		r.Add(exact)
		return nil
	}}})[0]
	large := got.Find("large")
	if len(large.Request.Body) != wire.BodyLimit || len(large.Response.Body) != answerKept {
		t.Errorf("%d and %d bytes are kept", len(large.Request.Body), len(large.Response.Body))
	}
	if large.Request.Size != over || large.Response.Size != over {
		t.Errorf("the sizes are %d and %d", large.Request.Size, large.Response.Size)
	}
	if cap(large.Request.Body) != wire.BodyLimit {
		t.Error("what was cut off can be written over")
	}
	if len(sent.Response.Body) != over {
		t.Error("the scenario's own exchange was changed")
	}
	if len(got.Find("exact").Request.Body) != wire.BodyLimit {
		t.Error("a body of just the limit was cut")
	}
}

func TestHeaderLinesAreCutWithTheirSizeTold(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	headers := []wire.Header{{Name: "A", Value: "short"}, {Name: "B", Value: long}}
	got := Record(t.Context(), Config{}, []Scenario{{Name: "s", Record: func(_ context.Context, r *Recorder) error {
		r.Add(wire.Exchange{Request: wire.Request{Headers: headers}, Response: &wire.Response{Headers: headers}})
		return nil
	}}})[0].Exchanges[0]
	for _, kept := range [][]wire.Header{got.Request.Headers, got.Response.Headers} {
		if kept[0] != headers[0] {
			t.Errorf("a short line became %+v", kept[0])
		}
		if n := len(kept[1].Value); n > headerKept+100 || !strings.HasSuffix(kept[1].Value, "x… (1048576 bytes in all)") {
			t.Errorf("%d bytes of a long line are kept", n)
		}
	}
	if headers[1].Value != long {
		t.Error("the scenario's own lines were changed")
	}
}
