package workload

import (
	"iter"
	"math"
	"time"
)

// maxShots is the largest plan.
const maxShots = 1_000_000_000

// segment is a stretch of a rate profile on which the rate is linear in time.
// Times are nanoseconds since the start, rates are requests per second.
type segment struct {
	start, length float64 // length +Inf: without end
	rate, slope   float64 // rate at start; slope in 1/s²
	before        float64 // integral of the rate up to start: requests expected before it
}

// inside returns the integral of the rate over the first t nanoseconds of the
// segment.
func (s segment) inside(t float64) float64 {
	if s.rate == 0 && s.slope == 0 {
		return 0 // also for a stretch without end
	}
	sec := t / 1e9
	return float64(s.rate*sec) + float64(float64(s.slope*sec)*sec)/2
}

// when inverts inside: the nanoseconds after the segment's start at which the
// integral is y, 0 ≤ y ≤ inside(length). Without a slope it is one division of
// an exact product, so it is as exact at request 10⁹ as at request 1.
func (s segment) when(y float64) float64 {
	if s.slope == 0 {
		return float64(y*1e9) / s.rate
	}
	// The root of slope/2·t² + rate·t = y that does not cancel.
	root := math.Sqrt(max(0, float64(s.rate*s.rate)+float64(float64(2*s.slope)*y)))
	if d := s.rate + root; d > 0 {
		return float64(2e9*y) / d
	}
	return 0
}

// profile is the rate of an open loop over time, and its integral Λ.
type profile struct {
	segments []segment
	total    float64 // Λ at the end; +Inf: without end
}

// newProfile lays out the rate of the arrivals from 0 to end, in nanoseconds;
// end may be +Inf unless there is a ramp.
func newProfile(r Rate, end float64) profile {
	var p profile
	add := func(length, rate, slope float64) {
		s := segment{length: length, rate: rate, slope: slope}
		if n := len(p.segments); n > 0 {
			last := p.segments[n-1]
			s.start, s.before = last.start+last.length, last.before+last.inside(last.length)
		}
		if s.length = min(length, end-s.start); s.length > 0 {
			p.segments = append(p.segments, s)
		}
	}
	switch {
	case r.Ramp != nil:
		from, to := float64(r.Ramp.From), float64(r.Ramp.To)
		add(end, from, float64(to-from)/(end/1e9))
	case r.Stairs != nil:
		for k := range r.Stairs.steps() {
			add(float64(r.Stairs.Every), r.Stairs.rate(k), 0)
		}
		add(math.Inf(1), float64(r.Stairs.To), 0)
	default:
		add(math.Inf(1), float64(r.Fixed), 0)
	}
	if n := len(p.segments); n > 0 {
		last := p.segments[n-1]
		p.total = last.before + last.inside(last.length)
	}
	return p
}

// cursor walks a profile forwards.
type cursor struct {
	p  *profile
	at int
}

// when returns the instant at which the integral is y, y < total, in whole
// nanoseconds. Calls must not go backwards in y.
func (c *cursor) when(y float64) time.Duration {
	for c.at+1 < len(c.p.segments) && y >= c.p.segments[c.at+1].before {
		c.at++
	}
	s := c.p.segments[c.at]
	return time.Duration(s.start) + time.Duration(min(s.when(y-s.before), s.length))
}

// arrivals are the due instants of an open loop. Arrival i of
//
//   - a constant process is due when the integral of the rate is i + ½: the
//     number of arrivals before any instant t is Λ(t) rounded to the nearest
//     whole number, so it is never off by more than half a request, a minute of
//     5/s has exactly 300, and rounding to nanoseconds never adds up;
//   - a Poisson process is due when the integral is the sum of unit exponentials
//     0 to i (time change of a Poisson process: Lewis and Shedler 1979), summed
//     in fixed point, so there is no drift either.
type arrivals struct {
	profile profile
	poisson bool
	gaps    Stream
	limit   int64 // of the number of arrivals
}

// all yields the arrivals in order.
func (a *arrivals) all() iter.Seq2[int64, time.Duration] {
	return func(yield func(int64, time.Duration) bool) {
		walk := cursor{p: &a.profile}
		sum := uint64(0)
		for i := int64(0); i < a.limit; i++ {
			y := float64(i) + 0.5
			if a.poisson {
				sum += a.gaps.exponential(i)
				y = float64(sum) / unit
			}
			if y >= a.profile.total || !yield(i, walk.when(y)) {
				return
			}
		}
	}
}

// count returns the number of arrivals, and the instant of the last one when
// the limit ended them. It takes about 0.1 µs an arrival when they are random.
func (a *arrivals) count() (n int64, last time.Duration, limited bool) {
	if !a.poisson {
		if exact := math.Ceil(a.profile.total - 0.5); exact <= float64(a.limit) {
			return max(0, int64(exact)), 0, false
		}
		walk := cursor{p: &a.profile}
		return a.limit, walk.when(float64(a.limit) - 0.5), true
	}
	sum := uint64(0)
	for n < a.limit {
		sum += a.gaps.exponential(n)
		if float64(sum)/unit >= a.profile.total {
			return n, 0, false
		}
		n++
	}
	walk := cursor{p: &a.profile}
	return n, walk.when(float64(sum) / unit), true
}
