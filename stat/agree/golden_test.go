package agree

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

func load(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9) {
		t.Errorf("%s = %.12g, want %.12g", what, got, want)
	}
}

// calibration.json has values of ppi_py's formulas on 100 labelled answers of
// XSTest (CC-BY-4.0) of which GPT-4 judged all 450.
func TestPPIAgreesWithItsReference(t *testing.T) {
	var g struct {
		X struct {
			Human     []float64
			Judge     []float64 `json:"judge_labelled"`
			Said      float64   `json:"judge_unlabelled_sum"`
			N         int       `json:"N"`
			Labelled  int       `json:"n"`
			Classical [2]float64
			One       [2]float64 `json:"ppi_lambda1"`
			Lambda    float64    `json:"lambda_hat_formula"`
			Tuned     [2]float64 `json:"ppi_tuned"`
			RG        struct {
				Sens  float64    `json:"se"`
				Theta float64    `json:"theta"`
				SE    float64    `json:"se_theta_delta"`
				CI    [2]float64 `json:"ci95"`
			} `json:"rogan_gladen"`
		} `json:"ppi_rogan_gladen"`
	}
	load(t, "calibration.json", &g)
	var clusters [][]Pair
	var a Accuracy
	for i, y := range g.X.Human {
		f := g.X.Judge[i]
		clusters = append(clusters, []Pair{{y, f}})
		if y == 1 {
			a.Positives++
			a.TruePositives += int(f)
		} else {
			a.Negatives++
			a.TrueNegatives += int(1 - f)
		}
	}
	labelled := len(clusters)
	for i := range g.X.N {
		f := 0.0
		if i < int(g.X.Said) {
			f = 1
		}
		clusters = append(clusters, []Pair{{math.NaN(), f}})
	}
	check := func(what string, p *pairs, lambda float64, want [2]float64) {
		t.Helper()
		value, variance := p.estimate(lambda)
		near(t, what, value, want[0])
		near(t, what+" error", math.Sqrt(variance), want[1])
	}
	p, err := tally(clusters)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "lambda", p.lambda(), g.X.Lambda)
	check("tuned", p, p.lambda(), g.X.Tuned)
	check("lambda 1", p, 1, g.X.One)
	check("labels alone", p, 0, g.X.Classical)
	if e := PPI(clusters[:labelled], 0.95); math.Abs(e.Value-g.X.Classical[0]) > 1e-12 {
		t.Errorf("without unlabelled cases the estimate is %v, want the mean of the labels", e.Value)
	}

	value, se := a.correct(int(g.X.Said), g.X.N)
	near(t, "sensitivity", float64(a.TruePositives)/float64(a.Positives), g.X.RG.Sens)
	near(t, "Rogan-Gladen", value, g.X.RG.Theta)
	near(t, "Rogan-Gladen error", se, g.X.RG.SE)
	e := RoganGladen(int(g.X.Said), g.X.N, a, 0.95, 1)
	if e.Lo > g.X.RG.CI[0]+1e-9 || e.Hi < g.X.RG.CI[1]-1e-9 {
		t.Errorf("[%v, %v] is shorter than the delta method's %v", e.Lo, e.Hi, g.X.RG.CI)
	}
	if e.Hi-e.Lo > 1.15*(g.X.RG.CI[1]-g.X.RG.CI[0]) {
		t.Errorf("[%v, %v] is far wider than the delta method's %v", e.Lo, e.Hi, g.X.RG.CI)
	}
}

// kappa.json has values of statsmodels 0.13.5, and Krippendorff's alphas of
// inspect_ai's tests.
func TestKappaAgreesWithStatsmodels(t *testing.T) {
	var g struct {
		Kappa struct {
			Table      [][]int
			Unweighted float64
			SE         float64
			Linear     float64
			Quadratic  float64
			Fleiss     struct {
				Table [][]int
				Kappa float64
			}
			Krippendorff []struct {
				Units [][]float64
				Level string
				Alpha float64
			} `json:"krippendorff(inspect tests)"`
		}
	}
	load(t, "kappa.json", &g)
	for _, c := range []struct {
		name string
		w    Weights
		want float64
	}{{"plain", Plain, g.Kappa.Unweighted}, {"linear", Linear, g.Kappa.Linear}, {"quadratic", Quadratic, g.Kappa.Quadratic}} {
		near(t, c.name, Kappa(g.Kappa.Table, c.w, 0.95).Value, c.want)
	}
	_, se := kappa(g.Kappa.Table, Plain)
	near(t, "error", se, g.Kappa.SE)
	near(t, "Fleiss", Fleiss(g.Kappa.Fleiss.Table), g.Kappa.Fleiss.Kappa)
	levels := map[string]Level{"nominal": Nominal, "ordinal": Ordinal, "interval": Interval}
	if len(g.Kappa.Krippendorff) < 5 {
		t.Fatal("the golden alphas are gone")
	}
	for _, k := range g.Kappa.Krippendorff {
		near(t, "alpha "+k.Level, alpha(k.Units, levels[k.Level]), k.Alpha)
	}
	// Gaps and units of one mark change nothing.
	nan := math.NaN()
	near(t, "alpha with gaps", alpha([][]float64{{1, nan, 2}, {nan, 3, 4}, {1, 1, nan}, {5, nan, nan}}, Interval), 19.0/24)
}
