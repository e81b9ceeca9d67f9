package dimension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/quiz"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/compare"
	"github.com/assay-llm/assay/stat/diverge"
	"github.com/assay-llm/assay/verify"
)

// ConsistencyConfig is the configuration of Consistency.
type ConsistencyConfig struct {
	Given    `yaml:",inline"`
	Sameness `yaml:",inline"`

	Cases       int      `yaml:"cases" min:"10" max:"10000" doc:"how many cases are made; 60 if left out"`
	Replicates  int      `yaml:"replicates" min:"2" max:"100" doc:"how often each case is asked; 5 if left out"`
	Temperature *float64 `yaml:"temperature" min:"0" max:"2" doc:"0.7 if left out; at 0 it is the server that is measured, and not the model"`
	K           int      `yaml:"k" min:"1" max:"100" doc:"how many answers have to be all right for pass_k; 3 if left out, or the replicates if those are fewer"`
	Rules       []string `yaml:"rules" oneof:"modal-62" doc:"reported beside the values: modal-62 (the most frequent answer of a case has a share below 0.62)"`
}

// CheckConfig checks what depends on each other.
func (c *ConsistencyConfig) CheckConfig(n *config.Node) {
	c.fits(n, !c.Set.IsZero())
	if !c.Set.IsZero() && c.Cases > 0 {
		n.Fault("has a set, and says how many cases to make", "write limit: for the cases of a set")
	}
	if c.K > c.replicates() {
		n.Fault(fmt.Sprintf("%d answers are to be right of %d", c.K, c.replicates()), "ask more replicates, or for fewer right ones")
	}
}

func (c *ConsistencyConfig) replicates() int { return cmp.Or(c.Replicates, 5) }

func (c *ConsistencyConfig) k() int { return cmp.Or(c.K, min(3, c.replicates())) }

func (c *ConsistencyConfig) temperature() float64 {
	if c.Temperature == nil {
		return 0.7
	}
	return *c.Temperature
}

// Consistency asks each case several times.
var Consistency = &check.Check{
	Name:   "consistency",
	Doc:    "how far several answers to one question agree, and whether what most of them say is right",
	Config: func() any { return new(ConsistencyConfig) },
	Values: consistencyValues,
	Run:    runConsistency,
}

func consistencyValues(conf any) []check.Value {
	c, ok := conf.(*ConsistencyConfig)
	if !ok {
		c = new(ConsistencyConfig)
	}
	n := float64(c.replicates())
	return []check.Value{
		{Name: "agreement", Title: "agreement", Doc: "of a case: the share of pairs of its answers that say the same, Σc(c−1)/(n(n−1)) over its classes; no bias by the number of samples", Unit: record.Points, Higher: true, Most: 1},
		{Name: "entropy", Title: "semantic entropy", Doc: "of a case: entropy of its classes of answers in nats, with Miller and Madow's correction", Unit: record.Points, Most: math.Log(n) + (n-1)/(2*n)},
		{Name: "modal", Title: "share of the most frequent answer", Doc: "of a case; too great by chance: of answers with probabilities up to 0.4, five samples show 0.5 on average", Unit: record.Points, Higher: true, Most: 1},
		yesNo("majority_right", "right by majority", "of a case with an expected answer: the most frequent answer is right; of equally frequent ones that which came first", true),
		yesNo("confident_wrong", "confident and wrong", "of a case with an expected answer: at least 80 % of the answers are the same, and wrong", false),
		{Name: "pass_k", Title: fmt.Sprintf("pass^%d", c.k()), Doc: fmt.Sprintf("of a case with an expected answer: the chance that %d answers are all right, C(right, %[1]d)/C(n, %[1]d)", c.k()), Unit: record.Points, Higher: true, Most: 1},
	}
}

// confident is the share of one answer from which a model is taken to be sure.
const confident = 0.8

// prompt is one case, with its answers.
type prompt struct {
	corpus.Case
	expected verify.Expected // Value "": nothing is expected
	trials   []*check.Trial  // by replicate; nil: not asked
	seen     []*sampled      // by variant; nil: an answer is missing, or could not be compared
}

// sampled is what the answers of one variant to one case are.
type sampled struct {
	spread  diverge.Spread
	modal   int // replicate with the most frequent answer
	right   int
	unread  int            // answers that may be right or wrong
	verdict verify.Outcome // of the most frequent answer
}

