package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/lock"
	"github.com/assay-llm/assay/report"
)

func newCompare(c *console) *cobra.Command {
	var format string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "compare RUN[:VARIANT] [RUN[:VARIANT]]",
		Short: "Compare two runs, or two variants of one, metric by metric",
		Long: `Compare shows two sides metric by metric, with intervals, and what difference the
records could have shown at all. With one run it compares the run's baseline
with its candidate; with two runs, the candidate of each (or its only variant).
It judges nothing: a contract does that. When two runs do not depend on the same
things, beyond what differs between versions of a service, it says so: see assay diff.`,
		Example: "  assay compare runs/ID\n  assay compare runs/OLD runs/NEW\n  assay compare runs/ID:baseline runs/ID:candidate",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 {
				return nil
			}
			return usage(fmt.Errorf("assay compare wants one or two runs, got %d arguments\n  hint: %s", len(args), use(cmd)))
		},
		RunE: func(_ *cobra.Command, args []string) error {
			a, b, err := sides(args)
			if err != nil {
				return usage(err)
			}
			if asJSON {
				format = "json"
			}
			c.comparable(args)
			compared := report.Compare(a, b)
			switch format {
			case "text":
				width := terminal(c.out)
				if width == 0 {
					width = 120
				}
				return report.CompareText(c.out, compared, report.TextOptions{Width: width, Colour: c.colour(c.out)})
			case "markdown":
				return report.CompareMarkdown(c.out, compared)
			case "json":
				return report.CompareJSON(c.out, compared)
			}
			return usage(fmt.Errorf("format %q is not known\n  hint: use text, json or markdown", format))
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, json or markdown")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format json (assay.comparison/1)")
	return cmd
}

// versions are the facts by which one version of a service differs from another.
var versions = []string{"engine", "weights", "model", "image"}

// comparable warns when two runs cannot be compared as they are.
func (c *console) comparable(args []string) {
	if len(args) < 2 || runOf(args[0]) == runOf(args[1]) {
		return // the variants of one run took turns under the same conditions
	}
	a, err := depends(args[0])
	if err == nil {
		var b *lock.Lock
		if b, err = depends(args[1]); err == nil {
			d := lock.Compare(a, b, versions...)
			if d.Class > lock.Equivalent {
				c.notice("warning: the two runs are %s: %s\n  hint: assay diff %s %s says more", d.Class, d.Reason, args[0], args[1])
			} else if n := len(d.Unknown); n > 0 {
				c.notice("whether the two runs can be compared is not certain: %s\n  hint: assay diff %s %s says more", d.Reason, args[0], args[1])
			}
			return
		}
	}
	c.notice("whether the two runs can be compared is not known: %s", strings.ReplaceAll(err.Error(), "\n  hint:", ";"))
}

// runOf is the directory of RUN or RUN:VARIANT.
func runOf(arg string) string {
	if i := strings.LastIndexByte(arg, ':'); i > 1 {
		return arg[:i]
	}
	return arg
}

// sides opens what the arguments name.
func sides(args []string) (a, b report.Side, err error) {
	first, variant, err := side(args[0])
	if err != nil {
		return a, b, err
	}
	if len(args) == 2 {
		second, other, err := side(args[1])
		if err != nil {
			return a, b, err
		}
		if a, err = pick(first, variant, args[0]); err != nil {
			return a, b, err
		}
		b, err = pick(second, other, args[1])
		return a, b, err
	}
	if variant != "" || len(first.Manifest.Variants) < 2 {
		return a, b, fmt.Errorf("comparing %s: one side only\n  hint: name a second run, or a run with two variants", args[0])
	}
	if a, err = pick(first, first.Manifest.Variants[0].Name, args[0]); err != nil {
		return a, b, err
	}
	b, err = pick(first, first.Manifest.Variants[1].Name, args[0])
	return a, b, err
}

// side opens RUN or RUN:VARIANT.
func side(arg string) (r *bench.Result, variant string, err error) {
	dir := arg
	if i := strings.LastIndexByte(arg, ':'); i > 1 { // not the colon of a drive letter
		dir, variant = arg[:i], arg[i+1:]
	}
	r, err = bench.Open(dir)
	return r, variant, err
}

// pick returns one variant of a run as a side; "" is the candidate, or the last.
func pick(r *bench.Result, variant, arg string) (report.Side, error) {
	m := r.Manifest
	var names []string
	for _, v := range m.Variants {
		names = append(names, v.Name)
	}
	chosen := variant
	if chosen == "" {
		chosen = names[len(names)-1]
		for _, n := range names {
			if n == bench.Candidate {
				chosen = n
			}
		}
	}
	for _, n := range names {
		if n == chosen {
			return report.Side{Label: m.ID + ":" + n, Manifest: m, Records: r.Records, Variant: n}, nil
		}
	}
	return report.Side{}, fmt.Errorf("comparing %s: the run has no variant %q\n  hint: it has %s", arg, variant, strings.Join(names, ", "))
}
