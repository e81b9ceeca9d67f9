package diverge

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Bounds hold for the distributions of which only the likeliest outcomes are
// known.
type Bounds struct {
	// KL of P from Q is at least so much. No list bounds it from above: an outcome
	// that is not listed may be impossible.
	KL float64
	// Least and most of total variation and of the Jensen–Shannon divergence.
	LeastTV, MostTV, LeastJS, MostJS float64
	// Shared is how much of P lies in outcomes that both list.
	Shared float64
}

// rounding is how much a server's probabilities may be off in sum.
const rounding = 1e-3

// leastRest of the probability stays for outcomes that are not listed, since
// what is listed is rounded.
const leastRest = 1e-6

// Within bounds the distance of two distributions by the probabilities that are
// listed, such as the top 20 tokens. Each list has the likeliest outcomes of its
// distribution: what it lacks is at most as likely as its least.
//
// Outcomes in both lists are compared as they are, the rest as one: merging
// outcomes never makes distributions look further apart. Making distributions of
// the outcomes in both lists alone would: it is not a bound.
func Within(p, q map[string]float64) (Bounds, error) {
	restP, _, err := rest(p)
	if err != nil {
		return Bounds{}, fmt.Errorf("bounding a distance: the first list: %w", err)
	}
	restQ, leastQ, err := rest(q)
	if err != nil {
		return Bounds{}, fmt.Errorf("bounding a distance: the second list: %w", err)
	}
	var b Bounds
	otherP, otherQ, onlyQ := restP, restQ, 0.0
	var missing []float64
	for _, t := range slices.Sorted(maps.Keys(p)) {
		if x, ok := q[t]; ok {
			b.KL += term(p[t], x)
			b.LeastTV += math.Abs(p[t]-x) / 2
			b.LeastJS += js(p[t], x)
			b.Shared += p[t]
		} else {
			missing = append(missing, p[t])
			otherP += p[t]
		}
	}
	for _, t := range slices.Sorted(maps.Keys(q)) {
		if _, ok := p[t]; !ok {
			onlyQ += q[t]
			otherQ += q[t]
		}
	}
	b.MostTV, b.MostJS = b.LeastTV+(otherP+otherQ)/2, b.LeastJS+(otherP+otherQ)/2*math.Ln2
	b.LeastTV += math.Abs(otherP-otherQ) / 2
	b.LeastJS += js(otherP, otherQ)
	b.MostTV, b.MostJS = math.Min(b.MostTV, 1), math.Min(b.MostJS, math.Ln2)
	b.KL = math.Max(b.KL+closest(missing, restP, leastQ, onlyQ, otherQ), 0)
	return b, nil
}

// rest checks a list, and returns what it leaves and its least probability.
func rest(list map[string]float64) (left, least float64, err error) {
	sum := 0.0
	least = 1
	for _, t := range slices.Sorted(maps.Keys(list)) {
		x := list[t]
		if !(x > 0 && x <= 1+rounding) {
			return 0, 0, fmt.Errorf("%q has the probability %v; give numbers above 0 up to 1", t, x)
		}
		sum += x
		least = math.Min(least, x)
	}
	if sum > 1+rounding {
		return 0, 0, fmt.Errorf("the probabilities sum to %v; these are not of one distribution", sum)
	}
	return math.Max(1-sum, leastRest), least, nil
}

// closest is the least that outcomes missing from the list of Q, and those that
// neither lists, can add to KL. Q gives each missing one at most least, the others
// at least onlyQ, and all of them room: it is closest in proportion to P, as far
// as these limits allow.
func closest(missing []float64, restP, least, onlyQ, room float64) float64 {
	total := func(scale float64) (sum float64) {
		for _, p := range missing {
			sum += math.Min(least, scale*p)
		}
		return sum + math.Max(onlyQ, scale*restP)
	}
	lo, hi := 0.0, 1.0
	for range 200 {
		if total(hi) >= room || hi > 1e12 {
			break
		}
		hi *= 2
	}
	for range 200 {
		if mid := (lo + hi) / 2; total(mid) < room {
			lo = mid
		} else {
			hi = mid
		}
	}
	out, others := 0.0, room
	for _, p := range missing {
		q := math.Min(least, lo*p)
		out += term(p, math.Max(q, math.SmallestNonzeroFloat64))
		others -= q
	}
	return out + term(restP, others)
}

// Entropy bounds the entropy of a distribution of so many outcomes, of which
// the likeliest are listed. The least is reached when the rest is in as few
// outcomes as may be, none likelier than the least listed; the most when all
// are alike.
func Entropy(list map[string]float64, outcomes int) (least, most float64, err error) {
	if outcomes < len(list) || len(list) == 0 {
		return 0, 0, fmt.Errorf("bounding an entropy: %d outcomes with %d of them listed; give the size of the vocabulary", outcomes, len(list))
	}
	_, smallest, err := rest(list)
	if err != nil {
		return 0, 0, fmt.Errorf("bounding an entropy: %w", err)
	}
	sum := 0.0
	for _, t := range slices.Sorted(maps.Keys(list)) {
		sum += list[t]
		least -= list[t] * math.Log(list[t])
	}
	most = least
	left := math.Max(1-sum, 0)
	if n := outcomes - len(list); n > 0 && left > 0 {
		most += left*math.Log(float64(n)) - left*math.Log(left)
	}
	full := math.Floor(left / smallest)
	least -= full * smallest * math.Log(smallest)
	if last := left - full*smallest; last > 0 {
		least -= last * math.Log(last)
	}
	return least, math.Max(most, least), nil
}
