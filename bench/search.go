package bench

import (
	"fmt"
	"math"
	"time"

	"github.com/assay-llm/assay/report"
)

// Search says how to look for the capacity of a service. The zero value works.
type Search struct {
	Start      float64       // first rate, requests a second; 0: 1/s
	For        time.Duration // shortest probe; 0: 30 s. Those near the edge are up to four times as long
	MaxTime    time.Duration // no probe begins that could not end by then; 0: 30 min
	Probes     int           // most probes; 0: 16. The chance of error is shared among so many
	Confidence float64       // of the bracket as a whole; 0: 95 %
	MaxRate    float64       // highest rate to try, requests a second; 0: 100,000
	Resolution float64       // ratio of neighbouring rates at which the search is over; 0: 1.05

	Rates []float64 // a sweep over these rates instead
	Users []int     // a sweep over closed loops of so many users instead
}

func (q *Search) defaults() {
	if q.Start == 0 {
		q.Start = 1
	}
	if q.For == 0 {
		q.For = 30 * time.Second
	}
	if q.MaxTime == 0 {
		q.MaxTime = 30 * time.Minute
	}
	if q.Probes == 0 {
		q.Probes = 16
	}
	if q.Confidence == 0 {
		q.Confidence = 0.95
	}
	if q.MaxRate == 0 {
		q.MaxRate = 1e5
	}
	if q.Resolution == 0 {
		q.Resolution = 1.05
	}
}

// sweep reports whether the points are given.
func (q *Search) sweep() bool { return len(q.Rates)+len(q.Users) > 0 }

const (
	growth   = 2.0 // ratio of rates while nothing is known above, or below
	steps    = 10  // growths downwards before no rate at all is thought to hold
	lengthen = 2   // of a probe near the edge, and again of one that decided nothing
)

// point is where to probe next, and for how long.
type point struct {
	rate  float64
	users int
	hold  time.Duration
}

// next says where to probe after those that are done. Without a point it says
// why the search is over.
//
// Rates double until one does not hold and halve until one does; then the
// geometric middle is probed of the widest gap that is left between a rate that
// was proven to hold and the next one that was not, or between one proven not to
// hold and the next lower one. What a probe that decided nothing seems to say
// steers the search, and never moves an end of the bracket. Such a probe is made
// once more, twice as long. A rate at which the client was unfit is tried twice,
// and then bounds the search from above.
func (q *Search) next(done []report.Probe) (p point, over string) {
	if q.sweep() {
		return q.nextOfSweep(len(done))
	}
	if len(done) >= q.Probes {
		return p, fmt.Sprintf("all %d probes are made", q.Probes)
	}
	if len(done) == 0 {
		return point{rate: q.Start, hold: q.For}, ""
	}
	last := done[len(done)-1]
	v := survey(done)
	switch {
	case unable(done):
		return p, "the client was unfit in all four probes: use an idle machine or more cores, or keep the engine off this machine"
	case blind(done):
		return p, "two probes in a row gave no figure to judge by: " + last.Reason
	case again(done) && (last.Outcome == report.Unfit || v.up > 0 && v.hi < math.Inf(1)):
		return point{rate: last.Rate, hold: min(last.For*lengthen, q.For*4)}, ""
	case math.IsInf(v.hi, 1) && !v.unfit && v.highest >= q.MaxRate:
		if v.lo >= q.MaxRate {
			return p, fmt.Sprintf("%.4g/s is the highest rate allowed", q.MaxRate)
		}
	case math.IsInf(v.hi, 1) && !v.unfit:
		return point{rate: min(v.highest*growth, q.MaxRate), hold: q.For}, ""
	}
	from, to := v.lo, v.aboveLo
	if v.lo == 0 { // nothing is proven: look longer at what seems to hold, from above, then lower
		for r := v.up; r > 0; r = below(done, r) {
			if times(done, r) == 1 {
				return point{rate: r, hold: 4 * q.For}, ""
			}
		}
		if v.lowest <= q.Start/math.Pow(growth, steps) {
			return p, fmt.Sprintf("rates down to %.3g/s were tried", v.lowest)
		}
		return point{rate: v.lowest / growth, hold: q.For * lengthen}, ""
	}
	if v.hi < math.Inf(1) && v.hi/v.belowHi > to/from {
		from, to = v.belowHi, v.hi
	}
	if to/from <= q.Resolution*(1+1e-9) {
		return p, fmt.Sprintf("neighbouring rates differ by less than %.3g %%", 100*(q.Resolution-1))
	}
	return point{rate: math.Sqrt(from * to), hold: q.For * lengthen}, ""
}

