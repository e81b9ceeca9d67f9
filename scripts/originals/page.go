package main

import (
	"fmt"
	"math"
	"strings"
)

const head = `# Published forms, and ours

Formulas and rules for the quality of language models that are widely passed on fail on inputs that are easy to name. Here they stand beside what is
used instead, both on the same input. This page is written by

    go run ./scripts/originals%s -o docs/originals.md

with %d simulations a cell and seed %d. Intervals are of 95 %% (Wilson).

## Side by side

Each published form is kept under a name of its own, to be compared with; no check decides by one.

| published | on | it says | ours says |
|---|---|---|---|
`

const formNotes = `
- **Drift.** Samples of one model differ by chance, and KL makes much of small classes: a threshold of 0.12 is inside of what a model is away from itself with any
  number of samples that one would pay for. ` + "`diverge.Drift`" + ` reports the excess over what dealing all samples anew gives, with a p-value; ` + "`Distance.Composite`" + ` is the published sum.
- **Cosine of log-probabilities** (` + "`diverge.LogCosine`" + `). Nearly all of 32,000 logarithms are about −10 to −15 in any distribution, so the angle between any two is small. Adding a constant to logits makes it smaller still.
  Distances of probabilities have a scale: Jensen–Shannon and total variation from 0 to 1.
- **argmax(gradient > threshold)** (` + "`screen.SteepRise`" + `). argmax over nothing is 0, so "none" and "at the first position" are one answer; and the entropy of even attention, ln of the number of keys, rises most steeply at the beginning whatever the model does.
  Entropies are divided by ln of the number of keys, and ` + "`screen.Changes`" + ` may say none.
- **q/‖q‖^α** (` + "`embed.OverNorm`" + `). A cosine divides by the lengths anyway. Scores of two embedders are made comparable by what unrelated texts have (` + "`embed.Calibrate`" + `).
- **Share of the most frequent answer.** Of five answers it is a coin toss at one question, and too great on average. The agreement of pairs is unbiased; its mean over many questions is what is compared, paired.

## A fall by more than 0.15

A rule for accuracy by length of context: it is broken where the accuracy is more than 0.15 below that at the shortest length (` + "`screen.Fell`" + `). Here it is 0.9 at
every length: each time the rule fires is a false alarm. The scan (` + "`screen.TrialChange`" + `, p at most 0.05) is of the same tries.

| lengths | tries each | the rule fires, % | the scan, % |
|---|---|---|---|
`

const scanHead = `
## Power of the scan for a breakpoint

How often ` + "`screen.TrialChange`" + ` has a p of at most 0.05 when the share of right answers falls in the middle of the lengths, with tries on ten haystacks in turn; "published" is what another program measured, by some
hundred simulations. The last row has no fall.

| lengths | tries each | share | found, % | interval | published, % | off by, lengths |
|---|---|---|---|---|---|---|
`

const searchHead = `
## Tokens that the bisection saves

` + "`screen.Bisection`" + ` looks for a fall from 0.95 to 0.70 among 15 lengths from 1,000 to 128,000 tokens, two a doubling, without knowing either share. A grid of 40 tries at each length costs %.1f million tokens.
"Break said": the probability of no break is below 5 %%, which is when a check should speak.

| break at | tokens, millions | of the grid, %% | tries | within one length, %% | set has it, %% | break said, %% |
|---|---|---|---|---|---|---|
`

// page measures everything, and lists what is not as it should be.
func page(runs int, seed uint64) (text string, bad []string) {
	var b strings.Builder
	options := ""
	if runs != fullRuns {
		options = fmt.Sprintf(" -runs %d", runs)
	}
	if seed != 1 {
		options += fmt.Sprintf(" -seed %d", seed)
	}
	fmt.Fprintf(&b, head, options, runs, seed)
	for _, s := range forms(runs, seed) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.form, s.input, s.theirs, s.ours)
		if !s.holds {
			bad = append(bad, fmt.Sprintf("%s on %s: it says %s, ours %s", s.form, s.input, s.theirs, s.ours))
		}
	}
	b.WriteString(formNotes)
	r := source(seed, 6)
	for _, j := range jumps() {
		j.measure(runs, r)
		fmt.Fprintf(&b, "| %d | %d | %s | %s |\n", j.periods, j.tries, percent(j.fires, runs), percent(j.ours, runs))
		if share(j.ours, runs) > 0.05+4*math.Sqrt(0.05*0.95/float64(runs)) || j.tries == 5 && share(j.fires, runs) < 0.3 {
			bad = append(bad, fmt.Sprintf("of %d lengths with %d tries each the rule fires in %d, and the scan in %d of %d", j.periods, j.tries, j.fires, j.ours, runs))
		}
	}
	b.WriteString(scanHead)
	for _, s := range scans() {
		s.measure(runs, r)
		lo, hi := band(s.found, runs)
		off := "–"
		if s.from != s.to && s.found > 0 {
			off = fmt.Sprintf("%.2f", s.off/float64(s.found))
		}
		fmt.Fprintf(&b, "| %d | %d | %v → %v | %s | %.1f to %.1f | %.0f | %s |\n", s.periods, s.tries, s.from, s.to, percent(s.found, runs), 100*lo, 100*hi, 100*s.published, off)
		if !s.agrees(4) {
			bad = append(bad, fmt.Sprintf("%d lengths with %d tries, %v to %v: found in %d of %d, published %v", s.periods, s.tries, s.from, s.to, s.found, runs, s.published))
		}
	}
	fmt.Fprintf(&b, searchHead, grid()/1e6)
	for _, place := range []int{4, 8, 11, 13, searchLengths} {
		s := searched{place: place}
		s.measure(runs, r)
		n := float64(runs)
		fmt.Fprintf(&b, "| %s | %.2f | %.0f | %.0f | %s | %s | %s |\n", s.name(), s.spent/n/1e6, 100*s.spent/n/grid(), s.tries/n, percent(s.near, runs), percent(s.covered, runs), percent(s.said, runs))
		if least := 0.94 - 4*math.Sqrt(0.06*0.94/n); share(s.near, runs) < least || share(s.covered, runs) < least || s.spent/n > 0.4*grid() {
			bad = append(bad, fmt.Sprintf("a bisection for %s is near in %d and covers in %d of %d, at %.2f of the grid", s.name(), s.near, s.covered, runs, s.spent/n/grid()))
		}
	}
	return b.String(), bad
}

func share(k, n int) float64 { return float64(k) / float64(n) }

func percent(k, n int) string { return fmt.Sprintf("%.1f", 100*share(k, n)) }

// band is Wilson's interval of 95 %.
func band(k, n int) (lo, hi float64) {
	const z = 1.959963984540054
	p, m := share(k, n), float64(n)
	mid, half := (p+z*z/2/m)/(1+z*z/m), z/(1+z*z/m)*math.Sqrt(p*(1-p)/m+z*z/4/m/m)
	return math.Max(0, mid-half), math.Min(1, mid+half)
}
