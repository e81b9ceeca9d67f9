package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// process is a stationary series whose quantiles and mean are known.
type process struct {
	name     string
	draw     func(r *rand.Rand, n int) []float64
	quantile func(p float64) float64
	mean     float64
}

// autoregressive is exp(sigma*z) with z a Gaussian AR(1) process.
func autoregressive(rho, sigma float64) process {
	return process{
		name: fmt.Sprintf("lognormal AR(1) rho=%v sigma=%v", rho, sigma),
		draw: func(r *rand.Rand, n int) []float64 {
			x := make([]float64, n)
			z := r.NormFloat64()
			for i := range x {
				x[i] = math.Exp(sigma * z)
				z = rho*z + math.Sqrt(1-rho*rho)*r.NormFloat64()
			}
			return x
		},
		quantile: func(p float64) float64 { return math.Exp(sigma * distuv.UnitNormal.Quantile(p)) },
		mean:     math.Exp(sigma * sigma / 2),
	}
}

// queue is the time in an M/M/1 queue of mean service time 1, in its steady
// state.
func queue(load float64) process {
	return process{
		name: fmt.Sprintf("M/M/1 load=%v", load),
		draw: func(r *rand.Rand, n int) []float64 {
			x := make([]float64, n)
			wait := 0.0
			if r.Float64() < load {
				wait = r.ExpFloat64() / (1 - load)
			}
			for i := range x {
				x[i] = wait + r.ExpFloat64()
				wait = math.Max(0, x[i]-r.ExpFloat64()/load)
			}
			return x
		},
		quantile: func(p float64) float64 { return -math.Log(1-p) / (1 - load) },
		mean:     1 / (1 - load),
	}
}

// slow reports whether the long versions were asked for.
func slow() bool { return os.Getenv("ASSAY_SLOW") != "" }

// repetitions is how often a simulation is repeated.
func repetitions(quick, long int) int {
	switch {
	case slow():
		return long
	case raceDetector: // five times slower
		return max(50, quick/4)
	}
	return quick
}

// tally counts how the intervals of a simulation turned out.
type tally struct{ runs, estimable, missed, above, below int }

func (c tally) share(k int) float64 { return float64(k) / float64(c.runs) }

func (c tally) String() string {
	return fmt.Sprintf("estimable %5.1f %%, truth outside a closed interval %4.1f %%, under Lo %4.1f %%, over Hi %4.1f %%",
		100*c.share(c.estimable), 100*c.share(c.missed), 100*c.share(c.above), 100*c.share(c.below))
}

// simulate counts how often the truth lies outside of an estimate, over seeded
// repetitions.
func simulate(runs int, seed uint64, truth float64, draw func(r *rand.Rand) Estimate) tally {
	const workers = 2
	parts := make([]tally, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			c := &parts[w]
			for i := w; i < runs; i += workers {
				e := draw(rand.New(rand.NewPCG(seed, uint64(i))))
				c.runs++
				outside := false
				if e.Lo > truth {
					c.above++
					outside = true
				}
				if e.Hi < truth {
					c.below++
					outside = true
				}
				if e.Estimable() {
					c.estimable++
					if outside {
						c.missed++
					}
				}
			}
		})
	}
	wg.Wait()
	sum := parts[0]
	sum.runs += parts[1].runs
	sum.estimable += parts[1].estimable
	sum.missed += parts[1].missed
	sum.above += parts[1].above
	sum.below += parts[1].below
	return sum
}

// within fails when a share of runs exceeds rate by more than three Monte-Carlo
// standard errors.
func within(t *testing.T, what string, count, runs int, rate float64) {
	t.Helper()
	got, slack := float64(count)/float64(runs), 3*math.Sqrt(rate*(1-rate)/float64(runs))
	if got > rate+slack {
		t.Errorf("%s: %.2f %% of %d runs, want at most %.2f %% + %.2f %% Monte-Carlo error", what, 100*got, runs, 100*rate, 100*slack)
	}
}

