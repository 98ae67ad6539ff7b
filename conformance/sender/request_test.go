package sender

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance/evidence"
)

func alright(parts ...part) map[string]*evidence.Transcript {
	return map[string]*evidence.Transcript{"a sender that does it right": recorded(parts...)}
}

func one(changes ...func(*attempt)) *evidence.Transcript {
	return recorded(try(plainName, 0, 200, changes...))
}

func TestARequestIsAPOSTWithABody(t *testing.T) {
	tell(t, judgePost, alright(try(plainName, 0, 200), try(retriedName, 0, 500), try(retriedName, 5*time.Second, 200)), []wrongly{
		{"another method", one(method("PUT")), "PUT", "default method"},
		{"a GET without a body", one(method("GET"), body("")), "GET", "default method"},
		{"no body", one(body("")), "empty", "query"},
		{"the retry is a GET", recorded(try(plainName, 0, 200), try(retriedName, 0, 500), try(retriedName, 5*time.Second, 200, method("GET"))), "GET", ""},
		{"nothing at all", recorded(), "none came", ""},
	})
}

func TestEachHeaderOfTheProfileStandsOnceUnderItsName(t *testing.T) {
	tell(t, judgeHeaders, map[string]*evidence.Transcript{
		"as the profile spells them":  one(),
		"in another case":             one(without("webhook-id"), more("Webhook-Id", "msg_1")),
		"others beside them":          one(more("svix-id", "msg_1")),
		"a comma within a value":      one(with("webhook-signature", "v1,a v1,b")),
		"different values on retries": recorded(try(plainName, 0, 500), try(plainName, 5*time.Second, 200)),
	}, []wrongly{
		{"another prefix", one(without("webhook-id"), more("X-Webhook-Id", "msg_1")), "there is no webhook-id", "X-Webhook-Id"},
		{"another separator", one(without("webhook-timestamp"), more("webhook_timestamp", "1")), "there is no webhook-timestamp", "webhook_timestamp"},
		{"none that is alike", one(without("webhook-signature")), "there is no webhook-signature", ""},
		{"two lines", one(more("Webhook-Signature", "v1,x")), "2 lines", "added"},
		{"an empty one", one(with("webhook-id", " ")), "empty", ""},
		{"missing on the retry", recorded(try(plainName, 0, 500), try(plainName, 5*time.Second, 200, without("webhook-id"))), "there is no webhook-id", ""},
	})
}

func TestTheContentTypeIsJSON(t *testing.T) {
	tell(t, judgeContentType, map[string]*evidence.Transcript{
		"application/json": one(), "with a charset": one(with("Content-Type", "application/json; charset=utf-8")), "in capitals": one(with("Content-Type", "Application/JSON")),
	}, []wrongly{
		{"none", one(without("Content-Type")), "no Content-Type", ""},
		{"text", one(with("Content-Type", "text/plain")), "text/plain", "Helpers"},
		{"a suffix", one(with("Content-Type", "application/cloudevents+json")), "cloudevents", ""},
		{"no JSON", one(body("a=b")), "no JSON", "twice"},
	})
}

func TestAPayloadHasTheMembersOfTheProfile(t *testing.T) {
	tell(t, judgeShape, map[string]*evidence.Transcript{
		"as the profile has it":            one(),
		"with more":                        one(body(`{"type":"a","timestamp":"b","data":{},"tenant":1}`)),
		"data that is squashed to the top": one(body(`{"type":"a","timestamp":"b","order":"o_1"}`)),
	}, []wrongly{
		{"no type", one(body(`{"timestamp":"b","data":{}}`)), "lacks type", ""},
		{"other names", one(body(`{"event":"a","created":"b","data":{}}`)), "lacks timestamp, type", "other names"},
		{"nothing but the envelope", one(body(`{"type":"a","timestamp":"b"}`)), "lacks data", ""},
		{"a list", one(body(`[]`)), "no JSON object", ""},
	})
	members := fact{factMembers, "api_version created_at data delivery_id type"}
	tell(t, judgeShape, alright(members, try(plainName, 0, 200, body(`{"delivery_id":"a","type":"b","created_at":"c","api_version":"d","data":{}}`))), []wrongly{
		{"squashed where the profile has no such form", recorded(members, try(plainName, 0, 200, body(`{"delivery_id":"a","type":"b","created_at":"c","api_version":"d","x":1}`))), "lacks data", ""},
	})
}

func TestATypeIsWordsWithFullStops(t *testing.T) {
	typed := func(name string) *evidence.Transcript { return one(body(fmt.Sprintf(`{"type":%q}`, name))) }
	tell(t, judgeTypeName, map[string]*evidence.Transcript{"words": typed("order.shipped"), "one word": typed("ping"), "digits and underscores": typed("v2.order_item.created")}, []wrongly{
		{"a slash", typed("order/shipped"), "order/shipped", ""},
		{"a dash", typed("order-shipped"), "order-shipped", ""},
		{"an empty part", typed("order..shipped"), "order..shipped", ""},
		{"a number", one(body(`{"type":1}`)), "no type", ""},
		{"none", one(body(`{}`)), "no type", ""},
	})
}

