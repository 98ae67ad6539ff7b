package drive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func tap(t *testing.T, pattern string) *LogTap {
	t.Helper()
	o, err := ObserveLog(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTheLinesOfALogAreCounted(t *testing.T) {
	for _, tt := range []struct {
		name, pattern, log string
		want               map[string]Count
	}{
		{"one line an event", "processed {id}", "start\nprocessed evt_1\nprocessed evt_2 in 3 ms\nprocessed evt_1\n",
			map[string]Count{"evt_1": {N: 2}, "evt_2": {N: 1}, "evt_3": {Unknown: true}}},
		{"an id is not found in a longer one", "processed {id}", "processed evt_10\n",
			map[string]Count{"evt_1": {Unknown: true}, "evt_10": {N: 1}}},
		{"a sentence's end is no part of it", "processed {id}", "processed evt_1.\nprocessed \"evt_2\"\nprocessed evt_2, again\n",
			map[string]Count{"evt_1": {N: 1}, "evt_2": {N: 1}}},
		{"as JSON", `"msg":"done".*"id":"{id}"`, `{"level":"info","msg":"done","id":"evt_1"}` + "\n" + `{"msg":"begun","id":"evt_1"}` + "\n",
			map[string]Count{"evt_1": {N: 1}}},
		{"one line counts once", "{id} done", "evt_1 done, evt_1 done\n", map[string]Count{"evt_1": {N: 1}}},
		{"the id twice in the pattern", "begin {id} end {id}", "begin evt_1 end evt_1\nbegin evt_1 end evt_2\n",
			map[string]Count{"evt_1": {N: 1}, "evt_2": {Unknown: true}}},
		{"one of two forms", "(?:done {id}|finished {id})", "done evt_1\nfinished evt_1\n", map[string]Count{"evt_1": {N: 2}}},
		{"carriage returns", "^processed {id}$", "processed evt_1\r\n", map[string]Count{"evt_1": {N: 1}}},
		{"a line of any length", "processed {id}", "processed evt_1 " + strings.Repeat("x", 3*logLineMax) + "processed evt_2\nprocessed evt_3\n",
			map[string]Count{"evt_1": {N: 1}, "evt_2": {Unknown: true}, "evt_3": {N: 1}}},
		{"a line that has not ended", "processed {id}", "processed evt_1", map[string]Count{"evt_1": {Unknown: true}}},
		{"an id beyond all bounds", "processed {id}", "processed " + strings.Repeat("x", 200) + "\n", map[string]Count{"evt_1": {Unknown: true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := tap(t, tt.pattern)
			if n, err := io.WriteString(o, tt.log); n != len(tt.log) || err != nil {
				t.Errorf("wrote %d, %v", n, err)
			}
			for id, want := range tt.want {
				if got, err := o.Processed(t.Context(), id); err != nil || got != want {
					t.Errorf("%s: %+v, %v, want %+v", id, got, err, want)
				}
			}
		})
	}
}

// The last line of a process that was killed does not run into the first of the
// next.
func TestFlushEndsALine(t *testing.T) {
	o := tap(t, "^processed {id}$")
	_, _ = io.WriteString(o, "processed evt_1")
	o.Flush()
	_, _ = io.WriteString(o, "processed evt_2\n")
	o.Flush()
	for _, id := range []string{"evt_1", "evt_2"} {
		if got, err := o.Processed(t.Context(), id); err != nil || got != (Count{N: 1}) {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
}

func TestALogIsCountedHoweverItComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, err := ObserveLog("processed {id};")
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{}
		var log strings.Builder
		for range rapid.IntRange(0, 20).Draw(t, "lines") {
			id := fmt.Sprintf("evt_%d", rapid.IntRange(1, 3).Draw(t, "id"))
			if rapid.Bool().Draw(t, "processed") {
				fmt.Fprintf(&log, "processed %s;\n", id)
				want[id]++
			} else {
				fmt.Fprintf(&log, "received %s;\n", id)
			}
		}
		for rest := log.String(); rest != ""; {
			n := min(rapid.IntRange(1, 30).Draw(t, "piece"), len(rest))
			_, _ = io.WriteString(o, rest[:n])
			rest = rest[n:]
		}
		for _, id := range []string{"evt_1", "evt_2", "evt_3"} {
			if got, err := o.Processed(context.Background(), id); err != nil || got.N != want[id] {
				t.Fatalf("%s: %+v, %v, want %d", id, got, err, want[id])
			}
		}
	})
}

func TestALogIsReadWhileItIsWritten(t *testing.T) {
	o := tap(t, "processed {id}")
	var both sync.WaitGroup
	for range 4 {
		both.Go(func() {
			for range 100 {
				_, _ = io.WriteString(o, "processed evt_1\n")
				if _, err := o.Processed(t.Context(), "evt_1"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	if got, err := o.Processed(t.Context(), "evt_1"); err != nil || got.N != 400 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAPatternThatCannotBeUsedIsRefused(t *testing.T) {
	for _, tt := range []struct{ pattern, want string }{
		{"processed", `--observe-log "processed": the pattern needs {id} for the id of the event`},
		{"processed ({id}", "--observe-log \"processed ({id}\": it is not a regular expression: error parsing regexp: missing closing ): `processed ((?P<whconform_id>[A-Za-z0-9_-]+)`"},
	} {
		if _, err := ObserveLog(tt.pattern); err == nil || err.Error() != tt.want {
			t.Errorf("got %v", err)
		}
	}
}

func TestAnIDThatNoLogCanHoldIsRefused(t *testing.T) {
	o := tap(t, "processed {id}")
	for _, id := range []string{"", "a.b", "a b", strings.Repeat("x", 200)} {
		_, err := o.Processed(t.Context(), id)
		var of *ObserverError
		if !errors.As(err, &of) || of.Fault != ObserverUnfit {
			t.Errorf("%q: %v", id, err)
		}
	}
	over := errors.New("the run is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if _, err := o.Processed(ctx, "evt_1"); !errors.Is(err, over) {
		t.Errorf("got %v", err)
	}
}