func mustSample(x []float64, over int) *Sample {
	s, err := NewSample(x, over)
	if err != nil {
		panic(err)
	}
	return s
}

// series of zeros and ones with P(1) = p whose dependence comes from a Gaussian
// AR(1) process.
func zeroOnes(r *rand.Rand, n int, p, rho float64) []float64 {
	x := autoregressive(rho, 1).draw(r, n)
	q := math.Exp(distuv.UnitNormal.Quantile(p))
	for i := range x {
		if x[i] <= q {
			x[i] = 1
		} else {
			x[i] = 0
		}
	}
	return x
}

// slices of time of unequal length in which amounts of about mean per second
// arrive.
func timeSlices(r *rand.Rand, n int, mean, rho float64) (amounts, seconds []float64) {
	const sigma = 0.3
	x := autoregressive(rho, sigma).draw(r, n)
	for i := range x {
		s := 0.5 + r.Float64()
		amounts = append(amounts, mean*s*x[i]/math.Exp(sigma*sigma/2))
		seconds = append(seconds, s)
	}
	return amounts, seconds
}

func scaled(x []float64, by float64) []float64 {
	for i := range x {
		x[i] *= by
	}
	return x
}

// claim is an estimator on a process, with the error rates that its
// documentation states.
type claim struct {
	name  string
	truth float64
	draw  func(r *rand.Rand, confidence float64) Estimate
	two   float64 // at most so often does a 95 % interval miss the truth
	one   float64 // at most so often is a one-sided 95 % bound wrong, either way
	slow  bool    // only in the long version
}

func quantileClaims() (claims []claim) {
	for _, p := range []process{autoregressive(0, 0.5), autoregressive(0.5, 0.5), autoregressive(0.9, 0.5), queue(0.5), queue(0.8)} {
		for _, n := range []int{300, 1000, 3000} {
			for _, q := range []float64{0.5, 0.95, 0.99} {
				c := claim{fmt.Sprintf("p%v of %s n=%d", 100*q, p.name, n), p.quantile(q), func(r *rand.Rand, confidence float64) Estimate {
					return mustSample(p.draw(r, n), 0).Quantile(q, confidence)
				}, 0.05, 0.05, n != 1000}
				if p.name == queue(0.8).name {
					c.one, c.slow = 0.07, true
				}
				claims = append(claims, c)
			}
		}
	}
	return claims
}

func meanClaims() (claims []claim) {
	for _, p := range []process{autoregressive(0, 0.5), autoregressive(0.5, 0.5), autoregressive(0.9, 0.5)} {
		for _, n := range []int{100, 1000} {
			claims = append(claims, claim{fmt.Sprintf("mean of %s n=%d", p.name, n), p.mean, func(r *rand.Rand, confidence float64) Estimate {
				return mustSample(p.draw(r, n), 0).Mean(confidence)
			}, 0.06, 0.07, p.name == autoregressive(0.5, 0.5).name})
		}
	}
	for _, n := range []int{30, 100, 1000} {
		p := autoregressive(0, 1)
		claims = append(claims, claim{fmt.Sprintf("mean of %s n=%d", p.name, n), p.mean, func(r *rand.Rand, confidence float64) Estimate {
			return mustSample(p.draw(r, n), 0).Mean(confidence)
		}, 0.08, map[int]float64{30: 0.11, 100: 0.09, 1000: 0.06}[n], n != 100})
	}
	for _, n := range []int{60, 300} {
		for _, rho := range []float64{0, 0.5} {
			claims = append(claims, claim{fmt.Sprintf("rate rho=%v n=%d", rho, n), 100, func(r *rand.Rand, confidence float64) Estimate {
				a, s := timeSlices(r, n, 100, rho)
				return Rate(a, s, confidence)
			}, 0.06, 0.07, rho != 0})
		}
	}
	return claims
}

