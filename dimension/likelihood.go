package dimension

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/haystack"
	"github.com/assay-llm/assay/record"
)

// The parts of Likelihood.
const (
	partDocuments = "documents"
	partCopy      = "copy"
	partLong      = "long"
)

// LikelihoodConfig is the configuration of Likelihood.
type LikelihoodConfig struct {
	Parts []string `yaml:"parts" oneof:"documents,copy,long" doc:"what is measured: documents (how differently the variants score the same texts), copy (how far back a model uses its context), long (whether a long context harms); all if left out"`

	Set       check.SetRef `yaml:"set" doc:"documents to score, the prompts of its cases; generated from the seed if left out"`
	Documents int          `yaml:"documents" min:"10" max:"100000" doc:"how many documents; 24 if left out"`
	Words     int          `yaml:"words" min:"100" max:"100000" doc:"length of a generated document in tokens, about; 240 if left out"`
	Top       int          `yaml:"top" min:"1" max:"20" doc:"alternatives wanted at each token of a document, by which distributions are compared; 5 if left out"`

	Distances []int `yaml:"distances" doc:"tokens, about, between a passage and its repetition, rising; 128, 512 and 2,048 if left out"`
	Passages  int   `yaml:"passages" min:"10" max:"1000" doc:"passages for each distance; 12 if left out"`

	Long  int `yaml:"long" min:"512" max:"10000000" doc:"length of a long text in tokens, about; 2,048 if left out"`
	Texts int `yaml:"texts" min:"1" max:"1000" doc:"long texts; 4 if left out"`
}

// passageWords is the length of a passage that is repeated, in tokens.
const passageWords = 96

// CheckConfig reports parts that there are not, and distances that do not rise or in
// which no passage has room.
func (c *LikelihoodConfig) CheckConfig(n *config.Node) {
	for _, part := range c.Parts {
		if !slices.Contains([]string{partDocuments, partCopy, partLong}, part) {
			n.Fault(fmt.Sprintf("has no part %q", part), "take of documents, copy and long, or leave parts out")
		}
	}
	for i, d := range c.Distances {
		if d < passageWords+16 || i > 0 && d <= c.Distances[i-1] {
			n.Fault(fmt.Sprintf("distances %v: they rise, from %d on", c.Distances, passageWords+16), "write distances: [128, 512, 2048]")
			return
		}
	}
	if len(c.Distances) == 1 {
		n.Fault("one distance cannot be compared with another", "write distances: [128, 512, 2048]")
	}
}

func (c *LikelihoodConfig) has(part string) bool {
	return len(c.Parts) == 0 || slices.Contains(c.Parts, part)
}

// likelihoodValues are the numbers of cases, by the part that gives them.
var likelihoodValues = []struct {
	part  string
	value check.Value
}{
	{partDocuments, check.Value{Name: "nll", Title: "surprise", Doc: "sum of −ln p over the tokens of a document, for each token that the baseline cuts it into (nats)"}},
	{partDocuments, check.Value{Name: "kl", Title: "KL from the baseline", Doc: "mean over the tokens of a document of a lower bound of the Kullback–Leibler divergence of the baseline's next-token distribution from the variant's, by the listed tokens of both (nats)"}},
	{partDocuments, check.Value{Name: "same_top", Title: "same likeliest token", Doc: "share of a document's tokens at which the variant and the baseline find the same token the likeliest", Unit: record.Proportion, Higher: true, Most: 1}},
	{partCopy, check.Value{Name: "copied", Title: "gain by repetition", Doc: "mean −ln p of the tokens of a random passage less that of the same tokens when it comes again at some distance (nats)", Higher: true}},
	{partLong, check.Value{Name: "excess", Title: "harm by a long context", Doc: "mean over the tokens of a long text of −ln p after all that stands before, less −ln p after a short window of it (nats)"}},
}

// Likelihood scores prompts instead of reading answers.
var Likelihood = &check.Check{
	Name: "likelihood",
	Doc:  "probabilities that a model gives to fixed texts: how they differ between variants, how far back they use the context, whether a long one harms",
	Config: func() any {
		return &LikelihoodConfig{Documents: 24, Words: 240, Top: 5, Distances: []int{128, 512, 2048}, Passages: 12, Long: 2048, Texts: 4}
	},
	Values: func(conf any) (out []check.Value) {
		c := conf.(*LikelihoodConfig)
		for _, v := range likelihoodValues {
			if c.has(v.part) {
				out = append(out, v.value)
			}
		}
		if c.has(partCopy) {
			out = append(out, check.Value{Name: "reach", Title: "reach of the context", Doc: "greatest distance in tokens up to which, in half of the passages, a repetition gains at least half of what it gains at the shortest distance", Unit: record.TokenUnit, Higher: true, Whole: true})
		}
		return out
	},
	Needs: []check.Capability{check.CapPromptLogprobs},
	Run:   runLikelihood,
}

