package contract

import (
	"sync"

	"github.com/assay-llm/assay/record"
)

// metricNames lists the metrics that a run measures, in the catalogue's order.
func metricNames(which func(record.Metric) bool) []string {
	var names []string
	for _, m := range record.Metrics() {
		if which == nil || which(m) {
			names = append(names, m.Name)
		}
	}
	return names
}

// knownNames lists every metric that a contract may name.
var knownNames = sync.OnceValue(func() []string {
	names := metricNames(nil)
	for _, d := range vocabulary {
		names = append(names, d.Name)
	}
	for i := range stages {
		names = append(names, stages[i].metric.Name)
	}
	return names
})

// nearest returns the candidate within two edits of word, if one is closer
// than half of it.
func nearest(word string, candidates []string) (string, bool) {
	best, least := "", 3
	for _, c := range candidates {
		if d := distance(word, c); d < least && 2*d < max(len(word), len(c)) {
			best, least = c, d
		}
	}
	return best, best != ""
}

// distance is the Levenshtein distance with transpositions (restricted), in
// bytes, as far as it is below 3; both words are short.
func distance(a, b string) int {
	const most = 64
	if len(a) > most || len(b) > most || len(a)-len(b) > 2 || len(b)-len(a) > 2 {
		return max(len(a), len(b), 3)
	}
	var rows [3][most + 1]int // of i−2, i−1 and i
	before, above, here := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		here[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(above[j]+1, here[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			here[j] = d
		}
		before, above, here = above, here, before
	}
	return above[len(b)]
}
