package vectors_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// generator runs the generator with the folder of the vectors as given, and
// returns what it printed. Without Node it skips, or fails where Node must be there.
func generator(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		const unchecked = "Node is not installed: NOT CHECKED that vectors/data is what vectors/generate/generate.mjs writes"
		if os.Getenv("CI") != "" || os.Getenv("WHCONFORM_REQUIRE_NODE") != "" {
			t.Fatal(unchecked)
		}
		t.Skip(unchecked)
	}
	script := filepath.Join(dir, "generate", "generate.mjs")
	out, err := exec.CommandContext(t.Context(), node, append([]string{script}, args...)...).CombinedOutput()
	return string(out), err
}

func TestTheFilesAreWhatTheGeneratorWrites(t *testing.T) {
	out, err := generator(t, ".", "--check")
	if err != nil || out != "" {
		t.Errorf("generate.mjs --check: %v\n%s", err, out)
	}
}

func TestTheGeneratorNamesTheFirstLineThatDiffers(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "generate"), os.DirFS("generate")); err != nil {
		t.Fatal(err)
	}
	if out, err := generator(t, dir, "--check"); err == nil || !strings.Contains(out, "cannot be read") {
		t.Errorf("without a folder: %v, %s", err, out)
	}
	if out, err := generator(t, dir); err != nil || out != "" {
		t.Fatalf("writing: %v, %s", err, out)
	}
	file := filepath.Join(dir, "data", "delivery-envelope-sign.json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(data), `"profile": "delivery-envelope"`, `"profile": "delivery"`, 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := generator(t, dir, "--check"); err == nil || !strings.HasPrefix(out, "delivery-envelope-sign.json:4: ") {
		t.Errorf("after a change in line 4: %v, %s", err, out)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if out, err := generator(t, dir, "--check"); err == nil || !strings.Contains(out, "is missing") {
		t.Errorf("without a file: %v, %s", err, out)
	}
}

func TestTheGeneratorRefusesArgumentsItDoesNotKnow(t *testing.T) {
	if out, err := generator(t, ".", "--force"); err == nil || !strings.Contains(out, "usage") {
		t.Errorf("%v, %s", err, out)
	}
}
