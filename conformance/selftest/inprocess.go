package selftest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/drive/adapter"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/mutant"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/signature"
)

// controlPath is where a mutant's adapter is asked, on the mutant's own port.
const controlPath = "/_control"

// inProcess is a mutant that is served in this process, and offers what a
// receiver may offer but for being killed: an adapter, and a second instance.
type inProcess struct {
	drive.Receiver // the first instance
	mutant         mutant.Mutant
	config         mutant.Config
	scheme         signature.Scheme
	served         *mutant.Served

	mu     sync.Mutex
	second drive.Receiver // nil until it was asked for
}

// serve runs a mutant in this process: most faults do not need another. Whose
// address is not a plain one is neither observed nor asked.
func (o Options) serve(ctx context.Context, m mutant.Mutant, p *profile.Profile, scheme signature.Scheme, s drive.Secrets, c clock.Clock) (drive.Receiver, func() error, error) {
	api, err := fakeprovider.ServeAPI(clock.New(), "")
	if err != nil {
		return nil, nil, err
	}
	clean := func() error { return api.Close(context.WithoutCancel(ctx)) }
	config := mutant.Config{
		Profile: p, Clock: c, Logger: slog.New(slog.DiscardHandler), ProviderURL: api.URL(),
		BodyTimeout: BodyTimeout, AckTimeout: ackTimeout, Fast: fastAnswer, Burst: burstAnswer,
	}
	r, err := newInProcess(m, config, scheme, s)
	if err != nil {
		return nil, nil, errors.Join(err, clean())
	}
	if slices.Contains(m.Needs, mutant.HTTPS) || slices.Contains(m.Needs, mutant.PublicName) {
		return r.Receiver, clean, nil
	}
	hooks, err := drive.HooksAt("http://127.0.0.1:{port}"+controlPath, drive.HookOptions{Profile: p.Name})
	if err == nil {
		var hooked drive.Receiver
		if hooked, err = drive.Hooked(ctx, drive.AsksProvider(r, api.API), hooks); err == nil {
			return hooked, clean, nil
		}
	}
	return nil, nil, errors.Join(err, r.Close(context.WithoutCancel(ctx)), clean())
}

func newInProcess(m mutant.Mutant, c mutant.Config, scheme signature.Scheme, s drive.Secrets) (*inProcess, error) {
	r := &inProcess{mutant: m, config: c, scheme: scheme}
	var err error
	r.Receiver, err = r.listen(s, func(c mutant.Config) (*mutant.Served, error) {
		served, err := m.Serve(c)
		r.served = served
		return served, err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// listen serves an instance on a port of its own, with its adapter beside it.
func (r *inProcess) listen(s drive.Secrets, serve func(mutant.Config) (*mutant.Served, error)) (drive.Receiver, error) {
	config := drive.HandlerConfig{
		Secrets: s, Listener: r.mutant.Listener,
		New: func(s drive.Secrets) (*http.Server, error) {
			c := r.config
			var err error
			if c.Keys, err = readKeys(r.scheme, s); err != nil {
				return nil, err
			}
			served, err := serve(c)
			if err != nil {
				return nil, err
			}
			server := served.Server
			server.Handler = beside(server.Handler, served)
			return server, nil
		},
	}
	if slices.Contains(r.mutant.Needs, mutant.PublicName) {
		config.PublicName = "hooks.example.com"
	}
	if slices.Contains(r.mutant.Needs, mutant.HTTPS) {
		var err error
		if config.ServerTLS, config.ClientTLS, err = certificates(r.mutant.TLS); err != nil {
			return nil, err
		}
	}
	return drive.Handler(config)
}

// beside puts a mutant's adapter beside its handler.
func beside(h http.Handler, served *mutant.Served) http.Handler {
	methods := adapter.Methods{}
	for name, m := range served.Methods {
		methods[name] = m
	}
	methods[adapter.MethodInitialize] = adapter.Initialize(adapter.Initialized{Name: "mutant", Version: "1"}, methods, nil)
	control := adapter.Handler(methods)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == controlPath {
			control.ServeHTTP(w, req)
			return
		}
		h.ServeHTTP(w, req)
	})
}

// Has implements [drive.Subject].
func (r *inProcess) Has(capability string) bool {
	return capability == drive.Instances || r.Receiver.Has(capability)
}

// Target implements [drive.Receiver].
func (r *inProcess) Target(instance int) fakeprovider.Target {
	r.mu.Lock()
	defer r.mu.Unlock()
	if instance > 0 && r.second != nil {
		return r.second.Target(0)
	}
	return r.Receiver.Target(0)
}

// Second implements [drive.Receiver]: an instance that shares with the first
// what is stored.
func (r *inProcess) Second(context.Context) (fakeprovider.Target, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.second == nil {
		// Its keys stand in what is shared.
		second, err := r.listen(drive.Secrets{Unset: true}, func(mutant.Config) (*mutant.Served, error) { return r.served.Second() })
		if err != nil {
			return fakeprovider.Target{}, fmt.Errorf("starting a second instance beside the first: %w", err)
		}
		r.second = second
	}
	return r.second.Target(0), nil
}

// Variant implements [drive.Receiver].
func (r *inProcess) Variant(_ context.Context, s drive.Secrets) (drive.Receiver, error) {
	return newInProcess(r.mutant, r.config, r.scheme, s)
}

// Close implements [drive.Subject].
func (r *inProcess) Close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.second != nil {
		err = r.second.Close(ctx)
	}
	return errors.Join(err, r.Receiver.Close(ctx))
}