func TestTheTimeInAPayloadIsTheEvents(t *testing.T) {
	happened := start.Add(-eventAge)
	timed := func(text string) *evidence.Transcript { return one(body(fmt.Sprintf(`{"timestamp":%q}`, text))) }
	tell(t, judgeEventTime, map[string]*evidence.Transcript{
		"in UTC": timed(happened.Format(time.RFC3339)), "with a fraction": timed(happened.Format("2006-01-02T15:04:05.000Z07:00")),
		"with an offset":                        timed(happened.In(time.FixedZone("", 2*3600)).Format(time.RFC3339)),
		"a profile whose payloads tell no time": recorded(fact{factTime, ""}, try(plainName, 0, 200, body(`{}`))),
	}, []wrongly{
		{"without an offset", timed(happened.Format("2006-01-02T15:04:05")), "2026", "without one"},
		{"the time of the attempt", timed(start.Format(time.RFC3339)), "when it was sent", "not when the event"},
		{"local time as UTC", timed(happened.Add(2 * time.Hour).Format(time.RFC3339)), "2026", "another zone"},
		{"a number", one(body(`{"timestamp":1767225600}`)), "no text", "no ISO 8601"},
		{"another time on the retry", recorded(
			try(retriedName, 0, 500), try(retriedName, 10*time.Minute, 200, body(fmt.Sprintf(`{"timestamp":%q}`, start.Add(10*time.Minute).Format(time.RFC3339))))), "when it was sent", ""},
	})
}

func TestAnEventIsSmall(t *testing.T) {
	tell(t, judgeSmall, map[string]*evidence.Transcript{"small": one(), "just small": one(body(strings.Repeat("x", smallEvent)))}, []wrongly{
		{"one byte more", one(body(strings.Repeat("x", smallEvent+1))), "20481 bytes", "ids"},
	})
}

func TestFieldsStayWhereValuesAreEmpty(t *testing.T) {
	full := try(plainName, 0, 200, body(`{"type":"a","data":{"note":"x","list":[1],"in":{"deep":1}}}`))
	tell(t, judgeFields, map[string]*evidence.Transcript{
		"null and nothing": recorded(full, try(plainName, 0, 200, body(`{"type":"a","data":{"note":null,"list":[],"in":{"deep":null}}}`))),
		"in another order": recorded(try(plainName, 0, 200, body(`{"data":{"in":{"deep":0},"list":[],"note":""},"type":"a"}`)), full),
	}, []wrongly{
		{"null is left out", recorded(full, try(plainName, 0, 200, body(`{"type":"a","data":{"list":[],"in":{"deep":1}}}`))), "lacks data.note", "omitempty"},
		{"more from some event on", recorded(full, try(plainName, 0, 200, body(`{"type":"a","data":{"note":"","list":[],"in":{"deep":0},"new":1}}`))), "lacks data.new", ""},
		{"an empty object is left out", recorded(full, try(plainName, 0, 200, body(`{"type":"a","data":{"note":"x","list":[1]}}`))), "lacks data.in, data.in.deep", ""},
	})
}

func TestASecretIsSeenInARequest(t *testing.T) {
	tell(t, judgeNoSecret, map[string]*evidence.Transcript{"none": one()}, []wrongly{
		{"in the request", one(leaking), "it holds secret 1", "token"},
		{"in the retry only", recorded(try(retriedName, 0, 500), try(retriedName, 5*time.Second, 200, leaking)), "it holds secret 1", ""},
	})
}

func TestEachEndpointGetsItsVersion(t *testing.T) {
	versions := fact{factVersions, "2025-01-01 2026-06-01"}
	old, young := "pinned to 2025-01-01", "pinned to 2026-06-01"
	in := func(version string) func(*attempt) { return body(`{"api_version":"` + version + `"}`) }
	tell(t, judgeVersions, alright(versions, try(old, 0, 500, in("2025-01-01")), try(old, 5*time.Second, 200, in("2025-01-01")), try(young, 0, 200, with("Api-Version", "2026-06-01"))), []wrongly{
		{"the newest for all", recorded(versions, try(old, 0, 200, in("2026-06-01")), try(young, 0, 200, in("2026-06-01"))), "it is in 2026-06-01", "rendered when it is sent"},
		{"another on the retry", recorded(versions, try(old, 0, 500, in("2025-01-01")), try(old, 5*time.Second, 200, in("2026-06-01")), try(young, 0, 200, in("2026-06-01"))), "it is in 2026-06-01", ""},
		{"none at one", recorded(versions, try(old, 0, 200), try(young, 0, 200, in("2026-06-01"))), "names no version", ""},
		{"nothing at one", recorded(versions, try(young, 0, 200, in("2026-06-01"))), "none came", ""},
	})
}

func TestWhatIsReportedOfRequests(t *testing.T) {
	for _, tt := range []struct {
		name       string
		judge      judge
		t          *evidence.Transcript
		got, cause string
	}{
		{"minified", reportMinified, one(), "without insignificant blanks", ""},
		{"not minified", reportMinified, one(body(`{ "a": 1 }`)), "3 of 10 bytes", ""},
		{"a name", reportUserAgent, one(), "User-Agent: shop/1", ""},
		{"a library's name", reportUserAgent, one(with("User-Agent", "Go-http-client/1.1")), "Go-http-client", "HTTP library"},
		{"no name", reportUserAgent, one(without("User-Agent")), "no User-Agent", ""},
	} {
		got := tt.judge(tt.t)
		if len(got) != 1 || !strings.Contains(got[0].Got, tt.got) || !strings.Contains(got[0].Cause, tt.cause) {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	if got := reportUserAgent(recorded()); got != nil {
		t.Errorf("of nothing %+v is told", got)
	}
}
