package main

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/reference/signature"
)

// maxFile bounds the small files that flags name, 1 MiB: a secret, a payload, a
// certificate. What is larger was named by mistake.
const maxFile = 1 << 20

// secretFlags are the three ways to give a secret.
type secretFlags struct {
	texts, variables, files []string
}

func (f *secretFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.texts, "secret", nil, "a `SECRET` of the receiver; twice while it is being rotated, the current one first. Others on this machine can see it: prefer the next two")
	flags.StringArrayVar(&f.variables, "secret-env", nil, "the environment variable `NAME` holds a secret")
	flags.StringArrayVar(&f.files, "secret-file", nil, "`FILE` holds secrets, one a line; # begins a comment; - is stdin")
}

func (f *secretFlags) given() bool { return len(f.texts)+len(f.variables)+len(f.files) > 0 }

// secret is one text with where it came from, which errors name in its place.
type secret struct{ text, from string }

// read collects the secrets: flags first, then variables, then files. From
// here on none of them can be printed.
func (a *app) readSecrets(f secretFlags) ([]secret, error) {
	var all []secret
	for i, text := range f.texts {
		all = append(all, secret{text, fmt.Sprintf("--secret %d", i+1)})
	}
	for _, name := range f.variables {
		text, set := a.lookup(name)
		if !set {
			return nil, usagef("reading --secret-env: the environment variable %s is not set. Export it, or correct its name", name)
		}
		all = append(all, secret{text, "--secret-env " + name})
	}
	for _, name := range f.files {
		read, err := a.secretFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, read...)
	}
	for _, s := range all {
		a.kept.add(s.text)
	}
	for _, s := range all {
		if strings.TrimSpace(s.text) == "" {
			return nil, usagef("reading %s: the secret is empty. A receiver without a secret accepts everybody; give the one it is configured with", s.from)
		}
	}
	return all, nil
}

func (a *app) secretFile(name string) ([]secret, error) {
	data, err := a.readFile("--secret-file", name)
	if err != nil {
		return nil, err
	}
	from := name
	if name == "-" {
		from = "stdin"
	}
	var all []secret
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxFile+1)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		a.kept.add(text)
		all = append(all, secret{text, fmt.Sprintf("%s line %d", from, number)})
	}
	if len(all) == 0 {
		return nil, usagef("reading --secret-file %s: it holds no secret. Write one a line", name)
	}
	return all, nil
}

// readFile reads a small file that a flag names; - is stdin.
func (a *app) readFile(flag, name string) ([]byte, error) {
	from := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usagef("reading %s: %w", flag, err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return nil, usagef("reading %s: %w", flag, err)
	}
	if len(data) > maxFile {
		return nil, usagef("reading %s %s: it is larger than %d MiB. Is it the right file?", flag, name, maxFile>>20)
	}
	return data, nil
}

// readKeys reads the secrets as the scheme does.
func readKeys(scheme signature.Scheme, all []secret) ([]signature.Key, error) {
	keys := make([]signature.Key, len(all))
	for i, s := range all {
		key, err := scheme.Key(s.from, s.text)
		if err != nil {
			return nil, badSecret(scheme.Spec(), s, err)
		}
		keys[i] = key
	}
	return keys, nil
}

// badSecret tells what is wrong with a secret, which form the profile wants, and
// how one of that form is made.
func badSecret(spec signature.Spec, s secret, err error) error {
	var bad *signature.KeyError
	if !errors.As(err, &bad) {
		return usagef("reading the secrets: %w", err)
	}
	text := fmt.Sprintf("reading %s: the secret is %s. Signatures by %s want %s", s.from, bad.Problem, spec.Name, bad.Want)
	if command := secretCommand(spec); command != "" {
		text += ". To make one: " + command
	}
	return usagef("%s", text)
}

// secretCommand makes a secret of 32 random bytes in a shell; empty where the
// profile's are made by other tools.
func secretCommand(spec signature.Spec) string {
	prefix := ""
	if len(spec.Key.Strip) > 0 {
		prefix = spec.Key.Strip[0]
	}
	switch {
	case spec.MAC == signature.Ed25519:
	case spec.Key.Decode == "base64":
		return fmt.Sprintf(`echo "%s$(openssl rand -base64 32)"`, prefix)
	case spec.Key.Decode == "hex" || spec.Key.Decode == "utf8":
		return fmt.Sprintf(`echo "%s$(openssl rand -hex 32)"`, prefix)
	}
	return ""
}

// forCommand sorts what the user gave into what a command under test is
// configured with.
func forCommand(all []secret, keys []signature.Key) drive.Secrets {
	var s drive.Secrets
	for i, key := range keys {
		switch {
		case key.Kind() == signature.Ed25519Private:
			s.Public = key.PublicText()
		case s.Current == "":
			s.Current = all[i].text
		case s.Previous == "":
			s.Previous = all[i].text
		}
	}
	return s
}

// freshSecrets makes secrets for a receiver that the suite starts: a current
// one, with rotation a previous one, and with ed25519Too such a key, where the
// scheme knows it.
func (a *app) freshSecrets(scheme signature.Scheme, rotation, ed25519Too bool) ([]secret, error) {
	spec := scheme.Spec()
	var all []secret
	names := []string{"the current secret"}
	if rotation {
		names = append(names, "the previous secret")
	}
	for _, from := range names {
		text, err := spec.NewSecret(rand.Reader)
		if err != nil {
			return nil, usagef("making %s: %w", from, err)
		}
		all = append(all, secret{text, from})
	}
	if ed25519Too && spec.Knows(signature.Ed25519) && spec.Key.Private != "" {
		seed := make([]byte, ed25519.SeedSize)
		_, _ = rand.Read(seed) // never fails
		all = append(all, secret{spec.Key.Private + base64.StdEncoding.EncodeToString(seed), "the Ed25519 key"})
	}
	for _, s := range all {
		a.kept.add(s.text)
	}
	return all, nil
}

func texts(all []secret) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = s.text
	}
	return out
}
