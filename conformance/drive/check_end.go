package drive

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

// random is where a secret for the check comes from.
func random() io.Reader { return rand.Reader }

// silence asks several things at a time and then listens: an answer must find
// its question, and nothing else may be printed.
func (k *check) silence(ctx context.Context) {
	const name, asked = "side by side", "the same question eight times at once, then nothing"
	if k.over(ctx, name) {
		return
	}
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() {
			ctx, cancel := k.call(ctx)
			defer cancel()
			errs[i] = k.harmless(ctx)
		})
	}
	all.Wait()
	for _, err := range errs {
		if k.broken(name, asked, err) {
			return
		}
	}
	quiet := time.NewTimer(strayWait)
	defer quiet.Stop()
	select {
	case <-quiet.C:
		k.ok(name, asked, "eight answers, and nothing more")
	case <-k.process.Done():
		if fault := k.process.Fault(); fault != nil {
			k.broken(name, asked, fault)
		}
	case <-ctx.Done():
	}
}

// harmless is a question that changes nothing.
func (k *check) harmless(ctx context.Context) error {
	switch {
	case k.session.Has(adapter.MethodProcessed):
		_, err := k.session.Processed(ctx, "evt_whconform_check")
		return err
	case k.session.Has(adapter.MethodState):
		_, err := k.session.State(ctx, "evt_whconform_check", "")
		return err
	case k.session.Has(adapter.MethodPublish):
		_, err := k.session.Publish(ctx, adapter.PublishParams{Type: "whconform.check.nobody", Timestamp: k.now, Payload: []byte("{}"), EndpointIDs: []string{"nobody"}})
		return err
	case k.session.Has(adapter.MethodAdvance):
		_, err := k.session.Advance(ctx, k.now)
		return err
	}
	return k.session.FailOnce(ctx, unseen)
}

// restart kills the adapter and starts it again, if it declares to bear that.
func (k *check) restart(ctx context.Context) {
	if !k.session.Has(Managed) || ctx.Err() != nil {
		return
	}
	const asked = "SIGKILL, and the same command on the same state"
	if k.over(ctx, Managed) {
		return
	}
	k.process.Kill()
	_ = k.process.Close(ctx) // it has been ended
	quiet := *k
	quiet.config.Tell = func(s Step) {
		if s.Outcome == StepFailed {
			k.fail(Managed, asked, s.Name+": "+s.Came, s.Do)
		}
	}
	if !quiet.start(ctx) || !quiet.introduce(ctx) {
		k.process = quiet.process
		return
	}
	k.process, k.session = quiet.process, quiet.session
	k.ok(Managed, asked, "it introduces itself again")
}

// farewell ends the adapter and looks how it goes.
func (k *check) farewell(ctx context.Context) {
	const asked = "shutdown, and the end of its stdin"
	if k.over(ctx, adapter.MethodShutdown) {
		return
	}
	began := time.Now()
	err := k.session.Close(ctx)
	took := time.Since(began).Round(time.Millisecond)
	switch fault := k.process.Fault(); {
	case err != nil:
		k.fail(adapter.MethodShutdown, asked, err.Error(), "answer with anything but an error")
	case fault != nil && fault.Kind != adapter.Died:
		k.broken(adapter.MethodShutdown, asked, fault)
	case k.process.Killed():
		k.fail(adapter.MethodShutdown, asked, fmt.Sprintf("it still ran after %v, and was killed", took), "answer shutdown and end the process when stdin ends; other threads must not keep it")
	case !k.process.Clean():
		k.note(adapter.MethodShutdown, asked, "it ended with "+k.process.State(), "end with 0, so that a crash can be told from an end")
	default:
		k.ok(adapter.MethodShutdown, asked, fmt.Sprintf("it ended with %s after %v", k.process.State(), took))
	}
}

// end leaves nothing behind.
func (k *check) end() {
	if k.process != nil {
		_ = k.process.Close(context.Background())
	}
}
