package agree

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/assay-llm/assay/stat"
)

// rounds is how often a simulation is done: a few times in the default tests,
// often with ASSAY_SLOW=1.
func rounds(few, many int) int {
	if os.Getenv("ASSAY_SLOW") == "" {
		return few
	}
	return many
}

// A population of cases with what people would say and what a judge says.
type population struct {
	share      float64 // of yes
	sens, spec float64
	cluster    int     // cases in a cluster
	like       float64 // chance that a case of a cluster is like its first
}

func (p population) draw(r *rand.Rand, labelled, all int) [][]Pair {
	var out [][]Pair
	for n := 0; n < all; {
		var c []Pair
		first := r.Float64() < p.share
		for range max(p.cluster, 1) {
			human, judge := r.Float64() < p.share, 0.0
			if r.Float64() < p.like {
				human = first
			}
			yes := 1 - p.spec
			if human {
				yes = p.sens
			}
			if r.Float64() < yes {
				judge = 1
			}
			x := Pair{math.NaN(), judge}
			if n < labelled {
				x.Human = 0
				if human {
					x.Human = 1
				}
			}
			c = append(c, x)
			n++
		}
		out = append(out, c)
	}
	return out
}

// The 95 % intervals cover the truth in 93 to 97 % of 10,000 samples, with good
// and bad judges, 100 and 200 labels, also in clusters.
func TestPPICovers(t *testing.T) {
	n := rounds(1000, 10000)
	slack := 3 * math.Sqrt(0.95*0.05/float64(n))
	for i, p := range []population{
		{0.6, 0.7, 0.96, 1, 0},
		{0.5, 0.9, 0.9, 1, 0},
		{0.3, 0.97, 0.98, 1, 0},
		{0.6, 0.5, 0.5, 1, 0}, // a coin
		{0.5, 0.8, 0.9, 5, 0.5},
		{0.2, 0.9, 0.6, 1, 0},
	} {
		for _, labels := range []int{50, 100, 200} {
			if labels == 50 && p.cluster > 1 {
				continue // ten clusters
			}
			r := rand.New(rand.NewPCG(uint64(i), uint64(labels)))
			covered, width, alone := 0, 0.0, 0.0
			for range n {
				cases := p.draw(r, labels, 1000)
				e := PPI(cases, 0.95)
				if e.Lo <= p.share && p.share <= e.Hi {
					covered++
				}
				width += e.Hi - e.Lo
				l := PPI(cases[:labels/max(p.cluster, 1)], 0.95)
				alone += l.Hi - l.Lo
			}
			got := float64(covered) / float64(n)
			t.Logf("%+v, %d labels: covers %.3f, width %.3f of labels alone", p, labels, got, width/alone)
			lo, hi := 0.93, 0.97
			if labels == 50 {
				hi = 0.99 // a judge that hardly errs has not shown how
			}
			if got < lo-slack || got > hi+slack {
				t.Errorf("%+v, %d labels: covers %.3f of %d, want %v to %v", p, labels, got, n, lo, hi)
			}
			if p.sens+p.spec > 1.7 && width > 0.9*alone {
				t.Errorf("%+v, %d labels: width %.3f of that of labels alone", p, labels, width/alone)
			}
		}
	}
}

// The difference of two variants, the judge of one of which is lenient: the
// judge alone sees a difference that is not there.
func TestPPIOfDifferences(t *testing.T) {
	n := rounds(500, 5000)
	r := rand.New(rand.NewPCG(7, 7))
	covered, misled := 0, 0
	for range n {
		var cases [][]Pair
		judged, square := 0.0, 0.0
		for i := range 600 {
			hard := r.Float64()
			mark := func(lenient float64) (human, judge float64) {
				if r.Float64() < 0.3+0.5*hard {
					human = 1
				}
				judge = human
				if r.Float64() < 0.1 {
					judge = 1 - human
				}
				if r.Float64() < lenient {
					judge = 1
				}
				return human, judge
			}
			ha, ja := mark(0)
			hb, jb := mark(0.3)
			x := Pair{math.NaN(), jb - ja}
			if i < 200 {
				x.Human = hb - ha
			}
			judged += x.Judge
			square += x.Judge * x.Judge
			cases = append(cases, []Pair{x})
		}
		if e := PPI(cases, 0.95); e.Lo <= 0 && 0 <= e.Hi {
			covered++
		}
		judged /= 600
		if judged > 1.96*math.Sqrt((square/600-judged*judged)/600) {
			misled++
		}
	}
	if got := float64(covered) / float64(n); got < 0.93-3*math.Sqrt(0.0475/float64(n)) {
		t.Errorf("covers no difference in %.3f, want 0.93 or more", got)
	}
	if misled < n*9/10 {
		t.Errorf("the judge alone sees a difference in %d of %d; this test shows nothing", misled, n)
	}
}

func TestRoganGladenCovers(t *testing.T) {
	n := rounds(200, 4000)
	slack := 3 * math.Sqrt(0.95*0.05/float64(n))
	for i, p := range []population{{0.6, 0.7, 0.96, 1, 0}, {0.3, 0.9, 0.9, 1, 0}, {0.1, 0.95, 0.99, 1, 0}} {
		r := rand.New(rand.NewPCG(uint64(i), 3))
		covered := 0
		for range n {
			var a Accuracy
			said := 0
			for k, c := range p.draw(r, 150, 800) {
				x := c[0]
				switch {
				case k >= 150:
					said += int(x.Judge)
				case x.Human == 1:
					a.Positives++
					a.TruePositives += int(x.Judge)
				default:
					a.Negatives++
					a.TrueNegatives += int(1 - x.Judge)
				}
			}
			if e := RoganGladen(said, 650, a, 0.95, 1); e.Lo <= p.share && p.share <= e.Hi {
				covered++
			}
		}
		got := float64(covered) / float64(n)
		t.Logf("%+v: covers %.3f", p, got)
		if got < 0.93-slack || got > 0.985+slack {
			t.Errorf("%+v: covers %.3f of %d", p, got, n)
		}
	}
}

