package judge

import (
	"fmt"
	"math"

	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/compare"
)

const (
	leastClusters = 10 // of several cases; fewer give no interval
	manyClusters  = 30 // from here on the spread between clusters is trusted
)

// hits counts cases that may depend on each other within a cluster.
type hits struct {
	k, n     int
	clusters [][]float64 // 1 for a hit, 0 for none
}

// count counts the hits among the observations that count.
func count(all []Observation, of func(*Observation) (hit, counts bool)) (h hits) {
	at := map[string]int{}
	for i := range all {
		hit, counts := of(&all[i])
		if !counts {
			continue
		}
		name := all[i].Cluster
		g, ok := at[name]
		if !ok || name == "" {
			g = len(h.clusters)
			at[name], h.clusters = g, append(h.clusters, nil)
		}
		x := 0.0
		if hit {
			x = 1
			h.k++
		}
		h.n++
		h.clusters[g] = append(h.clusters[g], x)
	}
	return h
}

// share estimates the share of hits. Where each case is its own cluster, that is
// Clopper and Pearson's. Else, with 30 clusters or more of which enough differ, it is
// the interval of [compare.Mean]; where that has none, and with fewer, Clopper and
// Pearson's for (Σm)²/Σm² trials of clusters with m cases, as if all cases of a cluster
// were one (Kish 1965). Below 10 such trials there is no interval.
func (h hits) share(confidence float64) stat.Estimate {
	e := stat.ExactShare(h.k, h.n, confidence)
	if len(h.clusters) == h.n {
		return e
	}
	squares := 0.0
	for _, c := range h.clusters {
		squares += float64(len(c)) * float64(len(c))
	}
	trials := int(float64(h.n) * float64(h.n) / squares)
	if trials >= manyClusters {
		if m := compare.Mean(h.clusters, confidence); m.Defined() && m.Estimable() {
			m.Lo, m.Hi = math.Max(0, m.Lo), math.Min(1, m.Hi)
			return m
		}
	}
	e.Effective, e.Method = float64(trials), e.Method+" of clusters"
	if trials < leastClusters {
		e.Lo, e.Hi = math.Inf(-1), math.Inf(1)
		e.Warnings = append(e.Warnings, stat.Warning{Code: stat.CodeFew, Text: fmt.Sprintf("its %d cases are in so few clusters that they say as little as %d, and it takes %d", h.n, trials, leastClusters)})
		return e
	}
	k := e.Value * float64(trials)
	e.Lo = stat.ExactShare(int(k+1e-9), trials, confidence).Lo
	e.Hi = stat.ExactShare(int(math.Ceil(k-1e-9)), trials, confidence).Hi
	return e
}
