package receiver

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestAPostgresAddressThatLosesEventsIsRefused(t *testing.T) {
	for _, c := range []struct{ name, dsn, want string }{
		{"synchronous_commit turned off", "postgres://user:secret@127.0.0.1/inbox?synchronous_commit=off", "synchronous_commit"},
		{"no address, with a password in it", "postgres://user:sec/ret@:host:1/inbox", "cannot be read"},
		{"a number that is none", "host=127.0.0.1 password=secret port=secret", "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := OpenPostgres(context.Background(), c.dsn, Options{Clock: mockClock()})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("opening it: %v, want an error about %q", err, c.want)
			}
			if strings.Contains(err.Error(), "sec") {
				t.Errorf("the error holds a part of the password: %v", err)
			}
		})
	}
}

func TestAPostgresNobodyAnswersAtIsNamed(t *testing.T) {
	_, err := OpenPostgres(context.Background(), "postgres://user:secret@127.0.0.1:1/inbox?sslmode=disable", Options{Clock: mockClock()})
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1/inbox") || strings.Contains(err.Error(), "secret") {
		t.Errorf("opening it: %v", err)
	}
}

func TestCommitsReachTheDiskWhateverTheServersDefault(t *testing.T) {
	dsn := newDatabase(t)
	inbox := openDatabase(t, dsn, Options{Clock: mockClock()})
	name := databaseOf(inbox)
	administer(t, "ALTER DATABASE "+name+" SET synchronous_commit = off")
	again := openDatabase(t, dsn, Options{Clock: mockClock()})
	var value string
	if err := again.db.reader().QueryRowContext(context.Background(), "SHOW synchronous_commit").Scan(&value); err != nil || value != "on" {
		t.Errorf("it is %q, %v; want on", value, err)
	}
}

func TestInstancesPassByWhatAnotherOneWorksOn(t *testing.T) {
	dsn := newDatabase(t)
	working, proceed := make(chan string, 10), make(chan struct{})
	o := Options{Clock: mockClock(), Handler: noting(func(m Message) error {
		working <- m.ID
		if m.ID == "slow" {
			<-proceed
		}
		return nil
	})}
	first, second := openDatabase(t, dsn, o), openDatabase(t, dsn, o)
	run(t, first)
	add(t, first, "slow")
	if id := <-working; id != "slow" {
		t.Fatalf("worked on %s", id)
	}
	run(t, second)
	add(t, second, "quick")
	awaitState(t, second, "quick", StatusProcessed)
	close(proceed)
	awaitState(t, first, "slow", StatusProcessed)
	if id := <-working; id != "quick" || len(working) != 0 {
		t.Errorf("then worked on %s, and %d more", id, len(working))
	}
}

func TestALockedTableRefusesUntilItIsFree(t *testing.T) {
	t.Parallel() // it waits, mostly
	dsn := newDatabase(t)
	o, logs := logged(mockClock())
	inbox := openDatabase(t, dsn, o)
	add(t, inbox, "before")
	ctx := context.Background()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, "BEGIN; LOCK TABLE messages"); err != nil {
		t.Fatal(err)
	}
	refused(t, inbox)
	told(t, logs, faultLocked, false)
	if _, err := c.Exec(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if !add(t, inbox, "after") || add(t, inbox, "before") {
		t.Error("afterwards it holds other messages than it should")
	}
	told(t, logs, faultLocked, true)
}

func TestADatabaseThatSendsEveryoneAwayRefusesUntilItTakesThemBack(t *testing.T) {
	for _, c := range []struct{ name, away, back, because string }{
		{"it allows no connections", "ALLOW_CONNECTIONS false", "ALLOW_CONNECTIONS true", faultUnreachable},
		{"it is read-only", "SET default_transaction_read_only = on", "RESET default_transaction_read_only", faultReadOnly},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := newDatabase(t)
			o, logs := logged(mockClock())
			inbox := openDatabase(t, dsn, o)
			run(t, inbox)
			add(t, inbox, "before")
			awaitState(t, inbox, "before", StatusProcessed)
			change := func(how string) {
				alter := "ALTER DATABASE " + databaseOf(inbox) + " "
				if strings.HasPrefix(how, "ALLOW") {
					alter += "WITH "
				}
				administer(t, alter+how)
				administer(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+databaseOf(inbox)+"'")
			}
			change(c.away)
			await(t, "it refuses", func() bool {
				_, err := inbox.Add(context.Background(), Message{ID: "none", ReceivedAt: start()})
				return err != nil && faultOf(inbox.storing) == c.because
			})
			refused(t, inbox)
			change(c.back)
			for id, wanted := range map[string]bool{"after": true, "before": false} {
				await(t, "it stores", func() bool { // on a session that was not ended
					added, err := inbox.Add(context.Background(), Message{ID: id, ReceivedAt: start()})
					if err == nil && added != wanted {
						t.Errorf("%s was added: %v, want %v", id, added, wanted)
					}
					return err == nil
				})
			}
			if !strings.Contains(logs.String(), c.because) {
				t.Errorf("the log does not say that it %s:\n%s", c.because, logs)
			}
			awaitState(t, inbox, "after", StatusProcessed)
			for _, what := range []string{cannotStore, cannotRead, cannotSettle} {
				if n := len(theLinesAbout(logs.String(), what)); n > 4 { // the sessions were ended twice, and then there was another reason
					t.Errorf("the log has %d lines about it, want one for each change:\n%s", n, logs)
				}
			}
		})
	}
}

// faultOf is what a health says at this moment.
func faultOf(h *health) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fault
}

// databaseOf is the name of the database of an inbox in PostgreSQL.
func databaseOf(inbox *Inbox) string {
	return inbox.db.name()[strings.LastIndex(inbox.db.name(), "/")+1:]
}

func TestAServerThatDoesNotSyncIsTold(t *testing.T) {
	dsn := newDatabase(t)
	administer(t, "ALTER SYSTEM SET fsync = off")
	administer(t, "SELECT pg_reload_conf()")
	t.Cleanup(func() {
		administer(t, "ALTER SYSTEM RESET fsync")
		administer(t, "SELECT pg_reload_conf()")
	})
	await(t, "the setting takes effect", func() bool {
		o, logs := logged(mockClock())
		inbox := openDatabase(t, dsn, o)
		defer inbox.Close()
		return strings.Contains(logs.String(), "fsync off")
	})
}
