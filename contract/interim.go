package contract

import (
	"fmt"
	"math"

	"github.com/assay-llm/assay/config"
)

// Interim is one of several looks at the evidence while it still grows, after any
// of which a run may stop. The zero Interim is the only look, at the end.
//
// A bound that is right in 95 % of the cases at one look is wrong at one of six
// looks far more often. So the looks share the chance of a wrong grade that the
// contract allows: half of it is kept for the last look, and the earlier ones get
// the other half, each more than the one before it. The shares add up to 1.
// Whatever the looks have to do with each other, the chance that any of them
// grades a clause wrongly is then at most the one that the contract allows
// (Bonferroni's inequality; O'Brien and Fleming, Biometrics 35, 1979, for spending
// most of it late). It may therefore stop at whichever look decides, and the grade
// is that of this look.
//
// Note: e-values (package stat/anytime) would allow any number of looks. For a
// quantile they need two to four times the requests, know nothing of requests that
// depend on each other, and there is none for some statistics. A run has a planned
// end and few looks, for which shares of the chance are better.
type Interim struct {
	Number int `json:"number"` // from 1; 0: none was taken yet, and nothing is decided
	Of     int `json:"of"`     // looks that are planned; 0: this is the only one
}

// interimLooks is how often a run is looked at: more looks stop little earlier, and
// take from the power of each.
const interimLooks = 6

// lastShare is the last look's part of the chance of a wrong grade: little enough
// power is lost to a run that goes to its end.
const lastShare = 0.5

// Looks says after which blocks of a workload to look at the evidence: as evenly as
// can be, after an even number of them, since the variants take turns A B B A, and
// after all. Judge each look with the Interim of its number.
func Looks(blocks int) []int {
	pairs := blocks / 2
	k := max(1, min(interimLooks, pairs))
	looks := make([]int, k)
	for i := range looks {
		looks[i] = 2 * ((i + 1) * pairs / k)
	}
	looks[k-1] = blocks
	return looks
}

// share is the part of the chance of a wrong grade that falls to this look.
func (i Interim) share() float64 {
	switch {
	case i.Of <= 0, i.Of == 1 && i.Number == 1:
		return 1
	case i.Number < 1 || i.Number > i.Of:
		return 0
	case i.Number == i.Of:
		return lastShare
	}
	return (1 - lastShare) * float64(i.Number) / float64(i.Of*(i.Of-1)/2)
}

// confidence is that of a bound at this look.
func (i Interim) confidence(whole float64) float64 {
	return math.Round((1-(1-whole)*i.share())*1e12) / 1e12
}

// last reports whether no other look can follow.
func (i Interim) last() bool { return i.Of <= 0 || i.Number >= i.Of }

// interim says at which look the evidence on a workload stands.
func (j *judge) interim(workload string) Interim {
	if j.e.Interim == nil {
		return Interim{}
	}
	i, ok := j.e.Interim[workload]
	switch {
	case ok && i.Of > 0:
		return i
	case !ok && j.e.check(workload) != nil:
		return Interim{} // a check is no load that is cut into blocks: it is judged once, when it is done
	}
	return Interim{Of: 1} // of a run that may stop, but nobody says where this workload stands
}

// orNil is what a result tells of its look: nothing if it is the only one.
func (i Interim) orNil() *Interim {
	if i.Of <= 0 {
		return nil
	}
	return &i
}

// early takes back what the rest of the run could still change: what was not
// estimated, but is a fact of all of it.
func (x *trial) early(i Interim, grade Grade, why string) (Grade, string) {
	if i.last() || grade == Inconclusive || !x.clause.Need.Quantity.fact() || (grade == Fail) == x.clause.Need.failsFirst() {
		return grade, why
	}
	return Inconclusive, why + " so far; it is a fact of the whole run, which is not over"
}

// failsFirst reports whether what is to come can make a fact fail but not pass: a count
// or maximum grows, a minimum shrinks, and none is held against a baseline.
func (n Need) failsFirst() bool { return (n.Quantity.Stat != "min") == n.Compare.upper() }

// Late names the clauses that no look passes before the end of a run, so that it can stop
// early only when it fails.
func (c *Contract) Late() (ids []string) {
	walk(c.named(), nil, func(clause *Clause, _ *config.Node) {
		if clause.By != "" || clause.Need.Quantity.fact() && clause.Need.failsFirst() {
			ids = append(ids, clause.ID)
		}
	})
	return ids
}

// anyValue takes back a pass on a value of a label before the end: other values of it
// may come.
func (j *judge) anyValue(r Result, by string) Result {
	if by != "" && r.Grade == Pass && !j.interim(r.Workload).last() {
		r.Grade, r.Reason = Inconclusive, fmt.Sprintf("%s so far; the run is not over, and other values of %s may come", r.Reason, by)
	}
	return r
}

// Settled says whether a run that may stop early has more to do, once the verdict on
// what was measured so far is there. Over: the contract is failed whatever comes,
// so that nothing needs to be measured any more. Here: every clause on the
// workload is decided, so that it needs no more requests; the other workloads may. A
// verdict that proves nothing, as of an unfit client, settles nothing.
func (v Verdict) Settled(workload string) (over, here bool) {
	decided, open := 0, 0
	var look func(results []Result)
	look = func(results []Result) {
		for i := range results {
			r := &results[i]
			switch {
			case len(r.Results) > 0 && r.Kind != KindJoint: // a trade-off is more than its vetoes
				look(r.Results)
			case r.Workload != workload && r.Workload != "":
			case r.Grade == Inconclusive: // without a workload: its requests may still come on this one
				open++
			case r.Workload == workload:
				decided++
			}
		}
	}
	look(v.Clauses)
	return v.Grade == Fail, decided > 0 && open == 0
}
