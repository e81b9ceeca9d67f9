package dimension

import (
	"context"
	"errors"
	"fmt"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/overlap"
	"github.com/assay-llm/assay/record"
)

// ReferenceConfig is the configuration of Reference.
type ReferenceConfig struct {
	Asking `yaml:",inline"`
}

// Reference scores answers by the words and characters that they share with what the
// case expects.
var Reference = &check.Check{
	Name:   "reference",
	Doc:    "what answers share with the reference in words and characters: BLEU, chrF, ROUGE-L; a tripwire, and no verdict on quality",
	Config: func() any { return new(ReferenceConfig) },
	Values: func(any) []check.Value {
		score := func(name, title, doc string) check.Value {
			return check.Value{Name: name, Title: title, Doc: doc, Unit: record.Points, Higher: true, Most: 100}
		}
		return []check.Value{
			score("bleu", "sentence BLEU", "BLEU of the answer by itself, with the effective order, 0 to 100; the mean over answers is not BLEU of the corpus, which the findings have"),
			score("chrf", "chrF2", "F-score of character n-grams, 0 to 100"),
			score("rouge_l", "ROUGE-L", "F-score of the longest common subsequence of words, times 100"),
		}
	},
	Run: runReference,
}

func runReference(ctx context.Context, p *check.Pass) error {
	conf := p.Config.(*ReferenceConfig)
	cases, err := conf.cases(p)
	if err != nil {
		return err
	}
	var letters overlap.Letters
	for _, c := range cases {
		if c.Expect == "" {
			return fmt.Errorf("case %s of %s expects nothing to compare with", c.ID, conf.Set.File)
		}
		letters.Add(c.Expect)
	}
	metrics := []struct {
		name   string
		metric overlap.Metric
		scale  float64
	}{
		{"bleu", overlap.BLEU{Tokenizer: letters.BLEU(), EffectiveOrder: true}, 1},
		{"chrf", overlap.CHRF{}, 1},
		{"rouge_l", overlap.ROUGE{Type: "L", Tokenizer: letters.ROUGE()}, 100},
	}
	// Corpora are compared on the cases that every variant answered; bleu here without
	// the effective order, which is of sentences.
	corpora := make([][]*overlap.Tally, len(metrics))
	for m, metric := range metrics {
		p.Sign(check.Signature{Value: metric.name, Estimator: metric.metric.Signature(1)})
		whole := metric.metric
		if m == 0 {
			whole = overlap.BLEU{Tokenizer: letters.BLEU()}
		}
		for range p.Variants {
			t, err := overlap.NewTally(whole)
			if err != nil {
				return err
			}
			corpora[m] = append(corpora[m], t)
		}
	}
	refused := 0
	expect := make(map[string]corpus.Case, len(cases))
	for _, c := range cases {
		expect[c.ID] = c
	}
	trials, asked := p.Ask(ctx, conf.shots(cases))
	for _, t := range trials {
		all := true
		for _, a := range t.Answers {
			all = all && a.Answered()
		}
		for v, a := range t.Answers {
			if !a.Answered() {
				continue
			}
			s := overlap.Segment{Hypothesis: said(a), References: []string{expect[t.Shot.Case].Expect}, Cluster: t.Shot.Cluster}
			for m, metric := range metrics {
				x, err := sentence(metric.metric, s)
				if err != nil {
					refused++
					continue
				}
				t.Set(v, metric.name, min(100, metric.scale*x))
				if all {
					if _, err := corpora[m][v].Add(s); err != nil {
						return errors.Join(asked, err)
					}
				}
			}
		}
	}
	if refused > 0 {
		p.Note("%d scores could not be made, of texts that are too long for the metric; they are missing", refused)
	}
	for m := range metrics {
		reportCorpora(p, corpora[m])
	}
	return asked
}

// sentence is the score of one answer.
func sentence(m overlap.Metric, s overlap.Segment) (float64, error) {
	t, err := overlap.NewTally(m)
	if err != nil {
		return 0, err
	}
	statistics, err := t.Add(s)
	if err != nil {
		return 0, err
	}
	return m.Score(statistics), nil
}

// reportCorpora gives the score of each corpus, and how the second's differs from the
// first's. What has no score (no words at all) has no finding.
func reportCorpora(p *check.Pass, tallies []*overlap.Tally) {
	name := tallies[0].Metric().Name()
	var scores []float64
	for _, t := range tallies {
		x, err := t.Score()
		if err != nil {
			p.Note("%s of the corpus has no score: %v", name, err)
			return
		}
		scores = append(scores, x)
	}
	f := check.Finding{Severity: check.Info, Code: "corpus_score", Figures: map[string]float64{}}
	for v, x := range scores {
		f.Figures[p.Variants[v].Name] = x
	}
	f.Text = fmt.Sprintf("%s of the corpus: %s %.2f", name, p.Variants[0].Name, scores[0])
	if len(tallies) > 1 {
		c, err := overlap.Compare(tallies[1], tallies[0], overlap.Resampling{Seed: p.Seed})
		if err != nil {
			p.Note("%s of the corpora was not compared: %v", name, err)
			return
		}
		f.Figures["p"] = c.P
		f.Text += fmt.Sprintf(", %s %.2f (difference %+.2f, p %.3g by approximate randomisation of clusters)", p.Variants[1].Name, scores[1], c.Difference.Value, c.P)
	}
	f.Text += "; " + tallies[0].Signature()
	p.Report(f)
}
