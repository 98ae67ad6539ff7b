package mutant

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whconform/whconform/reference/receiver"
)

// acknowledgeMutants break receiver.acknowledge.*.
func acknowledgeMutants() []Mutant {
	return slices.Concat(slowMutants(), guardMutants(), contentMutants(), handshakeMutants())
}

// slowMutants work before they answer.
func slowMutants() []Mutant {
	return []Mutant{
		{
			Name: "works-first", Doc: "It does its work before it answers, and the provider has given up by then.",
			Fails: []string{"receiver.acknowledge.within-provider-timeout"},
			New:   delayed(Config.late, func(*http.Request) bool { return true }),
		},
		{
			Name: "is-slow-now-and-then", Doc: "Of the deliveries in a row every twentieth takes longer than a second.",
			Fails: []string{"receiver.acknowledge.fast"},
			New: answering(func(c Config) func(*http.Request, []byte, int) int {
				var row atomic.Int64
				return func(req *http.Request, _ []byte, right int) int {
					switch {
					case right != http.StatusOK:
						row.Store(0)
					case row.Add(1)%20 == 0:
						pause(req, c.sluggish())
					}
					return right
				}
			}),
		},
		{
			Name: "queues-in-a-crowd", Doc: "Beyond forty at a time deliveries wait for one another, longer than two seconds.",
			Fails: []string{"receiver.acknowledge.burst.fast"},
			New: crowded(func(c Config, w http.ResponseWriter, req *http.Request, next http.Handler) {
				pause(req, orDefault(c.Burst, 2*time.Second)*5/4)
				next.ServeHTTP(w, req)
			}),
		},
		{
			Name: "turns-a-crowd-away", Doc: "Beyond forty at a time its pool is empty, and the error becomes a 500.",
			Fails: []string{"receiver.acknowledge.burst.fast"},
			New: crowded(func(_ Config, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.WriteHeader(http.StatusInternalServerError)
			}),
		},
		{
			Name: "jams-in-a-crowd", Doc: "Beyond forty at a time deliveries wait for one another, longer than the provider waits.",
			Fails: []string{"receiver.acknowledge.burst", "receiver.acknowledge.burst.fast"},
			New: crowded(func(c Config, w http.ResponseWriter, req *http.Request, next http.Handler) {
				pause(req, c.late())
				next.ServeHTTP(w, req)
			}),
		},
	}
}

// crowded does with a delivery what beyond does if more than forty are under
// way, and leaves the others to the reference.
func crowded(beyond func(c Config, w http.ResponseWriter, req *http.Request, next http.Handler)) maker {
	return around(func(c Config, next http.Handler) http.HandlerFunc {
		var present atomic.Int64
		return func(w http.ResponseWriter, req *http.Request) {
			// Once the body is read the server notices when the peer gives up.
			whole, _ := head(c, w, req)
			req = withBody(req, whole)
			n := present.Add(1)
			defer present.Add(-1)
			if n > 40 {
				beyond(c, w, req, next)
				return
			}
			pause(req, 50*time.Millisecond) // long enough for a crowd to gather
			next.ServeHTTP(w, req)
		}
	})
}

// guardMutants have something in front of the webhook route that is not made
// for providers.
func guardMutants() []Mutant {
	const bare = "receiver.acknowledge.bare-minimum"
	return []Mutant{
		{
			Name: "redirects", Doc: "It redirects every delivery to the address that it really has.",
			Fails: []string{acceptsValid, "receiver.acknowledge.no-redirect"},
			New: around(func(_ Config, next http.Handler) http.HandlerFunc {
				mux := http.NewServeMux()
				mux.Handle("/hooks/moved/", next)
				mux.Handle("/", http.RedirectHandler("/hooks/moved/", http.StatusPermanentRedirect))
				return mux.ServeHTTP
			}),
		},
		{
			Name: "wants-a-csrf-token", Doc: "A check against cross-site requests stands in front of the route.",
			Fails: []string{bare},
			New:   before(http.StatusForbidden, func(_ Config, req *http.Request) bool { return req.Header.Get("X-CSRFToken") == "" }),
		},
		{
			Name: "wants-a-session", Doc: "A login stands in front of the route.",
			Fails: []string{bare},
			New:   before(http.StatusUnauthorized, func(_ Config, req *http.Request) bool { return req.Header.Get("Cookie") == "" }),
		},
		{
			Name: "wants-an-accept-header", Doc: "Content negotiation refuses a request that names nothing it accepts.",
			Fails: []string{bare},
			New:   before(http.StatusNotAcceptable, func(_ Config, req *http.Request) bool { return req.Header.Get("Accept") == "" }),
		},
		{
			Name: "wants-a-browser", Doc: "A filter against bots refuses every User-Agent but those of browsers.",
			Fails: []string{bare},
			New: before(http.StatusForbidden, func(_ Config, req *http.Request) bool {
				return !strings.HasPrefix(req.Header.Get("User-Agent"), "Mozilla/")
			}),
		},
		{
			Name: "sets-a-cookie", Doc: "A session begins with each delivery.",
			Fails: []string{"receiver.acknowledge.answer"}, Profile: "xero",
			New: around(func(_ Config, next http.Handler) http.HandlerFunc {
				return func(w http.ResponseWriter, req *http.Request) {
					http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
					next.ServeHTTP(w, req)
				}
			}),
		},
		{
			Name: "answers-with-a-page", Doc: "Each delivery is answered with a page.",
			Fails: []string{"receiver.acknowledge.answer"}, Profile: "xero",
			New: around(func(_ Config, next http.Handler) http.HandlerFunc {
				return func(w http.ResponseWriter, req *http.Request) {
					w.Header().Set("Content-Type", "text/html; charset=utf-8")
					next.ServeHTTP(w, req)
					_, _ = w.Write([]byte("<!doctype html><title>Thank you</title>"))
				}
			}),
		},
	}
}

