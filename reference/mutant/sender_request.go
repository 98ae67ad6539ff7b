package mutant

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/whconform/whconform/reference/sender"
	"github.com/whconform/whconform/reference/wire"
)

// requestSenders break sender.request.*.
func requestSenders() []SenderMutant {
	return []SenderMutant{
		{
			Name: "puts", Doc: "It sends PUT.",
			Fails: []string{"sender.request.post"},
			Change: answeringBy(func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
				req.Method = http.MethodPut
				return next.RoundTrip(req)
			}),
		},
		{
			Name: "adds-headers", Doc: "It adds the headers of a retry to those of the attempt before.",
			Fails: append(retriesDoNotVerify(), "sender.request.headers"),
			Change: requesting(func(a sender.AttemptInfo, r sender.Request) sender.Request {
				if a.Number > 1 {
					r.Headers = append(r.Headers, wire.Header{Name: "webhook-timestamp", Value: header(r, "webhook-timestamp")})
				}
				return r
			}),
		},
		{
			Name: "posts-text", Doc: "A helper that posts a string sets text/plain.",
			Fails: []string{"sender.request.content-type"},
			Change: requesting(func(_ sender.AttemptInfo, r sender.Request) sender.Request {
				return withHeader(r, "Content-Type", "text/plain; charset=utf-8")
			}),
		},
		{
			Name: "own-envelope", Doc: "Its payloads have members of its own names.",
			Fails: []string{"sender.request.payload-shape", "sender.request.event-time"},
			Change: ownPayload(func(_ sender.AttemptInfo, p map[string]json.RawMessage) {
				p["happened"] = p["timestamp"]
				delete(p, "timestamp")
			}),
		},
		{
			Name: "types-with-slashes", Doc: "Its types are paths.",
			Fails: []string{"sender.request.type-name"},
			Change: ownPayload(func(_ sender.AttemptInfo, p map[string]json.RawMessage) {
				p["type"] = json.RawMessage(strings.ReplaceAll(string(p["type"]), ".", "/"))
			}),
		},
		{
			Name: "times-without-offset", Doc: "It writes times without an offset.",
			Fails: []string{"sender.request.event-time"},
			Change: ownPayload(func(_ sender.AttemptInfo, p map[string]json.RawMessage) {
				p["timestamp"] = json.RawMessage(strings.Replace(string(p["timestamp"]), "Z", "", 1))
			}),
		},
		{
			Name: "sends-everything", Doc: "It puts the whole history of a record into each payload.",
			Fails: []string{"sender.request.small"},
			Change: ownPayload(func(_ sender.AttemptInfo, p map[string]json.RawMessage) {
				p["history"] = json.RawMessage(`"` + strings.Repeat("x", 21<<10) + `"`)
			}),
		},
		{
			Name: "one-version-for-all", Doc: "Every endpoint gets the newest version of a payload.",
			Fails: []string{"sender.request.api-version"}, Profile: DeliveryEnvelope,
			Change: ownPayload(func(_ sender.AttemptInfo, p map[string]json.RawMessage) {
				p["api_version"] = json.RawMessage(`"2026-06-01"`)
			}),
		},
		{
			Name: "omits-what-is-empty", Doc: "Members that are null or empty are left out.",
			Fails: []string{"sender.request.fields-only-added"},
			Change: ownPayload(func(_ sender.AttemptInfo, p map[string]json.RawMessage) {
				p["data"] = withoutEmpty(p["data"])
			}),
		},
		{
			Name: "sends-the-secret", Doc: "It authenticates by a header with the secret, beside the signature.",
			Fails: []string{"sender.request.no-secret"},
			Change: func(o *sender.Options) {
				var secrets memory[string]
				o.Faults.Secrets = func(a sender.AttemptInfo, all []string) []string {
					secrets.change(a.EndpointID, func(string) string { return all[0] })
					return all
				}
				o.Faults.Request = func(a sender.AttemptInfo, r sender.Request) sender.Request {
					r.Headers = append(r.Headers, wire.Header{Name: "X-Webhook-Token", Value: secrets.keep(a.EndpointID, "")})
					return r
				}
			},
		},
	}
}

// withoutEmpty is a JSON value whose objects have no members that are null or
// empty.
func withoutEmpty(value json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil {
		return value
	}
	for name, v := range members {
		switch strings.TrimSpace(string(v)) {
		case `null`, `""`, `[]`, `{}`:
			delete(members, name)
		default:
			members[name] = withoutEmpty(v)
		}
	}
	out, err := plainJSON(members)
	if err != nil {
		return value
	}
	return out
}
