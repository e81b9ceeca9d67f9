package dimension

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/embed"
	"github.com/assay-llm/assay/judge"
	"github.com/assay-llm/assay/stat/diverge"
	"github.com/assay-llm/assay/verify"
)

// meaning is the comparison of free texts, beside the kinds of package verify.
const meaning = "meaning"

// Sameness says when answers to one question say the same.
type Sameness struct {
	As        string   `yaml:"as" oneof:"number,choice,text,set,json,code,meaning" doc:"how answers of a set are compared: the number, option, list, JSON value or code found in them, the whole text, or by meaning, which takes an embedder or a judge; the cases that are made say it themselves"`
	Options   []string `yaml:"options" doc:"what a choice chooses from; A to E if left out"`
	Tolerance float64  `yaml:"tolerance" min:"0" max:"1" doc:"how far two numbers may be apart and be the same, relative to one of them; 0 if left out"`
	Embedding `yaml:",inline"`
	Same      float64        `yaml:"same" min:"0" max:"1" doc:"score of similarity from which two answers whose facts agree say the same; 0.8 if left out"`
	Judge     check.Endpoint `yaml:"judge" doc:"of meaning: a model that is asked of two answers whether each follows from the other"`
	Linkage   string         `yaml:"linkage" oneof:"complete,chain" doc:"complete: all answers of a class say the same, pair by pair; chain: what is the same through others is one class (union-find); complete if left out"`
}

// fits reports what does not fit together.
func (c *Sameness) fits(n *config.Node, set bool) {
	ways := c.given()
	if !c.Judge.IsZero() {
		ways++
	}
	switch {
	case !set && (c.As != "" || ways > 0 || len(c.Options) > 0 || c.Tolerance > 0 || c.Same > 0):
		n.Fault("says how answers are compared, but has no set", "name a set, or leave the comparison to the cases that are made")
	case set && c.As == "":
		n.Fault("has a set, but not how its answers are compared", "write as: number, choice, text, set, json, code or meaning")
	case c.As == meaning && ways != 1:
		n.Fault(fmt.Sprintf("compares by meaning in %d ways", ways), "give one of embedder: {url: …, model: …}, weights: FOLDER, hashing: true and judge: {url: …, model: …}")
	case c.As != meaning && ways > 0:
		n.Fault("has an embedder or a judge, but compares "+c.As, "write as: meaning, or leave it out")
	case c.As != string(verify.Choice) && len(c.Options) > 0:
		n.Fault("has options, but compares no choices", "write as: choice, or leave the options out")
	}
}

// name describes the comparison, for signatures.
func (c *Sameness) name() string {
	linkage := cmp.Or(c.Linkage, "complete") + " linkage"
	switch {
	case c.As == "":
		return "answers compared as each case says, " + linkage
	case c.As != meaning:
		return fmt.Sprintf("answers compared as %s, tolerance %g, %s", c.As, c.Tolerance, linkage)
	case !c.Judge.IsZero():
		k := entails()
		return fmt.Sprintf("mutual entailment by %s, instructions %s, %s", c.Judge.Name(), k.Digest(), linkage)
	}
	return fmt.Sprintf("facts, and similarity from %g, %s", cmp.Or(c.Same, .8), linkage)
}

// entails is asked of two answers in both directions.
func entails() judge.Criterion {
	return judge.Criterion{
		Name: "entails", Sees: []string{"question", "reference"},
		Asks: "Does everything that the answer states follow from the reference, as answers to the question? Wording, order, courtesy and what the answer leaves out do not matter. Numbers, names, dates, units and negations have to be the same.",
		Levels: []judge.Level{
			{Verdict: "no", Means: "The answer states something that the reference does not, or contradicts it."},
			{Verdict: "yes", Means: "Everything that the answer states follows from the reference."},
		},
	}
}

// sameness compares answers. It is safe for concurrent use.
type sameness struct {
	c        *Sameness
	embedder check.Embedder
	scale    embed.Scale
	judge    *judge.Judge
	entails  judge.Criterion

	mu    sync.Mutex
	marks []judge.Score
}

// open connects to what meanings are compared by, and puts its scale to texts of
// different questions.
func (c *Sameness) open(ctx context.Context, p *check.Pass, unrelated []string) (s *sameness, err error) {
	s = &sameness{c: c, entails: entails()}
	switch {
	case c.As != meaning:
	case !c.Judge.IsZero():
		jury, err := (&FidelityConfig{Judge: c.Judge}).summon(p)
		if err != nil {
			return nil, err
		}
		s.judge = jury[0]
	default:
		if s.embedder, _, err = c.Embedding.open(p); err != nil {
			return nil, err
		}
		if s.scale, err = embed.Calibrate(ctx, s.embedder, unrelated, p.Rand("calibration")); err != nil {
			return nil, fmt.Errorf("calibrating the embedder on the answers: %w", err)
		}
	}
	return s, nil
}

