package drive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// echo answers with the secrets that the receiver was made with.
func echo(s Secrets) (*http.Server, error) {
	return &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s|%s|%t", r.URL.Path, s.Current, s.Previous, s.Unset)
	})}, nil
}

func get(t *testing.T, r Receiver) string {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: r.Target(0).TLS}}
	answer, err := client.Get(r.Target(0).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestAHandlerIsServedOnLoopback(t *testing.T) {
	noLeaks(t)
	r, err := Handler(HandlerConfig{New: echo, Secrets: Secrets{Current: "a", Previous: "b"}, Path: "/hooks"})
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, r); got != "/hooks a|b|false" {
		t.Errorf("it answers %q", got)
	}
	if !strings.HasPrefix(r.Target(0).URL, "http://127.0.0.1:") {
		t.Errorf("it is at %s", r.Target(0).URL)
	}
	if r.Has(Managed) || !r.Has(SecondConfiguration) {
		t.Error("it offers something else than a second configuration")
	}
	if err := r.Restart(t.Context(), true); !errors.Is(err, ErrNotOffered) {
		t.Errorf("Restart: %v", err)
	}
	if _, err := r.Processed(t.Context(), "id"); !errors.Is(err, ErrNotOffered) {
		t.Errorf("Processed: %v", err)
	}
	for range 2 {
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(r.Target(0).URL, "http://"), "/hooks")); err == nil {
		_ = conn.Close()
		t.Error("it still listens")
	}
}

func TestAVariantOfAHandlerHasSecretsOfItsOwn(t *testing.T) {
	noLeaks(t)
	r, err := Handler(HandlerConfig{New: echo, Secrets: Secrets{Current: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.Variant(t.Context(), Secrets{Unset: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, v); got != "/ ||true" {
		t.Errorf("the variant answers %q", got)
	}
	if err := v.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := get(t, r); got != "/ a||false" {
		t.Errorf("the first answers %q", got)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAHandlerThatRefusesItsSecretsRefusedToStart(t *testing.T) {
	noLeaks(t)
	wants := errors.New("no secret")
	r, err := Handler(HandlerConfig{Secrets: Secrets{Current: "a"}, New: func(s Secrets) (*http.Server, error) {
		if s.Current == "" {
			return nil, wants
		}
		return echo(s)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(t.Context())
	if _, err := r.Variant(t.Context(), Secrets{}); !errors.Is(err, ErrRefusedToStart) || !errors.Is(err, wants) {
		t.Errorf("got %v", err)
	}
}

func TestAHandlerThatHangsDoesNotHoldClose(t *testing.T) {
	noLeaks(t)
	inside := make(chan struct{})
	r, err := Handler(HandlerConfig{New: Serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(inside)
		<-r.Context().Done()
	}))})
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Post(r.Target(0).URL, "text/plain", nil)
		if err == nil {
			err = answer.Body.Close()
		}
		sent <- err
	}()
	<-inside
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := <-sent; err == nil {
		t.Error("a delivery was answered by a closed receiver")
	}
}

func TestAHandlerIsServedOverTLSAndThroughAnotherListener(t *testing.T) {
	noLeaks(t)
	model := httptest.NewUnstartedServer(nil)
	model.StartTLS()
	server, client := model.TLS.Clone(), model.Client().Transport.(*http.Transport).TLSClientConfig
	model.Close()
	server.NextProtos = nil
	var accepted listener
	r, err := Handler(HandlerConfig{
		New: echo, Secrets: Secrets{Current: "a"}, ServerTLS: server, ClientTLS: client,
		Listener: func(l net.Listener) net.Listener { accepted = listener{l, make(chan struct{}, 10)}; return accepted },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(r.Target(0).URL, "https://") {
		t.Errorf("it is at %s", r.Target(0).URL)
	}
	if got := get(t, r); got != "/ a||false" {
		t.Errorf("it answers %q", got)
	}
	if len(accepted.seen) == 0 {
		t.Error("the connection went past the listener")
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

type listener struct {
	net.Listener
	seen chan struct{}
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.seen <- struct{}{}
	}
	return c, err
}

func TestAListenerThatBreaksIsAnErrorOfClose(t *testing.T) {
	noLeaks(t)
	broken := errors.New("the cable is out")
	failed := make(chan struct{})
	r, err := Handler(HandlerConfig{New: echo, Listener: func(l net.Listener) net.Listener { return breaking{l, broken, failed} }})
	if err != nil {
		t.Fatal(err)
	}
	<-failed
	if err := r.Close(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type breaking struct {
	net.Listener
	err    error
	failed chan struct{}
}

func (b breaking) Accept() (net.Conn, error) {
	close(b.failed)
	return nil, b.err
}
