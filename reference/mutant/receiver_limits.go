package mutant

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whconform/whconform/reference/receiver"
)

// limitsMutants break receiver.limits.*.
func limitsMutants() []Mutant {
	return slices.Concat(sizeMutants(), heldMutants(), headerMutants(), shapeMutants(), abuseMutants())
}

const (
	oversize        = "receiver.limits.rejects-oversize"
	oversizeChunked = "receiver.limits.rejects-oversize-chunked"
)

// sizeMutants mistake the size of a body.
func sizeMutants() []Mutant {
	// draining reads the whole of a body that when picks, however large.
	draining := func(when func(req *http.Request) bool) maker {
		return around(func(c Config, next http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, req *http.Request) {
				if when(req) {
					whole, larger := head(c, w, req)
					if larger {
						_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
						_, _ = io.Copy(io.Discard, whole)
						w.WriteHeader(http.StatusUnauthorized)
						return
					}
					req = withBody(req, whole)
				}
				next.ServeHTTP(w, req)
			}
		})
	}
	// refusing answers 401 where the reference says 413.
	refusing := answering(func(Config) func(*http.Request, []byte, int) int {
		return func(_ *http.Request, _ []byte, right int) int {
			if right == http.StatusRequestEntityTooLarge {
				return http.StatusUnauthorized
			}
			return right
		}
	})
	return []Mutant{
		{
			Name: "takes-16-kib", Doc: "It takes bodies of 16 KiB at most.",
			Fails: []string{"receiver.limits.accepts-recommended-size"},
			New:   reference(func(r *receiver.Config) { r.MaxBody = 16 << 10 }),
		},
		{
			Name: "takes-100-kb", Doc: "It takes bodies of 100 kB at most, the default of its framework.",
			Fails: []string{"receiver.limits.accepts-provider-size"}, Profile: "github",
			New: reference(func(r *receiver.Config) { r.MaxBody = 100_000 }),
		},
		{
			Name: "reads-it-all", Doc: "It has no limit on the body.",
			Fails: []string{oversize, oversizeChunked},
			New:   draining(func(*http.Request) bool { return true }),
		},
		{
			Name: "ignores-the-length", Doc: "It compares the size with its limit once it has read a body of declared length.",
			Fails: []string{oversize},
			New:   draining(func(req *http.Request) bool { return req.ContentLength >= 0 }),
		},
		{
			Name: "trusts-the-length", Doc: "It compares Content-Length with its limit, and nothing where there is none.",
			Fails: []string{oversizeChunked},
			New:   draining(func(req *http.Request) bool { return req.ContentLength < 0 }),
		},
		{
			Name: "refuses-by-401", Doc: "It answers 401 to a body that is too large.",
			Fails: []string{oversize + ".status", oversizeChunked + ".status"},
			New:   refusing,
		},
		{
			Name: "forgets-the-status", Doc: "When the body breaks off its handler returns without a status, which becomes 200.",
			Fails: []string{"receiver.limits.lying-length", "receiver.limits.lying-length.incomplete"},
			New: around(func(_ Config, next http.Handler) http.HandlerFunc {
				return func(w http.ResponseWriter, req *http.Request) {
					broken := false
					body := readerFunc(func(b []byte) (int, error) {
						n, err := req.Body.Read(b)
						broken = broken || errors.Is(err, io.ErrUnexpectedEOF)
						return n, err
					})
					next.ServeHTTP(&answer{ResponseWriter: w, change: func(status int) int {
						if broken {
							return http.StatusOK
						}
						return status
					}}, withBody(req, body))
				}
			}),
		},
		{
			Name: "takes-what-there-is", Doc: "It takes the end of the connection for the end of the body.",
			Fails: []string{"receiver.limits.lying-length.incomplete"},
			New: around(func(_ Config, next http.Handler) http.HandlerFunc {
				return func(w http.ResponseWriter, req *http.Request) {
					next.ServeHTTP(w, withBody(req, readerFunc(func(b []byte) (int, error) {
						n, err := req.Body.Read(b)
						if errors.Is(err, io.ErrUnexpectedEOF) {
							err = io.EOF
						}
						return n, err
					})))
				}
			}),
		},
	}
}

