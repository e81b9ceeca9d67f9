package dimension

import (
	"fmt"
	"maps"
	"slices"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/scenario"
	"github.com/assay-llm/assay/stat/compare"
)

// look is one thing in which a candidate may be worse than the baseline: in every
// scenario, how much worse it was. Looks at what is known are tested together, and so
// are looks at what is asked.
type look struct {
	code      string
	slot      string // of a loss; "": of any
	turn      int    // of a loss: from which on
	scenarios map[string]float64
	base      [2]int // worse, of so many: the baseline
	cand      [2]int
	p         float64
	body      string // an example of the candidate's
	example   string // its scenario
	at        int    // its turn, from 1
}

// add counts one pair.
func (l *look) add(id string, turn int, base, cand bool, text string) {
	if l.scenarios == nil {
		l.scenarios = make(map[string]float64)
	}
	l.scenarios[id] += float64(countIf(cand) - countIf(base))
	l.base[0], l.base[1] = l.base[0]+countIf(base), l.base[1]+1
	l.cand[0], l.cand[1] = l.cand[0]+countIf(cand), l.cand[1]+1
	if cand && !base && l.body == "" {
		l.body, l.example, l.at = text, id, turn
	}
}

// pairing is what one candidate did beside the baseline in one replay.
type pairing struct {
	p       *check.Pass
	variant int
	replay  string
	all     []*dialogue
	seen    []scenario.Seen // slots in side questions
	phases  []scenario.Phase
	texts   []string // the candidate's answers to them
}

// findings warns of what a candidate does worse than the baseline, and says where. Of
// a candidate that is the baseline, looks at what is known warn with the chance
// lossAlpha, all together, and looks at what is asked with as much.
func (c *DialogueConfig) findings(p *check.Pass, replay string, v int, all []*dialogue) {
	k := &pairing{p: p, variant: v, replay: replay, all: all}
	k.gather()
	states, conduct := slices.Concat(k.losses(nil), k.life()), k.conduct()
	k.test(states)
	k.test(conduct)
	looks := slices.Concat(states, conduct)
	found := func(code string) *look {
		var best *look
		for _, l := range looks {
			if l.code == code && l.p <= lossAlpha && (best == nil || l.p < best.p) {
				best = l
			}
		}
		return best
	}
	var explained []scenario.Phase
	if l := found("constraint_dropped"); l != nil && k.dropped(l, looks) {
		explained = []scenario.Phase{scenario.Updating, scenario.Updated}
		states = k.losses(explained)
		k.test(states)
	}
	known := k.lost(states, explained) || explained != nil
	if l := found("constraint_violated"); l != nil && !known {
		k.warn(l, fmt.Sprintf("says otherwise than what holds: in %d of %d replies and side questions about values that were never changed, the baseline in %d", l.cand[0], l.cand[1], l.base[0]),
			fmt.Sprintf("read turn %d of %s, and gate dialogue.kept", l.at, l.example))
	}
	for _, c := range conducts {
		if l := found(c.code); l != nil {
			k.warn(l, fmt.Sprintf("%s in %d of %d %s, the baseline in %d of %d", c.does, l.cand[0], l.cand[1], c.of, l.base[0], l.base[1]),
				fmt.Sprintf("read the reply at turn %d of %s beside the baseline's, and gate dialogue.%s", l.at, l.example, c.gate))
		}
	}
}

// conducts are the codes of looks at questions and assumptions: what is said of them,
// and the value by which a contract holds them.
var conducts = []struct{ code, does, of, gate string }{
	{"false_assumption", "goes on without asking for what is ambiguous or missing", "open values", "false_assumption"},
	{"needless_clarification", "asks for what follows from what was said", "implied values", "needless_clarification"},
	{"implied_unused", "does not use what follows from what was said", "implied values", "auto_satisfied"},
	{"forbidden_question", "asks for what it must not ask for", "turns that forbid it", "forbidden"},
}

