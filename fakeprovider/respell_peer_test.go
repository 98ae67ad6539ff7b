package fakeprovider_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/whconform/whconform/fakeprovider"
)

var update = flag.Bool("update", false, "write the golden files anew, from the real libraries named by WHCONFORM_PEER_…")

// respellCorpus are the bodies that every serializer is compared on with the
// real library: each spelling, and what libraries are known to differ in.
func respellCorpus(t testing.TB) []string {
	t.Helper()
	event := []byte(`{"data":{"amount":4200,"currency":"EUR"},"timestamp":"2026-01-02T03:04:05Z","type":"invoice.paid"}`)
	out := []string{string(event)}
	for _, s := range fakeprovider.Spellings() {
		body, err := s.Spell(event)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(body))
	}
	out = append(out,
		`[]`, `{}`, `[[],{}]`, ` [ 1 , 2 ] `, `"x"`, `null`, `true`, `false`, `{"a":{"b":[]}}`,
		`{"a":1,"b":2,"a":3}`, `{"a":null}`, `[null]`, `{"":1}`, `{"":{"":null}}`,
		`{"0":1,"1":2}`, `{"1":1,"0":2}`, `{"0":{"0":{}}}`, `{"10":1,"9":2,"b":3,"1":4}`, `{"05":1,"5":2,"-1":3,"1.0":4}`,
		`{"4294967294":1,"4294967295":2,"0":3,"4294967296":4}`, `{"__proto__":1,"a":2}`, `{"z":1,"é":2,"A":3,"a":4}`,
		"\"\u007f\u0080\u0085\u00a0\u00ad\ufeff\u2028\u2029\uffff\"", "\"\U0001f600\U0010ffff\"",
		`"\u0000\u0001\u0007\b\t\n\u000b\f\r\u001f\u007f"`, `"\"\\\/'`+"`"+`+=<>&"`, `{"<a>&'":"</script>"}`, `"\uD83D\uDE00\u00E9"`,
		`"2026-01-02T03:04:05.000Z"`, `"2026-01-02T03:04:05.120Z"`, `"2026-01-02T03:04:05.1234567Z"`, `"2026-01-02T03:04:05.12345678Z"`,
		`"2026-01-02T03:04:05+02:00"`, `"2026-01-02T03:04:05-0830"`, `"2026-01-02T03:04:05-08"`, `"2026-01-02T03:04:05"`, `"2026-01-02T03:04:05z"`,
		`"2026-01-02"`, `"2026-02-30T03:04:05Z"`, `"2026-01-02T03:04:05.Z"`, `"2026-01-02T03:04Z"`, `"2026-01-02T03:04:05 Z"`, `"2026-01-02T03:04:05.1+00:00"`,
		`"0001-01-01T00:00:00+02:00"`, `"9999-12-31T23:59:59-02:00"`, `"/Date(1700000000000)/"`, `"\/Date(1700000000000+0200)\/"`, `"/Date(abc)/"`, `"/Date(-1)/"`,
		`{"2026-01-02T03:04:05.5Z":1}`,
	)
	numbers := []string{
		"0", "1", "-1", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
		"123456789012345678901234567890", "0.0", "-0.0", "0e0", "-0e5", "0.1", "-0.5", "4.35", "10.50", "100.0", "1E5", "1e+5", "1.5e-3",
		"123456789.125", "9007199254740993.0", "123456789012345678901234567890.5", "1.7976931348623157e308", "5e-324", "2.2250738585072014e-308",
		"9999999.5", "12345678.5", "0.3", "1.10", "1e400", "-1e400",
	}
	for e := -9; e <= 21; e++ {
		numbers = append(numbers, fmt.Sprintf("1e%d", e), fmt.Sprintf("1.25e%d", e), fmt.Sprintf("-9.75e%d", e))
	}
	for _, n := range numbers {
		out = append(out, n, "["+n+","+n+"]")
	}
	return out
}

