package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/anytime"
	"github.com/assay-llm/assay/stat/screen"
)

// check is a share of runs that stands for itself. most and least bound it for
// tests of ours.
type check struct {
	name        string
	naive       bool
	count, runs int
	least, most float64
}

// wrong says what is out of bounds by more than the simulation's error.
func (c check) wrong() string {
	slack := func(p float64) float64 { return 4 * math.Sqrt(p*(1-p)/float64(c.runs)) }
	if got := float64(c.count) / float64(c.runs); got > c.most+slack(c.most) || got < c.least-slack(c.least) {
		return fmt.Sprintf("%s: %.1f %% of %d runs, want %.1f to %.1f %%", c.name, 100*got, c.runs, 100*c.least, 100*c.most)
	}
	return ""
}

func checks(runs int, seed uint64) []check {
	var out []check
	at := seed << 32
	add := func(name string, naive bool, least, most float64, runs int, found func(r *rand.Rand) bool) {
		at++
		out = append(out, check{name, naive, count(runs, at, found), runs, least, most})
	}
	pooled := func(slower float64, pool bool) func(*rand.Rand) bool {
		return func(r *rand.Rand) bool { return ramp(r, slower, pool) }
	}
	few := max(runs/4, 10)
	add("ramp from 5 % to 50 % while latencies double, steps pooled: an equal candidate fails", true, 0, 1, few, pooled(1, true))
	add("the same, steps multiplied: an equal candidate fails", false, 0, nominal, few, pooled(1, false))
	add("the same, steps multiplied: a candidate 1.5 times as slow fails", false, 0.95, 1, few, pooled(1.5, false))
	assigned := func(share float64, n int) func(*rand.Rand) bool {
		return func(r *rand.Rand) bool { return mismatch(r, share, n) }
	}
	add("anytime.Mismatch at e = 1,000, any time up to 100,000 sessions: 10 % as planned", false, 0, 0.001, runs, assigned(0.1, 100_000))
	for _, actual := range []float64{0.11, 0.12} {
		n := anytime.NeedMismatch(actual, 0.1, anytime.Plan{})
		add(fmt.Sprintf("anytime.Mismatch, %.0f %% instead of 10 %%, %d sessions as planned for a power of 80 %%: found", 100*actual, n), false, 0.7, 0.97, runs, assigned(actual, n))
	}
	planned(add, runs)
	series := func(n int, shift float64, logs bool) func(*rand.Rand) bool {
		return func(r *rand.Rand) bool { return outside(r, n, shift, logs) }
	}
	add("screen.Fence, 72 normal points: the next one is outside", false, 0, 0.02, 4*runs, series(72, 0, false))
	add("screen.Fence, 72 lognormal points (sigma 0.5) without Logs: the next one is outside", true, 0, 1, 4*runs, series(72, 0, true))
	add("screen.Fence, 72 normal points: a shift of 3 sd is outside", false, 0.5, 1, 4*runs, series(72, 3, false))
	for _, n := range []int{30, 100, 300, 1000} {
		add(fmt.Sprintf("screen.Changes, %d normal points without a change: one is found", n), false, 0, nominal, runs, changes(n, 0))
		add(fmt.Sprintf("screen.Changes, %d normal points, a step of 2 sd in the middle: found within 3 points", n), false, 0.6, 1, runs, changes(n, 2))
	}
	return out
}

