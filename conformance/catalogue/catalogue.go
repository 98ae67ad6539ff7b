// Package catalogue holds what whconform certifies: one [Requirement] a rule,
// as data, with its level, the reason for it and how to mend an implementation
// that breaks it.
//
// Read receiver.yaml first, then sender.yaml and library.yaml: the rows are the
// product, this package only reads and finds them. Start with [Load] or [All];
// [Find] and [Match] answer the command line, [Explain] and [WriteJSON] print.
// A requirement says what must hold. How it is tried stands in the packages
// conformance/receiver, conformance/sender and conformance/library, in the file
// that bears the name of the requirement's group.
//
// The level comes from here or from the profile, never from a check. A rule
// with two levels, or with needs for a part of it, is two requirements: the
// stricter part keeps the id and the other has a suffix (burst, burst.fast).
//
// Ids are stable: reports, lists of known failures and mutants name them.
package catalogue

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Levels of a requirement: what a finding against it does to the verdict.
const (
	// Must fails the run.
	Must = "MUST"
	// Should warns.
	Should = "SHOULD"
	// May is reported as a fact and never judged.
	May = "MAY"
	// ByProfile leaves the level to the profile; [Requirement.Default] holds
	// where the profile says nothing.
	ByProfile = "PROFILE"
)

// Parts of the catalogue: the first segment of an id, and the kind of subject.
const (
	Receiver = "receiver"
	Sender   = "sender"
	Library  = "library"
)

// Requirement is one row of the catalogue.
type Requirement struct {
	// ID is unique and stable: part, group and name joined by dots
	// ("receiver.replay.rejects-stale"), with one more segment for the milder
	// part of a divided rule. Lower-case letters, digits, dots and dashes only,
	// so that it can be a label of any test runner.
	ID string `json:"id"`

	// Level is MUST, SHOULD, MAY or PROFILE.
	Level string `json:"level"`

	// Default is the level where Level is PROFILE and the profile is silent;
	// empty otherwise.
	Default string `json:"default,omitempty"`

	// Profiles names the profiles for which the catalogue itself sets another
	// level. See [Requirement.LevelIn].
	Profiles map[string]string `json:"profiles,omitempty"`

	// Statement is one sentence, at most [MaxStatement] characters: what is
	// done and what must come of it.
	Statement string `json:"statement"`

	// Why says what goes wrong in production where the rule is broken.
	Why string `json:"why"`

	// Fix says what to change in an implementation.
	Fix string `json:"fix"`

	// Sources are the codes of where the rule comes from, see [SourceText].
	Sources []string `json:"sources"`

	// Needs are the capabilities a subject must offer for the rule to be
	// observable, see [NeedText]. All of them are needed.
	Needs []string `json:"needs"`

	// Labels say how the rule is tried: slow, alone, on-request, load. See
	// [LabelText].
	Labels []string `json:"labels"`
}

// MaxStatement bounds a statement, in characters: it stands on one or two lines
// of a terminal and in the title of a test case.
const MaxStatement = 220

// LevelIn returns the level under the named profile: MUST, SHOULD or MAY. A
// level set by the profile's own file goes before it; the catalogue cannot know
// that one.
func (r Requirement) LevelIn(profile string) string {
	if level, ok := r.Profiles[profile]; ok {
		return level
	}
	if r.Level == ByProfile {
		return r.Default
	}
	return r.Level
}

// Core reports whether the requirement belongs to the core set, without which a
// run is only partial: every MUST without Needs. Where the profile chooses the
// level, the default counts; see [Requirement.CoreAt].
func (r Requirement) Core() bool { return r.CoreAt(r.LevelIn("")) }

// CoreAt is Core at the level that holds in a run.
//
// Signing and verifying do not count as needs: they are to a library what the
// URL is to a receiver, and a library run would have no core set otherwise.
func (r Requirement) CoreAt(level string) bool {
	if level != Must {
		return false
	}
	for _, need := range r.Needs {
		if need != NeedSign && need != NeedVerify {
			return false
		}
	}
	return true
}

// Has reports whether the requirement bears the label.
func (r Requirement) Has(label string) bool { return slices.Contains(r.Labels, label) }

// Part returns the first segment of the id: receiver, sender or library.
func (r Requirement) Part() string {
	part, _, _ := strings.Cut(r.ID, ".")
	return part
}

// Group returns the name of the requirement's group, "receiver.replay". What
// concerns a library as a whole has the group "library".
func (r Requirement) Group() string {
	segments := strings.SplitN(r.ID, ".", 3)
	if len(segments) < 3 {
		return segments[0]
	}
	return segments[0] + "." + segments[1]
}

// clone returns a copy that shares no memory with r, so that no caller can
// change the catalogue of another.
func (r Requirement) clone() Requirement {
	r.Profiles = maps.Clone(r.Profiles)
	r.Sources = slices.Clone(r.Sources)
	r.Needs = slices.Clone(r.Needs)
	r.Labels = slices.Clone(r.Labels)
	return r
}

// Group is a heading of the catalogue.
type Group struct {
	Name  string `json:"name"`  // "receiver.replay"
	Title string `json:"title"` // "an old request is worth nothing"
}

//go:embed receiver.yaml sender.yaml library.yaml
var files embed.FS

// embedded reads the embedded files once: they cannot change while the program
// runs, and Find is called for every row of a report.
var embedded = sync.OnceValues(func() (*catalogue, error) {
	all := new(catalogue)
	var errs []error
	for _, part := range []string{Receiver, Sender, Library} {
		name := part + ".yaml"
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the catalogue: %w", err)
		}
		read, err := parse(part, name, data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all.groups = append(all.groups, read.groups...)
		all.rows = append(all.rows, read.rows...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("reading the catalogue:\n%w", err)
	}
	return all, nil
})

// catalogue is what the files say, in their order.
type catalogue struct {
	groups []Group
	rows   []Requirement
}

// Load returns all requirements in the order of the files: receiver, sender,
// library. The rows are the caller's own. An error names every fault of the
// files with its line; it cannot occur in a program whose tests have passed.
func Load() ([]Requirement, error) {
	all, err := embedded()
	if err != nil {
		return nil, err
	}
	rows := make([]Requirement, len(all.rows))
	for i, row := range all.rows {
		rows[i] = row.clone()
	}
	return rows, nil
}

// All is Load for callers who have no use for its error. It returns no rows
// where Load fails.
func All() []Requirement {
	rows, err := Load()
	if err != nil {
		return nil
	}
	return rows
}

// OfPart returns the requirements of one part: receiver, sender or library.
func OfPart(part string) []Requirement {
	return slices.DeleteFunc(All(), func(r Requirement) bool { return r.Part() != part })
}

// Groups returns the headings in the order of the files.
func Groups() []Group {
	all, err := embedded()
	if err != nil {
		return nil
	}
	return slices.Clone(all.groups)
}

// Find returns the requirement with the id; [Suggest] helps where there is none.
func Find(id string) (Requirement, bool) {
	all, err := embedded()
	if err != nil {
		return Requirement{}, false
	}
	i := slices.IndexFunc(all.rows, func(r Requirement) bool { return r.ID == id })
	if i < 0 {
		return Requirement{}, false
	}
	return all.rows[i].clone(), true
}
