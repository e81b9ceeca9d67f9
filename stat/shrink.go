package stat

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Shrink estimates the chances of success of several groups, hits of so many trials
// each, and lets small groups borrow from all: each estimate is the mean of the beta
// posterior whose prior has the mean and the spread of the groups themselves
// (Kleinman, JASA 68, 1973, by moments). So a group of four with one hit is drawn to
// what the others show, and one of four hundred keeps its share. Where the groups
// differ no more than chance explains they are all drawn to their common share, by
// a prior worth no more than all trials; fewer than three groups give no prior, and
// Jeffreys' takes its place. The intervals have the posterior's tails and take the
// prior as known: they are for showing, not for deciding. Fewer than one trial is
// no estimate.
func Shrink(hits, of []int, confidence float64) []Estimate {
	out := make([]Estimate, len(hits))
	tail, ok := tails(confidence)
	alpha, beta := groupPrior(hits, of)
	for i := range hits {
		k, n := hits[i], 0
		if i < len(of) {
			n = of[i]
		}
		if !ok || n <= 0 || k < 0 || k > n {
			out[i] = undefined(n, 0, confidence, methodShrink, "there are no observations")
			continue
		}
		post := distuv.Beta{Alpha: alpha + float64(k), Beta: beta + float64(n-k)}
		out[i] = Estimate{
			Value: post.Mean(), Lo: post.Quantile(tail), Hi: post.Quantile(1 - tail), Confidence: confidence, N: n, Effective: float64(n),
			Method: fmt.Sprintf("%s, prior of %.3g trials", methodShrink, alpha+beta),
		}
		// A skewed posterior can have its mean outside of a narrow interval.
		out[i].Lo, out[i].Hi = math.Min(out[i].Lo, out[i].Value), math.Max(out[i].Hi, out[i].Value)
	}
	return out
}

const methodShrink = "share, shrunk by a beta prior"

// groupPrior is the beta distribution that the shares of groups scatter by.
func groupPrior(hits, of []int) (alpha, beta float64) {
	groups, k, n, squares := 0, 0.0, 0.0, 0.0
	for i := range min(len(hits), len(of)) {
		if of[i] <= 0 || hits[i] < 0 || hits[i] > of[i] {
			continue
		}
		groups++
		k += float64(hits[i])
		n += float64(of[i])
		squares += float64(of[i]) * float64(of[i])
	}
	if groups < 3 {
		return 0.5, 0.5
	}
	p := k / n
	if k == 0 || k == n {
		p = (k + 0.5) / (n + 1)
	}
	spread := 0.0
	for i := range min(len(hits), len(of)) {
		if of[i] > 0 && hits[i] >= 0 && hits[i] <= of[i] {
			d := float64(hits[i])/float64(of[i]) - p
			spread += float64(of[i]) * d * d
		}
	}
	worth := n
	// With a spread above what chance gives, rho is the correlation within groups.
	rho := (spread/(p*(1-p)) - float64(groups-1)) / (n - squares/n - float64(groups-1))
	if rho > 0 && !math.IsInf(rho, 0) {
		worth = math.Min(n, math.Max((1-math.Min(rho, 1))/rho, 1))
	}
	return p * worth, (1 - p) * worth
}
