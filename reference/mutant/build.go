package mutant

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/receiver"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// maker makes a handler: the type of Mutant.New.
type maker = func(Config) (http.Handler, error)

// change alters the configuration of the reference.
type change func(*receiver.Config)

// reference makes the reference with changes.
func reference(changes ...change) maker {
	return func(c Config) (http.Handler, error) {
		scheme, err := receiver.Scheme(c.Profile)
		if err != nil {
			return nil, err
		}
		if c.journal == nil { // nobody observes what it does
			if c.journal, err = openJournal("", c.Clock.Now); err != nil {
				return nil, err
			}
		}
		config := receiver.Config{
			Profile: c.Profile, Keys: c.Keys, Scheme: scheme,
			Clock: c.Clock, Logger: c.Logger, BodyTimeout: c.BodyTimeout,
		}
		for _, apply := range changes {
			apply(&config)
		}
		if config.Store == nil {
			if config.Store, err = durable(c); err != nil {
				return nil, err
			}
		}
		return receiver.New(config)
	}
}

// around makes the reference with a handler of the mutant's own in front of it.
// wrap is called once for each receiver, so what it declares is that receiver's
// state.
func around(wrap func(c Config, reference http.Handler) http.HandlerFunc, changes ...change) maker {
	return func(c Config) (http.Handler, error) {
		h, err := reference(changes...)(c)
		if err != nil {
			return nil, err
		}
		return wrap(c, h), nil
	}
}

// spec makes the reference with another signature scheme.
func spec(edit func(*signature.Spec)) maker {
	return func(c Config) (http.Handler, error) {
		s := c.Profile.Signature
		edit(&s)
		scheme, err := signature.New(s)
		if err != nil {
			return nil, err
		}
		return reference(func(r *receiver.Config) { r.Scheme = scheme })(c)
	}
}

// verifying puts f in place of the reference's verification. It returns nil for
// what shall pass.
func verifying(f func(check) error) change {
	return func(r *receiver.Config) { r.Scheme = verifier{r.Scheme, f} }
}

// verifier is a scheme whose Verify is a mutant's.
type verifier struct {
	signature.Scheme
	verify func(check) error
}

func (v verifier) Verify(r *wire.Request, now time.Time, keys ...signature.Key) (signature.Key, error) {
	if err := v.verify(check{v.Scheme, *r, now, keys}); err != nil {
		return signature.Key{}, err
	}
	return keys[0], nil
}

// check is one verification: the request, and what the reference makes of it.
type check struct {
	scheme  signature.Scheme
	request wire.Request
	now     time.Time
	keys    []signature.Key
}

// right is the reference's verdict.
func (v check) right() error {
	_, err := v.scheme.Verify(&v.request, v.now, v.keys...)
	return err
}

// rule is the rule by which the reference refuses, "" if it accepts.
func (v check) rule() string {
	if refusal, ok := errors.AsType[*signature.Refusal](v.right()); ok {
		return refusal.Rule
	}
	return ""
}

// onlySignatureWrong tells whether nothing but the signature speaks against the
// request.
func (v check) onlySignatureWrong() bool {
	return v.rule() == signature.RuleNoMatch || v.rule() == signature.RuleMalformedSignature
}

// either is the verdict of two checks of which one is enough.
func either(v, other check) error {
	if v.right() == nil {
		return nil
	}
	return other.right()
}

// header is the value of a request header, "" where it is missing.
func (v check) header(name string) string {
	value, _ := wire.Get(v.request.Headers, name)
	return value
}

func (v check) id() string        { return v.header(v.scheme.Spec().ID.Name) }
func (v check) timestamp() string { return v.header(v.scheme.Spec().Timestamp.Name) }

// has tells whether the request has a header of that name, empty or not.
func (v check) has(name string) bool { return wire.Count(v.request.Headers, name) > 0 }

// signatures is the signature header's value, split at blanks.
func (v check) signatures() []string {
	return strings.Split(v.header(v.scheme.Spec().Signature.Name), " ")
}

// withSignatures is the check with another signature header.
func (v check) withSignatures(tokens ...string) check {
	v.request.Headers = wire.Set(v.request.Headers, v.scheme.Spec().Signature.Name, strings.Join(tokens, " "))
	return v
}

// withTimestamp is the check with another timestamp header.
func (v check) withTimestamp(text string) check {
	v.request.Headers = wire.Set(v.request.Headers, v.scheme.Spec().Timestamp.Name, text)
	return v
}

// withBody is the check with another body.
func (v check) withBody(b []byte) check {
	v.request.Body, v.request.Size = b, int64(len(b))
	return v
}

