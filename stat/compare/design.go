package compare

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Design plans a comparison that is looked at once. Its zero value plans for a
// one-sided error rate of 5 % and a power of 80 %.
//
// Each method gives the number that it takes: of pairs, or of the cases of both
// variants together when they are of equal size. Distances are from what is to
// be refuted, thus from the margin in a test of non-inferiority; their sign does
// not matter. The numbers are normal approximations; they are math.MaxInt for a
// distance of 0. [stat.LeastEffect] turns each into the least effect that a given
// number detects.
type Design struct {
	Alpha float64 // one-sided error rate; 0 means 0.05
	Power float64 // 0 means 0.8
	// Turns in a cluster and their Correlation within it enlarge the number of
	// cases by 1+(Turns-1)*Correlation (Kish's design effect). 0 means 1 turn.
	Turns, Correlation float64
}

// need is (z(alpha)+z(power))^2 times a variance over a squared distance.
func (d Design) need(variance, distance float64) int {
	if !(d.Alpha > 0 && d.Alpha < 1) {
		d.Alpha = 0.05
	}
	if !(d.Power > 0 && d.Power < 1) {
		d.Power = 0.8
	}
	z := normal(1-d.Alpha) + normal(d.Power)
	n := z * z * variance / (distance * distance) * (1 + math.Max(d.Turns-1, 0)*d.Correlation)
	if !(n < math.MaxInt64/4) {
		return math.MaxInt
	}
	return max(1, int(math.Ceil(n-1e-9)))
}

// Pairs is the number of pairs of right and wrong answers of which a share
// differs: for [Tango] and [McNemar].
func (d Design) Pairs(discordance, distance float64) int { return d.need(discordance, distance) }

// Differences is the number of paired scores whose differences have a standard
// deviation: for [Mean] and [Randomise].
func (d Design) Differences(deviation, distance float64) int {
	return d.need(deviation*deviation, distance)
}

// Proportions is the number of cases for shares of about p: for [Proportions].
func (d Design) Proportions(p, distance float64) int { return d.need(4*p*(1-p), distance) }

// Means is the number of cases for means of values with a standard deviation:
// for the difference of two [Mean].
func (d Design) Means(deviation, distance float64) int {
	return d.need(4*deviation*deviation, distance)
}

// Ranks is the number of cases for a probability of being greater that is a
// distance away from 1/2: for [MannWhitney] (Noether, JASA 82, 1987).
func (d Design) Ranks(distance float64) int { return d.need(1.0/3, distance) }

// Distributions is the number of cases for distribution functions that are a
// distance D apart at one point: for [KolmogorovSmirnov], two-sided at Alpha.
// It takes that point for the median, where it is hardest.
func (d Design) Distributions(distance float64) int {
	if !(d.Alpha > 0 && d.Alpha < 1) {
		d.Alpha = 0.05
	}
	if !(d.Power > 0 && d.Power < 1) {
		d.Power = 0.8
	}
	// Reject when sqrt(n)/2*D is above the critical value.
	critical := math.Sqrt(-math.Log(d.Alpha/2) / 2)
	z := critical + distuv.UnitNormal.Quantile(d.Power)/2
	n := 4 * z * z / (distance * distance) * (1 + math.Max(d.Turns-1, 0)*d.Correlation)
	if !(n < math.MaxInt64/4) {
		return math.MaxInt
	}
	return int(math.Ceil(n))
}

// Quantiles is the number of cases for p-quantiles of values whose logarithms
// are a distance apart (0.1 for about 10 %) when they are about normal with a
// standard deviation: for [stat.Ratio] of two [stat.Sample.Quantile].
func (d Design) Quantiles(p, deviation, distance float64) int {
	density := distuv.UnitNormal.Prob(normal(p)) / deviation
	return d.need(4*p*(1-p)/(density*density), distance)
}
