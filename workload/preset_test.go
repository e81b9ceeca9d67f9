package workload

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
)

// planned are the sizes of the first n shots of a plan, without their texts.
type planned struct {
	input, output []float64
	gaps          []float64 // of an open loop, in seconds
	hits          float64   // share of blocks that were asked before
}

const blockTokens = 512

func sizes(p *Plan, n int) (out planned) {
	w := p.measured.writer()
	type block struct{ group, at int64 }
	seen := map[block]bool{}
	hits, blocks := 0, 0
	for i := range int64(n) {
		tokens, shared, group := w.length(alone(i))
		out.input = append(out.input, float64(tokens))
		out.output = append(out.output, float64(w.shot(alone(i), false).MaxTokens))
		blocks += int((tokens + blockTokens - 1) / blockTokens)
		for k := range shared / blockTokens {
			b := block{group, k}
			if seen[b] {
				hits++
			}
			seen[b] = true
		}
	}
	out.hits = float64(hits) / float64(blocks)
	if p.Open() {
		before := 0.0
		for i, due := range p.dues() {
			if i > 0 {
				out.gaps = append(out.gaps, due.Seconds()-before)
			}
			before = due.Seconds()
		}
	}
	return out
}

func percentile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-2)
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// rankCorrelation is Spearman's, with mean ranks for ties.
func rankCorrelation(xs, ys []float64) float64 {
	rank := func(xs []float64) []float64 {
		order := make([]int, len(xs))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			switch {
			case xs[a] < xs[b]:
				return -1
			case xs[a] > xs[b]:
				return 1
			}
			return 0
		})
		out := make([]float64, len(xs))
		for i := 0; i < len(order); {
			j := i
			for j < len(order) && xs[order[j]] == xs[order[i]] {
				j++
			}
			for k := i; k < j; k++ {
				out[order[k]] = float64(i+j-1) / 2
			}
			i = j
		}
		return out
	}
	a, b := rank(xs), rank(ys)
	mean := float64(len(xs)-1) / 2
	ab, aa, bb := 0.0, 0.0, 0.0
	for i := range a {
		ab += (a[i] - mean) * (b[i] - mean)
		aa += (a[i] - mean) * (a[i] - mean)
		bb += (b[i] - mean) * (b[i] - mean)
	}
	return ab / math.Sqrt(aa*bb)
}

// target is what a preset must give.
type target struct {
	input, output map[string]float64 // mean, p50, p90, p99
	rate, cv      float64            // of the gaps; 0: closed loop
	rho, hits     float64
}

func uniformTarget(lo, hi float64) map[string]float64 {
	at := func(p float64) float64 { return lo + p*(hi-lo) }
	return map[string]float64{"mean": at(0.5), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99)}
}

// lengthsOf reads the figures of a published summary.
func lengthsOf(t *testing.T, summary map[string]any, name string) map[string]float64 {
	t.Helper()
	all, ok := summary[name].(map[string]any)
	if !ok {
		t.Fatalf("no figures of %s", name)
	}
	out := map[string]float64{}
	for _, k := range []string{"mean", "p50", "p90", "p99"} {
		if out[k], ok = all[k].(float64); !ok {
			t.Fatalf("no %s of %s", k, name)
		}
	}
	return out
}

// TestPresetsReproduceTheirTraces: over 10⁵ planned requests, lengths are within
// 5 % of the trace's mean, p50, p90 and p99, the CV of gaps within 10 %, the rank
// correlation within 0.05, and the share of blocks asked before within 2 points.
func TestPresetsReproduceTheirTraces(t *testing.T) {
	text, err := os.ReadFile("../../shared/data/traces/workload_presets.json")
	if err != nil {
		t.Skipf("public traces are not here: %v", err)
	}
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	summaries := map[string]map[string]any{}
	for name, r := range raw {
		var s map[string]any
		if json.Unmarshal(r, &s) == nil {
			summaries[name] = s
		}
	}
	of := func(name string, cv, hits float64) target {
		s := summaries[name]
		rho, _ := s["spearman_in_out"].(float64)
		rate, _ := s["rate_rps"].(float64)
		if cv == 0 {
			rate = 0
		}
		return target{input: lengthsOf(t, s, "input_tokens"), output: lengthsOf(t, s, "output_tokens"), rate: rate, cv: cv, rho: rho, hits: hits}
	}
	for name, want := range map[string]target{
		"chat":            of("azure_conv_2023", 1.094, 0),
		"agent":           of("mooncake_synthetic", 1.01, 0.64),
		"long-tail":       of("mooncake_conversation", 2, 0.366), // its own gaps are hidden by a coarse clock
		"batch":           of("etalon_arxiv_summarization", 0, 0),
		"rag-qa":          {input: uniformTarget(12_288, 32_768), output: uniformTarget(128, 512)},
		"code-completion": {input: uniformTarget(512, 2048), output: uniformTarget(64, 256)},
	} {
		checkPreset(t, name, 1, want)
		if os.Getenv("ASSAY_SLOW") != "" {
			for seed := range uint64(5) {
				checkPreset(t, name, 100+seed, want)
			}
		}
	}
}

