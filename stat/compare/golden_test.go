package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-llm/assay/stat"
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

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Max(math.Abs(want), 1e-12)) {
		t.Errorf("%s = %.12g, want %.12g", what, got, want)
	}
}

// golden are values of SciPy 1.10.1 and statsmodels 0.13.5; Tango's intervals
// are his formula in Python.
type golden struct {
	McNemar map[string]struct {
		Exact float64 `json:"exact_p"`
		Mid   float64 `json:"mid_p"`
	} `json:"mcnemar"`
	Tango  map[string][3]float64 `json:"paired_diff_tango_ci95"`
	Paired struct {
		A, B    []float64
		Cluster []int
	} `json:"paired"`
	Clustered map[string]any `json:"clustered"`
	Flips     struct {
		D []float64
		P float64 `json:"p_two_sided"`
	} `json:"sign_flip_exact"`
	Multiple  struct{ P, Holm []float64 } `json:"multiple_tests"`
	TwoSample struct {
		X, Y        []float64
		KS          [2]float64
		MannWhitney [2]float64
		Cliff       float64 `json:"cliffs_delta"`
	} `json:"two_sample"`
	Sizes []struct {
		Discordance, Margin float64
		N                   int `json:"n_one_sided_05_power_8"`
	} `json:"sample_size_paired_noninf"`
}

func TestMcNemarAgreesWithStatsmodels(t *testing.T) {
	var g golden
	load(t, "stats.json", &g)
	for name, want := range g.McNemar {
		var b, c int
		if _, err := fmt.Sscanf(name, "b=%d,c=%d", &b, &c); err != nil {
			t.Fatal(err)
		}
		near(t, name+" exact", McNemar(b, c, false).P, want.Exact, 1e-9)
		if b+c > 0 {
			near(t, name+" mid", McNemar(b, c, true).P, want.Mid, 1e-9)
		}
	}
}

func TestTangoAgreesWithItsFormula(t *testing.T) {
	var g golden
	load(t, "stats.json", &g)
	exact := 0
	for name, want := range g.Tango {
		var b, c, n int
		if _, err := fmt.Sscanf(name, "b=%d,c=%d,n=%d", &b, &c, &n); err != nil {
			t.Fatal(err)
		}
		e := Tango(b, c, n, 0.95)
		near(t, name+" value", e.Value, want[0], 1e-12)
		if b+c < exactBelow {
			exact++
			if e.Lo > want[1]+1e-9 || e.Hi < want[2]-1e-9 {
				t.Errorf("%s: [%v, %v] does not contain [%v, %v]", name, e.Lo, e.Hi, want[1], want[2])
			}
			continue
		}
		near(t, name+" lower", e.Lo, want[1], 1e-8)
		near(t, name+" upper", e.Hi, want[2], 1e-8)
	}
	if exact == 0 || exact == len(g.Tango) {
		t.Error("the golden values cover one kind of interval only")
	}
}

// Without a pair that differs one way, the lower bound is the exact one of the
// other way.
func TestTangoOfOneWayIsExact(t *testing.T) {
	exact := stat.ExactShare(3, 200, 0.95)
	if e := Tango(0, 3, 200, 0.95); e.Lo > -exact.Hi {
		t.Errorf("Lo = %v, want at most %v", e.Lo, -exact.Hi)
	}
	near(t, "no pair of 50 differs", Tango(0, 0, 50, 0.95).Hi, math.Hypot(1-math.Pow(0.025, 1.0/50), 0), 0.02)
}

// The exact error rates of the rule on Tango's score: the golden file has them
// for the score alone, which is over its nominal rate of 2.5 % where few pairs
// differ; the interval here stays within it.
func TestTangoSize(t *testing.T) {
	var g struct {
		Rows []struct {
			N                   int
			Discordance, Margin float64
			Pass                float64 `json:"false_pass_at_margin"`
			Fail                float64 `json:"false_fail_at_margin"`
		}
	}
	load(t, "noninferiority_size.json", &g)
	if len(g.Rows) == 0 {
		t.Fatal("no rows")
	}
	z := normal(0.975)
	worst, over := 0.0, 0.0
	for _, r := range g.Rows {
		if r.N > 200 && testing.Short() {
			continue
		}
		var pass, fail, ourPass, ourFail float64
		up, down := (r.Discordance-r.Margin)/2, (r.Discordance+r.Margin)/2
		for b := range r.N + 1 {
			for c := range r.N - b + 1 {
				p := trinomial(b, c, r.N, up, down)
				if p < 1e-9 {
					continue
				}
				switch s := tango(float64(b), float64(c), float64(r.N), -r.Margin); {
				case s > z:
					pass += p
				case s < -z:
					fail += p
				}
				if e := Tango(b, c, r.N, 0.95); e.Lo > -r.Margin {
					ourPass += p
				} else if e.Hi < -r.Margin {
					ourFail += p
				}
			}
		}
		what := fmt.Sprintf("n=%d discordance=%v margin=%v", r.N, r.Discordance, r.Margin)
		if math.Abs(pass-r.Pass) > 1e-5 || math.Abs(fail-r.Fail) > 1e-5 {
			t.Errorf("%s: score passes %.6f and fails %.6f, want %.6f and %.6f", what, pass, fail, r.Pass, r.Fail)
		}
		worst, over = math.Max(worst, math.Max(ourPass, ourFail)), math.Max(over, math.Max(pass, fail))
		if ourPass > 0.025*1.1 || ourFail > 0.025*1.1 {
			t.Errorf("%s: the interval passes %.4f and fails %.4f, nominal 0.025", what, ourPass, ourFail)
		}
	}
	t.Logf("worst rate of the score %.4f, of the interval %.4f, nominal 0.025", over, worst)
}