// envelope is what the mutants read of an event.
type envelope struct {
	Type       string          `json:"type"`
	APIVersion string          `json:"api_version"`
	Data       json.RawMessage `json:"data"`
}

// about makes a condition on events that are JSON objects.
func about(when func(c Config, e envelope) bool) func(Config, []byte) bool {
	return func(c Config, body []byte) bool {
		var e envelope
		return json.Unmarshal(body, &e) == nil && when(c, e)
	}
}

// contentMutants judge an authentic event by its content before they answer.
func contentMutants() []Mutant {
	const poison, acknowledged = "receiver.acknowledge.poison-event", "receiver.acknowledge.poison-event.acknowledged"
	return []Mutant{
		{
			Name: "throws-at-malformed-events", Doc: "It parses an event before it answers, and malformed JSON becomes a 500.",
			Fails: []string{poison, acknowledged},
			New: accepted(http.StatusInternalServerError, func(_ Config, body []byte) bool {
				return bytes.HasPrefix(body, []byte("{")) && len(body) < 1000 && !json.Valid(body)
			}),
		},
		{
			Name: "throws-at-missing-data", Doc: "It works on an event before it answers, and one without data becomes a 500.",
			Fails: []string{poison, acknowledged},
			New: accepted(http.StatusInternalServerError, about(func(_ Config, e envelope) bool {
				return e.Type != "" && e.Data == nil
			})),
		},
		{
			Name: "refuses-unknown-objects", Doc: "It answers 422 to an event about something that it does not know.",
			Fails: []string{acknowledged},
			New: accepted(http.StatusUnprocessableEntity, about(func(_ Config, e envelope) bool {
				var data struct{ Invoice string }
				return json.Unmarshal(e.Data, &data) == nil && !strings.HasPrefix(data.Invoice, "inv_")
			})),
		},
		{
			Name: "refuses-unknown-types", Doc: "It answers 400 to a type of event that it does not know.",
			Fails: []string{"receiver.acknowledge.unknown-type"},
			New: accepted(http.StatusBadRequest, about(func(c Config, e envelope) bool {
				return e.Type != "" && !slices.Contains(c.Profile.EventTypes, e.Type)
			})),
		},
		{
			Name: "refuses-unknown-fields", Doc: "It binds the data of an event to a strict schema.",
			Fails: []string{"receiver.acknowledge.unknown-fields"},
			New: accepted(http.StatusBadRequest, about(func(_ Config, e envelope) bool {
				d := json.NewDecoder(bytes.NewReader(e.Data))
				d.DisallowUnknownFields()
				var data struct{ Amount, Currency, Invoice, Sequence any }
				return e.Data != nil && d.Decode(&data) != nil
			})),
		},
		{
			Name: "refuses-other-versions", Doc: "It answers 400 to an event of another version than the first it got.",
			Fails:   []string{"receiver.acknowledge.other-version"},
			Profile: "delivery-envelope",
			New: answering(func(c Config) func(*http.Request, []byte, int) int {
				var first sync.Map
				other := about(func(_ Config, e envelope) bool {
					own, known := first.LoadOrStore("version", e.APIVersion)
					return known && e.APIVersion != "" && e.APIVersion != own
				})
				return func(_ *http.Request, body []byte, right int) int {
					if right == http.StatusOK && other(c, body) {
						return http.StatusBadRequest
					}
					return right
				}
			}),
		},
	}
}

// handshakeMutants do not answer a provider's validation as it expects.
func handshakeMutants() []Mutant {
	const handshake = "receiver.acknowledge.handshake"
	none := reference(func(r *receiver.Config) {
		p := *r.Profile
		p.Handshake = "none"
		r.Profile = &p
	})
	return []Mutant{
		{
			Name: "keeps-the-challenge", Doc: "It takes Slack's challenge for an event.",
			Fails: []string{handshake}, Profile: "slack", New: none,
		},
		{
			Name: "keeps-the-plain-token", Doc: "It takes Zoom's validation for an event.",
			Fails: []string{handshake}, Profile: "zoom", New: none,
		},
		{
			Name: "answers-202", Doc: "It answers 202 where the provider wants exactly 200.",
			Fails: []string{handshake}, Profile: "xero",
			New: accepted(http.StatusAccepted, func(Config, []byte) bool { return true }),
		},
	}
}
