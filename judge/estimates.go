package judge

import (
	"fmt"
	"math"

	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/agree"
	"github.com/assay-llm/assay/stat/compare"
)

// agreement is over cases that a person and the judge labelled.
func (c *calibration) agreement() {
	var judged []Observation
	equal := 0
	for i := range c.all {
		if o := c.all[i]; o.HumanLevel >= 0 && o.JudgeLevel >= 0 {
			judged = append(judged, o)
			if o.HumanLevel == o.JudgeLevel {
				equal++
			}
		}
	}
	conf := c.demands.Confidence
	c.Agreement.Raw = figure(stat.ExactShare(equal, len(judged), conf))
	w := agree.Plain
	if c.scale.Ordered && len(c.scale.Labels) > 2 {
		w = agree.Quadratic
	}
	clusters := grouped(judged, func(o Observation) string { return o.Cluster })
	full := func(all []Observation) float64 {
		var human, judge []int
		for i := range all {
			human, judge = append(human, all[i].HumanLevel), append(judge, all[i].JudgeLevel)
		}
		return agree.Kappa(agree.Table(len(c.scale.Labels), human, judge), w, conf).Value
	}
	// Binary compares the judge with people, or, with people, two of them.
	binary := func(all []Observation, people bool) float64 {
		var first, second []int
		for i := range all {
			o := &all[i]
			a, b := yes(o.Human), yes(o.Judge)
			if people {
				a, b = c.yesLevel(o.Raters[0]), c.yesLevel(o.Raters[1])
			}
			first, second = append(first, a), append(second, b)
		}
		return agree.Kappa(agree.Table(2, first, second), agree.Plain, conf).Value
	}
	c.Agreement.Kappa = figure(agree.Resample(clusters, full, conf, c.demands.Seed))
	c.Agreement.Binary = figure(agree.Resample(clusters, func(all []Observation) float64 { return binary(all, false) }, conf, c.demands.Seed))
	var rated []Observation
	for _, o := range judged {
		if len(o.Raters) > 1 && o.Raters[0] >= 0 && o.Raters[1] >= 0 {
			rated = append(rated, o)
		}
	}
	if len(rated) == 0 {
		return
	}
	clusters = grouped(rated, func(o Observation) string { return o.Cluster })
	c.Agreement.Ceiling = figure(agree.Resample(clusters, func(all []Observation) float64 { return binary(all, true) }, conf, c.demands.Seed))
	c.Agreement.Gap = figure(agree.Resample(clusters, func(all []Observation) float64 { return binary(all, false) - binary(all, true) }, conf, c.demands.Seed))
	marks := make([][][]float64, len(clusters))
	for i, g := range clusters {
		for _, o := range g {
			var unit []float64
			for _, r := range o.Raters {
				x := math.NaN()
				if r >= 0 {
					x = float64(r)
				}
				unit = append(unit, x)
			}
			marks[i] = append(marks[i], unit)
		}
	}
	level := agree.Nominal
	if c.scale.Ordered {
		level = agree.Ordinal
	}
	c.Agreement.People = figure(agree.Alpha(marks, level, conf, c.demands.Seed))
}

// yes is 1 for yes, 0 for no and -1 for neither.
func yes(x float64) int {
	switch {
	case x > 0.5:
		return 1
	case x < 0.5:
		return 0
	}
	return -1
}

func (c *calibration) yesLevel(level int) int {
	if level < 0 {
		return -1
	}
	return yes(c.scale.number(c.scale.Labels[level]))
}

func (c *calibration) estimates() {
	c.Estimates = c.estimate(c.all)
	pairs := c.slicePairs()
	seen := map[[2]string]bool{}
	for _, p := range pairs {
		for _, v := range []string{p.first, p.second} {
			if seen[[2]string{p.column, v}] {
				continue
			}
			seen[[2]string{p.column, v}] = true
			part := c.in(p.column, v)
			a := accuracy(part)
			c.Slices = append(c.Slices, Slice{
				Column: p.column, Value: v, Cases: len(part), Estimates: c.estimate(part),
				Sensitivity: figure(a.Sensitivity(c.demands.Confidence)), Specificity: figure(a.Specificity(c.demands.Confidence)),
			})
		}
		c.difference(p)
	}
}

func (c *calibration) estimate(all []Observation) Estimates {
	conf := c.demands.Confidence
	var human, alone []Score
	var pairs []Observation
	said, of := 0, 0
	for _, o := range all {
		if !math.IsNaN(o.Human) {
			human = append(human, Score{Cluster: o.Cluster, Value: o.Human})
		}
		if !math.IsNaN(o.Judge) {
			alone = append(alone, Score{Cluster: o.Cluster, Value: o.Judge})
			pairs = append(pairs, o)
			of++
			if o.Judge > 0.5 {
				said++
			}
		}
	}
	var clusters [][]agree.Pair
	for _, g := range grouped(pairs, func(o Observation) string { return o.Cluster }) {
		var ps []agree.Pair
		for _, o := range g {
			ps = append(ps, agree.Pair{Human: o.Human, Judge: o.Judge})
		}
		clusters = append(clusters, ps)
	}
	e := Estimates{Human: figure(meanOf(human, conf)), Alone: figure(meanOf(alone, conf)), Corrected: figure(agree.PPI(clusters, conf).Within(0, 1))}
	if !c.scale.Pairs {
		e.ByRates = figure(agree.RoganGladen(said, of, accuracy(all), conf, c.demands.Seed))
	}
	return e
}

// difference compares two slices on the cases that both have.
func (c *calibration) difference(p slicePair) {
	first := map[string]Observation{}
	for _, o := range c.in(p.column, p.first) {
		first[c.paired(&o, p.column)] = o
	}
	var both []Observation
	for _, o := range c.in(p.column, p.second) {
		f, ok := first[c.paired(&o, p.column)]
		if d := o.Judge - f.Judge; ok && !math.IsNaN(d) {
			both = append(both, Observation{Cluster: o.Cluster, Human: o.Human - f.Human, Judge: d})
		}
	}
	if len(both) == 0 {
		return
	}
	var clusters [][]agree.Pair
	var values [][]float64
	for _, g := range grouped(both, func(o Observation) string { return o.Cluster }) {
		var ps []agree.Pair
		var vs []float64
		for _, o := range g {
			ps, vs = append(ps, agree.Pair{Human: o.Human, Judge: o.Judge}), append(vs, o.Judge)
		}
		clusters, values = append(clusters, ps), append(values, vs)
	}
	c.Differences = append(c.Differences, Different{
		Column: p.column, First: p.first, Second: p.second, Cases: len(both),
		Alone: figure(compare.Mean(values, c.demands.Confidence)), Corrected: figure(agree.PPI(clusters, c.demands.Confidence).Within(-1, 1)),
	})
}

// paired names a case but for its value in one column.
func (c *calibration) paired(o *Observation, column string) string {
	parts := []string{o.Case}
	for _, k := range keys(o.Slices) {
		if k != column {
			parts = append(parts, k, o.Slices[k])
		}
	}
	return fmt.Sprintf("%q", parts)
}
