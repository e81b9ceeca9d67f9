package stat

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// dependence is how much less a series tells than as many independent
// observations would.
type dependence struct {
	inflation float64 // variance of the mean over that of independent observations, at least 1
	freedom   float64 // degrees of freedom of that judgement; +Inf where no dependence was found
	judged    bool    // false: too few observations to tell
}

const (
	minJudged   = 20 // below so many observations dependence cannot be judged
	minFreedom  = 2  // with fewer degrees of freedom a quantile has no bounds
	batches     = 20 // of the batch means
	noise       = 2  // a pair of autocorrelations below noise/sqrt(n) is none
	maxLag      = 64 // beyond this lag the series is halved in resolution
	spanWeight  = 4  // the variance has n/(spanWeight*span+1) degrees of freedom
	innerCount  = 50 // observations beyond the level at which dependence is judged, at least ...
	innerWeight = 25 // ... and so many for each unit of the whole series' inflation
)

// independent is the judgement where there is nothing to see.
func independent(n int) dependence {
	return dependence{inflation: 1, freedom: math.Inf(1), judged: n >= minJudged}
}

// newDependence combines the inflation with the span of lags that it was read
// from.
func newDependence(n int, inflation float64, span int) dependence {
	d := independent(n)
	d.inflation = math.Min(math.Max(1, inflation), float64(n))
	if span > 0 {
		d.freedom = math.Max(1, float64(n)/float64(spanWeight*span+1))
	}
	return d
}

// tooShort reports whether the series is too short against its own memory for
// tail bounds.
func (d dependence) tooShort() bool { return d.judged && d.freedom < minFreedom }

// widened is the inflation enlarged for having been estimated: by the squared
// ratio of Student's to the normal quantile, as if a variance with that many
// degrees of freedom stood in a t interval.
func (d dependence) widened(tail float64) float64 {
	if math.IsInf(d.freedom, 1) {
		return d.inflation
	}
	f := studentT(d.freedom, 1-tail) / distuv.UnitNormal.Quantile(1-tail)
	return d.inflation * f * f
}

// describe puts into words what the reader of e must know about the dependence.
func (d dependence) describe(e *Estimate) {
	switch {
	case !d.judged:
		e.warn(CodeFewBatches, fmt.Sprintf("%d observations are too few to judge whether they depend on each other; they are taken as independent", e.N))
	case d.tooShort():
		e.warn(CodeFewBatches, fmt.Sprintf("the %d observations drift or swing too slowly to judge how much they depend on each other; observe longer", e.N))
	case d.inflation >= 2:
		e.warn(CodeDependent, fmt.Sprintf("neighbouring observations depend on each other: %d are worth about %.0f independent ones", e.N, math.Max(1, math.Floor(e.Effective))))
	}
}

// inflationOf judges the mean of a series.
func inflationOf(z []float64) dependence {
	n := len(z)
	if n < minJudged {
		return independent(n)
	}
	c := centre(slices.Clone(z))
	means := batchMeans(c)
	d, span := memory(c)
	if span > 0 {
		d = math.Max(d, means)
	}
	return newDependence(n, d, span)
}

// memory sums the autocorrelations of a centred series, which it uses up, into the variance inflation of its
// mean, and gives the lag up to which they count. It is Geyer's initial
// monotone sequence (Statist. Sci. 7, 1992) with two changes: a pair of
// autocorrelations within the noise, or as large as one coincidence of two rare
// events makes it, ends the sum, so that independent data mostly get exactly 1;
// and each autocorrelation is raised by the bias that subtracting the sample
// mean puts into it. A long memory is read at a coarser resolution, which
// bounds the work to 2*maxLag*n.
func memory(c []float64) (inflation float64, span int) {
	variance := dot(c, c, 0) / float64(len(c))
	if !(variance > 0) {
		return 1, 0
	}
	for block := 1; ; block *= 2 {
		// The sums over blocks carry block times their variance inflation.
		here := dot(c, c, 0) / float64(len(c)) / float64(block) / variance
		d, lag, ended := positiveSequence(c)
		if ended || len(c) < 4*maxLag {
			if block > 1 {
				lag++ // correlation inside a block spans a block
			}
			return math.Max(1, here*d), lag * block
		}
		for i := range len(c) / 2 { // in place: a pool of token gaps is large
			c[i] = c[2*i] + c[2*i+1]
		}
		c = c[:len(c)/2]
	}
}

