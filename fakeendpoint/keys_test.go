package fakeendpoint_test

import (
	"slices"
	"testing"

	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/signature"
)

// An endpoint's secret is known after its URL, and may change.
func TestKeysMayBeSetLater(t *testing.T) {
	r := newRig(t)
	p := r.path("later", "200")
	other := signature.RawKey("other", []byte("another secret of 32 bytes, say."))
	send := func(wantChecked bool, wantBy ...string) {
		t.Helper()
		conn := dial(t, p)
		if status := conn.status(r.signed(p, "msg_1", "{}")); status != 200 {
			t.Fatalf("the answer is %d", status)
		}
		_ = conn.Close()
		n, _ := p.Count()
		a := attempts(t, p, n)[n-1]
		if a.Verification.Checked != wantChecked || !slices.Equal(a.Verification.By, wantBy) {
			t.Errorf("attempt %d: checked %t, by %q; want %t, %q", n, a.Verification.Checked, a.Verification.By, wantChecked, wantBy)
		}
	}
	send(false)
	p.SetKeys(r.key)
	send(true, "current")
	p.SetKeys(other)
	send(true)
	p.SetKeys(other, r.key)
	send(true, "current")
	if a := attempts(t, p, 4); a[0].Verification.Checked || !a[1].Verification.OK() || a[2].Verification.OK() {
		t.Error("what was checked before is found otherwise now")
	}
}

func TestSecretsThatWereSetLaterAreNotShown(t *testing.T) {
	r := newRig(t)
	p := r.path("leak", "307,200")
	trap := p.Trap()
	p.SetKeys(r.key)
	for _, to := range []*fakeendpoint.Path{p, trap} {
		conn := dial(t, p)
		conn.status(post(to, secret))
		_ = conn.Close()
		a := attempts(t, to, 1)[0]
		if len(a.Verification.Leaks) != 1 || slices.Contains([]string{secret}, string(a.Request.Body)) {
			t.Errorf("%s: %+v shows %q", to.Name(), a.Verification, a.Request.Body)
		}
	}
}
