package dimension

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/judge"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/agree"
)

const (
	canaryShare   = 0.2  // of the labelled cases, judged again in each run
	leastCanaries = 10   // fewer would hardly show a drift
	leastLabels   = 100  // to correct an estimate by
	driftAlpha    = 0.05 // chance that a judge that did not change is said to have drifted
	shown         = 0.95 // confidence of the intervals of findings
)

// calibration holds the labelled cases of one criterion. A nil calibration is
// that there are none.
type calibration struct {
	file      check.FileRef
	labels    *judge.Labels
	scale     *judge.Scale
	criterion *judge.Criterion
	at        int                 // of the criterion
	stored    []judge.Observation // of the rows of labels
}

// calibration reads the labelled cases; nil without.
func (c *FidelityConfig) calibration(p *check.Pass, criteria []judge.Criterion) (*calibration, error) {
	if c.Calibration.IsZero() {
		return nil, nil
	}
	data, err := p.File(c.Calibration)
	if err != nil {
		return nil, err
	}
	labels, err := judge.ReadLabels(string(c.Calibration), bytes.NewReader(data), judge.Columns{})
	if err != nil {
		return nil, err
	}
	k := &calibration{file: c.Calibration, labels: labels, at: -1}
	pairs := labels.Columns.Other != ""
	for i := range criteria {
		if pairs != (len(criteria[i].Levels) == 0) || c.Calibrates != "" && c.Calibrates != criteria[i].Name {
			continue
		}
		if k.criterion != nil {
			return nil, fmt.Errorf("%s could be of %s or of %s: say which by calibrates", k.file, k.criterion.Name, criteria[i].Name)
		}
		k.criterion, k.at = &criteria[i], i
	}
	switch {
	case k.criterion == nil && pairs:
		return nil, fmt.Errorf("%s has labels of pairs, and no criterion that is calibrated compares", k.file)
	case k.criterion == nil:
		return nil, fmt.Errorf("%s has labels of single answers, and the criterion that is calibrated only compares: add the column answer_b", k.file)
	case labels.Columns.Answer == "":
		return nil, fmt.Errorf("%s has no column answer, so nothing in it can be judged again", k.file)
	case len(labels.Columns.Judge) == 0:
		return nil, fmt.Errorf("%s has no column judge with the verdicts that this run is held against", k.file)
	case pairs && labels.Columns.Swapped == "":
		return nil, fmt.Errorf("%s has no column judge_swapped with the verdicts of the other order", k.file)
	}
	var menu []string
	for _, l := range k.criterion.Levels {
		menu = append(menu, l.Verdict)
	}
	if k.scale, err = judge.NewScale(labels, menu, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", k.file, err)
	}
	k.stored = labels.Observe(k.scale)
	return k, nil
}

// human is a person's label as a mark; NaN: there is none.
func (k *calibration) human(o *judge.Observation) float64 {
	if k.scale.Pairs {
		return o.Human
	}
	return k.mark(o.HumanLevel)
}

// judged is the judge's verdict as a mark; NaN: there is none.
func (k *calibration) judged(o *judge.Observation) float64 {
	if k.scale.Pairs {
		return o.Judge
	}
	return k.mark(o.JudgeLevel)
}

func (k *calibration) mark(level int) float64 {
	if level < 0 {
		return math.NaN()
	}
	return k.criterion.Score(level)
}

