package contract

import "github.com/assay-llm/assay/record"

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
func knownNames() []string {
	names := metricNames(nil)
	for _, d := range vocabulary {
		names = append(names, d.Name)
	}
	return names
}

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
// bytes; both words are short.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
