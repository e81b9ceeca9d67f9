package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
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
}

// FitDepth fits a logistic curve of right uses over depth (a ridge of 0.01 on its two
// coefficients keeps it finite where right and wrong do not overlap), and finds where
// it falls to the level. Its interval inverts the test of the curve's height with the
// variance that is robust to clusters (CR1) and Student's quantile: it is the depths at
// which the level lies within the curve's interval, and may be open on either side.
// "It does not fall within the depths seen" is an answer, told by Why.
func FitDepth(reaches []Reach, level float64) Depth {
	d := Depth{Level: level}
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
	for _, depth := range slices.Sorted(maps.Keys(counts)) {
		d.Count = append(d.Count, *counts[depth])
	}
	switch {
	case len(clusters) < 6 || len(d.Count) < 2:
		d.Why = fmt.Sprintf("%d scenarios with %d depths are too few for a curve: it takes 6 and 2", len(clusters), len(d.Count))
		return d
	case right == len(reaches):
		d.Why = fmt.Sprintf("all %d are right down to depth %d", right, d.Count[len(d.Count)-1].Depth)
		return d
	}
	f := fitLogistic(reaches)
	f.cross(&d, math.Log(level/(1-level)), float64(d.Count[0].Depth), float64(d.Count[len(d.Count)-1].Depth), student95(len(clusters)-1))
	return d
}

// cross finds where the curve falls to the height want between two depths.
func (f logistic) cross(d *Depth, want, first, last, t float64) {
	const steps = 400
	at := func(i int) float64 { return first + (last-first)*float64(i)/steps }
	height := func(x float64) float64 { return f.a + f.b*x }
	band := func(x float64) float64 { return t * math.Sqrt(f.vaa+2*x*f.vab+x*x*f.vbb) }
	for i := 0; i <= steps && height(at(i))-band(at(i)) > want; i++ {
		x := at(i)
		d.Low = &x
	}
	for i := steps; i >= 0 && height(at(i))+band(at(i)) < want; i-- {
		x := at(i)
		d.High = &x
	}
	switch cross := (want - f.a) / f.b; {
	case height(first) <= want:
		d.Why = fmt.Sprintf("it is below %.0f %% already at depth %.0f", 100*d.Level, first)
	case height(last) > want:
		d.Why = fmt.Sprintf("it does not fall to %.0f %% down to depth %.0f", 100*d.Level, last)
	default:
		d.At = &cross
	}
}

// logistic is a curve a + b·depth on the scale of log odds, with the variances of its
// coefficients.
type logistic struct{ a, b, vaa, vab, vbb float64 }

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
	k := g / (g - 1)
	f.vaa = k * (iaa*(iaa*maa+iab*mab) + iab*(iaa*mab+iab*mbb))
	f.vab = k * (iaa*(iab*maa+ibb*mab) + iab*(iab*mab+ibb*mbb))
	f.vbb = k * (iab*(iab*maa+ibb*mab) + ibb*(iab*mab+ibb*mbb))
	return f
}

// student95 is the quantile of Student's distribution for a two-sided interval at
// 95 %, by the expansion of Cornish and Fisher; within 0.5 % from 5 degrees of freedom.
func student95(freedom int) float64 {
	const z = 1.959964
	n := float64(freedom)
	return z + (z*z*z+z)/(4*n) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*n*n) + (3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*n*n*n)
}
