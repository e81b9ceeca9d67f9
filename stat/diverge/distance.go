package diverge

import (
	"fmt"
	"math"
)

// A Distance says how far a distribution Q is from P, in several ways.
type Distance struct {
	// KL is that of P from Q, the mean of ln p/q under P; Reverse is that of Q from
	// P. +Inf where the other has a 0.
	KL, Reverse float64
	JS          float64 // Jensen–Shannon divergence, at most ln 2
	TV          float64 // total variation: the greatest change of any event's probability
	Hellinger2  float64 // the squared Hellinger distance, at most 1
	Cosine      float64 // of the angle between the vectors of probabilities
}

// Root is the Jensen–Shannon distance, a metric from 0 to 1.
func (d Distance) Root() float64 { return math.Sqrt(d.JS / math.Ln2) }

// Composite is 1 − cosine + KL of Q from P, as some publish it. It has no
// greatest value, and is far from 0 for samples of one distribution.
func (d Distance) Composite() float64 { return 1 - d.Cosine + d.Reverse }

// LogCosine is the cosine of the angle between the logarithms of the probabilities
// in two distributions over the same outcomes, all above 0, as published with
// thresholds of 0.87 and 0.82.
//
// It is here to be compared with. Nearly all logarithms are about −10, whatever
// the distribution: of two that have nothing in common, over 32,000 tokens, it is
// 0.96 and no threshold fires. The cosine of the probabilities is then 0.003.
func LogCosine(p, q []float64) float64 {
	pp, qq, pq := 0.0, 0.0, 0.0
	for i := range p {
		a, b := math.Log(p[i]), math.Log(q[i])
		pp, qq, pq = pp+a*a, qq+b*b, pq+a*b
	}
	return pq / math.Sqrt(pp*qq)
}

// Between compares two distributions over the same outcomes. Each sums to 1.
func Between(p, q []float64) (Distance, error) {
	if len(p) != len(q) || len(p) == 0 {
		return Distance{}, fmt.Errorf("comparing distributions: %d and %d probabilities; both need one for each outcome", len(p), len(q))
	}
	for name, x := range map[string][]float64{"first": p, "second": q} {
		sum := 0.0
		for i, v := range x {
			if !(v >= 0 && v <= 1+1e-9) {
				return Distance{}, fmt.Errorf("comparing distributions: the %s has the probability %v for outcome %d; give numbers from 0 to 1", name, v, i)
			}
			sum += v
		}
		if math.Abs(sum-1) > 1e-6 {
			return Distance{}, fmt.Errorf("comparing distributions: the %s sums to %v; add what is left as an outcome of its own", name, sum)
		}
	}
	return between(p, q), nil
}

func between(p, q []float64) (d Distance) {
	pp, qq, pq := 0.0, 0.0, 0.0
	for i := range p {
		d.KL += term(p[i], q[i])
		d.Reverse += term(q[i], p[i])
		d.JS += js(p[i], q[i])
		d.TV += math.Abs(p[i]-q[i]) / 2
		r := math.Sqrt(p[i]) - math.Sqrt(q[i])
		d.Hellinger2 += r * r / 2
		pp, qq, pq = pp+p[i]*p[i], qq+q[i]*q[i], pq+p[i]*q[i]
	}
	d.KL, d.Reverse, d.JS = math.Max(d.KL, 0), math.Max(d.Reverse, 0), math.Max(d.JS, 0)
	d.Cosine = pq / math.Sqrt(pp*qq)
	return d
}

// term is p ln p/q.
func term(p, q float64) float64 {
	switch {
	case p == 0:
		return 0
	case q == 0:
		return math.Inf(1)
	}
	return p * math.Log(p/q)
}

// js is what an outcome adds to the Jensen–Shannon divergence.
func js(p, q float64) float64 {
	m := (p + q) / 2
	if m == 0 {
		return 0
	}
	return (term(p, m) + term(q, m)) / 2
}

// Smooth makes a distribution of counts by adding half a count to each
// (Jeffreys), so that no probability is 0.
func Smooth(counts []int) []float64 {
	n := float64(len(counts)) / 2
	for _, c := range counts {
		n += float64(c)
	}
	out := make([]float64, len(counts))
	for i, c := range counts {
		out[i] = (float64(c) + 0.5) / n
	}
	return out
}
