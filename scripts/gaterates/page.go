package main

import (
	"fmt"
	"strings"

	"github.com/assay-llm/assay/stat"
)

// share writes k of n in per cent, with its exact 95 % interval.
func share(k, n int) string {
	if n == 0 {
		return "–"
	}
	e := stat.ExactShare(k, n, 0.95)
	return fmt.Sprintf("%.1f [%.1f, %.1f]", 100*e.Value, 100*e.Lo, 100*e.Hi)
}

// page is the table with what must be known of it.
func page(list []*scenario, suites, planted int, seed uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Error rates of a whole suite

How often a suite with four clauses stops a candidate that is the baseline again, and how often it finds one that is worse: measured, on the
simulated engine. This page is written by

    go run ./scripts/gaterates -suites %d -planted %d -seed %d -o docs/gate-rates.md

Each suite plays both variants anew: arrivals, prompts, jitter of steps and failures are drawn, and answers get a score of which half of the
variance is the prompt's. It may [stop early](runs.md) at any of %d looks. In %d of the suites a difference is also planted into
every request of the candidate; the margins are half of it or less, so that it is to be found.

`+"```yaml\n%s```\n"+`
Shares are in per cent with their exact 95 %% interval (Clopper and Pearson).

| candidate | suites | fails | passes | inconclusive | requests sent, %% of the plan |
|---|---|---|---|---|---|
`, suites, planted, seed, len(looks), planted, suite)
	for _, s := range list {
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %.0f |\n", s.name, s.suites, share(s.fail, s.suites), share(s.pass, s.suites), share(s.suites-s.pass-s.fail, s.suites), 100*s.used/float64(max(1, s.suites)))
	}
	same := list[0]
	fmt.Fprintf(&b, `
Of suites of identical variants at most 1 %% may fail; %d of %d do. A clause states that it fails at most 5 %% of the candidates *at* its limit, and
four of them together at most 20 %%. Identical candidates are a margin away from each limit, and fail far more rarely.

## Against a run that is judged once

The suites with planted differences, and their identical pairs, judged once after a part of the plan, with all of the allowed error at that look: what a design with a fixed number of
requests would have found. "As many" is the least part (of those looked at) at which it finds as many as the suite that may stop
early, or passes as many if the candidate is identical; – is more than the plan. A design with a fixed number must know that number beforehand: it is another one for each row.

| candidate | decided rightly, may stop early | requests sent, %% | %s | as many with a fixed number, %% |
|---|---|---|%s---|
`, same.fail, same.suites, strings.Join(parts(same), " | "), strings.Repeat("---|", len(looks)))
	for i, s := range list {
		right, once := s.fail, s.fixedFail
		if i == 0 {
			right, once = s.pass, s.fixedPass
		}
		fmt.Fprintf(&b, "| %s | %.1f | %.0f |", s.name, 100*float64(right)/float64(max(1, s.suites)), 100*s.used/float64(max(1, s.suites)))
		as := "–"
		for k, n := range once {
			fmt.Fprintf(&b, " %.1f |", 100*float64(n)/float64(max(1, s.fixed)))
			if as == "–" && float64(n)*float64(s.suites) >= float64(right)*float64(s.fixed) {
				as = fmt.Sprintf("%.0f", 100*s.usedOf[k]/float64(max(1, s.fixed)))
			}
		}
		fmt.Fprintf(&b, " %s |\n", as)
	}
	return b.String()
}

// parts heads the columns of the runs that are judged once.
func parts(s *scenario) (out []string) {
	for k := range looks {
		out = append(out, fmt.Sprintf("once at %.0f %%", 100*s.usedOf[k]/float64(max(1, s.fixed))))
	}
	return out
}
