package dimension

import (
	"context"
	"fmt"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/verify"
)

// ExactConfig is the configuration of Exact.
type ExactConfig struct {
	Asking `yaml:",inline"`

	Kind      string   `yaml:"kind,required" oneof:"number,choice,text,phrase,json,set,code" doc:"what the answer is: a number, one of the options, the whole text, a phrase in it, a JSON value, a list in any order, or a block of code"`
	Options   []string `yaml:"options" doc:"what a choice chooses from; A to E if left out"`
	Tolerance float64  `yaml:"tolerance" min:"0" max:"1" doc:"how far a number may be off, relative to what is expected; 0 if left out"`
	Unparsed  string   `yaml:"unparsed" oneof:"missing,wrong" doc:"what an answer counts as in which none was found: missing (bounded by the worst and the best) or wrong; missing if left out"`
}

// CheckConfig reports options of a kind that has none.
func (c *ExactConfig) CheckConfig(n *config.Node) {
	if len(c.Options) > 0 && c.Kind != string(verify.Choice) {
		n.Fault("has options, but the kind "+c.Kind+" chooses from none", "write kind: choice, or leave the options out")
	}
}

func (c *ExactConfig) expected(value string) verify.Expected {
	return verify.Expected{Kind: verify.Kind(c.Kind), Value: value, Options: c.Options, Tolerance: c.Tolerance}
}

// Exact asks questions with one right answer.
var Exact = &check.Check{
	Name:   "exact",
	Doc:    "questions with one right answer: numbers, choices, texts, JSON, code",
	Config: func() any { return new(ExactConfig) },
	Values: func(any) []check.Value {
		return []check.Value{
			yesNo("right", "right answers", "the answer that was found is the expected one", true),
			yesNo("parsed", "answers found", "an answer was found in the text: one, and not several that contradict each other", true),
		}
	},
	Run: runExact,
}

func runExact(ctx context.Context, p *check.Pass) error {
	conf := p.Config.(*ExactConfig)
	cases, err := conf.cases(p)
	if err != nil {
		return err
	}
	for _, c := range cases {
		if err := conf.expected(c.Expect).Validate(); err != nil {
			return fmt.Errorf("case %s of %s expects no %s: %w", c.ID, conf.Set.File, conf.Kind, err)
		}
	}
	unparsed := conf.Unparsed
	if unparsed == "" {
		unparsed = "missing"
	}
	p.Sign(check.Signature{Value: "right", Estimator: fmt.Sprintf("exact %s, tolerance %g, unparsed %s", conf.Kind, conf.Tolerance, unparsed)})
	p.Sign(check.Signature{Value: "parsed", Estimator: "extraction of a " + conf.Kind})
	lost := make([]int, len(p.Variants))
	err = conf.each(ctx, p, cases, func(c corpus.Case, t *check.Trial, v int, a *check.Answer) {
		r := conf.expected(c.Expect).Check(said(a))
		t.Set(v, "parsed", yes(r.Outcome != verify.Unparsed))
		if r.Outcome == verify.Unparsed {
			if unparsed == "wrong" {
				t.Set(v, "right", 0)
			}
			if lost[v]++; lost[v] == 1 { // one example of each variant
				p.Report(check.Finding{
					Severity: check.Info, Code: "unparsed", Variant: p.Variants[v].Name, Case: c.ID,
					Text:   fmt.Sprintf("no answer was found in that of case %s: %s", c.ID, r.How),
					Hint:   "ask for a form that is easy to find, with suffix: or system:",
					Bodies: []string{p.Keep(said(a))},
				})
			}
			return
		}
		t.Set(v, "right", yes(r.Outcome == verify.Right))
	})
	for v, n := range lost {
		if n > 0 {
			p.Note("%s: no answer was found in %d answers, which count as %s", p.Variants[v].Name, n, unparsed)
		}
	}
	return err
}
