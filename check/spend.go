package check

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Budget bounds what the checks of a run may spend. The zero Budget is none.
type Budget struct {
	Tokens int64   // prompt and output tokens of all endpoints; 0: no bound
	Money  float64 // in the currency of the prices; 0: no bound
}

// Spending is what was spent.
type Spending struct {
	Requests     int64   `json:"requests"` // further tries included
	Failed       int64   `json:"failed"`   // of them without an answer
	Reused       int64   `json:"reused"`   // questions that were answered before, at no cost
	PromptTokens int64   `json:"prompt_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	Uncounted    int64   `json:"uncounted"`       // answers whose tokens the endpoint does not tell; a quarter of their bytes is counted
	Money        float64 `json:"money,omitempty"` // of the tokens that have a price
	Unpriced     int64   `json:"unpriced"`        // tokens that have none
}

// Tokens is the number of all tokens.
func (s Spending) Tokens() int64 { return s.PromptTokens + s.OutputTokens }

func (s *Spending) add(o Spending) {
	s.Requests += o.Requests
	s.Failed += o.Failed
	s.Reused += o.Reused
	s.PromptTokens += o.PromptTokens
	s.OutputTokens += o.OutputTokens
	s.Uncounted += o.Uncounted
	s.Money += o.Money
	s.Unpriced += o.Unpriced
}

// Cost is what one check spent.
type Cost struct {
	Spending
	Time       time.Duration  `json:"time_ns"` // from its begin to its end, in this process
	ByEndpoint []EndpointCost `json:"by_endpoint,omitempty"`
}

// EndpointCost is what one check spent at one endpoint.
type EndpointCost struct {
	Endpoint string `json:"endpoint"`
	Spending
}

// BudgetError says that the budget is spent.
type BudgetError struct {
	Budget Budget
	Spent  Spending
}

// Error says which bound was reached.
func (e *BudgetError) Error() string {
	if e.Budget.Tokens > 0 && e.Spent.Tokens() >= e.Budget.Tokens {
		return fmt.Sprintf("the budget of %d tokens is spent: %d by then", e.Budget.Tokens, e.Spent.Tokens())
	}
	return fmt.Sprintf("the budget of %g is spent: %.4g by then", e.Budget.Money, e.Spent.Money)
}

// over reports whether a bound is reached.
func (b Budget) over(s Spending) bool {
	return b.Tokens > 0 && s.Tokens() >= b.Tokens || b.Money > 0 && s.Money >= b.Money
}

// bill adds up what one check spends, by endpoint.
type bill struct {
	mu    sync.Mutex
	order []string
	by    map[string]*Spending
}

func (b *bill) add(endpoint string, s Spending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by[endpoint] == nil {
		b.order = append(b.order, endpoint)
		b.by[endpoint] = new(Spending)
	}
	b.by[endpoint].add(s)
}

func (b *bill) cost(took time.Duration) Cost {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := Cost{Time: took}
	slices.Sort(b.order)
	for _, name := range b.order {
		c.add(*b.by[name])
		c.ByEndpoint = append(c.ByEndpoint, EndpointCost{name, *b.by[name]})
	}
	return c
}

// price charges an answer to a question.
func (p Price) charge(q *Question, a *Answer) Spending {
	var s Spending
	prompt, known := a.Prompt.N()
	output, counted := a.Output.N()
	if a.Outcome.Group() == 0 && !known && !counted {
		return s // a failure that costs nothing anybody knows of
	}
	if !known || !counted {
		s.Uncounted = 1
	}
	if !known {
		prompt = (q.bytes() + 3) / 4
	}
	if !counted {
		output = (int64(len(a.Text)) + 3) / 4
	}
	s.PromptTokens, s.OutputTokens = prompt, output
	if p.IsZero() {
		s.Unpriced = prompt + output
		return s
	}
	s.Money = (p.Prompt*float64(prompt) + p.Output*float64(output)) / 1e6
	return s
}
