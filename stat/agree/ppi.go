package agree

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-llm/assay/stat"
)

const (
	methodPPI = "PPI++: judged mean corrected by labels, tuned, cluster-robust t interval"

	fewLabels = 10 // labelled clusters, below which there is no interval
	few       = 10 // of anything, below which it is hardly known
)

// Pair is what a person and a judge say of one case, as numbers on one scale:
// 0 and 1 for no and yes. Human is NaN where no person was asked.
//
// For the difference of two variants a Pair holds differences, candidate minus
// baseline: of a person's marks of both answers, and of the judge's. An error
// that the judge makes with both then cancels.
type Pair struct{ Human, Judge float64 }

// PPI estimates what people would say on average of all cases, from a judge's
// marks of all and people's of some: λ·mean(judge, unlabelled) + mean(human −
// λ·judge, labelled). Whatever the judge is worth, the estimate is unbiased; the
// better it is, the shorter the interval. λ within [0, 1] is the one of least
// variance: cov(human, judge) / ((1+n/N)·var(judge)) for n labelled and N
// unlabelled cases (Angelopoulos, Duchi & Zrnic, PPI++, arXiv 2311.01453).
//
// Which cases have a label must not depend on what they are. The variance is
// cluster-robust (CR1), also where a cluster has both kinds of cases; the interval
// is Student's on the number of labelled clusters. Of yes and no, what no label has
// shown yet is not absent: while fewer than ten labels contradict the judge, one
// contradiction more is counted in, and four more of the rarer label while that
// has fewer than ten.
func PPI(clusters [][]Pair, confidence float64) stat.Estimate {
	p, err := tally(clusters)
	switch {
	case !valid(confidence):
		return unknown(p.n, confidence, methodPPI, stat.CodeUndefined, badConfidence)
	case err != nil:
		return unknown(p.n, confidence, methodPPI, stat.CodeUndefined, err.Error())
	case p.n == 0:
		return unknown(0, confidence, methodPPI, stat.CodeFew, "no case has a person's label")
	}
	value, variance := p.estimate(p.lambda())
	e := stat.Estimate{Value: value, Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: p.n + p.free, Effective: float64(p.labelled), Method: methodPPI}
	g := float64(p.labelled)
	if p.labelled < fewLabels {
		warn(&e, stat.CodeFew, fmt.Sprintf("%d labelled clusters are too few for an interval; it takes %d", p.labelled, fewLabels))
		return e
	}
	variance *= g / (g - 1)
	if p.binary {
		unseen := 0.0
		if p.disagree < few {
			unseen++
		}
		if p.n-max(p.said[0], p.said[1], p.said[2]) < few {
			unseen += 4
		}
		variance += unseen / float64(p.n*p.n)
	}
	if !(variance > 1e-28*p.biggest*p.biggest) {
		warn(&e, stat.CodeConstant, "all labels are equal, which is no evidence of precision; there is no interval")
		return e
	}
	w := math.Sqrt(variance) * distuv.StudentsT{Sigma: 1, Nu: g - 1}.Quantile((1+confidence)/2)
	e.Lo, e.Hi = value-w, value+w
	return e
}

// pairs are cases, counted.
type pairs struct {
	clusters [][]Pair
	n, free  int // cases with and without a label
	labelled int // clusters with a label
	disagree int // labels other than the judge's mark
	binary   bool
	said     [3]int // of binary labels, how often -1, 0 and 1
	biggest  float64

	human, judge float64 // means over the labelled
	freeJudge    float64 // mean over the others
}

func tally(clusters [][]Pair) (*pairs, error) {
	p := &pairs{clusters: clusters, binary: true}
	for i, c := range clusters {
		has := false
		for _, x := range c {
			if math.IsNaN(x.Judge) || math.IsInf(x.Judge, 0) || math.IsInf(x.Human, 0) {
				return p, fmt.Errorf("cluster %d has a mark that is no number; leave out what was not measured, and bound it", i)
			}
			p.biggest = math.Max(p.biggest, math.Abs(x.Judge))
			p.binary = p.binary && whole(x.Judge)
			if math.IsNaN(x.Human) {
				p.free++
				p.freeJudge += x.Judge
				continue
			}
			has = true
			p.n++
			p.human += x.Human
			p.judge += x.Judge
			p.biggest = math.Max(p.biggest, math.Abs(x.Human))
			if p.binary = p.binary && whole(x.Human); p.binary {
				p.said[int(x.Human)+1]++
			}
			if x.Human != x.Judge {
				p.disagree++
			}
		}
		if has {
			p.labelled++
		}
	}
	p.human, p.judge, p.freeJudge = p.human/float64(p.n), p.judge/float64(p.n), p.freeJudge/float64(p.free)
	return p, nil
}

func whole(x float64) bool { return x == -1 || x == 0 || x == 1 }

// lambda is how far to rely on the judge.
func (p *pairs) lambda() float64 {
	if p.free == 0 || p.labelled < 2 {
		return 0
	}
	n, free := float64(p.n), float64(p.free)
	pooled := (p.judge*n + p.freeJudge*free) / (n + free)
	covariance, variance := 0.0, 0.0
	for _, c := range p.clusters {
		y, f, all := 0.0, 0.0, 0.0
		for _, x := range c {
			all += x.Judge - pooled
			if !math.IsNaN(x.Human) {
				y += x.Human - p.human
				f += x.Judge - p.judge
			}
		}
		covariance += y * f
		variance += all * all
	}
	g, all := float64(p.labelled), float64(len(p.clusters))
	covariance *= g / (g - 1) / n
	variance *= all / (all - 1) / (n + free)
	if !(variance > 0) {
		return 0
	}
	return math.Min(math.Max(covariance/((1+n/free)*variance), 0), 1)
}

// estimate is the corrected mean and its variance without a correction for few
// clusters.
func (p *pairs) estimate(lambda float64) (value, variance float64) {
	rest := p.human - lambda*p.judge
	value = rest
	if p.free > 0 {
		value += lambda * p.freeJudge
	}
	for _, c := range p.clusters {
		infl := 0.0
		for _, x := range c {
			if math.IsNaN(x.Human) {
				infl += lambda * (x.Judge - p.freeJudge) / float64(p.free)
			} else {
				infl += (x.Human - lambda*x.Judge - rest) / float64(p.n)
			}
		}
		variance += infl * infl
	}
	return value, variance
}
