package sender

import (
	"slices"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/wire"
)

func labels(list []attempt) []string {
	var out []string
	for i := range list {
		out = append(out, list[i].Label)
	}
	return out
}

func TestARequestThatAClientRepeatsIsNoAttempt(t *testing.T) {
	sent := []func(*attempt){with("webhook-timestamp", "1"), with("webhook-signature", "v1,same")}
	broken := append(slices.Clone(sent), unanswered(wire.FaultReset))
	hours := []time.Duration{0, 400 * time.Millisecond, 800 * time.Millisecond}
	for _, tt := range []struct {
		name  string
		about drive.About
		list  []part
		want  int
	}{
		{"at once, after a broken connection", drive.About{}, []part{try("a", 0, 0, broken...), try("a", 0, 200, sent...)}, 1},
		{"half a second later", drive.About{}, []part{try("a", 0, 503, sent...), try("a", 500*time.Millisecond, 200, sent...)}, 1},
		{"a second later", drive.About{}, []part{try("a", 0, 0, broken...), try("a", time.Second, 200, sent...)}, 2},
		{"with another signature", drive.About{}, []part{try("a", 0, 0, broken...), try("a", 0, 200, sent[0], with("webhook-signature", "v1,other"))}, 2},
		{"with another timestamp", drive.About{}, []part{try("a", 0, 0, broken...), try("a", 0, 200, sent[1], with("webhook-timestamp", "2"))}, 2},
		{"after a success", drive.About{}, []part{try("a", 0, 200, sent...), try("a", 0, 200, sent...)}, 2},
		{"beside the first", drive.About{}, []part{try("a", 0, 503, append(sent, lasting(time.Second))...), try("a", 500*time.Millisecond, 200, sent...)}, 2},
		{"of another message", drive.About{}, []part{try("a", 0, 0, broken...), try("a", 0, 200, append(sent, id("msg_2"))...)}, 2},
		{"in other bytes", drive.About{}, []part{try("a", 0, 0, broken...), try("a", 0, 200, append(sent, body("{}"))...)}, 2},
		{"a retry of a schedule of tenths of seconds", drive.About{Schedule: hours}, []part{try("a", 0, 503, sent...), try("a", 400*time.Millisecond, 200, sent...)}, 2},
		{"before such a retry is due", drive.About{Schedule: hours}, []part{try("a", 0, 503, sent...), try("a", 100*time.Millisecond, 200, sent...)}, 1},
	} {
		tr := recordedBy(tt.about, tt.list...)
		if got := attempts(tr, "a"); len(got) != tt.want {
			t.Errorf("%s: %q count", tt.name, labels(got))
		}
		if got := requests(tr, "a"); len(got) != 2 {
			t.Errorf("%s: %q came", tt.name, labels(got))
		}
	}
}

func TestAttemptsAreFoundByTheirLabels(t *testing.T) {
	tr := recorded(try("a", 0, 500), try("b #1", 0, 200, id("msg_2")), try("a", 5*time.Second, 200), try("a"+trapName, 0, 200), event("a", 1, 0, "msg_1", "msg_9"), event("a", 2, time.Second))
	if got := endpoints(tr); !slices.Equal(got, []string{"a", "b #1"}) {
		t.Errorf("the endpoints are %q", got)
	}
	if got := labels(everyAttempt(tr)); !slices.Equal(got, []string{"a #1", "a #2", "b #1 #1"}) {
		t.Errorf("all attempts are %q", got)
	}
	if got := labels(requests(tr, "a"+trapName)); !slices.Equal(got, []string{"a trap #1"}) {
		t.Errorf("in the trap are %q", got)
	}
	if got := byMessage(everyAttempt(tr)); len(got) != 2 || len(got[0]) != 2 || got[1][0].ID != "msg_2" {
		t.Errorf("by message: %+v", got)
	}
	got := published(tr, "a")
	if len(got) != 2 || !got[0].At.Equal(start) || !slices.Equal(got[0].IDs, []string{"msg_1", "msg_9"}) || len(got[1].IDs) != 0 {
		t.Errorf("published is %+v", got)
	}
}

func TestADelayIsJudgedByItsWindow(t *testing.T) {
	p, err := profile.Load("delivery-envelope")
	if err != nil {
		t.Fatal(err)
	}
	d := Declare(drive.About{}, p) // 0, 1 m, 5 m, … ±20 %, granularity 1 s
	for gap, want := range map[time.Duration]string{
		47 * time.Second: "47s, which is 1s early", 48 * time.Second: "", 72 * time.Second: "", 73 * time.Second: "", 74 * time.Second: "1m14s, which is 1s late",
	} {
		if got := d.outside(1, gap); got != want {
			t.Errorf("%v: %q", gap, got)
		}
	}
	if got := d.outside(1, 74*time.Second, time.Second); got != "" {
		t.Errorf("with a second of slack: %q", got)
	}
	if got := d.between(1); got != "48s to 1m13s" {
		t.Errorf("the window is %s", got)
	}
	if got, want := d.horizon(), d.until(6); got != want || got < 14*time.Hour {
		t.Errorf("the horizon is %v, the end of the sixth attempt %v", got, want)
	}
}

func TestWhatASenderDeclaresWins(t *testing.T) {
	p, err := profile.Load("standard-webhooks")
	if err != nil {
		t.Fatal(err)
	}
	short, low, high, limit := 2*time.Second, -0.5, 0.5, 7
	own := Declare(drive.About{
		Schedule: []time.Duration{0, time.Second}, Timeout: &short, JitterLow: &low, JitterHigh: &high, PerEndpointLimit: &limit, FinalStatuses: []int{401, 404},
		NotifyAfter: []time.Duration{time.Hour},
	}, p)
	if own.Timeout != short || own.JitterLow != low || own.JitterHigh != high || own.PerEndpoint != limit || len(own.Schedule) != 2 || len(own.Default) != 2 {
		t.Errorf("declared numbers are lost: %+v", own)
	}
	none := Declare(drive.About{}, p)
	if none.Timeout != 15*time.Second || len(none.Schedule) != 10 || none.Granularity != time.Second || none.DisableAfter != 5*24*time.Hour || len(none.Own) != 0 {
		t.Errorf("of a sender that declares nothing: %+v", none)
	}
	for _, d := range []Declared{own, none} {
		tr := &evidence.Transcript{Facts: d.Facts()}
		if got := declaredOf(tr); !slices.Equal(got.Schedule, d.Schedule) || got.JitterHigh != d.JitterHigh || got.Timeout != d.Timeout ||
			!slices.Equal(got.FinalStatuses, d.FinalStatuses) || !slices.Equal(got.NotifyAfter, d.NotifyAfter) || !slices.Equal(got.Own, d.Own) {
			t.Errorf("through the facts %+v becomes %+v", d, got)
		}
	}
	if !own.declares(factTimeout) || own.declares(factGranularity) {
		t.Errorf("its own are %q", own.Own)
	}
}
