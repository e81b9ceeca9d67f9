package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/assay-llm/assay/contract"
)

// inClusters are labelled cases in clusters, of which the judge is right in all cases
// or in none, in all with the chance right.
func inClusters(r *rand.Rand, clusters, each int, right float64) (all []Observation) {
	nan := math.NaN()
	for g := range clusters {
		hit := r.Float64() < right
		for i := range each {
			o := Observation{Case: fmt.Sprint(g, i), Cluster: fmt.Sprint(g), Human: float64(i % 2), Again: nan, Stored: nan, Longer: nan, HumanLevel: -1, JudgeLevel: -1, AgainLevel: -1}
			o.Judge = o.Human
			if !hit {
				o.Judge = 1 - o.Human
			}
			all = append(all, o)
		}
	}
	return all
}

// A document's cases are no independent proof of fitness: a judge that is right in
// all cases of 70 % of the documents is not called fit for a demand of 80 %, and one
// document proves nothing, however many cases it has.
func TestFitnessIsProvenByClusters(t *testing.T) {
	s := &Scale{Labels: []string{"bad", "good"}, Positive: []string{"good"}}
	if in := Calibrate(inClusters(rand.New(rand.NewPCG(1, 1)), 1, 200, 1), nil, s, Demands{}); in.Grade == contract.Pass {
		t.Errorf("200 cases of one document: %v (%s)", in.Grade, in.Reason)
	}
	for _, clusters := range []int{10, 25, 60} {
		fit := 0
		for seed := range 80 {
			if in := Calibrate(inClusters(rand.New(rand.NewPCG(uint64(seed), 3)), clusters, 20, 0.7), nil, s, Demands{Least: 0.8}); in.Grade == contract.Pass {
				fit++
			}
		}
		if fit > 8 {
			t.Errorf("%d documents, right in 70 %%: fit in %d of 80", clusters, fit)
		}
	}
	if in := Calibrate(inClusters(rand.New(rand.NewPCG(1, 1)), 40, 20, 1), nil, s, Demands{}); in.Grade != contract.Pass || !strings.Contains(in.Reason, "was not looked at") {
		t.Errorf("right in all of 40 documents: %v (%s)", in.Grade, in.Reason)
	}
}
