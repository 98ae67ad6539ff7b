package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/whconform/whconform/conformance/report"
)

// output is one report that is asked for.
type output struct {
	format string
	path   string // "" for stdout

	file    *os.File
	replace string // what the file takes the place of once it is whole; "" if it is written in place
}

type outputs []*output

// outputs opens what is to be written to, so that a wrong path is told before
// the run and not after it.
func (f *runFlags) outputs(a *app) (outputs, error) {
	if !formatExists(f.format) {
		return nil, usagef("reading --format: there is no format %q; there are %s", f.format, formats)
	}
	all := outputs{{format: f.format}}
	for _, text := range f.reports {
		format, path, ok := strings.Cut(text, "=")
		switch {
		case !formatExists(format):
			all.discard()
			return nil, usagef("reading --report: there is no format %q; there are %s, as in --report json=report.json", format, formats)
		case !ok || path == "":
			all.discard()
			return nil, usagef("reading --report: no file is named. Write --report %s=FILE", format)
		}
		o := &output{format: format, path: path}
		if err := o.open(); err != nil {
			all.discard()
			return nil, usagef("opening the report %s: %w", path, err)
		}
		all = append(all, o)
	}
	if f.known.write != "" {
		o := &output{format: knownFormat, path: f.known.write}
		if err := o.open(); err != nil {
			all.discard()
			return nil, usagef("opening --write-known-failing %s: %w", o.path, err)
		}
		all = append(all, o)
	}
	return all, nil
}

const formats = "json, junit, markdown and text"

func formatExists(name string) bool {
	return slices.Contains([]string{"json", "junit", "markdown", "text"}, name)
}

// open makes a file beside the one that is named, to take its place when it is
// whole. What is no ordinary file, such as a pipe, is written directly.
func (o *output) open() error {
	info, err := os.Stat(o.path)
	switch {
	case err == nil && info.IsDir():
		return errors.New("it is a folder")
	case err == nil && !info.Mode().IsRegular():
		o.file, err = os.OpenFile(o.path, os.O_WRONLY, 0)
		return err
	case err != nil && !os.IsNotExist(err):
		return err
	}
	o.replace = o.path
	o.file, err = os.CreateTemp(filepath.Dir(o.path), "."+filepath.Base(o.path)+".*")
	return err
}

// discard removes what was opened and not finished.
func (all outputs) discard() {
	for _, o := range all {
		if o.file != nil {
			_ = o.file.Close()
			if o.replace != "" {
				_ = os.Remove(o.file.Name())
			}
			o.file = nil
		}
	}
}

func (all outputs) write(a *app, r *report.Report, text report.TextOptions) error {
	for _, o := range all {
		if err := o.write(a, r, text); err != nil {
			return brokenf("writing the report: %w", err)
		}
	}
	return nil
}

func (o *output) write(a *app, r *report.Report, text report.TextOptions) error {
	if o.path == "" {
		return render(a.out, o.format, r, text)
	}
	plain := report.TextOptions{Verbose: text.Verbose, Repeat: text.Repeat}
	clean := newRedactor(o.file, a.kept)
	err := render(clean, o.format, r, plain)
	if err == nil {
		err = clean.Flush()
	}
	return errors.Join(err, o.finish(err == nil))
}

// finish puts the file in its place.
func (o *output) finish(whole bool) error {
	file := o.file
	o.file = nil
	err := file.Close()
	if o.replace == "" {
		return err
	}
	if err != nil || !whole {
		_ = os.Remove(file.Name())
		return err
	}
	// A report is no secret: as readable as any file one writes.
	if err := os.Chmod(file.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(file.Name(), o.replace)
}

func render(w io.Writer, format string, r *report.Report, text report.TextOptions) error {
	switch format {
	case "json":
		return report.WriteJSON(w, r)
	case "junit":
		return report.WriteJUnit(w, r)
	case "markdown":
		return report.WriteMarkdown(w, r)
	case knownFormat:
		return report.WriteKnown(w, r)
	case "text":
		return report.WriteText(w, r, text)
	}
	return fmt.Errorf("there is no format %q", format)
}
