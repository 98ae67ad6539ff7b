package profile

import (
	_ "embed" // for the schema
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (2020-12) of the profile format, for editors. What
// it accepts may still be refused by [Parse], which knows how the fields belong
// together.
func Schema() []byte { return slices.Clone(schema) }
