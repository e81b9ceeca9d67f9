package anytime_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/anytime"
)

// A rollout in two steps of 2,000 sessions each. The candidate is half as slow
// again. Each step has histograms of its own, and the evidence multiplies.
func Example() {
	r := rand.New(rand.NewPCG(1, 2))
	test := anytime.Quantile{P: 0.95, Margin: 1.1}
	var before anytime.Evidence
	for step, weight := range []float64{0.1, 0.5} {
		var candidate, baseline stat.Histogram
		var now anytime.Evidence
		for n := 1; n <= 2000; n++ {
			latency := math.Exp(0.5 * r.NormFloat64())
			h := &baseline
			if r.Float64() < weight {
				h, latency = &candidate, 1.5*latency
			}
			if err := h.Add(latency); err != nil {
				fmt.Println(err)
				return
			}
			if n%100 > 0 {
				continue
			}
			evidence, err := test.Test(&candidate, &baseline)
			if err != nil {
				fmt.Println(err)
				return
			}
			if now = before.Times(evidence); now.Fails(0.05) {
				fmt.Printf("step %d: more than 10 %% slower, after %d sessions\n", step+1, n)
				return
			}
		}
		before = now
		fmt.Printf("step %d: undecided\n", step+1)
	}
	// Output:
	// step 1: undecided
	// step 2: more than 10 % slower, after 1100 sessions
}

func ExampleQuantile_Need() {
	var pilot stat.Histogram
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		if err := pilot.Add(math.Exp(0.5 * r.NormFloat64())); err != nil {
			fmt.Println(err)
			return
		}
	}
	test := anytime.Quantile{P: 0.95, Margin: 1.1}
	need := func(ratio float64) int { return test.Need(&pilot, ratio, anytime.Plan{}) }
	fmt.Printf("a ratio of 1.3 takes about %.0f sessions\n", math.Round(float64(need(1.3))/100)*100)
	fmt.Printf("3,000 sessions detect a ratio of about %.1f\n", stat.LeastEffect(3000, test.Margin, 3, need))
	// Output:
	// a ratio of 1.3 takes about 4700 sessions
	// 3,000 sessions detect a ratio of about 1.3
}
