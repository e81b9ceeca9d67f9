package screen

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Bisection looks for the length beyond which a share of events falls, such as
// that of right answers, for as few tokens as it can: a try at a length costs
// that many. It holds a probability for each place at which the share may break,
// and for no break at all, and spends each try where it expects to learn most
// about the place for a token.
//
//	for at, ok := b.Next(); ok; at, ok = b.Next() {
//		… ask at lengths[at] …
//		b.Add(at, right)
//	}
//	found := b.Found()
//
// It ends when two places have 97 % of the probability, or places between
// lengths whose ratio is below 1.25, or the next try does not fit into the
// budget. Then Found().Known tells the first two from the last; whoever must not
// cry wolf says that there is a break if Found().None() is below 0.05.
//
// It follows Bayes' rule exactly, on a grid: all places are likely alike
// beforehand, and no break as likely as three of them; the shares before and
// after are unknown, uniform over all pairs that fall by at least the drop, and
// that of no break is uniform. Tries are taken as independent, and the share as
// one step: of a share that falls little by little it finds a steep place, with a
// set that is too narrow.
//
// Nothing is random: equal outcomes lead to equal questions. Tries that Next did
// not name are welcome, be it that several are asked at once or that another
// variant wants them; they cost only tokens. A Bisection is not safe for
// concurrent use.
//
// Measured with 15 lengths from 1,000 to 128,000 tokens and a fall from 0.95 to
// 0.70: it costs 3 to 33 % of 40 tries at each length, the longer the length of
// the break the more, is off by at most one length in 96 % of searches and more,
// and finds a break where there is none in 1 % (docs/originals.md).
type Bisection struct {
	lengths []float64
	drop    float64
	budget  float64

	events, tries []int
	spent         float64
	mass          []float64 // by place, from 0, which is impossible, to len(lengths)
	before, after []float64 // expected shares, by place
}

// Break is what a [Bisection] found.
type Break struct {
	// At is the likeliest place: the share is lower from lengths[At] on; if it is
	// len(lengths) none is likelier than any.
	At int
	// Set has the places, rising, that together have at least 97 % of the
	// probability, as few as may be.
	Set []int
	// Mass is the probability of each place from 0, where it is 0, to
	// len(lengths), that of no break.
	Mass []float64
	// Before and After are the expected shares around At; of no break both are the
	// expected share.
	Before, After float64
	Tries         []int   // at each length
	Tokens        float64 // that they cost
	Known         bool    // Set is small enough: the search has its answer, and else ran out of budget or goes on
}

// None is the probability of no break.
func (b Break) None() float64 { return b.Mass[len(b.Mass)-1] }

const (
	// Whoever stops when he is sure is wrong a little more often than he believes:
	// with 97 % the set has the place in 95 % of searches and more.
	bisectMass   = 0.97
	bisectPlaces = 2    // so few are known well enough,
	bisectRatio  = 1.25 // and so is a stretch whose ends have a smaller ratio
	bisectNone   = 3    // as likely as so many places is no break beforehand
	bisectLevels = 40   // of each share
)

// NewBisection begins a search over the lengths, in tokens, which rise. A fall
// of the share by less than the drop is none; 0 means 0.1. The budget is in
// tokens; 0 means what 40 tries at each length cost.
func NewBisection(lengths []float64, drop, budget float64) (*Bisection, error) {
	if len(lengths) < 2 {
		return nil, errors.New("bisecting: give at least two lengths, between which the share may break")
	}
	sum := 0.0
	for i, l := range lengths {
		if !(l > 0) || i > 0 && !(l > lengths[i-1]) || math.IsInf(l, 0) {
			return nil, fmt.Errorf("bisecting: length %d is %v; give lengths above 0 that rise", i, l)
		}
		sum += l
	}
	if !(drop >= 0 && drop <= 0.9) || !(budget >= 0) {
		return nil, fmt.Errorf("bisecting: drop %v and budget %v; a drop is from 0 to 0.9, a budget at least 0", drop, budget)
	}
	b := &Bisection{
		lengths: slices.Clone(lengths), drop: cmp.Or(drop, 0.1), budget: cmp.Or(budget, 40*sum),
		events: make([]int, len(lengths)), tries: make([]int, len(lengths)),
		mass: make([]float64, len(lengths)+1), before: make([]float64, len(lengths)+1), after: make([]float64, len(lengths)+1),
	}
	b.update()
	return b, nil
}

// Add says what came of a try at lengths[at].
func (b *Bisection) Add(at int, event bool) error {
	if at < 0 || at >= len(b.lengths) {
		return fmt.Errorf("bisecting: there is no length %d; they are 0 to %d", at, len(b.lengths)-1)
	}
	b.tries[at]++
	if event {
		b.events[at]++
	}
	b.spent += b.lengths[at]
	b.update()
	return nil
}

