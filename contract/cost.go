package contract

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// Price is what a variant's tokens cost.
type Price struct {
	Input    float64 `yaml:"input,required" min:"0" doc:"of a million tokens of prompts"`
	Output   float64 `yaml:"output,required" min:"0" doc:"of a million tokens of answers"`
	Currency string  `yaml:"currency" doc:"of both; USD if left out"`
}

func (p Price) currency() string {
	if p.Currency == "" {
		return "USD"
	}
	return p.Currency
}

// Cost is what the requests take that a clause lacks, if they are like those that were
// measured: of the candidate and, where there is one, of the baseline, which take
// turns. What is not known is left out, and never 0.
type Cost struct {
	Time     time.Duration `json:"time_ns,omitempty"` // of load, of one variant after the other; 0: not known
	Tokens   int64         `json:"tokens,omitempty"`  // of prompts and answers; 0: not known
	Money    *float64      `json:"money,omitempty"`   // null: a price or the tokens are not known
	Currency string        `json:"currency,omitempty"`
}

// String says the cost in words; "" if nothing of it is known.
func (c Cost) String() string {
	var parts []string
	if c.Time > 0 {
		parts = append(parts, config.Duration(roughly(c.Time)).String()+" of load")
	}
	switch n := float64(c.Tokens); {
	case n >= 1e5:
		parts = append(parts, significant(float64(about(n))/1e6, 2)+" M tokens")
	case n > 0:
		parts = append(parts, grouped(fmt.Sprint(about(n)))+" tokens")
	}
	if c.Money != nil {
		parts = append(parts, significant(*c.Money, 2)+" "+c.Currency)
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}

// roughly rounds up to two digits or so.
func roughly(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Hour, 10 * time.Minute, time.Minute, 10 * time.Second, time.Second, 100 * time.Millisecond} {
		if d >= 10*unit {
			return (d + unit - 1) / unit * unit
		}
	}
	return (d + 10*time.Millisecond - 1) / (10 * time.Millisecond) * (10 * time.Millisecond)
}

// cost prices the shortfall; nil if nothing is known of what it takes.
func (x *trial) cost(j *judge) *Cost {
	variants := []string{j.candidate}
	if j.baseline != "" {
		variants = append(variants, j.baseline)
	}
	var c Cost
	money, priced, counted := 0.0, true, true
	for _, v := range variants {
		s, all := j.scope(v, x.Workload, x.terms.where), j.scope(v, x.Workload, nil)
		n := s.counts.judged()
		if n == 0 {
			return nil
		}
		times := float64(x.Shortfall) / float64(n)
		c.Time += time.Duration(math.Min(times*float64(s.span()), math.MaxInt64/4))
		in, out, ok := all.tokens()
		counted = counted && ok
		c.Tokens += int64(math.Ceil(times * (in + out)))
		p, known := j.e.Prices[v]
		priced = priced && known && (c.Currency == "" || c.Currency == p.currency())
		money += times * (in*p.Input + out*p.Output) / 1e6
		c.Currency = p.currency()
	}
	if !counted {
		c.Tokens = 0
	}
	if counted && priced {
		c.Money = &money
	} else {
		c.Currency = ""
	}
	if c == (Cost{}) {
		return nil
	}
	return &c
}

// tokens are those of all requests, as far as half of the answers at least tell them.
func (s *scope) tokens() (in, out float64, ok bool) {
	var answered, told float64
	for _, r := range s.records {
		if !r.Success() {
			continue
		}
		answered++
		p, also := r.Prompt.N()
		if o, ok := r.Output.N(); ok && also {
			told, in, out = told+1, in+float64(p), out+float64(o)
		}
	}
	if told == 0 || told < answered/2 {
		return 0, 0, false
	}
	all := float64(len(s.records)) / told
	return in * all, out * all, true
}

// detect works out the effect that runs of this size would have found: the least true
// value, or change against the baseline, beyond the limit that fails in four such runs
// of five. The estimate is as far from its bound as the error allows: as many
// standard errors as its confidence asks for, which the power adds to.
func (x *trial) detect(est stat.Estimate) {
	q, u := x.clause.Need.Quantity, x.Unit
	zc, zp := quantileOfNormal(x.terms.confidence), quantileOfNormal(power)
	upper := x.Compare.upper()
	if q.Stat == "share" && x.Change == nil { // which has a width where nothing happened, too
		p, n := x.limit, est.Effective
		if !upper {
			p = 1 - p
		}
		if found := exceeds(p, zc+zp, n); n >= 1 && found < 1 {
			if !upper {
				found = 1 - found
			}
			x.Detects = finite(found)
		}
		return
	}
	bound := est.Lo // that fails when it is beyond the limit
	if !upper {
		bound = est.Hi
	}
	ratio := x.ChangeIs == ChangeRatio || x.Change == nil && u != record.Proportion && u != record.Points
	switch {
	case !est.Defined() || math.IsInf(bound, 0) || bound == est.Value:
	case ratio && est.Value > 0 && bound > 0 && x.limit > 0:
		x.Detects = finite(x.limit * math.Pow(est.Value/bound, 1+zp/zc))
	case !ratio:
		x.Detects = finite(x.limit + (est.Value-bound)*(1+zp/zc))
	}
}

// remark notes what such a run finds, of a clause that did not fail, and what it would take
// to decide one that is open. Of a run that proves nothing neither is known.
func (x *trial) remark(j *judge) {
	if len(j.e.Unfit) > 0 {
		x.Detects = nil
		return
	}
	if x.Shortfall > 0 {
		if x.Cost = x.cost(j); x.Cost != nil && x.Cost.String() != "" {
			x.note("the missing requests would take about " + x.Cost.String())
		}
	}
	switch {
	case x.Detects == nil || x.Grade == Fail:
	case x.Change != nil:
		x.note(fmt.Sprintf("four such runs in five would fail a candidate %s", x.change.place(*x.Detects)))
	default:
		x.note(fmt.Sprintf("four such runs in five would fail a candidate whose %s is %s", subject(x.clause.Need.Quantity, x.metric), value(x.Unit, *x.Detects, 3)))
	}
}
