package agree

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-llm/assay/stat"
)

const methodSlope = "least squares slope, cluster-robust t interval"

// Point is one case of a regression.
type Point struct{ X, Y float64 }

// Slope estimates by how much Y grows with X: the slope of least squares, with the
// cluster-robust variance (CR1) and Student's interval on the number of clusters.
// It says whether a judge's error depends on something that it should not, such
// as the length of an answer.
func Slope(clusters [][]Point, confidence float64) stat.Estimate {
	n, mx, my := 0.0, 0.0, 0.0
	for _, c := range clusters {
		for _, p := range c {
			n++
			mx += p.X
			my += p.Y
		}
	}
	g := float64(len(clusters))
	switch {
	case !valid(confidence):
		return unknown(int(n), confidence, methodSlope, stat.CodeUndefined, badConfidence)
	case len(clusters) < fewLabels:
		return unknown(int(n), confidence, methodSlope, stat.CodeFew, fmt.Sprintf("%d clusters are too few for a slope; it takes %d", len(clusters), fewLabels))
	}
	mx, my = mx/n, my/n
	xx, xy := 0.0, 0.0
	for _, c := range clusters {
		for _, p := range c {
			xx += (p.X - mx) * (p.X - mx)
			xy += (p.X - mx) * (p.Y - my)
		}
	}
	if !(xx > 1e-12) || math.IsNaN(xy) {
		return unknown(int(n), confidence, methodSlope, stat.CodeConstant, "X does not vary, or is not known, so nothing can be said to depend on it")
	}
	b, v := xy/xx, 0.0
	for _, c := range clusters {
		s := 0.0
		for _, p := range c {
			s += (p.X - mx) * (p.Y - my - b*(p.X-mx))
		}
		v += s * s
	}
	v *= g / (g - 1) * (n - 1) / (n - 2) / (xx * xx)
	e := stat.Estimate{Value: b, Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: int(n), Effective: g, Method: methodSlope}
	if !(v > 0) {
		warn(&e, stat.CodeConstant, "Y lies on a line, which is no evidence of precision; there is no interval")
		return e
	}
	w := math.Sqrt(v) * distuv.StudentsT{Sigma: 1, Nu: g - 1}.Quantile((1+confidence)/2)
	e.Lo, e.Hi = b-w, b+w
	return e
}
