package profile

import (
	"strings"
	"testing"
)

func TestTheWordThatMayHaveBeenMeant(t *testing.T) {
	known := []string{"stripe", "svix", "github", "Slack", "a"}
	for word, want := range map[string]string{
		"stirpe":                  "stripe", // two letters swapped
		"strip":                   "stripe",
		"strippe":                 "stripe",
		"STRIPE":                  "stripe",
		"slack":                   "Slack",
		"gihtub":                  "github",
		"gitlab":                  "github",
		"paypal":                  "",
		"s":                       "",
		"":                        "",
		"x":                       "",
		strings.Repeat("x", 5000): "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%.20q may mean %q, want %q", word, got, want)
		}
	}
	if got := Nearest("word", nil); got != "" {
		t.Errorf("of an empty list %q", got)
	}
	if got := Nearest("ab", []string{"ac", "ad"}); got != "ac" {
		t.Errorf("of equals %q, want the first", got)
	}
}
