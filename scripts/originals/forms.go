package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/assay-llm/assay/embed"
	"github.com/assay-llm/assay/stat/diverge"
	"github.com/assay-llm/assay/stat/screen"
)

// side is a published form and ours on one input.
type side struct {
	form, input, theirs, ours string
	holds                     bool // the published form fails here, and ours does not
}

// forms plays all of them.
func forms(runs int, seed uint64) []side {
	return slices.Concat(drift(runs, source(seed, 1)), logCosine(source(seed, 2)), breakpoint(source(seed, 3)), overNorm(source(seed, 4)), consistency(runs, source(seed, 5)))
}

// classes draws n samples of one distribution over behaviours.
func classes(r *rand.Rand, p []float64, n int) []int {
	out := make([]int, len(p))
	for range n {
		u, k := r.Float64(), 0
		for ; k < len(p)-1 && u >= p[k]; k++ {
			u -= p[k]
		}
		out[k]++
	}
	return out
}

// drift holds a model against itself.
func drift(runs int, r *rand.Rand) (out []side) {
	p := []float64{0.7, 0.15, 0.1, 0.03, 0.02}
	for _, n := range []int{5, 20, 200} {
		scores, above, excess, found := make([]float64, runs), 0, 0.0, 0
		for i := range runs {
			a, b := classes(r, p, n), classes(r, p, n)
			scores[i] = must(diverge.Between(diverge.Smooth(a), diverge.Smooth(b))).Composite()
			above += one(scores[i] > 0.12)
			e := must(diverge.Drift([][]int{a}, [][]int{b}, diverge.Distance.Composite, r.Uint64()))
			excess += e.Value() / float64(runs)
			found += one(e.P <= 0.05)
		}
		mean := 0.0
		for _, x := range scores {
			mean += x / float64(runs)
		}
		slices.Sort(scores)
		out = append(out, side{
			form: "drift = 1 − cosine + KL, above 0.12", input: fmt.Sprintf("a model beside itself, %d samples a side in 5 classes", n),
			theirs: fmt.Sprintf("mean %.3f, 95th percentile %.2f; above 0.12 in %s %%", mean, scores[runs*95/100], percent(above, runs)),
			ours:   fmt.Sprintf("excess over dealing anew %+.3f; p at most 0.05 in %s %%", excess, percent(found, runs)),
			holds:  (n == 200 || 4*above > runs) && math.Abs(excess) < 0.1 && share(found, runs) <= 0.05+4*math.Sqrt(0.05*0.95/float64(runs)),
		})
	}
	return out
}

