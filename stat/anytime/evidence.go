package anytime

import "math"

// Evidence is what the data say against each of the two hypotheses of a
// comparison, as the natural logarithm of an e-value. The zero Evidence says
// nothing on either side. It is a value: copy it freely.
type Evidence struct {
	// Fail is the evidence that the candidate is worse than the margin allows:
	// the logarithm of an e-value of the hypothesis "it is within the margin".
	Fail float64
	// Pass is the evidence that the candidate is within the margin: the
	// logarithm of an e-value of the hypothesis "it is not".
	Pass float64
}

// Fails reports whether the candidate is proved worse than the margin, at an
// error rate of alpha over all looks together: Fail >= ln(1/alpha). With K
// guards of which any may stop a release, give each alpha/K. It is false for an
// alpha outside (0, 1).
func (e Evidence) Fails(alpha float64) bool { return proves(e.Fail, alpha) }

// Passes reports whether the candidate is proved to lie within the margin, at
// an error rate of alpha over all looks together. If all of K guards must pass,
// each may use the whole alpha.
func (e Evidence) Passes(alpha float64) bool { return proves(e.Pass, alpha) }

func proves(log, alpha float64) bool {
	return alpha > 0 && alpha < 1 && log >= -math.Log(alpha)
}

// Times combines evidence from periods that follow each other: e-values
// multiply. Each step of a ramp has a test of its own, from nothing, and its
// last Evidence multiplies those of the steps before. The data of two steps
// must never be pooled: where the weights and the load change together, pooled
// samples of two equal variants differ for sure.
func (e Evidence) Times(next Evidence) Evidence {
	return Evidence{Fail: times(e.Fail, next.Fail), Pass: times(e.Pass, next.Pass)}
}

// times multiplies two e-values by their logarithms. An e-value of 0 is a
// hypothesis that cannot be refuted any more.
func times(a, b float64) float64 {
	if math.IsInf(a, -1) || math.IsInf(b, -1) {
		return math.Inf(-1)
	}
	return a + b
}
