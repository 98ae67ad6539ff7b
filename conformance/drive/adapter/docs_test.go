package adapter

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// document is docs/adapter-protocol.md.
func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/adapter-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every message that the document shows is one of the schema.
func TestTheMessagesInTheDocumentAreValid(t *testing.T) {
	message := compiled(t, "")
	shown := 0
	for line := range strings.Lines(document(t)) {
		line = strings.TrimLeft(line, "→← ")
		if strings.HasPrefix(line, `{"jsonrpc"`) {
			shown++
			valid(t, message, line)
		}
	}
	if shown < 10 {
		t.Errorf("it shows %d messages", shown)
	}
}

// The document names every method of a receiver's adapter and every fault that
// a peer can be blamed for.
func TestTheDocumentIsComplete(t *testing.T) {
	text := document(t)
	for _, method := range []string{MethodInitialize, MethodProcessed, MethodState, MethodFailOnce, MethodAdvance, MethodShutdown, MethodCancel} {
		if !strings.Contains(text, "### `"+method+"`\n") {
			t.Errorf("there is no section on %s", method)
		}
	}
	for _, k := range []Kind{Banner, Garbage, WrongID, DoubledID, LongLine, Died, CutLine, GaveUp, Unread, Silent, BadResult, Version, BadStatus, NoContact} {
		if !strings.Contains(text, "| `"+string(k)+"`") {
			t.Errorf("it does not explain %s", k)
		}
	}
}

// The adapter that the document gives to copy works.
func TestTheAdapterInTheDocumentWorks(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT TESTED HERE: the Python adapter of docs/adapter-protocol.md, as python3 is not installed")
	}
	found := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(document(t))
	if found == nil {
		t.Fatal("there is none")
	}
	database := t.TempDir() + "/shop.db"
	const setUp = "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as db:\n" +
		"  db.execute('CREATE TABLE ledger (event_id TEXT)')\n  db.executemany('INSERT INTO ledger VALUES (?)', [('evt_1',), ('evt_1',)])"
	if out, err := exec.Command(python, "-c", setUp, database).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	noLeaks(t)
	p, err := Start(Command{Args: []string{python, "-c", found[1]}, Env: append(os.Environ(), "SHOP_DATABASE="+database)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), p, InitializeParams{Profile: "standard-webhooks"})
	if err != nil {
		_ = p.Close(t.Context())
		t.Fatal(err)
	}
	if !slices.Equal(s.About.Capabilities, []string{MethodProcessed}) {
		t.Errorf("it told %+v", s.About)
	}
	for id, want := range map[string]int{"evt_1": 2, "evt_2": 0} {
		if got, err := s.Processed(t.Context(), id); err != nil || got.Processed != want {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
