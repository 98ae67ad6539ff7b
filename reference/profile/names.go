package profile

import (
	"embed"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed profiles/*.yaml
var embedded embed.FS

// Names lists the profiles that are built in, in alphabetical order.
func Names() []string {
	entries, err := embedded.ReadDir("profiles")
	if err != nil {
		return nil // the pattern above embeds at least one file, or nothing compiles
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	slices.Sort(names) // the files sort by their names with the ending
	return names
}

// Load gives the built-in profile of that name, or reads a file where the text
// ends in .yaml or .yml or holds a path separator.
func Load(nameOrFile string) (*Profile, error) {
	if IsFile(nameOrFile) {
		return loadFile(nameOrFile)
	}
	data, err := embedded.ReadFile(path.Join("profiles", nameOrFile+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("no profile is called %q%s; there are %s, and a file is named by its path or by .yaml at its end",
			nameOrFile, didYouMean(nameOrFile, Names()), strings.Join(Names(), ", "))
	}
	return Parse(nameOrFile, data)
}

// IsFile tells whether [Load] takes a name for that of a file: it has a folder, or
// ends in .yaml or .yml.
func IsFile(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return ext == ".yaml" || ext == ".yml" || strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator)
}

// loadFile reads a file of at most maxSize bytes.
func loadFile(name string) (*Profile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading a profile: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1)) // Parse refuses the byte too many
	if err != nil {
		return nil, fmt.Errorf("reading the profile %s: %w", name, err)
	}
	return Parse(name, data)
}
