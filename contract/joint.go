package contract

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
)

// Joint weighs several objectives against each other, behind vetoes that no
// objective can make up for. See [Tradeoff] for how it is judged.
type Joint struct {
	Vetoes     []Clause       `yaml:"vetoes" doc:"clauses that must pass, however good the objectives are"`
	Objectives []Objective    `yaml:"objectives,required" doc:"two or more quantities that are traded for each other"`
	Profile    string         `yaml:"profile" oneof:"aggressive,balanced,conservative" doc:"how much speed weighs against quality: 70 to 30, 50 to 50 or 30 to 70; balanced if left out"`
	Weights    string         `yaml:"weights" oneof:"seed-v1" doc:"seed-v1: a formula of old, kept to compare with; its faults are documented"`
	Margin     config.Percent `yaml:"margin" max:"50%" doc:"how much of the baseline's utility the candidate may lose; 5% if left out"`
}

// Objective is one quantity, and which way of it is better.
type Objective struct {
	Of     Quantity `yaml:"of,required" doc:"the quantity, such as p95(ttft)"`
	Better string   `yaml:"better" oneof:"lower,higher" doc:"which way is better"`
	Worst  Level    `yaml:"worst" doc:"the value that is of no use; what is worse counts as much. Without worst and best the ratio to the baseline counts"`
	Best   Level    `yaml:"best" doc:"the value that leaves nothing to wish; what is better counts as much"`
	Weight float64  `yaml:"weight" doc:"instead of the profile's; then every objective needs one"`
	need   Need     // the quantity held against the baseline
}

// Level is a value of an objective's scale. The zero Level is none.
type Level struct {
	Value float64 // in the unit of the quantity
	text  string
}

// DecodeConfig reads the text; the objective knows its unit.
func (l *Level) DecodeConfig(n *config.Node) {
	if l.text = n.Scalar(); !n.IsScalar() || l.text == "" {
		n.Fault("wants a value", "write such as 2s, 30/s or 5%")
	}
}

// IsZero reports whether there is none.
func (l Level) IsZero() bool { return l.text == "" }

// MarshalText writes the level as it was read.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.text), nil }

// ConfigSchema describes a level.
func (Level) ConfigSchema() map[string]any {
	return map[string]any{"type": []any{"string", "number"}, "examples": []any{"2s", "30/s", "5%"}}
}

// DecodeConfig reads a quantity such as p95(ttft).
func (q *Quantity) DecodeConfig(n *config.Node) {
	text, ok := n.Text()
	if !ok {
		return
	}
	need, err := ParseNeed(text + asBaseline)
	if e, is := err.(*NeedError); is {
		n.FaultIn(min(byteOffset(text, e.Column), max(len(text)-1, 0)), e.What, e.Hint)
		return
	}
	*q = need.Quantity
}

// asBaseline makes a need of a quantity, to read it with the grammar of needs.
const asBaseline = " <= baseline"

// MarshalYAML writes the quantity as contracts do.
func (q Quantity) MarshalYAML() (any, error) { return q.String(), nil }

// ConfigSchema describes a quantity.
func (Quantity) ConfigSchema() map[string]any {
	return map[string]any{"type": "string", "examples": []any{"p95(ttft)", "rate(output_tokens)", "share(failed)"}}
}

