package contract

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// world simulates one variant: requests at Poisson instants whose TTFT and TPOT
// are lognormal and, if rho is not 0, depend on their predecessors (an AR(1)
// process of their logarithms), as they do in a shared queue.
type world struct {
	n                 int
	sigma, rho, fails float64
	slower            float64 // factor on TTFT and TPOT
}

func (w world) records(variant string, rng *rand.Rand) ([]record.Record, record.Window) {
	rs := make([]record.Record, w.n)
	events := make([]record.Event, 2*w.n)
	due, a, b := 0.0, rng.NormFloat64(), rng.NormFloat64()
	innovation := math.Sqrt(1 - w.rho*w.rho)
	for i := range rs {
		due += rng.ExpFloat64() / 10
		a, b = w.rho*a+innovation*rng.NormFloat64(), w.rho*b+innovation*rng.NormFloat64()
		r := &rs[i]
		*r = record.Record{Shot: int64(i), Variant: variant, Workload: "chat", Stream: true, Due: record.At(time.Duration(due * 1e9)), Outcome: record.OK, Output: record.Tokens(101)}
		first := due*1e9 + 0.2e9*w.slower*math.Exp(w.sigma*a)
		last := first + 100*15e6*w.slower*math.Exp(w.sigma*b)
		r.Events = events[2*i : 2*i+2]
		r.Events[0] = record.Event{At: record.At(time.Duration(first)), Kind: record.KindContent, Tokens: record.Tokens(1)}
		r.Events[1] = record.Event{At: record.At(time.Duration(last)), Kind: record.KindContent, Tokens: record.Tokens(100)}
		if rng.Float64() < w.fails {
			fail(r)
		}
	}
	return rs, record.Window{Variant: variant, Workload: "chat", Start: record.At(0), End: record.At(time.Duration(due * 1e9))}
}

// normal is the p-quantile of the standard normal distribution.
func normal(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// TestErrorRates simulates the gate on systems whose truth is known: a healthy
// candidate must not fail, one exactly at the limit must not pass, more often
// than 1 in 20.
func TestErrorRates(t *testing.T) {
	runs := 200
	if os.Getenv("ASSAY_SLOW") != "" {
		runs = 2000
	}
	iid, tied := world{n: 300, sigma: 0.1, slower: 1}, world{n: 600, sigma: 0.1, rho: 0.5, slower: 1}
	wide, leaky := world{n: 400, sigma: 0.5, slower: 1}, world{n: 800, sigma: 0.1, slower: 1, fails: 0.01}
	with := func(w world, change func(*world)) world { change(&w); return w }
	slow := func(by float64) func(*world) { return func(w *world) { w.slower *= by } }
	for _, tc := range []struct {
		name, need     string
		baseline, cand world
		grade          Grade // whose rate is counted
		most           float64
		least          float64
	}{
		{"A/A fails", "p95(tpot) <= baseline * 1.05", iid, iid, Fail, 0.05, 0},
		{"A/A fails, dependent", "p95(tpot) <= baseline * 1.05", tied, tied, Fail, 0.05, 0},
		{"A/A fails, no margin", "p95(tpot) <= baseline", iid, iid, Fail, 0.05, 0},
		{"A/A fails, no margin, dependent", "p50(ttft) <= baseline", tied, tied, Fail, 0.05, 0},
		{"A/A fails, failures", "share(failed) <= baseline + 0.5 points", leaky, leaky, Fail, 0.05, 0},
		{"A/A fails, tokens", "rate(output_tokens) >= baseline * 0.88", iid, iid, Fail, 0.05, 0},
		{"at the limit passes", "p95(tpot) <= baseline * 1.05", iid, with(iid, slow(1.05)), Pass, 0.05, 0},
		{"at the limit passes, dependent", "p95(tpot) <= baseline * 1.05", tied, with(tied, slow(1.05)), Pass, 0.05, 0},
		{"at the limit passes, median, wide", "p50(ttft) <= baseline * 1.2", wide, with(wide, slow(1.2)), Pass, 0.05, 0},
		{"at the limit passes, mean, wide", "mean(ttft) <= baseline * 1.2", wide, with(wide, slow(1.2)), Pass, 0.05, 0},
		{"at the limit passes, failures", "share(failed) <= baseline + 2 points", leaky, with(leaky, func(w *world) { w.fails += 0.02 }), Pass, 0.05, 0},
		{"at the limit passes, absolute p99", "p99(ttft) <= 800ms", wide, with(wide, slow(4/math.Exp(0.5*normal(0.99)))), Pass, 0.05, 0},
		{"at the limit passes, absolute share", "share(failed) <= 1%", leaky, leaky, Pass, 0.05, 0},
		{"8 % slower fails", "p95(tpot) <= baseline * 1.05", iid, with(iid, slow(1.08)), Fail, 1, 0.25},
		{"8 % slower passes", "p95(tpot) <= baseline * 1.05", iid, with(iid, slow(1.08)), Pass, 0.05, 0},
		{"8 % slower fails, median", "p50(tpot) <= baseline * 1.05", iid, with(iid, slow(1.08)), Fail, 1, 0.7},
		{"8 % slower fails, mean", "mean(tpot) <= baseline * 1.05", iid, with(iid, slow(1.08)), Fail, 1, 0.8},
		{"A/A passes", "p95(tpot) <= baseline * 1.05", iid, iid, Pass, 1, 0.5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &Contract{Clauses: []Clause{{Need: need(t, tc.need)}}}
			rng, hits := source(11), 0
			for range runs {
				br, bw := tc.baseline.records("baseline", rng)
				cr, cw := tc.cand.records("candidate", rng)
				if Evaluate(c, Evidence{Records: append(br, cr...), Windows: []record.Window{bw, cw}, Baseline: "baseline", Candidate: "candidate"}).Grade == tc.grade {
					hits++
				}
			}
			rate := float64(hits) / float64(runs)
			noise := 3 * math.Sqrt(tc.most*(1-tc.most)/float64(runs))
			t.Logf("%s: %s in %.1f %% of %d runs", tc.need, tc.grade, 100*rate, runs)
			if rate > tc.most+noise || rate < tc.least {
				t.Errorf("%s in %.1f %% of %d runs, want at least %.0f %% and at most %.1f %%", tc.grade, 100*rate, runs, 100*tc.least, 100*(tc.most+noise))
			}
		})
	}
}
