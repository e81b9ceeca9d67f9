package diverge

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Pair is one token of a text, scored by two models after the same tokens before
// it.
type Pair struct {
	Base, Other float64 // logarithms of the probabilities of the token that stands there
	// KL of the base's distribution from the other's at this place, or a bound below
	// it ([Within]); NaN: not known.
	KL      float64
	SameTop bool // one token is the likeliest by both
}

// Measure is a number with its standard error.
type Measure struct{ Value, SE float64 }

// TextDrift says how differently two models score one text, by the statistics and
// the formulas that llama.cpp's perplexity tool prints with --kl-divergence.
//
// Standard errors take tokens as independent, as that tool does. They are not:
// whoever decides takes the means of whole documents and compares these.
type TextDrift struct {
	N                        int
	BasePerplexity           Measure
	OtherPerplexity          Measure
	Correlation              float64 // of the tokens' logarithms
	LogRatio, Ratio          Measure // of the perplexities, other to base
	KL                       Measure // NaN if it is not known of every token
	ChangeOfProbability, RMS Measure // of the token that stands there, other − base, and its root mean square
	SameTop                  Measure // share

	kl, change []float64 // sorted
}

// OfText compares the scores of two tokens or more.
func OfText(pairs []Pair) (*TextDrift, error) {
	n := len(pairs)
	if n < 2 {
		return nil, errors.New("comparing scores of a text: give at least two tokens")
	}
	base, other, change, squares, kl, same := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i, p := range pairs {
		if !(p.Base <= 0 && p.Other <= 0) || math.IsInf(p.Base, 0) || math.IsInf(p.Other, 0) || p.KL < 0 {
			return nil, fmt.Errorf("comparing scores of a text: token %d has %v, %v and KL %v; log-probabilities are at most 0, KL at least", i, p.Base, p.Other, p.KL)
		}
		base[i], other[i], kl[i] = -p.Base, -p.Other, p.KL
		change[i] = math.Exp(p.Other) - math.Exp(p.Base)
		squares[i] = change[i] * change[i]
		if p.SameTop {
			same[i] = 1
		}
	}
	b, o, both := moments(base, base), moments(other, other), moments(base, other)
	d := &TextDrift{
		N: n, BasePerplexity: grown(Measure{b.mean, math.Sqrt(b.cov)}), OtherPerplexity: grown(Measure{o.mean, math.Sqrt(o.cov)}),
		Correlation: both.cov / math.Sqrt(b.cov*o.cov),
		LogRatio:    Measure{o.mean - b.mean, math.Sqrt(math.Max(o.cov+b.cov-2*both.cov, 0))},
		KL:          measure(kl), ChangeOfProbability: measure(change), SameTop: measure(same),
	}
	d.Ratio = grown(d.LogRatio)
	ms := measure(squares)
	d.RMS = Measure{Value: math.Sqrt(ms.Value)}
	if d.RMS.Value > 0 {
		d.RMS.SE = 0.5 / d.RMS.Value * ms.SE
	}
	slices.Sort(change)
	d.change = change
	if !math.IsNaN(d.KL.Value) {
		slices.Sort(kl)
		d.kl = kl
	}
	return d, nil
}

// KLQuantile interpolates between the tokens' KL; NaN if it is not known.
func (d *TextDrift) KLQuantile(p float64) float64 { return quantile(d.kl, p) }

// ChangeQuantile interpolates between the changes of the tokens' probabilities.
func (d *TextDrift) ChangeQuantile(p float64) float64 { return quantile(d.change, p) }

// quantile is Hyndman and Fan's type 7 of sorted values.
func quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 || !(p >= 0 && p <= 1) {
		return math.NaN()
	}
	at := p * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-2)
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// grown is the exponential of a number.
func grown(m Measure) Measure { return Measure{math.Exp(m.Value), math.Exp(m.Value) * m.SE} }

func measure(x []float64) Measure {
	m := moments(x, x)
	return Measure{m.mean, math.Sqrt(m.cov)}
}

// moments gives the mean of x, and the covariance of the means of x and y.
func moments(x, y []float64) (m struct{ mean, cov float64 }) {
	n, other := float64(len(x)), 0.0
	for i := range x {
		m.mean += x[i] / n
		other += y[i] / n
	}
	for i := range x {
		m.cov += (x[i] - m.mean) * (y[i] - other) / n / (n - 1)
	}
	return m
}
