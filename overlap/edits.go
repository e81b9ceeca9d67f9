package overlap

import (
	"math"
	"slices"
)

// The limits of Tercom and, the last, of sacrebleu.
const (
	longestShift  = 10   // words moved at once
	farthestShift = 50   // places between a match and its partner
	beam          = 25   // cells on either side of the diagonal
	mostShifts    = 1000 // candidates looked at for a pair of texts
)

// edits counts the edits of TER as sacrebleu's lib_ter does: greedily it makes
// the shift that lowers the edit distance most, until none does. Where sacrebleu
// caches rows of the matrix in a tree of words, a shifted text here shares the
// rows of the text it was made of up to the first word that moved: that gives
// the same numbers, since all have the same length.
//
// The matrix is a band around a pseudo-diagonal; it takes
// 50 cells for each word of the hypothesis and one for each of the reference.
// Thus the time is at most about 1,000 times that.
type edits struct {
	ref, hyp, try []uint32
	ratio         float64
	beam          int
	rows          []row
	cells         []cell
	// Two rows for the distance of a candidate.
	before, after []int32

	align            []int32
	hypErrs, refErrs []int32 // running sums
	checked          int
}

// row is a part of a row of the matrix: cells[at] is column lo, hi is the
// column after the last.
type row struct{ lo, hi, at int }

type cell struct {
	cost int32
	op   byte
}

const (
	unreached = math.MaxInt32 / 2

	opNone = iota
	opKeep
	opReplace
	opDelete // a word of the hypothesis
	opInsert
)

// count is the number of edits that make the hypothesis the reference.
func (e *edits) count(hyp, ref []uint32) int {
	if len(ref) == 0 {
		return len(hyp)
	}
	e.prepare(hyp, ref)
	distance, shifts := e.fill(0), 0
	for {
		gain, same := e.best(distance)
		if e.checked >= mostShifts || gain <= 0 {
			return shifts + distance
		}
		shifts++
		distance = e.fill(same)
	}
}

// prepare lays out the band.
func (e *edits) prepare(hyp, ref []uint32) {
	e.hyp, e.ref, e.checked = append(e.hyp[:0], hyp...), ref, 0
	e.try = append(e.try[:0], hyp...)
	n, m := len(hyp), len(ref)
	e.ratio, e.beam = 1, beam
	if n > 0 {
		e.ratio = float64(m) / float64(n)
	}
	if e.ratio/2 > beam {
		e.beam = int(math.Ceil(e.ratio/2 + beam))
	}
	e.rows = append(e.rows[:0], row{0, m + 1, 0})
	at := m + 1
	for i := 1; i <= n; i++ {
		diagonal := int(math.Floor(float64(i) * e.ratio))
		r := row{max(0, diagonal-e.beam), min(m+1, diagonal+e.beam), at}
		if i == n {
			r.hi = m + 1
		}
		at += r.hi - r.lo
		e.rows = append(e.rows, r)
	}
	if cap(e.cells) < at || cap(e.cells) > max(1<<16, 16*at) {
		e.cells = make([]cell, at)
	}
	e.cells = e.cells[:at]
	for j := range m + 1 {
		e.cells[j] = cell{int32(j), opInsert}
	}
}

// fill computes the matrix of e.hyp and its alignment, given that the rows up
// to same are right, and returns the distance.
func (e *edits) fill(same int) int {
	for i := same + 1; i < len(e.rows); i++ {
		e.fillRow(i)
	}
	e.trace()
	return int(e.cells[len(e.cells)-1].cost)
}

func (e *edits) fillRow(i int) {
	above, here := e.rows[i-1], e.rows[i]
	up, out, word := e.cells[above.at:above.at+above.hi-above.lo], e.cells[here.at:here.at+here.hi-here.lo], e.hyp[i-1]
	left := int32(unreached)
	for k := range out {
		j := here.lo + k
		best := cell{unreached, opNone}
		if c := j - 1 - above.lo; c >= 0 && c < len(up) {
			if e.ref[j-1] == word {
				best.better(up[c].cost, opKeep)
			} else {
				best.better(up[c].cost+1, opReplace)
			}
		}
		if c := j - above.lo; c >= 0 && c < len(up) {
			best.better(up[c].cost+1, opDelete)
		}
		best.better(left+1, opInsert)
		out[k], left = best, best.cost
	}
}

func (c *cell) better(cost int32, op byte) {
	if cost < c.cost {
		*c = cell{cost, op}
	}
}

// trace walks back through the matrix and notes which word of the hypothesis
// stands at each of the reference, and where they are in error.
func (e *edits) trace() {
	i, j := len(e.hyp), len(e.ref)
	e.align = slices.Grow(e.align[:0], j)[:j]
	e.hypErrs = slices.Grow(e.hypErrs[:0], i+1)[:i+1]
	e.refErrs = slices.Grow(e.refErrs[:0], j+1)[:j+1]
	for i > 0 || j > 0 {
		r := e.rows[i]
		switch e.cells[r.at+j-r.lo].op {
		case opKeep:
			e.hypErrs[i], e.refErrs[j] = 0, 0
			i, j = i-1, j-1
			e.align[j] = int32(i)
		case opReplace:
			e.hypErrs[i], e.refErrs[j] = 1, 1
			i, j = i-1, j-1
			e.align[j] = int32(i)
		case opInsert:
			e.refErrs[j] = 1
			j--
			e.align[j] = int32(i) - 1
		case opDelete:
			e.hypErrs[i] = 1
			i--
		default:
			panic("overlap: the band of the edit distance has a hole")
		}
	}
	e.hypErrs[0], e.refErrs[0] = 0, 0
	for k := 1; k < len(e.hypErrs); k++ {
		e.hypErrs[k] += e.hypErrs[k-1]
	}
	for k := 1; k < len(e.refErrs); k++ {
		e.refErrs[k] += e.refErrs[k-1]
	}
}

