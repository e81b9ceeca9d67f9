package diverge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Spread says how far samples of one question agree.
type Spread struct {
	N, Classes int // samples, and classes that any fell into
	// Agreement is the share of pairs of samples in the same class: an unbiased
	// estimate of the sum of squared probabilities. NaN of fewer than two samples.
	Agreement float64
	// Modal is the share of the most frequent class. It is too great by chance: of
	// classes with probabilities up to 0.4, five samples show 0.5 on average.
	Modal float64
	// Entropy of the shares in nats, which is too small by chance, and corrected by
	// Miller and Madow's (K−1)/2n.
	Entropy, MillerMadow float64
}

// Classes describes the samples of one question by how many fell into each
// class.
func Classes(counts []int) (Spread, error) {
	s := Spread{Agreement: math.NaN()}
	pairs, most := 0, 0
	for i, c := range counts {
		if c < 0 {
			return Spread{}, fmt.Errorf("describing samples: class %d has %d; give counts", i, c)
		}
		if c > 0 {
			s.Classes++
		}
		s.N += c
		pairs += c * (c - 1)
		most = max(most, c)
	}
	if s.N == 0 {
		return Spread{}, fmt.Errorf("describing samples: there is none")
	}
	n := float64(s.N)
	if s.N > 1 {
		s.Agreement = float64(pairs) / (n * (n - 1))
	}
	s.Modal = float64(most) / n
	for _, c := range counts {
		s.Entropy += term(float64(c)/n, 1)
	}
	s.Entropy = math.Abs(s.Entropy) // of one class it is 0, not −0
	s.MillerMadow = s.Entropy + float64(s.Classes-1)/(2*n)
	return s, nil
}

// Excess says how much further apart two groups of samples are than chance
// would have them.
type Excess struct {
	// Observed is the mean distance over questions, Floor what it would be if the
	// groups did not differ, from dealing their samples anew within each question.
	Observed, Floor float64
	// Each is the difference of the two by question; its mean has an expectation of 0
	// if the groups do not differ. Questions are independent: compare.Mean makes an
	// interval of it.
	Each []float64
	// P of so great a mean distance if the groups do not differ, one-sided, from
	// 1,999 deals.
	P float64
}

// Value is by how much the groups are further apart than chance has them.
func (e Excess) Value() float64 { return e.Observed - e.Floor }

const deals = 1999

// Drift compares two groups of samples of the same questions by the classes
// that they fell into: clean[i][k] samples of question i are of class k. The
// distance is of the smoothed shares; nil stands for [Distance.Root].
func Drift(clean, perturbed [][]int, distance func(Distance) float64, seed uint64) (Excess, error) {
	if len(clean) != len(perturbed) || len(clean) == 0 {
		return Excess{}, fmt.Errorf("measuring drift: %d and %d questions; both groups need the same", len(clean), len(perturbed))
	}
	if distance == nil {
		distance = Distance.Root
	}
	r := rand.New(rand.NewPCG(seed, 0xd41f7))
	draws := make([]float64, deals)
	e := Excess{}
	for i := range clean {
		if len(clean[i]) != len(perturbed[i]) || len(clean[i]) < 2 {
			return Excess{}, fmt.Errorf("measuring drift: question %d has %d and %d classes; give both groups the same, at least two", i, len(clean[i]), len(perturbed[i]))
		}
		n, m := 0, 0
		both := make([]int, len(clean[i]))
		for k := range both {
			a, b := clean[i][k], perturbed[i][k]
			if a < 0 || b < 0 {
				return Excess{}, fmt.Errorf("measuring drift: question %d has %d and %d samples in class %d; give counts", i, a, b, k)
			}
			n, m, both[k] = n+a, m+b, a+b
		}
		if n == 0 || m == 0 {
			return Excess{}, fmt.Errorf("measuring drift: question %d has %d and %d samples; leave it out", i, n, m)
		}
		of := func(a, b []int) float64 { return distance(between(Smooth(a), Smooth(b))) }
		observed, floor := of(clean[i], perturbed[i]), 0.0
		a, b := make([]int, len(both)), make([]int, len(both))
		for d := range draws {
			hypergeometric(r, both, n, n+m, a)
			for k := range b {
				b[k] = both[k] - a[k]
			}
			x := of(a, b)
			floor += x / deals
			draws[d] += x / float64(len(clean))
		}
		e.Observed += observed / float64(len(clean))
		e.Floor += floor / float64(len(clean))
		e.Each = append(e.Each, observed-floor)
	}
	e.P = tail(draws, e.Observed)
	return e, nil
}

// hypergeometric draws n of all without returning any.
func hypergeometric(r *rand.Rand, counts []int, n, all int, out []int) {
	for k, c := range counts {
		out[k] = 0
		for range c {
			if n > 0 && r.IntN(all) < n {
				out[k]++
				n--
			}
			all--
		}
	}
}

// tail is the p-value of what was observed among draws.
func tail(draws []float64, observed float64) float64 {
	extreme := 0
	for _, x := range draws {
		if x >= observed-1e-9 {
			extreme++
		}
	}
	return float64(extreme+1) / float64(len(draws)+1)
}

// Hamming compares two groups of sequences of tokens, such as completions of the
// same prompts by two servers: x[i] are those of prompt i. The distance is the
// unbiased squared maximum mean discrepancy with the share of equal places as
// kernel, averaged over prompts (Gao, Liang & Guestrin, arXiv 2410.20247). It may be
// negative; the floor is about 0. Each prompt needs two sequences on either side.
func Hamming(x, y [][][]int, seed uint64) (Excess, error) {
	if len(x) != len(y) || len(x) == 0 {
		return Excess{}, fmt.Errorf("comparing sequences: %d and %d prompts; both groups need the same", len(x), len(y))
	}
	r := rand.New(rand.NewPCG(seed, 0x4a33))
	draws := make([]float64, deals)
	e := Excess{}
	for i := range x {
		n, all := len(x[i]), slices.Concat(x[i], y[i])
		if n < 2 || len(y[i]) < 2 {
			return Excess{}, fmt.Errorf("comparing sequences: prompt %d has %d and %d; give two on either side, or leave it out", i, n, len(y[i]))
		}
		kernel := make([][]float64, len(all))
		order := make([]int, len(all))
		for a := range all {
			order[a] = a
			kernel[a] = make([]float64, len(all))
			for b := range all {
				kernel[a][b] = alike(all[a], all[b])
			}
		}
		observed, floor := discrepancy(kernel, order, n), 0.0
		for d := range draws {
			r.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
			v := discrepancy(kernel, order, n)
			floor += v / deals
			draws[d] += v / float64(len(x))
		}
		e.Observed += observed / float64(len(x))
		e.Floor += floor / float64(len(x))
		e.Each = append(e.Each, observed-floor)
	}
	e.P = tail(draws, e.Observed)
	return e, nil
}

// alike is the share of places with the same token; a place that only one has
// counts as different.
func alike(a, b []int) float64 {
	n := max(len(a), len(b))
	if n == 0 {
		return 1
	}
	same := 0
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			same++
		}
	}
	return float64(same) / float64(n)
}

// discrepancy is the squared MMD of the first n against the others.
func discrepancy(kernel [][]float64, order []int, n int) float64 {
	var within, beyond, across float64
	for i, a := range order {
		for j, b := range order[:i] {
			switch v := kernel[a][b]; {
			case i < n:
				within += v
			case j >= n:
				beyond += v
			default:
				across += v
			}
		}
	}
	x, y := float64(n), float64(len(order)-n)
	return 2*within/(x*(x-1)) + 2*beyond/(y*(y-1)) - 2*across/(x*y)
}