// withKeys is the check with further secrets.
func (v check) withKeys(keys ...signature.Key) check {
	v.keys = append(append([]signature.Key(nil), v.keys...), keys...)
	return v
}

// expected is the signature that the first key makes over the request as it
// stands, whatever its timestamp.
func (v check) expected() []byte {
	mac, err := v.scheme.MAC(signature.Input{ID: v.id(), Timestamp: v.timestamp(), Time: v.now, Body: v.request.Body}, v.keys[0])
	if err != nil {
		return nil // a key that cannot sign
	}
	return mac
}

// claimed is the check of a request that a handler has read.
func claimed(c Config, req *http.Request, body []byte) check {
	v := check{now: c.Clock.Now(), keys: c.Keys}
	v.scheme, _ = receiver.Scheme(c.Profile) // the reference was made from it before
	v.request = wire.Request{Method: req.Method, Target: req.URL.RequestURI()}
	for name, values := range req.Header {
		for _, value := range values {
			v.request.Headers = append(v.request.Headers, wire.Header{Name: name, Value: value})
		}
	}
	return v.withBody(body)
}

// relabelled puts another version label before each token, or adds it.
func relabelled(version string, tokens []string) []string {
	out := make([]string, len(tokens))
	for i, token := range tokens {
		out[i] = version + "," + token[strings.Index(token, ",")+1:]
	}
	return out
}

// shifted is a timestamp moved by some seconds, or the text as it stands where
// it is no number.
func shifted(timestamp string, by int64) string {
	n, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return timestamp
	}
	return strconv.FormatInt(n+by, 10)
}

// answering lets the reference answer and changes the status: f gets the
// request, the part of its body that was read, and the right status. What f
// keeps is the receiver's state.
func answering(f func(c Config) func(req *http.Request, body []byte, status int) int) maker {
	return around(func(c Config, next http.Handler) http.HandlerFunc {
		change := f(c)
		return func(w http.ResponseWriter, req *http.Request) {
			var body bytes.Buffer
			seen := req.WithContext(req.Context())
			seen.Body = tee{io.TeeReader(req.Body, &body), req.Body}
			next.ServeHTTP(&answer{ResponseWriter: w, change: func(status int) int {
				return change(req, body.Bytes(), status)
			}}, seen)
		}
	})
}

// accepted changes the answer to what the reference accepts, by its body: what
// a receiver does that works on the event before it answers.
func accepted(status int, when func(c Config, body []byte) bool) maker {
	return answering(func(c Config) func(*http.Request, []byte, int) int {
		return func(_ *http.Request, body []byte, right int) int {
			if right == http.StatusOK && when(c, body) {
				return status
			}
			return right
		}
	})
}

// refused changes the answer to what does not verify, by its body: what a
// receiver does that looks into the body first.
func refused(status int, when func(body []byte) bool) maker {
	return answering(func(Config) func(*http.Request, []byte, int) int {
		return func(_ *http.Request, body []byte, right int) int {
			if right == http.StatusUnauthorized && when(body) {
				return status
			}
			return right
		}
	})
}

// before answers with the status where the request itself is to blame, before
// the reference sees it.
func before(status int, when func(c Config, req *http.Request) bool) maker {
	return around(func(c Config, next http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			if when(c, req) {
				w.WriteHeader(status)
				return
			}
			next.ServeHTTP(w, req)
		}
	})
}

// delayed makes the reference wait before it looks at the requests that when
// picks.
func delayed(by func(Config) time.Duration, when func(req *http.Request) bool) maker {
	return around(func(c Config, next http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			if when(req) {
				pause(req, by(c))
			}
			next.ServeHTTP(w, req)
		}
	})
}

// tee is a body that is read through another reader.
type tee struct {
	io.Reader
	io.Closer
}

// answer is a ResponseWriter that changes the status on its way out.
type answer struct {
	http.ResponseWriter
	change func(status int) int
	wrote  bool
}

func (a *answer) WriteHeader(status int) {
	a.wrote = true
	a.ResponseWriter.WriteHeader(a.change(status))
}

func (a *answer) Write(b []byte) (int, error) {
	if !a.wrote {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap lets the reference set its deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// sluggish is a little longer than what counts as fast.
func (c Config) sluggish() time.Duration { return orDefault(c.Fast, time.Second) * 5 / 4 }

// late is a little longer than the provider waits.
func (c Config) late() time.Duration { return orDefault(c.AckTimeout, c.Profile.AckTimeout) * 11 / 10 }

func orDefault(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}

// pause waits for d, or as long as the request lives.
func pause(req *http.Request, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-req.Context().Done():
	}
}
