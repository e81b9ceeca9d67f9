package compare

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-llm/assay/stat"
)

const methodRatio = "ratio of sums over clusters, linearised variance, t interval"

// Part is what one cluster adds to a ratio of sums: so many events among so many
// chances. Both may be 0.
type Part struct{ Events, Of float64 }

// Ratio estimates the sum of events over the sum of chances, such as unsupported
// claims over claims, where both vary from cluster to cluster. It is not the mean of
// the clusters' ratios, in which one with a single chance weighs as much as one with
// twenty. The variance is of the linearised ratio, G/(G−1) · Σ(uᵢ − r·mᵢ)² / (Σm)² for
// G clusters that have chances (Cochran 1977, 6.3), the interval Student's with G−1
// degrees of freedom; of the difference d of two ratios on the same clusters, given as
// baseline, their residuals are taken from each other. With fewer than 10 clusters
// that have chances, fewer than 5 that have events, or fewer than 5 that differ, there
// is no interval: the normal approximation that it rests on does not hold there, and
// no variance is no evidence of precision.
func Ratio(parts []Part, confidence float64) stat.Estimate {
	r, residual, g, few := linear(parts)
	if !valid(confidence) || g == 0 {
		return unknown(g, confidence, methodRatio, stat.CodeUndefined, "there are no chances to count events among")
	}
	return ratioBounds(r, residual, g, few, confidence)
}

// RatioDifference estimates by how much the candidate's ratio of sums differs from
// the baseline's on the same clusters, given in the same order. See Ratio.
func RatioDifference(candidate, baseline []Part, confidence float64) stat.Estimate {
	if len(candidate) != len(baseline) {
		return unknown(len(candidate), confidence, methodRatio, stat.CodeUndefined, "the clusters of the two are not the same")
	}
	x, ex, gx, fewX := linear(candidate)
	y, ey, gy, fewY := linear(baseline)
	if !valid(confidence) || gx == 0 || gy == 0 {
		return unknown(min(gx, gy), confidence, methodRatio, stat.CodeUndefined, "one of the two has no chances to count events among")
	}
	d, differ := make([]float64, len(ex)), 0
	for i := range d {
		if candidate[i] != baseline[i] {
			differ++
		}
		d[i] = ex[i] - ey[i]
	}
	return ratioBounds(x-y, d, min(gx, gy), fewX && fewY || differ < fewEvents, confidence)
}

// linear is the ratio, the linearised residual of each part, how many have chances,
// and whether so few have events, or lack them, that the residuals say little.
func linear(parts []Part) (r float64, residual []float64, g int, few bool) {
	var u, m float64
	with, without := 0, 0
	for _, p := range parts {
		if !(p.Of >= 0) || !(p.Events >= 0) || math.IsInf(p.Of, 0) || math.IsInf(p.Events, 0) {
			return math.NaN(), nil, 0, true
		}
		u, m = u+p.Events, m+p.Of
		if p.Of > 0 {
			g++
			if p.Events > 0 {
				with++
			}
			if p.Events < p.Of {
				without++
			}
		}
	}
	if m == 0 {
		return math.NaN(), nil, 0, true
	}
	r = u / m
	for _, p := range parts {
		residual = append(residual, (p.Events-r*p.Of)/m)
	}
	return r, residual, g, with < fewEvents || without < fewEvents
}

// fewEvents is how many clusters must have events, and how many lack some.
const fewEvents = 5

func ratioBounds(r float64, residual []float64, g int, few bool, confidence float64) stat.Estimate {
	e := stat.Estimate{Value: r, Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: g, Effective: float64(g), Method: methodRatio}
	if g < fewClusters || few {
		e.Warnings = append(e.Warnings, stat.Warning{Code: stat.CodeFew, Text: "too few clusters, or too few of them with events or without; there is no interval"})
		return e
	}
	squares := 0.0
	for _, d := range residual {
		squares += d * d
	}
	n := float64(g)
	half := math.Sqrt(n/(n-1)*squares) * distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile((1+confidence)/2)
	e.Lo, e.Hi = r-half, r+half
	return e
}