// drift judges canaries again. The error says that the judge's verdicts of now do
// not count.
func (k *calibration) drift(ctx context.Context, p *check.Pass, j *judge.Judge) error {
	if k == nil {
		return nil
	}
	if j.Logprobs > 0 {
		j.Logprobs = 0
		p.Note("a mark is the level that the judge names, and no expectation over the levels, as the verdicts in %s are", k.file)
	}
	again := &judge.Labels{Columns: k.labels.Columns}
	var stored []float64
	changed, twice := 0, 0
	for i := range k.labels.Rows {
		row, was := &k.labels.Rows[i], k.judged(&k.stored[i])
		if math.IsNaN(was) {
			continue
		}
		if !k.scale.Pairs && len(row.Judge) > 1 {
			if second := k.mark(k.criterion.Level(row.Judge[1])); !math.IsNaN(second) {
				if twice++; second != was {
					changed++
				}
			}
		}
		if judge.Canary(row.Case, canaryShare, p.Seed) {
			again.Rows, stored = append(again.Rows, *row), append(stored, was)
		}
	}
	if len(stored) < leastCanaries {
		return fmt.Errorf("%d canaries out of %s are too few to find a drift of the judge, it takes %d: label at least %d cases", len(stored), k.file, leastCanaries, leastLabels)
	}
	seen, _, err := judge.Measurement{Criterion: k.criterion, Replicates: 1}.Measure(ctx, j, again, k.scale)
	if err != nil {
		return err
	}
	now := make([]float64, len(seen))
	for i := range seen {
		now[i] = k.judged(&seen[i])
	}
	d := judge.FindDrift(stored, now, changed, twice, driftAlpha)
	switch {
	case d.N == 0:
		return fmt.Errorf("none of %d canaries out of %s was judged again", len(stored), k.file)
	case d.Drifted:
		p.Report(check.Finding{
			Severity: check.Alarm, Code: "drift", Text: fmt.Sprintf("the judge does not judge %s as it did: of %d labelled cases that were judged again, %s (p = %.2g)", k.criterion.Name, len(stored), d.Reason, d.P),
			Hint:    "find out what changed, and calibrate it again by assay judge calibrate",
			Figures: map[string]float64{"canaries": float64(len(stored)), "up": float64(d.Up), "down": float64(d.Down), "lost": float64(d.Lost), "p": d.P},
		})
		return errors.New("the judge has drifted from its calibration: " + d.Reason)
	case d.Open:
		return fmt.Errorf("of %d canaries %s, and without a second verdict of each case that says neither that the judge has drifted nor that it has not: label more cases, or store the judge's second verdicts in a column judge_2 of %s", len(stored), d.Reason, k.file)
	}
	p.Note("%s: %d canaries were judged again, %s: no drift is proven", k.criterion.Name, len(stored), d.Reason)
	return nil
}

// correct reports what people would say of the variants, from the judge's marks of
// now and the labels: those of a variant's own answers where there are enough, else
// all. Of answers of two variants to the same labelled cases it corrects the
// difference, from which errors that the judge makes with both cancel.
func (k *calibration) correct(p *check.Pass, tasks []*task) {
	if k == nil {
		return
	}
	marks := make(map[*check.Trial]map[int]float64)
	var order []*check.Trial
	for _, t := range tasks {
		if t.criterion == k.at && t.mark.Scored() && !math.IsNaN(t.mark.Score) {
			if marks[t.trial] == nil {
				marks[t.trial], order = make(map[int]float64), append(order, t.trial)
			}
			marks[t.trial][t.variant] = t.mark.Score
		}
	}
	for v := range p.Variants {
		if v == 0 && k.scale.Pairs {
			continue
		}
		known, whose := k.labelled(p, v), "of its own answers"
		if len(known) < leastLabels {
			known, whose = k.labelled(p, -1), "of all answers in the file"
		}
		if len(known) < leastLabels {
			p.Note("%s: %d cases with a label and a verdict are too few to correct by, it takes %d", k.criterion.Name, len(known), leastLabels)
			return
		}
		var all clustered
		for _, id := range slices.Sorted(maps.Keys(known)) {
			all.add("label "+known[id].cluster, known[id].Pair)
		}
		for _, t := range order {
			if mark, ok := marks[t][v]; ok {
				all.add("case "+t.Shot.Cluster, agree.Pair{Human: math.NaN(), Judge: mark})
			}
		}
		e := agree.PPI(all.groups, shown)
		k.report(p, v, "corrected", fmt.Sprintf("people would give it %s on average, by the judge's marks corrected by %d labels %s (PPI++)", interval(e), len(known), whose), e)
		if v > 0 && !k.scale.Pairs {
			k.differ(p, v, order, marks)
		}
	}
}

// differ reports how far people would put a variant above the baseline.
func (k *calibration) differ(p *check.Pass, v int, order []*check.Trial, marks map[*check.Trial]map[int]float64) {
	base, own := k.labelled(p, 0), k.labelled(p, v)
	var all clustered
	both := 0
	for _, id := range slices.Sorted(maps.Keys(own)) {
		if b, ok := base[id]; ok {
			o := own[id]
			all.add("label "+o.cluster, agree.Pair{Human: o.Human - b.Human, Judge: o.Judge - b.Judge})
			both++
		}
	}
	if both < leastLabels {
		return
	}
	for _, t := range order {
		b, ok := marks[t][0]
		o, also := marks[t][v]
		if ok && also {
			all.add("case "+t.Shot.Cluster, agree.Pair{Human: math.NaN(), Judge: o - b})
		}
	}
	e := agree.PPI(all.groups, shown)
	k.report(p, v, "difference", fmt.Sprintf("people would put it %s above the baseline, by the judge's marks corrected by the labels of both answers to %d cases (PPI++ of differences)", interval(e), both), e)
}

