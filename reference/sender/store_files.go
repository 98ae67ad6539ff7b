package sender

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// errRemoved is the fault of a database whose file is no longer where it was.
var errRemoved = errors.New("the file was removed or replaced while it was in use")

// files are the database's files as they were opened.
//
// SQLite in WAL mode does not notice when somebody removes the file under it: it
// goes on to write into what has no name any more and is gone with the process,
// and every confirmation meanwhile is a lie. So the names are looked up around each
// commit; that costs some microseconds beside the milliseconds of a disk.
type files struct {
	path     string
	opened   map[string]os.FileInfo
	rescued  string // where the rows were saved to, after a removal
	rescueOf error  // why they could not be
}

func seeFiles(path string) (*files, error) {
	f := &files{path: path, opened: map[string]os.FileInfo{}}
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("looking at the file just opened: %w", err)
		}
		f.opened[name] = info
	}
	return f, nil
}

// present returns [errRemoved], with the file's name, unless all is in place.
func (f *files) present() error {
	for name, opened := range f.opened {
		if now, err := os.Stat(name); err != nil || !os.SameFile(opened, now) {
			return fmt.Errorf("%w: %s", errRemoved, name)
		}
	}
	return nil
}

// present is files.present, and saves the rows when it fails for the first time:
// what was published is still there as long as this process holds the file
// open, and no longer. Only the writer calls it, outside a transaction.
func (st *store) present(ctx context.Context) error {
	f := st.files
	err := f.present()
	if err == nil {
		f.rescued, f.rescueOf = "", nil // moved back, if it was away
		return nil
	}
	if f.rescued == "" && f.rescueOf == nil {
		to := fmt.Sprintf("%s.rescued-%d", f.path, st.clock.Now().Unix())
		createPrivate(to)
		if _, f.rescueOf = st.session.conn.ExecContext(ctx, "VACUUM INTO $1", to); f.rescueOf == nil {
			f.rescued = to
		}
	}
	if f.rescueOf != nil {
		return fmt.Errorf("%w; saving what it held: %w", err, f.rescueOf)
	}
	return fmt.Errorf("%w; what it held is saved in %s: stop the sender, move that to %s and start again", err, f.rescued, f.path)
}

// createPrivate makes an empty file that only its owner may read, for events may
// be about people; SQLite goes by the file it finds. Whatever prevents that
// prevents SQLite too, and its error says more.
func createPrivate(path string) {
	// Never one that exists: closing it would drop the locks that other
	// connections of this process hold on it.
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err == nil {
		_ = f.Close()
	}
}
