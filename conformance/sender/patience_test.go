package sender

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/suite"
)

// waiting is a session that only knows its numbers.
func waiting(mode string, about drive.About) *session {
	t := recordedBy(about)
	e := &Env{Mode: mode, Declared: declaredOf(t), Bounds: DefaultBounds(mode)}
	return &session{Env: e, rec: &suite.Recorder{}}
}

func TestRealTimeIsWaitedForWithPatience(t *testing.T) {
	virtual, real := waiting(Virtual, drive.About{}), waiting(Scaled, drive.About{})
	for _, tt := range []struct {
		d             time.Duration
		virtual, real bool
	}{{minute, true, true}, {2 * minute, true, true}, {3 * minute, true, false}, {60 * day, true, false}, {61 * day, false, false}} {
		if virtual.affords(tt.d) != tt.virtual || real.affords(tt.d) != tt.real {
			t.Errorf("%v: %t, %t", tt.d, virtual.affords(tt.d), real.affords(tt.d))
		}
	}
}

func TestWhenAnAttemptHasBegunAtTheLatest(t *testing.T) {
	d := declaredOf(recorded()) // 0, 5 s, 5 min …, +10 %, granularity 1 s
	for n, want := range []time.Duration{second, 7500 * time.Millisecond, 338500 * time.Millisecond} {
		if got := d.begins(n); got != want {
			t.Errorf("attempt %d: %v, want %v", n+1, got, want)
		}
	}
	if d.begins(9) != d.begins(99) {
		t.Error("more attempts than the schedule has take longer")
	}
}

func TestWhenAnAttemptWasGivenUpAtTheLatest(t *testing.T) {
	if got := declaredOf(recorded()).gaveUpBy(); got != 31*second {
		t.Errorf("nothing is declared: %v", got)
	}
	if got := declaredOf(recordedBy(timing15())).gaveUpBy(); got != 15*second {
		t.Errorf("15 s are declared: %v", got)
	}
}

// A clock that is moved in steps makes attempts look late, the first one of a
// pair as well as the second.
func TestADelayIsAsCoarseAsTheClock(t *testing.T) {
	coarse := func(d time.Duration) func(*attempt) { return func(a *attempt) { a.Window = d } }
	pair := func(gap, before, next time.Duration) string {
		got := attempts(recordedBy(timing15(), try("a", 0, 500, coarse(before)), try("a", gap, 500, coarse(next))), "a")
		return declaredOf(recordedBy(timing15())).wrong(1, &got[0], &got[1])
	}
	for _, tt := range []struct {
		gap, before, next time.Duration
		right             bool
	}{
		{5200 * time.Millisecond, 0, 0, true}, {6 * second, 0, 0, false}, {6 * second, 0, second, true}, {7 * second, 0, second, false},
		{4500 * time.Millisecond, 0, second, false}, {4500 * time.Millisecond, second, 0, true}, {3500 * time.Millisecond, second, 0, false},
	} {
		if got := pair(tt.gap, tt.before, tt.next); (got == "") != tt.right {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

func TestThingsAreDoneSideBySide(t *testing.T) {
	var sum atomic.Int64
	sideBySide(100, func(i int) { sum.Add(int64(i)) })
	if sum.Load() != 4950 {
		t.Errorf("the sum is %d", sum.Load())
	}
	sideBySide(0, func(int) { t.Error("nothing is something") })
}
