package drive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/reference/profile"
)

// checked checks this binary as a sender's adapter that declares as told, and
// returns what was told of each step.
func checked(t *testing.T, declare string) (bool, string) {
	t.Helper()
	noLeaks(t)
	p, err := profile.Load("delivery-envelope") // whose secrets are any text
	if err != nil {
		t.Fatal(err)
	}
	sender := asSender(t, declare)
	var told strings.Builder
	good, err := CheckAdapter(t.Context(), CheckConfig{
		Command: sender.Command, Env: sender.Env, Profile: p, State: sender.State, arrives: 50 * time.Millisecond,
		Tell: func(s Step) { fmt.Fprintf(&told, "%s %s: %s; %s\n", s.Outcome, s.Name, s.Came, s.Do) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return good, told.String()
}

func TestACheckSaysWhatASenderLacks(t *testing.T) {
	for _, tt := range []struct{ name, declare, want string }{
		{"no attempt", `{}`, "failed the attempt: none within 50ms; send at once what is published"},
		{"no schedule", `{}`, "note declared: no retrySchedule; nothing is to be done if the sender retries by the 6 attempts of the profile delivery-envelope"},
		{"a schedule", `{"retrySchedule":[0,1]}`, `ok declared: {"retrySchedule":[0,1]}`},
		{"half of what disables", `{"capabilities":["endpoint.create","event.publish","endpoint.disable"]}`, "note capabilities: only endpoint.disable; what needs an owner's hand"},
		{"a word that is none", `{"capabilities":["endpoint.create","event.publish","manged"]}`, `note capabilities: not known: "manged", near to managed;`},
		{"no capability at all", `{"capabilities":[]}`, "failed capabilities: it declares none;"},
		{"no publishing", `{"capabilities":["endpoint.create"]}`, "failed event.publish: it is not declared;"},
		{"an error", `{"capabilities":["endpoint.create","event.publish","endpoint.delete"]}`, "failed endpoint.delete: adapter: calling endpoint.delete: it answered with an error: cannot delete while [secret] is in use (code -32603);"},
		{"the same log as ever", `{"capabilities":["endpoint.create","event.publish","message.attempts"]}`, "failed message.attempts: 2 attempts, and 0 arrived; log each attempt when it is over"},
		{"a state that does not change", `{"capabilities":["endpoint.create","event.publish","endpoint.get","endpoint.enable","endpoint.disable"]}`, "failed endpoint.get: disabled; tell how the endpoint stands now"},
		{"a restart", `{}`, "ok managed: it introduces itself again"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if good, told := checked(t, tt.declare); good || !strings.Contains(told, tt.want) {
				t.Errorf("it is %v:\n%s\nwant %s", good, told, tt.want)
			}
		})
	}
}

func TestACheckEndsWithItsContext(t *testing.T) {
	noLeaks(t)
	p, err := profile.Load("standard-webhooks")
	if err != nil {
		t.Fatal(err)
	}
	over := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	sender := asSender(t, "{}")
	_, err = CheckAdapter(ctx, CheckConfig{
		Command: sender.Command, Env: sender.Env, Profile: p, State: t.TempDir(),
		Tell: func(s Step) {
			if s.Name == "capabilities" {
				cancel(over)
			}
		},
	})
	if !errors.Is(err, over) {
		t.Errorf("got %v", err)
	}
	if _, err := CheckAdapter(t.Context(), CheckConfig{}); err == nil {
		t.Error("nothing is checked, and all is well")
	}
	if _, err := os.Stat(sender.State); err != nil {
		t.Error(err)
	}
}
