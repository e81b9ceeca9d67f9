package compare

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-llm/assay/stat"
)

const (
	methodMannWhitney = "Mann-Whitney U, normal with ties and continuity"
	methodBrunner     = "Mann-Whitney U, Brunner and Munzel's variance over clusters"
	methodEffect      = "P(candidate > baseline) + P(equal)/2, placements over clusters"
	methodKS          = "Kolmogorov-Smirnov, exact"
	methodKSLimit     = "Kolmogorov-Smirnov, limit distribution"
	methodKSClusters  = "Kolmogorov-Smirnov, permutation of clusters"
)

// MannWhitney tests whether one variant tends to greater values than the other,
// and estimates how much: the probability that a value of the candidate is
// greater than one of the baseline, equal ones counting half; 1/2 is no
// difference, and 2 times it less 1 is Cliff's delta. Values may be +Inf.
//
// Statistic is U of the candidate. Without clusters, p-values are the classical
// ones (normal, corrected for ties and continuity), which also answer to
// unequal spreads. With clusters, and for the interval always, the variance is
// that of the placements summed over clusters (Brunner & Munzel, Biometrical J.
// 42, 2000; Obuchowski, Biometrics 53, 1997).
func MannWhitney(candidate, baseline [][]float64, confidence float64) (Test, stat.Estimate) {
	n := len(candidate) + len(baseline)
	x, err := flat(candidate)
	if err != nil {
		return noTest(n, methodMannWhitney, stat.CodeUndefined, "candidate: "+err.Error()), unknown(n, confidence, methodEffect, stat.CodeUndefined, "candidate: "+err.Error())
	}
	y, err := flat(baseline)
	if err != nil {
		return noTest(n, methodMannWhitney, stat.CodeUndefined, "baseline: "+err.Error()), unknown(n, confidence, methodEffect, stat.CodeUndefined, "baseline: "+err.Error())
	}
	if len(candidate) < 2 || len(baseline) < 2 || !valid(confidence) {
		why := "each variant needs two clusters, and the confidence lies strictly between 0 and 1"
		return noTest(n, methodMannWhitney, stat.CodeFew, why), unknown(n, confidence, methodEffect, stat.CodeFew, why)
	}
	e, se, df := effectSize(candidate, baseline, x, y, confidence)
	t := Test{Statistic: e.Value * float64(len(x)) * float64(len(y)), N: n, Method: methodMannWhitney}
	if n == len(x)+len(y) {
		t.classicU(x, y)
		return t, e
	}
	t.Method = methodBrunner
	d := distuv.StudentsT{Sigma: 1, Nu: df}
	switch z := (e.Value - 0.5) / se; {
	case se > 0:
		t.Greater, t.Less = d.Survival(z), d.CDF(z)
	case e.Value == 0.5:
		t.Greater, t.Less = 1, 1
	default: // complete separation
		t.Greater, t.Less = 1, 1
		p := math.Exp(logChoose(n, len(candidate)))
		if e.Value > 0.5 {
			t.Greater = p
		} else {
			t.Less = p
		}
	}
	t.P = math.Min(1, 2*math.Min(t.Greater, t.Less))
	return t, e
}

// logChoose is minus the logarithm of n over k: how likely one arrangement is.
func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return b + c - a
}

