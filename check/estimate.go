package check

import (
	"fmt"
	"math"
	"slices"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// Estimate is a number of the whole check, such as a share corrected by labels or
// an effective length: of one variant, or its change against the baseline. The
// check finds the change itself, since it alone knows what is paired; without it,
// a clause that compares with the baseline is inconclusive.
//
//	p.Estimate(check.Estimate{Value: "accuracy", Variant: v, Of: stat.Student(mean, se, clusters-1, n)})
//	p.Estimate(check.Estimate{Value: "accuracy", Variant: v, Change: record.Difference, Of: stat.Draws(d, draws, n)})
type Estimate struct {
	Value   string        // as declared with Whole
	Variant int           // as in Pass.Variants
	Change  record.Change // against variant 0, the baseline; "": the variant's own number

	// Of gives the number, and its interval at a two-sided confidence: clauses share
	// the chance of an error, so that they may ask for any. It is called at once, for
	// each of [record.Confidences], with rising confidence; an interval that is
	// narrower than one before is widened to it. A number may have one bound only: a
	// length beyond the longest that was tried is that longest one, with Hi +Inf. A
	// value that is NaN is none, for the reason of its warning.
	Of func(confidence float64) stat.Estimate

	None string // instead of Of: why there is no number, which leaves clauses inconclusive

	// Missing counts cases that should be in the number and are not. Cases that the
	// variant did not answer count as missing in any case. More than 2 % of them leave
	// a clause inconclusive, unless Bounded says that the bounds hold whatever they
	// would have been.
	Missing int
	Bounded bool
}

// Estimate writes a number of the whole check. It panics if the check did not
// declare it, or writes it twice.
//
// Where the value is declared with bounds, or the change has some by them, the
// interval is cut there; of a number that lies outside, as one corrected by labels
// may, the interval is moved with it to the edge first, so that it never vanishes.
func (p *Pass) Estimate(e Estimate) {
	v := p.value(e.Value)
	switch {
	case !v.Whole:
		panic(fmt.Sprintf("check: %s is a number of each case, and of no whole", p.name(e.Value)))
	case e.Variant < 0 || e.Variant >= len(p.Variants):
		panic(fmt.Sprintf("check: %s is estimated of variant %d of %d", p.name(e.Value), e.Variant, len(p.Variants)))
	case e.Change != "" && (e.Variant == 0 || e.Change != record.Difference && e.Change != record.Ratio):
		panic(fmt.Sprintf("check: %s of variant %d is estimated as a %q against the baseline", p.name(e.Value), e.Variant, e.Change))
	}
	out := record.Estimate{Value: p.name(e.Value), Variant: p.Variants[e.Variant].Name, Change: e.Change, None: e.None, Missing: e.Missing, Bounded: e.Bounded}
	if e.Of != nil && e.None == "" {
		least, most := v.room(e.Change)
		fill(&out, e.Of, least, most)
	}
	if out.Number == nil && out.None == "" {
		out.None = "the check gives no number"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.wholes, func(o record.Estimate) bool {
		return o.Value == out.Value && o.Variant == out.Variant && o.Change == out.Change
	}) {
		panic(fmt.Sprintf("check: %s of %s is estimated twice", out.Value, out.Variant))
	}
	p.wholes = append(p.wholes, out)
}

// room is where a number can lie.
func (v Value) room(c record.Change) (least, most float64) {
	least, most, ok := v.Bounds()
	switch {
	case !ok:
		return math.Inf(-1), math.Inf(1)
	case c == record.Difference:
		return least - most, most - least
	case c == record.Ratio && least < 0:
		return math.Inf(-1), math.Inf(1)
	case c == record.Ratio:
		return 0, math.Inf(1)
	}
	return least, most
}

// fill asks for the number and its intervals.
func fill(out *record.Estimate, of func(float64) stat.Estimate, least, most float64) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, confidence := range record.Confidences() {
		e := of(confidence)
		if math.IsNaN(e.Value) || math.IsInf(e.Value, 0) {
			*out = record.Estimate{Value: out.Value, Variant: out.Variant, Change: out.Change, None: "the check gives no number", Missing: out.Missing, Bounded: out.Bounded}
			for _, w := range e.Warnings {
				out.None = w.Text
			}
			return
		}
		if !(e.Lo <= e.Hi) {
			e.Lo, e.Hi = math.Inf(-1), math.Inf(1)
		}
		e = e.Within(least, most)
		if out.Number == nil {
			out.Number, out.N, out.Effective, out.Method = &e.Value, e.N, e.Effective, e.Method
			if math.IsNaN(e.Effective) || math.IsInf(e.Effective, 0) {
				out.Effective = 0
			}
			for _, w := range e.Warnings {
				out.Notes = append(out.Notes, w.Text)
			}
		}
		lo, hi = min(lo, e.Lo, *out.Number), max(hi, e.Hi, *out.Number)
		if math.IsNaN(lo) || math.IsNaN(hi) {
			lo, hi = math.Inf(-1), math.Inf(1)
		}
		in := record.Interval{Confidence: confidence}
		if a := lo; !math.IsInf(lo, 0) {
			in.Lo = &a
		}
		if b := hi; !math.IsInf(hi, 0) {
			in.Hi = &b
		}
		out.Intervals = append(out.Intervals, in)
	}
}

// estimated lists the numbers of the whole check, in an order that does not depend
// on time.
func (p *Pass) estimated() []record.Estimate {
	p.mu.Lock()
	defer p.mu.Unlock()
	index := func(e record.Estimate) string {
		v := slices.IndexFunc(p.Variants, func(s *Subject) bool { return s.Name == e.Variant })
		return fmt.Sprintf("%s\x00%06d\x00%s", e.Value, v, e.Change)
	}
	slices.SortFunc(p.wholes, func(a, b record.Estimate) int {
		if x, y := index(a), index(b); x < y {
			return -1
		} else if x > y {
			return 1
		}
		return 0
	})
	return p.wholes
}

// counted is of how many observations the variants' own numbers are, and how many
// they lack.
func (p *Pass) counted(value string) (n, missing int) {
	for _, e := range p.estimated() {
		if e.Value == value && e.Change == "" {
			n, missing = n+e.N+e.Missing, missing+e.Missing
		}
	}
	return n, missing
}