func (q *Search) nextOfSweep(done int) (point, string) {
	switch {
	case done < len(q.Rates):
		return point{rate: q.Rates[done], hold: q.For}, ""
	case done < len(q.Rates)+len(q.Users):
		return point{users: q.Users[done-len(q.Rates)], hold: q.For}, ""
	}
	return point{}, "all points are measured"
}

// times counts the probes at a rate.
func times(done []report.Probe, rate float64) (n int) {
	for _, p := range done {
		if p.Rate == rate {
			n++
		}
	}
	return n
}

// below returns the next lower rate that was probed; 0: there is none.
func below(done []report.Probe, rate float64) (r float64) {
	for _, p := range done {
		if p.Rate < rate {
			r = max(r, p.Rate)
		}
	}
	return r
}

// again reports whether the last probe decided nothing and was the first at its
// rate.
func again(done []report.Probe) bool {
	last := done[len(done)-1]
	return (last.Outcome == report.Undecided || last.Outcome == report.Unfit) && times(done, last.Rate) == 1
}

// unable reports whether the client was unfit in four probes and never fit.
func unable(done []report.Probe) bool {
	for _, p := range done {
		if p.Outcome != report.Unfit {
			return false
		}
	}
	return len(done) >= 4
}

// blind reports whether the last two probes gave no figure at all.
func blind(done []report.Probe) bool {
	n := 0
	for _, p := range done[max(0, len(done)-2):] {
		if p.Outcome == report.Undecided && p.Leaning == "inconclusive" {
			n++
		}
	}
	return n == 2
}

// surveyed is what the probes say together about the rates.
type surveyed struct {
	lo, hi           float64 // highest that holds, below every one that fails; lowest that fails. 0 and +Inf: none
	aboveLo, belowHi float64 // the next rates that seem to be on the other side, or that two probes left undecided
	up, down         float64 // as it seems: highest that holds, lowest that does not. 0 and +Inf: none
	lowest, highest  float64 // of all
	unfit            bool    // the client was unfit at a rate above lo
}

func survey(done []report.Probe) surveyed {
	inf := math.Inf(1)
	v := surveyed{hi: inf, down: inf, aboveLo: inf, lowest: inf}
	for _, p := range done {
		v.lowest, v.highest = min(v.lowest, p.Rate), max(v.highest, p.Rate)
		if p.Outcome == report.Fails {
			v.hi = min(v.hi, p.Rate)
		}
	}
	for _, p := range done {
		if p.Outcome == report.Holds && p.Rate < v.hi {
			v.lo = max(v.lo, p.Rate)
		}
	}
	for _, p := range done {
		// What was tried once and decided nothing is no obstacle: it may be tried again.
		tried := times(done, p.Rate) > 1
		seems := p.Outcome == report.Holds || p.Leaning == "pass" && p.Outcome == report.Undecided
		if p.Rate > v.lo {
			v.unfit = v.unfit || p.Outcome == report.Unfit
			if !seems {
				v.down = min(v.down, p.Rate)
			}
			if !seems || tried {
				v.aboveLo = min(v.aboveLo, p.Rate)
			}
		}
		if p.Rate < v.hi && (seems || tried) {
			v.belowHi = max(v.belowHi, p.Rate)
		}
	}
	for _, p := range done {
		if p.Rate < v.down && (p.Outcome == report.Holds || p.Leaning == "pass") {
			v.up = max(v.up, p.Rate)
		}
	}
	return v
}

// bracket returns the ends that the probes prove, nil for one that is not known,
// and whether they contradict each other: a rate holds above one that fails.
func bracket(done []report.Probe) (lo, hi *float64, contradicted bool) {
	v := survey(done)
	if v.hi < math.Inf(1) {
		hi = &v.hi
	}
	for _, p := range done {
		if p.Outcome != report.Holds || p.Proven == nil {
			continue
		}
		if p.Rate > v.hi {
			contradicted = true
		} else if lo == nil || *p.Proven > *lo {
			lo = p.Proven
		}
	}
	return lo, hi, contradicted
}
