package report

import (
	"fmt"
	"time"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// Steady says from when on one variant was measured in a steady state. It is
// shown; every figure and every clause counts the warm-up all the same.
type Steady struct {
	Variant  string           `json:"variant"`
	Blocks   int              `json:"blocks"`           // that were long enough to tell
	Unsteady int              `json:"unsteady"`         // blocks without a steady state in their first half
	WarmUp   time.Duration    `json:"warm_up_ns"`       // the longest of the steady blocks
	Why      string           `json:"why,omitempty"`    // what lasted longest, or what never became steady
	Growth   *contract.Figure `json:"in_flight_growth"` // requests a second by which the number in flight grows, of a run in one block; null: unknown
	Line     string           `json:"line"`             // all of it for people
}

// leastAnswers is how many requests a block must have for its warm-up to be told.
const leastAnswers = 60

// steady looks at each block of each variant.
func (b *builder) steady(info record.WorkloadInfo) (out []Steady) {
	users := info.Users
	if !info.Open && users == 0 {
		return nil // of another tool, or of an earlier version
	}
	type turn struct {
		variant string
		block   int
	}
	of := make(map[turn][]*record.Record)
	for i := range b.records {
		if r := &b.records[i]; r.Workload == info.Name && r.Phase == record.Measured {
			t := turn{r.Variant, r.Block}
			of[t] = append(of[t], r)
		}
	}
	for _, v := range b.doc.Variants {
		s := Steady{Variant: v.Name}
		grown := ""
		for _, w := range b.windows {
			records := of[turn{w.Variant, w.Block}]
			if w.Variant != v.Name || w.Workload != info.Name || len(records) < leastAnswers {
				continue
			}
			s.Blocks++
			found := contract.FindSteady(records, w, users, confidence)
			warm, _ := found.From.Sub(w.Start)
			switch {
			case !found.Found:
				s.Unsteady++
				s.Why = found.Why
			case warm > s.WarmUp:
				s.WarmUp = warm
				if s.Unsteady == 0 {
					s.Why = found.Why
				}
			}
			if d := found.Drift; d.Defined() {
				s.Growth = &contract.Figure{Estimate: d}
				if d.Lo > 0 && d.Value*float64(w.End-found.From)/1e9 >= 2 {
					grown = fmt.Sprintf("requests in flight grew by %.2g a second to the end", d.Value)
				}
			}
		}
		if s.Blocks == 0 {
			continue
		}
		if s.Blocks > 1 {
			s.Growth = nil
		}
		s.Line = s.line(grown)
		out = append(out, s)
	}
	return out
}

// line says it in one sentence.
func (s *Steady) line(grown string) string {
	each := ""
	if s.Blocks > 1 {
		each = " of each block"
	}
	var line string
	switch {
	case s.Unsteady == s.Blocks:
		line = s.Variant + " did not become steady: " + s.Why
	case s.Unsteady > 0:
		line = fmt.Sprintf("%s did not become steady in %d of %d blocks: %s", s.Variant, s.Unsteady, s.Blocks, s.Why)
	case s.WarmUp == 0:
		line = s.Variant + " was steady from the start" + each
	default:
		line = fmt.Sprintf("%s was steady after the first %s%s; the warm-up counts all the same", s.Variant, span(s.WarmUp), each)
	}
	if grown != "" {
		line += "; " + grown
	}
	return line
}
