package sender

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// banned are the names that no file of this package may call or pass on, by what
// they are selected from. Time is that of the injected clock, and of that only
// what a mock does well.
func banned() map[string]string {
	why := map[string]string{}
	for _, name := range []string{"Now", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Since", "Until"} {
		why["time."+name] = "is the real clock; use the sender's"
	}
	for _, name := range []string{"WithTimeout", "WithDeadline", "WithTimeoutCause", "WithDeadlineCause"} {
		why["context."+name] = "is a deadline of the real clock; use AfterFunc and WithCancelCause"
	}
	return why
}

// bannedMethods are those of a clock.Clock and its timers, whatever variable
// holds them.
func bannedMethods() map[string]string {
	return map[string]string{
		"Ticker":       "costs a mock a step a tick, five real minutes for three days",
		"Tick":         "costs a mock a step a tick, and cannot be stopped",
		"Sleep":        "cannot be ended early",
		"After":        "cannot be stopped",
		"Reset":        "deadlocks a mock whose timer was not drained; make a new timer",
		"WithTimeout":  "reaches the dialer as a real deadline; use AfterFunc and WithCancelCause",
		"WithDeadline": "reaches the dialer as a real deadline; use AfterFunc and WithCancelCause",
	}
}

// times are methods of time.Time that are called like those of a clock.
func isTimes(call string, e *ast.SelectorExpr, parents []ast.Node) bool {
	if call != "After" {
		return false
	}
	// t.After(u) compares; clock.After(d) is only of use as a channel, which is
	// received from or passed to a select.
	for _, p := range parents {
		if u, ok := p.(*ast.UnaryExpr); ok && u.Op == token.ARROW {
			return false
		}
	}
	id, ok := e.X.(*ast.SelectorExpr)
	return !ok || !strings.EqualFold(id.Sel.Name, "clock")
}

func TestOnlyTheInjectedClockIsUsed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no source", err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range clockFaults(t, file, src) {
			t.Error(fault)
		}
	}
}

func TestTheLintSeesWhatItIsFor(t *testing.T) {
	for name, line := range map[string]string{
		"the real time":         `_ = time.Now()`,
		"the function itself":   `f := time.Now; _ = f`,
		"a sleep":               `time.Sleep(1)`,
		"a real timer":          `_ = time.NewTimer(1)`,
		"a real deadline":       `_, _ = context.WithTimeout(ctx, 1)`,
		"a ticker of the clock": `_ = s.clock.Ticker(1)`,
		"a tick of the clock":   `_ = s.clock.Tick(1)`,
		"a sleep of the clock":  `s.clock.Sleep(1)`,
		"a channel of it":       `<-c.After(1)`,
		"a channel kept":        `x := s.clock.After(1); _ = x`,
		"a reset":               `timer.Reset(1)`,
		"a deadline of it":      `_, _ = s.clock.WithTimeout(ctx, 1)`,
	} {
		if found := clockFaults(t, name, []byte("package p\nfunc f() { "+line+" }\n")); len(found) != 1 {
			t.Errorf("%s: %q", name, found)
		}
	}
	for name, line := range map[string]string{
		"the clock":    `_ = s.clock.Now()`,
		"its timer":    `_ = s.clock.AfterFunc(1, f)`,
		"a comparison": `_ = a.After(b)`,
		"a duration":   `_ = time.Second`,
	} {
		if found := clockFaults(t, name, []byte("package p\nfunc f() { "+line+" }\n")); len(found) != 0 {
			t.Errorf("%s: %q", name, found)
		}
	}
}

// clockFaults lists what a file does with time that it should not.
func clockFaults(t *testing.T, name string, src []byte) (faults []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	if err != nil {
		if _, ok := err.(*fs.PathError); ok {
			return nil // moved away in this moment
		}
		t.Fatal(err)
	}
	var parents []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			parents = parents[:len(parents)-1]
			return true
		}
		if e, ok := n.(*ast.SelectorExpr); ok {
			if why := verdict(e, parents); why != "" {
				faults = append(faults, set.Position(e.Pos()).String()+": "+why)
			}
		}
		parents = append(parents, n)
		return true
	})
	return faults
}

func verdict(e *ast.SelectorExpr, parents []ast.Node) string {
	name := e.Sel.Name
	if from, ok := e.X.(*ast.Ident); ok && (from.Name == "time" || from.Name == "context") {
		if why := banned()[from.Name+"."+name]; why != "" {
			return from.Name + "." + name + " " + why
		}
		return ""
	}
	if why := bannedMethods()[name]; why != "" && !isTimes(name, e, parents) {
		return name + " " + why
	}
	return ""
}
