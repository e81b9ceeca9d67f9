package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/assay-llm/assay/stat"
)

// Reach is one implied value that had to be used: how far back it was said, and
// whether it was used right.
type Reach struct {
	Cluster string // the scenario, of which several values are not independent
	Depth   int    // turns, from 1
	Right   bool
}

// DepthCount is how often values of one depth were used right.
type DepthCount struct {
	Depth int `json:"depth"`
	Right int `json:"right"`
	N     int `json:"n"`
}

// Depth is how far back a model reaches.
type Depth struct {
	Level float64      `json:"level"` // the share of right uses that is looked for: 0.9
	At    *float64     `json:"at"`    // the depth in turns at which the share falls to it; nil: see Why
	Low   *float64     `json:"low"`   // of its interval at 95 %; nil: already the shallowest depth may be below
	High  *float64     `json:"high"`  // nil: it may be beyond every depth that was seen
	Why   string       `json:"why,omitempty"`
	Count []DepthCount `json:"count"` // by depth
	Mean  float64      `json:"mean_depth"`

	curve    *logistic // nil: there is none
	reaches  []Reach
	clusters int
}

// FitDepth fits a logistic curve of right uses over depth (a ridge of 0.01 on its two
// coefficients keeps it finite where right and wrong do not overlap), and finds where
// it falls to the level. See [Depth.Estimate] for the interval. "It does not fall
// within the depths seen" is an answer, told by Why.
func FitDepth(reaches []Reach, level float64) Depth {
	d := Depth{Level: level, reaches: reaches}
	counts, clusters := make(map[int]*DepthCount), make(map[string]bool)
	right := 0
	for _, r := range reaches {
		if counts[r.Depth] == nil {
			counts[r.Depth] = &DepthCount{Depth: r.Depth}
		}
		counts[r.Depth].N++
		clusters[r.Cluster] = true
		d.Mean += float64(r.Depth) / float64(len(reaches))
		if r.Right {
			counts[r.Depth].Right++
			right++
		}
	}
	d.clusters = len(clusters)
	for _, depth := range slices.Sorted(maps.Keys(counts)) {
		d.Count = append(d.Count, *counts[depth])
	}
	switch {
	case len(clusters) < 6 || len(d.Count) < 2:
		d.Why = fmt.Sprintf("%d scenarios with %d depths are too few for a curve: it takes 6 and 2", len(clusters), len(d.Count))
		return d
	case right == len(reaches):
		d.Why = fmt.Sprintf("all %d are right down to depth %d", right, d.last())
	default:
		f := fitLogistic(reaches)
		d.curve = &f
		switch want := d.want(); {
		case f.height(d.first()) <= want:
			d.Why = fmt.Sprintf("it is below %.0f %% already at depth %.0f", 100*level, d.first())
		case f.height(float64(d.last())) > want:
			d.Why = fmt.Sprintf("it does not fall to %.0f %% down to depth %d", 100*level, d.last())
		default:
			at := (want - f.a) / f.b
			d.At = &at
		}
	}
	if e := d.Estimate(.95); e.Defined() {
		if e.Lo > 0 {
			d.Low = &e.Lo
		}
		if !math.IsInf(e.Hi, 1) {
			d.High = &e.Hi
		}
	}
	return d
}

func (d *Depth) first() float64 { return float64(d.Count[0].Depth) }
func (d *Depth) last() int      { return d.Count[len(d.Count)-1].Depth }
func (d *Depth) want() float64  { return math.Log(d.Level / (1 - d.Level)) }

const methodDepth = "depth at which a logistic curve falls to the level, inverted test of its height, robust to clusters (CR1)"

// Estimate is the depth at which the share of right uses falls to the level: 0 if it
// is below already at the shallowest depth, and the deepest one seen, without an upper
// bound, if it does not fall to it. The interval holds the depths at which the level
// lies within that of the curve, by Student's quantile and the larger one of the
// model's variance and that which is robust to clusters. Where all uses are right
// there is no curve: then the lower bound is the greatest depth for which the scenarios
// with uses at that depth and beyond, all of them right, are so many that their exact
// lower bound is above the level.
func (d *Depth) Estimate(confidence float64) stat.Estimate {
	e := stat.Estimate{Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: len(d.reaches), Effective: float64(d.clusters), Method: methodDepth}
	switch {
	case d.clusters < 6 || len(d.Count) < 2:
		e.Warnings = []stat.Warning{{Code: stat.CodeFew, Text: d.Why}}
	case d.curve == nil:
		e.Value, e.Lo = float64(d.last()), d.exact(confidence)
	default:
		d.cross(&e, quantile(confidence, float64(d.clusters-1)))
	}
	return e
}