// count runs one simulation with a source of its own for each run.
func count(runs int, seed uint64, found func(r *rand.Rand) bool) int {
	workers := runtime.GOMAXPROCS(0)
	parts := make([]int, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < runs; i += workers {
				if found(rand.New(rand.NewPCG(seed, uint64(i)))) {
					parts[w]++
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, p := range parts {
		sum += p
	}
	return sum
}

// ramp is a rollout whose second step coincides with the rush hour.
func ramp(r *rand.Rand, slower float64, pool bool) bool {
	test := anytime.Quantile{P: 0.95, Margin: 1.1}
	var before anytime.Evidence
	var h [2]stat.Histogram
	for step, weight := range []float64{0.05, 0.5} {
		if !pool {
			h = [2]stat.Histogram{}
		}
		var e anytime.Evidence
		for n := 1; n <= 10_000; n++ {
			x := float64(step+1) * math.Exp(0.5*r.NormFloat64())
			if r.Float64() < weight {
				must(0, h[0].Add(slower*x))
			} else {
				must(0, h[1].Add(x))
			}
			if n%1000 == 0 {
				e = must(test.Test(&h[0], &h[1]))
				if before.Times(e).Fails(nominal) {
					return true
				}
			}
		}
		if !pool {
			before = before.Times(e)
		}
	}
	return false
}

func mismatch(r *rand.Rand, share float64, n int) bool {
	var c [2]int
	for i := 1; i <= n; i++ {
		if r.Float64() < share {
			c[0]++
		} else {
			c[1]++
		}
		if i%500 == 0 && must(anytime.Mismatch(c[:], []float64{0.1, 0.9})) >= math.Log(1000) {
			return true
		}
	}
	return false
}

// planned simulates releases of just the size that a plan asks for.
func planned(add func(string, bool, float64, float64, int, func(*rand.Rand) bool), runs int) {
	few := max(runs/2, 10)
	pilot := new(stat.Histogram)
	for r := rand.New(rand.NewPCG(1, 1)); pilot.N() < 20_000; {
		must(0, pilot.Add(math.Exp(0.5*r.NormFloat64())))
	}
	var plan anytime.Plan
	for _, ratio := range []float64{1, latencyBeyond} {
		test := anytime.Quantile{P: 0.95, Margin: latencyMargin}
		n := test.Need(pilot, ratio, plan)
		add(fmt.Sprintf("anytime.Quantile p95, %d sessions as planned for a power of 80 %% at a ratio of %v: decides rightly", n, ratio), false, 0.7, 0.97, few, func(r *rand.Rand) bool {
			var h [2]stat.Histogram
			for k := 1; k <= n/2; k++ {
				must(0, h[0].Add(ratio*math.Exp(0.5*r.NormFloat64())))
				must(0, h[1].Add(math.Exp(0.5*r.NormFloat64())))
				if k%(n/40) == 0 || k == n/2 {
					if fail, pass := verdict(must(test.Test(&h[0], &h[1]))); fail && ratio > 1 || pass && ratio == 1 {
						return true
					}
				}
			}
			return false
		})
	}
	for _, p := range []struct{ base, margin, difference float64 }{{0.01, 0.005, 0}, {0.01, 0.005, 0.02}, {0.1, 0.05, 0}} {
		test := anytime.Proportion{Margin: p.margin}
		n := test.Need(p.base, p.difference, plan)
		add(fmt.Sprintf("anytime.Proportion, %d sessions as planned, %v %% and %+v points with a margin of %v: decides rightly", n, 100*p.base, 100*p.difference, 100*p.margin), false, 0.7, 0.97, few, func(r *rand.Rand) bool {
			var c [2]anytime.Count
			for k := 1; k <= n/2; k++ {
				for arm, rate := range [2]float64{p.base + p.difference, p.base} {
					c[arm].N++
					if r.Float64() < rate {
						c[arm].Events++
					}
				}
				if k%(n/40) == 0 || k == n/2 {
					if fail, pass := verdict(must(test.Test(c[0], c[1]))); fail && p.difference > p.margin || pass && p.difference < p.margin {
						return true
					}
				}
			}
			return false
		})
	}
	for _, p := range []struct{ differ, difference float64 }{{0.2, 0}, {0.1, -0.08}} {
		n := anytime.NeedPaired(pairedMargin, math.Sqrt(p.differ-p.difference*p.difference), p.difference, plan)
		add(fmt.Sprintf("anytime.Paired, %d pairs as planned, %v %% differ, %+v points with a margin of 3: decides rightly", n, 100*p.differ, 100*p.difference), false, 0.7, 0.97, few, func(r *rand.Rand) bool {
			t := must(anytime.NewPaired(pairedMargin))
			for range n {
				x := 0.0
				switch u := r.Float64(); {
				case u < (p.differ+p.difference)/2:
					x = 1
				case u < p.differ:
					x = -1
				}
				must(0, t.Add(x))
				if fail, pass := verdict(t.Evidence()); fail && p.difference < 0 || pass && p.difference == 0 {
					return true
				}
			}
			return false
		})
	}
	n := anytime.Mean{}.Need(0.5, 0.06, plan)
	add(fmt.Sprintf("anytime.Mean, %d sessions as planned, sd 0.5, 0.06 from the margin: decides rightly", n), false, 0.7, 0.97, few, func(r *rand.Rand) bool {
		var m [2]anytime.Moments
		for k := 1; k <= n/2; k++ {
			must(0, m[0].Add(1+0.5*r.NormFloat64(), 1, 0))
			must(0, m[1].Add(1+0.5*r.NormFloat64(), 1, 0))
			if k%(n/60) == 0 || k == n/2 {
				if _, pass := verdict(must(anytime.Mean{}.Test(&m[0], &m[1], 0.06))); pass {
					return true
				}
			}
		}
		return false
	})
}

func outside(r *rand.Rand, n int, shift float64, exp bool) bool {
	x := make([]float64, n+1)
	for i := range x {
		if x[i] = r.NormFloat64(); exp {
			x[i] = math.Exp(0.5 * x[i])
		}
	}
	lo, hi, err := screen.Fence{}.Bounds(x[:n])
	next := x[n] + shift
	return err == nil && (next < lo || next > hi)
}

func changes(n int, step float64) func(*rand.Rand) bool {
	return func(r *rand.Rand) bool {
		x := make([]float64, n)
		for i := range x {
			if x[i] = r.NormFloat64(); i >= n/2 {
				x[i] += step
			}
		}
		cuts := must(screen.Changes(x, 0))
		if step == 0 {
			return len(cuts) > 0
		}
		return len(cuts) == 1 && cuts[0] >= n/2-3 && cuts[0] <= n/2+3
	}
}
