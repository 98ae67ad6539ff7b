package drive

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/whconform/whconform/fakeprovider"
)

// reviveTimeout is how long a receiver that the suite did not start may take to
// listen again: a supervisor restarts a process within a second or two.
const reviveTimeout = 5 * time.Second

// Revive returns nil when the receiver listens after something ended it. One
// that the suite started is started again in any case: a process that is about
// to end may listen for some milliseconds more. Others are waited for.
func Revive(ctx context.Context, r Receiver) error {
	if r.Has(Managed) {
		return r.Restart(ctx, true)
	}
	address, err := dialAddress(r.Target(0))
	if err != nil {
		return err
	}
	if listens(ctx, address) {
		return nil
	}
	bound := time.NewTimer(reviveTimeout)
	defer bound.Stop()
	again := time.NewTicker(probeEvery)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			if listens(ctx, address) {
				return nil
			}
		case <-bound.C:
			return fmt.Errorf("waiting for the receiver to listen again: nothing on %s within %v", address, reviveTimeout)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// listens tells whether a connection can be opened.
func listens(ctx context.Context, address string) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// dialAddress is the host and port of a target.
func dialAddress(to fakeprovider.Target) (string, error) {
	if to.Address != "" {
		return to.Address, nil
	}
	u, err := url.Parse(to.URL)
	if err != nil {
		return "", fmt.Errorf("reading the target: %w", err)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}