// effectSize estimates the probability with the standard error and degrees of
// freedom of the placements.
func effectSize(candidate, baseline [][]float64, x, y []float64, confidence float64) (e stat.Estimate, se, df float64) {
	sx, sy := slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y))
	// The placement of a value is the share of the other variant below it,
	// equal ones counting half.
	placement := func(v float64, other []float64) float64 {
		from := sort.SearchFloat64s(other, v)
		to := from + sort.Search(len(other)-from, func(i int) bool { return other[from+i] > v })
		return float64(from+to) / 2 / float64(len(other))
	}
	place := func(clusters [][]float64, other []float64) (out [][]float64, mean float64, n float64) {
		for _, c := range clusters {
			p := make([]float64, len(c))
			for i, v := range c {
				p[i] = placement(v, other)
				mean += p[i]
				n++
			}
			out = append(out, p)
		}
		return out, mean / n, n
	}
	px, theta, nx := place(candidate, sy)
	py, rest, ny := place(baseline, sx)
	ex, ey := clusteredError(px, theta, nx), clusteredError(py, rest, ny)
	se = math.Hypot(ex, ey)
	gx, gy := float64(len(candidate)), float64(len(baseline))
	df = math.Pow(se, 4) / (math.Pow(ex, 4)/(gx-1) + math.Pow(ey, 4)/(gy-1)) // Satterthwaite
	e = stat.Estimate{Value: theta, Lo: 0, Hi: 1, Confidence: confidence, N: len(x) + len(y), Effective: gx + gy, Method: methodEffect}
	tail := (1 - confidence) / 2
	switch {
	case se > 0:
		w := se * distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(1-tail)
		e.Lo, e.Hi = math.Max(0, theta-w), math.Min(1, theta+w)
	case theta == 1 || theta == 0:
		// As many disjoint pairs of clusters all point one way.
		if b := math.Pow(tail, 1/math.Min(gx, gy)); theta == 1 {
			e.Lo = b
		} else {
			e.Hi = 1 - b
		}
	default:
		e.Warnings = append(e.Warnings, stat.Warning{Code: stat.CodeConstant, Text: "all values are equal, which is no evidence of precision"})
	}
	return e, se, df
}

// classicU gives the p-values of U for independent values.
func (t *Test) classicU(x, y []float64) {
	nx, ny := float64(len(x)), float64(len(y))
	n := nx + ny
	all := slices.Sorted(slices.Values(slices.Concat(x, y)))
	ties := 0.0
	for i := 0; i < len(all); {
		k := i
		for k < len(all) && all[k] == all[i] {
			k++
		}
		m := float64(k - i)
		ties += m*m*m - m
		i = k
	}
	sd := math.Sqrt(nx * ny / 12 * ((n + 1) - ties/(n*(n-1))))
	if !(sd > 0) {
		t.P, t.Greater, t.Less = 1, 1, 1
		t.Warnings = append(t.Warnings, stat.Warning{Code: stat.CodeConstant, Text: "all values are equal, which is no evidence that the variants are"})
		return
	}
	d := t.Statistic - nx*ny/2
	t.Greater = distuv.UnitNormal.Survival((d - 0.5) / sd)
	t.Less = distuv.UnitNormal.CDF((d + 0.5) / sd)
	t.P = math.Min(1, 2*distuv.UnitNormal.Survival((math.Abs(d)-0.5)/sd))
}

// KolmogorovSmirnov tests whether the distributions of two variants differ
// anywhere. Statistic is D, the greatest distance of the distribution functions.
// Without clusters the p-value is exact up to a million pairs of values (and
// conservative with ties), the limit beyond. With clusters, whole clusters are
// dealt anew to the two variants up to 999 times; it stops early when the
// p-value is large for certain (Besag & Clifford, Biometrika 78, 1991). It tells
// that they differ, not by how much or whether it matters.
func KolmogorovSmirnov(candidate, baseline [][]float64, seed uint64) Test {
	n := len(candidate) + len(baseline)
	x, err := flat(candidate)
	if err != nil {
		return noTest(n, methodKS, stat.CodeUndefined, "candidate: "+err.Error())
	}
	y, err := flat(baseline)
	if err != nil {
		return noTest(n, methodKS, stat.CodeUndefined, "baseline: "+err.Error())
	}
	if len(x) == 0 || len(y) == 0 {
		return noTest(n, methodKS, stat.CodeUndefined, "a variant has no values")
	}
	order := newPooled(candidate, baseline)
	d := order.distance(order.at)
	t := Test{Statistic: d, P: math.NaN(), Greater: math.NaN(), Less: math.NaN(), N: n, Method: methodKS}
	switch {
	case n < len(x)+len(y):
		t.Method = methodKSClusters
		if least := math.Exp(logChoose(n, len(candidate))); least > 0.025 {
			t.Warnings = append(t.Warnings, stat.Warning{Code: stat.CodeFew, Text: fmt.Sprintf("%d clusters can be dealt in too few ways for a test", n)})
			return t
		}
		t.P = order.dealt(rand.New(rand.NewPCG(seed, 0xd15c)), d)
	case len(x)*len(y) <= 1_000_000:
		t.P = smirnov(len(x), len(y), d)
	default:
		t.Method = methodKSLimit
		m := math.Sqrt(float64(len(x)) / float64(n) * float64(len(y)))
		t.P = kolmogorov((m + 0.12 + 0.11/m) * d) // Stephens, JRSS B 32, 1970
	}
	return t
}

