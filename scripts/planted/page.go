package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/assay-llm/assay/stat"
)

// render writes the page.
func render(w io.Writer, rows []row, seeds int) {
	fmt.Fprintf(w, `# Planted faults

How often the [checks](checks.md) of answers find a fault that is there, say where it is, and are silent where there is none: measured on programmable models,
of which the baseline is always clean. This page is written by

    go run ./scripts/planted -seeds %d -o docs/planted-faults.md

A model here has abilities and errors: it is wrong at some rate, words its answers in several ways, and knows nothing of the check. Each seed draws other
cases, other errors and, where there is one, another place of the fault. "Found": what the column "by" names said so. "Placed": and it
named the right place, of all seeds. "Silent": of as many seeds in which the candidate is a second clean model, with errors of its own, nothing was said.
Shares are in per cent with their exact 95 %% interval (Clopper and Pearson).

| check | fault | by | found | place | placed | silent on the clean twin |
|---|---|---|---|---|---|---|
`, seeds)
	for _, r := range rows {
		placed := "–"
		if r.where != "" {
			placed = share(r.placed, r.seeds)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s |\n", r.check, r.name, r.by, share(r.found, r.seeds), cmp.Or(r.where, "–"), placed, share(r.silent, r.seeds))
	}
	fmt.Fprint(w, "\n## What is planted\n\n")
	for _, r := range rows {
		fmt.Fprintf(w, "- **%s, %s.** %s\n", r.check, r.name, r.doc)
	}
}

// share writes k of n in per cent, with its exact 95 % interval.
func share(k, n int) string {
	e := stat.ExactShare(k, n, 0.95)
	return fmt.Sprintf("%.0f [%.1f, %.1f]", 100*e.Value, 100*e.Lo, 100*e.Hi)
}