// CheckConfig checks the direction and the scale.
func (o *Objective) CheckConfig(n *config.Node) {
	m, _ := find(o.Of.Metric)
	unit, _, _ := o.Of.unit(m)
	switch right := better(m); {
	case o.Better == "" && m.Name != "" && directed(m):
		n.Fault(fmt.Sprintf("%s has no direction", o.Of), "write better: "+right)
		return
	case o.Better == "":
		n.Fault(fmt.Sprintf("%s has no direction", o.Of), "write better: lower, or better: higher")
		return
	case m.Name != "" && directed(m) && o.Better != right:
		n.At("better").Fault(fmt.Sprintf("probably the wrong way round: a %s %s is better for every user", right, o.Of), "write better: "+right)
	}
	if o.Weight < 0 || math.IsInf(o.Weight, 0) || math.IsNaN(o.Weight) {
		n.At("weight").Fault("a weight is not below 0", "write a number such as 2, or change better:")
	}
	o.need, _ = ParseNeed(o.Of.String() + o.compare() + "baseline")
	if o.Worst.IsZero() != o.Best.IsZero() {
		n.Fault("a scale has two ends: worst and best", "write both, or neither to count the ratio to the baseline")
		return
	}
	if o.Worst.IsZero() {
		if m.Name == "" || unit == record.Proportion || unit == record.Points {
			n.Fault(fmt.Sprintf("%s may be 0, so its ratio to the baseline says nothing", o.Of), "write worst: and best:")
		}
		return
	}
	for i, l := range []*Level{&o.Worst, &o.Best} {
		key := []string{"worst", "best"}[i]
		need, err := ParseNeed(o.Of.String() + " <= " + l.text)
		switch e, is := err.(*NeedError); {
		case is:
			n.At(key).Fault(e.What, "write such as "+allowed[unit].example)
			return
		case need.Limit.relative():
			n.At(key).Fault("an end of a scale is a value", "write such as 2s")
			return
		}
		l.Value = need.Limit.Value
	}
	switch worst, best := o.Worst.Value, o.Best.Value; {
	case worst == best:
		n.At("best").Fault("worst and best are the same, so no value is better than another", "write two values")
	case worst < best != (o.Better == "higher"):
		n.At("best").Fault(fmt.Sprintf("the best is worse than the worst: %s is better", o.Better), "exchange worst and best, or change better:")
	}
}

// better is the direction in which the catalogue has a metric better.
func better(m record.Metric) string {
	if m.Higher {
		return "higher"
	}
	return "lower"
}

// compare is the comparison in whose direction the objective is better.
func (o *Objective) compare() string {
	if o.Better == "higher" {
		return " >= "
	}
	return " <= "
}

// The bounds on objectives: fewer than two need no weighing, more nobody can see.
const (
	leastObjectives = 2
	mostObjectives  = 8
)

// CheckConfig checks the objectives as a whole.
func (jt *Joint) CheckConfig(n *config.Node) {
	k := len(jt.Objectives)
	at := n.At("objectives")
	switch {
	case k < leastObjectives:
		at.Fault("one objective is traded for nothing", "write two or more, or a clause with need:")
	case k > mostObjectives:
		at.Fault(fmt.Sprintf("%d objectives; the limit is %d", k, mostObjectives), "make vetoes of those that may not be traded")
	}
	seen, sum, weighed := map[Quantity]bool{}, 0.0, 0
	for i, o := range jt.Objectives {
		item := at.Items()[i]
		if seen[o.Of] {
			item.At("of").Fault(fmt.Sprintf("%s stands here twice", o.Of), "remove one of them, or give it a weight")
		}
		seen[o.Of] = true
		sum += o.Weight
		if item.Has("weight") {
			weighed++
		}
	}
	switch {
	case weighed > 0 && (jt.Profile != "" || jt.Weights != ""):
		at.Fault("the objectives have weights of their own", "remove them, or profile: and weights:")
	case jt.Profile != "" && jt.Weights != "":
		n.At("weights").Fault("either a profile or a formula gives the weights", "remove one of them")
	case weighed > 0 && weighed < k:
		at.Fault(fmt.Sprintf("%d of %d objectives have a weight", weighed, k), "give each one, or none")
	case weighed > 0 && !(sum > 0):
		at.Fault("the weights do not add up to more than 0", "write weights such as 2 and 1")
	}
	if jt.Weights == seedWeights {
		if why := jt.seedless(); why != "" {
			n.At("weights").Fault(why, "write profile: balanced")
		}
	}
}

// atTop says where a joint clause may stand.
const atTop = "a joint clause stands at the top of a contract, in no group"

// profiles are the shares of speed in all weight; quality has the rest.
var profiles = map[string]float64{"aggressive": 0.7, "balanced": 0.5, "conservative": 0.3}

// quality reports whether an objective is one of quality: a share or a score, or what
// only a check knows. Times, rates and amounts are speed, or what it costs.
func (o *Objective) quality() bool {
	m, _ := find(o.Of.Metric)
	unit, _, _ := o.Of.unit(m)
	return m.Name == "" || unit == record.Proportion || unit == record.Points
}