// shift moves length words from start to before to.
type shift struct{ gain, length, start, to int }

// before reports whether Tercom would rather have s: more gained, longer, from
// further left, to further left.
func (s shift) before(t shift) bool {
	switch {
	case s.gain != t.gain:
		return s.gain > t.gain
	case s.length != t.length:
		return s.length > t.length
	case s.start != t.start:
		return s.start < t.start
	}
	return s.to < t.to
}

// best finds the best shift and makes it if it is one, or else leaves e.hyp as
// it is. It returns by how much the distance falls, and how many of the first
// words did not move.
func (e *edits) best(distance int) (gain, same int) {
	var best shift
	found := false
	for start := range e.hyp {
		if e.hypErrs[min(start+longestShift, len(e.hyp))] == e.hypErrs[start] {
			continue // no match from here moves a word in error
		}
		for at := max(0, start-farthestShift); at < min(len(e.ref), start+farthestShift+1); at++ {
			if e.refErrs[min(at+longestShift, len(e.ref))] == e.refErrs[at] {
				continue
			}
			for length := 1; length <= longestShift && start+length <= len(e.hyp) && at+length <= len(e.ref); length++ {
				if e.hyp[start+length-1] != e.ref[at+length-1] {
					break
				}
				if e.movable(start, at, length) {
					e.targets(start, at, length, distance, &best, &found)
				}
				if e.checked >= mostShifts {
					return 0, 0
				}
			}
		}
	}
	if !found || best.gain <= 0 {
		return 0, 0
	}
	same = e.move(best)
	copy(e.hyp, e.try)
	return best.gain, same
}

// movable: both sides of the match are in error somewhere, and the match would
// not move into itself.
func (e *edits) movable(start, at, length int) bool {
	if e.hypErrs[start+length] == e.hypErrs[start] || e.refErrs[at+length] == e.refErrs[at] {
		return false
	}
	here := int(e.align[at])
	return here < start || here >= start+length
}

// targets tries the places that a match could go to.
func (e *edits) targets(start, at, length, distance int, best *shift, found *bool) {
	last := -1
	for offset := -1; offset < length; offset++ {
		to := 0
		if at+offset >= 0 {
			to = int(e.align[at+offset]) + 1
		}
		if to == last {
			continue
		}
		last = to
		s := shift{0, length, start, to}
		s.gain = distance - e.distance(e.move(s))
		e.checked++
		if !*found || s.before(*best) {
			*best, *found = s, true
		}
	}
}

// move writes e.hyp with the shift into e.try, and returns how many words at
// the front are the same.
func (e *edits) move(s shift) int {
	h, end := e.hyp, s.start+s.length
	out := e.try[:0]
	switch {
	case s.to < s.start:
		out = append(out, h[:s.to]...)
		out = append(out, h[s.start:end]...)
		out = append(out, h[s.to:s.start]...)
		out = append(out, h[end:]...)
	case s.to > end:
		out = append(out, h[:s.start]...)
		out = append(out, h[end:s.to]...)
		out = append(out, h[s.start:end]...)
		out = append(out, h[s.to:]...)
	default:
		to := min(s.length+s.to, len(h))
		out = append(out, h[:s.start]...)
		out = append(out, h[end:to]...)
		out = append(out, h[s.start:end]...)
		out = append(out, h[to:]...)
	}
	e.try = out
	return min(s.to, s.start)
}

// distance is the edit distance of e.try, whose first words are those of e.hyp.
func (e *edits) distance(same int) int {
	above := e.rows[same]
	e.before = e.before[:0]
	for _, c := range e.cells[above.at : above.at+above.hi-above.lo] {
		e.before = append(e.before, c.cost)
	}
	for i := same + 1; i < len(e.rows); i++ {
		here := e.rows[i]
		e.after = slices.Grow(e.after[:0], here.hi-here.lo)[:here.hi-here.lo]
		e.costs(e.try[i-1], above, here)
		e.before, e.after, above = e.after, e.before, here
	}
	return int(e.before[len(e.before)-1])
}

// costs is fillRow without the operations. The row above begins at the same
// column or further left.
func (e *edits) costs(word uint32, above, here row) {
	up, out, ref := e.before, e.after, e.ref[max(here.lo-1, 0):]
	d, k, left := here.lo-above.lo, 0, int32(unreached)
	if d == 0 {
		left = up[0] + 1
		out[0], k = left, 1
		if here.lo > 0 {
			ref = ref[1:]
		}
	}
	replace := func(at int) int32 {
		if ref[at] == word {
			return 0
		}
		return 1
	}
	first := k
	for n := min(len(out), len(up)-d); k < n; k++ {
		left = min(up[k+d-1]+replace(k-first), up[k+d]+1, left+1)
		out[k] = left
	}
	if k < len(out) {
		left = min(up[k+d-1]+replace(k-first), left+1)
		out[k] = left
		for k++; k < len(out); k++ {
			left++
			out[k] = left
		}
	}
}
