package fakeprovider

import (
	"encoding/json"
	"fmt"
)

func goSerializer() Serializer {
	return Serializer{
		Name:    "go",
		Library: "encoding/json into map[string]any, and Marshal",
		Runtime: "Go: net/http, Gin, Echo, Fiber",
		RawBody: "io.ReadAll(http.MaxBytesReader(w, r.Body, limit)) before any decoder; Gin: c.GetRawData(); Fiber: c.Body().",
		respell: respellGo,
	}
}

// respellGo is the library itself. What it makes of a body depends on the Go
// release that this program was built with, as it does for a receiver.
func respellGo(body []byte) ([]byte, error) {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotJSON, err)
	}
	return json.Marshal(v)
}
