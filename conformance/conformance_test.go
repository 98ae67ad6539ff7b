package conformance_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/conformance/drive"
	"github.com/whconform/whconform/conformance/evidence"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/receiver"
	"github.com/whconform/whconform/reference/signature"
)

func TestSmoke(t *testing.T) {
	p, err := profile.Load("standard-webhooks")
	if err != nil {
		t.Fatal(err)
	}
	sc, _ := p.Scheme()
	const cur, prev, priv = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "whsec_YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=", "whsk_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	k, err := sc.Key("priv", priv)
	if err != nil {
		t.Fatal(err)
	}
	r, err := drive.Handler(drive.HandlerConfig{Secrets: drive.Secrets{Current: cur, Previous: prev, Public: k.PublicText()}, New: func(s drive.Secrets) (*http.Server, error) {
		var keys []signature.Key
		for _, x := range []string{s.Current, s.Previous, s.Public} {
			if x == "" {
				continue
			}
			key, err := sc.Key("k", x)
			if err != nil {
				return nil, err
			}
			keys = append(keys, key)
		}
		h, err := receiver.New(receiver.Config{Profile: p, Keys: keys, Store: receiver.NewMemory(), Clock: clock.New()})
		if err != nil {
			return nil, err
		}
		return receiver.HTTPServer(h), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(t.Context())
	began := time.Now()
	rep, err := conformance.Run(t.Context(), conformance.Config{Receiver: r, Profile: p, Secrets: []string{cur, prev, priv}})
	t.Log(time.Since(began), err)
	for _, row := range rep.Results {
		for _, f := range row.Findings {
			t.Logf("%s %s: %s -> %s [%s]", row.Outcome, row.ID, f.Sent, f.Got, f.Cause)
		}
		switch row.Outcome {
		case evidence.Error:
			t.Errorf("%s %s: %s", row.ID, row.Outcome, row.Detail)
		case evidence.Skipped:
			t.Logf("%s skipped %s %s", row.ID, row.SkipReason, row.SkipDetail)
		default:
			t.Logf("%5d ms %s %s", row.DurationMS, row.Outcome, row.ID)
		}
	}
	t.Log(rep.Verdict, rep.Gate, rep.Reasons, rep.Diagnosis)
}
