package dimension

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/compare"
	"github.com/assay-llm/assay/stat/diverge"
)

// What a change of weights may do before a reader is told: llama.cpp's own table has
// 0.0014 and 97.7 % of 8-bit weights and 0.031 and 91.9 % of 4-bit ones (Llama 3, 8B).
const (
	benignKL      = 0.01
	benignSameTop = 0.96
	// Where two tokens are about as likely, as at the begin of every line of some form,
	// errors of the last digit decide which is the likeliest: with a KL below this the
	// share of the same one says nothing.
	noiseKL = 0.001
)

// leastAligned is the share of the baseline's tokens that a variant must cut alike
// before distributions are compared place by place.
const leastAligned = 0.9

// textScores is what is published of one variant's scores of all documents beside the
// baseline's. Standard errors take tokens as independent.
type textScores struct {
	Tokens     int         `json:"tokens"`
	Perplexity [2]float64  `json:"perplexity"` // with its standard error, as all pairs here
	Base       [2]float64  `json:"base_perplexity"`
	LogRatio   [2]float64  `json:"log_ratio"`
	KL         *[2]float64 `json:"kl_at_least,omitempty"`
	KLTail     *[3]float64 `json:"kl_quantiles,omitempty"` // 50, 95 and 99 %
	Change     [2]float64  `json:"probability_change"`
	RMS        [2]float64  `json:"probability_change_rms"`
	SameTop    [2]float64  `json:"same_top"`
	Margin     *[3]float64 `json:"margin,omitempty"` // of the likeliest to the second: quantiles 10, 50 and 90 % of ln p₁ − ln p₂
	Flips      *float64    `json:"flips_at_low_margin,omitempty"`
}

// documents compares how the variants score the same documents.
func (l *likelihood) documents(ctx context.Context) error {
	texts, err := l.texts(partDocuments, l.Documents, l.Words)
	if err != nil {
		return err
	}
	shots, byCase := make([]check.Shot, len(texts)), make(map[string]string)
	for i, text := range texts {
		id := likelihoodCase("document", i)
		byCase[id] = text
		shots[i] = l.shot(partDocuments, id, id, text, l.Top)
	}
	trials, err := l.ask(ctx, partDocuments, shots, func(*check.Trial) bool { return true })
	if err != nil || trials == nil {
		return err
	}
	pairs, kls, tops := make([][]diverge.Pair, len(l.p.Variants)), make([][][]float64, len(l.p.Variants)), make([][][]float64, len(l.p.Variants))
	margins, apart := make([][]float64, len(l.p.Variants)), 0
	for _, t := range trials {
		base := l.scores(t, 0, 0, len(byCase[t.Shot.Case]))
		t.Exempt(0, "kl")
		t.Exempt(0, "same_top")
		for v := range l.p.Variants {
			own := base
			if v > 0 {
				own = l.scores(t, v, 0, len(byCase[t.Shot.Case]))
			}
			if base == nil || own == nil {
				continue
			}
			t.Set(v, "nll", surprise(own)/float64(len(base)))
			if v == 0 {
				continue
			}
			found, gaps := pairTokens(base, own)
			if float64(len(found)) < leastAligned*float64(len(base)) {
				apart++
				continue
			}
			pairs[v], margins[v] = append(pairs[v], found...), append(margins[v], gaps...)
			kl, top := pairMeans(found)
			t.Set(v, "same_top", top)
			tops[v] = append(tops[v], []float64{top})
			if !math.IsNaN(kl) {
				t.Set(v, "kl", kl)
				kls[v] = append(kls[v], []float64{kl})
			}
		}
	}
	if apart > 0 {
		l.p.Note("%d documents are cut into other tokens than the baseline's: their distributions have no numbers; nll counts by the baseline's tokens", apart)
	}
	for _, name := range []string{"nll", "kl", "same_top"} {
		l.p.Sign(check.Signature{Value: name, Estimator: fmt.Sprintf("teacher-forced, %d alternatives a token", l.Top)})
	}
	published := make(map[string]textScores)
	for v := 1; v < len(l.p.Variants); v++ {
		if d, err := diverge.OfText(pairs[v]); err == nil {
			published[l.p.Variants[v].Name] = scoresOf(d, pairs[v], margins[v])
		}
		l.warnOfDrift(v, compare.Mean(kls[v], 0.99), compare.Mean(tops[v], 0.99))
	}
	l.data[partDocuments] = published
	return nil
}

