package contract

import (
	"fmt"
	"time"

	"github.com/assay-llm/assay/config"
)

// live finds what keeps a live rule from ever acting, or from ever recovering.
func (l *linter) live(c *Clause, at *config.Node, t terms) {
	if c.Live.IsZero() {
		return
	}
	node := func(keys ...string) *config.Node {
		n := at
		for _, key := range keys {
			if n == nil || !n.Has(key) {
				break
			}
			n = n.At(key)
		}
		return n
	}
	if r := c.Live.Recover; r.By == "hand" && r.For > 0 {
		l.report(CodeLive, node("live", "recover", "for"), c.ID, 0, "a person takes it back, so no time does", "remove for:, or by: hand")
	}
	tested := false
	l.each(c, at, t, func(leaf *Clause, n *config.Node, t terms) {
		tested = tested || byEvidence(leaf.Need, c.Live.Judge)
		l.liveLeaf(c, leaf, n, t, "the clause")
	})
	if c.Live.Judge == "evidence" && !tested {
		l.report(CodeLive, node("live", "judge"), c.ID, 0, "evidence is gathered against a baseline that runs beside the candidate, and no quantile, mean or share here is held against one", "remove judge:, or write a limit such as baseline * 1.1")
	}
	if when := c.Live.Recover.When; when != nil {
		if !when.Live.IsZero() {
			l.report(CodeLive, node("live", "recover", "when", "live"), c.ID, 0, "a recovery has no live rule of its own", "remove live:")
		}
		leave := c.leave()
		l.each(&leave, node("live", "recover", "when"), t.with(leave), func(leaf *Clause, n *config.Node, t terms) {
			l.liveLeaf(c, leaf, n, t, "the recovery")
			l.hysteresis(c, leaf, n)
		})
	}
}

// each visits the comparisons of a clause as they are judged.
func (l *linter) each(c *Clause, at *config.Node, t terms, visit func(*Clause, *config.Node, terms)) {
	kind, members, k := c.group()
	if len(members) == 0 {
		if c.Joint == nil && !c.Need.IsZero() {
			visit(c, at, t)
		}
		return
	}
	nodes := c.memberNodes(at)
	t = t.share(len(members), k)
	judged := demanded(kind, members)
	for i := range judged {
		l.each(&judged[i], nodes[i], t.with(judged[i]), visit)
	}
}

// liveLeaf checks one comparison of a live rule.
func (l *linter) liveLeaf(rule, c *Clause, at *config.Node, t terms, what string) {
	q := c.Need.Quantity
	w := t.window
	if w.IsZero() {
		l.report(CodeWindow, at, c.ID, 0, fmt.Sprintf("live traffic has no end: %s needs a window", what), "write window: 5m, or window: 100 requests")
		return
	}
	if d := time.Duration(rule.Live.For); w.For > 0 && w.For < d && what == "the clause" {
		l.report(CodeWindow, at, c.ID, 0, fmt.Sprintf("the window of %s is shorter than for: %s, so most of what must be violated is never looked at together", w, config.Duration(d)), "write a window of "+config.Duration(d).String()+" or more")
	}
	if n := c.Need.Limit.Windows; n > 0 {
		switch span := time.Duration(2*n) * w.For; {
		case w.For == 0:
			l.report(CodeWindow, at, c.ID, c.Need.at.limit, fmt.Sprintf("%s is of windows of time, and this one is of requests", c.Need.Limit), "write window: 5m")
			return
		case span > maxWindow || w.For > maxWindow:
			l.report(CodeWindow, at, c.ID, c.Need.at.limit, fmt.Sprintf("%s looks back over twice %d windows of %s; the limit is %s", c.Need.Limit, n, w, config.Duration(maxWindow)), "write a shorter window, or fewer")
		}
	}
	if rule.Live.Judge == "point" && t.min == 0 && w.Requests == 0 && q.Stat != "count" {
		l.report(CodeFew, at, c.ID, 0, "a point estimate of a few requests is noise, and nothing says how many it takes", "write min: 300, or judge by bound")
	}
	if rule.Live.Judge == "point" || byEvidence(c.Need, rule.Live.Judge) && what == "the clause" || w.Requests == 0 || q.Metric == "icl" || q.Metric == "itl" {
		return
	}
	need := int64(0)
	switch q.Stat {
	case "quantile":
		need = int64(quantileNeeds(q.P, t.confidence, c.Need.Compare.upper()))
	case "share":
		leaf := leafLint{linter: l, c: c, at: at, t: t}
		need = leaf.shareNeeds(leaf.t.confidence)
	case "mean":
		need = meanValues
	}
	if need > w.Requests {
		l.report(CodeFew, at, c.ID, c.Need.at.stat, fmt.Sprintf("%s at %s confidence takes %s, and the window has %s", c.Need, percentage(t.confidence), count(need, "request"), grouped(fmt.Sprint(w.Requests))), fmt.Sprintf("write window: %d requests", need))
	}
}