// pooled holds the clusters of all values in ascending order.
type pooled struct {
	cluster []int  // of each value
	last    []bool // of equal values
	sizes   []int  // of each cluster
	at      []bool // whether a cluster is the candidate's
}

func newPooled(candidate, baseline [][]float64) pooled {
	type item struct {
		v float64
		c int
	}
	var p pooled
	var items []item
	for c, vs := range slices.Concat(candidate, baseline) {
		p.sizes, p.at = append(p.sizes, len(vs)), append(p.at, c < len(candidate))
		for _, v := range vs {
			items = append(items, item{v, c})
		}
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.v, b.v) })
	for i, x := range items {
		p.cluster = append(p.cluster, x.c)
		p.last = append(p.last, i+1 == len(items) || items[i+1].v != x.v)
	}
	return p
}

// distance is D when the candidate has the clusters that mine says.
func (p pooled) distance(mine []bool) float64 {
	nx := 0
	for c, size := range p.sizes {
		if mine[c] {
			nx += size
		}
	}
	step := make([]float64, len(mine))
	for c := range step {
		if step[c] = -1 / float64(len(p.cluster)-nx); mine[c] {
			step[c] = 1 / float64(nx)
		}
	}
	d, hi, lo := 0.0, 0.0, 0.0
	for i, c := range p.cluster {
		if d += step[c]; p.last[i] {
			if d > hi {
				hi = d
			} else if d < lo {
				lo = d
			}
		}
	}
	return math.Max(hi, -lo)
}

// dealt is the p-value of a distance when whole clusters are dealt at random.
func (p pooled) dealt(r *rand.Rand, d float64) float64 {
	const deals, enough = 999, 20
	mine, extreme := slices.Clone(p.at), 0
	for k := 1; k <= deals; k++ {
		r.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		if p.distance(mine) >= d-1e-12 {
			extreme++
		}
		if extreme == enough {
			return float64(enough) / float64(k)
		}
	}
	return float64(extreme+1) / (deals + 1)
}

// smirnov is the exact probability that D is at least d: the share of lattice
// paths from (0, 0) to (m, n) that come so far from the diagonal.
func smirnov(m, n int, d float64) float64 {
	limit := d*float64(m)*float64(n) - 0.5 // distances are whole numbers
	far := func(i, j int) bool { return math.Abs(float64(i)*float64(n)-float64(j)*float64(m)) > limit }
	row := make([]float64, n+1)
	for i := range m + 1 {
		for j := range n + 1 {
			switch {
			case far(i, j):
				row[j] = 1
			case i == 0 && j == 0:
				row[j] = 0
			default:
				w := float64(i) / float64(i+j)
				q := w * row[j]
				if j > 0 {
					q += (1 - w) * row[j-1]
				}
				row[j] = q
			}
		}
	}
	return math.Min(row[n], 1)
}

// kolmogorov is the limit of the probability that the scaled D is at least x.
func kolmogorov(x float64) float64 {
	if x < 0.2 {
		return 1
	}
	sum, sign := 0.0, 1.0
	for k := 1.0; k < 200; k++ {
		term := math.Exp(-2 * k * k * x * x)
		sum += sign * term
		if sign = -sign; term < 1e-18 {
			break
		}
	}
	return math.Min(math.Max(2*sum, 0), 1)
}
