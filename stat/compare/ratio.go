package compare

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-llm/assay/stat"
)

const (
	methodRatio    = "ratio of sums over clusters, linearised variance, t interval"
	methodRatioFew = "ratio of sums over clusters, exact bounds on the share of clusters with events"
)

// Part is what one cluster adds to a ratio of sums: so many events among so many
// chances. Both may be 0.
type Part struct{ Events, Of float64 }

// Ratio estimates the sum of events over the sum of chances, such as unsupported
// claims over claims, where both vary from cluster to cluster. It is not the mean of
// the clusters' ratios, in which one with a single chance weighs as much as one with
// twenty. The variance is of the linearised ratio, G/(G−1) · Σ(uᵢ − r·mᵢ)² / (Σm)² for
// G clusters that have chances (Cochran 1977, 6.3), the interval Student's with G−1
// degrees of freedom; of the difference d of two ratios on the same clusters, given as
// baseline, their residuals are taken from each other.
//
// Where fewer than 5 clusters have events, or differ, the normal approximation does not
// hold, and no variance is no evidence of precision. There the bounds are those that
// the exact interval of the share of such clusters gives, each with as many events as
// the cluster with the most chances could have. With fewer than 10 clusters that have
// chances there is no interval.
func Ratio(parts []Part, confidence float64) stat.Estimate {
	l := linear(parts)
	if !valid(confidence) || l.g == 0 {
		return unknown(l.g, confidence, methodRatio, stat.CodeUndefined, "there are no chances to count events among")
	}
	e := stat.Estimate{Value: l.r, Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: l.g, Effective: float64(l.g), Method: methodRatio}
	if l.with >= fewEvents && l.without >= fewEvents {
		return ratioBounds(e, l.residual)
	}
	if l.g < fewClusters || l.without < fewEvents {
		return tooFew(e)
	}
	share := stat.ExactShare(l.with, l.g, confidence)
	mean := l.m / float64(l.g)
	e.Lo, e.Hi, e.Method = math.Min(l.r, share.Lo/mean), math.Min(1, math.Max(l.r, share.Hi*l.most/mean)), methodRatioFew
	return e
}

// RatioDifference estimates by how much the candidate's ratio of sums differs from
// the baseline's on the same clusters, given in the same order. See Ratio.
func RatioDifference(candidate, baseline []Part, confidence float64) stat.Estimate {
	if len(candidate) != len(baseline) {
		return unknown(len(candidate), confidence, methodRatio, stat.CodeUndefined, "the clusters of the two are not the same")
	}
	x, y := linear(candidate), linear(baseline)
	g := min(x.g, y.g)
	if !valid(confidence) || g == 0 {
		return unknown(g, confidence, methodRatio, stat.CodeUndefined, "one of the two has no chances to count events among")
	}
	d, more, fewer := make([]float64, len(candidate)), 0, 0
	for i := range d {
		switch u, v := candidate[i].Events, baseline[i].Events; {
		case u > v:
			more++
		case u < v:
			fewer++
		}
		d[i] = x.residual[i] - y.residual[i]
	}
	e := stat.Estimate{Value: x.r - y.r, Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: g, Effective: float64(g), Method: methodRatio}
	if more+fewer >= fewEvents && max(x.with, y.with) >= fewEvents && max(x.without, y.without) >= fewEvents {
		return ratioBounds(e, d)
	}
	if g < fewClusters || max(x.without, y.without) < fewEvents {
		return tooFew(e)
	}
	// Events that both have weigh differently where their chances differ.
	mean := math.Min(x.m, y.m) / float64(g)
	weigh := math.Min(x.r*x.m, y.r*y.m) * math.Abs(1/x.m-1/y.m)
	most := math.Max(x.most, y.most) / mean
	e.Hi = math.Min(1, math.Max(e.Value, stat.ExactShare(more, g, confidence).Hi*most+weigh))
	e.Lo = math.Max(-1, math.Min(e.Value, -stat.ExactShare(fewer, g, confidence).Hi*most-weigh))
	e.Method = methodRatioFew
	return e
}

// linearised is a ratio of sums.
type linearised struct {
	r, m          float64   // the ratio, and the sum of chances
	most          float64   // chances of the cluster with the most
	residual      []float64 // of each part
	g             int       // clusters with chances
	with, without int       // of them with events, and with chances that are none
}

// linear linearises a ratio; g is 0 if there is none.
func linear(parts []Part) (l linearised) {
	u := 0.0
	for _, p := range parts {
		if !(p.Of >= 0) || !(p.Events >= 0) || math.IsInf(p.Of, 0) || math.IsInf(p.Events, 0) {
			return linearised{}
		}
		u, l.m, l.most = u+p.Events, l.m+p.Of, math.Max(l.most, p.Of)
		if p.Of > 0 {
			l.g++
			if p.Events > 0 {
				l.with++
			}
			if p.Events < p.Of {
				l.without++
			}
		}
	}
	if l.g == 0 {
		return l
	}
	l.r = u / l.m
	for _, p := range parts {
		l.residual = append(l.residual, (p.Events-l.r*p.Of)/l.m)
	}
	return l
}

// fewEvents is how many clusters must have events, lack some, or differ.
const fewEvents = 5

func tooFew(e stat.Estimate) stat.Estimate {
	e.Warnings = append(e.Warnings, stat.Warning{Code: stat.CodeFew, Text: "too few clusters, or too few of them without events; there is no interval"})
	return e
}

// ratioBounds is the interval from residuals that sum to 0.
func ratioBounds(e stat.Estimate, residual []float64) stat.Estimate {
	if e.N < fewClusters {
		return tooFew(e)
	}
	squares := 0.0
	for _, d := range residual {
		squares += d * d
	}
	n := float64(e.N)
	half := math.Sqrt(n/(n-1)*squares) * distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile((1+e.Confidence)/2)
	e.Lo, e.Hi = e.Value-half, e.Value+half
	return e
}
