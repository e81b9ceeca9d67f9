package audit

import (
	"fmt"
	"math"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/stat"
)

// The error rates of the audit.
const (
	falseAlarm = .05 // chance that an honest server fails anything, at most
	passWrong  = .05 // chance that a check passes a server that does it in half of its answers, or to the tenth that is allowed
	probes     = 6   // that share falseAlarm
)

// Figure is a number of a check, with its interval where it has one. What is
// missing or not finite is nil.
type Figure struct {
	Name  string   `json:"name"`
	Unit  string   `json:"unit,omitempty"` // s, tokens, "" for a share or a ratio
	Value *float64 `json:"value"`
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`
	N     int      `json:"n"` // observations
}

// Evidence is an answer that shows what a check found.
type Evidence struct {
	Request string `json:"request"` // its X-Request-Id
	Says    string `json:"says"`    // what is wrong with it; a part of the answer is cleaned and bounded
}

// maxEvidence bounds the examples of a check.
const maxEvidence = 5

// Check is one question about an endpoint and its answer.
type Check struct {
	Name       string         `json:"name"`
	Asks       string         `json:"asks"` // the question
	Grade      contract.Grade `json:"grade"`
	Supporting bool           `json:"supporting,omitempty"` // can fail the probe, but need not pass
	Reason     string         `json:"reason"`
	Next       string         `json:"next,omitempty"` // what to do unless it passed
	Figures    []Figure       `json:"figures,omitempty"`
	Evidence   []Evidence     `json:"evidence,omitempty"`
}

// Probe is one way to cheat and what the checks say about it.
type Probe struct {
	Name   string         `json:"name"`
	Asks   string         `json:"asks"`
	Grade  contract.Grade `json:"grade"`
	Reason string         `json:"reason"`
	Next   string         `json:"next,omitempty"`
	Checks []Check        `json:"checks"`
}

// settle grades the probe by its checks: the worst decides, and gives the reason.
func (p *Probe) settle() {
	var grades []contract.Grade
	for i := range p.Checks {
		c := &p.Checks[i]
		if c.Grade != contract.Fail && c.Supporting {
			continue
		}
		grades = append(grades, c.Grade)
	}
	p.Grade = contract.Worst(grades...)
	if len(grades) == 0 {
		p.Reason = "nothing of it could be checked"
		return
	}
	for i := range p.Checks {
		c := &p.Checks[i]
		if c.Grade == p.Grade && (c.Grade == contract.Fail || !c.Supporting) && p.Grade != contract.Pass {
			p.Reason, p.Next = c.Reason, c.Next
			return
		}
	}
	p.Reason = "nothing of it was found"
	for _, c := range p.Checks {
		if c.Grade == contract.Inconclusive {
			p.Reason += "; " + c.Name + " could not be told"
		}
	}
}

// tally counts the answers that show what a check looks for.
type tally struct {
	hits, of int
	evidence []Evidence
}

// add counts one answer; says is what is wrong with it if it hit.
func (t *tally) add(x *exchange, hit bool, says string) {
	t.of++
	if !hit {
		return
	}
	t.hits++
	if len(t.evidence) < maxEvidence {
		t.evidence = append(t.evidence, Evidence{x.id, says})
	}
}

// test is how a tally is judged: an honest server hits in at most a share honest
// of its answers, and one that does it in a share cheat at least. The chance of a
// false alarm is at most alpha.
type test struct{ honest, cheat, alpha float64 }

func (t test) grade(hits, of int) contract.Grade {
	switch {
	case of == 0:
		return contract.Inconclusive
	case stat.ChanceAtLeast(hits, of, t.honest) <= t.alpha:
		return contract.Fail
	case stat.ChanceAtMost(hits, of, t.cheat) <= passWrong:
		return contract.Pass
	}
	return contract.Inconclusive
}

// check judges a tally. Found is the reason of a fail, next its next step.
func (t test) check(name, asks string, of *tally, found, next string) Check {
	c := Check{Name: name, Asks: asks, Grade: t.grade(of.hits, of.of), Figures: []Figure{share("share", of.hits, of.of)}}
	switch {
	case c.Grade == contract.Fail:
		c.Reason, c.Next, c.Evidence = fmt.Sprintf("%s (%d of %d)", found, of.hits, of.of), next, of.evidence
	case of.of == 0:
		c.Reason, c.Next = "no answer can be judged for it", "see why requests failed or were left out of times, and audit again"
	case c.Grade == contract.Inconclusive:
		c.Reason = fmt.Sprintf("%d of %d: too many to rule it out, too few to be sure", of.hits, of.of)
		c.Next, c.Evidence = "audit again with --budget thorough, on a quiet endpoint and from an idle machine", of.evidence
		if of.hits == 0 {
			c.Reason = fmt.Sprintf("none of only %d: too few to rule it out", of.of)
		}
	default:
		c.Reason = fmt.Sprintf("found in %d of %d", of.hits, of.of)
	}
	return c
}

// undecided is a check that could not be made.
func undecided(name, asks, why, next string) Check {
	return Check{Name: name, Asks: asks, Reason: why, Next: next}
}

// share is the figure of k of n.
func share(name string, k, n int) Figure {
	return figure(name, "", stat.ExactShare(k, n, .95))
}

func figure(name, unit string, e stat.Estimate) Figure {
	return Figure{Name: name, Unit: unit, Value: finite(e.Value), Lo: finite(e.Lo), Hi: finite(e.Hi), N: e.N}
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// medianOf is the figure of a median.
func medianOf(name, unit string, values []float64) Figure {
	s, err := stat.NewSample(values, 0)
	if err != nil || len(values) == 0 {
		return Figure{Name: name, Unit: unit}
	}
	return figure(name, unit, s.Quantile(.5, .95))
}

// meanOf estimates a mean, with passWrong in each tail: inside of two limits by
// both bounds is a pass (two one-sided tests).
func meanOf(values []float64) stat.Estimate {
	s, err := stat.NewSample(values, 0)
	if err != nil {
		s, _ = stat.NewSample(nil, 0) // no values, no mean
	}
	return s.Mean(1 - 2*passWrong)
}
