package vectors

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A CopyOption changes what [Copy] does.
type CopyOption func(*copying)

type copying struct{ overwrite bool }

// Overwrite lets [Copy] replace files that differ.
func Overwrite() CopyOption {
	return func(c *copying) { c.overwrite = true }
}

// ExistsError is why [Copy] wrote nothing: files of the same names with other
// contents.
type ExistsError struct {
	Paths []string // of all of them
}

// Error names the files.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("would overwrite files that differ: %s", strings.Join(e.Paths, ", "))
}

// Copy writes the vectors, their schema and a README to dir: dir/data/*.json,
// dir/schema.json, dir/README.md. It makes the folders that are missing and
// returns the paths of the files it wrote, those that were equal already not
// among them.
//
// Where a file differs, Copy writes nothing at all and returns an
// *[ExistsError], unless the option [Overwrite] is given. Each file is replaced
// at once, never half written.
func Copy(dir string, options ...CopyOption) ([]string, error) {
	var c copying
	for _, o := range options {
		o(&c)
	}
	due, err := c.plan(dir)
	if err != nil {
		return nil, err
	}
	var written []string
	for _, name := range due {
		target := filepath.Join(dir, filepath.FromSlash(name))
		if err := replace(target, name); err != nil {
			return written, fmt.Errorf("copying the vectors to %s: %w", target, err)
		}
		written = append(written, target)
	}
	return written, nil
}

// plan names the files that are to be written, by their names in content.
func (c *copying) plan(dir string) ([]string, error) {
	var due, differ []string
	err := fs.WalkDir(content, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		want, err := content.ReadFile(name)
		if err != nil {
			return err
		}
		target := filepath.Join(dir, filepath.FromSlash(name))
		got, err := os.ReadFile(target)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			due = append(due, name)
		case err != nil:
			return err
		case !bytes.Equal(got, want):
			due = append(due, name)
			differ = append(differ, target)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for vectors in %s: %w", dir, err)
	}
	if len(differ) > 0 && !c.overwrite {
		return nil, &ExistsError{Paths: differ}
	}
	return due, nil
}

// replace writes the embedded file called name to target, by way of a file
// beside it: whoever reads target sees the old or the new, whole.
func replace(target, name string) error {
	data, err := content.ReadFile(name)
	if err != nil {
		return err
	}
	folder := filepath.Dir(target)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	beside, err := os.CreateTemp(folder, "."+filepath.Base(target)+".*")
	if err != nil {
		return err
	}
	_, err = beside.Write(data)
	err = errors.Join(err, beside.Chmod(0o644), beside.Close())
	if err == nil {
		err = os.Rename(beside.Name(), target)
	}
	if err != nil {
		return errors.Join(err, os.Remove(beside.Name()))
	}
	return nil
}
