package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
)

func TestABadSecretSaysWhichFormIsWantedAndHowOneIsMade(t *testing.T) {
	for name, c := range map[string]struct{ profile, text, want string }{
		"no base64":   {"standard-webhooks", "whsec_hunter2!", `reading --secret 1: the secret is not well encoded. Signatures by standard-webhooks want whsec_ followed by base64 of 24 to 64 bytes (or an Ed25519 key, whsk_… or whpk_…). To make one: echo "whsec_$(openssl rand -base64 32)"`},
		"too short":   {"svix", "whsec_c2hvcnQ=", `the secret is too short. `},
		"no hex":      {"adyen-standard", "not hex", `To make one: echo "$(openssl rand -hex 32)"`},
		"an odd seed": {"discord", "abcd", `the secret is too short. `},
	} {
		p, err := profile.Load(c.profile)
		if err != nil {
			t.Fatal(err)
		}
		scheme, err := p.Scheme()
		if err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		_, err = readKeys(scheme, []secret{{c.text, "--secret 1"}})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestTheCommandForASecretMakesOneThatIsTaken(t *testing.T) {
	for _, program := range []string{"sh", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv(peersVariable) != "" {
				t.Fatalf("%s is not installed, and %s demands it", program, peersVariable)
			}
			t.Skipf("NOT TESTED HERE: the commands that make secrets, as %s is not installed", program)
		}
	}
	tried := map[string]bool{}
	for _, name := range profile.Names() {
		p, err := profile.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		scheme, err := signature.New(p.Signature)
		command := secretCommand(p.Signature)
		if err != nil || command == "" || tried[command] {
			continue
		}
		tried[command] = true
		out, err := exec.Command("sh", "-c", command).Output()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := scheme.Key("made", strings.TrimSpace(string(out))); err != nil {
			t.Errorf("%s: what %q prints is refused: %v", name, command, err)
		}
	}
	if len(tried) < 3 {
		t.Errorf("only %v were tried", tried)
	}
}
