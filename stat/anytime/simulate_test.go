package anytime

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/assay-llm/assay/stat"
)

func seeded(seed uint64, i int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(i))) }

// discordant is the difference of two right or wrong answers.
func discordant(r *rand.Rand, discordance, difference float64) float64 {
	switch u := r.Float64(); {
	case u < (discordance+difference)/2:
		return 1
	case u < discordance:
		return -1
	}
	return 0
}

// count runs a simulation over seeded repetitions and counts what it finds.
func count(runs int, found func(i int) bool) int {
	const workers = 2
	parts := make([]int, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < runs; i += workers {
				if found(i) {
					parts[w]++
				}
			}
		})
	}
	wg.Wait()
	return parts[0] + parts[1]
}

// atMost fails when a share of runs exceeds a rate by more than three
// Monte-Carlo standard errors.
func atMost(t *testing.T, what string, n, runs int, rate float64) {
	t.Helper()
	got, slack := float64(n)/float64(runs), 3*math.Sqrt(rate*(1-rate)/float64(runs))
	t.Logf("%s: %.1f %% of %d", what, 100*got, runs)
	if got > rate+slack {
		t.Errorf("%s: %.1f %% of %d runs, want at most %.1f %%", what, 100*got, runs, 100*(rate+slack))
	}
}

func atLeast(t *testing.T, what string, n, runs int, rate float64) {
	t.Helper()
	got := float64(n) / float64(runs)
	t.Logf("%s: %.1f %% of %d", what, 100*got, runs)
	if got < rate {
		t.Errorf("%s: %.1f %% of %d runs, want at least %.1f %%", what, 100*got, runs, 100*rate)
	}
}

func add(h *stat.Histogram, session ...float64) {
	if err := h.Add(session...); err != nil {
		panic(err)
	}
}

func must(e Evidence, err error) Evidence {
	if err != nil {
		panic(err)
	}
	return e
}

// Sessions whose candidate is exactly at the margin: each verdict would be
// wrong in half the worlds, so both are bounded, with looks all the time.
func TestQuantileKeepsItsErrorRate(t *testing.T) {
	for _, sigma := range []float64{0.5, 1.2} {
		for _, turns := range []int{1, 8} {
			const runs, margin = 60, 1.184
			q := Quantile{P: 0.95, Margin: margin}
			end := func(i int) (fails, passes bool) {
				r := seeded(uint64(1000*sigma)+uint64(turns), i)
				var c, b stat.Histogram
				draw := func(scale float64) []float64 {
					own := r.NormFloat64()
					out := make([]float64, turns)
					for k := range out {
						out[k] = scale * math.Exp(sigma*(0.8*own+0.6*r.NormFloat64()))
					}
					return out
				}
				for n := 1; n <= 1500; n++ {
					add(&c, draw(margin)...)
					add(&b, draw(1)...)
					if n%100 == 0 {
						e := must(q.Test(&c, &b))
						fails, passes = fails || e.Fails(0.05), passes || e.Passes(0.05)
					}
				}
				return fails, passes
			}
			atMost(t, "false fail at the margin", count(runs, func(i int) bool { f, _ := end(i); return f }), runs, 0.05)
			atMost(t, "false pass at the margin", count(runs, func(i int) bool { _, p := end(runs + i); return p }), runs, 0.05)
		}
	}
}

func TestQuantileHasThePowerItPlans(t *testing.T) {
	const runs = 100
	draw := func(r *rand.Rand) float64 { return math.Exp(0.5 * r.NormFloat64()) }
	var pilot stat.Histogram
	for r := seeded(3, 0); pilot.N() < 20000; {
		add(&pilot, draw(r))
	}
	for _, ratio := range []float64{1, 1.5} {
		q := Quantile{P: 0.95, Margin: 1.184}
		n := q.Need(&pilot, ratio, Plan{})
		found := count(runs, func(i int) bool {
			r := seeded(4, i)
			var c, b stat.Histogram
			for k := 1; k <= n/2; k++ {
				add(&c, ratio*draw(r))
				add(&b, draw(r))
				if k%100 == 0 || k == n/2 {
					if e := must(q.Test(&c, &b)); ratio == 1 && e.Passes(0.05) || ratio > 1 && e.Fails(0.05) {
						return true
					}
				}
			}
			return false
		})
		t.Logf("ratio %v needs %d sessions", ratio, n)
		atLeast(t, "decided", found, runs, 0.7)
		if found > 97 {
			t.Errorf("%d of %d decided at the number that 80 %% need; the plan is too large", found, runs)
		}
	}
}

