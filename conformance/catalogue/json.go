package catalogue

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

//go:embed schema.json
var schema string

// Schema returns the JSON Schema (draft 2020-12) of what [WriteJSON] writes. A
// plain json.Marshal of requirements is valid under it too.
func Schema() []byte { return []byte(schema) }

// WriteJSON writes the requirements as an indented JSON array: the answer to
// "whconform requirements --json". Beside the fields of [Requirement] each row
// has its group and whether it belongs to the core set. The error is the
// writer's.
func WriteJSON(w io.Writer, rows []Requirement) error {
	type row struct {
		Requirement
		Group string `json:"group"`
		Core  bool   `json:"core"`
	}
	out := make([]row, 0, len(rows))
	for _, r := range rows {
		r.Sources, r.Needs, r.Labels = notNil(r.Sources), notNil(r.Needs), notNil(r.Labels)
		out = append(out, row{r, r.Group(), r.Core()})
	}
	encoder := json.NewEncoder(w)
	// The texts speak of <, > and &; \u003c would spoil them for a reader.
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(out); err != nil {
		return fmt.Errorf("writing the requirements as JSON: %w", err)
	}
	return nil
}

// notNil makes an absent list an empty one, so that readers need no case for
// null.
func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return slices.Clone(list)
}
