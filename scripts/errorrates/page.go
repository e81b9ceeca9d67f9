package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/assay-llm/assay/contract"
)

const intro = `# Error rates

How often each test decides wrongly, and how often it finds what is there: measured, not promised. This page is written by

    go run ./scripts/errorrates%s -o docs/error-rates.md

with %d simulated releases a cell and seed %d. Each decision (fail, pass) is taken at an error rate of 5 %%. n is the number of
sessions of each variant (of pairs, of documents). A test with "any time" is looked at at about %d sizes up to n, and a verdict at any of
them counts. Others are looked at once, at n. Rules in *italics* are not ours: they are what is often done, for contrast.

A **false alarm** is a verdict where none is right: of a test with a margin when the candidate is exactly at the margin (both verdicts are wrong there, fail / pass),
of one without when the variants are equal (one-sided; Kolmogorov-Smirnov two-sided). The simulation has an error of its own: ± is half of its 95 %% band at the rate in
the cell. **Found** is how often a candidate that is worse than the margin fails, **passed** how often an equal one passes. A – is not measured, because it takes too long.
%s
`

const lessons = `
## What came of it

Methods that did not keep their rates as published, and what is done instead:

- Tango's interval for paired answers errs in up to 4.9 % at a nominal 2.5 % when few pairs differ. With fewer than 50 it is
  widened to contain an exact one; the exact size is then at most 2.6 % (TestTangoSize).
- A t interval of paired scores, and flipped signs around a margin, pass a candidate at its margin in up to 40 % when few
  scores differ from the others. With fewer than 30 there is no interval and no p-value: inconclusive.
- The asymptotic confidence sequence of means has neither bounds nor evidence below 200 sessions a variant.
- Requests of a session are never counted one by one, and the steps of a ramp never pooled; the rules in italics show why.
`

const notMeasured = "–"

// thresholds are the rules of the presets at traffic in which nothing changed, as package
// contract keeps them.
func thresholds(b *strings.Builder) {
	b.WriteString("\n## Thresholds as they were first written\n\n" +
		"How often a rule of the preset `seed-compat` acts at one look though nothing changed: point estimates, without a minimum of evidence. Beside it\n" +
		"the same rule of `production-17` at the same traffic; – where it wants other evidence. Both without `for`. Measured by\n" +
		"`ASSAY_SLOW=1 go test ./contract -run FalseAlarmsOfThresholds -update`, which rewrites what `assay contract presets seed-compat` prints, too.\n\n" +
		"| rule | traffic | n | acts, % | band, % | production-17, % |\n|---|---|---|---|---|---|\n")
	for _, f := range contract.Measured() {
		lo, hi := band(f.Acted, f.Looks)
		corrected := notMeasured
		if f.CorrectedLooks > 0 {
			corrected = fmt.Sprintf("%.1f", 100*float64(f.CorrectedActed)/float64(f.CorrectedLooks))
		}
		fmt.Fprintf(b, "| *%s* | %s | %d | %.1f | %.1f to %.1f | %s |\n", f.Clause, f.Traffic, f.N, 100*float64(f.Acted)/float64(f.Looks), 100*lo, 100*hi, corrected)
	}
}

// page writes the results as Markdown.
func page(results []*result, extra []check, runs int, seed uint64) string {
	var b strings.Builder
	sizes := results[0].sizes
	summary := summarise(results)
	options := ""
	if runs != fullRuns {
		options = fmt.Sprintf(" -runs %d", runs)
	}
	if seed != 1 {
		options += fmt.Sprintf(" -seed %d", seed)
	}
	fmt.Fprintf(&b, intro, options, runs, seed, len(looks(sizes)), summary)
	worst(&b, results)
	for gi := range groups {
		g := &groups[gi]
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", g.name, g.doc)
		for _, s := range allSettings {
			fmt.Fprintf(&b, "\n### %s: %s\n", g.name, g.kind(s))
			header(&b, "False alarms, %", sizes)
			for _, r := range results {
				if r.group == g && r.setting == s {
					fail, pass := r.alarms()
					r.row(&b, func(j int) string { return r.alarmCell(fail, pass, j) })
				}
			}
			header(&b, "Found / passed, %", sizes)
			for _, r := range results {
				if r.group == g && r.setting == s {
					r.row(&b, func(j int) string {
						found := percent(r.fail[beyond][j], r.runs)
						if !r.method.margin {
							return found
						}
						return found + " / " + percent(r.pass[equal][j], r.runs)
					})
				}
			}
		}
	}
	b.WriteString("\n## Ramps, assignments, planned sizes, screens\n\n| what | share, % | band, % | of runs |\n|---|---|---|---|\n")
	for _, c := range extra {
		lo, hi := band(c.count, c.runs)
		fmt.Fprintf(&b, "| %s | %.1f | %.1f to %.1f | %d |\n", emphasis(c.name, c.naive), 100*float64(c.count)/float64(c.runs), 100*lo, 100*hi, c.runs)
	}
	thresholds(&b)
	b.WriteString(lessons)
	return b.String()
}

