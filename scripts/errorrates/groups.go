package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/anytime"
	"github.com/assay-llm/assay/stat/compare"
)

const (
	latencyMargin = 1.18 // the candidate may be 18 % slower
	latencyBeyond = 1.5  // and is 50 % slower
	confidence    = 1 - 2*nominal
)

var groups = []group{
	{
		name: "Latencies", settings: [2]string{"light tail", "heavy tail"}, draw: drawLatencies,
		doc: "Lognormal, sigma 0.5 (light) or 1.2 (heavy). Sessions have 1 to 15 turns, 64 % of the variance of a logarithm is the session's. " +
			"A covariate known before explains a third of that. The margin is 18 %; worse is 50 %.",
		methods: []method{
			{name: "anytime.Quantile p95", peeks: true, margin: true, decide: quantile(0.95, false)},
			{name: "anytime.Quantile p99", peeks: true, margin: true, every: 2, decide: quantile(0.99, false)},
			{name: "anytime.Mean, relative", peeks: true, margin: true, decide: mean(false)},
			{name: "anytime.Mean, relative, with covariate", peeks: true, margin: true, decide: mean(true)},
			{name: "stat.Ratio of p95", margin: true, every: 4, decide: ratioOfQuantiles},
			{name: "stat.Ratio of compare.Mean", margin: true, decide: ratioOfMeans},
			{name: "stat.Ratio of compare.Bootstrap of the mean", margin: true, every: 5, most: 3000, decide: bootstrap},
			{name: "compare.MannWhitney", every: 4, decide: mannWhitney},
			{name: "compare.KolmogorovSmirnov", every: 4, most: 3000, decide: kolmogorovSmirnov},
			{name: "p99 above baseline + 18 %", naive: true, decide: p99Rule(false)},
			{name: "p99 above baseline + 18 %, looked at all the time", naive: true, peeks: true, decide: p99Rule(true)},
			{name: "t-test on requests", naive: true, decide: welch(false)},
			{name: "t-test on requests, looked at all the time", naive: true, peeks: true, decide: welch(true)},
			{name: "anytime.Quantile p95 on requests", naive: true, peeks: true, margin: true, every: 4, decide: quantile(0.95, true)},
		},
	},
	{
		name: "Bad events", settings: [2]string{"10 % of sessions", "1 % of sessions"}, draw: drawEvents,
		doc: "A session is bad with a probability of 10 % or 1 %; in a bad session each of 8 turns fails with 70 %. The margin is half of the baseline's rate more " +
			"(5 or 0.5 percentage points; a ratio of 1.5); worse is three times the rate.",
		methods: []method{
			{name: "anytime.Proportion", peeks: true, margin: true, every: 2, decide: proportion},
			{name: "anytime.Exceedance", peeks: true, margin: true, decide: exceedance},
			{name: "compare.Proportions", margin: true, decide: scoreProportions},
			{name: "stat.Difference of stat.Share", margin: true, every: 4, decide: newcombe},
			{name: "z-test on requests", naive: true, margin: true, decide: zTest(false)},
			{name: "z-test on requests, looked at all the time", naive: true, peeks: true, margin: true, decide: zTest(true)},
		},
	},
	{
		name: "Paired scores", settings: [2]string{"20 % differ", "4 % differ"}, draw: drawPairs,
		doc: "Right or wrong on the same cases; 20 % or 4 % of the pairs differ. With sessions, n are documents with 8 questions each that go together in half of the cases. " +
			"The margin is 3 percentage points; worse is 8 (at 4 %: 4).",
		methods: []method{
			{name: "anytime.Paired", peeks: true, margin: true, decide: paired},
			{name: "compare.Tango, one case a document", margin: true, decide: tango(false)},
			{name: "compare.Mean of differences", margin: true, decide: pairedMean},
			{name: "compare.Randomise", margin: true, every: 4, most: 3000, decide: randomise},
			{name: "compare.McNemar, one case a document", decide: mcNemar(false)},
			{name: "Tango on all questions", naive: true, margin: true, decide: tango(true)},
			{name: "McNemar on all questions", naive: true, decide: mcNemar(true)},
		},
	},
}

// latencies of both variants, candidate first; a slice for each session.
type latencies struct {
	turns     [2][][]float64
	covariate [2][]float64
}

