package drive

import (
	"context"
	"fmt"
	"time"

	"github.com/whconform/whconform/conformance/drive/adapter"
)

// unseen is the id of an event that nobody ever sent.
const unseen = "evt_whconform_check"

// receiver asks each method of a receiver's adapter about an event that was never
// sent.
func (k *check) receiver(ctx context.Context) {
	asked := "an event that was never sent"
	k.try(ctx, adapter.MethodProcessed, asked, func(ctx context.Context) (string, string, error) {
		p, err := k.session.Processed(ctx, unseen)
		if err == nil && (p.Processed != 0 || p.Failed) {
			return fmt.Sprintf("processed %d, failed %v", p.Processed, p.Failed), "answer 0 for an event that was never seen: it must look at the id", nil
		}
		return "processed 0", "", err
	})
	k.try(ctx, adapter.MethodState, asked, func(ctx context.Context) (string, string, error) {
		state, err := k.session.State(ctx, unseen, "")
		if err == nil && state != "" {
			return fmt.Sprintf("%.40q", state), `answer "" for a record that is not known`, nil
		}
		return "no state", "", err
	})
	k.try(ctx, adapter.MethodFailOnce, "an event that is never going to be sent", func(ctx context.Context) (string, string, error) {
		return "it agrees", "", k.session.FailOnce(ctx, unseen)
	})
	k.try(ctx, adapter.MethodAdvance, "the time at which the clock is to stand already", func(ctx context.Context) (string, string, error) {
		a, err := k.session.Advance(ctx, k.now)
		return "it stands at " + instant(a.Now), "", err
	})
}

// try calls a method that is declared. The answer in words may come with what is
// to be done about it.
func (k *check) try(ctx context.Context, method, asked string, call func(context.Context) (came, do string, err error)) bool {
	if !k.session.Has(method) {
		return false
	}
	if k.over(ctx, method) {
		return false
	}
	began := time.Now()
	ctx, cancel := k.call(ctx)
	defer cancel()
	came, do, err := call(ctx)
	switch {
	case k.broken(method, asked, err):
		return false
	case do != "":
		k.fail(method, asked, came, do)
		return false
	}
	if took := time.Since(began); took > time.Second {
		came += fmt.Sprintf(", after %v", took.Round(100*time.Millisecond))
	}
	k.ok(method, asked, came)
	return true
}