// summarise says whether the tests of ours keep their rates.
func summarise(results []*result) string {
	cells, above := 0, 0
	for _, r := range results {
		fail, pass := r.alarms()
		for _, ks := range [][]int{fail, pass} {
			for j, k := range ks {
				if r.method.naive || !r.measured(j) {
					continue
				}
				cells++
				if lo, _ := band(k, r.runs); lo > nominal {
					above++
				}
			}
		}
	}
	text := fmt.Sprintf("\nOf %d rates of false alarms of our tests, %d have a band wholly above 5 %%", cells, above)
	bad := violations(results)
	if len(bad) == 0 {
		return text + "; for so many rates together, none is above it by more than the simulation's error."
	}
	return text + ". For all rates together, above it by more than the simulation's error are: " + strings.Join(bad, "; ") + "."
}

// worst is the highest rate of false alarms of each method anywhere.
func worst(b *strings.Builder, results []*result) {
	b.WriteString("\n## The worst of each\n\nThe highest rate of false alarms over all data and sizes below. The highest of many cells is above the true rate by chance.\n\n| test | looked at | highest, % | band, % | where |\n|---|---|---|---|---|\n")
	for gi := range groups {
		for mi := range groups[gi].methods {
			m := &groups[gi].methods[mi]
			count, runs, where := -1, 1, ""
			for _, r := range results {
				if r.method != m {
					continue
				}
				fail, pass := r.alarms()
				for which, ks := range [][]int{fail, pass} {
					for j, k := range ks {
						if r.measured(j) && k > count {
							count, runs, where = k, r.runs, fmt.Sprintf("%s, n = %d, %s", r.group.kind(r.setting), r.sizes[j], [2]string{"fail", "pass"}[which])
						}
					}
				}
			}
			lo, hi := band(count, runs)
			fmt.Fprintf(b, "| %s | %s | %.1f | %.1f to %.1f | %s |\n", emphasis(m.name, m.naive), m.looked(), 100*float64(count)/float64(runs), 100*lo, 100*hi, where)
		}
	}
}

func (m *method) looked() string {
	if m.peeks {
		return "any time"
	}
	return "once"
}

func emphasis(name string, naive bool) string {
	if naive {
		return "*" + name + "*"
	}
	return name
}

func header(b *strings.Builder, what string, sizes []int) {
	fmt.Fprintf(b, "\n| %s |", what)
	for _, n := range sizes {
		fmt.Fprintf(b, " n = %d |", n)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(sizes)) + "\n")
}

func (r *result) row(b *strings.Builder, cell func(j int) string) {
	fmt.Fprintf(b, "| %s |", emphasis(r.method.name, r.method.naive))
	for j := range r.sizes {
		if !r.measured(j) {
			fmt.Fprintf(b, " %s |", notMeasured)
			continue
		}
		fmt.Fprintf(b, " %s |", cell(j))
	}
	b.WriteByte('\n')
}

// measured reports whether the method was simulated at the size.
func (r *result) measured(j int) bool { return r.method.most == 0 || r.sizes[j] <= r.method.most }

func (r *result) alarmCell(fail, pass []int, j int) string {
	k := fail[j]
	text := percent(fail[j], r.runs)
	if pass != nil {
		text += " / " + percent(pass[j], r.runs)
		k = max(k, pass[j])
	}
	lo, hi := band(k, r.runs)
	return fmt.Sprintf("%s ±%.1f", text, 50*(hi-lo))
}

func percent(k, n int) string {
	x := 100 * float64(k) / float64(n)
	if x == math.Trunc(x) {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1f", x)
}
