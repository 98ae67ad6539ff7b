package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// configurable are the commands that take --config.
func configurable(t *testing.T) (a *app, commands []*cobra.Command) {
	t.Helper()
	kept := &secrets{}
	var out bytes.Buffer
	a = &app{out: newRedactor(&out, kept), err: newRedactor(&out, kept), lookup: noEnvironment, kept: kept}
	for _, c := range a.root().Commands() {
		if c.Flags().Lookup(configFlag) != nil {
			commands = append(commands, c)
		}
	}
	if len(commands) == 0 {
		t.Fatal("no command takes --config")
	}
	return a, commands
}

// sampleOf is a value that a flag takes, as YAML, and what it is then.
func sampleOf(f *pflag.Flag) (yaml, value string) {
	if _, list := f.Value.(pflag.SliceValue); list {
		return "['a: b', c]", "[a: b,c]"
	}
	switch f.Value.Type() {
	case "bool":
		return "true", "true"
	case "duration":
		return "90s", "1m30s"
	case "int", "int64", "uint64", "float64":
		return "7", "7"
	}
	return "/some: thing", "/some: thing"
}

func TestEveryFlagIsAKeyOfTheConfiguration(t *testing.T) {
	a, commands := configurable(t)
	for _, c := range commands {
		var text strings.Builder
		want := map[string]string{}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == configFlag || f.Name == "help" {
				return
			}
			yaml, value := sampleOf(f)
			if strings.Contains(yaml, "/some: thing") {
				yaml = "'" + yaml + "'"
			}
			text.WriteString(f.Name + ": " + yaml + "\n")
			want[f.Name] = value
		})
		r := &configReader{app: a, flags: c.Flags(), file: "-"}
		if _, err := r.read([]byte(text.String())); err != nil {
			t.Errorf("%s: %v\n%s", c.Name(), err, text.String())
		}
		for name, value := range want {
			f := c.Flags().Lookup(name)
			if f.Value.String() != value || !f.Changed || !fromConfig(f) {
				t.Errorf("%s: %s is %q, want %q; changed: %t, from the file: %t", c.Name(), name, f.Value.String(), value, f.Changed, fromConfig(f))
			}
		}
	}
}

// receiverFlagSet are the flags of "whconform receiver", unset.
func receiverFlagSet(t *testing.T) (*app, *pflag.FlagSet) {
	t.Helper()
	a, commands := configurable(t)
	for _, c := range commands {
		if c.Name() == "receiver" {
			return a, c.Flags()
		}
	}
	t.Fatal("whconform receiver takes no --config")
	return nil, nil
}

func TestPathsAreBesideTheConfigurationThatNamesThem(t *testing.T) {
	dir := filepath.Join("some", "where")
	for name, c := range map[string]struct{ yaml, want string }{
		"payload":             {"event.json", filepath.Join(dir, "event.json")},
		"secret-file":         {"[../s.txt, '-', /abs/s.txt]", "[" + filepath.Join("some", "s.txt") + ",-,/abs/s.txt]"},
		"cacert":              {"ca.pem", filepath.Join(dir, "ca.pem")},
		"cert":                {"c.pem", filepath.Join(dir, "c.pem")},
		"key":                 {"k.pem", filepath.Join(dir, "k.pem")},
		"known-failing":       {"k.txt", filepath.Join(dir, "k.txt")},
		"write-known-failing": {"k.txt", filepath.Join(dir, "k.txt")},
		"report":              {"[json=r.json, xml]", "[json=" + filepath.Join(dir, "r.json") + ",xml]"},
		"exec":                {"./server", "./server"},
		"event-type":          {"a.b", "a.b"},
	} {
		a, f := receiverFlagSet(t)
		r := &configReader{app: a, flags: f, file: filepath.Join(dir, "whconform.yaml")}
		if _, err := r.read([]byte(name + ": " + c.yaml)); err != nil || f.Lookup(name).Value.String() != c.want {
			t.Errorf("%s is %q, want %q (%v)", name, f.Lookup(name).Value.String(), c.want, err)
		}
	}
	for profile, want := range map[string]string{"stripe": "stripe", "mine.yaml": filepath.Join(dir, "mine.yaml"), "./x/p.yml": filepath.Join(dir, "x", "p.yml")} {
		a, f := receiverFlagSet(t)
		r := &configReader{app: a, flags: f, file: filepath.Join(dir, "whconform.yaml")}
		if _, err := r.read([]byte("profile: " + profile)); err != nil || f.Lookup("profile").Value.String() != want {
			t.Errorf("the profile is %q, want %q (%v)", f.Lookup("profile").Value.String(), want, err)
		}
	}
}

func TestTheCommandLineWinsOverTheConfiguration(t *testing.T) {
	const text = "url: http://127.0.0.1:9/\nslow: true\nrate: 5\nrun: [a, b]\nsecret-env: [X, Y]\nsecret-file: s\nobserve-log: 'x {id}'\nskip: c\n"
	a, f := receiverFlagSet(t)
	if err := f.Parse([]string{"--rate", "9", "--run", "z", "--secret-file", "mine", "--observe", "http://127.0.0.1/{id}"}); err != nil {
		t.Fatal(err)
	}
	r := &configReader{app: a, flags: f, file: "-", argument: "url"}
	args, err := r.read([]byte(text))
	if err != nil || len(args) != 1 || args[0] != "http://127.0.0.1:9/" {
		t.Errorf("%v, %v", args, err)
	}
	for name, want := range map[string]string{
		"rate": "9", "run": "[z]", "slow": "true", "skip": "[c]",
		// Ways to say one thing: the file's others do not count.
		"secret-env": "[]", "secret-file": "[mine]", "observe-log": "", "observe": "http://127.0.0.1/{id}",
	} {
		if got := f.Lookup(name).Value.String(); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if fromConfig(f.Lookup("rate")) || !fromConfig(f.Lookup("slow")) {
		t.Error("what stands on the command line counts as the file's, or the other way round")
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte("slow: true\nrun: [a]\n"))
	f.Add([]byte("a: &x [*x]\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Add([]byte("provider-api: true\nreport: {a: b}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		kept := &secrets{}
		a := &app{lookup: noEnvironment, kept: kept}
		flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
		flags.Bool("slow", false, "")
		flags.StringArray("run", nil, "")
		flags.String("provider-api", "", "")
		flags.Lookup("provider-api").NoOptDefVal = "here"
		flags.Duration("timeout", 0, "")
		r := &configReader{app: a, flags: flags, file: "f.yaml", argument: "url"}
		if _, err := r.read(text); err != nil && !strings.Contains(err.Error(), "f.yaml") {
			t.Fatalf("%q: %v does not name the file", text, err)
		}
	})
}
