package dimension

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/perturb"
)

// Rewriting says which cases are asked clean and written otherwise, and how.
type Rewriting struct {
	Set         check.SetRef `yaml:"set" doc:"cases of one's own: a file, or {file, format}; made from the run's seed if left out"`
	Cases       int          `yaml:"cases" min:"1" max:"100000" doc:"how many cases; of a set drawn by the seed"`
	Languages   []string     `yaml:"languages" doc:"of the cases that are made: en, zh; both if left out"`
	Families    []string     `yaml:"families" doc:"how cases are written otherwise; docs/perturb.md lists the families"`
	Rate        float64      `yaml:"rate" min:"0" max:"1" doc:"share of the places that a family could change and does; each family's own if left out"`
	Options     []string     `yaml:"options" doc:"the answers that a case of the set may have, such as the labels of a classification"`
	System      string       `yaml:"system" doc:"a system message before each case"`
	Suffix      string       `yaml:"suffix" doc:"text added to the last message; it is not written otherwise"`
	MaxTokens   int64        `yaml:"max_tokens" min:"1" max:"1000000" doc:"limit of output tokens"`
	Temperature *float64     `yaml:"temperature" min:"0" max:"2"`
	Cluster     string       `yaml:"cluster" doc:"label of the cases of a set that says which belong together; each case by itself if left out"`
}

// faults reports what does not go together.
func (c *Rewriting) faults(n *config.Node) {
	if bad := stranger(c.Languages, []string{"en", "zh"}); bad != "" {
		n.Fault(fmt.Sprintf("%q is no language of the cases that are made", bad), "write en, zh or both")
	}
	var families []string
	for _, f := range perturb.Families() {
		families = append(families, string(f))
	}
	if bad := stranger(c.Families, families); bad != "" {
		n.Fault(fmt.Sprintf("there is no family %q", bad), "write some of "+strings.Join(families, ", "))
	}
	if len(c.Options) == 1 {
		n.Fault("one option is no choice", "name two or more")
	}
}

func (c *Rewriting) languages() []string {
	if len(c.Languages) == 0 {
		return []string{"en", "zh"}
	}
	return c.Languages
}

// asking is the part of it that all checks have.
func (c *Rewriting) asking() *Asking {
	return &Asking{Set: c.Set, Limit: c.Cases, System: c.System, Suffix: c.Suffix, Cluster: c.Cluster}
}

// inquiry is one case, clean and to be written otherwise.
type inquiry struct {
	id, cluster string
	labels      map[string]string
	text        string // what is written otherwise
	ask         func(text string) []corpus.Message
	protect     []string
	source      *closed // of a case that was made; else nil
	expect      string  // of a case of a set
}

// inquiries are the cases of the set, or else those that are made.
func (c *Rewriting) inquiries(p *check.Pass, made func() []closed) (out []inquiry, err error) {
	a := c.asking()
	if c.Set.IsZero() {
		for _, k := range made() {
			out = append(out, inquiry{
				id: k.id, cluster: k.template, labels: map[string]string{"language": k.language, "kind": k.kind}, text: k.text, source: &k,
				ask: func(text string) []corpus.Message { return a.messages(corpus.Case{Prompt: k.prompt(text)}) },
			})
		}
		return out, nil
	}
	cases, err := a.cases(p)
	for _, k := range cases {
		text := k.Prompt
		if n := len(k.Messages); n > 0 {
			text = k.Messages[n-1].Content
		}
		out = append(out, inquiry{
			id: k.ID, cluster: a.cluster(k), labels: k.Labels, text: text, protect: c.Options, expect: k.Expect,
			ask: func(text string) []corpus.Message {
				if n := len(k.Messages); n > 0 {
					other := k
					other.Messages = slices.Clone(k.Messages)
					other.Messages[n-1].Content = text
					return a.messages(other)
				}
				return a.messages(corpus.Case{Prompt: text})
			},
		})
	}
	return out, err
}

// asIs is the label of the family of what is asked as it is.
const asIs = "clean"

// shot asks an inquiry with a text.
func (c *Rewriting) shot(k inquiry, family, text string, replicate int, q check.Question) check.Shot {
	labels := maps.Clone(k.labels)
	if labels == nil {
		labels = make(map[string]string)
	}
	labels["family"] = family
	q.Messages, q.MaxTokens, q.Temperature, q.Replicate = k.ask(text), max(c.MaxTokens, q.MaxTokens), c.Temperature, replicate
	return check.Shot{Case: k.id, Cluster: k.cluster, Labels: labels, Question: q}
}

// rewritten are the valid texts of an inquiry, by family.
func (c *Rewriting) rewritten(p *check.Pass, families []string, k inquiry) map[string]string {
	out := make(map[string]string)
	for _, f := range families {
		if r := perturb.Apply(perturb.Family(f), k.text, p.Seed, k.id, perturb.Options{Rate: c.Rate, Protect: k.protect}); r.Valid {
			out[f] = r.Text
		}
	}
	return out
}