// pairTokens puts the tokens together that both cut alike, with the baseline's margins.
func pairTokens(base, own []check.Scored) (out []diverge.Pair, margins []float64) {
	at := make(map[int]*check.Scored, len(own))
	for i := range own {
		at[own[i].At] = &own[i]
	}
	for i := range base {
		b := &base[i]
		o, ok := at[b.At]
		if !ok || o.Text != b.Text {
			continue
		}
		pair := diverge.Pair{Base: math.Min(b.Logprob, 0), Other: math.Min(o.Logprob, 0), KL: math.NaN()}
		margin := math.NaN()
		if len(b.Top) > 0 && len(o.Top) > 0 {
			pair.SameTop = b.Top[0].Text == o.Top[0].Text
			if within, err := diverge.Within(likelyTokens(b.Top), likelyTokens(o.Top)); err == nil {
				pair.KL = within.KL
			}
			if len(b.Top) > 1 {
				margin = b.Top[0].Logprob - b.Top[1].Logprob
			}
		}
		out, margins = append(out, pair), append(margins, margin)
	}
	return out, margins
}

// likelyTokens makes probabilities of a list. Two tokens of one text are one outcome.
func likelyTokens(top []check.Alternative) map[string]float64 {
	out := make(map[string]float64, len(top))
	for _, a := range top {
		if p := math.Exp(a.Logprob); p > 0 {
			out[a.Text] += p
		}
	}
	return out
}

// pairMeans are those of KL, NaN if it is not known of every token, and of the same top.
func pairMeans(pairs []diverge.Pair) (kl, top float64) {
	for _, p := range pairs {
		kl += p.KL
		top += yes(p.SameTop)
	}
	n := float64(len(pairs))
	return kl / n, top / n
}

func scoresOf(d *diverge.TextDrift, pairs []diverge.Pair, margins []float64) textScores {
	both := func(m diverge.Measure) [2]float64 { return [2]float64{m.Value, m.SE} }
	s := textScores{
		Tokens: d.N, Perplexity: both(d.OtherPerplexity), Base: both(d.BasePerplexity), LogRatio: both(d.LogRatio),
		Change: both(d.ChangeOfProbability), RMS: both(d.RMS), SameTop: both(d.SameTop),
	}
	if !math.IsNaN(d.KL.Value) {
		kl := both(d.KL)
		s.KL, s.KLTail = &kl, &[3]float64{d.KLQuantile(0.5), d.KLQuantile(0.95), d.KLQuantile(0.99)}
	}
	var known []float64
	for _, m := range margins {
		if !math.IsNaN(m) {
			known = append(known, m)
		}
	}
	if len(known) < 10 {
		return s
	}
	slices.Sort(known)
	at := func(p float64) float64 { return known[int(p*float64(len(known)-1))] }
	s.Margin = &[3]float64{at(0.1), at(0.5), at(0.9)}
	low, flips := 0.0, 0.0
	for i, m := range margins {
		if m <= at(0.1) {
			low++
			flips += yes(!pairs[i].SameTop)
		}
	}
	share := flips / low
	s.Flips = &share
	return s
}

// warnOfDrift tells a reader of a variant that differs more than a careful change of
// weights does.
func (l *likelihood) warnOfDrift(v int, kl, top stat.Estimate) {
	far, other := kl.Lo > benignKL, top.Hi < benignSameTop && !(kl.Hi < noiseKL)
	if !far && !other {
		return
	}
	l.p.Report(check.Finding{
		Severity: check.Warning, Code: "likelihood_drift", Variant: l.p.Variants[v].Name,
		Text: fmt.Sprintf("its probabilities are further from the baseline's than a benign change of weights has them: KL at least %.4f nats a token (99 %%: %.4f to %.4f; benign below %g), the same likeliest token at %.1f %% (%.1f to %.1f; benign from %.0f on)",
			kl.Value, kl.Lo, kl.Hi, benignKL, 100*top.Value, 100*top.Lo, 100*top.Hi, 100*benignSameTop),
		Hint:    "hold the tasks against the baseline before deciding: a distance of distributions is no loss of quality by itself",
		Figures: map[string]float64{"kl": kl.Value, "kl_least": kl.Lo, "same_top": top.Value, "same_top_most": top.Hi},
	})
}
