package dimension

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/judge"
	"github.com/assay-llm/assay/stat"
)

const (
	canaryShare   = 0.2  // of the labelled cases, judged again in each run
	leastCanaries = 10   // fewer would hardly show a drift
	leastLabels   = 100  // to correct an estimate by
	driftAlpha    = 0.05 // chance that a judge that did not change is said to have drifted
	shown         = 0.95 // confidence of the intervals of findings
)

// Calibration is a file of labels, and what they are of.
type Calibration struct {
	File      check.FileRef     `yaml:"file,required" doc:"cases that people labelled, with the judge's stored verdicts, as assay judge calibrate saves them"`
	Criterion string            `yaml:"criterion" doc:"the criterion that the labels are of, where several could be meant"`
	Cases     map[string]string `yaml:"cases" most:"20" doc:"labels of the cases that it is for, such as language: zh; all cases if left out"`
	Judge     string            `yaml:"judge" doc:"of a jury: the model whose verdicts the file holds; each juror needs a file"`
}

// calibration holds the labelled cases of one criterion and one judge.
type calibration struct {
	Calibration
	labels    *judge.Labels
	scale     *judge.Scale
	criterion *judge.Criterion
	at        int                 // of the criterion
	juror     int                 // of the jury
	stored    []judge.Observation // of the rows of labels
}

// files are the calibrations that are named, in either way.
func (c *FidelityConfig) files() []Calibration {
	if !c.Calibration.IsZero() {
		return []Calibration{{File: c.Calibration, Criterion: c.Calibrates}}
	}
	return c.Calibrations
}

// calibrations reads the labelled cases.
func (c *FidelityConfig) calibrations(p *check.Pass, criteria []judge.Criterion) ([]*calibration, error) {
	var all []*calibration
	for _, named := range c.files() {
		k := &calibration{Calibration: named, at: -1, juror: max(c.juror(named.Judge), 0)}
		if err := k.read(p, criteria); err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

// juror finds a juror by its name or its model; -1: there is none, or several. A judge
// alone needs no name.
func (c *FidelityConfig) juror(name string) int {
	jury := c.jury()
	if name == "" && len(jury) == 1 {
		return 0
	}
	found := -1
	for i, e := range jury {
		if e.Name() == name || e.Model == name {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

// read reads the file, and finds the criterion that its labels are of.
func (k *calibration) read(p *check.Pass, criteria []judge.Criterion) error {
	data, err := p.File(k.File)
	if err != nil {
		return err
	}
	labels, err := judge.ReadLabels(string(k.File), bytes.NewReader(data), judge.Columns{})
	if err != nil {
		return err
	}
	k.labels = labels
	pairs := labels.Columns.Other != ""
	for i := range criteria {
		if pairs != (len(criteria[i].Levels) == 0) || k.Criterion != "" && k.Criterion != criteria[i].Name {
			continue
		}
		if k.criterion != nil {
			return fmt.Errorf("%s could be of %s or of %s: say which by calibrates", k.File, k.criterion.Name, criteria[i].Name)
		}
		k.criterion, k.at = &criteria[i], i
	}
	switch {
	case k.criterion == nil && pairs:
		return fmt.Errorf("%s has labels of pairs, and no criterion that is calibrated compares", k.File)
	case k.criterion == nil:
		return fmt.Errorf("%s has labels of single answers, and the criterion that is calibrated only compares: add the column answer_b", k.File)
	case labels.Columns.Answer == "":
		return fmt.Errorf("%s has no column answer, so nothing in it can be judged again", k.File)
	case len(labels.Columns.Judge) == 0:
		return fmt.Errorf("%s has no column judge with the verdicts that this run is held against", k.File)
	case pairs && labels.Columns.Swapped == "":
		return fmt.Errorf("%s has no column judge_swapped with the verdicts of the other order", k.File)
	}
	var menu []string
	for _, l := range k.criterion.Levels {
		menu = append(menu, l.Verdict)
	}
	if k.scale, err = judge.NewScale(labels, menu, nil); err != nil {
		return fmt.Errorf("%s: %w", k.File, err)
	}
	k.stored = labels.Observe(k.scale)
	return nil
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

// drift judges canaries again, with a chance of alpha to find a drift that is none.
// The error says that the judge's verdicts of now do not count.
func (k *calibration) drift(ctx context.Context, p *check.Pass, j *judge.Judge, alpha float64) error {
	if j.Logprobs > 0 {
		j.Logprobs = 0
		p.Note("a mark is the level that the judge names, and no expectation over the levels, as the verdicts in %s are", k.File)
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
		return fmt.Errorf("%d canaries out of %s are too few to find a drift of the judge, it takes %d: label at least %d cases", len(stored), k.File, leastCanaries, leastLabels)
	}
	seen, _, err := judge.Measurement{Criterion: k.criterion, Replicates: 1}.Measure(ctx, j, again, k.scale)
	if err != nil {
		return err
	}
	now := make([]float64, len(seen))
	for i := range seen {
		now[i] = k.judged(&seen[i])
	}
	d := judge.FindDrift(stored, now, changed, twice, alpha)
	switch {
	case d.N == 0:
		return fmt.Errorf("none of %d canaries out of %s was judged again", len(stored), k.File)
	case d.Drifted:
		p.Report(check.Finding{
			Severity: check.Alarm, Code: "drift", Text: fmt.Sprintf("the judge does not judge %s as it did: of %d labelled cases that were judged again, %s (p = %.2g)", k.criterion.Name, len(stored), d.Reason, d.P),
			Hint:    "find out what changed, and calibrate it again by assay judge calibrate",
			Figures: map[string]float64{"canaries": float64(len(stored)), "up": float64(d.Up), "down": float64(d.Down), "lost": float64(d.Lost), "p": d.P},
		})
		return errors.New("the judge has drifted from its calibration: " + d.Reason)
	case d.Open:
		return fmt.Errorf("of %d canaries %s, and without a second verdict of each case that says neither that the judge has drifted nor that it has not: label more cases, or store the judge's second verdicts in a column judge_2 of %s", len(stored), d.Reason, k.File)
	}
	p.Note("%s: %d canaries were judged again, %s: no drift is proven%s", k.criterion.Name, len(stored), d.Reason, finds(d))
	return nil
}

// finds says how large a drift of the judge the canaries would show.
func finds(d judge.Drift) string {
	if math.IsNaN(d.Detects) {
		return "; so few would not even show a drift of all verdicts"
	}
	return fmt.Sprintf("; that %.0f %% of the verdicts move one way would be found in four of five runs at best", 100*d.Detects)
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