func shareClaims() (claims []claim) {
	for _, p := range []float64{0.01, 0.05, 0.5} {
		for _, n := range []int{300, 1000} {
			claims = append(claims, claim{fmt.Sprintf("share %v n=%d", p, n), p, func(r *rand.Rand, confidence float64) Estimate {
				return Share(zeroOnes(r, n, p, 0), confidence)
			}, 0.05, 0.05, n == 1000})
		}
	}
	claims = append(claims, claim{"share 0.5 rho=0.9 n=1000", 0.5, func(r *rand.Rand, confidence float64) Estimate {
		return Share(zeroOnes(r, 1000, 0.5, 0.9), confidence)
	}, 0.05, 0.05, false})
	for _, ps := range [][2]float64{{0.0167, 0.001}, {0.02, 0.02}, {0.05, 0.02}, {0.5, 0.4}} {
		for _, n := range []int{300, 1000} {
			draw := func(r *rand.Rand, confidence float64) (c, b Estimate) {
				return Share(zeroOnes(r, n, ps[0], 0), confidence), Share(zeroOnes(r, n, ps[1], 0), confidence)
			}
			claims = append(claims, claim{fmt.Sprintf("difference of shares %v n=%d", ps, n), ps[0] - ps[1], func(r *rand.Rand, confidence float64) Estimate {
				return Difference(draw(r, confidence))
			}, 0.055, 0.05, n == 1000}, claim{fmt.Sprintf("ratio of shares %v n=%d", ps, n), ps[0] / ps[1], func(r *rand.Rand, confidence float64) Estimate {
				return Ratio(draw(r, confidence))
			}, 0.055, 0.05, true})
		}
	}
	return claims
}

// ratioClaims lie exactly at a margin of 10 %: a bound on the wrong side of it
// is a wrong decision.
func ratioClaims() (claims []claim) {
	for _, p := range []process{autoregressive(0, 0.5), autoregressive(0, 1), autoregressive(0.5, 0.5), autoregressive(0.9, 0.5), queue(0.5)} {
		for _, n := range []int{300, 1000} {
			pair := func(r *rand.Rand) (c, b *Sample) {
				return mustSample(scaled(p.draw(r, n), 1.1), 0), mustSample(p.draw(r, n), 0)
			}
			for _, q := range []float64{0.5, 0.95, 0.99} {
				claims = append(claims, claim{fmt.Sprintf("ratio of p%v %s n=%d", 100*q, p.name, n), 1.1, func(r *rand.Rand, confidence float64) Estimate {
					c, b := pair(r)
					return Ratio(c.Quantile(q, confidence), b.Quantile(q, confidence))
				}, 0.05, 0.05, q != 0.95 || n != 1000})
			}
			claims = append(claims, claim{fmt.Sprintf("ratio of means %s n=%d", p.name, n), 1.1, func(r *rand.Rand, confidence float64) Estimate {
				c, b := pair(r)
				return Ratio(c.Mean(confidence), b.Mean(confidence))
			}, 0.05, 0.05, n != 300})
		}
	}
	for _, rho := range []float64{0, 0.5, 0.9} {
		claims = append(claims, claim{fmt.Sprintf("ratio of rates rho=%v n=60", rho), 1.1, func(r *rand.Rand, confidence float64) Estimate {
			a, s := timeSlices(r, 60, 110, rho)
			b, u := timeSlices(r, 60, 100, rho)
			return Ratio(Rate(a, s, confidence), Rate(b, u, confidence))
		}, 0.06, 0.06, false})
	}
	return claims
}