// heldMutants let one peer hold a connection for ever.
func heldMutants() []Mutant {
	const stalled, slow = "receiver.limits.lying-length.stalled", "receiver.limits.slow-body"
	needs := []string{Slow}
	return []Mutant{
		{
			Name: "waits-for-ever", Doc: "It has no bound on the time that a body takes.",
			Fails: []string{stalled, slow}, Needs: needs,
			New: reference(func(r *receiver.Config) { r.BodyTimeout = time.Hour }),
		},
		{
			Name: "starts-anew-with-each-byte", Doc: "Its bound is on the time between two bytes.",
			Fails: []string{slow}, Needs: needs,
			New: around(func(c Config, next http.Handler) http.HandlerFunc {
				return func(w http.ResponseWriter, req *http.Request) {
					next.ServeHTTP(w, withBody(req, readerFunc(func(b []byte) (int, error) {
						idle := time.Now().Add(orDefault(c.BodyTimeout, receiver.DefaultBodyTimeout))
						_ = http.NewResponseController(w).SetReadDeadline(idle) // else the reference's stands
						return req.Body.Read(b)
					})))
				}
			}),
		},
		{
			Name: "looks-at-the-clock-between-bytes", Doc: "It compares the time with its bound whenever a byte has come.",
			Fails: []string{stalled}, Needs: needs,
			New: around(func(c Config, next http.Handler) http.HandlerFunc {
				return func(w http.ResponseWriter, req *http.Request) {
					end := time.Now().Add(orDefault(c.BodyTimeout, receiver.DefaultBodyTimeout))
					next.ServeHTTP(noDeadlines{w}, withBody(req, readerFunc(func(b []byte) (int, error) {
						if time.Now().After(end) {
							return 0, os.ErrDeadlineExceeded
						}
						return req.Body.Read(b)
					})))
				}
			}),
		},
	}
}

// noDeadlines hides the connection's deadlines from the reference.
type noDeadlines struct{ http.ResponseWriter }

// headerMutants mistake the size of a header.
func headerMutants() []Mutant {
	const huge, many = "receiver.limits.huge-header", "receiver.limits.many-signatures"
	large := func(s *http.Server) { s.MaxHeaderBytes = 64 << 20 }
	size := func(h http.Header) (n int) {
		for _, values := range h {
			n += len(strings.Join(values, ""))
		}
		return n
	}
	tokens := func(req *http.Request) int { return len(strings.Fields(req.Header.Get("webhook-signature"))) }
	return []Mutant{
		{
			Name: "takes-any-header", Doc: "It has no limit on the header.",
			Fails: []string{huge}, Server: large, New: reference(),
		},
		{
			Name: "throws-at-a-huge-header", Doc: "A header that does not fit its buffer meets an error that it does not catch.",
			Fails: []string{huge}, Server: large,
			New: before(http.StatusInternalServerError, func(_ Config, req *http.Request) bool { return size(req.Header) > 256<<10 }),
		},
		{
			Name: "throws-at-many-signatures", Doc: "More than a hundred signatures meet an error that it does not catch.",
			Fails: []string{many},
			New:   before(http.StatusInternalServerError, func(_ Config, req *http.Request) bool { return tokens(req) > 100 }),
		},
		{
			Name: "works-for-each-signature", Doc: "It computes the expected signature anew for each of a thousand.",
			Fails: []string{many + ".fast"},
			New:   delayed(Config.sluggish, func(req *http.Request) bool { return tokens(req) > 100 }),
		},
	}
}