// Kappa's and alpha's intervals cover what a large sample gives.
func TestAgreementCovers(t *testing.T) {
	n := rounds(60, 600)
	draw := func(r *rand.Rand, cases int) (table [][]int, units [][][]float64) {
		table = [][]int{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}
		for range cases {
			truth := min(int(r.ExpFloat64()), 2)
			see := func() int {
				if r.Float64() < 0.25 {
					return r.IntN(3)
				}
				return truth
			}
			a, b := see(), see()
			table[a][b]++
			units = append(units, [][]float64{{float64(a), float64(b)}})
		}
		return table, units
	}
	big, units := draw(rand.New(rand.NewPCG(1, 1)), 400_000)
	truth, _ := kappa(big, Quadratic)
	flat := make([][]float64, len(units))
	for i, u := range units {
		flat[i] = u[0]
	}
	truthAlpha := alpha(flat, Interval)
	kappas, alphas := 0, 0
	r := rand.New(rand.NewPCG(2, 2))
	for i := range n {
		table, units := draw(r, 120)
		if e := Kappa(table, Quadratic, 0.95); e.Lo <= truth && truth <= e.Hi {
			kappas++
		}
		if e := Alpha(units, Interval, 0.95, uint64(i)); e.Lo <= truthAlpha && truthAlpha <= e.Hi {
			alphas++
		}
	}
	slack := 3 * math.Sqrt(0.95*0.05/float64(n))
	for what, got := range map[string]int{"kappa": kappas, "alpha": alphas} {
		if share := float64(got) / float64(n); share < 0.93-slack {
			t.Errorf("%s covers %.3f of %d", what, share, n)
		}
	}
}

func bounds(e stat.Estimate) struct{ lo, hi float64 } { return struct{ lo, hi float64 }{e.Lo, e.Hi} }

func TestNothingIsNeverANumber(t *testing.T) {
	nan := math.NaN()
	same := make([][]Pair, 50)
	for i := range same {
		same[i] = []Pair{{1, 1}}
	}
	for name, e := range map[string]struct{ lo, hi float64 }{
		"no labels":       bounds(PPI([][]Pair{{{nan, 1}}}, 0.95)),
		"no mark":         bounds(PPI([][]Pair{{{1, nan}}}, 0.95)),
		"nine labels":     bounds(PPI(same[:9], 0.95)),
		"a coin":          bounds(RoganGladen(50, 100, Accuracy{25, 50, 25, 50}, 0.95, 1)),
		"one class":       bounds(RoganGladen(50, 100, Accuracy{0, 0, 25, 50}, 0.95, 1)),
		"equal verdicts":  bounds(Kappa([][]int{{9, 0}, {0, 0}}, Plain, 0.95)),
		"never disagree":  bounds(Kappa([][]int{{9, 0}, {0, 9}}, Plain, 0.95)),
		"empty table":     bounds(Kappa(nil, Plain, 0.95)),
		"alpha of few":    bounds(Alpha([][][]float64{{{1, 2}, {2, 2}}}, Ordinal, 0.95, 1)),
		"alpha of no two": bounds(Alpha([][][]float64{{{1}, {2}}}, Ordinal, 0.95, 1)),
	} {
		if !math.IsInf(e.lo, -1) || !math.IsInf(e.hi, 1) {
			t.Errorf("%s has the interval [%v, %v]", name, e.lo, e.hi)
		}
	}
	// A perfect record still has an interval that reaches what was not seen.
	if e := PPI(same, 0.95); !(e.Lo < 0.93) || !(e.Hi >= 1) {
		t.Errorf("50 labels of 1 leave [%v, %v]", e.Lo, e.Hi)
	}
	if f := Fleiss([][]int{{3, 0}, {1, 1}}); !math.IsNaN(f) {
		t.Errorf("Fleiss of rows with other numbers of raters = %v", f)
	}
}

// Clusters and cases in another order, and each case twice in its cluster, change
// nothing.
func TestPPIIsInvariant(t *testing.T) {
	cases := population{0.5, 0.8, 0.9, 3, 0.5}.draw(rand.New(rand.NewPCG(5, 5)), 90, 300)
	want := PPI(cases, 0.9)
	other := make([][]Pair, len(cases))
	for i, c := range cases {
		other[len(cases)-1-i] = append(append([]Pair{}, c...), c...)
	}
	got := PPI(other, 0.9)
	if math.Abs(got.Value-want.Value) > 1e-9 || math.Abs(got.Lo-want.Lo) > 1e-9 || math.Abs(got.Hi-want.Hi) > 1e-9 {
		t.Errorf("got %v [%v, %v], want %v [%v, %v]", got.Value, got.Lo, got.Hi, want.Value, want.Lo, want.Hi)
	}
}

func ExampleKappa() {
	judge := []int{1, 1, 0, 0, 1, 0, 1, 1, 0, 1}
	human := []int{1, 1, 0, 0, 1, 0, 0, 1, 0, 1}
	e := Kappa(Table(2, human, judge), Plain, 0.95)
	fmt.Printf("%.2f [%.2f, %.2f]\n", e.Value, e.Lo, e.Hi)
	// Output: 0.80 [0.44, 1.00]
}
