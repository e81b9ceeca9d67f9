package record

import (
	"math"
	"slices"
)

// Estimate is a number of a whole check, as the check left it: of one variant, or
// its change against the baseline as the check itself found it, which knows what
// is paired. Contracts judge it by estimate(CHECK.NAME).
//
// A clause may ask for any confidence, since clauses share the chance of an error.
// So an Estimate has intervals at many, and [Estimate.At] gives the least wide one
// that is wide enough.
type Estimate struct {
	Value   string   `json:"value"`             // CHECK.NAME
	Variant string   `json:"variant"`           // whose number it is
	Change  Change   `json:"change,omitempty"`  // against the baseline; "": the variant's own number
	Number  *float64 `json:"number"`            // in the value's unit, of a ratio without one; null: there is none
	None    string   `json:"none,omitempty"`    // why there is none
	Missing int      `json:"missing,omitempty"` // cases that should count in it and do not

	// Bounded says that the intervals hold whatever the cases without a value would
	// have said; else too many of them leave a clause inconclusive.
	Bounded   bool       `json:"bounded,omitempty"`
	Intervals []Interval `json:"intervals,omitempty"` // by rising confidence, each within the next
	N         int        `json:"n"`                   // observations
	Effective float64    `json:"effective_n"`         // how many independent ones they are worth
	Method    string     `json:"method,omitempty"`    // how the number and the bounds were found
	Notes     []string   `json:"notes,omitempty"`     // what a reader of it must know
}

// Change says what a number is against the baseline's.
type Change string

// The changes.
const (
	Difference Change = "difference" // minus the baseline's
	Ratio      Change = "ratio"      // over the baseline's
)

// Interval bounds a number at one two-sided confidence: each end by itself is wrong
// with half of what is left of 1.
type Interval struct {
	Confidence float64  `json:"confidence"`
	Lo         *float64 `json:"lo"` // null: no bound is known
	Hi         *float64 `json:"hi"` // null: no bound is known
}

// tails are the chances of an error of one end, at which intervals are kept: a
// clause's own, and what is left of one in twenty or in a hundred when two to ten
// share it.
var tails = []float64{.2, .15, .1, .075, .05, .04, .03, .025, .02, .015, .0125, .01, .0075, .005, .004, .0025, .002, .00125, .001, .0005, .00025, .0001, .00005, .00001}

// Confidences are the two-sided confidences at which the intervals of an Estimate
// are kept, in rising order.
func Confidences() []float64 {
	out := make([]float64, len(tails))
	for i, t := range tails {
		out[i] = math.Round((1-2*t)*1e12) / 1e12
	}
	return out
}

// At returns the interval of the least confidence that is kept and not below that
// asked for, and no narrower than those below it. ok is false if there is none.
func (e *Estimate) At(confidence float64) (in Interval, ok bool) {
	i := slices.IndexFunc(e.Intervals, func(in Interval) bool { return in.Confidence >= confidence-1e-9 })
	if i < 0 {
		return Interval{}, false
	}
	return e.Intervals[i], true
}

// Fault says why an estimate that was read back cannot be one; "" if it can.
func (e *Estimate) Fault() string {
	number := func(p *float64) bool { return p == nil || !math.IsNaN(*p) && !math.IsInf(*p, 0) }
	if e.Change != "" && e.Change != Difference && e.Change != Ratio {
		return "it is a change of a kind that nobody knows"
	}
	if !number(e.Number) {
		return "its number is none"
	}
	var last *Interval
	for i := range e.Intervals {
		in := &e.Intervals[i]
		switch {
		case !(in.Confidence > 0 && in.Confidence < 1) || !number(in.Lo) || !number(in.Hi):
			return "one of its intervals is none"
		case e.Number != nil && (in.Lo != nil && *in.Lo > *e.Number || in.Hi != nil && *in.Hi < *e.Number):
			return "it lies outside of its interval"
		case last != nil && (in.Confidence <= last.Confidence || in.Lo != nil && (last.Lo == nil || *last.Lo < *in.Lo) || in.Hi != nil && (last.Hi == nil || *last.Hi > *in.Hi)):
			return "its intervals do not grow with their confidence"
		}
		last = in
	}
	return ""
}
