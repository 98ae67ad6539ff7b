package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/whconform/whconform/conformance/catalogue"
	"github.com/whconform/whconform/conformance/drive/adapter"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/report"
	"github.com/whconform/whconform/reference/mutant"
	"github.com/whconform/whconform/reference/sender"
)

// senderVariable makes the test binary the adapter of a mutant sender.
const senderVariable = "WHCONFORM_TEST_SENDER"

// senderProcess starts the test binary as a mutant sender.
func senderProcess(name string) []string {
	self, err := os.Executable()
	if err != nil {
		panic(err) // a test binary always has a name
	}
	return []string{"env", senderVariable + "=" + name, self}
}

// beSender serves a mutant sender until stdin ends.
func beSender(name string) error {
	m, err := mutant.FindSender(name)
	if err != nil {
		return err
	}
	control := m.Control(sender.ControlOptions{})
	err = adapter.Serve(context.Background(), os.Stdin, os.Stdout, SenderMethods(control, ProcessCapabilities()...))
	return errors.Join(err, control.Close())
}

// The matrix of the senders, exact like that of the receivers.
func TestEveryMutantSenderIsCaughtForWhatItDoesAndTheReferenceIsNot(t *testing.T) {
	matrix, err := Run(t.Context(), Options{Part: catalogue.Sender, SenderCommand: senderProcess})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d senders, %.0f s", len(matrix.Rows), matrix.Took.Seconds())
	// The reference signs by HMAC alone, so nothing can break its Ed25519.
	matrix.Uncovered = slices.DeleteFunc(matrix.Uncovered, func(id string) bool { return id == "sender.signature.ed25519" })
	if !matrix.OK() {
		var text bytes.Buffer
		if err := matrix.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		t.Error(text.String())
	}
}

// A verdict that depends on how busy the machine is would be worth nothing. CI
// makes fifty runs of it; see WHCONFORM_STRESS.
func TestTheOutcomesOfASenderAreTheSameOnABusyMachine(t *testing.T) {
	runs := 4
	if text := os.Getenv("WHCONFORM_STRESS"); text != "" {
		var err error
		if runs, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var burning sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		burning.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_ = fmt.Sprint(n)
			}
		})
	}
	defer burning.Wait()
	defer stop()

	reports := make([]*report.Report, runs)
	const sideBySide = 12
	places := make(chan struct{}, sideBySide)
	var judging sync.WaitGroup
	for i := range reports {
		places <- struct{}{}
		judging.Go(func() {
			defer func() { <-places }()
			row := Options{Seed: uint64(i)}.judgeSender(t.Context(), mutant.SenderReference(mutant.StandardWebhooks))
			reports[i] = row.Report
		})
	}
	judging.Wait()
	// The row that holds a call to milliseconds says so itself on a busy machine.
	busy := []string{"sender.timeout.publish-returns.absolute"}
	wrong := 0
	for i, r := range reports {
		if r == nil {
			t.Fatalf("run %d has no report", i)
		}
		for j, row := range r.Results {
			if want := reports[0].Results[j]; row.Outcome != want.Outcome && !slices.Contains(busy, row.ID) || row.Outcome == evidence.Fail || row.Outcome == evidence.Error {
				t.Errorf("run %d: %s is %s, and in the first run %s: %+v %s", i, row.ID, row.Outcome, want.Outcome, row.Findings, row.Detail)
				wrong++
			}
		}
	}
	t.Logf("%d runs, %d at a time, beside a busy loop for every second core: %d outcomes differ", runs, sideBySide, wrong)
}
