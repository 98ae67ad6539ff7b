package sender

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one numbered step of the schema.
type migration struct {
	version int
	name    string // of its file
	sql     string
}

// SchemaError says that a database belongs to a newer version of the program.
// Writing to it could break what the newer version relies on.
type SchemaError struct{ Found, Known int }

// Error implements error.
func (e *SchemaError) Error() string {
	return fmt.Sprintf("the schema has version %d and this program knows versions up to %d: it was opened by a newer one. Start that, or restore the copy made before the upgrade", e.Found, e.Known)
}

// migrations reads the numbered files of a folder, NNNN_name.sql, in order.
func migrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("listing the migrations: %w", err)
	}
	all := make([]migration, 0, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading a migration: %w", err)
		}
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("reading the migration %s: its name does not begin with a number", name)
		}
		all = append(all, migration{version, path.Base(name), string(text)})
	}
	slices.SortFunc(all, func(a, b migration) int { return cmp.Compare(a.version, b.version) })
	return all, nil
}

// migrate brings the schema up to the newest of the migrations in files.
//
// Each migration runs in a transaction together with the row that notes it, so
// that a crash leaves it done or not begun, never half done. transaction must
// keep others out from its begin to its commit: two processes that start at one
// moment then take turns, and the second finds the work done.
func migrate(ctx context.Context, files fs.FS, now time.Time, transaction func(context.Context, func(context.Context, Tx) error) error) error {
	all, err := migrations(files)
	if err != nil {
		return err
	}
	known := all[len(all)-1].version
	for _, m := range all {
		err := transaction(ctx, func(ctx context.Context, tx Tx) error {
			found, err := schemaVersion(ctx, tx)
			switch {
			case err != nil:
				return err
			case found > known:
				return &SchemaError{Found: found, Known: known}
			case found >= m.version:
				return nil
			}
			return apply(ctx, tx, m, now)
		})
		if err != nil {
			return fmt.Errorf("bringing the schema to version %d (%s): %w", m.version, m.name, err)
		}
	}
	return nil
}

// schemaVersion is the number of the newest migration that was applied, 0 in an
// empty database.
func schemaVersion(ctx context.Context, tx Tx) (version int, err error) {
	_, err = tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS schema_migrations (
		version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`)
	if err != nil {
		return 0, fmt.Errorf("noting migrations: %w", err)
	}
	err = tx.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM schema_migrations`).Scan(&version)
	if err != nil {
		return 0, fmt.Errorf("reading the schema's version: %w", err)
	}
	return version, nil
}

func apply(ctx context.Context, tx Tx, m migration, now time.Time) error {
	if _, err := tx.ExecContext(ctx, m.sql); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO schema_migrations (version, name, applied_at) VALUES ($1, $2, $3)`,
		m.version, m.name, now.UnixNano())
	return err
}