// exact is the lower bound where all uses are right.
func (d *Depth) exact(confidence float64) float64 {
	for i := len(d.Count) - 1; i >= 0; i-- {
		clusters := make(map[string]bool)
		for _, r := range d.reaches {
			if r.Depth >= d.Count[i].Depth {
				clusters[r.Cluster] = true
			}
		}
		if e := stat.ExactShare(len(clusters), len(clusters), confidence); e.Lo >= d.Level {
			return float64(d.Count[i].Depth)
		}
	}
	return 0
}

// cross finds where the curve, and the ends of its interval, fall to the level.
func (d *Depth) cross(e *stat.Estimate, t float64) {
	const steps = 400
	f, want, first, last := d.curve, d.want(), d.first(), float64(d.last())
	at := func(i int) float64 { return first + (last-first)*float64(i)/steps }
	e.Lo = 0
	for i := 0; i <= steps && f.height(at(i))-t*f.error(at(i)) > want; i++ {
		e.Lo = at(i)
	}
	for i := steps; i >= 0 && f.height(at(i))+t*f.error(at(i)) < want; i-- {
		e.Hi = at(i)
	}
	switch {
	case d.At != nil:
		e.Value = *d.At
	case f.height(first) <= want:
		e.Value, e.Lo = 0, 0
	default:
		e.Value, e.Hi = last, math.Inf(1)
	}
	e.Lo, e.Hi = math.Min(e.Lo, e.Value), math.Max(e.Hi, e.Value)
}

// logistic is a curve a + b·depth on the scale of log odds, with the variances of its
// coefficients: robust to clusters, and the model's own.
type logistic struct {
	a, b          float64
	vaa, vab, vbb float64
	maa, mab, mbb float64
}

func (f *logistic) height(x float64) float64 { return f.a + f.b*x }

// error is the standard error of the height.
func (f *logistic) error(x float64) float64 {
	return math.Sqrt(math.Max(f.vaa+2*x*f.vab+x*x*f.vbb, f.maa+2*x*f.mab+x*x*f.mbb))
}

func fitLogistic(reaches []Reach) logistic {
	const ridge = .01
	var f logistic
	var haa, hab, hbb float64
	for range 60 {
		ga, gb := -ridge*f.a, -ridge*f.b
		haa, hab, hbb = ridge, 0, ridge
		for _, r := range reaches {
			x := float64(r.Depth)
			p := 1 / (1 + math.Exp(-(f.a + f.b*x)))
			e := -p
			if r.Right {
				e = 1 - p
			}
			ga, gb = ga+e, gb+e*x
			haa, hab, hbb = haa+p*(1-p), hab+p*(1-p)*x, hbb+p*(1-p)*x*x
		}
		det := haa*hbb - hab*hab
		da, db := (hbb*ga-hab*gb)/det, (haa*gb-hab*ga)/det
		scale := math.Min(1, 2/math.Max(math.Abs(da), math.Abs(db)+1e-300)) // no step so long that it overshoots
		f.a, f.b = f.a+scale*da, f.b+scale*db
		if math.Abs(da)+math.Abs(db) < 1e-10 {
			break
		}
	}
	sums := make(map[string][2]float64)
	for _, r := range reaches {
		x := float64(r.Depth)
		e := -1 / (1 + math.Exp(-(f.a + f.b*x)))
		if r.Right {
			e++
		}
		s := sums[r.Cluster]
		sums[r.Cluster] = [2]float64{s[0] + e, s[1] + e*x}
	}
	var maa, mab, mbb float64
	for _, k := range slices.SortedFunc(maps.Keys(sums), cmp.Compare[string]) {
		s := sums[k]
		maa, mab, mbb = maa+s[0]*s[0], mab+s[0]*s[1], mbb+s[1]*s[1]
	}
	g := float64(len(sums))
	det := haa*hbb - hab*hab
	iaa, iab, ibb := hbb/det, -hab/det, haa/det
	f.maa, f.mab, f.mbb = iaa, iab, ibb
	k := g / (g - 1)
	f.vaa = k * (iaa*(iaa*maa+iab*mab) + iab*(iaa*mab+iab*mbb))
	f.vab = k * (iaa*(iab*maa+ibb*mab) + iab*(iab*mab+ibb*mbb))
	f.vbb = k * (iab*(iab*maa+ibb*mab) + ibb*(iab*mab+ibb*mbb))
	return f
}

// quantile is that of Student's distribution for a two-sided interval, by the
// expansion of Cornish and Fisher; at 95 % within 0.5 % from 5 degrees of freedom.
func quantile(confidence, n float64) float64 {
	z := math.Sqrt2 * math.Erfinv(confidence)
	return z + (z*z*z+z)/(4*n) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*n*n) + (3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*n*n*n)
}