// faults says why nothing can be concluded from what the judge said; nil: nothing.
func (s *sameness) faults() error {
	if s.judge == nil {
		return nil
	}
	if t := judge.Count(s.marks, 0.95); t.Inconclusive != "" {
		return fmt.Errorf("comparing answers: %s", t.Inconclusive)
	}
	return nil
}

// verdict is what is known of two answers.
type verdict uint8

const (
	unclear verdict = iota
	differ
	alike
)

func verdictOf(is bool) verdict {
	if is {
		return alike
	}
	return differ
}

// group puts the answers to one question into classes. ok is false if it is not known
// of some of them whether they are alike. Answers of which nothing can be read are
// alike if their texts are; an empty one is like no other.
func (s *sameness) group(ctx context.Context, question string, e verify.Expected, answers []string) (class []int, ok bool, err error) {
	compare, err := s.comparer(ctx, question, e, answers)
	if err != nil {
		return nil, false, err
	}
	ok = true
	class = diverge.Group(len(answers), func(i, j int) bool {
		if err != nil {
			return false
		}
		var v verdict
		v, err = compare(i, j)
		ok = ok && v != unclear
		return v == alike
	}, s.c.Linkage == "chain")
	return class, ok && err == nil, err
}

// comparer returns what compares two of the texts, by their index.
func (s *sameness) comparer(ctx context.Context, question string, e verify.Expected, texts []string) (func(i, j int) (verdict, error), error) {
	whole := verify.Expected{Kind: verify.Text}
	plain, forms, read := make([]string, len(texts)), make([]string, len(texts)), make([]bool, len(texts))
	for i, t := range texts {
		plain[i], _ = whole.Normal(t)
		if s.c.As != meaning {
			forms[i], read[i] = e.Normal(t)
		}
	}
	scores, err := s.scores(ctx, texts, plain)
	if err != nil {
		return nil, err
	}
	return func(i, j int) (verdict, error) {
		switch {
		case plain[i] == "" || plain[j] == "":
			return differ, nil
		case plain[i] == plain[j]:
			return alike, nil
		case s.c.As != meaning:
			return verdictOf(read[i] && read[j] && e.Alike(forms[i], forms[j])), nil
		case s.judge != nil:
			return s.mutual(ctx, question, texts[i], texts[j])
		case !verify.Agree(texts[i], texts[j]).Holds():
			return differ, nil
		}
		return verdictOf(scores[[2]int{i, j}] >= cmp.Or(s.c.Same, .8)), nil
	}, nil
}

// scores are the similarities of all pairs of different texts.
func (s *sameness) scores(ctx context.Context, texts, plain []string) (map[[2]int]float64, error) {
	if s.embedder == nil {
		return nil, nil
	}
	var a, b []string
	var at [][2]int
	for j := range texts {
		for i := range j {
			if plain[i] != plain[j] && plain[i] != "" && plain[j] != "" {
				a, b, at = append(a, texts[i]), append(b, texts[j]), append(at, [2]int{i, j})
			}
		}
	}
	matches, ok, err := embed.Score(ctx, s.embedder, s.scale, a, b)
	if err != nil {
		return nil, err
	}
	out := make(map[[2]int]float64, len(at))
	for k, pair := range at {
		if ok[k] {
			out[pair] = matches[k].F
		}
	}
	return out, nil
}

// mutual asks whether each of two answers follows from the other; the second
// question is not asked if the first is denied.
func (s *sameness) mutual(ctx context.Context, question, a, b string) (verdict, error) {
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		item := judge.Item{Question: question, Reference: pair[0]}
		// Either text is an answer, and may talk to the judge.
		if why := judge.Suspicions(pair[0], judge.Item{Question: question}); len(why) > 0 {
			return unclear, nil
		}
		m, err := s.judge.Point(ctx, &s.entails, item, pair[1], 0)
		if err != nil {
			return unclear, err
		}
		s.mu.Lock()
		s.marks = append(s.marks, judge.Score{Value: m.Score, Fault: m.Fault})
		s.mu.Unlock()
		if !m.Scored() || m.Verdict == "no" {
			if m.Scored() {
				return differ, nil
			}
			return unclear, nil
		}
	}
	return alike, nil
}
