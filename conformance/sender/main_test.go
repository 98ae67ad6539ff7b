package sender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/whconform/whconform/conformance/drive/adapter"
	"github.com/whconform/whconform/reference/mutant"
	reference "github.com/whconform/whconform/reference/sender"
)

// adapterVariable makes this test binary an adapter of the reference sender, so
// that it can be killed like any other.
const adapterVariable = "WHCONFORM_TEST_SENDER_ADAPTER"

// mutantVariable makes that adapter one of a mutant, by its name.
const mutantVariable = "WHCONFORM_TEST_SENDER_MUTANT"

func TestMain(m *testing.M) {
	if os.Getenv(adapterVariable) == "" {
		os.Exit(m.Run())
	}
	control := reference.NewControl(reference.ControlOptions{})
	if name := os.Getenv(mutantVariable); name != "" {
		wrong, err := mutant.FindSender(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		control = wrong.Control(reference.ControlOptions{})
	}
	err := adapter.Serve(context.Background(), os.Stdin, os.Stdout, methodsOf(control))
	if err := errors.Join(err, control.Close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// methodsOf are the methods of the reference's control as those of an adapter
// that is a process of its own.
func methodsOf(c *reference.Control) adapter.Methods {
	methods := adapter.Methods{}
	for name, method := range c.Methods() {
		methods[name] = func(ctx context.Context, params json.RawMessage) (any, error) {
			result, err := method(ctx, params)
			if coded, ok := errors.AsType[*reference.ControlError](err); ok {
				err = &adapter.Error{Code: coded.Code, Message: err.Error()}
			}
			return result, err
		}
	}
	initialize := methods[adapter.MethodInitialize]
	methods[adapter.MethodInitialize] = func(ctx context.Context, params json.RawMessage) (any, error) {
		result, err := initialize(ctx, params)
		if err != nil {
			return nil, err
		}
		var told map[string]any
		text, err := json.Marshal(result)
		if err == nil {
			err = json.Unmarshal(text, &told)
		}
		if list, is := told["capabilities"].([]any); is && !slices.Contains(list, any("managed")) {
			told["capabilities"] = append(list, "managed")
		}
		return told, err
	}
	return methods
}

// adapterCommand starts this test binary as an adapter.
func adapterCommand(t testing.TB) (command, env []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(self); err != nil {
		t.Fatal(err)
	}
	return []string{self}, []string{adapterVariable + "=1"}
}