func drawLatencies(r *rand.Rand, s setting, t truth, n int) any {
	sigma := 0.5
	if s.heavy {
		sigma = 1.2
	}
	ratio := [truths]float64{1, latencyMargin, latencyBeyond}[t]
	var d latencies
	for arm, scale := range [2]float64{ratio, 1} {
		d.turns[arm], d.covariate[arm] = make([][]float64, n), make([]float64, n)
		for i := range n {
			x := r.NormFloat64()
			own := math.Sqrt(1.0/3)*x + math.Sqrt(2.0/3)*r.NormFloat64()
			turns := 1
			if s.sessions {
				turns = 1 + r.IntN(15)
			}
			d.covariate[arm][i] = x
			d.turns[arm][i] = make([]float64, turns)
			for k := range turns {
				d.turns[arm][i][k] = scale * math.Exp(sigma*(0.8*own+0.6*r.NormFloat64()))
			}
		}
	}
	return &d
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func verdict(e anytime.Evidence) (fail, pass bool) { return e.Fails(nominal), e.Passes(nominal) }

// against compares an interval of a ratio or difference with a margin.
func against(e stat.Estimate, margin float64) (fail, pass bool) {
	return e.Lo > margin, e.Hi < margin
}

func quantile(p float64, requests bool) func(any, settings) verdicts {
	return func(data any, s settings) verdicts {
		d := data.(*latencies)
		test := anytime.Quantile{P: p, Margin: latencyMargin}
		var h [2]stat.Histogram
		return peek(s, func(from, to int) (bool, bool) {
			for arm := range h {
				for _, session := range d.turns[arm][from:to] {
					if !requests {
						must(0, h[arm].Add(session...))
						continue
					}
					for _, x := range session {
						must(0, h[arm].Add(x))
					}
				}
			}
			return verdict(must(test.Test(&h[0], &h[1])))
		})
	}
}

func mean(covariate bool) func(any, settings) verdicts {
	return func(data any, s settings) verdicts {
		d := data.(*latencies)
		var m [2]anytime.Moments
		return peek(s, func(from, to int) (bool, bool) {
			for arm := range m {
				for i := from; i < to; i++ {
					sum, x := 0.0, 0.0
					for _, v := range d.turns[arm][i] {
						sum += v
					}
					if covariate {
						x = d.covariate[arm][i]
					}
					must(0, m[arm].Add(sum, float64(len(d.turns[arm][i])), x))
				}
			}
			return verdict(must(anytime.Mean{Relative: true}.Test(&m[0], &m[1], latencyMargin)))
		})
	}
}

func ratioOfQuantiles(data any, s settings) verdicts {
	d := data.(*latencies)
	return once(s, func(n int) (bool, bool) {
		var e [2]stat.Estimate
		for arm := range e {
			e[arm] = must(stat.NewSample(slices.Concat(d.turns[arm][:n]...), 0)).Quantile(0.95, confidence)
		}
		return against(stat.Ratio(e[0], e[1]), latencyMargin)
	})
}

func ratioOfMeans(data any, s settings) verdicts {
	d := data.(*latencies)
	return once(s, func(n int) (bool, bool) {
		return against(stat.Ratio(compare.Mean(d.turns[0][:n], confidence), compare.Mean(d.turns[1][:n], confidence)), latencyMargin)
	})
}

// bootstrap has one interval for each variant and combines them.
func bootstrap(data any, s settings) verdicts {
	d := data.(*latencies)
	b := compare.Bootstrap{Repeats: 400}
	average := func(x []float64) float64 {
		sum := 0.0
		for _, v := range x {
			sum += v
		}
		return sum / float64(len(x))
	}
	return once(s, func(n int) (bool, bool) {
		return against(stat.Ratio(b.Clusters(d.turns[0][:n], average, confidence), b.Clusters(d.turns[1][:n], average, confidence)), latencyMargin)
	})
}

func mannWhitney(data any, s settings) verdicts {
	d := data.(*latencies)
	return once(s, func(n int) (bool, bool) {
		t, _ := compare.MannWhitney(d.turns[0][:n], d.turns[1][:n], confidence)
		return t.Greater <= nominal, false
	})
}

func kolmogorovSmirnov(data any, s settings) verdicts {
	d := data.(*latencies)
	return once(s, func(n int) (bool, bool) {
		return compare.KolmogorovSmirnov(d.turns[0][:n], d.turns[1][:n], 1).P <= nominal, false
	})
}

func p99Rule(peeks bool) func(any, settings) verdicts {
	return func(data any, s settings) verdicts {
		d := data.(*latencies)
		var h [2]stat.Histogram
		v := peek(s, func(from, to int) (bool, bool) {
			for arm := range h {
				for _, session := range d.turns[arm][from:to] {
					for _, x := range session {
						must(0, h[arm].Add(x))
					}
				}
			}
			return h[0].Quantile(0.99) > latencyMargin*h[1].Quantile(0.99), false
		})
		if peeks {
			return v
		}
		h = [2]stat.Histogram{}
		at := 0
		return once(s, func(n int) (bool, bool) {
			for arm := range h {
				for _, session := range d.turns[arm][at:n] {
					for _, x := range session {
						must(0, h[arm].Add(x))
					}
				}
			}
			at = n
			return h[0].Quantile(0.99) > latencyMargin*h[1].Quantile(0.99), false
		})
	}
}

// sums is what a textbook test knows.
type sums struct{ n, x, xx float64 }

func (m *sums) add(x float64) { m.n, m.x, m.xx = m.n+1, m.x+x, m.xx+x*x }

func (m sums) meanAndError2() (mean, error2 float64) {
	mean = m.x / m.n
	return mean, (m.xx/m.n - mean*mean) / (m.n - 1)
}

const oneSided = 1.6448536269514722

func welch(peeks bool) func(any, settings) verdicts {
	return func(data any, s settings) verdicts {
		d := data.(*latencies)
		var m [2]sums
		step := func(from, to int) (bool, bool) {
			for arm := range m {
				for _, session := range d.turns[arm][from:to] {
					for _, x := range session {
						m[arm].add(x)
					}
				}
			}
			a, va := m[0].meanAndError2()
			b, vb := m[1].meanAndError2()
			return (a-b)/math.Sqrt(va+vb) > oneSided, false
		}
		if peeks {
			return peek(s, step)
		}
		at := 0
		return once(s, func(n int) (bool, bool) {
			from := at
			at = n
			return step(from, n)
		})
	}
}

// events of both variants: how many turns of each session failed, and how many
// there were.
type events struct {
	bad    [2][]int
	turns  int
	margin float64
}

func drawEvents(r *rand.Rand, s setting, t truth, n int) any {
	base := 0.1
	if s.heavy {
		base = 0.01
	}
	d := events{turns: 1, margin: base / 2}
	each := 1.0
	if s.sessions {
		d.turns, each = 8, 0.7
	}
	for arm, p := range [2]float64{base * [truths]float64{1, 1.5, 3}[t], base} {
		d.bad[arm] = make([]int, n)
		for i := range n {
			if r.Float64() >= p {
				continue
			}
			for d.bad[arm][i] == 0 { // a bad session has at least one
				for range d.turns {
					if r.Float64() < each {
						d.bad[arm][i]++
					}
				}
			}
		}
	}
	return &d
}

// sessionsWithEvent counts in part of the sessions.
func sessionsWithEvent(bad []int) (n int) {
	for _, k := range bad {
		if k > 0 {
			n++
		}
	}
	return n
}

func proportion(data any, s settings) verdicts {
	d := data.(*events)
	test := anytime.Proportion{Margin: d.margin}
	var c [2]anytime.Count
	return peek(s, func(from, to int) (bool, bool) {
		for arm := range c {
			c[arm].Events += float64(sessionsWithEvent(d.bad[arm][from:to]))
			c[arm].N += float64(to - from)
		}
		return verdict(must(test.Test(c[0], c[1])))
	})
}

func exceedance(data any, s settings) verdicts {
	d := data.(*events)
	test := anytime.Exceedance{Margin: 1.5, Weight: 0.5}
	var n [2]float64
	return peek(s, func(from, to int) (bool, bool) {
		for arm := range n {
			n[arm] += float64(sessionsWithEvent(d.bad[arm][from:to]))
		}
		return verdict(must(test.Test(n[0], n[1])))
	})
}

func scoreProportions(data any, s settings) verdicts {
	d := data.(*events)
	return once(s, func(n int) (bool, bool) {
		return against(compare.Proportions(sessionsWithEvent(d.bad[0][:n]), n, sessionsWithEvent(d.bad[1][:n]), n, confidence), d.margin)
	})
}

func newcombe(data any, s settings) verdicts {
	d := data.(*events)
	return once(s, func(n int) (bool, bool) {
		var e [2]stat.Estimate
		for arm := range e {
			x := make([]float64, n)
			for i, k := range d.bad[arm][:n] {
				x[i] = math.Min(float64(k), 1)
			}
			e[arm] = stat.Share(x, confidence)
		}
		return against(stat.Difference(e[0], e[1]), d.margin)
	})
}

func zTest(peeks bool) func(any, settings) verdicts {
	return func(data any, s settings) verdicts {
		d := data.(*events)
		// Of turns the rate is lower, and its margin likewise.
		margin := d.margin
		if d.turns > 1 {
			margin *= 0.7
		}
		var k [2]float64
		at := 0
		step := func(from, to int) (bool, bool) {
			for arm := range k {
				for _, bad := range d.bad[arm][from:to] {
					k[arm] += float64(bad)
				}
			}
			n := float64(to * d.turns)
			a, b := k[0]/n, k[1]/n
			se := math.Sqrt((a*(1-a) + b*(1-b)) / n)
			return a-b-margin > oneSided*se, a-b-margin < -oneSided*se
		}
		if peeks {
			return peek(s, step)
		}
		return once(s, func(n int) (bool, bool) {
			from := at
			at = n
			return step(from, n)
		})
	}
}

// pairs are differences of right and wrong answers, by document.
type pairs struct{ d [][]float64 }

const pairedMargin = 0.03

func drawPairs(r *rand.Rand, s setting, t truth, n int) any {
	differ, worse := 0.2, 0.08
	if s.heavy {
		differ, worse = 0.04, 0.04
	}
	mean := [truths]float64{0, -pairedMargin, -worse}[t]
	answer := func() float64 {
		switch u := r.Float64(); {
		case u < (differ+mean)/2:
			return 1
		case u < differ:
			return -1
		}
		return 0
	}
	d := pairs{make([][]float64, n)}
	for i := range n {
		turns := 1
		if s.sessions {
			turns = 8
		}
		d.d[i] = make([]float64, turns)
		whole := answer()
		for k := range turns {
			if d.d[i][k] = whole; k > 0 && r.Float64() < 0.5 {
				d.d[i][k] = answer()
			}
		}
	}
	return &d
}

func paired(data any, s settings) verdicts {
	d := data.(*pairs)
	p := must(anytime.NewPaired(pairedMargin))
	return peek(s, func(from, to int) (bool, bool) {
		for _, doc := range d.d[from:to] {
			sum := 0.0
			for _, x := range doc {
				sum += x
			}
			must(0, p.Add(sum/float64(len(doc))))
		}
		return verdict(p.Evidence())
	})
}

// discordant counts the pairs that differ, of the first or of all questions.
func discordant(docs [][]float64, all bool) (better, worse, n int) {
	for _, doc := range docs {
		if !all {
			doc = doc[:1]
		}
		for _, x := range doc {
			n++
			switch {
			case x > 0:
				better++
			case x < 0:
				worse++
			}
		}
	}
	return better, worse, n
}

func tango(all bool) func(any, settings) verdicts {
	return func(data any, s settings) verdicts {
		d := data.(*pairs)
		return once(s, func(n int) (bool, bool) {
			better, worse, cases := discordant(d.d[:n], all)
			e := compare.Tango(better, worse, cases, confidence)
			return e.Hi < -pairedMargin, e.Lo > -pairedMargin
		})
	}
}

func pairedMean(data any, s settings) verdicts {
	d := data.(*pairs)
	return once(s, func(n int) (bool, bool) {
		e := compare.Mean(d.d[:n], confidence)
		return e.Hi < -pairedMargin, e.Lo > -pairedMargin
	})
}

func randomise(data any, s settings) verdicts {
	d := data.(*pairs)
	return once(s, func(n int) (bool, bool) {
		t := compare.Randomise(d.d[:n], -pairedMargin, 1)
		return t.Less <= nominal, t.Greater <= nominal
	})
}

func mcNemar(all bool) func(any, settings) verdicts {
	return func(data any, s settings) verdicts {
		d := data.(*pairs)
		return once(s, func(n int) (bool, bool) {
			better, worse, _ := discordant(d.d[:n], all)
			return compare.McNemar(better, worse, false).Less <= nominal, false
		})
	}
}
