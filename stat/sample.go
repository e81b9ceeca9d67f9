package stat

import (
	"fmt"
	"math"
	"sync"
)

// Sample is a series of observations in time order, some of which may be known
// only to exceed everything. It is immutable after NewSample and safe for
// concurrent use. The zero Sample is empty and usable.
type Sample struct {
	series []float64 // in time order, those beyond any value as +Inf
	sorted []float64 // the same, ascending
	place  []int32   // where each of sorted stands in series; nil: there are too many
	over   int

	once      sync.Once // guards the two below
	inflation float64   // of the variance of the ranks' mean
	span      int       // lags over which the ranks depend on each other
}

// NewSample takes observations in time order and the number of further ones
// that lie beyond any value (a request that failed has no latency, and waiting
// longer would not have given it one). The latter are spread evenly over the
// series, because their places in time are not known. The Sample keeps the slice,
// which the caller must not change any more: a pool of token gaps is large.
//
// Where the place in time of an observation beyond any value is known, put +Inf
// at that place and leave it out of over: then the interval knows whether
// failures came in a row. NaN and -Inf are refused: leave out what was not
// measured.
func NewSample(inTimeOrder []float64, over int) (*Sample, error) {
	if over < 0 {
		return nil, fmt.Errorf("making a sample: %d observations beyond any value; the number cannot be negative", over)
	}
	placed := 0
	for i, x := range inTimeOrder {
		if math.IsNaN(x) || math.IsInf(x, -1) {
			return nil, fmt.Errorf("making a sample: observation %d is %v; leave out what was not measured", i, x)
		}
		if math.IsInf(x, 1) {
			placed++
		}
	}
	s := &Sample{series: inTimeOrder, over: over + placed}
	if over > 0 {
		s.series = spread(inTimeOrder, over)
	}
	s.sorted, s.place = ordered(s.series)
	return s, nil
}

// spread puts over copies of +Inf at even distances between the values.
func spread(values []float64, over int) []float64 {
	n := len(values) + over
	out := make([]float64, 0, n)
	placed := 0
	for i := range n {
		// After i+1 places, round((i+1)*over/n) of them are over: even
		// distances, and exactly over in all.
		if want := int((2*int64(i+1)*int64(over) + int64(n)) / (2 * int64(n))); placed < want {
			out = append(out, math.Inf(1))
			placed++
			continue
		}
		out = append(out, values[i-placed])
	}
	return out
}

// N is the number of observations, those beyond any value included.
func (s *Sample) N() int { return len(s.series) }

// Over is the number of observations beyond any value.
func (s *Sample) Over() int { return s.over }

// finite gives the values in ascending order without those beyond any value.
func (s *Sample) finite() []float64 { return s.sorted[:len(s.sorted)-s.over] }

// Min is the least value, NaN when there is none.
func (s *Sample) Min() float64 {
	if f := s.finite(); len(f) > 0 {
		return f[0]
	}
	return math.NaN()
}

// Max is the greatest value that was measured, NaN when there is none.
// Observations beyond any value do not count: ask Quantile(1, ...) to have them
// in.
func (s *Sample) Max() float64 {
	if f := s.finite(); len(f) > 0 {
		return f[len(f)-1]
	}
	return math.NaN()
}