// Next is the index of the length to try next; ok is false if the search has
// ended.
func (b *Bisection) Next() (at int, ok bool) {
	if b.known() {
		return 0, false
	}
	at = b.best()
	return at, b.spent+b.lengths[at] <= b.budget
}

// Found is what is known by now.
func (b *Bisection) Found() Break {
	f := Break{Set: b.set(), Known: b.known(), Mass: slices.Clone(b.mass), Tries: slices.Clone(b.tries), Tokens: b.spent}
	for t, m := range b.mass {
		if m > b.mass[f.At] {
			f.At = t
		}
	}
	f.Before, f.After = b.before[f.At], b.after[f.At]
	return f
}

func (b *Bisection) known() bool {
	set := b.set()
	last := set[len(set)-1]
	return len(set) <= bisectPlaces || last < len(b.lengths) && b.lengths[last] < bisectRatio*b.lengths[set[0]-1]
}

func (b *Bisection) set() []int {
	order := make([]int, len(b.lengths))
	for i := range order {
		order[i] = i + 1
	}
	slices.SortStableFunc(order, func(s, t int) int { return cmp.Compare(b.mass[t], b.mass[s]) })
	sum := 0.0
	for i, t := range order {
		if sum += b.mass[t]; sum >= bisectMass {
			order = order[:i+1]
			break
		}
	}
	slices.Sort(order)
	return order
}

// best is the length at which a try is expected to tell most about the place for
// a token: the mutual information of the outcome and the place.
func (b *Bisection) best() int {
	at, most := 0, math.Inf(-1)
	for i, l := range b.lengths {
		mean, within := 0.0, 0.0
		for t := 1; t < len(b.mass); t++ {
			p := b.before[t]
			if i >= t {
				p = b.after[t]
			}
			mean += b.mass[t] * p
			within += b.mass[t] * coin(p)
		}
		if gain := (coin(mean) - within) / l; gain > most {
			at, most = i, gain
		}
	}
	return at
}

// coin is the entropy of an event of the probability p.
func coin(p float64) float64 {
	if p <= 0 || p >= 1 {
		return 0
	}
	return -p*math.Log(p) - (1-p)*math.Log(1-p)
}

// update computes what the outcomes say of the places.
func (b *Bisection) update() {
	all, events := 0, 0
	for i := range b.tries {
		all, events = all+b.tries[i], events+b.events[i]
	}
	logs := make([]float64, len(b.mass))
	logs[0] = math.Inf(-1)
	n, k := 0, 0
	for t := 1; t < len(b.mass); t++ {
		n, k = n+b.tries[t-1], k+b.events[t-1]
		if t == len(b.lengths) {
			logs[t], b.before[t] = oneLevel(k, n)
			logs[t] += math.Log(bisectNone)
			b.after[t] = b.before[t]
		} else {
			logs[t], b.before[t], b.after[t] = twoLevels(k, n, events-k, all-n, b.drop)
		}
	}
	top, sum := slices.Max(logs), 0.0
	for t := range logs {
		b.mass[t] = math.Exp(logs[t] - top)
		sum += b.mass[t]
	}
	for t := range b.mass {
		b.mass[t] /= sum
	}
}

func level(i int) float64 { return (float64(i) + 0.5) / bisectLevels }

// likelihoods of k events in n at each level, divided by the exponential of the
// logarithm that it returns.
func likelihoods(k, n int) (out [bisectLevels]float64, scale float64) {
	scale = math.Inf(-1)
	for i := range out {
		out[i] = float64(k)*math.Log(level(i)) + float64(n-k)*math.Log(1-level(i))
		scale = math.Max(scale, out[i])
	}
	for i := range out {
		out[i] = math.Exp(out[i] - scale)
	}
	return out, scale
}

// oneLevel is the logarithm of the mean likelihood of k events in n, and the
// expected share.
func oneLevel(k, n int) (evidence, share float64) {
	like, scale := likelihoods(k, n)
	sum := 0.0
	for i, l := range like {
		sum += l
		share += l * level(i)
	}
	return scale + math.Log(sum/bisectLevels), share / sum
}

// twoLevels is the same of k1 of n1 before and k2 of n2 after a fall by at least
// the drop.
func twoLevels(k1, n1, k2, n2 int, drop float64) (evidence, before, after float64) {
	first, scale1 := likelihoods(k1, n1)
	second, scale2 := likelihoods(k2, n2)
	sum, pairs := 0.0, 0
	low, weighted, j := 0.0, 0.0, 0 // of second up to the highest level that is low enough
	for i, l := range first {
		for ; j < bisectLevels && level(j) <= level(i)-drop+1e-9; j++ {
			low += second[j]
			weighted += second[j] * level(j)
		}
		pairs += j
		sum += l * low
		before += l * low * level(i)
		after += l * weighted
	}
	return scale1 + scale2 + math.Log(sum/float64(pairs)), before / sum, after / sum
}
