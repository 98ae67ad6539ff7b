package vectors_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/whconform/whconform/vectors"
)

func TestCopyWritesDataSchemaAndReadme(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	written, err := vectors.Copy(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(vectors.Names()) + 2; len(written) != want {
		t.Errorf("wrote %d files, want %d: %q", len(written), want, written)
	}
	for _, name := range []string{"README.md", "schema.json", "data/standard-webhooks-v1-sign.json"} {
		want, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s is not a copy: %v", name, err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "data"))
	if err != nil || len(entries) != len(vectors.Names()) {
		t.Errorf("data holds %d files: %v", len(entries), err)
	}
}

func TestCopyLeavesEqualFilesAlone(t *testing.T) {
	dir := t.TempDir()
	if _, err := vectors.Copy(dir); err != nil {
		t.Fatal(err)
	}
	written, err := vectors.Copy(dir)
	if err != nil || len(written) != 0 {
		t.Errorf("second copy: wrote %q, %v", written, err)
	}
}

func TestCopyWritesNothingWhereAFileDiffers(t *testing.T) {
	dir := t.TempDir()
	readme := filepath.Join(dir, "README.md")
	if err := os.WriteFile(readme, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	written, err := vectors.Copy(dir)
	var exists *vectors.ExistsError
	if !errors.As(err, &exists) || len(exists.Paths) != 1 || exists.Paths[0] != readme || len(written) != 0 {
		t.Fatalf("wrote %q, %v", written, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %d entries: %v", len(entries), err)
	}
	if data, err := os.ReadFile(readme); err != nil || string(data) != "mine" {
		t.Errorf("README.md is %q: %v", data, err)
	}

	written, err = vectors.Copy(dir, vectors.Overwrite())
	if err != nil || len(written) != len(vectors.Names())+2 {
		t.Errorf("overwriting: wrote %d files, %v", len(written), err)
	}
}

func TestCopyReportsAFolderInAFilesPlace(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "README.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	if written, err := vectors.Copy(dir, vectors.Overwrite()); err == nil {
		t.Errorf("wrote %q", written)
	}
}
