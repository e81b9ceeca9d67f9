package workload

import (
	"iter"
	"math"
	"time"
)

// maxShots is the largest plan.
const maxShots = 1_000_000_000

// segment is a piece of a rate where it lies. Times are nanoseconds since the
// start, rates are requests per second.
type segment struct {
	piece
	start  float64
	before float64 // integral of the rate up to start: requests expected before it
}

// inside returns the integral of the rate over the first t nanoseconds of the
// segment, its pulse included.
func (s segment) inside(t float64) float64 {
	if s.rate == 0 && s.slope == 0 {
		return s.pulse // also for a stretch without end
	}
	sec := t / 1e9
	return s.pulse + (float64(s.rate*sec) + float64(float64(s.slope*sec)*sec)/2)
}

// when inverts inside: the nanoseconds after the segment's start at which the
// integral is y, 0 ≤ y ≤ inside(length). Without a slope it is one division of
// an exact product, so it is as exact at request 10⁹ as at request 1.
func (s segment) when(y float64) float64 {
	if y -= s.pulse; y <= 0 {
		return 0
	}
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

// profile is the rate of an open loop over time, and its integral Λ. Its segments
// are made while it is walked, so that a day of bursts needs no memory.
type profile struct {
	shape  shape
	states Stream  // of a shape that is random itself
	end    float64 // nanoseconds; +Inf: none
	total  float64 // Λ at the end; +Inf: without end
}

// newProfile lays out a rate from 0 to end, in nanoseconds; end may be +Inf
// unless there is a ramp. The states of an MMPP are drawn from states.
func newProfile(r Rate, end float64, states Stream) profile {
	p := profile{shape: r.shape(), states: states, end: end, total: math.Inf(1)}
	if math.IsInf(end, 1) && !math.IsInf(p.shape.pace(), 1) {
		return p // repeats for ever
	}
	p.total = p.sum()
	return p
}

// sum walks to the end and returns the integral there.
func (p *profile) sum() float64 {
	walk := p.walk()
	for walk.advance() {
	}
	return walk.next()
}

// walk returns a cursor at the start.
func (p *profile) walk() *cursor {
	c := &cursor{pieces: p.shape.walk(p.end, p.states), end: p.end}
	c.advance()
	return c
}

// cursor walks a profile forwards.
type cursor struct {
	pieces func() (piece, bool)
	end    float64
	at     segment
	ahead  bool    // whether after is set
	after  segment // the segment after at
	last   bool    // there is no segment after at
}

// next returns the integral at the end of the segment.
func (c *cursor) next() float64 { return c.at.before + c.at.inside(c.at.length) }

// look makes the segment after the current one, and reports whether there is one.
func (c *cursor) look() bool {
	for !c.ahead && !c.last {
		p, ok := c.pieces()
		s := segment{piece: p, start: c.at.start + c.at.length, before: c.next()}
		s.length = min(s.length, c.end-s.start)
		switch {
		case !ok || !(s.start < c.end):
			c.last = true
		case s.length > 0:
			c.after, c.ahead = s, true
		}
	}
	return c.ahead
}

// advance goes to the next segment, and reports whether there is one.
func (c *cursor) advance() bool {
	if !c.look() {
		return false
	}
	c.at, c.ahead = c.after, false
	return true
}

// when returns the instant at which the integral is y, y < total, in whole
// nanoseconds. Calls must not go backwards in y.
func (c *cursor) when(y float64) time.Duration {
	for c.look() && y >= c.after.before {
		c.advance()
	}
	return time.Duration(c.at.start) + time.Duration(min(c.at.when(y-c.at.before), c.at.length))
}

// arrivals are the due instants of an open loop. Arrival i of
//
//   - a constant process is due when the integral of the rate is i + ½: the
//     number of arrivals before any instant t is Λ(t) rounded to the nearest
//     whole number, so it is never off by more than half a request, a minute of
//     5/s has exactly 300, and rounding to nanoseconds never adds up;
//   - a Poisson process is due when the integral is the sum of unit exponentials
//     0 to i (time change of a Poisson process: Lewis and Shedler 1979), summed
//     in fixed point, so there is no drift either;
//   - a gamma or Weibull process likewise, with gaps of mean 1 of its own.
type arrivals struct {
	profile profile
	process process
	gaps    Stream
	limit   int64 // of the number of arrivals
}

// all yields the arrivals in order.
func (a *arrivals) all() iter.Seq2[int64, time.Duration] {
	return func(yield func(int64, time.Duration) bool) {
		walk := a.profile.walk()
		sum := uint64(0)
		for i := int64(0); i < a.limit; i++ {
			y := float64(i) + 0.5
			if a.random() {
				sum = a.add(sum, i)
				y = float64(sum) / unit
			}
			if y >= a.profile.total || !yield(i, walk.when(y)) {
				return
			}
		}
	}
}

// random reports whether gaps are drawn.
func (a *arrivals) random() bool { return a.process.kind != "constant" }

// add adds gap i to the sum of those before it. A sum that does not fit any more,
// beyond 2³¹ mean gaps, stays at the greatest.
func (a *arrivals) add(sum uint64, i int64) uint64 {
	gap := a.process.gap(a.gaps, i)
	if sum > math.MaxUint64-gap {
		return math.MaxUint64
	}
	return sum + gap
}

// count returns the number of arrivals, and the instant of the last one when
// the limit ended them. It takes 0.1 to 0.4 µs an arrival when they are random.
func (a *arrivals) count() (n int64, last time.Duration, limited bool) {
	if !a.random() {
		if exact := math.Ceil(a.profile.total - 0.5); exact <= float64(a.limit) {
			return max(0, int64(exact)), 0, false
		}
		return a.limit, a.profile.walk().when(float64(a.limit) - 0.5), true
	}
	sum := uint64(0)
	for n < a.limit {
		sum = a.add(sum, n)
		if float64(sum)/unit >= a.profile.total {
			return n, 0, false
		}
		n++
	}
	return n, a.profile.walk().when(float64(sum) / unit), true
}
