package agree

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-llm/assay/stat"
)

const methodRoganGladen = "Rogan and Gladen, the wider of the delta method and of draws from Jeffreys' posteriors"

// Accuracy counts what a judge of yes and no said where people had said which is
// right.
type Accuracy struct {
	TruePositives, Positives int // said yes, of those that are
	TrueNegatives, Negatives int // said no, of those that are not
}

// Sensitivity is the chance that the judge says yes where people do, with the
// exact interval.
func (a Accuracy) Sensitivity(confidence float64) stat.Estimate {
	return stat.ExactShare(a.TruePositives, a.Positives, confidence)
}

// Specificity is the chance that the judge says no where people do.
func (a Accuracy) Specificity(confidence float64) stat.Estimate {
	return stat.ExactShare(a.TrueNegatives, a.Negatives, confidence)
}

// RoganGladen estimates the true share of yes among cases of which the judge said
// yes to so many: (p + Sp − 1) / (Se + Sp − 1) (Am. J. Epidemiol. 107, 1978).
// Sensitivity and specificity are estimates, too, from other cases, and their
// uncertainty is in the interval. There is none where a judge as good as a coin
// is not ruled out. Cases are independent; [PPI] knows clusters, and is shorter
// where the labels are of the cases that are asked about.
func RoganGladen(said, of int, a Accuracy, confidence float64, seed uint64) stat.Estimate {
	switch {
	case !valid(confidence):
		return unknown(of, confidence, methodRoganGladen, stat.CodeUndefined, badConfidence)
	case said < 0 || said > of || a.TruePositives < 0 || a.TruePositives > a.Positives || a.TrueNegatives < 0 || a.TrueNegatives > a.Negatives:
		return unknown(of, confidence, methodRoganGladen, stat.CodeUndefined, "what was said must be among the cases")
	case of == 0 || a.Positives == 0 || a.Negatives == 0:
		return unknown(of, confidence, methodRoganGladen, stat.CodeFew, "it takes cases, and labels of both kinds")
	}
	value, se := a.correct(said, of)
	lo, hi := a.draw(said, of, confidence, seed)
	e := stat.Estimate{Value: math.Min(math.Max(value, 0), 1), Confidence: confidence, N: of, Effective: float64(min(of, a.Positives+a.Negatives)), Method: methodRoganGladen}
	if math.IsNaN(value) || math.IsNaN(lo) {
		return unknown(of, confidence, methodRoganGladen, stat.CodeUndefined, "the judge may be no better than a coin, from which nothing can be concluded; use a better one, or more labels")
	}
	w := se * normal((1+confidence)/2)
	e.Lo = math.Max(0, math.Min(e.Value, math.Min(lo, value-w)))
	e.Hi = math.Min(1, math.Max(e.Value, math.Max(hi, value+w)))
	return e
}

// correct gives the corrected share, not clipped, and its standard error by the
// delta method.
func (a Accuracy) correct(said, of int) (value, se float64) {
	p, n := float64(said)/float64(of), float64(of)
	pos, neg := float64(a.Positives), float64(a.Negatives)
	sens, spec := float64(a.TruePositives)/pos, float64(a.TrueNegatives)/neg
	j := sens + spec - 1
	if !(j > 0) {
		return math.NaN(), math.NaN()
	}
	value = (p + spec - 1) / j
	v := p*(1-p)/n + (1-value)*(1-value)*spec*(1-spec)/neg + value*value*sens*(1-sens)/pos
	return value, math.Sqrt(v) / j
}

// draw gives the interval of shares that Jeffreys' posteriors of all three
// proportions leave; NaN if more than a few draws are of a judge that is no
// better than a coin.
func (a Accuracy) draw(said, of int, confidence float64, seed uint64) (lo, hi float64) {
	const draws = 4000
	src := rand.NewPCG(seed, 0xa9ee)
	beta := func(k, n int) distuv.Beta {
		return distuv.Beta{Alpha: float64(k) + 0.5, Beta: float64(n-k) + 0.5, Src: src}
	}
	p, sens, spec := beta(said, of), beta(a.TruePositives, a.Positives), beta(a.TrueNegatives, a.Negatives)
	var drawn []float64
	for range draws {
		x, s, t := p.Rand(), sens.Rand(), spec.Rand()
		if j := s + t - 1; j > 0 {
			drawn = append(drawn, math.Min(math.Max((x+t-1)/j, 0), 1))
		}
	}
	if len(drawn) < draws-draws/200 {
		return math.NaN(), math.NaN()
	}
	slices.Sort(drawn)
	tail := (1 - confidence) / 2
	at := func(q float64) float64 { return drawn[min(max(int(q*float64(len(drawn))), 0), len(drawn)-1)] }
	return at(tail), at(1 - tail)
}
