package mutant

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"

	"github.com/whconform/whconform/reference/sender"
)

// unlimited is how much these mutants read at most, 1 GiB: so much that nobody
// takes it for a limit, and a run still ends.
const unlimited = 1 << 30

// responseSenders break sender.response.*.
func responseSenders() []SenderMutant {
	const huge = "sender.response.huge-body"
	return []SenderMutant{
		{
			Name: "reads-whole-answers", Doc: "The body of an answer is read to its end.",
			Fails: []string{huge},
			Change: answeringBy(func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
				return drained(next.RoundTrip(req))
			}),
		},
		{
			Name: "unpacks-answers", Doc: "The client asks for gzip and unpacks an answer to its end.",
			Fails: []string{huge},
			Change: answeringBy(func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
				req.Header.Set("Accept-Encoding", "gzip")
				answer, err := next.RoundTrip(req)
				if err != nil || answer.Header.Get("Content-Encoding") != "gzip" {
					return answer, err
				}
				if plain, err := gzip.NewReader(answer.Body); err == nil {
					answer.Body, answer.ContentLength = both{plain, answer.Body}, -1
				}
				return drained(answer, nil)
			}),
		},
		{
			Name: "headers-without-a-limit", Doc: "The headers of an answer may be of any size.",
			Fails: []string{"sender.response.endless-headers"},
			Change: network(func(t *sender.TransportOptions) {
				t.Faults.Pool = func(pool *http.Transport) { pool.MaxResponseHeaderBytes = unlimited }
			}),
		},
		{
			Name: "logs-the-whole-body", Doc: "The delivery log keeps error pages of any size.",
			Fails: []string{"sender.response.not-stored-whole"},
			Change: func(o *sender.Options) {
				network(func(t *sender.TransportOptions) { t.ErrorBody = 64 << 10 })(o)
				var bodies memory[[]byte]
				o.Faults.Outcome = func(a sender.AttemptInfo, r sender.Result, out sender.Outcome) sender.Outcome {
					bodies.change(a.MessageID, func([]byte) []byte { return r.Body })
					return out
				}
				o.Faults.Log = func(line sender.Attempt) (sender.Attempt, bool) {
					line.Body = bodies.keep(line.MessageID, nil)
					return line, true
				}
			},
		},
	}
}

// drained reads an answer's body to its end, and gives it on as it was as far as
// anybody may look at it.
func drained(answer *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	var head bytes.Buffer
	_, err = io.CopyN(&head, answer.Body, 64<<10)
	if err == nil {
		_, err = io.CopyN(io.Discard, answer.Body, unlimited)
	}
	rest := answer.Body
	if err == nil || err == io.EOF {
		rest = http.NoBody
		_ = answer.Body.Close() // all of it was read
	}
	answer.Body = both{io.MultiReader(&head, rest), answer.Body}
	return answer, nil
}

// both is a body that is read at one place and closed at another.
type both struct {
	io.Reader
	io.Closer
}
