package drive

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/fakeprovider"
)

const (
	current  = "whsec_Y3VycmVudC1jdXJyZW50LWN1cnJlbnQtY3VycmVudC0="
	previous = "whsec_cHJldmlvdXMtcHJldmlvdXMtcHJldmlvdXMtcHJldi0="
	public   = "whpk_cHVibGljLXB1YmxpYy1wdWJsaWMtcHVibGljLXB1YmxpYw=="
)

// contract are the variables that the suite and a command agree upon.
func contract(env map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS", "WEBHOOK_PUBLIC_KEY", "WHCONFORM_STATE_DIR", "PORT"} {
		if value, ok := env[name]; ok {
			out[name] = value
		}
	}
	return out
}

func TestACommandIsToldExactlyWhatTheContractSays(t *testing.T) {
	// The caller's own environment must not stand in for what is left out.
	for _, name := range []string{"WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS", "WEBHOOK_PUBLIC_KEY", "WHCONFORM_STATE_DIR", "PORT"} {
		t.Setenv(name, "the caller's own")
	}
	t.Setenv("WHCONFORM_DRIVE_TEST_OTHER", "passed on")
	for _, tt := range []struct {
		name    string
		secrets Secrets
		want    map[string]string
	}{
		{"one secret", Secrets{Current: current}, map[string]string{"WEBHOOK_SECRET": current}},
		{"two secrets", Secrets{Current: current, Previous: previous}, map[string]string{"WEBHOOK_SECRET": current, "WEBHOOK_SECRET_PREVIOUS": previous}},
		{"a public key beside a secret", Secrets{Current: current, Public: public}, map[string]string{"WEBHOOK_SECRET": current, "WEBHOOK_PUBLIC_KEY": public}},
		{"an empty secret is a variable set to nothing", Secrets{}, map[string]string{"WEBHOOK_SECRET": ""}},
		{"no secret is no variable", Secrets{Unset: true}, map[string]string{}},
		{"no secret leaves the others out too", Secrets{Unset: true, Previous: previous, Public: public}, map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeaks(t)
			c := as(roleServe)
			c.State = t.TempDir()
			c.Secrets = tt.secrets
			r := started(t, c)
			about := ask(t, r)
			got := contract(about.Env)
			if _, port, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(r.Target(0).URL, "http://"), "/"), ":"); got["PORT"] != port {
				t.Errorf("PORT is %q, the target %s", got["PORT"], r.Target(0).URL)
			}
			if got["WHCONFORM_STATE_DIR"] != c.State {
				t.Errorf("WHCONFORM_STATE_DIR is %q, want %q", got["WHCONFORM_STATE_DIR"], c.State)
			}
			delete(got, "PORT")
			delete(got, "WHCONFORM_STATE_DIR")
			if len(got) != len(tt.want) {
				t.Errorf("it was told %q, want %q", got, tt.want)
			}
			for name, want := range tt.want {
				if value, ok := got[name]; !ok || value != want {
					t.Errorf("%s is %q (set: %t), want %q", name, value, ok, want)
				}
			}
			if about.Env["WHCONFORM_DRIVE_TEST_OTHER"] != "passed on" {
				t.Error("the rest of the environment is not passed on")
			}
			if err := r.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestACommandRunsWithItsArgumentsFolderAndTarget(t *testing.T) {
	c := as(roleServe)
	c.Command = append(c.Command, "-test.v", "a b", "$HOME")
	c.Dir = t.TempDir()
	c.Env = append(c.Env, "MINE=1")
	c.Target = fakeprovider.Target{URL: "http://localhost:{port}/hooks?tenant=1"}
	r := started(t, c)
	about := ask(t, r)
	if got := strings.Join(about.Args[1:], "|"); got != "-test.v|a b|$HOME" {
		t.Errorf("its arguments are %q: they go through no shell", got)
	}
	if want, _ := filepath.EvalSymlinks(c.Dir); about.Dir != want {
		t.Errorf("it runs in %q, want %q", about.Dir, want)
	}
	if about.Env["MINE"] != "1" {
		t.Error("the variable given is missing")
	}
	if got, want := r.Target(0).URL, "http://localhost:"+about.Env["PORT"]+"/hooks?tenant=1"; got != want {
		t.Errorf("the target is %s, want %s", got, want)
	}
	if !r.Has(Managed) || !r.Has(SecondConfiguration) || r.Has("observe") {
		t.Error("it offers something else than to be started again and to be started otherwise")
	}
	if _, err := r.Processed(t.Context(), "id"); !errors.Is(err, ErrNotOffered) {
		t.Errorf("Processed: %v", err)
	}
}

func TestNoCommandIsAnError(t *testing.T) {
	if _, err := Exec(t.Context(), ExecConfig{}); err == nil {
		t.Error("it was started")
	}
	_, err := Exec(t.Context(), ExecConfig{Command: []string{filepath.Join(t.TempDir(), "missing")}})
	if err == nil || errors.Is(err, ErrRefusedToStart) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a command that is not there: %v", err)
	}
}