func runConsistency(ctx context.Context, p *check.Pass) error {
	conf := p.Config.(*ConsistencyConfig)
	prompts, err := conf.prompts(p)
	if err != nil {
		return err
	}
	asked := conf.ask(ctx, p, prompts)
	same, err := conf.open(ctx, p, firstAnswers(prompts))
	if err != nil {
		return errors.Join(asked, err)
	}
	compared := p.Each(ctx, len(prompts), func(ctx context.Context, i int) error { return conf.look(ctx, same, prompts[i], len(p.Variants)) })
	conf.write(p, prompts)
	for _, rule := range conf.Rules {
		conf.rule(p, rule, prompts)
	}
	return errors.Join(asked, compared, same.faults())
}

// prompts are the cases of the set, or those that the seed makes.
func (c *ConsistencyConfig) prompts(p *check.Pass) (out []*prompt, err error) {
	if c.Set.IsZero() {
		for _, q := range quiz.Questions(p.Seed, cmp.Or(c.Cases, 60), c.Languages) {
			out = append(out, &prompt{
				Case:     corpus.Case{ID: q.ID, Prompt: q.Prompt, Labels: map[string]string{"task": q.Task, "language": q.Language}},
				expected: q.Expected,
			})
		}
		return out, nil
	}
	a := c.asking()
	cases, err := a.cases(p)
	if err != nil {
		return nil, err
	}
	for _, k := range cases {
		e := verify.Expected{Kind: verify.Kind(c.As), Value: k.Expect, Options: c.Options, Tolerance: c.Tolerance}
		if k.Expect != "" && c.As != meaning {
			if err := e.Validate(); err != nil {
				return nil, fmt.Errorf("case %s of %s expects no %s: %w", k.ID, c.Set.File, c.As, err)
			}
		}
		out = append(out, &prompt{Case: k, expected: e})
	}
	return out, nil
}

// ask asks every case so many times, and puts the trials into their places.
func (c *ConsistencyConfig) ask(ctx context.Context, p *check.Pass, prompts []*prompt) error {
	t := c.temperature()
	a := c.asking()
	a.Replicates, a.Temperature = c.replicates(), &t
	byID := make(map[string]*prompt, len(prompts))
	var cases []corpus.Case
	for _, k := range prompts {
		k.trials, k.seen = make([]*check.Trial, c.replicates()), make([]*sampled, len(p.Variants))
		byID[k.ID] = k
		cases = append(cases, k.Case)
	}
	trials, err := p.Ask(ctx, a.shots(cases))
	for _, t := range trials {
		byID[t.Shot.Case].trials[t.Shot.Question.Replicate] = t
	}
	if t == 0 {
		p.Note("at temperature 0 a model has one answer: what differs here is the server's doing (batches, kernels, caches), and no lack of the model")
	}
	return err
}

// firstAnswers are texts of different questions.
func firstAnswers(prompts []*prompt) (texts []string) {
	for _, k := range prompts {
		if t := k.trials[0]; t != nil && t.Answers[0].Answered() {
			texts = append(texts, said(t.Answers[0]))
		}
	}
	return texts
}

// answers are what one variant said; ok is false if any answer is missing.
func (k *prompt) answers(variant int) (texts []string, ok bool) {
	for _, t := range k.trials {
		if t == nil || !t.Answers[variant].Answered() {
			return nil, false
		}
		texts = append(texts, said(t.Answers[variant]))
	}
	return texts, true
}

// look compares the answers of each variant.
func (c *ConsistencyConfig) look(ctx context.Context, same *sameness, k *prompt, variants int) error {
	for v := range variants {
		texts, ok := k.answers(v)
		if !ok {
			continue
		}
		class, ok, err := same.group(ctx, k.question(), k.expected, texts)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		s := &sampled{}
		if s.spread, err = diverge.Classes(diverge.Counts(class)); err != nil {
			return err
		}
		counts := diverge.Counts(class)
		s.modal = slices.Index(class, slices.Index(counts, slices.Max(counts)))
		if k.expected.Value != "" {
			outcomes, err := same.right(ctx, k, texts)
			if err != nil {
				return err
			}
			for _, o := range outcomes {
				s.right += int(yes(o == verify.Right))
				s.unread += int(yes(o == verify.Unparsed))
			}
			s.verdict = outcomes[s.modal]
		}
		k.seen[v] = s
	}
	return nil
}

