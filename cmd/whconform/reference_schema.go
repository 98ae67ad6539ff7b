package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Under the suite the reference is started several times, on state folders that
// keep one receiver apart from another, and all of them may be given one
// PostgreSQL database. There a schema stands for the folder.

// schemaTimeout bounds what is done about schemas: a server that does not answer
// is not waited for longer than a start may take.
const schemaTimeout = 10 * time.Second

func isPostgres(db string) bool {
	return strings.HasPrefix(db, "postgres://") || strings.HasPrefix(db, "postgresql://")
}

// inSchema makes the schema of a state folder, unless it is there, and returns
// the database's URL with it.
func inSchema(ctx context.Context, db, state string) (string, error) {
	u, err := url.Parse(db)
	if err != nil {
		return "", errUnreadable
	}
	schema := schemaOf(state)
	// Two that start at one moment: the second finds it made.
	err = administer(ctx, db, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SELECT pg_advisory_lock(hashtext($1))", schema)
		if err == nil {
			_, err = c.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schema}.Sanitize())
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("making the schema %s: %w", schema, err)
	}
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// dropSchemas removes the schema of a state folder and those of the folders in
// it.
func dropSchemas(ctx context.Context, db, state string) error {
	first := schemaOf(state)
	err := administer(ctx, db, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, "SELECT nspname FROM pg_namespace WHERE nspname = $1 OR starts_with(nspname, $1 || '_')", first)
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, name := range names {
			if _, err := c.Exec(ctx, "DROP SCHEMA "+pgx.Identifier{name}.Sanitize()+" CASCADE"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("removing the receiver's schemas: %w", err)
	}
	return nil
}

// schemaOf is the name that stands for a state folder: its own behind that of
// the folder it is in, if that is one, too.
func schemaOf(state string) string {
	name := filepath.Base(state)
	if parent := filepath.Base(filepath.Dir(state)); strings.HasPrefix(parent, "whconform-") {
		name = parent + "_" + name
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(name))
	const longest = 63 // PostgreSQL cuts the rest off in silence
	return name[max(0, len(name)-longest):]
}

// errUnreadable shows nothing of the address: what cannot be read may be the
// password.
var errUnreadable = errors.New("the PostgreSQL address cannot be read (it is not shown, since it may hold a password): write postgres://user:password@host:5432/database")

// administer does something on a connection of its own.
func administer(ctx context.Context, db string, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	config, err := pgx.ParseConfig(db)
	if err != nil {
		return errUnreadable
	}
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	return errors.Join(do(ctx, c), c.Close(context.WithoutCancel(ctx)))
}
