package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/agree"
	"github.com/assay-llm/assay/stat/compare"
)

// MostErrors is the share of judge errors above which nothing is concluded from
// the rest.
const MostErrors = 0.02

// Score is one score on its way into a mean.
type Score struct {
	Cluster string  // scores of one cluster may depend on each other; "": this one stands for itself
	Value   float64 // NaN: none
	Fault   Fault
}

// Tally is the mean of scores, with what is missing bounded on both sides.
type Tally struct {
	N       int
	Scored  int
	Errors  int // of the judge: excluded from Mean
	Invalid int // suspicious: excluded, for a person to look at
	Faults  map[Fault]int

	Mean   stat.Estimate // of what was scored
	Worst  stat.Estimate // if all that is missing were 0
	Best   stat.Estimate // if all of it were 1
	Errant stat.Estimate // share of errors
	// Inconclusive says why nothing is to be concluded; "": something is.
	Inconclusive string
}

// Count takes scores together. Nothing that is missing is ever a number in Mean, and
// without a score there is none.
func Count(scores []Score, confidence float64) Tally {
	t := Tally{N: len(scores), Faults: map[Fault]int{}}
	mean := make([]Score, 0, len(scores))
	worst, best := slices.Clone(scores), slices.Clone(scores)
	for i, s := range scores {
		if s.Fault == "" && s.Value >= 0 && s.Value <= 1 {
			mean = append(mean, s)
			continue
		}
		worst[i].Value, best[i].Value = 0, 1
		if s.Fault == "" {
			s.Fault = Unparsable
		}
		if t.Faults[s.Fault]++; s.Fault == Suspicious {
			t.Invalid++
		} else {
			t.Errors++
		}
	}
	t.Scored = len(mean)
	t.Mean, t.Worst, t.Best = meanOf(mean, confidence), meanOf(worst, confidence), meanOf(best, confidence)
	t.Errant = stat.ExactShare(t.Errors, t.N, confidence)
	switch {
	case t.N == 0:
		t.Inconclusive = "nothing was judged"
	case t.Scored == 0:
		t.Inconclusive = fmt.Sprintf("none of %d was scored", t.N)
	case float64(t.Errors) > MostErrors*float64(t.N):
		t.Inconclusive = fmt.Sprintf("the judge erred in %d of %d (%.1f %%), more than %.0f %%", t.Errors, t.N, 100*float64(t.Errors)/float64(t.N), 100*MostErrors)
	}
	return t
}

// AtLeast judges whether the mean is at least a limit, whatever the missing scores
// would have been.
func (t *Tally) AtLeast(limit float64) (contract.Grade, string) {
	switch {
	case t.Inconclusive != "":
		return contract.Inconclusive, t.Inconclusive
	case t.Worst.Lo >= limit:
		return contract.Pass, fmt.Sprintf("the mean is at least %.3f, with what is missing taken as the worst", t.Worst.Lo)
	case t.Best.Hi < limit:
		return contract.Fail, fmt.Sprintf("the mean is at most %.3f, with what is missing taken as the best", t.Best.Hi)
	}
	return contract.Inconclusive, fmt.Sprintf("the mean is between %.3f and %.3f", t.Worst.Lo, t.Best.Hi)
}

// meanOf is the mean with the interval that fits: of yes and no for themselves the
// exact one.
func meanOf(scores []Score, confidence float64) stat.Estimate {
	clusters := grouped(scores, func(s Score) string { return s.Cluster })
	values := make([][]float64, len(clusters))
	ones, binary := 0, true
	for i, c := range clusters {
		for _, s := range c {
			values[i] = append(values[i], s.Value)
			binary = binary && len(c) == 1 && (s.Value == 0 || s.Value == 1)
			ones += int(s.Value)
		}
	}
	if binary && len(scores) > 0 {
		return stat.ExactShare(ones, len(scores), confidence)
	}
	return compare.Mean(values, confidence)
}

// grouped puts what has the same name into one cluster, in the order of first
// appearance; what has none is one by itself.
func grouped[T any](all []T, name func(T) string) (clusters [][]T) {
	at := map[string]int{}
	for _, x := range all {
		n := name(x)
		i, ok := at[n]
		if !ok || n == "" {
			i = len(clusters)
			clusters = append(clusters, nil)
			at[n] = i
		}
		clusters[i] = append(clusters[i], x)
	}
	return clusters
}

// Ruling is what a jury says of one answer.
type Ruling struct {
	Marks []Mark // in the order of the jurors
	// Mark is that of the juror in the middle, by score: the majority's where there is
	// one, and no single juror moves it beyond what others say. Its Fault is Undecided
	// if no more than half of all jurors have a score, or two with different scores
	// stand in the middle; it is Suspicious if the marks are. Asked is of all.
	Mark Mark
}

// Rule takes the marks of several judges together.
func Rule(marks ...Mark) Ruling {
	r := Ruling{Marks: marks}
	var scored []Mark
	asked := 0
	for _, m := range marks {
		if m.Fault == Suspicious {
			r.Mark = m
			return r
		}
		if asked += m.Asked; m.Scored() {
			scored = append(scored, m)
		}
	}
	slices.SortStableFunc(scored, func(a, b Mark) int { return cmp.Compare(a.Score, b.Score) })
	n := len(scored)
	switch {
	case 2*n <= len(marks):
		r.Mark = faulty(Undecided, fmt.Sprintf("%d of %d jurors have a verdict", n, len(marks)))
	case scored[(n-1)/2].Score != scored[n/2].Score:
		r.Mark = faulty(Undecided, fmt.Sprintf("%d jurors are divided", n))
	default:
		r.Mark = scored[n/2]
	}
	r.Mark.Asked = asked
	return r
}

// Agreement is how far jurors agree: Krippendorff's alpha of their scores, 1 for
// always and 0 as by chance. Clusters names the cluster of each ruling; nil: each
// stands for itself.
func Agreement(rulings []Ruling, clusters []string, confidence float64, seed uint64) stat.Estimate {
	type unit struct {
		cluster string
		marks   []float64
	}
	units := make([]unit, len(rulings))
	for i, r := range rulings {
		if clusters != nil {
			units[i].cluster = clusters[i]
		}
		for k := range r.Marks {
			score := math.NaN()
			if r.Marks[k].Scored() {
				score = r.Marks[k].Score
			}
			units[i].marks = append(units[i].marks, score)
		}
	}
	var all [][][]float64
	for _, c := range grouped(units, func(u unit) string { return u.cluster }) {
		var marks [][]float64
		for _, u := range c {
			marks = append(marks, u.marks)
		}
		all = append(all, marks)
	}
	return agree.Alpha(all, agree.Interval, confidence, seed)
}