// gather pairs what the side questions say.
func (k *pairing) gather() {
	for _, d := range k.all {
		for t, turn := range d.turns {
			base, cand := turn.marks[0], turn.marks[k.variant]
			if base == nil || cand == nil {
				continue
			}
			for i := range base {
				k.seen = append(k.seen, scenario.Seen{Cluster: d.s.ID, Slot: base[i].Slot, Turn: t + 1, Baseline: base[i].Right, Candidate: cand[i].Right})
				k.phases = append(k.phases, base[i].Phase)
				k.texts = append(k.texts, said(turn.probe.Answers[k.variant]))
			}
		}
	}
}

// losses makes a look of each slot, and of all together, from each turn on, but for
// what is in phases that explain it otherwise.
func (k *pairing) losses(but []scenario.Phase) []*look {
	type place struct {
		slot string
		turn int
	}
	looks := make(map[place]*look)
	for i, s := range k.seen {
		if slices.Contains(but, k.phases[i]) {
			continue
		}
		for _, slot := range []string{s.Slot, ""} {
			for turn := 1; turn <= s.Turn; turn++ {
				at := place{slot, turn}
				if looks[at] == nil {
					looks[at] = &look{code: "slot_lost", slot: slot, turn: turn}
				}
				looks[at].add(s.Cluster, s.Turn, !s.Baseline, !s.Candidate, k.texts[i])
			}
		}
	}
	return slices.SortedFunc(maps.Values(looks), func(a, b *look) int {
		return slices.Compare([]string{a.slot, fmt.Sprintf("%03d", a.turn)}, []string{b.slot, fmt.Sprintf("%03d", b.turn)})
	})
}

// conduct looks at questions and assumptions.
func (k *pairing) conduct() []*look {
	assumed, needless, unused, forbidden := &look{code: "false_assumption"}, &look{code: "needless_clarification"}, &look{code: "implied_unused"}, &look{code: "forbidden_question"}
	k.readings(func(id string, t int, base, cand *scenario.Reading, text string) {
		for i := range base.Used {
			b, c := base.Used[i], cand.Used[i]
			if b.Resolution.Open() {
				assumed.add(id, t, b.Assumed, c.Assumed, text)
				continue
			}
			needless.add(id, t, b.Asked, c.Asked, text)
			unused.add(id, t, !b.Right, !c.Right, text)
		}
		if base.Forbids > 0 {
			forbidden.add(id, t, len(base.Asked) > 0, len(cand.Asked) > 0, text)
		}
	})
	return []*look{assumed, needless, unused, forbidden}
}

// life looks at constraints that were never changed, and at those that were: in
// replies that exercise them, and in side questions.
func (k *pairing) life() []*look {
	stays, changed := &look{code: "constraint_violated"}, &look{code: "constraint_dropped"}
	of := func(p scenario.Phase) *look {
		switch p {
		case scenario.Updating, scenario.Updated:
			return changed
		case scenario.Activated, scenario.Persisting:
			return stays
		}
		return nil
	}
	k.readings(func(id string, t int, base, cand *scenario.Reading, text string) {
		for i := range base.Kept {
			b, c := base.Kept[i], cand.Kept[i]
			if l := of(b.Phase); l != nil && b.Standing != scenario.NotExercised && c.Standing != scenario.NotExercised {
				l.add(id, t, b.Standing == scenario.Violated, c.Standing == scenario.Violated, text)
			}
		}
	})
	for i, s := range k.seen {
		if l := of(k.phases[i]); l != nil {
			l.add(s.Cluster, s.Turn, !s.Baseline, !s.Candidate, k.texts[i])
		}
	}
	return []*look{stays, changed}
}

// readings calls do with each turn whose replies of both variants were read.
func (k *pairing) readings(do func(id string, turn int, base, cand *scenario.Reading, text string)) {
	for _, d := range k.all {
		for t, turn := range d.turns {
			if base, cand := turn.readings[0], turn.readings[k.variant]; base != nil && cand != nil {
				do(d.s.ID, t+1, base, cand, said(turn.reply.Answers[k.variant]))
			}
		}
	}
}