// A ramp from 5 % to 50 % of the sessions while the load doubles every latency:
// pooled over the steps, the candidate, which is the same as the baseline,
// seems slower for sure. A test for each step, multiplied, is not deceived, and
// still finds a candidate that is.
func TestRampStepsMultiplyAndAreNeverPooled(t *testing.T) {
	weights := []float64{0.05, 0.5}
	q := Quantile{P: 0.95, Margin: 1.1}
	ramp := func(i int, slower float64) (product, pooled bool) {
		r := seeded(5, i)
		var whole Evidence
		var allC, allB stat.Histogram
		for step, w := range weights {
			load := math.Pow(2, float64(step)/float64(len(weights)-1))
			var c, b stat.Histogram
			for range 10_000 {
				x := load * math.Exp(0.5*r.NormFloat64())
				if r.Float64() < w {
					add(&c, slower*x)
					add(&allC, slower*x)
				} else {
					add(&b, x)
					add(&allB, x)
				}
			}
			whole = whole.Times(must(q.Test(&c, &b)))
			product = product || whole.Fails(0.05)
			pooled = pooled || must(q.Test(&allC, &allB)).Fails(0.05)
		}
		return product, pooled
	}
	const runs = 100
	pooledFails := count(runs, func(i int) bool { _, p := ramp(i, 1); return p })
	atLeast(t, "pooled: false fail of an equal candidate", pooledFails, runs, 0.99)
	productFails := count(runs, func(i int) bool { p, _ := ramp(i, 1); return p })
	atMost(t, "multiplied: false fail of an equal candidate", productFails, runs, 0)
	found := count(runs, func(i int) bool { p, _ := ramp(i, 1.5); return p })
	atLeast(t, "multiplied: a candidate 1.5 times as slow", found, runs, 0.99)
}

// Every request of the candidate hangs. Nothing of it ever completes, so a test
// of completed requests sees no data; the exceedance test fails it as soon as
// the requests are older than the limit.
func TestHangIsSeenBeforeAnythingCompletes(t *testing.T) {
	const limit = 10.0
	x := Exceedance{Margin: 1.5, Weight: 0.1}
	r := seeded(6, 0)
	var start [2][]float64
	for at := 0.0; at < 60; at += r.ExpFloat64() / 20 {
		arm := 0
		if r.Float64() < x.Weight {
			arm = 1
		}
		start[arm] = append(start[arm], at)
	}
	at := func(now float64) (ages, done [][]float64) {
		for _, s := range start[1] {
			if s < now {
				ages = append(ages, []float64{now - s})
			}
		}
		for _, s := range start[0] {
			if s+1 < now {
				done = append(done, []float64{1})
			}
		}
		return ages, done
	}
	for now := 0.0; now < 60; now++ {
		ages, done := at(now)
		if must(x.Test(float64(Exceeding(limit, ages)), float64(Exceeding(limit, done)))).Fails(0.01) {
			t.Logf("failed %.0f s after the start, %d requests in flight beyond the limit", now, Exceeding(limit, ages))
			if now > 18 {
				t.Errorf("a hang was found after %v s, want at most 18", now)
			}
			return
		}
	}
	t.Error("a hang was never found")
}

func TestSharesKeepTheirErrorRates(t *testing.T) {
	const runs = 150
	p := Proportion{Margin: 0.005}
	x := Exceedance{Margin: 1.5, Weight: 0.3}
	for _, base := range []float64{0.002, 0.01, 0.2} {
		var verdicts [4]int
		for which := range verdicts {
			verdicts[which] = count(runs, func(i int) bool {
				r := seeded(7+uint64(which), i)
				var add, multiply [2]Count
				for n := 1; n <= 4000; n++ {
					arm, worse := 1, [2]float64{base, base}
					if r.Float64() < x.Weight {
						arm, worse = 0, [2]float64{base + p.Margin, base * x.Margin}
					}
					u := r.Float64()
					for k, c := range []*Count{&add[arm], &multiply[arm]} {
						c.N++
						if u < worse[k] {
							c.Events++
						}
					}
					if n%200 != 0 {
						continue
					}
					var e Evidence
					if which < 2 {
						e = must(p.Test(add[0], add[1]))
					} else {
						e = must(x.Test(multiply[0].Events, multiply[1].Events))
					}
					if which%2 == 0 && e.Fails(0.05) || which%2 == 1 && e.Passes(0.05) {
						return true
					}
				}
				return false
			})
		}
		for which, name := range []string{"proportion: false fail", "proportion: false pass", "exceedance: false fail", "exceedance: false pass"} {
			atMost(t, name, verdicts[which], runs, 0.05)
		}
	}
}

