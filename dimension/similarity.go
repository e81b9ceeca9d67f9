package dimension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/embed"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/verify"
)

// SimilarityConfig is the configuration of Similarity.
type SimilarityConfig struct {
	Asking `yaml:",inline"`

	Against   string `yaml:"against" oneof:"baseline,expected" doc:"what answers are compared with: those of the baseline to the same case, or what the case expects; baseline if left out"`
	Embedding `yaml:",inline"`
	Same      float64 `yaml:"same" min:"0" max:"1" doc:"score from which an answer whose facts agree says the same; 0.8 if left out"`
}

// Embedding says by what texts are compared: at most one of its fields.
type Embedding struct {
	Embedder check.Endpoint `yaml:"embedder" doc:"a server with the API /v1/embeddings"`
	Weights  string         `yaml:"weights" doc:"folder of an encoder instead, with model.safetensors, tokenizer.json and config.json, such as all-MiniLM-L6-v2; relative to where assay runs"`
	Hashing  bool           `yaml:"hashing" doc:"compare the wording alone, by n-grams of characters, without any model"`
}

// given counts the embedders that are named.
func (e *Embedding) given() (n int) {
	for _, has := range []bool{!e.Embedder.IsZero(), e.Weights != "", e.Hashing} {
		if has {
			n++
		}
	}
	return n
}

// CheckConfig wants one embedder.
func (c *SimilarityConfig) CheckConfig(n *config.Node) {
	if given := c.given(); given != 1 {
		n.Fault(fmt.Sprintf("wants one embedder, got %d", given), "give embedder: {url: …, model: …}, weights: FOLDER or hashing: true")
	}
}

// Similarity compares what answers say.
var Similarity = &check.Check{
	Name:   "similarity",
	Doc:    "whether answers say the same as the baseline's, or as what is expected: by meaning, and by their facts",
	Config: func() any { return new(SimilarityConfig) },
	Values: func(any) []check.Value {
		return []check.Value{
			{Name: "score", Title: "similarity", Doc: "harmonic mean of precision and recall of the best matches of sentences, on the embedder's scale: 0 is what unrelated answers have, 1 the same text", Unit: record.Points, Higher: true, Most: 1},
			yesNo("facts", "facts agree", "numbers, quantities, money, dates, names and negation are those of the other text; a case in which neither text has any of these has no number", true),
			yesNo("same", "says the same", "the score is high enough, and the facts agree", true),
		}
	},
	Run: runSimilarity,
}

// other is a text to compare an answer with.
type other struct {
	trial   *check.Trial
	variant int
	answer  string
	with    string
}

func runSimilarity(ctx context.Context, p *check.Pass) error {
	conf := p.Config.(*SimilarityConfig)
	cases, err := conf.cases(p)
	if err != nil {
		return err
	}
	e, name, err := conf.open(p)
	if err != nil {
		return err
	}
	before, err := embed.Probe(ctx, e)
	if err != nil {
		return err
	}
	trials, asked := p.Ask(ctx, conf.shots(cases))
	pairs := conf.pairs(trials, cases)
	if err := conf.compare(ctx, p, e, name, record.Sketch(before.Vectors), trials, pairs); err != nil {
		return errors.Join(asked, err)
	}
	after, err := embed.Probe(ctx, e)
	if err != nil {
		return errors.Join(asked, err)
	}
	return errors.Join(asked, after.Drift(before))
}

// open opens the embedder that the suite names, n-grams if it names none, and says
// which it is.
func (e *Embedding) open(p *check.Pass) (check.Embedder, string, error) {
	switch {
	case e.Weights != "":
		m, err := embed.Load(os.DirFS(e.Weights))
		if err != nil {
			return nil, "", fmt.Errorf("weights %s: %w", e.Weights, err)
		}
		return m, "weights " + e.Weights, nil
	case !e.Embedder.IsZero():
		m, err := p.Embedder(e.Embedder)
		return m, e.Embedder.Name(), err
	}
	return embed.Hashing(0), "n-grams of characters", nil
}