// test gives every look the chance that the most conspicuous of all would be as much
// so if candidate and baseline were interchangeable.
func (k *pairing) test(looks []*look) {
	ids := make([]string, len(k.all))
	for i, d := range k.all {
		ids[i] = d.s.ID
	}
	differences := make([][]float64, len(looks))
	for i, l := range looks {
		differences[i] = make([]float64, len(ids))
		for j, id := range ids {
			differences[i][j] = l.scenarios[id]
		}
	}
	for i, p := range compare.Jointly(differences, k.p.Rand("looks", k.replay).Uint64()) {
		looks[i].p = p
	}
}

// excess is by how much more often a candidate is wrong than the baseline.
func (l *look) excess() float64 {
	if l.cand[1] == 0 {
		return 0
	}
	return float64(l.cand[0]-l.base[0]) / float64(l.cand[1])
}

// dropped warns that constraints which were changed are lost, if they are lost twice
// as often as those which were not; else the loss is not one of updates.
func (k *pairing) dropped(l *look, looks []*look) bool {
	i := slices.IndexFunc(looks, func(o *look) bool { return o.code == "constraint_violated" })
	if other := looks[i]; l.excess() < 2*max(0, other.excess())+.05 {
		return false
	}
	k.warn(l, fmt.Sprintf("drops constraints after an update: wrong in %d of %d replies and side questions about values that were changed, the baseline in %d; of values that were never changed, in %d and %d of %d",
		l.cand[0], l.cand[1], l.base[0], looks[i].cand[0], looks[i].base[0], looks[i].cand[1]),
		fmt.Sprintf("read turn %d of %s: the old value comes back, or none; gate dialogue.kept and dialogue.state", l.at, l.example))
	return true
}

// lost warns of slots that the candidate does not know from some turn on; of all
// together if of none alone, or of more than three. It leaves out what is in phases
// that explain it otherwise, and returns whether it warned.
func (k *pairing) lost(looks []*look, but []scenario.Phase) (warned bool) {
	best := make(map[string]*look)
	for _, l := range looks {
		if l.code == "slot_lost" && l.p <= lossAlpha && (best[l.slot] == nil || l.p < best[l.slot].p) {
			best[l.slot] = l
		}
	}
	slots := slices.Sorted(maps.Keys(best))
	if pooled := best[""] != nil; pooled && len(slots) > 4 {
		slots = []string{""}
	} else if pooled && len(slots) > 1 {
		slots = slots[1:]
	}
	for _, slot := range slots[:min(len(slots), 3)] {
		var of []scenario.Seen
		for i, s := range k.seen {
			if (slot == "" || s.Slot == slot) && !slices.Contains(but, k.phases[i]) {
				of = append(of, s)
			}
		}
		loss, ok := scenario.LocateLoss(of)
		if !ok {
			continue
		}
		what := "slot " + slot + " is"
		if slot == "" {
			what = "the state as a whole is"
		}
		l := best[slot]
		l.turn = loss.Turn
		text := fmt.Sprintf("%s lost from turn %d on: right in %d of %d side questions, the baseline in %d", what, loss.Turn, loss.After.Candidate, loss.After.N, loss.After.Baseline)
		if loss.Before.N > 0 {
			text += fmt.Sprintf("; before that in %d and %d of %d", loss.Before.Candidate, loss.Before.Baseline, loss.Before.N)
		}
		k.warn(l, text, fmt.Sprintf("look at what reaches the model at turn %d: a history that is cut or summarised, a template that drops turns; gate dialogue.state", loss.Turn))
		warned = true
	}
	return warned
}

// warn reports a look.
func (k *pairing) warn(l *look, text, hint string) {
	f := check.Finding{
		Severity: check.Warning, Code: l.code, Variant: k.p.Variants[k.variant].Name, Case: l.example,
		Text: fmt.Sprintf("%s, %s replay: %s (p %.4f adjusted for all looks, %d scenarios)", k.p.Variants[k.variant].Name, k.replay, text, l.p, len(l.scenarios)), Hint: hint,
		Figures: map[string]float64{"candidate": float64(l.cand[0]), "baseline": float64(l.base[0]), "of": float64(l.cand[1]), "p": l.p},
	}
	if l.turn > 0 {
		f.Figures["turn"] = float64(l.turn)
	}
	if l.body != "" {
		f.Bodies = []string{k.p.Keep(l.body)}
	}
	k.p.Report(f)
}