func TestACommandThatEndsBeforeItListensRefusedToStart(t *testing.T) {
	noLeaks(t)
	c := as(roleRefuse)
	c.Secrets = Secrets{Current: current, Previous: previous}
	var out bytes.Buffer
	c.Log = &out
	_, err := Exec(t.Context(), c)
	if !errors.Is(err, ErrRefusedToStart) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"cannot start with [secret] and [secret]", "giving up", "exit status 7"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if want := "cannot start with [secret] and [secret]\n"; !strings.Contains(out.String(), want) {
		t.Errorf("the log is %q", out.String())
	}

	_, err = Exec(t.Context(), as(roleSilent))
	if !errors.Is(err, ErrRefusedToStart) || !strings.Contains(err.Error(), "printed nothing") {
		t.Errorf("a command that ends without a word: %v", err)
	}
}

func TestACommandThatNeverListensIsGivenUp(t *testing.T) {
	for _, role := range []string{roleDeaf, roleOtherPort} {
		t.Run(role, func(t *testing.T) {
			noLeaks(t)
			c := as(role)
			c.StartTimeout = 300 * time.Millisecond
			began := time.Now()
			_, err := Exec(t.Context(), c)
			if err == nil || errors.Is(err, ErrRefusedToStart) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), "within 300ms") || !strings.Contains(err.Error(), "PORT") {
				t.Errorf("the error is %v", err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestAStartThatIsCancelledEndsTheCommand(t *testing.T) {
	noLeaks(t)
	c := as(roleDeaf)
	out := newLog()
	c.Log = out
	stop := errors.New("the user has had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		out.await(t, "not listening")
		cancel(stop)
	}()
	_, err := Exec(ctx, c)
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	out.await(t, "ending on SIGTERM")
}

func TestACommandThatIgnoresSIGTERMIsKilledWithItsChildren(t *testing.T) {
	noLeaks(t)
	c := as(roleStubborn)
	out := newLog()
	c.Log = out
	r := started(t, c)
	about := ask(t, r)
	child, err := strconv.Atoi(strings.Fields(out.await(t, "grandchild"))[1])
	if err != nil {
		t.Fatal(err)
	}
	// The caller's bound is shorter than the grace.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Error(err)
	}
	awaitGone(t, about.PID)
	awaitGone(t, child)
}

func TestAChildThatOutlivesItsParentIsKilled(t *testing.T) {
	noLeaks(t)
	c := as(roleOrphaning)
	out := newLog()
	c.Log = out
	r := started(t, c)
	child, err := strconv.Atoi(strings.Fields(out.await(t, "grandchild"))[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	awaitGone(t, child)
}

func TestClosingTwiceIsNoError(t *testing.T) {
	noLeaks(t)
	r := started(t, as(roleServe))
	about := ask(t, r)
	for range 2 {
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	awaitGone(t, about.PID)
}

func TestARestartKeepsPortAndState(t *testing.T) {
	for _, tt := range []struct {
		name string
		kill bool
	}{{"killed", true}, {"asked to end", false}} {
		t.Run(tt.name, func(t *testing.T) {
			noLeaks(t)
			c := as(roleServeState)
			c.State = t.TempDir()
			c.Secrets = Secrets{Current: current}
			out := newLog()
			c.Log = out
			r := started(t, c)
			before := ask(t, r)
			if err := r.Restart(t.Context(), tt.kill); err != nil {
				t.Fatal(err)
			}
			after := ask(t, r)
			if before.PID == after.PID {
				t.Error("it is the same process")
			}
			if got, want := contract(after.Env), contract(before.Env); len(got) != len(want) || got["PORT"] != want["PORT"] || got["WEBHOOK_SECRET"] != current {
				t.Errorf("it was told %q, before %q", got, want)
			}
			if starts, err := os.ReadFile(filepath.Join(c.State, "starts")); err != nil || string(starts) != "xx" {
				t.Errorf("the state says %q, %v", starts, err)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			// Of the two, a process that was killed has no last words.
			want := 2
			if tt.kill {
				want = 1
			}
			words := 0
			for len(out.lines) > 0 {
				if strings.HasPrefix(<-out.lines, "ending on SIGTERM") {
					words++
				}
			}
			if words != want {
				t.Errorf("%d of 2 were asked to end, want %d", words, want)
			}
		})
	}
}

func TestARestartThatFailsCanBeClosed(t *testing.T) {
	t.Run("as the command refuses the second time", func(t *testing.T) {
		noLeaks(t)
		r := started(t, as(roleOnce))
		err := r.Restart(t.Context(), true)
		if !errors.Is(err, ErrRefusedToStart) || !strings.Contains(err.Error(), "once is enough") {
			t.Errorf("got %v", err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("as the command is not there any more", func(t *testing.T) {
		noLeaks(t)
		c := as(roleServe)
		link := filepath.Join(t.TempDir(), "receiver")
		if err := os.Symlink(c.Command[0], link); err != nil {
			t.Fatal(err)
		}
		c.Command[0] = link
		r := started(t, c)
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		if err := r.Restart(t.Context(), true); err == nil {
			t.Error("it was started")
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestSomebodyElseOnThePortIsNotTakenForTheCommand(t *testing.T) {
	noLeaks(t)
	r := started(t, as(roleServe))
	about := ask(t, r)
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", "127.0.0.1:"+about.Env["PORT"])
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	err = r.Restart(t.Context(), true)
	if err == nil || !strings.Contains(err.Error(), about.Env["PORT"]) {
		t.Errorf("got %v", err)
	}
}

func TestAVariantStandsBesideTheFirst(t *testing.T) {
	noLeaks(t)
	c := as(roleServe)
	c.Secrets = Secrets{Current: current, Previous: previous}
	r := started(t, c)
	v, err := r.Variant(t.Context(), Secrets{Unset: true})
	if err != nil {
		t.Fatal(err)
	}
	first, second := ask(t, r), ask(t, v)
	if first.PID == second.PID || r.Target(0).URL == v.Target(0).URL {
		t.Error("the variant is the first")
	}
	if _, ok := second.Env["WEBHOOK_SECRET"]; ok {
		t.Error("the variant has a secret")
	}
	if first.Env["WHCONFORM_STATE_DIR"] == second.Env["WHCONFORM_STATE_DIR"] {
		t.Error("both work on the same state")
	}
	if err := v.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := ask(t, r); got.PID != first.PID {
		t.Error("closing the variant ended the first")
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSecretsAreTakenOutOfTheOutput(t *testing.T) {
	noLeaks(t)
	c := as(rolePieces)
	c.Secrets = Secrets{Current: current}
	var out bytes.Buffer
	c.Log = &out
	r := started(t, c)
	if err := r.Close(t.Context()); err != nil { // now nobody writes to out any more
		t.Fatal(err)
	}
	if want := "the secret is [secret]\nand once more [secret]\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("the log is %q", out.String())
	}
}

func TestURLOffersNothingBesideItsTarget(t *testing.T) {
	to := fakeprovider.Target{URL: "http://127.0.0.1:1/hooks"}
	r := URL(to)
	if r.Target(0).URL != to.URL || r.Has(Managed) || r.Has(SecondConfiguration) {
		t.Error("it is something else")
	}
	_, processed := r.Processed(t.Context(), "id")
	_, variant := r.Variant(t.Context(), Secrets{})
	for what, err := range map[string]error{"Restart": r.Restart(t.Context(), true), "Processed": processed, "Variant": variant} {
		if !errors.Is(err, ErrNotOffered) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNoVariableOfTheContractIsInherited(t *testing.T) {
	got := withoutSecrets([]string{"A=1", "PORT=1", "WEBHOOK_SECRET=x", "WEBHOOK_SECRET_PREVIOUS=x", "WEBHOOK_PUBLIC_KEY=x", "WHCONFORM_STATE_DIR=x", "PORTER=2", "WEBHOOK_SECRETS=3"})
	if strings.Join(got, " ") != "A=1 PORTER=2 WEBHOOK_SECRETS=3" {
		t.Errorf("got %q", got)
	}
}