// peerScripts read a body a line, in base64, and answer with what the library
// makes of it, in base64, or with ERR.
var peerScripts = map[string][]string{
	"javascript": {"node", "-e", `
for (const l of require('fs').readFileSync(0, 'latin1').trim().split('\n')) {
  try { console.log(Buffer.from(JSON.stringify(JSON.parse(Buffer.from(l, 'base64').toString()))).toString('base64')) } catch (e) { console.log('ERR') }
}`},
	"python": {"python3", "-c", `
import sys, json, base64
for l in sys.stdin:
    try: print(base64.b64encode(json.dumps(json.loads(base64.b64decode(l))).encode()).decode())
    except Exception: print('ERR')`},
	"python-compact": {"python3", "-c", `
import sys, json, base64
for l in sys.stdin:
    try: print(base64.b64encode(json.dumps(json.loads(base64.b64decode(l)), ensure_ascii=False, allow_nan=False, indent=None, separators=(",", ":")).encode("utf-8")).decode())
    except Exception: print('ERR')`},
	"php": {"php", "-n", "-d", "serialize_precision=-1", "-d", "precision=14", "-r", `
while (($l = fgets(STDIN)) !== false) {
  $v = json_decode(base64_decode($l), true);
  $out = json_last_error() === JSON_ERROR_NONE ? json_encode($v) : false;
  echo $out === false ? 'ERR' : base64_encode($out), "\n";
}`},
	"ruby": {"ruby", "-rjson", "-rbase64", "-e", `
STDIN.each_line { |l| puts(begin; Base64.strict_encode64(JSON.generate(JSON.parse(Base64.decode64(l).force_encoding('UTF-8')))); rescue StandardError; 'ERR'; end) }`},
	"rails": {"ruby", "-rjson", "-rbase64", "-e", `
require 'logger'
require 'active_support'
require 'active_support/json'
STDIN.each_line { |l| puts(begin; Base64.strict_encode64(ActiveSupport::JSON.encode(JSON.parse(Base64.decode64(l).force_encoding('UTF-8')))); rescue StandardError; 'ERR'; end) }`},
}

func TestRespellWritesWhatTheRealLibraryWrites(t *testing.T) {
	corpus := respellCorpus(t)
	for name, command := range peerScripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requirePeer(t, name, command)
			compare(t, name, corpus, runPeer(t, command, corpus))
		})
	}
}

// requirePeer skips loudly where a runtime is not installed; in CI, Node and
// Python must be.
func requirePeer(t *testing.T, name string, command []string) {
	t.Helper()
	_, err := exec.LookPath(command[0])
	if err == nil && name == "rails" {
		err = exec.Command("ruby", "-e", "require 'logger'; require 'active_support'").Run()
	}
	if err == nil && name == "ruby" && exec.Command("ruby", "-rjson", "-e", "exit Gem::Version.new(JSON::VERSION) < Gem::Version.new('2.10')").Run() != nil {
		t.Skip("NOT CHECKED: respelling as ruby; the gem json installed is newer than the one imitated")
	}
	if err == nil {
		return
	}
	if os.Getenv("CI") != "" && (command[0] == "node" || command[0] == "python3") {
		t.Fatalf("respelling as %s cannot be checked: %v", name, err)
	}
	t.Skipf("NOT CHECKED: respelling as %s against the real library: %v", name, err)
}

// runPeer gives the corpus to a command and returns its answers.
func runPeer(t *testing.T, command, corpus []string) []string {
	t.Helper()
	var in bytes.Buffer
	for _, body := range corpus {
		in.WriteString(base64.StdEncoding.EncodeToString([]byte(body)) + "\n")
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C.UTF-8")
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running %s: %v", command[0], err)
	}
	var answers []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if line != "ERR" {
			text, err := base64.StdEncoding.DecodeString(line)
			if err != nil {
				t.Fatalf("the answer of %s is not base64: %q", command[0], line)
			}
			line = string(text)
		}
		answers = append(answers, line)
	}
	if len(answers) != len(corpus) {
		t.Fatalf("%d answers to %d bodies", len(answers), len(corpus))
	}
	return answers
}

// compare compares what Respell writes with what the library wrote.
func compare(t *testing.T, name string, corpus, want []string) {
	t.Helper()
	for i, body := range corpus {
		got := "ERR"
		if out, err := fakeprovider.Respell(name, []byte(body)); err == nil {
			got = string(out)
		}
		if got != want[i] {
			t.Errorf("%s of %+q:\n got %+q\nwant %+q", name, body, got, want[i])
		}
	}
}

