package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"github.com/whconform/whconform/reference/profile"
)

// configFlag names the file whose keys are the other flags.
const configFlag = "config"

// withConfig gives a command --config FILE: what the file says is set as if it
// stood on the command line, where the command line does not say otherwise.
// argument is the key of the command's argument, such as "url", or of a list of
// them; empty: it takes none from a file. Call it when all flags are registered.
func (a *app) withConfig(c *cobra.Command, argument string) {
	var file string
	c.Flags().StringVar(&file, configFlag, "", "YAML `FILE` whose keys are these flags; what stands on the command line wins")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if file == "" {
			return run(c, args)
		}
		text, err := a.readFile("--"+configFlag, file)
		if err != nil {
			return err
		}
		r := &configReader{app: a, flags: c.Flags(), file: file, argument: argument}
		more, err := r.read(text)
		if err != nil {
			return usagef("reading --%s: %w", configFlag, err)
		}
		if len(args) > 0 || len(more) == 0 {
			return run(c, args)
		}
		if c.Args != nil {
			if err := c.Args(c, more); err != nil {
				return err
			}
		}
		return run(c, more)
	}
}

// fromConfigMark is the annotation of a flag that the file has set.
const fromConfigMark = "whconform-from-config"

// fromConfig tells whether the file has set a flag: a command that repeats this
// one has it from there.
func fromConfig(f *pflag.Flag) bool { return f.Annotations[fromConfigMark] != nil }

// alternatives are flags that say one thing in several ways. Where the command
// line has one of them, the file's others do not count.
func alternatives() [][]string {
	return [][]string{
		{"secret", "secret-env", "secret-file"},
		{"observe", "observe-exec", "observe-log"},
		{"cert", "key"},
	}
}

// configReader sets flags from a file.
type configReader struct {
	app      *app
	flags    *pflag.FlagSet
	file     string // as it was named; - is stdin
	argument string

	given  []string // flags of the command line, with their alternatives
	faults []error
}

// read sets the flags and returns the command's arguments, if the file has any.
// Its error joins all faults, a line each.
func (r *configReader) read(text []byte) (args []string, err error) {
	root, err := r.compose(text)
	if err != nil || root == nil {
		return nil, err
	}
	if root.Kind != yaml.MappingNode {
		r.fault(root, "", "want keys and values, as in timeout: 5m")
		return nil, errors.Join(r.faults...)
	}
	r.flags.Visit(func(f *pflag.Flag) { r.given = append(r.given, f.Name) })
	for _, group := range alternatives() {
		if slices.ContainsFunc(group, func(name string) bool { return slices.Contains(r.given, name) }) {
			r.given = append(r.given, group...)
		}
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		r.app.kept.addFrom([]string{key.Value})
		if first, twice := lines[key.Value]; twice {
			r.fault(key, key.Value, "it stands here again, first in line %d", first)
			continue
		}
		lines[key.Value] = key.Line
		if r.argument != "" && key.Value == r.argument {
			args = r.texts(value, key.Value)
			continue
		}
		r.set(key, value)
	}
	return args, errors.Join(r.faults...)
}

// compose parses the file; nil where there is nothing in it.
func (r *configReader) compose(text []byte) (*yaml.Node, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	var docs []yaml.Node
	if err := yaml.Load(text, &docs, yaml.WithAllDocuments()); err != nil {
		if broken, ok := errors.AsType[*yaml.LoadError](err); ok && broken.Mark.Line > 0 {
			// The message may quote the file, and the file may hold a secret.
			return nil, fmt.Errorf("%s:%d:%d: this is no YAML", r.file, broken.Mark.Line, broken.Mark.Column)
		}
		return nil, fmt.Errorf("%s: it is no YAML", r.file)
	}
	switch {
	case len(docs) > 1:
		return nil, fmt.Errorf("%s:%d:1: one document is wanted, a second one begins here", r.file, docs[1].Line)
	case len(docs) == 0 || len(docs[0].Content) == 0 || docs[0].Content[0].ShortTag() == "!!null":
		return nil, nil
	}
	return docs[0].Content[0], nil
}

