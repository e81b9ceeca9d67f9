package compare

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-llm/assay/stat"
)

const (
	methodTango       = "difference of paired shares, Tango's score interval"
	methodTangoExact  = methodTango + ", widened to exact bounds for few pairs that differ"
	methodMcNemar     = "McNemar, exact"
	methodMcNemarMid  = "McNemar, mid-p"
	methodProportions = "difference of shares, Miettinen and Nurminen's score interval"

	// With fewer pairs that differ, Tango's interval alone is too short.
	exactBelow = 50
)

// Tango estimates the difference in the share of right answers on the same n
// cases, candidate minus baseline: better counts the pairs of which only the
// candidate is right, worse those of which only the baseline is. Pairs are
// independent: of a session with several, use [Mean] on the differences.
//
// The interval inverts the score test (Tango, Statist. Med. 17, 1998). When
// fewer than 50 pairs differ, its error rate can reach twice the nominal one;
// then the interval is widened to contain the one that MOVER makes of Clopper
// and Pearson's for both kinds of pairs.
func Tango(better, worse, n int, confidence float64) stat.Estimate {
	switch {
	case !valid(confidence):
		return unknown(n, confidence, methodTango, stat.CodeUndefined, badConfidence)
	case better < 0 || worse < 0 || better+worse > n || n < 1:
		return unknown(n, confidence, methodTango, stat.CodeUndefined, "the pairs that differ must be among the pairs, and there must be some")
	}
	z := normal((1 + confidence) / 2)
	b, c, m := float64(better), float64(worse), float64(n)
	e := stat.Estimate{Value: (b - c) / m, Confidence: confidence, N: n, Effective: m, Method: methodTango}
	score := func(d float64) float64 { return tango(b, c, m, d) }
	e.Lo = invert(-1, e.Value, z, score)
	e.Hi = invert(e.Value, 1, -z, score)
	if better+worse < exactBelow {
		exact := stat.Difference(stat.ExactShare(better, n, confidence), stat.ExactShare(worse, n, confidence))
		e.Lo, e.Hi = math.Min(e.Lo, exact.Lo), math.Max(e.Hi, exact.Hi)
		e.Method = methodTangoExact
	}
	e.Lo, e.Hi = math.Max(e.Lo, -1), math.Min(e.Hi, 1)
	return e
}

// tango is the score statistic of the hypothesis that the difference is d.
func tango(b, c, n, d float64) float64 {
	qa, qb, qc := 2*n, -b-c+(2*n-b+c)*d, -c*d*(1-d)
	q := (math.Sqrt(math.Max(qb*qb-4*qa*qc, 0)) - qb) / (2 * qa)
	v := n * (2*q + d*(1-d))
	if !(v > 0) {
		return math.Copysign(math.Inf(1), b-c-n*d)
	}
	return (b - c - n*d) / math.Sqrt(v)
}

// McNemar tests whether two variants are right equally often on the same cases.
// Of the pairs that differ, half should be better. The p-values are exact
// (binomial), or mid-p: not quite as safe, and less conservative.
func McNemar(better, worse int, mid bool) Test {
	method := methodMcNemar
	if mid {
		method = methodMcNemarMid
	}
	n := better + worse
	if better < 0 || worse < 0 {
		return noTest(n, method, stat.CodeUndefined, "counts are not negative")
	}
	t := Test{Statistic: float64(better - worse), P: 1, Greater: 1, Less: 1, N: n, Method: method}
	if n == 0 {
		t.Warnings = append(t.Warnings, stat.Warning{Code: stat.CodeConstant, Text: "no pair differs, which is no evidence that the variants are equal"})
		return t
	}
	t.Greater, t.Less = stat.ChanceAtMost(worse, n, 0.5), stat.ChanceAtMost(better, n, 0.5)
	half := 0.0
	if mid {
		half = distuv.Binomial{N: float64(n), P: 0.5}.Prob(float64(better)) / 2
		t.Greater, t.Less = t.Greater-half, t.Less-half
	}
	t.P = math.Min(1, 2*math.Min(t.Greater, t.Less))
	if better == worse {
		t.P = 1 - half // the two tails meet in the middle
	}
	return t
}

// Proportions estimates the difference of the shares of two independent groups,
// candidate minus baseline, each as events among n. One case is one session; of
// fractions of sessions use [Mean] and [stat.Difference]. The interval inverts
// the score test (Miettinen & Nurminen, Statist. Med. 4, 1985).
//
// Note: statsmodels' interval of the same name (0.13 to 0.15) differs, because
// it solves the cubic equation with a count in the place of a size.
func Proportions(events, n, baselineEvents, baselineN int, confidence float64) stat.Estimate {
	switch {
	case !valid(confidence):
		return unknown(n+baselineN, confidence, methodProportions, stat.CodeUndefined, badConfidence)
	case events < 0 || events > n || baselineEvents < 0 || baselineEvents > baselineN || n < 1 || baselineN < 1:
		return unknown(n+baselineN, confidence, methodProportions, stat.CodeUndefined, "events must be among the cases, and both groups must have some")
	}
	x1, n1, x2, n2 := float64(events), float64(n), float64(baselineEvents), float64(baselineN)
	z := normal((1 + confidence) / 2)
	e := stat.Estimate{Value: x1/n1 - x2/n2, Confidence: confidence, N: n + baselineN, Effective: n1 + n2, Method: methodProportions}
	score := func(d float64) float64 { return miettinenNurminen(x1, n1, x2, n2, d) }
	e.Lo = invert(-1, e.Value, z, score)
	e.Hi = invert(e.Value, 1, -z, score)
	return e
}

// miettinenNurminen is the score statistic of the hypothesis that the
// difference is d.
func miettinenNurminen(x1, n1, x2, n2, d float64) float64 {
	n, c := n1+n2, x1+x2
	// The share of the second group that is likeliest under the hypothesis is a
	// root of l3 p^3 + l2 p^2 + l1 p + l0.
	l3, l2, l1, l0 := n, (n1+2*n2)*d-n-c, (n2*d-n-2*x2)*d+c, x2*d*(1-d)
	t := l2 / (3 * l3)
	q := t*t*t - l1*l2/(6*l3*l3) + l0/(2*l3)
	p := math.Copysign(math.Sqrt(math.Max(t*t-l1/(3*l3), 0)), q)
	ratio := 0.0
	if p != 0 {
		ratio = math.Min(math.Max(q/(p*p*p), -1), 1)
	}
	p2 := 2*p*math.Cos((math.Pi+math.Acos(ratio))/3) - t
	p2 = math.Min(math.Max(p2, math.Max(0, -d)), math.Min(1, 1-d))
	p1 := p2 + d
	v := (p1*(1-p1)/n1 + p2*(1-p2)/n2) * n / (n - 1)
	diff := x1/n1 - x2/n2 - d
	if !(v > 0) {
		return math.Copysign(math.Inf(1), diff)
	}
	return diff / math.Sqrt(v)
}
