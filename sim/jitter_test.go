package sim

import (
	"math"
	"testing"
)

// TestJitterIsIndependent holds that the jitter of a step tells nothing of the next
// ones, nor of an engine with the next seed: means over many steps are as spread as
// those of independent draws.
func TestJitterIsIndependent(t *testing.T) {
	const steps, together = 40_000, 40
	draws := func(seed uint64) (z []float64) {
		for i := range uint64(steps) {
			z = append(z, normal(seed, i))
		}
		return z
	}
	seeds := []uint64{0, 1, 2, 7, 8, 1 << 40}
	for k := range uint64(20) {
		seeds = append(seeds, k*0x9e3779b97f4a7c15)
	}
	for i, seed := range seeds {
		z := draws(seed)
		spread, square := 0.0, 0.0
		for b := 0; b < steps; b += together {
			sum := 0.0
			for _, v := range z[b : b+together] {
				sum += v
				square += v * v
			}
			spread += sum * sum / together
		}
		if ratio := spread / (steps / together); ratio < 0.8 || ratio > 1.2 { // six standard errors of 1,000 means: 0.27
			t.Errorf("seed %d: means over %d steps have %.2f times the variance of independent draws", seed, together, ratio)
		}
		if square /= steps; square < 0.95 || square > 1.05 {
			t.Errorf("seed %d: variance %.3f", seed, square)
		}
		other, cross := draws(seeds[(i+1)%len(seeds)]), 0.0
		for j := range z {
			cross += z[j] * other[j]
		}
		if cross /= steps; math.Abs(cross) > 0.03 { // six standard errors
			t.Errorf("seeds %d and %d: correlation %.3f", seed, seeds[(i+1)%len(seeds)], cross)
		}
	}
}
