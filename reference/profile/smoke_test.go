package profile

import (
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	for _, n := range Names() {
		p, err := Load(n)
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.NewPayload(PayloadData{ID: "a", Type: p.EventTypes[0], Time: time.Now(), Random: "x"})
		t.Log(string(b), err)
		if _, err := p.Scheme(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Parse("x.yaml", []byte("nmae: x\nsignature: {in: heder, name: x y, grammar: 'a'}\nmac: hmac-sha25\nname: [1]\nbody:\n  template: |\n    {\n    {{.Foo}}\n"))
	t.Log("\n", err)
}