// logCosine compares distributions over a vocabulary that have nothing in common.
func logCosine(r *rand.Rand) []side {
	draw := func() []float64 {
		p, sum := make([]float64, 32_000), 0.0
		for i := range p {
			p[i] = math.Exp(3 * r.NormFloat64())
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
		return p
	}
	p, q := draw(), draw()
	d := must(diverge.Between(p, q))
	c := diverge.LogCosine(p, q)
	return []side{{
		form: "cosine of log-probabilities below 0.87, or 0.82", input: fmt.Sprintf("two independent distributions over 32,000 tokens, KL %.1f", d.KL),
		theirs: fmt.Sprintf("cosine %.3f: alike", c),
		ours:   fmt.Sprintf("cosine of probabilities %.3f, Jensen–Shannon distance %.2f, total variation %.2f", d.Cosine, d.Root(), d.TV),
		holds:  c > 0.87 && d.Cosine < 0.05 && d.Root() > 0.9,
	}}
}

// breakpoint looks for the position from which attention is more even. Of all
// three series the published form says 0.
func breakpoint(r *rand.Rand) (out []side) {
	const n, threshold = 128, 0.2
	for _, c := range []struct {
		input string
		share func(i int) float64 // of the greatest possible entropy
		at    int                 // where it changes; 0: nowhere
	}{
		{"attention that is as even everywhere, 70 % of the possible", func(int) float64 { return 0.7 }, 0},
		{"nearly even attention to all keys, 95 % of the possible", func(int) float64 { return 0.95 }, 0},
		{"attention at 60 % of the possible, from position 80 on 90 %", func(i int) float64 {
			if i >= 80 {
				return 0.9
			}
			return 0.6
		}, 80},
	} {
		raw, shares := make([]float64, n), make([]float64, n)
		for i := range raw {
			shares[i] = math.Min(c.share(i)+0.02*r.NormFloat64(), 1)
			raw[i] = shares[i] * math.Log(float64(i+2))
		}
		theirs, ours := screen.SteepRise(raw, threshold), must(screen.Changes(shares, 0))
		text, right := "none", len(ours) == 0 && c.at == 0
		if len(ours) > 0 {
			text = fmt.Sprintf("a break at %d", ours[0])
			right = len(ours) == 1 && ours[0] == c.at
		}
		out = append(out, side{
			form: "argmax(gradient of entropy > 0.2)", input: c.input,
			theirs: fmt.Sprintf("a break at %d", theirs), ours: text, holds: theirs == 0 && right,
		})
	}
	return out
}

// overNorm divides vectors by a power of their length.
func overNorm(r *rand.Rand) []side {
	draw := func() []float32 {
		scale := math.Exp(0.3 * r.NormFloat64())
		v := make([]float32, 384)
		for i := range v {
			v[i] = float32(scale * (0.8 + r.NormFloat64())) // a common direction, as embedders have
		}
		return v
	}
	const queries, documents, power = 20, 50, 0.5
	docs := make([][]float32, documents)
	for i := range docs {
		docs[i] = draw()
	}
	dot := func(a, b []float32) (sum float64) {
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	}
	first := func(q []float32, of func(a, b []float32) float64, by float64) (at int) {
		for i := range docs {
			if of(q, embed.OverNorm(docs[i], by)) > of(q, embed.OverNorm(docs[at], by)) {
				at = i
			}
		}
		return at
	}
	most, moved, dots, unrelated := 0.0, 0, 0, 0.0
	for range queries {
		q := draw()
		for _, d := range docs {
			most = math.Max(most, math.Abs(embed.Cosine(embed.OverNorm(q, power), embed.OverNorm(d, power))-embed.Cosine(q, d)))
			unrelated += embed.Cosine(q, d) / queries / documents
		}
		moved += one(first(q, embed.Cosine, power) != first(q, embed.Cosine, 0))
		dots += one(first(q, dot, power) != first(q, dot, 0))
	}
	scale := embed.Scale{Mean: unrelated}
	return []side{{
		form: "calibration q/‖q‖^0.5", input: fmt.Sprintf("%d queries among %d unrelated vectors of 384 numbers", queries, documents),
		theirs: fmt.Sprintf("cosines change by at most %.0e, %d first places; by dot product %d of %d", most, moved, dots, queries),
		ours:   fmt.Sprintf("on the embedder's scale unrelated texts, at a cosine of %.2f, are at %.2f, and the same text at %.0f", unrelated, scale.Of(unrelated), scale.Of(1)),
		holds:  most < 1e-6 && moved == 0 && dots > 0,
	}}
}

// consistency asks one question five times.
func consistency(runs int, r *rand.Rand) (out []side) {
	runs = max(runs, 1000) // they cost nothing
	for _, p := range [][]float64{{0.75, 0.25}, {0.4, 0.3, 0.2, 0.1}} {
		truth, modal, agree, below := 0.0, 0.0, 0.0, 0
		for _, x := range p {
			truth += x * x
		}
		for range runs {
			s := must(diverge.Classes(classes(r, p, 5)))
			modal += s.Modal / float64(runs)
			agree += s.Agreement / float64(runs)
			below += one(s.Modal < 0.62)
		}
		slack := 4 * math.Sqrt(0.1/float64(runs))
		out = append(out, side{
			form: "share of the most frequent of 5 answers, below 0.62", input: fmt.Sprintf("answers with probabilities %v, whose largest is %.2f and whose pairs agree in %.3f", p, p[0], truth),
			theirs: fmt.Sprintf("mean %.3f; below 0.62 in %s %%", modal, percent(below, runs)),
			ours:   fmt.Sprintf("agreement of pairs %.3f on average, to be compared over many questions", agree),
			holds:  modal > p[0]+0.01 && 10*below > runs && 20*below < 19*runs && math.Abs(agree-truth) < slack,
		})
	}
	return out
}
