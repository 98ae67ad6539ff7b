package main

import (
	"bufio"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/whconform/whconform/"

// floor is a row of docs/floors.md.
type floor struct{ pkg, imports, never []string }

// TestPackagesImportOnlyWhatTheirFloorAllows reads the table in docs/floors.md
// and every import of every package, test files left aside: tests may look from
// above.
func TestPackagesImportOnlyWhatTheirFloorAllows(t *testing.T) {
	floors := readFloors(t, "../../docs/floors.md")
	seen := map[string]bool{}
	for file, imports := range sourceImports(t, "../..") {
		pkg := path.Dir(file)
		row, ok := floorOf(floors, pkg)
		if !ok {
			t.Errorf("%s: the package has no row in docs/floors.md", pkg)
			continue
		}
		seen[row.pkg[0]] = true
		for _, imported := range imports {
			own, isOwn := strings.CutPrefix(imported, module)
			if isOwn && !matches(row.imports, own) && !sameRow(row, own) {
				t.Errorf("%s imports %s; its row in docs/floors.md allows %s", file, own, strings.Join(row.imports, ", "))
			}
			if !isOwn && matches(row.never, imported) {
				t.Errorf("%s imports %s, which its row in docs/floors.md forbids", file, imported)
			}
		}
	}
	for _, row := range floors {
		if !seen[row.pkg[0]] {
			t.Errorf("docs/floors.md has a row for %s, which does not exist", row.pkg[0])
		}
	}
}

// readFloors parses the table: package | may import (of ours) | never imports.
func readFloors(t *testing.T, name string) []floor {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var floors []floor
	for lines := bufio.NewScanner(f); lines.Scan(); {
		cells := strings.Split(lines.Text(), "|")
		if len(cells) < 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		floors = append(floors, floor{quoted(cells[1]), quoted(cells[2]), quoted(cells[3])})
	}
	if len(floors) == 0 {
		t.Fatalf("%s holds no table", name)
	}
	return floors
}

// quoted returns what stands between back quotes.
func quoted(cell string) []string {
	var words []string
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			words = append(words, part)
		}
	}
	return words
}

func floorOf(floors []floor, pkg string) (floor, bool) {
	i := slices.IndexFunc(floors, func(f floor) bool { return slices.Contains(f.pkg, pkg) })
	if i < 0 {
		// internal/ below a package belongs to it.
		if parent, _, ok := strings.Cut(pkg, "/internal"); ok {
			return floorOf(floors, parent)
		}
		return floor{}, false
	}
	return floors[i], true
}

func sameRow(row floor, pkg string) bool {
	return slices.ContainsFunc(row.pkg, func(own string) bool { return pkg == own || strings.HasPrefix(pkg, own+"/internal") })
}

// matches tells whether a pattern names the package: itself, or with /* all
// below it.
func matches(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, wild := strings.CutSuffix(p, "/*")
		return p == "*" || p == pkg || wild && (pkg == below || strings.HasPrefix(pkg, below+"/"))
	})
}

// sourceImports maps each Go file below root, tests and nested modules left
// out, to its imports.
func sourceImports(t *testing.T, root string) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, nested := os.Stat(filepath.Join(name, "go.mod"))
			if name != root && (nested == nil || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules" || entry.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		for _, i := range parsed.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			files[filepath.ToSlash(relative)] = append(files[filepath.ToSlash(relative)], imported)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
