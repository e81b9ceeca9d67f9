package stat

import (
	"fmt"
	"math"
)

// stretches is how many parts FindDrift cuts a series into. Fewer leave Student's
// distribution few degrees of freedom, more see less of each step; from 6 to 12
// the interval is about equally long.
const stretches = 9

// FindDrift estimates by how much a level, such as the number of requests in
// flight, grows per second. The series holds averages of the level over equal
// times in time order, which together last so many seconds. Lo above zero means
// that the level drifts up; an Hi below some growth means that it does not grow
// faster than that.
//
// It is Student's t interval on the eight differences between the means of nine
// consecutive stretches. In a queue beyond its capacity they are independent,
// but for the 1/4 of correlation that averaging gives neighbours (Working,
// Econometrica 28, 1960), for which the interval is widened by the square root
// of 3/2. In a stable queue a rise is followed by a fall, and the interval is
// too wide: it errs to the safe side. A trend in a series with independent errors
// is thus found later than by a regression, whose error rate would however be
// wrong for every queue near its capacity.
//
// The estimate has no value when there are fewer than 9 observations.
func FindDrift(inTimeOrder []float64, seconds, confidence float64) Estimate {
	const method = "mean difference of 9 stretches, Student's t, widened for averaging"
	n := len(inTimeOrder)
	if n < stretches || !(seconds > 0) || !(confidence > 0 && confidence < 1) {
		return undefined(n, 0, confidence, method, fmt.Sprintf("%d observations over %v s at a confidence of %v tell no drift", n, seconds, confidence))
	}
	var level [stretches]float64
	for i := range level {
		from, to := i*n/stretches, (i+1)*n/stretches
		level[i] = sum(inTimeOrder[from:to]) / float64(to-from)
	}
	const steps = stretches - 1
	length := seconds / stretches
	slope := (level[stretches-1] - level[0]) / (steps * length)
	squares := 0.0
	for i := range steps {
		d := (level[i+1]-level[i])/length - slope
		squares += d * d
	}
	if math.IsNaN(slope+squares) || math.IsInf(slope+squares, 0) {
		return undefined(n, 0, confidence, method, "a value is not a number")
	}
	half := studentT(steps-1, (1+confidence)/2) * math.Sqrt(1.5*squares/(steps-1)/steps)
	return Estimate{
		Value: slope, Lo: slope - half, Hi: slope + half, Confidence: confidence,
		N: n, Effective: steps, Method: method,
	}
}
