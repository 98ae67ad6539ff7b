package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/whconform/whconform/vectors"
)

func (a *app) vectorsCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "vectors",
		Short: "List and copy the test vectors",
		Long: `The test vectors are JSON files for the tests of a signing library in any
language: keys, messages, headers, and whether they must verify. The keys in
them are public: never use them for anything else.`,
	}, a.vectorsListCommand(), a.vectorsCopyCommand())
}

func (a *app) vectorsListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the files with what they hold",
		Args:  exactly(),
		RunE: func(*cobra.Command, []string) error {
			files, err := vectors.All()
			if err != nil {
				return brokenf("%w", err)
			}
			for _, f := range files {
				counts := map[vectors.Result]int{}
				total := 0
				for _, g := range f.Groups {
					for _, t := range g.Tests {
						counts[t.Result]++
						total++
					}
				}
				_, err := fmt.Fprintf(a.out, "%-32s %4d tests: %d valid, %d invalid, %d implementation-defined\n",
					f.Name, total, counts[vectors.Valid], counts[vectors.Invalid], counts[vectors.Open])
				if err != nil {
					return brokenf("listing the vectors: %w", err)
				}
			}
			return nil
		},
	}
}

func (a *app) vectorsCopyCommand() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "copy DIR",
		Short: "Copy them into a project, with their schema",
		Long: `Copy the vectors, their JSON Schema and a README to a folder. Files that are
there already and differ are left alone, all of them, unless --force is given.`,
		Example: `  whconform vectors copy testdata/webhooks`,
		Args:    exactly("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			var options []vectors.CopyOption
			if force {
				options = append(options, vectors.Overwrite())
			}
			written, err := vectors.Copy(args[0], options...)
			var exists *vectors.ExistsError
			if errors.As(err, &exists) {
				return usagef("copying the vectors: %w. Copy elsewhere, or replace them with --force", exists)
			}
			if err != nil {
				return brokenf("%w", err)
			}
			for _, path := range written {
				if _, err := fmt.Fprintln(a.out, path); err != nil {
					return brokenf("listing what was copied: %w", err)
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&force, "force", false, "replace files that differ")
	return c
}