// pairs finds what each answer is compared with. Of the baseline's own answers that is
// its next repetition, if cases are repeated: how unlike an unchanged service is to
// itself. If they are not, the baseline has no numbers.
func (c *SimilarityConfig) pairs(trials []*check.Trial, cases []corpus.Case) (pairs []other) {
	expect := make(map[string]string, len(cases))
	for _, k := range cases {
		expect[k.ID] = k.Expect
	}
	type shot struct {
		id        string
		replicate int
	}
	byShot := make(map[shot]*check.Trial, len(trials))
	for _, t := range trials {
		byShot[shot{t.Shot.Case, t.Shot.Question.Replicate}] = t
	}
	n := max(1, c.Replicates)
	for _, t := range trials {
		for v, a := range t.Answers {
			if c.Against == "expected" {
				if a.Answered() {
					pairs = append(pairs, other{t, v, said(a), expect[t.Shot.Case]})
				}
				continue
			}
			if v == 0 && n == 1 {
				for _, name := range []string{"score", "facts", "same"} {
					t.Exempt(v, name)
				}
				continue
			}
			base, ok := byShot[shot{t.Shot.Case, (t.Shot.Question.Replicate + 1) % n}]
			if ok && a.Answered() && base.Answers[0].Answered() {
				pairs = append(pairs, other{t, v, said(a), said(base.Answers[0])})
			}
		}
	}
	return pairs
}

func (c *SimilarityConfig) compare(ctx context.Context, p *check.Pass, e check.Embedder, name, probe string, trials []*check.Trial, pairs []other) error {
	if c.Against != "expected" && len(p.Variants) < 2 && c.Replicates < 2 {
		return errors.New("there is nothing to compare: want two variants, replicates: 2 or more, or against: expected")
	}
	var answers, with, texts []string
	for _, o := range pairs {
		answers, with = append(answers, o.answer), append(with, o.with)
	}
	for _, t := range trials { // one answer of a case: its repetitions are not unrelated
		if t.Shot.Question.Replicate == 0 && t.Answers[0].Answered() {
			texts = append(texts, said(t.Answers[0]))
		}
	}
	rng := p.Rand("calibration")
	scale, err := embed.Calibrate(ctx, e, texts, rng)
	if err != nil {
		return fmt.Errorf("calibrating the embedder on the answers: %w", err)
	}
	p.Note("unrelated answers have a cosine of %.3f ± %.3f (%d pairs); scores count from there", scale.Mean, scale.SD, scale.Pairs)
	p.Publish(scale)
	same := cmp.Or(c.Same, .8)
	sign := fmt.Sprintf("sentences matched by %s, on a scale of unrelated answers", name)
	p.Sign(check.Signature{Value: "score", Estimator: sign, Probe: probe})
	p.Sign(check.Signature{Value: "facts", Estimator: "facts and negation by rules"})
	p.Sign(check.Signature{Value: "same", Estimator: fmt.Sprintf("%s, from %g, and facts", sign, same), Probe: probe})
	matches, ok, err := embed.Score(ctx, e, scale, answers, with)
	if err != nil {
		return err
	}
	worst := make(map[int]int) // of each variant, the pair whose facts differ most
	for i, o := range pairs {
		if !ok[i] {
			continue // an empty text has no score; shape counts it
		}
		score := min(matches[i].F, 1)
		a := verify.Agree(o.answer, o.with)
		o.trial.Set(o.variant, "score", score)
		if a.Nothing {
			o.trial.Exempt(o.variant, "facts")
		} else {
			o.trial.Set(o.variant, "facts", yes(a.Holds()))
		}
		o.trial.Set(o.variant, "same", yes(score >= same && a.Holds()))
		if k, has := worst[o.variant]; !a.Holds() && (!has || a.F < verify.Agree(pairs[k].answer, pairs[k].with).F) {
			worst[o.variant] = i
		}
	}
	for _, v := range slices.Sorted(maps.Keys(worst)) {
		o := pairs[worst[v]]
		p.Report(differing(p, o))
	}
	return nil
}

// differing shows the pair of one variant whose facts differ most.
func differing(p *check.Pass, o other) check.Finding {
	a := verify.Agree(o.answer, o.with)
	text := fmt.Sprintf("case %s: the facts differ most here: %d missing, %d added", o.trial.Shot.Case, len(a.Missing), len(a.Added))
	if !a.Negation {
		text += ", and one of the texts negates"
	}
	return check.Finding{
		Severity: check.Info, Code: "facts_differ", Variant: p.Variants[o.variant].Name, Case: o.trial.Shot.Case, Text: text,
		Figures: map[string]float64{"missing": float64(len(a.Missing)), "added": float64(len(a.Added))},
		Bodies:  []string{p.Keep(o.answer), p.Keep(o.with)},
	}
}
