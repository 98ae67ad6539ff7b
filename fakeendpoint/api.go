package fakeendpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// APIPrefix is what the addresses of the HTTP API begin with.
const APIPrefix = "/endpoint/v1/"

// apiWait is how long a call may wait at most; nobody waits longer for a test.
const apiWait = 10 * time.Minute

// ServeAPI serves the HTTP API on an address of its own until the server is
// closed, and returns the beginning of its URLs: for tests in other languages.
// An empty address is a free port on 127.0.0.1; others than this machine reach
// it only if Config.Remote is set. Its calls are in docs/fake-endpoint.md.
func (s *Server) ServeAPI(address string) (url string, err error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	if err := s.mayListen(address); err != nil {
		return "", fmt.Errorf("serving the API: %w", err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", fmt.Errorf("serving the API: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{
		Handler: s.API(), ReadHeaderTimeout: s.limits.HeadTime, ReadTimeout: s.limits.HeadTime, IdleTimeout: s.limits.Idle,
		MaxHeaderBytes: bufferSize, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		cancel()
		_ = l.Close()
		return "", fmt.Errorf("serving the API: %w", ErrClosed)
	}
	s.conns.Add(2)
	s.mu.Unlock()
	go func() {
		defer s.conns.Done()
		_ = server.Serve(l) // it ends when the next one closes it
	}()
	go func() {
		defer s.conns.Done()
		<-s.done
		cancel()
		_ = server.Close()
	}()
	return "http://" + l.Addr().String() + APIPrefix, nil
}

// API is the HTTP API as a handler: its addresses begin with [APIPrefix]. It
// refuses calls that a browser makes for another site's page.
func (s *Server) API() http.Handler {
	mux := http.NewServeMux()
	for pattern, call := range map[string]apiCall{
		"GET paths":    s.apiPaths,
		"POST paths":   s.apiMake,
		"GET attempts": s.apiAttempts,
		"GET wait":     s.apiWaitFor,
		"GET script":   s.apiScript,
		"PUT script":   s.apiSetScript,
		"POST reset":   s.apiReset,
		"GET held":     s.apiHeld,
		"GET strays":   s.apiStrays,
		"GET stats":    s.apiStats,
	} {
		method, name, _ := strings.Cut(pattern, " ")
		mux.Handle(method+" "+APIPrefix+name, call)
	}
	mux.HandleFunc("GET "+APIPrefix+"ca.pem", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-pem-file")
		_, _ = w.Write(s.CAPEM())
	})
	guarded := http.NewCrossOriginProtection().Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A page that has its own name lead to this machine reads nothing here.
		if !s.config.Remote && !isLoopbackHost(r.Host) {
			(&apiError{403, "the API is for this machine: call it by 127.0.0.1 or localhost", nil}).write(w)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

func isLoopbackHost(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// apiCall answers a call with what becomes JSON, or an *apiError.
type apiCall func(*http.Request) (any, error)

// ServeHTTP implements http.Handler.
func (call apiCall) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out, err := call(r)
	var problem *apiError
	switch {
	case errors.As(err, &problem):
		problem.write(w)
	case err != nil:
		(&apiError{500, err.Error(), nil}).write(w)
	default:
		writeJSON(w, http.StatusOK, out)
	}
}

// apiError is a call that failed.
type apiError struct {
	status  int
	problem string
	more    map[string]any
}

func (e *apiError) Error() string { return e.problem }

func (e *apiError) write(w http.ResponseWriter) {
	out := map[string]any{"error": e.problem}
	for k, v := range e.more {
		out[k] = v
	}
	writeJSON(w, e.status, out)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // the client is gone if this fails
}

// apiPath is a path as the API shows it.
type apiPath struct {
	Name      string `json:"name"`
	URL       string `json:"url"`
	Script    string `json:"script"`
	Arrived   int    `json:"arrived"`
	Concluded int    `json:"concluded"`
	Forgotten int    `json:"forgotten,omitempty"`
}

func showPath(p *Path) apiPath {
	arrived, concluded := p.Count()
	return apiPath{p.Name(), p.URL(), p.Script().String(), arrived, concluded, p.Forgotten()}
}

func (s *Server) apiPaths(*http.Request) (any, error) {
	out := []apiPath{}
	for _, p := range append(s.Paths(), s.fallback) {
		out = append(out, showPath(p))
	}
	slices.SortFunc(out, func(a, b apiPath) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// pathOf finds the path that a call names.
func (s *Server) pathOf(r *http.Request) (*Path, error) {
	q := r.URL.Query()
	if !q.Has("path") {
		return nil, &apiError{400, "the parameter path is missing; path= without a name is what no path has taken", nil}
	}
	name := strings.TrimPrefix(q.Get("path"), "/")
	p := s.Find(name)
	if p == nil {
		return nil, &apiError{404, fmt.Sprintf("there is no path %q", name), nil}
	}
	return p, nil
}

// scriptOf reads the script in a call's body.
func scriptOf(r *http.Request) (Script, error) {
	text, err := io.ReadAll(io.LimitReader(r.Body, MaxScript+2))
	if err != nil {
		return Script{}, &apiError{400, "reading the script: " + err.Error(), nil}
	}
	script, err := ParseScript(strings.TrimSpace(string(text)))
	var e *ScriptError
	if errors.As(err, &e) {
		return Script{}, &apiError{400, e.Error(), map[string]any{"column": e.Column, "problem": e.Problem, "meant": e.Meant}}
	}
	return script, err
}

func (s *Server) apiMake(r *http.Request) (any, error) {
	script, err := scriptOf(r)
	if err != nil {
		return nil, err
	}
	p := s.Path(r.URL.Query().Get("name"), script, s.config.Keys...)
	if err := p.Err(); err != nil {
		return nil, &apiError{409, err.Error(), nil}
	}
	return showPath(p), nil
}

func (s *Server) apiAttempts(r *http.Request) (any, error) {
	p, err := s.pathOf(r)
	if err != nil {
		return nil, err
	}
	return p.Attempts(), nil
}

// apiWaitFor waits for n attempts to be concluded, or with arrived=true for n
// requests.
func (s *Server) apiWaitFor(r *http.Request) (any, error) {
	p, err := s.pathOf(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	n, err := strconv.Atoi(q.Get("n"))
	if err != nil || n < 0 {
		return nil, &apiError{400, "the parameter n is how many to wait for", nil}
	}
	timeout := 30 * time.Second
	if text := q.Get("timeout"); text != "" {
		if timeout, err = parseWait(text); err != nil || timeout > apiWait {
			return nil, &apiError{400, fmt.Sprintf("the parameter timeout is a duration such as 30s, up to %s", durationText(apiWait)), nil}
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	err = p.wait(ctx, n, q.Get("arrived") == "true")
	var forgotten *ForgottenError
	switch {
	case errors.As(err, &forgotten):
		return nil, &apiError{410, err.Error(), map[string]any{"attempts": p.Attempts()}}
	case err != nil:
		return nil, &apiError{504, err.Error(), map[string]any{"attempts": p.Attempts()}}
	}
	return p.Attempts(), nil
}

func (s *Server) apiScript(r *http.Request) (any, error) {
	p, err := s.pathOf(r)
	if err != nil {
		return nil, err
	}
	return showPath(p), nil
}

func (s *Server) apiSetScript(r *http.Request) (any, error) {
	p, err := s.pathOf(r)
	if err != nil {
		return nil, err
	}
	script, err := scriptOf(r)
	if err != nil {
		return nil, err
	}
	if err := p.SetScript(script); err != nil {
		return nil, &apiError{409, err.Error(), nil}
	}
	return showPath(p), nil
}

// apiReset resets a path, or without one all of them.
func (s *Server) apiReset(r *http.Request) (any, error) {
	all := append(s.Paths(), s.fallback)
	if r.URL.Query().Has("path") {
		p, err := s.pathOf(r)
		if err != nil {
			return nil, err
		}
		all = []*Path{p}
	}
	for _, p := range all {
		if err := p.Reset(); err != nil {
			return nil, err
		}
	}
	return map[string]int{"reset": len(all)}, nil
}

func (s *Server) apiHeld(*http.Request) (any, error) {
	n, next := s.Held()
	out := map[string]any{"held": n}
	if !next.IsZero() {
		out["next"] = next
	}
	return out, nil
}

func (s *Server) apiStats(*http.Request) (any, error) {
	st := s.Stats()
	return map[string]int64{
		"connections": st.Connections, "refused": st.Refused, "strays": st.Strays, "forgotten": st.Forgotten, "noPath": st.NoPath,
		"uncaught": st.Uncaught, "held": int64(st.Held), "open": int64(st.Open), "paths": int64(st.Paths),
	}, nil
}

func (s *Server) apiStrays(*http.Request) (any, error) {
	type stray struct {
		At     time.Time `json:"at"`
		Remote string    `json:"remote"`
		Path   string    `json:"path,omitempty"`
		Reason string    `json:"reason"`
		Status int       `json:"status,omitempty"`
		Sample []byte    `json:"sample,omitempty"`
	}
	out := []stray{}
	for _, st := range s.Strays() {
		out = append(out, stray(st))
	}
	return out, nil
}