// weights returns the weights, which add up to 1: of the objectives, or of the
// profile. A class without objectives leaves its weight to the other.
func (jt *Joint) weights() []float64 {
	out := make([]float64, len(jt.Objectives))
	fast, good := 0, 0
	for i := range jt.Objectives {
		out[i] = jt.Objectives[i].Weight
		if jt.Objectives[i].quality() {
			good++
		} else {
			fast++
		}
	}
	if !slices.ContainsFunc(out, func(w float64) bool { return w != 0 }) {
		share := profiles[cmp.Or(jt.Profile, "balanced")]
		for i := range out {
			if out[i] = share / float64(fast); jt.Objectives[i].quality() {
				out[i] = (1 - share) / float64(good)
			}
		}
	}
	return normalised(out)
}

// normalised scales weights to a sum of 1; nil if they have none.
func normalised(w []float64) []float64 {
	sum := 0.0
	for _, x := range w {
		sum += x
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return nil
	}
	out := make([]float64, len(w))
	for i := range w {
		out[i] = w[i] / sum
	}
	return out
}

// margin is the share of the baseline's utility that may be lost.
func (jt *Joint) margin() float64 {
	if jt.Margin == 0 {
		return 0.05
	}
	return float64(jt.Margin)
}

// seedWeights names the formula of old.
const seedWeights = "seed-v1"

// seedless says which of its three inputs the formula lacks; "" if it has all.
func (jt *Joint) seedless() string {
	var has [3]int
	for i := range jt.Objectives {
		if k := jt.Objectives[i].seedInput(); k >= 0 {
			has[k]++
		}
	}
	if len(jt.Objectives) != 3 || has != [3]int{1, 1, 1} {
		return "seed-v1 weighs three objectives: a time, a rate of tokens, and a share or score of hallucinations"
	}
	return ""
}

// seedInput is the place of the objective in the formula; -1 if it has none.
func (o *Objective) seedInput() int {
	m, _ := find(o.Of.Metric)
	unit, _, _ := o.Of.unit(m)
	switch unit {
	case record.Nanoseconds:
		return 0
	case record.TokensPerSecond:
		return 1
	case record.Proportion, record.Points:
		return 2
	}
	return -1
}

// seedV1 is the formula as it was: of a latency in milliseconds, tokens a second and
// hallucinations in per cent. Its faults: a rate below 100 tokens a second counts
// as 100, a share above 1 % gets a negative weight, and nothing adds up to 1.
func seedV1(ms, tps, hallucinations float64) [3]float64 {
	return [3]float64{1 / (1 + math.Log1p(ms)), math.Max(0.1, tps/1000), 1 - hallucinations}
}

// seeded returns the weights of the formula for the given values of the objectives.
func (jt *Joint) seeded(values []float64) []float64 {
	var in [3]float64
	for i := range jt.Objectives {
		v := values[i]
		switch m, _ := find(jt.Objectives[i].Of.Metric); {
		case jt.Objectives[i].seedInput() == 0:
			v /= 1e6
		case jt.Objectives[i].seedInput() == 2 && m.Unit == record.Proportion:
			v *= 100
		}
		in[jt.Objectives[i].seedInput()] = v
	}
	w := seedV1(in[0], in[1], in[2])
	out := make([]float64, len(jt.Objectives))
	for i := range out {
		out[i] = w[jt.Objectives[i].seedInput()]
	}
	return out
}

// title names where the weights come from.
func (jt *Joint) title() string {
	switch {
	case jt.Weights != "":
		return "the weights of " + jt.Weights
	case jt.Profile == "" && slices.ContainsFunc(jt.Objectives, func(o Objective) bool { return o.Weight > 0 }):
		return "the contract's own weights"
	}
	return "the profile " + strconv.Quote(cmp.Or(jt.Profile, "balanced"))
}

// joint lints the vetoes, and each objective as a comparison with the baseline.
func (l *linter) joint(c *Clause, at *config.Node, t terms) {
	l.list(c.Joint.Vetoes, c.memberNodes(at), t)
	for i := range c.Joint.Objectives {
		var node *config.Node
		if at != nil {
			node = at.At("joint").At("objectives").Items()[i]
		}
		o := &c.Joint.Objectives[i]
		leaf := leafLint{linter: l, c: &Clause{ID: c.ID, Need: o.need}, at: node, t: t}
		if o.need.IsZero() {
			l.report(CodeEmpty, node, c.ID, 0, "an objective without a quantity or a direction weighs nothing", "write of: p95(ttft) and better: lower")
			continue
		}
		leaf.check()
	}
}