func TestSharesHaveThePowerTheyPlan(t *testing.T) {
	const runs = 120
	for _, c := range []struct{ base, margin, difference float64 }{{0.01, 0.005, 0}, {0.01, 0.005, 0.02}, {0.2, 0.05, 0}, {0.03, 0.02, 0.053}} {
		p := Proportion{Margin: c.margin}
		n := p.Need(c.base, c.difference, Plan{})
		found := count(runs, func(i int) bool {
			r := seeded(20, i)
			var cand, base Count
			for k := 1; k <= n/2; k++ {
				cand.N++
				base.N++
				if r.Float64() < c.base+c.difference {
					cand.Events++
				}
				if r.Float64() < c.base {
					base.Events++
				}
				if k%max(n/60, 1) == 0 {
					if e := must(p.Test(cand, base)); c.difference < c.margin && e.Passes(0.05) || c.difference > c.margin && e.Fails(0.05) {
						return true
					}
				}
			}
			return false
		})
		t.Logf("%+v needs %d sessions", c, n)
		atLeast(t, "decided", found, runs, 0.7)
		if found > runs*97/100 {
			t.Errorf("%d of %d decided at the number that 80 %% need; the plan is too large", found, runs)
		}
	}
}

func TestPairedKeepsItsErrorRate(t *testing.T) {
	const runs, margin = 200, 0.03
	for _, pass := range []bool{true, false} {
		n := count(runs, func(i int) bool {
			r := seeded(30, i)
			p, err := NewPaired(margin)
			if err != nil {
				panic(err)
			}
			for p.N() < 3000 {
				if err := p.Add(discordant(r, 0.1, -margin)); err != nil {
					panic(err)
				}
				if e := p.Evidence(); pass && e.Passes(0.05) || !pass && e.Fails(0.05) {
					return true
				}
			}
			return false
		})
		atMost(t, map[bool]string{true: "false pass at the margin", false: "false fail at the margin"}[pass], n, runs, 0.05)
	}
}

func TestMeanKeepsItsErrorRateWithACovariate(t *testing.T) {
	const runs = 300
	m := Mean{}
	both := [2]int{}
	for which := range both {
		both[which] = count(runs, func(i int) bool {
			r := seeded(40+uint64(which), i)
			var c, b Moments
			for n := 1; n <= 2000; n++ {
				for _, v := range []*Moments{&c, &b} {
					x := r.NormFloat64()
					if err := v.Add(5+x+0.5*r.NormFloat64(), 1, x); err != nil {
						panic(err)
					}
				}
				if n%20 == 0 {
					e := must(m.Test(&c, &b, 0))
					if which == 0 && e.Fails(0.05) || which == 1 && e.Passes(0.05) {
						return true
					}
				}
			}
			return false
		})
	}
	atMost(t, "false fail at the margin", both[0], runs, 0.05)
	atMost(t, "false pass at the margin", both[1], runs, 0.05)
}

func TestMismatchIsFoundAndNotImagined(t *testing.T) {
	const runs = 200
	found := func(share float64, most int) func(i int) bool {
		return func(i int) bool {
			r, n := seeded(50, i), [2]int{}
			for k := 1; k <= most; k++ {
				if r.Float64() < share {
					n[0]++
				} else {
					n[1]++
				}
				if k%500 == 0 {
					if log, err := Mismatch(n[:], []float64{0.1, 0.9}); err != nil {
						panic(err)
					} else if log > math.Log(1000) {
						return true
					}
				}
			}
			return false
		}
	}
	atMost(t, "as planned", count(runs, found(0.1, 20000)), runs, 0.001)
	atLeast(t, "12 % instead of 10 % within 15,000 sessions", count(runs, found(0.12, 15000)), runs, 0.9)
}
