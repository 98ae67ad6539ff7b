package mutant

import (
	"io"
	"net/http"
)

const acceptsValid = "receiver.signature.accepts-valid"

// general are receivers that are wrong altogether.
func general() []Mutant {
	return []Mutant{
		{
			Name: "accepts-all", Doc: "It verifies nothing.",
			Fails: append(rejections(),
				"receiver.signature.survives-odd-signatures",
				"receiver.limits.many-signatures",
				"receiver.limits.lying-length",
				"receiver.signature.accepts-ed25519",
				"receiver.signature.scheme-confusion",
				"receiver.rotation.accepts-old-and-new",
				"receiver.rotation.drops-retired"),
			New: reference(verifying(func(check) error { return nil })),
		},
		{
			Name: "rejects-all", Doc: "It refuses every delivery.",
			Fails: []string{acceptsValid},
			New:   always(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }),
		},
		{
			Name: "fails-always", Doc: "Every delivery meets an error that it does not catch.",
			Fails: []string{acceptsValid},
			New:   always(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }),
		},
		{
			Name: "crashes", Doc: "Every delivery ends its connection without an answer.",
			Fails: []string{acceptsValid},
			New:   always(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		},
		{
			Name: "not-there", Doc: "It listens on another path.",
			Fails: []string{acceptsValid},
			New:   always(http.NotFound),
		},
		{
			Name: "hangs", Doc: "It never answers.",
			Verdict: VerdictError,
			New: always(func(_ http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body) // only then does the server notice that the peer is gone
				<-req.Context().Done()
			}),
		},
		{
			Name: "garbage", Doc: "What it answers is not HTTP.",
			Verdict: VerdictError,
			New: always(func(w http.ResponseWriter, _ *http.Request) {
				if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
					_, _ = conn.Write([]byte("SSH-2.0-OpenSSH_9.6\r\n"))
					_ = conn.Close()
				}
			}),
		},
	}
}

// always makes a receiver that treats all alike.
func always(h http.HandlerFunc) maker {
	return func(Config) (http.Handler, error) { return h, nil }
}

// rejections lists the requirements to refuse a delivery whose signature,
// though of the right form, is not the one of its content.
func rejections() []string {
	return []string{
		"receiver.signature.rejects-unsigned",
		"receiver.signature.rejects-missing-header",
		"receiver.signature.rejects-tampered-body",
		"receiver.signature.rejects-tampered-id",
		"receiver.signature.rejects-tampered-timestamp",
		"receiver.signature.rejects-wrong-secret",
		"receiver.signature.rejects-empty-key",
		"receiver.signature.rejects-unknown-version",
		"receiver.signature.rejects-truncated-signature",
		"receiver.signature.rejects-near-misses",
		"receiver.signature.rejects-in-any-shape",
		"receiver.signature.rejects-none-in-list",
		"receiver.signature.survives-unverified-body",
		"receiver.rawbody.rejects-reserialized",
		"receiver.replay.rejects-stale",
		"receiver.replay.rejects-future",
		"receiver.replay.rejects-malformed-timestamp",
	}
}
