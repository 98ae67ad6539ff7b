package conformance_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/conformance/report"
)

// Whatever the receiver does with its secret, and however the run ends, the
// report holds it in no form.
func TestNoReportHoldsASecret(t *testing.T) {
	for _, tt := range []struct {
		name    string
		subject func(*testing.T) drive.Receiver
		run     []string
	}{
		{"of the reference", func(t *testing.T) drive.Receiver { return reference(t, standard(t, 10*time.Second)) }, nil},
		{"of a receiver that tells its secret to whoever is refused", func(t *testing.T) drive.Receiver { return serve(t, small{chatty: true}) }, []string{"receiver.signature.no-oracle", "receiver.signature.rejects-*", "receiver.replay"}},
		{"of a receiver that redirects to an address with its secret", func(t *testing.T) drive.Receiver {
			return serve(t, http.RedirectHandler("/hooks?key="+current, http.StatusFound))
		}, nil},
		{"of a receiver that refuses everything and tells its secret", func(t *testing.T) drive.Receiver {
			return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, fmt.Sprintf("want %q, %q, %q", current, previous, private), http.StatusUnauthorized)
			}))
		}, nil},
		{"of something that is not HTTP and says the secret", func(t *testing.T) drive.Receiver { return at("http://" + speaking(t, current+"\r\n")) }, nil},
		{"of nobody", func(*testing.T) drive.Receiver { return at("http://127.0.0.1:1/" + current) }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := config(t, tt.subject(t))
			c.Secrets, c.Run = []string{current, previous, private}, tt.run
			c.Target = "the receiver under test"
			r, err := conformance.Run(t.Context(), c)
			var unreachable *conformance.UnreachableError
			if err != nil && !errors.As(err, &unreachable) {
				t.Fatal(err)
			}
			var texts bytes.Buffer
			fmt.Fprintf(&texts, "%v\n%+v\n", err, err)
			if err := report.WriteJSON(&texts, r); err != nil {
				t.Fatal(err)
			}
			if err := report.WriteText(&texts, r, report.TextOptions{Verbose: true}); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&texts, "%+v %#v", r, c.Secrets == nil)
			// A body that is not text stands in base64 in the JSON: what lies
			// in there is looked for too.
			for _, tr := range r.Transcripts {
				for _, x := range tr.Exchanges {
					texts.Write(x.Request.Body)
					if x.Response != nil {
						texts.Write(x.Response.Body)
					}
				}
			}
			for label, text := range map[string]string{"current": current, "previous": previous, "private": private} {
				key := keyOf(t, label, text)
				if form, found := key.In(texts.Bytes()); found {
					t.Errorf("the %s secret stands in it as %s", label, form)
				}
			}
		})
	}
}

func TestATellingReceiverIsFoundOut(t *testing.T) {
	c := config(t, serve(t, small{chatty: true}))
	c.Run = []string{"receiver.signature.no-oracle"}
	r, err := conformance.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if got := row(t, r, "receiver.signature.no-oracle"); got.Outcome != evidence.Fail {
		t.Errorf("no-oracle is %s", got.Outcome)
	}
}