func trinomial(b, c, n int, up, down float64) float64 {
	lg := func(k int) float64 { v, _ := math.Lgamma(float64(k + 1)); return v }
	term := func(k int, p float64) float64 {
		if k == 0 {
			return 0
		}
		return float64(k) * math.Log(p)
	}
	rest := n - b - c
	return math.Exp(lg(n) - lg(b) - lg(c) - lg(rest) + term(b, up) + term(c, down) + term(rest, 1-up-down))
}

func TestProportionsAgreeWithTheirLikelihood(t *testing.T) {
	var g struct {
		Proportions []struct {
			A, N, B, M int
			Interval   [2]float64
		}
	}
	load(t, "scipy.json", &g)
	for _, c := range g.Proportions {
		e := Proportions(c.A, c.N, c.B, c.M, 0.95)
		near(t, fmt.Sprintf("%+v lower", c), e.Lo, c.Interval[0], 1e-6)
		near(t, fmt.Sprintf("%+v upper", c), e.Hi, c.Interval[1], 1e-6)
	}
	if len(g.Proportions) == 0 {
		t.Error("no golden value")
	}
}

func TestMeanAgreesWithStatsmodels(t *testing.T) {
	var g golden
	load(t, "stats.json", &g)
	clusters := map[int][]float64{}
	for i := range g.Paired.A {
		c := g.Paired.Cluster[i]
		clusters[c] = append(clusters[c], g.Paired.A[i]-g.Paired.B[i])
	}
	var d [][]float64
	for i := range len(clusters) {
		d = append(d, clusters[i])
	}
	want := g.Clustered["statsmodels_cluster_corrected(G/(G-1)*(N-1)/(N-K))"].(float64)
	e := Mean(d, 0.95)
	near(t, "mean", e.Value, -0.03165, 1e-9)
	near(t, "standard error", (e.Hi-e.Value)/2.2621571627409915, want, 1e-9)
	vector := make([][]float64, 4)
	for i := range 20 {
		vector[i%4] = append(vector[i%4], float64(i))
	}
	near(t, "values 0 to 19 in 4 clusters", clusteredError(vector, 9.5, 20), 0.6454972243679028, 1e-12)
}

func TestRandomiseAgreesWithSciPy(t *testing.T) {
	var g golden
	load(t, "stats.json", &g)
	near(t, "published two-sided", Randomise(Single(g.Flips.D), 0, 0).P, g.Flips.P, 1e-12)
	var s struct {
		Flips []struct {
			D             []float64
			Greater, Less float64
		}
	}
	load(t, "scipy.json", &s)
	for _, c := range s.Flips {
		r := Randomise(Single(c.D), 0, 0)
		near(t, fmt.Sprintf("%v greater", c.D), r.Greater, c.Greater, 1e-9)
		near(t, fmt.Sprintf("%v less", c.D), r.Less, c.Less, 1e-9)
	}
	if len(s.Flips) == 0 {
		t.Error("no golden value")
	}
}

func TestHolmAgreesWithStatsmodels(t *testing.T) {
	var g golden
	load(t, "stats.json", &g)
	if diff := cmp.Diff(g.Multiple.Holm, Holm(g.Multiple.P), cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Error(diff)
	}
	if got := Holm([]float64{math.NaN(), 0.02, 0.9}); !math.IsNaN(got[0]) || got[1] != 0.06 || got[2] != 1 {
		t.Errorf("with a NaN: %v", got)
	}
}

