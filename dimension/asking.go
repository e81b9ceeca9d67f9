package dimension

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// Asking says which cases a check asks, and how.
type Asking struct {
	Set         check.SetRef `yaml:"set,required" doc:"the cases: a file, or {file, format}"`
	Limit       int          `yaml:"limit" min:"1" max:"1000000" doc:"ask so many cases, drawn by the seed; all if left out"`
	Replicates  int          `yaml:"replicates" min:"1" max:"100" doc:"how often each case is asked; 1 if left out"`
	System      string       `yaml:"system" doc:"a system message before each case"`
	Suffix      string       `yaml:"suffix" doc:"text added to the last message, such as the form of the answer that is wanted"`
	MaxTokens   int64        `yaml:"max_tokens" min:"1" max:"1000000" doc:"limit of output tokens of a case that states none; 512 if left out"`
	Temperature *float64     `yaml:"temperature" min:"0" max:"2" doc:"0 if left out and each case is asked once; else the server's default"`
	Cluster     string       `yaml:"cluster" doc:"label of the cases that says which belong together, such as the document; each case by itself if left out"`
}

// cases returns the cases to ask, those that Limit draws in the order of the set.
func (a *Asking) cases(p *check.Pass) ([]corpus.Case, error) {
	p.Clustered(a.Cluster)
	set, err := p.Set(a.Set)
	if err != nil {
		return nil, err
	}
	if len(set.Cases) == 0 {
		return nil, fmt.Errorf("%s has no cases to ask", a.Set.File)
	}
	if a.Limit == 0 || a.Limit >= len(set.Cases) {
		return set.Cases, nil
	}
	p.Note("%d of %d cases were asked, drawn by the seed", a.Limit, len(set.Cases))
	return drawn(p.Rand("cases"), set.Cases, a.Limit), nil
}

// drawn takes n of a list, each with the same chance, in their order (selection
// sampling).
func drawn[T any](rng *rand.Rand, of []T, n int) []T {
	out := make([]T, 0, n)
	for i, x := range of {
		if rng.IntN(len(of)-i) < n-len(out) {
			out = append(out, x)
		}
	}
	return out
}

// shots turns cases into questions, each case's replicates side by side.
func (a *Asking) shots(cases []corpus.Case) []check.Shot {
	n := max(1, a.Replicates)
	temperature := a.Temperature
	if temperature == nil && n == 1 {
		temperature = new(float64)
	}
	shots := make([]check.Shot, 0, n*len(cases))
	for _, c := range cases {
		q := check.Question{Messages: a.messages(c), MaxTokens: c.MaxTokens, Temperature: temperature}
		if q.MaxTokens == 0 {
			q.MaxTokens = a.MaxTokens
		}
		if q.MaxTokens == 0 {
			q.MaxTokens = 512
		}
		for r := range n {
			q.Replicate = r
			shots = append(shots, check.Shot{Case: c.ID, Cluster: a.cluster(c), Labels: maps.Clone(c.Labels), Question: q})
		}
	}
	return shots
}

// cluster is what the case shares with others: an empty label is none.
func (a *Asking) cluster(c corpus.Case) string {
	if a.Cluster != "" && c.Labels[a.Cluster] != "" {
		return c.Labels[a.Cluster]
	}
	return c.ID
}

func (a *Asking) messages(c corpus.Case) []corpus.Message {
	var m []corpus.Message
	if a.System != "" {
		m = append(m, corpus.Message{Role: "system", Content: a.System})
	}
	if len(c.Messages) == 0 {
		m = append(m, corpus.Message{Role: "user", Content: c.Prompt})
	}
	m = append(m, c.Messages...)
	if a.Suffix != "" {
		m[len(m)-1].Content += a.Suffix
	}
	return m
}

// each asks the cases and calls judge with each answer that came, one call at a
// time, in the order of the cases. What was asked before an error is judged.
func (a *Asking) each(ctx context.Context, p *check.Pass, cases []corpus.Case, judge func(c corpus.Case, t *check.Trial, variant int, answer *check.Answer)) error {
	byID := make(map[string]corpus.Case, len(cases))
	for _, c := range cases {
		byID[c.ID] = c
	}
	trials, err := p.Ask(ctx, a.shots(cases))
	for _, t := range trials {
		for v, answer := range t.Answers {
			if answer.Answered() {
				judge(byID[t.Shot.Case], t, v, answer)
			}
		}
	}
	return err
}

// said is the text to be judged: a refusal in the API's own field says nothing else.
func said(a *check.Answer) string {
	if a.Text == "" && a.Refusal != "" {
		return a.Refusal
	}
	return a.Text
}

// cut reports whether the answer ended at a limit instead of by itself.
func cut(a *check.Answer) bool { return a.Finish == "length" }

// Reading a value that is a share of yes.
func yes(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// yesNo describes a value whose share contracts judge.
func yesNo(name, title, doc string, higher bool) check.Value {
	return check.Value{Name: name, Title: title, Doc: doc, Unit: record.Proportion, YesNo: true, Higher: higher}
}
