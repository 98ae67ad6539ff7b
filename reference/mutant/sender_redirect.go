package mutant

import (
	"io"
	"net/http"

	"github.com/whconform/whconform/reference/sender"
)

// redirectSenders break sender.redirect.*.
func redirectSenders() []SenderMutant {
	const followed = "sender.redirect.not-followed"
	return []SenderMutant{
		{
			Name: "follows-as-get", Doc: "The client follows 301, 302 and 303 by itself, with GET, as most do.",
			Fails: []string{followed, "sender.redirect.counts-as-failure", "sender.redirect.counts-as-failure.logged", onFailureStatus},
			Change: answeringBy(func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
				client := http.Client{Transport: next}
				return client.Do(own(req))
			}),
		},
		{
			Name: "follows-307-with-the-body", Doc: "The client follows 307 and 308 and carries the signed message to wherever they lead.",
			Fails: []string{followed, "sender.redirect.counts-as-failure", "sender.redirect.counts-as-failure.logged", onFailureStatus},
			Change: answeringBy(func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(io.LimitReader(req.Body, 2*sender.MaxPayload))
				if err != nil {
					return nil, err
				}
				client := http.Client{Transport: next, CheckRedirect: func(to *http.Request, _ []*http.Request) error {
					if to.Method != http.MethodPost {
						return http.ErrUseLastResponse
					}
					return nil
				}}
				return client.Do(repeatable(req, body))
			}),
		},
		{
			Name: "redirect-is-success", Doc: "A redirect is taken for a success.",
			Fails: []string{"sender.redirect.counts-as-failure", onFailureStatus},
			Change: delivered(func(r sender.Result) bool {
				return r.Status == 301 || r.Status == 302 || r.Status == 303 || r.Status == 307 || r.Status == 308
			}),
		},
		{
			Name: "logs-redirects-without-status", Doc: "The delivery log has no status for a redirect.",
			Fails: []string{"sender.redirect.counts-as-failure.logged"},
			Change: logging(func(line sender.Attempt) (sender.Attempt, bool) {
				if line.Status >= 300 && line.Status < 400 {
					line.Status, line.Error = 0, "redirected"
				}
				return line, true
			}),
		},
	}
}

// own is a request as a client takes it: it sets what it follows with by itself.
func own(req *http.Request) *http.Request {
	out := req.Clone(req.Context())
	out.RequestURI = ""
	return out
}

// repeatable is own with a body that can be sent more than once.
func repeatable(req *http.Request, body []byte) *http.Request {
	out := own(req)
	out.GetBody = func() (io.ReadCloser, error) { return readAgain(body), nil }
	out.Body = readAgain(body)
	return out
}