func TestRanksAgreeWithSciPy(t *testing.T) {
	var g golden
	load(t, "stats.json", &g)
	u, effect := MannWhitney(Single(g.TwoSample.X), Single(g.TwoSample.Y), 0.95)
	near(t, "published U", u.Statistic, g.TwoSample.MannWhitney[0], 1e-12)
	near(t, "published p", u.P, g.TwoSample.MannWhitney[1], 1e-9)
	near(t, "published delta", 2*effect.Value-1, g.TwoSample.Cliff, 1e-9)
	ks := KolmogorovSmirnov(Single(g.TwoSample.X), Single(g.TwoSample.Y), 0)
	near(t, "published D", ks.Statistic, g.TwoSample.KS[0], 1e-12)
	near(t, "published p of D", ks.P, g.TwoSample.KS[1], 1e-9)

	var s struct {
		Ranks []struct {
			X, Y          []float64
			U, P          float64
			Greater, Less float64
			KS            []float64
			Brunner       float64 `json:"brunner_p"`
		}
		Limit []struct {
			M, N int
			D, P float64
		} `json:"ks_limit"`
	}
	load(t, "scipy.json", &s)
	exact, brunner := 0, 0
	for i, c := range s.Ranks {
		what := fmt.Sprintf("case %d ", i)
		u, effect := MannWhitney(Single(c.X), Single(c.Y), 0.95)
		near(t, what+"U", u.Statistic, c.U, 1e-12)
		near(t, what+"p", u.P, c.P, 1e-9)
		near(t, what+"greater", u.Greater, c.Greater, 1e-9)
		near(t, what+"less", u.Less, c.Less, 1e-9)
		if len(c.KS) > 0 {
			exact++
			ks := KolmogorovSmirnov(Single(c.X), Single(c.Y), 0)
			near(t, what+"D", ks.Statistic, c.KS[0], 1e-12)
			near(t, what+"p of D", ks.P, c.KS[1], 1e-9)
		}
		if c.Brunner > 0 {
			brunner++
			_, se, df := effectSize(Single(c.X), Single(c.Y), c.X, c.Y, 0.95)
			near(t, what+"Brunner and Munzel", 2*studentSurvival(math.Abs(effect.Value-0.5)/se, df), c.Brunner, 1e-6)
		}
	}
	for _, c := range s.Limit {
		m := math.Sqrt(float64(c.M) / float64(c.M+c.N) * float64(c.N))
		near(t, fmt.Sprintf("limit %+v", c), kolmogorov((m+0.12+0.11/m)*c.D), c.P, 0.02)
	}
	if exact == 0 || brunner == 0 || len(s.Limit) == 0 {
		t.Error("a kind of golden value is missing")
	}
}

func TestBootstrapAgreesWithSciPy(t *testing.T) {
	var s struct {
		BCa []struct {
			X        []float64
			Interval [2]float64
		}
	}
	load(t, "scipy.json", &s)
	for _, c := range s.BCa {
		e := Bootstrap{Repeats: 20_000, Seed: 1}.Clusters(Single(c.X), average, 0.9)
		near(t, "lower", e.Lo, c.Interval[0], 0.01)
		near(t, "upper", e.Hi, c.Interval[1], 0.01)
	}
	if len(s.BCa) == 0 {
		t.Error("no golden value")
	}
}

func TestDesignAgreesWithPublishedSizes(t *testing.T) {
	var g golden
	load(t, "stats.json", &g)
	if len(g.Sizes) == 0 {
		t.Fatal("no golden value")
	}
	for _, c := range g.Sizes {
		if got := (Design{}).Pairs(c.Discordance, c.Margin); got != c.N {
			t.Errorf("discordance %v, margin %v: %d pairs, want %d", c.Discordance, c.Margin, got, c.N)
		}
	}
}

func average(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s / float64(len(x))
}

// The three profiles of a published service are not dominated by each other;
// a fourth one, worse than the second in everything, is.
func TestParetoFront(t *testing.T) {
	less := []bool{true, false, true, false} // latency, tokens/s, hallucinations, conversion
	profiles := [][]float64{{128, 42.7, 8.3, 2.1}, {215, 33.2, 3.1, 3.8}, {396, 26.5, 1.2, 4.2}, {220, 33, 3.2, 3.7}}
	s, err := Pareto(estimates(profiles, 0.001), less, 1)
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range []bool{true, true, true, false} {
		if s[v].Front != want || want && s[v].Dominated > 0.001 || !want && s[v].Dominated < 0.999 {
			t.Errorf("profile %d: %+v, want front %v", v, s[v], want)
		}
	}
	if diff := cmp.Diff([]int{1}, s[3].By); diff != "" {
		t.Error(diff)
	}
	// With wide intervals nobody knows.
	if s, err = Pareto(estimates(profiles, 10), less, 1); err != nil || s[3].Dominated > 0.5 || s[3].Dominated < 0.01 {
		t.Errorf("wide intervals: %+v, %v", s, err)
	}
	es := estimates(profiles, 1)
	es[0][0].Hi = math.Inf(1)
	if s, err = Pareto(es, less, 1); err != nil || !math.IsNaN(s[3].Dominated) {
		t.Errorf("without a bound: %+v, %v", s, err)
	}
	if _, err = Pareto(es, less[:2], 1); err == nil || !strings.Contains(err.Error(), "objectives") {
		t.Errorf("too few directions: %v", err)
	}
}
