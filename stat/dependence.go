package stat

import (
	"fmt"
	"math"
)

// dependence is how much the variance of a mean over a series exceeds that of independent observations.
type dependence struct {
	inflation float64 // at least 1
	judged    bool    // false: too few observations to tell
}

// minJudged is the number of observations below which dependence cannot be judged.
const minJudged = 40

// describe puts into words what the reader of e must know about the dependence.
func (d dependence) describe(e *Estimate) {
	if !d.judged {
		e.warn(CodeFewBatches, fmt.Sprintf("%d observations are too few to judge whether they depend on each other; they are taken as independent", e.N))
		return
	}
	if d.inflation >= 2 {
		e.warn(CodeDependent, fmt.Sprintf("neighbouring observations depend on each other: %d are worth about %.0f independent ones", e.N, math.Floor(e.Effective)))
	}
}

// dependence judges the indicator of not exceeding the p-quantile.
func (s *Sample) dependence(p float64) dependence {
	n := s.N()
	if n < minJudged {
		return dependence{inflation: 1}
	}
	q := type7(s.sorted, p)
	z := make([]float64, n)
	for i, x := range s.series {
		if x <= q {
			z[i] = 1
		}
	}
	return inflationOf(z)
}

// inflationOf estimates the variance inflation of the mean of z: Geyer's initial positive sequence.
func inflationOf(z []float64) dependence {
	n := len(z)
	if n < minJudged {
		return dependence{inflation: 1}
	}
	mean := sum(z) / float64(n)
	c0 := 0.0
	c := make([]float64, n)
	for i, x := range z {
		c[i] = x - mean
		c0 += c[i] * c[i]
	}
	if c0 == 0 {
		return dependence{inflation: 1, judged: true}
	}
	lag := func(k int) float64 {
		t := 0.0
		for i := k; i < n; i++ {
			t += c[i] * c[i-k]
		}
		return t / c0
	}
	total := 1.0
	for k := 1; k+1 < n/4; k += 2 {
		pair := lag(k) + lag(k+1)
		if pair <= 0 {
			break
		}
		total += 2 * pair
	}
	return dependence{inflation: math.Min(math.Max(1, total), float64(n)), judged: true}
}

// sum adds with Neumaier's compensation.
func sum(x []float64) float64 {
	s, c := 0.0, 0.0
	for _, v := range x {
		t := s + v
		if math.Abs(s) >= math.Abs(v) {
			c += (s - t) + v
		} else {
			c += (v - t) + s
		}
		s = t
	}
	return s + c
}