func (k *prompt) question() string {
	var parts []string
	for _, m := range k.Messages {
		parts = append(parts, m.Content)
	}
	return strings.Join(append(parts, k.Prompt), "\n\n")
}

// right holds each answer against what is expected.
func (s *sameness) right(ctx context.Context, k *prompt, texts []string) ([]verify.Outcome, error) {
	out := make([]verify.Outcome, len(texts))
	if s.c.As != meaning {
		for i, t := range texts {
			out[i] = k.expected.Check(t).Outcome
		}
		return out, nil
	}
	compare, err := s.comparer(ctx, k.question(), k.expected, append(slices.Clone(texts), k.expected.Value))
	if err != nil {
		return nil, err
	}
	for i := range texts {
		v, err := compare(i, len(texts))
		if err != nil {
			return nil, err
		}
		out[i] = map[verdict]verify.Outcome{alike: verify.Right, differ: verify.Wrong}[v]
		if strings.TrimSpace(texts[i]) == "" {
			out[i] = verify.Unparsed
		}
	}
	return out, nil
}

// write puts what is of a case on the record of its first answer; the others have, by
// definition, none.
func (c *ConsistencyConfig) write(p *check.Pass, prompts []*prompt) {
	values := consistencyValues(c)
	for _, v := range values {
		p.Sign(check.Signature{Value: v.Name, Estimator: fmt.Sprintf("%d samples at temperature %g, %s", c.replicates(), c.temperature(), c.name())})
	}
	for _, k := range prompts {
		for r, t := range k.trials {
			if t == nil {
				continue
			}
			for v := range p.Variants {
				switch {
				case r > 0:
					for _, value := range values {
						t.Exempt(v, value.Name)
					}
				default:
					c.set(t, v, k, values)
				}
			}
		}
	}
	for v := range p.Variants {
		c.report(p, v, prompts)
	}
	drawAgreement(p, prompts)
}

// set writes the numbers of one case and variant. What is not known is left missing.
func (c *ConsistencyConfig) set(t *check.Trial, v int, k *prompt, values []check.Value) {
	expects := k.expected.Value != ""
	if !expects {
		for _, name := range []string{"majority_right", "confident_wrong", "pass_k"} {
			t.Exempt(v, name)
		}
	}
	s := k.seen[v]
	if s == nil {
		return
	}
	t.Set(v, "agreement", s.spread.Agreement)
	t.Set(v, "entropy", min(s.spread.MillerMadow, values[1].Most))
	t.Set(v, "modal", s.spread.Modal)
	if !expects {
		return
	}
	switch {
	case s.verdict != verify.Unparsed:
		t.Set(v, "majority_right", yes(s.verdict == verify.Right))
		t.Set(v, "confident_wrong", yes(s.sure() && s.verdict == verify.Wrong))
	case !s.sure():
		t.Set(v, "confident_wrong", 0)
	}
	if s.unread == 0 {
		if x, err := diverge.AllRight(s.right, s.spread.N, c.k()); err == nil {
			t.Set(v, "pass_k", x)
		}
	}
}

// sure reports whether nearly all answers are the same.
func (s *sampled) sure() bool { return s.spread.Modal >= confident-1e-9 }

