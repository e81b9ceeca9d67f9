package contract

import (
	"fmt"
	"math"
	"slices"

	"github.com/assay-llm/assay/config"
)

// Quorum is a group of which a stated number of members must pass.
type Quorum struct {
	AtLeast int      `yaml:"at_least,required" doc:"how many members must pass"`
	Of      []Clause `yaml:"of,required" most:"1000" doc:"the members"`
}

// CheckConfig refuses a number of members that no candidate could reach, or
// that every candidate does.
func (q *Quorum) CheckConfig(n *config.Node) {
	if q.AtLeast < 1 {
		n.At("at_least").Fault(fmt.Sprintf("%d of the members must pass, so everybody passes", q.AtLeast), "write a number from 1")
	} else if q.AtLeast > len(q.Of) {
		n.At("at_least").Fault(fmt.Sprintf("%d of %s must pass, so nobody passes", q.AtLeast, count(len(q.Of), "member")), "write at most the number of members")
	}
}

// group returns the members of a group and how many of them must pass: of a joint
// clause its vetoes. A clause that is no group, or several at once, has none.
func (c *Clause) group() (kind Kind, members []Clause, least int) {
	kinds := 0
	if !c.Need.IsZero() {
		kinds++
	}
	if len(c.All) > 0 {
		kinds++
		kind, members, least = KindAll, c.All, len(c.All)
	}
	if len(c.Any) > 0 {
		kinds++
		kind, members, least = KindAny, c.Any, 1
	}
	if c.Not != nil {
		kinds++
		kind, members, least = KindNot, []Clause{*c.Not}, 1
	}
	if c.Count != nil {
		kinds++
		kind, members, least = KindCount, c.Count.Of, c.Count.AtLeast
	}
	if c.Joint != nil {
		kinds++
		kind, members, least = KindJoint, c.Joint.Vetoes, len(c.Joint.Vetoes)
	}
	if kinds != 1 {
		return "", nil, 0
	}
	return kind, members, least
}

// memberNodes returns where the members of a group stand; nils without a file.
func (c *Clause) memberNodes(at *config.Node) []*config.Node {
	kind, members, _ := c.group()
	nodes := make([]*config.Node, len(members))
	if at == nil {
		return nodes
	}
	switch kind {
	case KindNot:
		nodes[0] = at.At("not")
	case KindCount:
		copy(nodes, at.At("count").At("of").Items())
	case KindJoint:
		copy(nodes, at.At("joint").At("vetoes").Items())
	default:
		copy(nodes, at.At(string(kind)).Items())
	}
	return nodes
}

// opposite is the clause that demands the contrary. Negation is carried down to
// the comparisons (De Morgan), because only there it keeps its meaning: that
// something was not shown does not show the contrary, and requests that failed
// must count against whatever is demanded. A comparison holds if it does on every
// workload that it matches, so its contrary holds if it does on one.
func opposite(c Clause) Clause {
	kind, members, least := c.group()
	against := make([]Clause, len(members))
	for i, m := range members {
		against[i] = opposite(m)
	}
	c.All, c.Any, c.Not, c.Count = nil, nil, nil, nil
	switch kind {
	case KindJoint: // it has no opposite, and is judged in no group
	case KindNot:
		// The opposite of the opposite; a not around it keeps the shape.
		c.Not = &against[0]
	case KindAll:
		c.Any = against
	case KindAny:
		c.All = against
	case KindCount:
		c.Count = &Quorum{AtLeast: len(members) - least + 1, Of: against}
	default:
		c.Need.Compare = c.Need.Compare.opposite()
		c.some = !c.some
	}
	return c
}

// turned reports whether the clause is, or contains, a not: then it is about all
// places together, since that something does not hold everywhere is shown in one of
// them.
func (c *Clause) turned() bool {
	kind, members, _ := c.group()
	return kind == KindNot || slices.ContainsFunc(members, func(m Clause) bool { return m.turned() })
}

// opposite is the comparison that holds exactly where c does not.
func (c Compare) opposite() Compare {
	switch c {
	case "<=":
		return ">"
	case "<":
		return ">="
	case ">=":
		return "<"
	case ">":
		return "<="
	}
	return c
}