// The libraries of Java and .NET are no part of what this project's developers
// have at hand, so their answers are kept in testdata/respell. To make them
// anew: build the programs in testdata/peers, name their commands, and update:
//
//	WHCONFORM_PEER_JACKSON='java -cp … Peers jackson' go test ./fakeprovider -run Golden -update
func TestRespellWritesWhatTheGoldenFilesSay(t *testing.T) {
	for _, name := range []string{"jackson", "gson", "dotnet", "newtonsoft"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "respell", name+".txt")
			if command := os.Getenv("WHCONFORM_PEER_" + strings.ToUpper(name)); *update && command != "" {
				corpus := slices.DeleteFunc(respellCorpus(t), func(body string) bool { return slices.Contains(newerDiffers(name), body) })
				writeGolden(t, path, corpus, runPeer(t, strings.Fields(command), corpus))
			}
			corpus, want := readGolden(t, path)
			compare(t, name, corpus, want)
		})
	}
}

// newerDiffers are bodies on which the library kept in a golden file is known to
// write otherwise than the release that is imitated. They stand in
// TestRespellFollowsTheNewerNewtonsoft.
func newerDiffers(name string) []string {
	if name != "newtonsoft" {
		return nil
	}
	out := []string{`{"a":1,"b":2,"a":3}`}
	for _, n := range []string{"-0.0", "-0e5", "5e-324", "1e400", "-1e400", "1e15", "1.25e15", "-9.75e15", "1e16", "1.25e16", "-9.75e16"} {
		out = append(out, n, "["+n+","+n+"]")
	}
	return out
}

func TestRespellFollowsTheNewerNewtonsoft(t *testing.T) {
	// Json.NET 13 on .NET Core 3.1; the floats are what its
	// double.ToString("R") writes.
	for body, want := range map[string]string{
		`{"a":1,"b":2,"a":3}`: `{"a":3,"b":2}`,
		`-0.0`:                `-0.0`,
		`5e-324`:              `5E-324`,
		`1e400`:               `"Infinity"`,
		`-1e400`:              `"-Infinity"`,
		`1e15`:                `1000000000000000.0`,
		`1.25e16`:             `12500000000000000.0`,
		`1e17`:                `1E+17`,
	} {
		got, err := fakeprovider.Respell("newtonsoft", []byte(body))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", body, got, err, want)
		}
	}
}

// writeGolden writes a pair of quoted lines for each body, and keeps the
// comments at the head of the file.
func writeGolden(t *testing.T, path string, corpus, answers []string) {
	t.Helper()
	var out strings.Builder
	old, _ := os.ReadFile(path)
	for line := range strings.Lines(string(old)) {
		if strings.HasPrefix(line, "#") {
			out.WriteString(line)
		}
	}
	for i := range corpus {
		fmt.Fprintf(&out, "%+q\n\t%+q\n", corpus[i], answers[i])
	}
	if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readGolden(t *testing.T, path string) (corpus, answers []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		text, err := strconv.Unquote(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
		if strings.HasPrefix(line, "\t") {
			answers = append(answers, text)
		} else {
			corpus = append(corpus, text)
		}
	}
	if len(corpus) < 100 || len(corpus) != len(answers) {
		t.Fatalf("%s: %d bodies and %d answers", path, len(corpus), len(answers))
	}
	return corpus, answers
}

func TestRespellAgreesWithNodeAndPythonOnFloats(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT CHECKED: floats, in short mode")
	}
	var corpus []string
	for i := range 2000 {
		// Bit patterns spread over all exponents.
		f := math.Float64frombits(uint64(i+1) * 0x9e3779b97f4a7c15)
		if !math.IsNaN(f) && !math.IsInf(f, 0) {
			corpus = append(corpus, strconv.FormatFloat(f, 'e', -1, 64))
		}
	}
	for _, name := range []string{"javascript", "python", "php", "ruby"} {
		t.Run(name, func(t *testing.T) {
			requirePeer(t, name, peerScripts[name])
			compare(t, name, corpus, runPeer(t, peerScripts[name], corpus))
		})
	}
}
