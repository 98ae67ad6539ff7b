package adapter

import _ "embed"

//go:embed schema.json
var schema string

// Schema returns the JSON Schema (draft 2020-12) of the protocol's messages, of
// receivers' and senders' adapters. The parameters and the result of each method
// stand under "$defs" as METHOD.params and METHOD.result.
func Schema() []byte { return []byte(schema) }
