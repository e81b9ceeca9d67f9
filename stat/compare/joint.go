package compare

import (
	"math"
	"math/rand/v2"
)

// Jointly tests many hypotheses about the same clusters at once: hypothesis h is that
// the paired differences differences[h] have no sign of their own, one sum for each
// cluster, 0 where a cluster has nothing to say. It returns for each the chance that,
// of all of them, the most conspicuous one would be as far above 0 as this one is, if
// the two variants were interchangeable in every cluster: p-values that are adjusted
// for having looked at all (the single-step maximum of Westfall and Young,
// Resampling-based multiple testing, 1993). What depends on each other costs little,
// as the same loss seen by slot and by turn.
//
// A hypothesis is measured by its sum over the root of its sum of squares, which no
// flip of signs changes. 1,999 patterns of signs of whole clusters are drawn, and
// p = (r+1)/(1,999+1). A hypothesis without a difference has 1.
func Jointly(differences [][]float64, seed uint64) []float64 {
	seen, scale := make([]float64, len(differences)), make([]float64, len(differences))
	clusters := 0
	for h, d := range differences {
		var sum, squares float64
		for _, x := range d {
			sum += x
			squares += x * x
		}
		if clusters = max(clusters, len(d)); squares > 0 {
			scale[h] = 1 / math.Sqrt(squares)
		}
		seen[h] = sum * scale[h]
	}
	reached := make([]int, len(differences))
	r := rand.New(rand.NewPCG(seed, 0x101))
	signs := make([]float64, clusters)
	for range drawnFlips {
		for i := range signs {
			signs[i] = float64(2*r.IntN(2) - 1)
		}
		most := math.Inf(-1)
		for h, d := range differences {
			if scale[h] == 0 {
				continue
			}
			sum := 0.0
			for i, x := range d {
				sum += signs[i] * x
			}
			most = math.Max(most, sum*scale[h])
		}
		for h := range seen {
			if most >= seen[h]-1e-9 {
				reached[h]++
			}
		}
	}
	p := make([]float64, len(differences))
	for h := range p {
		if p[h] = float64(reached[h]+1) / (drawnFlips + 1); scale[h] == 0 {
			p[h] = 1
		}
	}
	return p
}