// hysteresis holds a comparison of the recovery against those of the clause: a
// rule that is taken back before its limit is met again flaps.
func (l *linter) hysteresis(rule, leave *Clause, at *config.Node) {
	l.each(rule, nil, terms{}, func(enter *Clause, _ *config.Node, _ terms) {
		a, b := enter.Need, leave.Need
		if a.Quantity != b.Quantity || a.Limit.yardstick() != b.Limit.yardstick() {
			return
		}
		if a.Compare.upper() != b.Compare.upper() {
			if len(rule.Any)+len(rule.All) == 0 {
				l.report(CodeHysteresis, at, leave.ID, b.at.compare, fmt.Sprintf("the recovery %s is turned against the clause %s", b, a), fmt.Sprintf("write the recovery with %s", a.Compare))
			}
			return
		}
		worse := b.Limit.Factor > a.Limit.Factor || b.Limit.Factor == a.Limit.Factor && b.Limit.Value > a.Limit.Value
		if !a.Compare.upper() {
			worse = b.Limit.Factor < a.Limit.Factor || b.Limit.Factor == a.Limit.Factor && b.Limit.Value < a.Limit.Value
		}
		if worse {
			l.report(CodeHysteresis, at, leave.ID, b.at.limit, fmt.Sprintf("the recovery %s is met where the clause %s is not, so the rule would flap", b, a), "write a limit on the other side of "+a.Limit.text)
		}
	})
}

// redundant finds members of a group that can never change its grade: of two
// limits on the same quantity from the same side, one implies the other.
func (l *linter) redundant(c *Clause, at *config.Node) {
	kind, members, _ := c.group()
	const most = 100 // members that are compared with each other
	if kind != KindAll && kind != KindAny || len(members) > most {
		return
	}
	nodes := c.memberNodes(at)
members:
	for i := range members {
		for j := range i {
			a, b := &members[j], &members[i]
			if a.Need.IsZero() || b.Need.IsZero() || a.Need.Quantity != b.Need.Quantity || a.Need.Compare.upper() != b.Need.Compare.upper() || a.Need.Limit.yardstick() != b.Need.Limit.yardstick() || !sameTerms(a, b) {
				continue
			}
			x, y := a.Need.Limit, b.Need.Limit
			tighterA := x.Factor < y.Factor || x.Factor == y.Factor && x.Value < y.Value
			if x == y || x.Factor == y.Factor && x.Value == y.Value {
				l.report(CodeRedundant, nodes[i], b.ID, 0, fmt.Sprintf("demands the same as %s", a.ID), "remove one of them")
				continue members
			}
			if !a.Need.Compare.upper() {
				tighterA = !tighterA
			}
			idle, node, other := b, nodes[i], a
			if tighterA == (kind == KindAny) {
				idle, node, other = a, nodes[j], b
			}
			l.report(CodeRedundant, node, idle.ID, 0, fmt.Sprintf("can never change the grade: %s decides whenever it does", other.Need), "remove it")
			continue members
		}
	}
}

// sameTerms reports whether two clauses look at the same requests in the same way.
func sameTerms(a, b *Clause) bool {
	where := len(a.Where) == len(b.Where)
	for k, v := range a.Where {
		where = where && b.Where[k] == v
	}
	on := len(a.On) == len(b.On)
	for i := range a.On {
		on = on && i < len(b.On) && a.On[i] == b.On[i]
	}
	return where && on && a.By == b.By && a.Window == b.Window && a.Confidence == b.Confidence && a.Min == b.Min
}

// nested finds keys that only a clause at the top may have.
func (l *linter) nested(members []Clause, nodes []*config.Node) {
	for i := range members {
		m := &members[i]
		if !m.Live.IsZero() {
			at := nodes[i]
			if at != nil {
				at = at.At("live")
			}
			l.report(CodeLive, at, m.ID, 0, "a member of a group has no live rule: the group acts as a whole", "move live: to the group")
		}
		_, inner, _ := m.group()
		l.nested(inner, m.memberNodes(nodes[i]))
	}
}

// previous finds limits against the time before the window where nothing is live.
func (l *linter) previous(c *Clause, at *config.Node, t terms) {
	if !c.Live.IsZero() {
		return
	}
	l.each(c, at, t, func(leaf *Clause, n *config.Node, _ terms) {
		if lim := leaf.Need.Limit; lim.Previous > 0 || lim.Windows > 0 {
			l.report(CodeLive, n, leaf.ID, leaf.Need.at.limit, fmt.Sprintf("%s is about live traffic, and the clause has no live rule", lim.yardstick()), "write live: {do: [page]}, or a limit such as baseline * 1.05")
		}
	})
}