// shapeMutants know only the most common shape of a request.
func shapeMutants() []Mutant {
	nested := func(body []byte) bool { return bytes.Count(body, []byte("[")) > 1000 }
	return []Mutant{
		{
			Name: "throws-at-deep-json", Doc: "It parses an event by recursion before it answers, and deep nesting becomes a 500.",
			Fails: []string{"receiver.limits.deep-json.answers"},
			New:   accepted(http.StatusInternalServerError, func(_ Config, body []byte) bool { return nested(body) }),
		},
		{
			Name: "dies-of-deep-json", Doc: "Deep nesting overflows its stack after the answer, and the next delivery finds it gone.",
			Fails: []string{"receiver.limits.deep-json"}, Needs: []string{OneAtATime},
			New: answering(func(Config) func(*http.Request, []byte, int) int {
				var gone atomic.Bool
				return func(_ *http.Request, body []byte, right int) int {
					if gone.Swap(right == http.StatusOK && nested(body)) {
						return http.StatusBadGateway
					}
					return right
				}
			}),
		},
		{
			Name: "throws-at-an-empty-body", Doc: "An authentic empty body meets an error that it does not catch.",
			Fails: []string{"receiver.limits.empty-body"},
			New:   accepted(http.StatusInternalServerError, func(_ Config, body []byte) bool { return len(body) == 0 }),
		},
		{
			Name: "takes-any-method", Doc: "Its route takes every method.",
			Fails: []string{"receiver.limits.wrong-method"},
			New: around(func(_ Config, next http.Handler) http.HandlerFunc {
				return func(w http.ResponseWriter, req *http.Request) {
					posted := req.WithContext(req.Context())
					posted.Method = http.MethodPost
					next.ServeHTTP(w, posted)
				}
			}),
		},
		{
			Name: "wants-one-content-type", Doc: "It compares the content type as a whole, parameters included.",
			Fails: []string{"receiver.limits.content-type"},
			New: before(http.StatusUnsupportedMediaType, func(_ Config, req *http.Request) bool {
				return req.Header.Get("Content-Type") != "application/json"
			}),
		},
		{
			Name: "knows-no-chunks", Doc: "A gateway in front hands on an empty body where there is no Content-Length.",
			Fails: []string{"receiver.limits.chunked"},
			New: around(func(c Config, next http.Handler) http.HandlerFunc {
				return func(w http.ResponseWriter, req *http.Request) {
					if req.ContentLength < 0 {
						whole, larger := head(c, w, req)
						if !larger {
							whole = http.NoBody
						}
						req = withBody(req, whole)
					}
					next.ServeHTTP(w, req)
				}
			}),
		},
		{
			Name: "refuses-expectations", Doc: "It answers 417 to Expect: 100-continue.",
			Fails: []string{"receiver.limits.expect-continue"},
			New:   before(http.StatusExpectationFailed, func(_ Config, req *http.Request) bool { return req.Header.Get("Expect") != "" }),
		},
	}
}

// abuseMutants let forgeries decide about authentic deliveries.
func abuseMutants() []Mutant {
	const flood = "receiver.limits.flood"
	needs := []string{Slow, Load}
	return []Mutant{
		{
			Name: "throttles-everybody", Doc: "While it is flooded with forgeries it answers 429 to the authentic as well.",
			Fails: []string{flood}, Needs: needs,
			New: flooded(100*time.Millisecond, http.StatusTooManyRequests),
		},
		{
			Name: "wears-out", Doc: "A flood of forgeries leaks so much that nothing is served after it.",
			Fails: []string{flood, "receiver.limits.alive-after-abuse"}, Needs: needs,
			New: flooded(time.Hour, http.StatusInternalServerError),
		},
	}
}

// floodSize is how many forgeries of one event make a flood: nobody who tries
// single faults sends one so often.
const floodSize = 20

// flooded answers everything with the status once a flood has come, until it
// has been over for some time.
func flooded(last time.Duration, status int) maker {
	return answering(func(Config) func(*http.Request, []byte, int) int {
		var mu sync.Mutex
		forged := map[string]int{}
		var until time.Time
		return func(req *http.Request, _ []byte, right int) int {
			mu.Lock()
			defer mu.Unlock()
			if id := req.Header.Get("webhook-id"); right == http.StatusUnauthorized && id != "" {
				if forged[id]++; forged[id] > floodSize {
					until = time.Now().Add(last)
				}
			}
			if time.Now().Before(until) {
				return status
			}
			return right
		}
	})
}

// headSize is where bodies begin that are larger than the contract allows.
const headSize = receiver.DefaultMaxBody

// head reads the beginning of a body, under the reference's bound on time, and
// tells whether there is more. What it returns reads as the whole body.
func head(c Config, w http.ResponseWriter, req *http.Request) (whole io.Reader, larger bool) {
	end := time.Now().Add(orDefault(c.BodyTimeout, receiver.DefaultBodyTimeout))
	_ = http.NewResponseController(w).SetReadDeadline(end)
	b, err := io.ReadAll(io.LimitReader(req.Body, headSize+1))
	if err != nil {
		return io.MultiReader(bytes.NewReader(b), readerFunc(func([]byte) (int, error) { return 0, err })), false
	}
	return io.MultiReader(bytes.NewReader(b), req.Body), len(b) > headSize
}

// withBody is req with another body.
func withBody(req *http.Request, body io.Reader) *http.Request {
	out := req.WithContext(req.Context())
	out.Body = io.NopCloser(body)
	return out
}

// readerFunc is a reader made of one function.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