// report says how consistent a variant is, where least, and where it is sure of
// what is wrong.
func (c *ConsistencyConfig) report(p *check.Pass, v int, prompts []*prompt) {
	var agreement []float64
	var least, wrong *prompt
	judged, sure, lost, unread := 0, 0, 0, 0
	for _, k := range prompts {
		s := k.seen[v]
		if s == nil {
			lost++
			continue
		}
		agreement = append(agreement, s.spread.Agreement)
		unread += s.unread
		if least == nil || s.spread.Agreement < least.seen[v].spread.Agreement {
			least = k
		}
		if k.expected.Value == "" || s.verdict == verify.Unparsed {
			continue
		}
		judged++
		if s.sure() && s.verdict == verify.Wrong {
			if sure++; wrong == nil {
				wrong = k
			}
		}
	}
	name := p.Variants[v].Name
	if lost > 0 {
		p.Note("%s: %d of %d cases lack an answer, or one that could be compared; their numbers are missing", name, lost, len(prompts))
	}
	if unread > 0 {
		p.Note("%s: no answer was found in %d texts of cases that expect one; they agree with equal texts alone, and are neither right nor wrong", name, unread)
	}
	if len(agreement) == 0 {
		return
	}
	e := compare.Mean(compare.Single(agreement), shown)
	f := check.Finding{Severity: check.Info, Code: "agreement", Variant: name, Case: least.ID, Figures: figures("agreement", e)}
	f.Text = fmt.Sprintf("of two answers to one question %s say the same (%d questions, %d answers each at temperature %g); they agree least in case %s: %.2f", interval(e), len(agreement), c.replicates(), c.temperature(), least.ID, least.seen[v].spread.Agreement)
	f.Bodies = kept(p, least, v)
	p.Report(f)
	if judged > 0 {
		share := stat.ExactShare(sure, judged, shown)
		f := check.Finding{Severity: check.Info, Code: "confident_wrong", Variant: name, Figures: figures("confident_wrong", share)}
		f.Text = fmt.Sprintf("in %s of %d cases at least 80 %% of the answers are the same and wrong", interval(share), judged)
		if wrong != nil {
			f.Case, f.Hint, f.Bodies = wrong.ID, "look at what it is sure of: asking again, or voting, does not mend it", []string{p.Keep(said(wrong.trials[wrong.seen[v].modal].Answers[v]))}
		}
		p.Report(f)
	}
}

// kept stores the different answers of one case.
func kept(p *check.Pass, k *prompt, v int) (digests []string) {
	seen := make(map[string]bool)
	for _, t := range k.trials {
		if s := said(t.Answers[v]); !seen[s] {
			seen[s] = true
			digests = append(digests, p.Keep(s))
		}
	}
	return digests
}

// drawAgreement shows the mean agreement by task, of cases that were made.
func drawAgreement(p *check.Pass, prompts []*prompt) {
	type cell struct{ sum, n float64 }
	by := make(map[string][]cell)
	for _, k := range prompts {
		task := k.Labels["task"]
		if task == "" {
			continue
		}
		if by[task] == nil {
			by[task] = make([]cell, len(p.Variants))
		}
		for v, s := range k.seen {
			if s != nil {
				by[task][v].sum += s.spread.Agreement
				by[task][v].n++
			}
		}
	}
	if len(by) == 0 {
		return
	}
	columns := slices.Sorted(maps.Keys(by))
	heat := &check.Heat{Columns: columns, Most: 1, Higher: true, Percent: true}
	for v, s := range p.Variants {
		heat.Rows = append(heat.Rows, s.Name)
		row := make([]check.Cell, len(columns))
		for i, task := range columns {
			if c := by[task][v]; c.n > 0 {
				mean := c.sum / c.n
				row[i] = check.Cell{Value: &mean, N: int(c.n)}
			}
		}
		heat.Cells = append(heat.Cells, row)
	}
	p.Draw(check.Figure{Title: "Agreement of answers by task", About: "Mean share of pairs of answers to one question that say the same, by variant and task.", Heat: heat})
}

// The published rule of thumb, and the true share of which its false alarms are told.
const (
	ruleShare   = 0.62
	ruleExample = 0.75
)

// rule applies the published rule to each case, and says what it is worth.
func (c *ConsistencyConfig) rule(p *check.Pass, name string, prompts []*prompt) {
	n := c.replicates()
	below := int(math.Ceil(ruleShare*float64(n))) - 1 // the largest count that fires
	alarm := stat.ChanceAtMost(below, n, ruleExample)
	for v, s := range p.Variants {
		fires, cases := 0, 0
		for _, k := range prompts {
			if seen := k.seen[v]; seen != nil {
				cases++
				fires += int(yes(seen.spread.Modal < ruleShare))
			}
		}
		if cases == 0 {
			continue
		}
		p.Report(check.Finding{
			Severity: check.Info, Code: "modal_62", Variant: s.Name,
			Text:    fmt.Sprintf("the rule %s fires on %d of %d cases; of a case whose answers are the same in 75 %% it fires on %.0f %% by chance, with %d samples", name, fires, cases, 100*alarm, n),
			Hint:    "let a clause judge mean(consistency.agreement) beside the baseline's",
			Figures: map[string]float64{"fires": float64(fires), "cases": float64(cases), "false_alarm": alarm},
		})
	}
}
