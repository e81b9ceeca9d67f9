package agree

import (
	"fmt"
	"math"
	"slices"

	"github.com/assay-llm/assay/stat"
)

// Weights say how far two verdicts of an ordered menu agree.
type Weights int

// The weights of [Kappa]; 0 is Plain.
const (
	Plain     Weights = iota // equal or not; for menus without an order
	Linear                   // by the distance in the menu
	Quadratic                // by its square
)

const (
	methodKappa = "kappa, asymptotic standard error"
	methodAlpha = "Krippendorff's alpha, bootstrap of clusters"
)

// Kappa is Cohen's kappa: how far two raters agree beyond chance, 1 for always, 0
// as by chance. Row i, column j of the square table counts the cases of which
// one rater said verdict i and the other j, verdicts in the order of the menu.
// The standard error is that of Fleiss, Cohen & Everitt (Psychol. Bull. 72,
// 1969), for independent cases; of clusters use [Resample]. There is no interval
// where raters never disagree.
func Kappa(table [][]int, w Weights, confidence float64) stat.Estimate {
	n := 0
	for i, row := range table {
		if len(row) != len(table) {
			return unknown(n, confidence, methodKappa, stat.CodeUndefined, fmt.Sprintf("row %d of the table has %d columns instead of %d", i, len(row), len(table)))
		}
		for _, x := range row {
			if x < 0 {
				return unknown(n, confidence, methodKappa, stat.CodeUndefined, "counts are not negative")
			}
			n += x
		}
	}
	switch {
	case !valid(confidence):
		return unknown(n, confidence, methodKappa, stat.CodeUndefined, badConfidence)
	case n == 0 || len(table) < 2:
		return unknown(n, confidence, methodKappa, stat.CodeUndefined, "there are no cases, or no menu of two verdicts")
	}
	value, se := kappa(table, w)
	if math.IsNaN(value) {
		return unknown(n, confidence, methodKappa, stat.CodeConstant, "all verdicts are equal, so no agreement beyond chance can be seen")
	}
	e := stat.Estimate{Value: value, Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: n, Effective: float64(n), Method: methodKappa}
	if !(se > 1e-9) {
		warn(&e, stat.CodeConstant, "the raters never disagree, which is no evidence that they never will; there is no interval")
		return e
	}
	half := se * normal((1+confidence)/2)
	e.Lo, e.Hi = math.Max(-1, value-half), math.Min(1, value+half)
	return e
}

// weight is how far verdicts i and j of a menu of k agree.
func (w Weights) weight(i, j, k int) float64 {
	d := math.Abs(float64(i-j)) / float64(k-1)
	switch {
	case w == Linear:
		return 1 - d
	case w == Quadratic:
		return 1 - d*d
	case i == j:
		return 1
	}
	return 0
}

func kappa(table [][]int, w Weights) (value, se float64) {
	k := len(table)
	rows, columns, n := make([]float64, k), make([]float64, k), 0.0
	for i, row := range table {
		for j, x := range row {
			rows[i] += float64(x)
			columns[j] += float64(x)
			n += float64(x)
		}
	}
	observed, chance := 0.0, 0.0
	byRow, byColumn := make([]float64, k), make([]float64, k) // mean weights
	for i := range k {
		for j := range k {
			a := w.weight(i, j, k)
			observed += a * float64(table[i][j]) / n
			chance += a * rows[i] / n * columns[j] / n
			byRow[i] += a * columns[j] / n
			byColumn[j] += a * rows[i] / n
		}
	}
	if !(1-chance > 1e-12) {
		return math.NaN(), math.NaN()
	}
	v := 0.0
	for i := range k {
		for j := range k {
			d := w.weight(i, j, k)*(1-chance) - (byRow[i]+byColumn[j])*(1-observed)
			v += float64(table[i][j]) / n * d * d
		}
	}
	d := observed*chance - 2*chance + observed
	v = (v - d*d) / (n * math.Pow(1-chance, 4))
	return (observed - chance) / (1 - chance), math.Sqrt(math.Max(v, 0))
}