// demanded returns the members as they are judged: those of a not turned round.
func demanded(kind Kind, members []Clause) []Clause {
	if kind == KindNot {
		return []Clause{opposite(members[0])}
	}
	return members
}

// share splits the chance of a wrong pass. A group of n that truly fails has at
// least n − k + 1 bad members, and passes wrongly only if one of them does; the
// union bound over those keeps the chance at that of the group. One that truly holds
// has at least k good members, and fails wrongly only if one of them does.
func (t terms) share(n, k int) terms {
	t.confidence = 1 - (1-t.confidence)/float64(max(n-k+1, 1))
	t.wrongFail /= float64(max(k, 1))
	return t
}

// atLeast combines the grades of members of which k must pass: pass once k do,
// fail once no more than k − 1 still can, inconclusive otherwise.
func atLeast(k int, grades ...Grade) Grade {
	passed, failed := 0, 0
	for _, g := range grades {
		switch g {
		case Pass:
			passed++
		case Fail:
			failed++
		}
	}
	switch n := len(grades); {
	case n == 0 || k < 1 || k > n:
		return Inconclusive
	case passed >= k:
		return Pass
	case failed > n-k:
		return Fail
	}
	return Inconclusive
}

// group judges the members of a group.
func (j *judge) group(c *Clause, t terms) Result {
	kind, members, k := c.group()
	n := len(members)
	t = t.share(n, k)
	t.inGroup = true
	r := Result{Kind: kind, Confidence: t.confidence}
	var grades []Grade
	for _, m := range demanded(kind, members) {
		res := j.clause(m, t)
		r.Results, grades = append(r.Results, res), append(grades, res.Grade)
	}
	r.Grade = atLeast(k, grades...)
	r.WrongPass, r.WrongFail = unionBound(r.Results, k)
	r.Reason = groupReason(kind, r, k)
	switch {
	case kind == KindNot:
		r.Notes = append(r.Notes, "the contrary is demanded, and must be shown: what is not shown is inconclusive")
	case n > 1 && k < n:
		r.Notes = append(r.Notes, fmt.Sprintf("%s of %d must pass, so each is judged at %s confidence unless it has its own", words(k), n, percentage(t.confidence)))
	}
	if n > 1 {
		r.Notes = append(r.Notes, r.ratesText())
	}
	return r
}

// words writes a small number as people do.
func words(k int) string {
	if k == 1 {
		return "one"
	}
	return fmt.Sprint(k)
}

func groupReason(kind Kind, r Result, k int) string {
	n := len(r.Results)
	passed := 0
	for _, m := range r.Results {
		if m.Grade == Pass {
			passed++
		}
	}
	worst := worstReason(r.Results, r.Grade)
	switch {
	case kind == KindAll && r.Grade == Pass:
		return fmt.Sprintf("all %d members pass", n)
	case kind == KindAny && r.Grade == Fail:
		return "no member passes: " + worst
	case kind == KindCount && r.Grade == Pass:
		return fmt.Sprintf("%d of %d members pass, and %d must", passed, n, k)
	case kind == KindCount:
		return fmt.Sprintf("%d of %d members pass, and %d must: %s", passed, n, k, worst)
	}
	return worst
}

// unionBound bounds how often a group of which k must pass is graded wrongly, if
// its members lie exactly at their limits. Wrongly passed it is only when one of
// the n − k + 1 bad ones passes wrongly, wrongly failed when one of k good ones
// fails wrongly.
func unionBound(members []Result, k int) (wrongPass, wrongFail float64) {
	var pass, fail []float64
	for _, m := range members {
		pass, fail = append(pass, m.WrongPass), append(fail, m.WrongFail)
	}
	worst := func(rates []float64, most int) (sum float64) {
		slices.Sort(rates)
		for _, x := range rates[max(0, len(rates)-most):] {
			sum += x
		}
		return min(math.Round(sum*1e12)/1e12, 1)
	}
	return worst(pass, max(0, len(members)-k+1)), worst(fail, k)
}

// ratesText says the union bounds in words.
func (r Result) ratesText() string {
	return fmt.Sprintf("at the limits it passes wrongly in at most %s, and fails wrongly in at most %s (union bound)", percentage(r.WrongPass), percentage(r.WrongFail))
}
