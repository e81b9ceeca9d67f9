package scenario

import (
	"math"
	"slices"
)

// Seen is whether the candidate and the baseline knew the value of one slot after one
// turn of one scenario.
type Seen struct {
	Cluster             string // the scenario
	Slot                string
	Turn                int // from 1
	Baseline, Candidate bool
}

// Loss says from which turn on the candidate knows less of a slot than the baseline.
type Loss struct {
	Turn          int // from 1
	Before, After Rate
}

// Rate is how many of N values the baseline and the candidate knew.
type Rate struct{ Baseline, Candidate, N int }

// LocateLoss finds the turn from which the candidate fails at values that the baseline
// knows: the step in the share of such values over the turns that makes what was seen
// likeliest, upwards. ok is false if there is none. It says where a loss began, not
// whether there is one: test that first, as with compare.Jointly.
func LocateLoss(seen []Seen) (loss Loss, ok bool) {
	lost, known := make(map[int]int), make(map[int]int)
	var turns []int
	for _, c := range seen {
		if !slices.Contains(turns, c.Turn) {
			turns = append(turns, c.Turn)
		}
		if c.Baseline {
			known[c.Turn]++
			if !c.Candidate {
				lost[c.Turn]++
			}
		}
	}
	slices.Sort(turns)
	best := math.Inf(-1)
	for _, k := range turns {
		var a, b [2]int // lost, known
		for _, t := range turns {
			if t < k {
				a[0], a[1] = a[0]+lost[t], a[1]+known[t]
			} else {
				b[0], b[1] = b[0]+lost[t], b[1]+known[t]
			}
		}
		if b[1] == 0 || a[1] > 0 && float64(a[0])/float64(a[1]) >= float64(b[0])/float64(b[1]) || b[0] == 0 {
			continue
		}
		if l := likelihood(a) + likelihood(b); l > best+1e-9 {
			best, loss.Turn, ok = l, k, true
		}
	}
	for _, c := range seen {
		r := &loss.Before
		if c.Turn >= loss.Turn {
			r = &loss.After
		}
		r.N++
		if c.Baseline {
			r.Baseline++
		}
		if c.Candidate {
			r.Candidate++
		}
	}
	return loss, ok
}

// likelihood is the logarithm of the binomial likelihood of k among n at its maximum.
func likelihood(c [2]int) float64 {
	k, n := float64(c[0]), float64(c[1])
	l := 0.0
	if k > 0 {
		l += k * math.Log(k/n)
	}
	if k < n {
		l += (n - k) * math.Log((n-k)/n)
	}
	return l
}