// positiveSequence sums pairs of autocorrelations of a centred series. ended is
// false when maxLag came first.
func positiveSequence(c []float64) (inflation float64, span int, ended bool) {
	n := float64(len(c))
	c0 := dot(c, c, 0)
	if !(c0 > 0) {
		return 1, 0, true
	}
	// The share that one coincidence of two extreme values has: 1/k for k rare
	// events.
	fourth := 0.0
	for _, x := range c {
		fourth += x * x * x * x
	}
	least := noise/math.Sqrt(n) + fourth/c0/c0
	inflation = 1
	previous := math.Inf(1)
	for k := 1; k+1 < len(c)/2; k += 2 {
		if k > maxLag {
			return inflation, span, false
		}
		pair := dot(c, c, k)/c0*n/(n-float64(k)) + dot(c, c, k+1)/c0*n/(n-float64(k+1)) + 2*inflation/n
		pair = math.Min(pair, previous)
		if pair <= least {
			return inflation, span, true
		}
		inflation += 2 * pair
		previous, span = pair, k+1
	}
	return inflation, span, true
}

// batchMeans is the variance inflation of a centred series as the variance between the means of
// consecutive batches shows it. It is noisy, but sees what lies beyond the lags
// that memory read.
func batchMeans(c []float64) float64 {
	size := len(c) / batches
	variance := dot(c, c, 0) / float64(len(c))
	if size == 0 || !(variance > 0) {
		return 1
	}
	between := 0.0
	for b := range batches {
		m := sum(c[b*size:(b+1)*size]) / float64(size)
		between += m * m
	}
	return between / (batches - 1) * float64(size) / variance
}

// centre takes the mean off a series, in place.
func centre(z []float64) []float64 {
	mean := sum(z) / float64(len(z))
	for i := range z {
		z[i] -= mean
	}
	return z
}

// dot is the sum of a[i]*b[i+lag].
func dot(a, b []float64, lag int) float64 {
	b = b[lag:]
	a = a[:len(b)]
	// Four sums keep the adder busy and lose less to rounding than one.
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// studentT is the p-quantile of Student's distribution.
func studentT(freedom, p float64) float64 {
	if freedom > 1e7 {
		return distuv.UnitNormal.Quantile(p)
	}
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(p)
}

// dependence judges the indicator of not exceeding the p-quantile. Few
// observations lie beyond an extreme quantile, and those that do are the very
// ones that would show whether they come in clusters; so the judgement is the
// worst of the one at p and the one at a level that enough observations exceed,
// as many more as the whole series has memory.
func (s *Sample) dependence(p float64) dependence {
	n := s.N()
	if n < minJudged {
		return independent(n)
	}
	scratch := make([]float64, n)
	whole, wholeSpan := s.memory(scratch)
	at := func(p float64) (d float64, span int) {
		c := centre(s.indicator(p, scratch))
		means := batchMeans(c)
		d, span = memory(c)
		if wholeSpan > 0 {
			d = math.Max(d, means)
		}
		return d, span
	}
	d, span := at(p)
	share := math.Min(0.5, math.Max(innerCount, innerWeight*whole)/float64(n))
	if inner := math.Min(math.Max(p, share), 1-share); inner != p {
		d2, span2 := at(inner)
		d, span = math.Max(d, d2), max(span, span2)
	}
	return newDependence(n, d, max(span, wholeSpan))
}

// indicator is 1 where the series does not exceed its p-quantile, else 0; it fills z.
func (s *Sample) indicator(p float64, z []float64) []float64 {
	q := type7(s.sorted, p)
	for i, x := range s.series {
		z[i] = 0
		if x <= q {
			z[i] = 1
		}
	}
	return z
}

// memory judges the whole series through its ranks, once. It uses scratch, which has
// the length of the series.
func (s *Sample) memory(scratch []float64) (inflation float64, span int) {
	s.once.Do(func() {
		s.inflation, s.span = memory(centre(s.ranks(scratch)))
	})
	return s.inflation, s.span
}

// ranks gives each observation its rank from 0; equal values share the middle of
// their ranks. It fills ranks.
func (s *Sample) ranks(ranks []float64) []float64 {
	if s.place == nil {
		for i, x := range s.series {
			from, _ := slices.BinarySearch(s.sorted, x)
			to := from + sort.Search(len(s.sorted)-from, func(k int) bool { return s.sorted[from+k] > x })
			ranks[i] = float64(from+to) / 2
		}
		return ranks
	}
	for from := 0; from < len(s.sorted); {
		to := from + 1
		for to < len(s.sorted) && s.sorted[to] == s.sorted[from] {
			to++
		}
		for _, i := range s.place[from:to] {
			ranks[i] = float64(from+to) / 2
		}
		from = to
	}
	return ranks
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
