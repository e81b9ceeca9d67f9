package agree

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-llm/assay/stat"
)

const methodCalibrate = "judged mean read by the judge's line on labels, Fieller's cluster-robust t interval"

// Calibrate estimates what people would say on average of the cases without a label,
// from a judge's marks of these, read by what it says of the labelled ones: with the
// line a + b·human fitted to its marks there, (mean(judge) − a)/b. Of yes and no that is
// Rogan and Gladen's correction; with marks on a scale it takes the judge's errors to
// shift and squeeze the scale.
//
// Unlike with [PPI] the labelled cases need not be like the others, as when they are
// answers of another model: only the judge must treat answers of one worth alike. PPI
// would give such a model's mark the more, the more labels there are.
//
// The interval is Fieller's (J. R. Stat. Soc. B 16, 1954) of the ratio, with a
// cluster-robust variance and Student's quantile for two less than the labelled
// clusters. There is none where a judge that cannot tell is not ruled out, or fewer
// than ten labels are other than the most frequent one. Of yes and no, an error that no
// label has shown is not absent: while fewer than ten of a kind are known, one more is
// counted in.
func Calibrate(clusters [][]Pair, confidence float64) stat.Estimate {
	p, err := tally(clusters)
	n := p.n + p.free
	switch {
	case !valid(confidence):
		return unknown(n, confidence, methodCalibrate, stat.CodeUndefined, badConfidence)
	case err != nil:
		return unknown(n, confidence, methodCalibrate, stat.CodeUndefined, err.Error())
	case p.n == 0:
		return unknown(n, confidence, methodCalibrate, stat.CodeFew, "no case has a person's label")
	case p.free == 0:
		return unknown(n, confidence, methodCalibrate, stat.CodeFew, "there are no cases but the labelled ones")
	}
	if rare := p.n - mostFrequent(clusters); p.labelled < fewLabels || rare < few {
		return unknown(n, confidence, methodCalibrate, stat.CodeFew, fmt.Sprintf("%d labelled clusters, and %d labels other than the most frequent one, are too few to read the judge by; it takes %d of each", p.labelled, rare, few))
	}
	l := fit(p)
	e := stat.Estimate{Value: (p.freeJudge - l.a) / l.b, Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: n, Effective: float64(p.labelled), Method: methodCalibrate}
	t := distuv.StudentsT{Sigma: 1, Nu: float64(p.labelled - 2)}.Quantile((1 + confidence) / 2)
	square := l.b*l.b - t*t*l.bb
	if !(l.b > 0) || !(square > 0) {
		return unknown(n, confidence, methodCalibrate, stat.CodeUndefined, "the judge may be no better than a coin, from which nothing can be concluded; use a better one, or more labels")
	}
	d := p.freeJudge - l.a
	middle, rest := (l.b*d+t*t*l.ab)/square, (d*d-t*t*l.aa)/square
	w := math.Sqrt(math.Max(middle*middle-rest, 0))
	if !(w > 1e-14*p.biggest) {
		warn(&e, stat.CodeConstant, "the judge erred nowhere and says the same of all, which is no evidence of precision; there is no interval")
		return e
	}
	e.Lo, e.Hi = math.Min(middle-w, e.Value), math.Max(middle+w, e.Value)
	return e
}

// line is what a judge says of what people say: a + b·human. The (co)variances are of
// mean(judge) − a − b·x as a polynomial in x: aa + 2·ab·x + bb·x².
type line struct{ a, b, aa, ab, bb float64 }

// fit finds the line by least squares.
func fit(p *pairs) (l line) {
	n, free := float64(p.n), float64(p.free)
	xx, xy := 0.0, 0.0
	each := func(labelled func(x Pair)) {
		for _, c := range p.clusters {
			for _, x := range c {
				if !math.IsNaN(x.Human) {
					labelled(x)
				}
			}
		}
	}
	each(func(x Pair) {
		xx += (x.Human - p.human) * (x.Human - p.human)
		xy += (x.Human - p.human) * (x.Judge - p.judge)
	})
	l.b = xy / xx
	l.a = p.judge - l.b*p.human
	for _, c := range p.clusters {
		u, w := 0.0, 0.0 // what the cluster adds to mean(judge) − a, and to −b
		for _, x := range c {
			if math.IsNaN(x.Human) {
				u += (x.Judge - p.freeJudge) / free
				continue
			}
			r := x.Judge - l.a - l.b*x.Human
			slope := (x.Human - p.human) * r / xx
			u -= r/n - p.human*slope
			w -= slope
		}
		l.aa, l.ab, l.bb = l.aa+u*u, l.ab+u*w, l.bb+w*w
	}
	g := float64(p.labelled)
	l.aa, l.ab, l.bb = l.aa*g/(g-2), l.ab*g/(g-2), l.bb*g/(g-2)
	if p.binary && p.said[0] == 0 {
		l.unseen(p, each)
	}
	return l
}

// unseen counts in one error of each kind of which fewer than ten are known, and one
// other mark of the cases without a label.
func (l *line) unseen(p *pairs, each func(func(Pair))) {
	var of, wrong [2]float64 // people's no and yes
	each(func(x Pair) {
		h := int(x.Human)
		of[h]++
		if x.Judge != x.Human {
			wrong[h]++
		}
	})
	if wrong[0] < few { // in a
		v := 1 / (of[0] * of[0])
		l.aa, l.ab, l.bb = l.aa+v, l.ab-v, l.bb+v
	}
	if wrong[1] < few { // in a + b
		l.bb += 1 / (of[1] * of[1])
	}
	free := float64(p.free)
	if yes := p.freeJudge * free; min(yes, free-yes) < few {
		l.aa += 1 / (free * free)
	}
}

// mostFrequent is how often the most frequent label is there.
func mostFrequent(clusters [][]Pair) (most int) {
	count := map[float64]int{}
	for _, c := range clusters {
		for _, x := range c {
			if !math.IsNaN(x.Human) {
				count[x.Human]++
				most = max(most, count[x.Human])
			}
		}
	}
	return most
}
