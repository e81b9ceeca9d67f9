package contract

import (
	"fmt"
	"math"
	"slices"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
)

// Outlook is what a run as planned will be able to tell of one comparison.
type Outlook struct {
	ID        string  `json:"id"`
	Need      string  `json:"need"`
	Workload  string  `json:"workload"`
	Requests  int64   `json:"requests"`   // planned, of each variant
	WrongPass float64 `json:"wrong_pass"` // how often it passes a candidate just beyond its limit, at most; 0 for a fact of the run
	WrongFail float64 `json:"wrong_fail"` // how often it fails a candidate exactly at its limit, at most
	Detects   string  `json:"detects,omitempty"`
}

// power is the chance with which Outlook.Detects is found.
const power = 0.8

// Look returns the outlook of every comparison on every workload that it is judged
// on, for requests that do not depend on each other; those that do tell less.
func Look(c *Contract, planned []Planned) []Outlook {
	out := []Outlook{}
	if c == nil {
		return out
	}
	l := linter{planned: planned}
	t := terms{confidence: DefaultConfidence}
	if c.Confidence != 0 {
		t.confidence = float64(c.Confidence)
	}
	clauses := c.named()
	for i := range clauses {
		l.each(&clauses[i], nil, t.with(clauses[i]), func(leaf *Clause, _ *config.Node, t terms) {
			m, unit, err := leaf.Need.Quantity.metric(l.own()...)
			if err != nil || leaf.Need.bind(m) != nil {
				return
			}
			for _, p := range planned {
				if p.Requests <= 0 || !p.meant(m, t.on) || len(t.on) > 0 && !slices.Contains(t.on, p.Workload) {
					continue
				}
				o := Outlook{ID: leaf.ID, Need: leaf.Need.String(), Workload: p.Workload, Requests: p.Requests}
				if !leaf.Need.Quantity.fact() {
					o.WrongPass = math.Round((1-t.confidence)*1e12) / 1e12
					o.WrongFail = o.WrongPass
					o.Detects = detects(leaf.Need, m, unit, p.atEnd(t.confidence), float64(p.Requests))
				}
				out = append(out, o)
			}
		})
	}
	return out
}

// detects says the smallest true effect that fails the clause with a chance of
// 80 %, by the normal approximation; "" where it takes more than the plan to know.
func detects(n Need, m record.Metric, u record.Unit, confidence, requests float64) string {
	z := quantileOfNormal(confidence) + quantileOfNormal(power)
	switch q := n.Quantity; {
	case q.Stat == "quantile" && !n.Limit.relative():
		p := 1 - q.P // share of requests that may lie beyond the limit
		if !n.Compare.upper() {
			p = q.P
		}
		p = math.Round(p*1e8) / 1e8 // what binary arithmetic adds
		return fmt.Sprintf("%s of requests beyond the limit, where %s may be", value(record.Proportion, exceeds(p, z, requests), 2), value(record.Proportion, p, 2))
	case q.Stat == "share" && !n.Limit.relative() && n.Compare.upper():
		return value(record.Proportion, exceeds(n.Limit.Value, z, requests), 2) + " of requests"
	case q.Stat == "quantile" && n.Limit.Factor != 1 && u == record.Nanoseconds:
		// Of a lognormal value the p-quantile has the standard error of its logarithm
		// σ·√(p(1 − p)/n)/φ(z_p); both variants have one.
		const sigma = 0.5
		at := quantileOfNormal(q.P)
		density := math.Exp(-at*at/2) / math.Sqrt(2*math.Pi)
		se := sigma * math.Sqrt(2*q.P*(1-q.P)/requests) / density
		change := n.Limit.Factor * math.Exp(z*se)
		if !n.Compare.upper() {
			change = n.Limit.Factor * math.Exp(-z*se)
		}
		return fmt.Sprintf("%s × the %s, if ln %s has σ 0.5", trim(change, 2), n.Limit.yardstick(), m.Title)
	}
	return ""
}

// exceeds solves p1 = p + z·√(p1(1 − p1)/n): the share that is told from p.
func exceeds(p, z, n float64) float64 {
	p1 := p
	for range 50 {
		p1 = min(1, p+z*math.Sqrt(p1*(1-p1)/n))
	}
	return p1
}

// quantileOfNormal is the p-quantile of the standard normal distribution.
func quantileOfNormal(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }
