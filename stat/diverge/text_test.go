package diverge

import (
	"math"
	"slices"
	"strconv"
	"testing"
)

// The values were computed by the formulas of llama.cpp's perplexity tool.
func TestTextDriftAgreesWithPublished(t *testing.T) {
	var g struct {
		Stats struct {
			Base    [][]float64 `json:"logits_base"`
			Quant   [][]float64 `json:"logits_quant"`
			Tokens  []int
			PPL     [2]float64         `json:"mean_ppl_q"`
			BasePPL [2]float64         `json:"mean_ppl_base"`
			Cor     float64            `json:"cor_ln_ppl"`
			Log     [2]float64         `json:"mean_ln_ratio"`
			Ratio   [2]float64         `json:"mean_ratio"`
			KLD     [2]float64         `json:"mean_kld"`
			Max     float64            `json:"max_kld"`
			KLDs    map[string]float64 `json:"kld_pct"`
			Change  [2]float64         `json:"mean_dp"`
			Changes map[string]float64 `json:"dp_pct"`
			RMS     [2]float64         `json:"rms_dp"`
			Same    [2]float64         `json:"same_top_p"`
		} `json:"llamacpp_stats"`
	}
	load(t, "kl.json", &g)
	s := &g.Stats
	if len(s.Tokens) != 150 || len(s.KLDs) < 7 || len(s.Changes) < 7 {
		t.Fatalf("%d tokens, %d and %d quantiles", len(s.Tokens), len(s.KLDs), len(s.Changes))
	}
	pairs := make([]Pair, len(s.Tokens))
	for i, token := range s.Tokens {
		p, q := softmax(s.Base[i]), softmax(s.Quant[i])
		d, err := Between(p, q)
		if err != nil {
			t.Fatal(err)
		}
		pairs[i] = Pair{math.Log(p[token]), math.Log(q[token]), d.KL, slices.Index(p, slices.Max(p)) == slices.Index(q, slices.Max(q))}
	}
	d, err := OfText(pairs)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		got  Measure
		want [2]float64
	}{
		"perplexity": {d.OtherPerplexity, s.PPL}, "of the base": {d.BasePerplexity, s.BasePPL}, "log ratio": {d.LogRatio, s.Log}, "ratio": {d.Ratio, s.Ratio},
		"KL": {d.KL, s.KLD}, "change": {d.ChangeOfProbability, s.Change}, "RMS": {d.RMS, s.RMS}, "same top": {d.SameTop, s.Same},
	} {
		near(t, name, c.got.Value, c.want[0])
		near(t, "the error of "+name, c.got.SE, c.want[1])
	}
	near(t, "correlation", d.Correlation, s.Cor)
	near(t, "greatest KL", d.KLQuantile(1), s.Max)
	for at, want := range s.KLDs {
		p, _ := strconv.ParseFloat(at, 64)
		near(t, "KL at "+at, d.KLQuantile(p), want)
	}
	for at, want := range s.Changes {
		p, _ := strconv.ParseFloat(at, 64)
		near(t, "change at "+at, d.ChangeQuantile(p), want)
	}
}

// Of a text that both score alike nothing has changed, and what is not known of one
// token is not known of the text.
func TestTextDriftOfNothing(t *testing.T) {
	same := []Pair{{-1, -1, 0, true}, {-2, -2, 0, true}, {-3, -3, 0, true}}
	d, err := OfText(same)
	if err != nil {
		t.Fatal(err)
	}
	if d.LogRatio != (Measure{}) || d.KL != (Measure{}) || d.RMS != (Measure{}) || d.SameTop != (Measure{1, 0}) {
		t.Errorf("%+v", d)
	}
	same[1].KL = math.NaN()
	if d, err = OfText(same); err != nil || !math.IsNaN(d.KL.Value) || !math.IsNaN(d.KLQuantile(0.5)) || math.IsNaN(d.ChangeQuantile(0.5)) {
		t.Errorf("%+v, %v", d, err)
	}
	for _, pairs := range [][]Pair{nil, {{-1, -1, 0, true}}, {{1, -1, 0, true}, {-1, -1, 0, true}}, {{-1, math.Inf(-1), 0, true}, {-1, -1, 0, true}}, {{-1, math.NaN(), 0, true}, {-1, -1, 0, true}}, {{-1, -1, -1, true}, {-1, -1, 0, true}}} {
		if _, err := OfText(pairs); err == nil {
			t.Errorf("%v is taken", pairs)
		}
	}
}