func runLikelihood(ctx context.Context, p *check.Pass) error {
	l := &likelihood{LikelihoodConfig: p.Config.(*LikelihoodConfig), p: p, data: make(map[string]any)}
	for range p.Variants {
		l.lost = append(l.lost, make(map[string]bool))
	}
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{partDocuments, l.documents}, {partCopy, l.copies}, {partLong, l.longTexts}} {
		if !l.has(part.name) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return err
		}
	}
	for v, cases := range l.lost {
		if len(cases) > 0 {
			p.Note("%s: %d prompts came back without the scores that were asked for; they are missing", p.Variants[v].Name, len(cases))
		}
	}
	p.Publish(l.data)
	return nil
}

// likelihood is one run of the check.
type likelihood struct {
	*LikelihoodConfig
	p    *check.Pass
	lost []map[string]bool // cases without scores, by variant
	data map[string]any    // by part, what is published
}

// head stands before each text. It has the run's salt, which keeps caches of
// earlier runs away, and gives the text's first token something to come after.
func (l *likelihood) head(id string) string {
	return "[" + strings.TrimSpace(l.p.Salt+" "+id) + "]\n"
}

// shot asks for the scores of a text behind its head.
func (l *likelihood) shot(part, id, cluster, text string, top int, labels ...string) check.Shot {
	s := check.Shot{
		Case: id, Cluster: cluster, Labels: map[string]string{"part": part},
		Question: check.Question{Prompt: l.head(id) + text, Score: true, TopLogprobs: top, MaxTokens: 1, Temperature: new(float64)},
	}
	for i := 0; i < len(labels); i += 2 {
		s.Labels[labels[i]] = labels[i+1]
	}
	return s
}

// ask asks the shots of one part, and says of each record which numbers it has none
// of. In a rehearsal there is nothing to be scored.
func (l *likelihood) ask(ctx context.Context, part string, shots []check.Shot, has func(t *check.Trial) bool) ([]*check.Trial, error) {
	trials, err := l.p.Ask(ctx, shots)
	if err != nil || l.p.Rehearsal {
		return nil, err
	}
	for _, t := range trials {
		for v := range t.Answers {
			for _, value := range likelihoodValues {
				if l.has(value.part) && (value.part != part || !has(t)) {
					t.Exempt(v, value.value.Name)
				}
			}
		}
	}
	return trials, nil
}

// scores returns the tokens of a text that begin at from to to−1 of its bytes; nil
// if they do not cover it.
func (l *likelihood) scores(t *check.Trial, v, from, to int) []check.Scored {
	head := len(l.head(t.Shot.Case))
	var out []check.Scored
	for _, s := range t.Answers[v].Scored {
		if s.At -= head; s.At >= from && s.At < to {
			out = append(out, s)
		}
	}
	// A token may reach over either end, and is then not of this stretch; one that is as
	// long as twenty letters is none.
	const slack = 20
	if len(out) == 0 || out[0].At > from+slack || out[len(out)-1].At+len(out[len(out)-1].Text) < to-slack {
		l.lost[v][t.Shot.Case] = true
		return nil
	}
	return out
}

// surprise is the sum of −ln p.
func surprise(tokens []check.Scored) (sum float64) {
	for _, s := range tokens {
		sum -= s.Logprob
	}
	return sum
}

// texts are the documents or long texts: of the set, or generated.
func (l *likelihood) texts(stream string, n, tokens int) ([]string, error) {
	if !l.Set.IsZero() && stream == partDocuments {
		set, err := l.p.Set(l.Set)
		if err != nil {
			return nil, err
		}
		var out []string
		for _, i := range l.p.Rand("documents").Perm(len(set.Cases)) {
			if text := caseText(set.Cases[i]); text != "" && len(out) < n {
				out = append(out, text)
			}
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("%s has no texts to score", l.Set.File)
		}
		return out, nil
	}
	out, rng := make([]string, n), l.p.Rand("texts", stream)
	for i := range out {
		h, err := haystack.New(haystack.Spec{Kind: haystack.Absent, Chars: max(4*tokens, 400), Seed: rng.Uint64(), Needle: rng.Uint64()})
		if err != nil {
			return nil, err
		}
		out[i] = h.Text
	}
	return out, nil
}

// caseText is the text of a case.
func caseText(c corpus.Case) string {
	if len(c.Messages) == 0 {
		return c.Prompt
	}
	var parts []string
	for _, m := range c.Messages {
		parts = append(parts, m.Content)
	}
	return strings.Join(parts, "\n")
}

func likelihoodCase(what string, i int) string { return fmt.Sprintf("%s-%03d", what, i+1) }

// medianOf is the median of numbers, of which there are some.
func medianOf(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}

// curvePoint makes a figure's point of an estimate, without an interval if it has none.
func curvePoint(x, y, lo, hi float64, n int) check.Point {
	point := check.Point{X: x, Y: y, N: n}
	if !math.IsInf(lo, 0) && !math.IsInf(hi, 0) {
		point.Low, point.High = &lo, &hi
	}
	return point
}
