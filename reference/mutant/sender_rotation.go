package mutant

import (
	"time"

	"github.com/whconform/whconform/reference/sender"
)

// rotationSenders break sender.rotation.*.
func rotationSenders() []SenderMutant {
	const both, ends, twice = "sender.rotation.both-sign", "sender.rotation.overlap-ends", "sender.rotation.twice"
	return []SenderMutant{
		{
			Name: "caches-secrets", Doc: "The secrets of an endpoint are cached with its first delivery, and a rotation is seen by a cold cache only.",
			Fails: []string{both, ends, twice},
			Change: func(o *sender.Options) {
				var cache memory[[]string]
				o.Faults.Secrets = func(a sender.AttemptInfo, all []string) []string { return cache.keep(a.EndpointID, all) }
			},
		},
		{
			Name: "new-secret-alone", Doc: "After a rotation the new secret signs alone.",
			Fails:  []string{both, twice},
			Change: signingWith(func(_ sender.AttemptInfo, all []string) []string { return all[:1] }),
		},
		{
			Name: "old-secret-for-pending", Doc: "A retry that waits is signed by the secret that there was when it was published.",
			Fails: []string{both},
			Change: func(o *sender.Options) {
				var first memory[[]string]
				o.Faults.Secrets = func(a sender.AttemptInfo, all []string) []string { return first.keep(a.MessageID, all) }
			},
		},
		{
			Name: "overlap-without-end", Doc: "A secret that was replaced goes on signing.",
			Fails: []string{ends}, Needs: []string{Virtual},
			Change: func(o *sender.Options) {
				o.Faults.Expiry = func(_, usual time.Time) time.Time { return usual.AddDate(1, 0, 0) }
			},
		},
		{
			Name: "second-rotation-drops-the-previous", Doc: "A second rotation inside the overlap leaves only the newest secret.",
			Fails: []string{twice},
			Change: func(o *sender.Options) {
				var made memory[int]
				o.Faults.Secret = func(endpoint, secret string) string {
					made.change(endpoint, func(n int) int { return n + 1 })
					return secret
				}
				o.Faults.Secrets = func(a sender.AttemptInfo, all []string) []string {
					if made.keep(a.EndpointID, 0) > 2 {
						return all[:1]
					}
					return all
				}
			},
		},
	}
}
