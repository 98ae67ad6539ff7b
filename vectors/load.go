package vectors

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// content is what [Copy] writes: the files below data/ are the vectors.
//
//go:embed data/*.json schema.json README.md
var content embed.FS

//go:generate node generate/generate.mjs

const (
	dataDir    = "data"
	schemaFile = "schema.json"
	extension  = ".json"
)

// Names lists the files in alphabetical order, without ".json":
// "standard-webhooks-v1-sign" is the scheme and the topic.
func Names() []string {
	entries, err := content.ReadDir(dataDir)
	if err != nil {
		return nil // cannot be: the folder is compiled in
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), extension))
	}
	return names
}

// Load reads one file by its name, with or without ".json". Nothing is kept:
// the caller may change what is returned. The error names the files there are.
func Load(name string) (*File, error) {
	name = strings.TrimSuffix(name, extension)
	names := Names()
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("no vectors called %q; there are %s", name, strings.Join(names, ", "))
	}
	data, err := content.ReadFile(path.Join(dataDir, name+extension))
	if err != nil {
		return nil, fmt.Errorf("reading the vectors %s: %w", name, err)
	}
	f, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("reading the vectors %s: %w", name, err)
	}
	f.Name = name
	return f, nil
}

// All reads every file, in the order of [Names].
func All() ([]*File, error) {
	var all []*File
	for _, name := range Names() {
		f, err := Load(name)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// Schema is the JSON Schema (draft 2020-12) that every file obeys.
func Schema() []byte {
	data, err := content.ReadFile(schemaFile)
	if err != nil {
		return nil // cannot be: the file is compiled in
	}
	return data
}

// parse reads one file. An unknown member is an error: it would be a part of a
// test that nobody looks at.
func parse(data []byte) (*File, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var f File
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("text behind the end of the file, at byte %d", d.InputOffset())
	}
	return &f, nil
}