// Table counts verdicts of two raters for [Kappa]. Verdicts outside of the menu,
// such as -1 for none, are left out.
func Table(menu int, first, second []int) [][]int {
	t := make([][]int, menu)
	for i := range t {
		t[i] = make([]int, menu)
	}
	for i := range min(len(first), len(second)) {
		if a, b := first[i], second[i]; a >= 0 && a < menu && b >= 0 && b < menu {
			t[a][b]++
		}
	}
	return t
}

// Fleiss is Fleiss' kappa of several raters (Psychol. Bull. 76, 1971): row i
// counts, for each verdict, the raters who gave it to case i. It is NaN if rows
// differ in their number of raters, if that is below two, or if all verdicts are
// equal. An interval comes from [Resample] on the rows.
func Fleiss(counts [][]int) float64 {
	if len(counts) == 0 {
		return math.NaN()
	}
	raters := 0
	for _, x := range counts[0] {
		raters += x
	}
	shares, agree := make([]float64, len(counts[0])), 0.0
	for _, row := range counts {
		sum, squares := 0, 0
		if len(row) != len(shares) {
			return math.NaN()
		}
		for k, x := range row {
			sum, squares = sum+x, squares+x*x
			shares[k] += float64(x)
		}
		if sum != raters || raters < 2 {
			return math.NaN()
		}
		agree += float64(squares-raters) / float64(raters*(raters-1))
	}
	agree /= float64(len(counts))
	chance := 0.0
	for _, s := range shares {
		s /= float64(raters * len(counts))
		chance += s * s
	}
	if !(1-chance > 1e-12) {
		return math.NaN()
	}
	return (agree - chance) / (1 - chance)
}

// Level is what the numbers of verdicts mean to [Alpha].
type Level int

// The levels; 0 is Nominal.
const (
	Nominal  Level = iota // names: equal or not
	Ordinal               // an order
	Interval              // numbers with distances
)

// Alpha is Krippendorff's alpha (Content Analysis, 2004), for any number of
// raters and with gaps: a unit holds the marks of one case by rater, NaN where
// there is none. Units are in clusters that are drawn whole for the interval.
func Alpha(clusters [][][]float64, level Level, confidence float64, seed uint64) stat.Estimate {
	e := Resample(clusters, func(units [][]float64) float64 { return alpha(units, level) }, confidence, seed)
	e.Method = methodAlpha
	return e
}

func alpha(units [][]float64, level Level) float64 {
	var values []float64
	kept := make([][]float64, 0, len(units))
	for _, u := range units {
		marks := slices.DeleteFunc(slices.Clone(u), math.IsNaN)
		if len(marks) > 1 {
			kept, values = append(kept, marks), append(values, marks...)
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	k := len(values)
	coincide := make([][]float64, k)
	for i := range coincide {
		coincide[i] = make([]float64, k)
	}
	totals, n := make([]float64, k), 0.0
	for _, u := range kept {
		for i, x := range u {
			a, _ := slices.BinarySearch(values, x)
			totals[a]++
			n++
			for j, y := range u {
				if b, _ := slices.BinarySearch(values, y); i != j {
					coincide[a][b] += 1 / float64(len(u)-1)
				}
			}
		}
	}
	observed, chance := 0.0, 0.0
	for a := range k {
		for b := range k {
			d := level.distance(values, totals, a, b)
			observed += coincide[a][b] * d
			chance += totals[a] * totals[b] * d
		}
	}
	if !(chance > 0) {
		return math.NaN()
	}
	return 1 - (n-1)*observed/chance
}

// distance is the squared difference of two of the values that occur.
func (l Level) distance(values, totals []float64, a, b int) float64 {
	switch {
	case a == b:
		return 0
	case l == Nominal:
		return 1
	case l == Interval:
		return (values[a] - values[b]) * (values[a] - values[b])
	}
	a, b = min(a, b), max(a, b)
	d := -(totals[a] + totals[b]) / 2
	for g := a; g <= b; g++ {
		d += totals[g]
	}
	return d * d
}
