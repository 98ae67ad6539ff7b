package receiver

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// disk mounts a file system of its own, in memory, of some bytes. Where that is
// not allowed the test is skipped: another one covers the same without it.
func disk(t *testing.T, options string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("mounting a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestAFullDiskRefusesUntilThereIsRoom(t *testing.T) {
	dir := disk(t, "size=2m")
	o, logs := logged(mockClock())
	inbox := openFile(t, filepath.Join(dir, "inbox.db"), o)
	add(t, inbox, "before")
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil { // until nothing fits any more
		_, err = f.Write(make([]byte, 4096))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, inbox)
	told(t, logs, "full", false)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if !add(t, inbox, "after") || add(t, inbox, "before") {
		t.Error("afterwards it holds other messages than it should")
	}
	told(t, logs, "full", true)
}

func TestAReadOnlyDiskIsRefused(t *testing.T) {
	dir := disk(t, "size=8m")
	path := filepath.Join(dir, "inbox.db")
	inbox := openFile(t, path, Options{Clock: mockClock()})
	if err := inbox.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err := OpenSQLite(context.Background(), path, Options{Clock: mockClock()})
	// The log beside the database cannot be made.
	if err == nil || !strings.Contains(err.Error(), "it "+faultUnopened) {
		t.Errorf("opening it: %v, want one that says it %s", err, faultUnopened)
	}
}