func checkPreset(t *testing.T, name string, seed uint64, want target) {
	t.Helper()
	const n = 100_000
	p, err := New("w", decode(t, fmt.Sprintf("preset: %s\nrequests: %d\n", name, n)), nil, seed, "")
	if err != nil {
		t.Fatal(err)
	}
	got := sizes(p, n)
	within := func(what string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tolerance) {
			t.Errorf("%s, seed %d: %s = %.4g, want %.4g ± %.3g", name, seed, what, got, want, tolerance)
		}
	}
	for what, xs := range map[string][]float64{"input": got.input, "output": got.output} {
		figures := want.input
		if what == "output" {
			figures = want.output
		}
		mean, _ := momentsOf(xs)
		sorted := slices.Sorted(slices.Values(xs))
		within(what+" mean", mean, figures["mean"], 0.05*figures["mean"])
		for _, q := range []float64{50, 90, 99} {
			key := fmt.Sprintf("p%v", q)
			within(what+" "+key, percentile(sorted, q/100), figures[key], 0.05*figures[key])
		}
	}
	within("rank correlation", rankCorrelation(got.input, got.output), want.rho, 0.05)
	within("block hits", got.hits, want.hits, 0.02)
	if p.Open() != (want.rate > 0) {
		t.Fatalf("%s: open loop %t", name, p.Open())
	}
	if want.rate > 0 {
		_, cv := momentsOf(got.gaps)
		within("CV of gaps", cv, want.cv, 0.1*want.cv)
		within("rate", p.Rate(), want.rate, 0.02*want.rate)
	}
}

// TestPresetsCanBeOverridden: what the suite says itself stays, and takes with it
// what belongs to it.
func TestPresetsCanBeOverridden(t *testing.T) {
	base := Spec{Preset: "agent", Requests: 10}
	full := base.resolved()
	if full.Arrivals.Poisson == nil || !full.Prompts.Synthetic.Set() || !full.Output.Set() || full.Prefix.Share == 0 || full.Correlation == 0 {
		t.Fatalf("the preset fills in too little: %+v", full)
	}
	s := base
	s.Arrivals = Arrivals{Concurrency: 4}
	if r := s.resolved(); r.Arrivals.Concurrency != 4 || r.Arrivals.Poisson != nil || r.Prefix.Share == 0 {
		t.Errorf("arrivals: %+v", r)
	}
	s = base
	s.Prompts.Synthetic = Fixed[config.Count](8)
	if r := s.resolved(); r.Prompts.Synthetic.Value != 8 || r.Prefix != (Prefix{}) || r.Correlation != 0 || !r.Output.Set() {
		t.Errorf("prompts: %+v", r)
	}
	s = base
	s.Output = Fixed[config.Count](8)
	if r := s.resolved(); r.Output.Value != 8 || r.Correlation != 0 || r.Prefix.Share == 0 {
		t.Errorf("output: %+v", r)
	}
	s = base
	s.Prefix = Prefix{Tokens: 9}
	s.Correlation = 0.3
	if r := s.resolved(); r.Prefix != (Prefix{Tokens: 9}) || r.Correlation != 0.3 {
		t.Errorf("prefix: %+v", r)
	}
	for _, name := range presetNames {
		if p, err := New("w", Spec{Preset: name, Requests: 10}, nil, 1, ""); err != nil || p.Planned() != 10 {
			t.Errorf("%s alone makes no plan: %v", name, err)
		}
	}
}

// TestSharedTextMatchesItsAccount: two prompts share just the tokens that the
// account of blocks takes for shared.
func TestSharedTextMatchesItsAccount(t *testing.T) {
	p := plan(t, "arrivals: {poisson: 10/s}\nrequests: 60\nprompts: {synthetic: {uniform: {min: 100, max: 400}}}\nprefix: {share: 50%, groups: 2, reuse: 10}\nsalt: false\n", 3, "")
	w := p.measured.writer()
	all := take(p.All(), 60)
	same, other := 0, 0
	for a := range int64(60) {
		tokens, sharedA, groupA := w.length(alone(a))
		if n := int64(tokensOf(text(all[a]))); n != tokens {
			t.Fatalf("shot %d has %d tokens, want %d", a, n, tokens)
		}
		for b := range a {
			_, sharedB, groupB := w.length(alone(b))
			words := corpus.Words(w.at(w.prefixes, groupA), min(sharedA, sharedB))
			c := common(text(all[a]), text(all[b]))
			switch {
			case groupA == groupB:
				same++
				if c < len(words) || c > len(words)+24 {
					t.Errorf("shots %d and %d of group %d share %d bytes, want about %d", a, b, groupA, c, len(words))
				}
			default:
				if other++; c > 24 {
					t.Errorf("shots %d and %d of other groups share %d bytes", a, b, c)
				}
			}
		}
	}
	if same < 50 || other < 500 {
		t.Errorf("only %d pairs of one group, %d of others", same, other)
	}
}

func TestCopulaKeepsTheMarginals(t *testing.T) {
	for _, rho := range []float64{-1, -0.5, 0.1, 0.9, 1} {
		couple := copula(rho)
		us, vs := NewStream(1, "u"), NewStream(1, "v")
		var xs, ys []float64
		for i := range int64(50_000) {
			u := us.uniform(i)
			y := couple(u, vs.uniform(i))
			if !(y > 0 && y < 1) {
				t.Fatalf("rho %v: %v is no draw", rho, y)
			}
			xs, ys = append(xs, u), append(ys, y)
		}
		if p := kolmogorov(ys, func(x float64) float64 { return x }); p < 0.001 {
			t.Errorf("rho %v: not uniform, KS p %.2g", rho, p)
		}
		if got := rankCorrelation(xs, ys); math.Abs(got-rho) > 0.02 {
			t.Errorf("rho %v: got %.3f", rho, got)
		}
	}
}