// fault notes what is wrong at a node. Values are never quoted.
func (r *configReader) fault(n *yaml.Node, key, format string, args ...any) {
	where := fmt.Sprintf("%s:%d:%d: ", r.file, n.Line, n.Column)
	if key != "" {
		where += key + ": "
	}
	r.faults = append(r.faults, errors.New(where+fmt.Sprintf(format, args...)))
}

// set sets one flag.
func (r *configReader) set(key, value *yaml.Node) {
	flag := r.flags.Lookup(key.Value)
	if key.Kind != yaml.ScalarNode || flag == nil || key.Value == configFlag || key.Value == "help" {
		r.fault(key, "", "there is no key %q%s", key.Value, r.meant(key.Value))
		return
	}
	texts := r.valuesOf(flag, value)
	if slices.Contains(r.given, flag.Name) {
		return
	}
	for _, text := range texts {
		if err := r.flags.Set(flag.Name, r.rebase(flag, text)); err != nil {
			r.fault(value, flag.Name, "%s", r.wanted(flag))
			return
		}
	}
	if flag.Annotations == nil {
		flag.Annotations = map[string][]string{}
	}
	flag.Annotations[fromConfigMark] = []string{r.file}
}

// meant is which key may have been meant, as the end of a sentence.
func (r *configReader) meant(word string) string {
	var known []string
	if r.argument != "" {
		known = append(known, r.argument)
	}
	r.flags.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	word = strings.ReplaceAll(word, "_", "-")
	if best := profile.Nearest(word, known); best != "" && best != configFlag && best != "help" {
		return "; did you mean " + best + "?"
	}
	return ": the keys are the flags, without their dashes"
}

// valuesOf are the texts that a flag is set to.
func (r *configReader) valuesOf(flag *pflag.Flag, value *yaml.Node) []string {
	if value.Kind == yaml.ScalarNode && value.ShortTag() == "!!bool" {
		switch {
		case flag.Value.Type() == "bool":
			return []string{value.Value}
		case flag.NoOptDefVal != "" && value.Value == "true": // a flag that may stand alone
			return []string{flag.NoOptDefVal}
		}
	}
	texts := r.texts(value, flag.Name)
	if _, list := flag.Value.(pflag.SliceValue); !list && value.Kind == yaml.SequenceNode {
		r.fault(value, flag.Name, "want one value, not a list")
		return nil
	}
	if flag.Value.Type() == "bool" && len(texts) > 0 {
		r.fault(value, flag.Name, "want true or false")
		return nil
	}
	return texts
}

// texts are one value or the elements of a list.
func (r *configReader) texts(n *yaml.Node, key string) []string {
	switch {
	case n.Kind == yaml.SequenceNode:
		var all []string
		for _, item := range n.Content {
			if item.Kind == yaml.SequenceNode {
				r.fault(item, key, "a list in a list")
				continue
			}
			all = append(all, r.texts(item, key)...)
		}
		return all
	case n.Kind == yaml.MappingNode:
		r.fault(n, key, "want a text; one that holds a colon and a blank stands in quotes")
	case n.Kind == yaml.AliasNode:
		r.fault(n, key, "aliases are not allowed: write the value out")
	case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null":
		r.fault(n, key, "it has no value")
	default:
		// Whatever key it stands behind: what looks like a secret is kept.
		r.app.kept.addFrom([]string{n.Value})
		return []string{n.Value}
	}
	return nil
}

// wanted says what a flag takes that did not take a value.
func (r *configReader) wanted(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "duration":
		return "want a time, such as 90s or 5m"
	case "int", "int64", "uint64":
		return "want a whole number"
	case "float64":
		return "want a number"
	}
	return "this value cannot be"
}

// rebase makes a path relative to the file that names it. Which flags hold a
// path is told by the FILE in their help.
func (r *configReader) rebase(flag *pflag.Flag, text string) string {
	if r.file == "-" {
		return text
	}
	beside := func(path string) string {
		if path == "" || path == "-" || strings.Contains(path, "://") || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(filepath.Dir(r.file), path)
	}
	switch what, _ := pflag.UnquoteUsage(flag); {
	case what == "FILE":
		return beside(text)
	case what == "FORMAT=FILE":
		if format, path, ok := strings.Cut(text, "="); ok {
			return format + "=" + beside(path)
		}
	case flag.Name == "profile" && profile.IsFile(text):
		return beside(text)
	}
	return text
}