func (k *calibration) report(p *check.Pass, v int, code, text string, e stat.Estimate) {
	p.Report(check.Finding{
		Severity: check.Info, Code: code, Variant: p.Variants[v].Name, Text: k.criterion.Name + ": " + text,
		Hint: "it holds if the labelled cases were drawn like those of the set", Figures: figures(code, e),
	})
}

// known is a labelled case with the judge's stored mark.
type known struct {
	agree.Pair
	cluster string
}

// labelled are the cases that a person and the judge marked, by their names: those of
// a variant's answers, or all if it is negative. A variant is known in the file by its
// name, or by its model where no other has the same.
func (k *calibration) labelled(p *check.Pass, variant int) map[string]known {
	var called []string
	if variant >= 0 {
		called = []string{p.Variants[variant].Name}
		model := p.Variants[variant].Model
		others := slices.ContainsFunc(p.Variants, func(s *check.Subject) bool { return s != p.Variants[variant] && s.Model == model })
		if model != "" && !others {
			called = append(called, model)
		}
	}
	out := make(map[string]known)
	for i := range k.stored {
		o := &k.stored[i]
		x := known{agree.Pair{Human: k.human(o), Judge: k.judged(o)}, o.Cluster}
		if math.IsNaN(x.Human) || math.IsNaN(x.Judge) {
			continue
		}
		id, own := []string{o.Case}, variant < 0
		for _, column := range slices.Sorted(maps.Keys(o.Slices)) {
			if value := o.Slices[column]; slices.Contains(called, value) {
				own = true
			} else {
				id = append(id, column, value)
			}
		}
		if own {
			out[fmt.Sprintf("%q", id)] = x
		}
	}
	return out
}

// clustered are pairs by what may depend on each other.
type clustered struct {
	groups [][]agree.Pair
	at     map[string]int
}

func (c *clustered) add(cluster string, x agree.Pair) {
	if c.at == nil {
		c.at = make(map[string]int)
	}
	i, ok := c.at[cluster]
	if !ok {
		i = len(c.groups)
		c.at[cluster], c.groups = i, append(c.groups, nil)
	}
	c.groups[i] = append(c.groups[i], x)
}

// lengths reports how often each variant's answer was preferred, and how often it
// would be at equal length.
func lengths(p *check.Pass, tasks []*task) {
	for v := 1; v < len(p.Variants); v++ {
		var all []judge.Sized
		for _, t := range tasks {
			if len(t.pairs) > 0 && t.variant == v && t.mark.Scored() {
				more := utf8.RuneCountInString(said(t.trial.Answers[v])) - utf8.RuneCountInString(said(t.trial.Answers[0]))
				all = append(all, judge.Sized{Cluster: t.trial.Shot.Cluster, Score: t.mark.Score, Longer: float64(more)})
			}
		}
		if len(all) == 0 {
			continue
		}
		l := judge.ControlLength(all, shown, p.Seed)
		f := check.Finding{
			Severity: check.Info, Code: "length", Variant: p.Variants[v].Name,
			Text:    fmt.Sprintf("the judge prefers it to the baseline's in %s; with answers of equal length it would in %s", interval(l.Raw), interval(l.Controlled)),
			Figures: figures("raw", l.Raw),
		}
		for name, x := range figures("controlled", l.Controlled) {
			f.Figures[name] = x
		}
		if l.Raw.Lo > 0.5 && l.Controlled.Lo <= 0.5 {
			f.Severity, f.Text, f.Hint = check.Warning, f.Text+": length may be all that it prefers", "look at pairs in which the shorter answer is as good"
		}
		p.Report(f)
	}
}

// interval shows an estimate.
func interval(e stat.Estimate) string {
	if math.IsNaN(e.Value) {
		return "a share that is not known"
	}
	if math.IsNaN(e.Lo) || math.IsInf(e.Lo, 0) || math.IsNaN(e.Hi) || math.IsInf(e.Hi, 0) {
		return fmt.Sprintf("%.3f, without an interval,", e.Value)
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", e.Value, e.Lo, e.Hi)
}

// figures are what is known of an estimate.
func figures(name string, e stat.Estimate) map[string]float64 {
	out := make(map[string]float64)
	for suffix, x := range map[string]float64{"": e.Value, ".lo": e.Lo, ".hi": e.Hi} {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			out[name+suffix] = x
		}
	}
	return out
}
