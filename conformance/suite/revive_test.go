package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/wire"
)

// mortal is a subject that some deliveries end.
type mortal struct {
	mu      sync.Mutex
	dead    bool
	revived int
	log     []string // "scenario: fault" of each delivery, in order
}

// send delivers; a deadly delivery is never answered and ends the subject.
func (m *mortal) send(scenario string, deadly bool) wire.Exchange {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := wire.Exchange{Label: "probe", Response: &wire.Response{Status: 200}}
	switch {
	case m.dead:
		x.Response, x.Fault = nil, wire.FaultRefused
	case deadly:
		m.dead = true
		x.Response, x.Fault = nil, wire.FaultClosed
	}
	m.log = append(m.log, scenario+": "+x.Fault)
	return x
}

func (m *mortal) revive(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		m.revived++
	}
	m.dead = false
	return nil
}

// visit is a scenario that sends one delivery, and a second one after a deadly
// one, which finds nobody.
func (m *mortal) visit(name string, deadly func(visit int) bool) Scenario {
	visits := 0
	return Scenario{Name: name, Record: func(_ context.Context, r *Recorder) error {
		visits++
		r.Fact("died", strings.Join(r.Died(), ", "))
		r.Fact("visits", fmt.Sprint(visits))
		end := deadly(visits)
		r.Add(m.send(name, end))
		if end {
			x := m.send(name, false)
			x.Label = "afterwards"
			r.Add(x)
		}
		return nil
	}}
}

func never(int) bool       { return false }
func always(int) bool      { return true }
func firstTime(n int) bool { return n == 1 }

func TestADeathDisturbsNobodyElse(t *testing.T) {
	m := &mortal{}
	scenarios := []Scenario{m.visit("before", never), m.visit("deadly", always), m.visit("beside", never), m.visit("last", never)}
	scenarios[3].Alone = true
	got := Record(t.Context(), Config{SideBySide: 1, Revive: m.revive}, scenarios)
	if !slices.Equal(names(got), []string{"before", "deadly", "beside", "last"}) {
		t.Fatalf("recorded %q", names(got))
	}
	for i, visits := range []string{"1", "2", "2", "1"} {
		if got[i].Facts["visits"] != visits {
			t.Errorf("%s was recorded %s times, want %s", got[i].Scenario, got[i].Facts["visits"], visits)
		}
		if got[i].Gone || got[i].Partial || got[i].Error != "" {
			t.Errorf("%s is marked: %+v", got[i].Scenario, got[i])
		}
	}
	for _, i := range []int{0, 2, 3} {
		if x := got[i].Find("probe"); !x.OK() {
			t.Errorf("%s met %q", got[i].Scenario, x.Fault)
		}
	}
	if died := got[3].Facts["died"]; died != "deadly" {
		t.Errorf("the last scenario was told that %q ended the subject", died)
	}
	if m.revived != 2 {
		t.Errorf("the subject was brought back %d times, want once for each death", m.revived)
	}
}

func TestADeathThatDoesNotComeAgainIsTold(t *testing.T) {
	m := &mortal{}
	scenarios := []Scenario{m.visit("deadly once", firstTime), m.visit("last", never)}
	scenarios[1].Alone = true
	got := Record(t.Context(), Config{SideBySide: 1, Revive: m.revive}, scenarios)
	if died := got[1].Facts["died"]; died != NotReproduced {
		t.Errorf("the last scenario was told %q", died)
	}
	if x := got[0].Find("probe"); !x.OK() {
		t.Errorf("its first visit is kept: %q", x.Fault)
	}
}

func TestASubjectThatDoesNotComeBackIsGone(t *testing.T) {
	for name, revive := range map[string]func(context.Context) error{
		"as nobody can bring it back": nil,
		"as bringing it back fails":   func(context.Context) error { return errors.New("no such command") },
	} {
		t.Run(name, func(t *testing.T) {
			m := &mortal{}
			got := Record(t.Context(), Config{SideBySide: 1, Revive: revive}, []Scenario{m.visit("before", never), m.visit("deadly", always), m.visit("after", never)})
			for i, want := range []bool{false, true, true} {
				if got[i].Gone != want {
					t.Errorf("%s: gone is %t", got[i].Scenario, got[i].Gone)
				}
			}
		})
	}
}

func TestASubjectThatLivesIsNotVisitedTwice(t *testing.T) {
	m := &mortal{}
	dropped := Scenario{Name: "a connection dropped", Record: func(_ context.Context, r *Recorder) error {
		r.Add(wire.Exchange{Label: "probe", Fault: wire.FaultClosed})
		return nil
	}}
	revive := func(context.Context) error {
		t.Error("it was brought back though nothing was refused")
		return nil
	}
	got := Record(t.Context(), Config{Revive: revive}, []Scenario{m.visit("a", never), dropped, m.visit("b", never)})
	if len(got) != 3 || len(m.log) != 2 {
		t.Errorf("recorded %q, delivered %q", names(got), m.log)
	}
	if slices.ContainsFunc(got, func(tr evidence.Transcript) bool { return tr.Gone }) {
		t.Error("it is marked as gone")
	}
}

func TestASubjectThatDoesNotComeBackIsNotWaitedForAgainAndAgain(t *testing.T) {
	m := &mortal{}
	patient := 0
	revive := func(ctx context.Context) error {
		if _, bounded := ctx.Deadline(); !bounded {
			patient++
		}
		return errors.New("nothing there")
	}
	scenarios := []Scenario{m.visit("deadly", always)}
	for i := range 20 {
		s := m.visit(fmt.Sprint(i), never)
		s.Alone = i%2 == 0
		scenarios = append(scenarios, s)
	}
	Record(t.Context(), Config{SideBySide: 1, Revive: revive}, scenarios)
	if patient != 1 {
		t.Errorf("it was waited for in full %d times, want once", patient)
	}
}