// TestErrorRates holds every interval to the error rates that the package
// documents. The one-sided decisions are those that a contract takes: with
// confidence 0.90, "Hi <= limit" passes and "Lo > limit" fails, each at the
// exact boundary where every such decision is wrong.
func TestErrorRates(t *testing.T) {
	runs := repetitions(400, 2000)
	for _, group := range []struct {
		name   string
		claims []claim
	}{{"quantile", quantileClaims()}, {"mean", meanClaims()}, {"share", shareClaims()}, {"ratio", ratioClaims()}} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.claims {
				if c.slow && !slow() {
					continue
				}
				two := simulate(runs, 1, c.truth, func(r *rand.Rand) Estimate { return c.draw(r, 0.95) })
				within(t, c.name+": 95 % interval", two.above+two.below, runs, c.two)
				if 2*two.estimable >= runs {
					within(t, c.name+": closed 95 % interval", two.missed, two.estimable, 0.07)
				}
				one := simulate(runs, 2, c.truth, func(r *rand.Rand) Estimate { return c.draw(r, 0.90) })
				within(t, c.name+": upper bound at 95 %", one.below, runs, c.one)
				within(t, c.name+": lower bound at 95 %", one.above, runs, c.one)
				t.Logf("%-52s both bounds in %5.1f %%, missed by 95 %% interval %4.1f %%, wrong pass %4.1f %%, wrong fail %4.1f %%", c.name,
					100*two.share(two.estimable), 100*two.share(two.above+two.below), 100*one.share(one.below), 100*one.share(one.above))
			}
		})
	}
	if !slow() {
		t.Log("set ASSAY_SLOW=1 for all cells with 2,000 runs each")
	}
}

// TestDependenceIsNeeded shows that the simulation can tell: binomial ranks on
// n itself fail it.
func TestDependenceIsNeeded(t *testing.T) {
	p := autoregressive(0.9, 0.5)
	got := simulate(400, 3, p.quantile(0.95), func(r *rand.Rand) Estimate {
		s := mustSample(p.draw(r, 1000), 0)
		lo, hi := ranks(1000, 0.95, 0.025)
		return Estimate{Lo: s.sorted[lo-1], Hi: s.sorted[hi-1]}
	})
	if got.share(got.missed) < 0.3 {
		t.Errorf("ranks that take dependent observations as independent miss only %.1f %%; the test has no teeth", 100*got.share(got.missed))
	}
}

// TestIndependentDataKeepTheirSize bounds what the judgement of dependence
// costs where there is none.
func TestIndependentDataKeepTheirSize(t *testing.T) {
	runs := repetitions(300, 5000)
	for _, q := range []float64{0.5, 0.95, 0.99} {
		kept, whole := 0.0, 0
		for i := range runs {
			e := mustSample(autoregressive(0, 1).draw(rand.New(rand.NewPCG(4, uint64(i))), 1000), 0).Quantile(q, 0.95)
			kept += e.Effective / 1000 / float64(runs)
			if e.Effective == 1000 {
				whole++
			}
		}
		if kept < 0.93 || float64(whole) < 0.7*float64(runs) {
			t.Errorf("p%v: %.1f %% of the size kept on average, all of it in %d of %d runs", 100*q, 100*kept, whole, runs)
		}
	}
}

// TestDetectableHasThePowerItSays shifts a candidate by the detectable effect
// of typical runs.
func TestDetectableHasThePowerItSays(t *testing.T) {
	runs := repetitions(400, 5000)
	draw := func(i int, by float64) Estimate {
		r := rand.New(rand.NewPCG(5, uint64(i)))
		p := autoregressive(0, 0.5)
		return Ratio(mustSample(scaled(p.draw(r, 500), by), 0).Mean(0.95), mustSample(p.draw(r, 500), 0).Mean(0.95))
	}
	effect := 0.0
	for i := range runs {
		effect += Detectable(draw(i, 1)) / float64(runs)
	}
	found := 0
	for i := range runs {
		if draw(runs+i, 1+effect).Lo > 1 {
			found++
		}
	}
	if got := float64(found) / float64(runs); math.Abs(got-0.8) > 0.02+3*0.4/math.Sqrt(float64(runs)) {
		t.Errorf("a relative change of %.3f is found in %.1f %% of runs, want 80 %%", effect, 100*got)
	}
}
