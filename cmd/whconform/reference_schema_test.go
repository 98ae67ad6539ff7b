package main

import (
	"strings"
	"testing"
)

func TestASchemaStandsForAStateFolder(t *testing.T) {
	for _, tt := range []struct{ name, state, want string }{
		{"the folder of a run", "/tmp/whconform-1234567", "whconform_1234567"},
		{"that of a variant is in it, and so is its name", "/tmp/whconform-1234567/variant-89", "whconform_1234567_variant_89"},
		{"a folder of somebody else's", "/srv/Shop/État 1", "_tat_1"},
	} {
		if got := schemaOf(tt.state); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	long := "/tmp/whconform-1/variant-" + strings.Repeat("0", 80)
	if one, other := schemaOf(long+"1"), schemaOf(long+"2"); one == other || len(one) > 63 {
		t.Errorf("%q and %q: PostgreSQL would take them for one", one, other)
	}
}
